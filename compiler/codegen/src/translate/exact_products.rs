//! Multiplications by a power of two whose results have several uses, such as the last step of `exp`.
//!
//! NVPTX fuses each addition with its multiplication, even if the product has other uses and is computed anyway. That
//! saves nothing, and keeps both factors live up to the addition and, if the product is computed late, up to its last
//! use: a softmax row of exponentials then takes twice the registers, or spills. With a power of two the product is
//! exact, so that the sum is the same either way (denormal results apart), and it is not fused.
#![allow(unsafe_code)]

use llvm_sys::{LLVMFastMathAllowContract, LLVMOpcode, core::*, prelude::*};

use super::walk::each_function;

/// Makes products by a power of two that do not vanish when they are fused again, without the permission to be fused.
pub(super) fn keep(context: LLVMContextRef, module: LLVMModuleRef) {
    // SAFETY: walks the caller's live module by LLVM's own iterators. The C API takes no flag away, so that a new product
    // replaces the old one, which is left when the walk is past it; the builder is disposed of.
    unsafe {
        let builder = LLVMCreateBuilderInContext(context);
        each_function(module, |function| {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut next = LLVMGetFirstInstruction(block);
                while !next.is_null() {
                    let product = next;
                    next = LLVMGetNextInstruction(product);
                    if LLVMGetInstructionOpcode(product) != LLVMOpcode::LLVMFMul || only_in_sums(product) {
                        continue;
                    }
                    let (lhs, rhs) = (LLVMGetOperand(product, 0), LLVMGetOperand(product, 1));
                    if is_power_of_two(lhs) || is_power_of_two(rhs) {
                        // This takes over the source position, too.
                        LLVMPositionBuilderBefore(builder, product);
                        LLVMReplaceAllUsesWith(product, LLVMBuildFMul(builder, lhs, rhs, c"".as_ptr()));
                        LLVMInstructionEraseFromParent(product);
                    }
                }
                block = LLVMGetNextBasicBlock(block);
            }
        });
        LLVMDisposeBuilder(builder);
    }
}

/// Whether the value's bits are a number shifted up to where the exponent of a float begins: its mantissa is zero.
///
/// # Safety
///
/// The value is live.
unsafe fn is_power_of_two(value: LLVMValueRef) -> bool {
    // SAFETY: by contract; only instructions are queried for operands, and only constant integers for a number.
    unsafe {
        if LLVMIsAInstruction(value).is_null() || LLVMGetInstructionOpcode(value) != LLVMOpcode::LLVMBitCast {
            return false;
        }
        let bits = LLVMGetOperand(value, 0);
        if LLVMIsAInstruction(bits).is_null() || LLVMGetInstructionOpcode(bits) != LLVMOpcode::LLVMShl {
            return false;
        }
        let distance = LLVMGetOperand(bits, 1);
        let mantissa = match LLVMGetTypeKind(LLVMTypeOf(value)) {
            llvm_sys::LLVMTypeKind::LLVMFloatTypeKind => 23,
            llvm_sys::LLVMTypeKind::LLVMDoubleTypeKind => 52,
            _ => return false,
        };
        !LLVMIsAConstantInt(distance).is_null() && LLVMConstIntGetZExtValue(distance) == mantissa
    }
}

/// Whether all uses of a product are sums, into which it vanishes.
///
/// # Safety
///
/// The product is a live instruction.
unsafe fn only_in_sums(product: LLVMValueRef) -> bool {
    // SAFETY: by contract; users of an instruction are instructions.
    unsafe {
        let mut next = LLVMGetFirstUse(product);
        while !next.is_null() {
            let user = LLVMGetUser(next);
            let sum = matches!(LLVMGetInstructionOpcode(user), LLVMOpcode::LLVMFAdd | LLVMOpcode::LLVMFSub)
                && LLVMGetFastMathFlags(user) & LLVMFastMathAllowContract != 0;
            if !sum {
                return false;
            }
            next = LLVMGetNextUse(next);
        }
        true
    }
}

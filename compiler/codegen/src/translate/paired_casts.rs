//! Sums of products that are rounded to 16 bits: two of them in one instruction.
//!
//! LLVM writes a conversion for each, unless both results go into one word in the same block. NVIDIA's assembler makes pairs
//! of such conversions itself and puts a pair to where the block begins that the sums come into. Behind a loop with a
//! product in flight that is before the wait for it, so that the assembler finds sums that are read too early and lets all
//! products wait for each other (C7514). An instruction that converts two numbers stays where it is.
#![allow(unsafe_code)]

use std::collections::HashSet;

use llvm_sys::{LLVMOpcode, LLVMTypeKind, core::*, prelude::*};

use super::walk::{assembly_text, each_function};
use crate::emit::WGMMA_WAIT;

/// Pairs conversions of accumulators after a wait for `wgmma`, in each block.
pub(super) fn pair(context: LLVMContextRef, module: LLVMModuleRef) {
    // SAFETY: walks the caller's live module by LLVM's own iterators; replaced instructions are erased when the walk of
    // their block is over; the builder is disposed of.
    unsafe {
        let builder = LLVMCreateBuilderInContext(context);
        each_function(module, |function| {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                for pair in pairs(block) {
                    replace(context, module, builder, &pair);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        });
        LLVMDisposeBuilder(builder);
    }
}

/// A conversion of a sum.
#[derive(Clone, Copy)]
struct Cast {
    instruction: LLVMValueRef,
    /// Its place in the block.
    place: usize,
    /// The wait that the sum comes out of, and which of its results it is.
    wait: LLVMValueRef,
    number: u32,
    /// The position of the first conversion of that wait's results: the order of addresses differs between processes.
    group: usize,
    /// The intrinsic that converts two.
    of_two: &'static str,
}

/// The conversions of a block, two and two: neighbours among the sums, for these go into one word if any do.
///
/// # Safety
///
/// The block is live.
unsafe fn pairs(block: LLVMBasicBlockRef) -> Vec<[Cast; 2]> {
    let mut casts: Vec<Cast> = Vec::new();
    // SAFETY: by contract.
    unsafe {
        let mut instruction = LLVMGetFirstInstruction(block);
        let mut place = 0;
        while !instruction.is_null() {
            if let Some(cast) = cast(instruction, place) {
                let group = casts.iter().find(|other| other.wait == cast.wait).map_or(place, |other| other.group);
                casts.push(Cast { group, ..cast });
            }
            place += 1;
            instruction = LLVMGetNextInstruction(instruction);
        }
    }
    let word = |cast: &Cast| (cast.group, cast.of_two, cast.number / 2);
    // SAFETY: by contract.
    let single: HashSet<_> = casts.iter().filter(|cast| unsafe { stays_single(cast) }).map(word).collect();
    casts.retain(|cast| single.contains(&word(cast)));
    casts.sort_by_key(|cast| (cast.group, cast.of_two, cast.number));
    let alike = casts.chunk_by(|a, b| (a.group, a.of_two) == (b.group, b.of_two));
    alike.flat_map(|alike| alike.as_chunks().0.to_vec()).collect()
}

/// Whether the result has uses of its own, or is used in another block than the one that LLVM selects instructions for.
///
/// # Safety
///
/// The conversion is live.
unsafe fn stays_single(cast: &Cast) -> bool {
    // SAFETY: by contract; users of an instruction are instructions.
    unsafe {
        let mut next = LLVMGetFirstUse(cast.instruction);
        while !next.is_null() {
            let user = LLVMGetUser(next);
            if LLVMGetInstructionOpcode(user) != LLVMOpcode::LLVMInsertElement
                || LLVMGetInstructionParent(user) != LLVMGetInstructionParent(cast.instruction)
            {
                return true;
            }
            next = LLVMGetNextUse(next);
        }
        false
    }
}

/// The instruction, if it rounds the result of a wait for `wgmma` to 16 bits.
///
/// # Safety
///
/// The instruction is live.
unsafe fn cast(instruction: LLVMValueRef, place: usize) -> Option<Cast> {
    // SAFETY: by contract; operands, indices and callees are queried from instructions that have them.
    unsafe {
        let of_two = match LLVMGetInstructionOpcode(instruction) {
            LLVMOpcode::LLVMFPTrunc => match LLVMGetTypeKind(LLVMTypeOf(instruction)) {
                LLVMTypeKind::LLVMHalfTypeKind => "llvm.nvvm.ff2f16x2.rn",
                LLVMTypeKind::LLVMBFloatTypeKind => "llvm.nvvm.ff2bf16x2.rn",
                _ => return None,
            },
            LLVMOpcode::LLVMCall if LLVMIsAFunction(LLVMGetCalledValue(instruction)).is_null() => return None,
            LLVMOpcode::LLVMCall => match LLVMGetIntrinsicID(LLVMGetCalledValue(instruction)) {
                id if id == intrinsic("llvm.nvvm.f2f16.rz") => "llvm.nvvm.ff2f16x2.rz",
                id if id == intrinsic("llvm.nvvm.f2bf16.rz") => "llvm.nvvm.ff2bf16x2.rz",
                _ => return None,
            },
            _ => return None,
        };
        let sum = LLVMGetOperand(instruction, 0);
        if LLVMIsAExtractValueInst(sum).is_null() {
            return None;
        }
        let wait = LLVMGetOperand(sum, 0);
        assembly_text(wait).starts_with(WGMMA_WAIT).then(|| Cast {
            instruction,
            place,
            wait,
            number: *LLVMGetIndices(sum),
            group: place,
            of_two,
        })
    }
}

/// Replaces two conversions by one at the position of the earlier one.
///
/// # Safety
///
/// All handles are live, and the conversions stand in one block.
unsafe fn replace(context: LLVMContextRef, module: LLVMModuleRef, builder: LLVMBuilderRef, pair: &[Cast; 2]) {
    let [low, high] = *pair;
    let first = if low.place < high.place { low } else { high };
    // SAFETY: by contract; the wait comes before both conversions, and the intrinsic takes two floats, the upper one
    // first.
    unsafe {
        // This takes over the source position, too.
        LLVMPositionBuilderBefore(builder, first.instruction);
        let mut sums = [high, low].map(|cast| LLVMBuildExtractValue(builder, cast.wait, cast.number, c"".as_ptr()));
        let id = intrinsic(low.of_two);
        let mut none = [];
        let declared = LLVMGetIntrinsicDeclaration(module, id, none.as_mut_ptr(), 0);
        let ty = LLVMGlobalGetValueType(declared);
        let both = LLVMBuildCall2(builder, ty, declared, sums.as_mut_ptr(), 2, c"".as_ptr());
        let halves = [0, 1].map(|half| {
            let half = LLVMConstInt(LLVMInt32TypeInContext(context), half, 0);
            LLVMBuildExtractElement(builder, both, half, c"".as_ptr())
        });
        // Not before all is built: the builder is positioned at one of them.
        for (cast, half) in pair.iter().zip(halves) {
            LLVMReplaceAllUsesWith(cast.instruction, half);
            LLVMInstructionEraseFromParent(cast.instruction);
        }
    }
}

/// The number of an intrinsic.
fn intrinsic(name: &str) -> u32 {
    // SAFETY: reads the name only.
    unsafe { LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len()) }
}

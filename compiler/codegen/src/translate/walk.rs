//! Walks through the functions and instructions of an LLVM module.
#![allow(unsafe_code)]

use llvm_sys::{
    core::*,
    prelude::{LLVMModuleRef, LLVMValueRef},
};

/// Visits the functions of a module.
///
/// # Safety
///
/// The module is live, and `visit` removes no function.
pub(super) unsafe fn each_function(module: LLVMModuleRef, mut visit: impl FnMut(LLVMValueRef)) {
    // SAFETY: by contract.
    unsafe {
        let mut function = LLVMGetFirstFunction(module);
        while !function.is_null() {
            visit(function);
            function = LLVMGetNextFunction(function);
        }
    }
}

/// Visits the instructions of a module.
///
/// # Safety
///
/// The module is live, and `visit` removes and adds nothing.
pub(super) unsafe fn each_instruction(module: LLVMModuleRef, mut visit: impl FnMut(LLVMValueRef)) {
    // SAFETY: by contract.
    unsafe {
        each_function(module, |function| {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    visit(instruction);
                    instruction = LLVMGetNextInstruction(instruction);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        });
    }
}

/// The text of a value that is a call of inline assembly; otherwise nothing.
///
/// # Safety
///
/// The value is live, and so it is while the text is used.
pub(super) unsafe fn assembly_text<'a>(value: LLVMValueRef) -> &'a str {
    // SAFETY: by contract; the text is that of live assembly and as long as LLVM says.
    unsafe {
        if LLVMIsACallInst(value).is_null() {
            return "";
        }
        let callee = LLVMGetCalledValue(value);
        if LLVMIsAInlineAsm(callee).is_null() {
            return "";
        }
        let mut length = 0;
        let text = LLVMGetInlineAsmAsmString(callee, &mut length);
        std::str::from_utf8(std::slice::from_raw_parts(text.cast::<u8>(), length)).unwrap_or_default()
    }
}

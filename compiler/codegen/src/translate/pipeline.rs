//! Which passes of the optimizer a module gets.
//!
//! Some passes of LLVM compare all accesses of a block with each other. In a kernel whose loop body is thousands of
//! instructions they took nine tenths of a compilation, so that such code goes without them. Where the limits lie
//! depends on the number of instructions alone: the same input gives the same bytes.
#![allow(unsafe_code)]

use std::ffi::CStr;

use llvm_sys::{
    LLVMOpcode, LLVMTypeKind,
    core::*,
    prelude::{LLVMModuleRef, LLVMValueRef},
};

use super::walk::each_instruction;

/// A module with more instructions than this goes without the passes that take quadratic time (`back_end.rs`).
const LONG: usize = 2_000;

/// A module with more instructions than this gets the short pipeline, unless it has functions to inline.
const VERY_LONG: usize = 10_000;

/// The gains of `O3` on long straight-line code, in a quarter of the time: no inlining, no loop passes beyond hoisting,
/// no SLP vectorization, whose search is quadratic.
const SHORT_PIPELINE: &CStr =
    c"function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),dse,adce,infer-alignment)";

/// How a module is optimized.
pub(super) struct Pipeline {
    /// The passes in LLVM's text form.
    pub(super) passes: &'static CStr,
    /// Whether scalars are packed into vectors.
    pub(super) pack: bool,
    /// Whether the module is too long for passes that take quadratic time.
    pub(super) long: bool,
}

/// How to optimize a module. `linked` says that it has functions to inline.
pub(super) fn choose(module: LLVMModuleRef, linked: bool) -> Pipeline {
    let Code { length, packable } = survey(module);
    let passes = if length > VERY_LONG && !linked { SHORT_PIPELINE } else { c"default<O3>" };
    Pipeline { passes, pack: packable, long: length > LONG }
}

/// The input of the decision.
struct Code {
    /// How many instructions the module has.
    length: usize,
    /// Whether it computes with 16-bit values. Only they have instructions for pairs; in other code the search for pairs
    /// takes a third of `O3` and finds nothing.
    packable: bool,
}

fn survey(module: LLVMModuleRef) -> Code {
    let mut code = Code { length: 0, packable: false };
    // SAFETY: the caller's module is live.
    unsafe {
        each_instruction(module, |instruction| {
            code.length += 1;
            code.packable |= computes_with_16_bits(instruction);
        });
    }
    code
}

/// Whether the instruction is arithmetic on 16-bit values; conversions come in pairs from lowering.
fn computes_with_16_bits(instruction: LLVMValueRef) -> bool {
    use LLVMOpcode::*;
    // SAFETY: the instruction is live.
    unsafe {
        let arithmetic = matches!(
            LLVMGetInstructionOpcode(instruction),
            LLVMFNeg
                | LLVMFAdd
                | LLVMFSub
                | LLVMFMul
                | LLVMAdd
                | LLVMSub
                | LLVMMul
                | LLVMAnd
                | LLVMOr
                | LLVMXor
                | LLVMCall
        );
        let ty = LLVMTypeOf(instruction);
        arithmetic
            && match LLVMGetTypeKind(ty) {
                LLVMTypeKind::LLVMHalfTypeKind | LLVMTypeKind::LLVMBFloatTypeKind => true,
                LLVMTypeKind::LLVMIntegerTypeKind => LLVMGetIntTypeWidth(ty) == 16,
                _ => false,
            }
    }
}

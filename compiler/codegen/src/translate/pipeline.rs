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

/// The passes of LLVM's `O3` that change kernels, in its order; `$pack` goes where `O3` packs scalars. A kernel is one function
/// that calls nothing, has no stack slots and no loops to vectorize or unroll: the passes for these are left out, and with
/// them repeated ones that found nothing new. With packing everywhere, PTX of the recorded specs (`scripts/same_ptx`) is
/// that of `O3`, in three fifths of its time.
macro_rules! pipeline {
    ($pack:literal) => {
        match CStr::from_bytes_with_nul(
            concat!(
                "function(simplifycfg,early-cse,sccp,instcombine<no-verify-fixpoint>,simplifycfg<switch-range-to-icmp>,",
                "early-cse<memssa>,speculative-execution<only-if-divergent-target>,correlated-propagation,",
                "instcombine<no-verify-fixpoint>,tailcallelim,reassociate,constraint-elimination,",
                "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,licm,",
                "simple-loop-unswitch<nontrivial>),simplifycfg<switch-range-to-icmp>,instcombine<no-verify-fixpoint>,",
                "loop(indvars,loop-deletion),gvn,bdce,instcombine<no-verify-fixpoint>,correlated-propagation,dse,",
                "loop-mssa(licm),",
                $pack,
                "instcombine<no-verify-fixpoint>,instsimplify,div-rem-pairs,simplifycfg<switch-range-to-icmp;",
                "switch-to-arithmetic;hoist-common-insts;hoist-loads-stores-with-cond-faulting;speculate-unpredictables>)\0"
            )
            .as_bytes(),
        ) {
            Ok(text) => text,
            Err(_) => panic!("one NUL, at the end"),
        }
    };
}

const PIPELINE: &CStr = pipeline!("");

const PACKING_PIPELINE: &CStr = pipeline!("slp-vectorizer,");

/// The gains of these on long straight-line code, in a quarter of the time: no loop passes beyond hoisting, no SLP
/// vectorization, whose search is quadratic.
const SHORT_PIPELINE: &CStr =
    c"function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),dse,adce,infer-alignment)";

/// How a module is optimized.
pub(super) struct Pipeline {
    /// The passes in LLVM's text form.
    pub(super) passes: &'static CStr,
    /// Whether the module is too long for passes that take quadratic time.
    pub(super) long: bool,
}

/// How to optimize a module. `linked` says that it has functions to inline.
pub(super) fn choose(module: LLVMModuleRef, linked: bool) -> Pipeline {
    let Code { length, packable } = survey(module);
    let passes = match () {
        () if linked => c"default<O3>",
        () if length > VERY_LONG => SHORT_PIPELINE,
        () if packable => PACKING_PIPELINE,
        () => PIPELINE,
    };
    Pipeline { passes, long: length > LONG }
}

/// The input of the decision.
struct Code {
    /// How many instructions the module has.
    length: usize,
    /// Whether it computes with 16-bit values. Only they have instructions for pairs; in other code the search for pairs
    /// finds nothing.
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

/// Whether the instruction computes with 16-bit values; conversions come in pairs from lowering.
fn computes_with_16_bits(instruction: LLVMValueRef) -> bool {
    use LLVMOpcode::*;
    // SAFETY: the instruction is live, and a comparison has operands.
    unsafe {
        let ty = match LLVMGetInstructionOpcode(instruction) {
            LLVMFNeg | LLVMFAdd | LLVMFSub | LLVMFMul | LLVMAdd | LLVMSub | LLVMMul | LLVMAnd | LLVMOr | LLVMXor
            | LLVMSelect | LLVMCall => LLVMTypeOf(instruction),
            LLVMFCmp | LLVMICmp => LLVMTypeOf(LLVMGetOperand(instruction, 0)),
            _ => return false,
        };
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMHalfTypeKind | LLVMTypeKind::LLVMBFloatTypeKind => true,
            LLVMTypeKind::LLVMIntegerTypeKind => LLVMGetIntTypeWidth(ty) == 16,
            _ => false,
        }
    }
}

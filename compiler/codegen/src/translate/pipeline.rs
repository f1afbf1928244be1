//! Which passes a module gets.
//!
//! Some passes of LLVM compare all accesses of a block with each other. In a kernel whose loop body is thousands of
//! instructions they took nine tenths of a compilation, so that such code goes without them. Where the limits lie
//! depends on the number of instructions alone: the same input gives the same bytes.
#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::{CStr, c_void},
};

use llvm_sys::{
    LLVMOpcode, LLVMTypeKind,
    core::*,
    prelude::{LLVMContextRef, LLVMModuleRef, LLVMValueRef},
};

/// A module with more instructions than this goes without the passes that take quadratic time; see [`GATE`].
const LONG: usize = 2_000;

/// A module with more instructions than this gets the short pipeline, unless it has functions to inline.
const VERY_LONG: usize = 10_000;

/// The gains of `O3` on long straight-line code, in a quarter of the time: no inlining, no loop passes beyond hoisting,
/// no SLP vectorization, whose search is quadratic.
const SHORT_PIPELINE: &CStr =
    c"function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),dse,adce,infer-alignment)";

// The C API of LLVM cannot leave out passes of the back end; this is the C++ function behind `-opt-disable`. It takes an
// `OptPassGate&` that outlives the context.
unsafe extern "C" {
    #[link_name = "_ZN4llvm11LLVMContext14setOptPassGateERNS_11OptPassGateE"]
    fn set_pass_gate(context: LLVMContextRef, gate: *const PassGate);
}

/// An object of a class derived from `llvm::OptPassGate`: a pointer to its virtual functions, in the order of the class
/// declaration.
#[repr(C)]
struct PassGate(&'static PassGateTable);

#[repr(C)]
struct PassGateTable {
    destroy: extern "C" fn(*mut c_void),
    delete: extern "C" fn(*mut c_void),
    should_run: extern "C" fn(*const c_void, *const u8, usize, *const u8, usize) -> bool,
    is_enabled: extern "C" fn(*const c_void) -> bool,
}

/// Keeps straight-line strength reduction and n-ary reassociation out, and the value numbering that would follow the
/// latter and find nothing new. ptxas does their work again.
static GATE: PassGate = PassGate(&PassGateTable {
    destroy: gate_destroy,
    delete: gate_destroy,
    should_run: gate_should_run,
    is_enabled: gate_is_enabled,
});

extern "C" fn gate_destroy(_: *mut c_void) {}

extern "C" fn gate_should_run(_: *const c_void, name: *const u8, length: usize, _: *const u8, _: usize) -> bool {
    if name.is_null() {
        return true;
    }
    // SAFETY: LLVM passes the text of a pass's name.
    let name = unsafe { std::slice::from_raw_parts(name, length) };
    let run = name != b"slsr" && name != b"nary-reassociate" && !(name == b"early-cse" && NOTHING_NEW.get());
    NOTHING_NEW.set(name == b"nary-reassociate");
    run
}

thread_local! {
    /// Whether the last pass was n-ary reassociation, and it changed nothing.
    static NOTHING_NEW: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn gate_is_enabled(_: *const c_void) -> bool {
    true
}

/// How a module is optimized.
pub(super) struct Pipeline {
    /// The passes in LLVM's text form.
    pub(super) passes: &'static CStr,
    /// Whether scalars are packed into vectors.
    pub(super) pack: bool,
}

/// How to optimize a module; passes of the back end that it should go without are taken out of its context. `linked` says
/// that it has functions to inline.
pub(super) fn choose(context: LLVMContextRef, module: LLVMModuleRef, linked: bool) -> Pipeline {
    let Code { length, packable } = survey(module);
    if length > LONG {
        // SAFETY: the caller's context is live and the gate is static.
        unsafe { set_pass_gate(context, &GATE) };
    }
    let passes = if length > VERY_LONG && !linked { SHORT_PIPELINE } else { c"default<O3>" };
    Pipeline { passes, pack: packable }
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
    // SAFETY: the caller's module is live; this walks it by LLVM's own iterators.
    unsafe {
        let mut function = LLVMGetFirstFunction(module);
        while !function.is_null() {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    code.length += 1;
                    code.packable |= computes_with_16_bits(instruction);
                    instruction = LLVMGetNextInstruction(instruction);
                }
                block = LLVMGetNextBasicBlock(block);
            }
            function = LLVMGetNextFunction(function);
        }
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

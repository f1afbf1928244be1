//! Which passes of the back end a module gets.
//!
//! - Long code goes without straight-line strength reduction and n-ary reassociation, which compare all accesses of a block
//!   with each other: in a kernel whose loop body is thousands of instructions they took nine tenths of a compilation.
//!   ptxas does their work again.
//! - Kernels whose threads start copies to shared memory while dots are in flight go without loop strength reduction: it
//!   computes all addresses of a loop's body where the body begins, and ptxas begins these sums there too and ends them
//!   behind the dots. Without it fused MoE in fp8 takes 206 registers instead of 224, and half of the instructions between
//!   the wait for copies and the dots.
//! - Kernels whose dots in flight have a left operand in registers go without the elimination of common machine instructions:
//!   it moves what two blocks compute to the block before both, and so the casts of the operand before the wait for the dot
//!   that still reads their registers.
#![allow(unsafe_code)]

use std::{cell::Cell, ffi::c_void};

use llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef};

use super::walk::{assembly_text, each_instruction};
use crate::emit::{COPY_WAIT, WGMMA, WGMMA_WAIT};

// The C API of LLVM cannot leave out passes of the back end; this is the C++ function behind `-opt-disable`. It takes an
// `OptPassGate&` that outlives the context.
unsafe extern "C" {
    #[link_name = "_ZN4llvm11LLVMContext14setOptPassGateERNS_11OptPassGateE"]
    fn set_pass_gate(context: LLVMContextRef, gate: *const PassGate);
}

/// An object of a class derived from `llvm::OptPassGate`: a pointer to its virtual functions, in the order of the class
/// declaration, and what this one leaves out.
#[repr(C)]
struct PassGate {
    table: &'static PassGateTable,
    /// Passes that take quadratic time.
    quadratic: bool,
    loop_strength_reduction: bool,
    machine_cse: bool,
}

#[repr(C)]
struct PassGateTable {
    destroy: extern "C" fn(*mut c_void),
    delete: extern "C" fn(*mut c_void),
    should_run: extern "C" fn(*const PassGate, *const u8, usize, *const u8, usize) -> bool,
    is_enabled: extern "C" fn(*const PassGate) -> bool,
}

static TABLE: PassGateTable = PassGateTable {
    destroy: gate_destroy,
    delete: gate_destroy,
    should_run: gate_should_run,
    is_enabled: gate_is_enabled,
};

/// A gate for each set of what is left out, by its bits.
static GATES: [PassGate; 8] = [gate(0), gate(1), gate(2), gate(3), gate(4), gate(5), gate(6), gate(7)];

const QUADRATIC: usize = 1;
const LOOP_STRENGTH_REDUCTION: usize = 2;
const MACHINE_CSE: usize = 4;

const fn gate(left_out: usize) -> PassGate {
    PassGate {
        table: &TABLE,
        quadratic: left_out & QUADRATIC != 0,
        loop_strength_reduction: left_out & LOOP_STRENGTH_REDUCTION != 0,
        machine_cse: left_out & MACHINE_CSE != 0,
    }
}

extern "C" fn gate_destroy(_: *mut c_void) {}

extern "C" fn gate_should_run(this: *const PassGate, name: *const u8, length: usize, _: *const u8, _: usize) -> bool {
    if name.is_null() {
        return true;
    }
    // SAFETY: LLVM passes the object that it was given, and the text of a pass's name.
    let (gate, name) = unsafe { (&*this, std::slice::from_raw_parts(name, length)) };
    let left_out = match name {
        b"slsr" | b"nary-reassociate" => gate.quadratic,
        // The value numbering that follows n-ary reassociation finds nothing new without it.
        b"early-cse" => gate.quadratic && NOTHING_NEW.get(),
        b"Loop Strength Reduction" => gate.loop_strength_reduction,
        b"machine-cse" => gate.machine_cse,
        _ => false,
    };
    NOTHING_NEW.set(name == b"nary-reassociate");
    !left_out
}

thread_local! {
    /// Whether the last pass was n-ary reassociation, and it changed nothing.
    static NOTHING_NEW: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn gate_is_enabled(this: *const PassGate) -> bool {
    // SAFETY: LLVM passes the object that it was given.
    let gate = unsafe { &*this };
    gate.quadratic || gate.loop_strength_reduction || gate.machine_cse
}

/// Takes passes of the back end out of the context of an optimized module.
pub(super) fn leave_out(context: LLVMContextRef, module: LLVMModuleRef, long: bool) {
    let Asynchronous { dots, register_dots, copies } = asynchronous(module);
    let sets = [(long, QUADRATIC), (dots && copies, LOOP_STRENGTH_REDUCTION), (dots && register_dots, MACHINE_CSE)];
    let left_out: usize = sets.iter().filter(|(is_so, _)| *is_so).map(|(_, set)| set).sum();
    // SAFETY: the caller's context is live and the gates are static.
    unsafe { set_pass_gate(context, &GATES[left_out]) };
}

/// The asynchronous operations of a module.
#[derive(Default)]
struct Asynchronous {
    /// Dots that are waited for.
    dots: bool,
    /// Dots with a left operand in registers.
    register_dots: bool,
    /// Copies by threads.
    copies: bool,
}

fn asynchronous(module: LLVMModuleRef) -> Asynchronous {
    let mut found = Asynchronous::default();
    // SAFETY: the caller's module is live.
    unsafe {
        each_instruction(module, |instruction| {
            let text = assembly_text(instruction);
            found.dots |= text.contains(WGMMA_WAIT);
            // Accumulators and a list of registers, instead of a descriptor.
            found.register_dots |= text.contains(WGMMA) && text.contains("}, {");
            found.copies |= text.starts_with(COPY_WAIT);
        });
    }
    found
}

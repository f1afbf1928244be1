//! Launches that end early: the limit of operations of a program, and interrupts.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use rtc_ir::interp::{ArgValue, FaultKind, HostMemory, LaunchConfig, RunOptions, run};
use std::sync::atomic::AtomicBool;

/// Stores 64 numbers: four operations on 64 elements, of which each counts twice; the end does not count.
const KERNEL: &str = "kernel @k(%x: ptr<i32> {sig = \"*i32\"}) warps 1 phase tile {
    %i = arange {start = 0, end = 64} : tile<64xi32>
    %p = splat %x : tile<64xptr<i32>>
    %q = addptr %p, %i : tile<64xptr<i32>>
    store %q, %i
    ret
}";

fn launch(programs: u32, options: RunOptions<'_>) -> Result<(), FaultKind> {
    let kernel = rtc_ir::text::parse(KERNEL).unwrap();
    let mut memory = HostMemory::new();
    let x = memory.alloc_uninit("x", 64 * 4);
    let launch = LaunchConfig { grid: [programs, 1, 1], args: vec![ArgValue::Pointer(x)] };
    let verified = rtc_ir::verify(&kernel).expect("it is well-formed");
    run(verified, &mut memory, &launch, &options).map(|_| ()).map_err(|fault| fault.kind)
}

#[test]
fn each_program_has_as_many_operations() {
    assert_eq!(launch(100, RunOptions { max_operations: Some(8), ..RunOptions::default() }), Ok(()));
    let fault = launch(1, RunOptions { max_operations: Some(7), ..RunOptions::default() });
    assert_eq!(fault, Err(FaultKind::OperationLimit(7)));
    assert_eq!(launch(100, RunOptions::default()), Ok(()));
}

#[test]
fn an_interrupt_ends_a_launch() {
    let (raised, not) = (AtomicBool::new(true), AtomicBool::new(false));
    assert_eq!(launch(1, RunOptions { interrupt: Some(&not), ..RunOptions::default() }), Ok(()));
    assert_eq!(
        launch(1, RunOptions { interrupt: Some(&raised), ..RunOptions::default() }),
        Err(FaultKind::Interrupted)
    );
}

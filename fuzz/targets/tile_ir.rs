//! Tile IR text: reading, printing, verifying, running, passes and codegen of whatever text never panic.
//!
//! What counts as a finding: a panic, an abort of LLVM, a kernel that the verifier accepts and a later stage blames the
//! compiler for, a printed text that does not read back, a run past libFuzzer's time limit.

#![no_main]

// Named before libFuzzer, so that it is linked after it: one of MLIR's libraries holds a `main` too.
extern crate rtc_codegen;

#[path = "../../compiler/ir/tests/mutate/mod.rs"]
mod mutate;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mutate::{Random, mutate};
use rtc_abi::Target;
use rtc_codegen::{CodegenError, CodegenOptions};
use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, Storage, run};
use rtc_ir::text::{parse, print};
use rtc_ir::{Elem, Kernel, Phase, Verified, print_errors, verify};
use rtc_passes::{PassContext, PassError};
use rtc_source::SourceMap;

fuzz_target!(|text: &str| {
    let Ok(mut kernel) = parse(text) else { return };
    let printed = print(&kernel);
    let again = parse(&printed).unwrap_or_else(|e| panic!("what was printed is not read: {e}\n{printed}"));
    assert_eq!(print(&again), printed, "printing twice differs");
    match verify(&kernel) {
        Ok(verified) => execute(verified),
        Err(errors) => {
            let _ = print_errors(&kernel, &errors);
            return;
        }
    }
    let target = Target::named(if text.len() % 2 == 0 { "sm_90a" } else { "sm_80" }).expect("a target");
    if !passes(&mut kernel, target) {
        return;
    }
    let verified = verify(&kernel).unwrap_or_else(|errors| panic!("{}", print_errors(&kernel, &errors)));
    if kernel.phase != Phase::Scheduled {
        return;
    }
    match rtc_codegen::compile(verified, &SourceMap::new(), target, CodegenOptions::default()) {
        Err(error @ (CodegenError::Lowering { .. } | CodegenError::Mlir { .. } | CodegenError::Llvm { .. })) => {
            panic!("codegen blames the compiler: {error}\n{}", print(&kernel))
        }
        Err(_) | Ok(_) => {}
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random(u64::from(seed));
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    if text.is_empty() || random.below(3) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let changed = mutate(&mut random, &text, std::slice::from_ref(&text));
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed.as_bytes()[..length]);
    length
});

/// Runs the passes that the kernel still needs; false where one refuses it for a reason.
fn passes(kernel: &mut Kernel, target: &'static Target) -> bool {
    let cx = PassContext {
        target,
        max_instructions: 50_000,
        structure: rtc_abi::Structure::Auto,
        overlap_launches: true,
        plan: Default::default(),
        instrument: 0,
    };
    for pass in rtc_passes::PASSES {
        if pass.needs != kernel.phase {
            continue;
        }
        match (pass.run)(kernel, &cx) {
            Ok(()) => kernel.phase = pass.leaves,
            Err(PassError::Diagnostic(_)) => return false,
            Err(error) => panic!("pass `{}`: {error}\n{}", pass.name, print(kernel)),
        }
        if let Err(errors) = verify(kernel) {
            panic!("after pass `{}`: {}", pass.name, print_errors(kernel, &errors));
        }
    }
    true
}

fn execute(kernel: Verified<'_>) {
    let mut memory = HostMemory::new();
    let mut args = Vec::new();
    for param in &kernel.kernel().params {
        args.push(match kernel.kernel().value_type(param.value).elem() {
            Some(Elem::Ptr(_)) => ArgValue::Pointer(memory.alloc(param.name.clone(), vec![0; 1024])),
            _ => ArgValue::Bits(3),
        });
    }
    let launch = LaunchConfig { grid: [1, 1, 1], args };
    let options = RunOptions { max_steps: 20_000, storage: Storage::Tiles, ..RunOptions::default() };
    // Faults of the kernel are its own.
    let _ = run(kernel, &mut memory, &launch, &options);
}

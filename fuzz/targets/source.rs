//! Source text to PTX: whatever the text, each of its jit functions compiles or is refused with a reason.
//!
//! The first line may say `# signature: ...`; for parameters that it does not bind, types follow from the names. What
//! counts as a finding: a panic, an abort of LLVM, a failure that blames the compiler, a run past libFuzzer's time limit.

#![no_main]

// Named before libFuzzer, so that it is linked after it: one of MLIR's libraries holds a `main` too.
extern crate rtc_compiler;

#[path = "../../compiler/sema/tests/mutate/mod.rs"]
mod mutate;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mutate::{Random, mutant, tokens};
use rtc_compiler::{ArgKind, ArgSpec, ConstValue, Failure, KernelInfo, LaunchOptions, Program, Silent, Source};
use rtc_compiler::{Signature, Specialization, ValueType};

fuzz_target!(|text: &str| {
    let program = Program::parse(&[Source::new("fuzz.rt", text)]);
    for diagnostic in program.diagnostics() {
        let _ = rtc_source::render(program.sources(), diagnostic, false);
    }
    let arch = if text.len() % 2 == 0 { "sm_90a" } else { "sm_80" };
    for kernel in program.kernels().iter().take(2) {
        let specialization = Specialization {
            kernel: kernel.name.clone(),
            args: arguments(text, kernel),
            options: LaunchOptions { max_instructions: 50_000, ..LaunchOptions::default() },
        };
        match rtc_compiler::compile(&program, &specialization, arch, String::new(), &mut Silent) {
            Err(Failure::Internal { message, stage, ir }) => {
                panic!("the compiler blames itself: {message} in {stage}\n{}", ir.unwrap_or_default())
            }
            Err(Failure::Diagnostics(findings)) => {
                assert!(!findings.is_empty(), "refused without a reason");
                for diagnostic in &findings {
                    let _ = rtc_source::render(program.sources(), diagnostic, false);
                }
            }
            Err(Failure::Request { .. }) | Ok(_) => {}
        }
    }
});

// Two of three changes go by words; the bytes' own changes join texts of the corpus.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random(u64::from(seed) << 1 | 1);
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    if text.is_empty() || random.below(3) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let changed = mutant(&tokens(&text), &mut random);
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed.as_bytes()[..length]);
    length
});

fn arguments(text: &str, kernel: &KernelInfo) -> Vec<ArgSpec> {
    let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
    let line = text.lines().next().and_then(|line| line.strip_prefix("# signature: "));
    if let Some(Ok(args)) = line.map(|line| Signature::parse(line).and_then(|s| s.bind(&names))) {
        return args;
    }
    let value = |ty: &str| ArgKind::Value { ty: ValueType::parse(ty).expect("a type"), divisible_by: None };
    let free = kernel.params.iter().filter(|p| !p.has_default);
    free.map(|param| {
        let name = param.name.as_str();
        let kind = match name {
            _ if param.is_constexpr => ArgKind::Constexpr(ConstValue::Int(16)),
            _ if name.contains("ptr") || name.len() == 1 => value("*fp16"),
            _ if name.contains("eps") => value("fp32"),
            _ => value("i32"),
        };
        ArgSpec { name: name.into(), kind }
    })
    .collect()
}

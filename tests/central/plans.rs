//! Kernels with dots in loops under plans drawn at random: whatever the passes decide about the schedule of a kernel, it
//! computes the same. A pair of a kernel and a plan goes through all passes with the verifier after each; the finished kernel
//! is interpreted in the registers of its threads, and its PTX executed in the emulator, with warps and copies in order and
//! in an order at random.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use rtc_abi::{Feature, Plan, ResultStores, Structure, Target, WarpSpecialization};
use rtc_codegen::CodegenOptions;
use rtc_emulator as emulator;
use rtc_ir::interp::Storage;
use rtc_ir::text::print;
use rtc_ir::{Kernel, Op, OpKind, print_errors, regions, verify};
use rtc_passes::{PassContext, PassError, run_through};
use rtc_source::SourceMap;

use crate::case::Case;
use crate::data::Random;
use crate::judge::{Run, compare, dump, emulate, interpret};
use crate::planted;

/// Pairs of kernels and plans that were checked so far, and kernels that came of them.
pub static CHECKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// The plans of each kernel and target.
const USUAL: u64 = 1;

/// Plans that are never the best: one stage, and more than memory holds.
const BAD: [&str; 4] = ["slots=1 ring=1", "slots=16 ahead=16 ring=16", "slots=16 ahead=1", "slots=2 ahead=2 ring=1"];

/// How many plans are asked for; then nothing else is checked.
pub fn asked() -> Option<u64> {
    std::env::var("RTC_CENTRAL_PLANS").ok()?.parse().ok()
}

/// Draws plans for a kernel, and compares with the interpreter's outcome of the kernel as it is.
pub fn check(
    case: &Case,
    reference: Option<&Run>,
    kernel: &Kernel,
    target: &'static Target,
    structures: &[Structure],
    sources: &SourceMap,
) -> Result<(), String> {
    let is_wrong = case.fault.is_some() || case.emulator_fault.is_some() || case.marks.is_some();
    let Some(reference) = reference.filter(|_| !is_wrong && has_looped_dots(kernel)) else { return Ok(()) };
    let mut hasher = DefaultHasher::new();
    (print(kernel), target.name, kernel.options.num_warps).hash(&mut hasher);
    let mut random = Random::new(hasher.finish());
    let mut seen = HashSet::new();
    for _ in 0..asked().unwrap_or(USUAL) {
        let structure = *random.pick(structures);
        let plan = match random.below(5) {
            0 => random.pick(&BAD).parse().map_err(|e: rtc_abi::InvalidPlan| e.to_string())?,
            _ => Plan::drawn(|choices| random.below(choices as usize) as u32),
        };
        let cx =
            PassContext { target, max_instructions: 50_000, structure, overlap_launches: true, plan, instrument: 0 };
        let seed = random.next();
        one(case, reference, kernel.clone(), &cx, sources, &mut seen, seed)
            .map_err(|e| format!("structure {structure}, plan `{plan}`: {e}"))?;
        CHECKED[0].fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The structures that a kernel is checked in. Most are the same for it, and that is seen after the passes.
pub fn structures(kernel: &Kernel, target: &Target) -> Vec<Structure> {
    let mut structures = vec![Structure::Auto];
    let product = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { .. });
    if !rtc_ir::walk(kernel).iter().any(product) {
        let reduces = |op: &Op| matches!(kernel.kind(*op), OpKind::DescReduce { .. } | OpKind::AtomicRmw { .. });
        let copies = target.has(Feature::Tma) && rtc_ir::walk(kernel).iter().any(reduces);
        structures.extend(copies.then_some(Structure::Plain));
        return structures;
    }
    structures.extend([Structure::Pipelined, Structure::Plain]);
    if target.has(Feature::Wgmma) {
        for blocks in 1..=3 {
            let stores = ResultStores::ALL.map(Some);
            structures.extend(
                stores.map(|stores| Structure::Specialized(WarpSpecialization { blocks: Some(blocks), stores })),
            );
        }
    }
    structures
}

fn has_looped_dots(kernel: &Kernel) -> bool {
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { .. });
    rtc_ir::walk(kernel).iter().any(|op| is_dot(op) && regions::loop_around(kernel, *op).is_some())
}

fn one(
    case: &Case,
    reference: &Run,
    mut kernel: Kernel,
    cx: &PassContext,
    sources: &SourceMap,
    seen: &mut HashSet<String>,
    seed: u64,
) -> Result<(), String> {
    let mut observer = |pass: &'static str, kernel: &Kernel| match verify(kernel) {
        Ok(_) => Ok(()),
        Err(errors) => Err(PassError::Internal(format!("after `{pass}`: {}", print_errors(kernel, &errors)))),
    };
    match run_through(&mut kernel, cx, &mut observer) {
        // A plan may ask for more shared memory outside of rings than there is.
        Err(PassError::Diagnostic(_)) => return Ok(()),
        done => done.map_err(|e| e.to_string())?,
    }
    let text = print(&kernel);
    if !seen.insert(text.clone()) {
        return Ok(());
    }
    CHECKED[1].fetch_add(1, Ordering::Relaxed);
    dump(&format!("{}.{}.{}.tir", kernel.name, cx.target.name, cx.plan), &text);
    let verified = verify(&kernel).map_err(|e| print_errors(&kernel, &e))?;
    let found = interpret(case, verified, Storage::Registers, Some(seed));
    compare(case, reference, &found, true).map_err(|e| format!("the interpreter, seed {seed}: {e}"))?;
    let output = rtc_codegen::compile(verified, sources, cx.target, CodegenOptions::default())
        .map_err(|e| format!("codegen: {e}\n{text}"))?;
    let program = emulator::Program::load(&output.ptx).map_err(|e| format!("the emulator: {e}\n{}", output.ptx))?;
    for seed in [None, Some(seed)] {
        let (found, reports) = emulate(case, &kernel, cx.target, &program, seed)?;
        planted::allowed(&case.reports, &reports)?;
        compare(case, reference, &found, false).map_err(|e| format!("the emulator, seed {seed:?}: {e}"))?;
    }
    Ok(())
}

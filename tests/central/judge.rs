//! Runs a case through all stages and compares.

use std::collections::HashSet;

use rtc_abi::{Plan, Structure, Target};
use rtc_codegen::CodegenOptions;
use rtc_emulator as emulator;
use rtc_emulator::sanitize::{Checks, Report};
use rtc_ir::effects::When;
use rtc_ir::interp::{self, ArgValue, HostMemory, RunOptions, Schedule, Storage};
use rtc_ir::text::{parse, print};
use rtc_ir::{Elem, Hidden, Kernel, Literal, Op, Phase, Scalar, Type, Verified, decode_float, print_errors, verify};
use rtc_passes::{PassContext, PassError, run_through};
use rtc_source::SourceMap;

use crate::assembler;
use crate::case::{Argument, Case, POISON, Tolerance};
use crate::covered;
use crate::data::elements;
use crate::export;
use crate::inputs::{Further, Inputs};
use crate::plans;
use crate::planted;
use crate::tensor::Tensor;

/// The targets that every case is compiled for.
pub const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

/// Most steps or warp instructions of a launch: a loop that does not end is a failure, not a long wait.
const BUDGET: u64 = 50_000_000;

/// The same of a planted mistake.
const PLANTED_BUDGET: u64 = 200_000;

/// The outcome of a launch: the bytes of all tensors, in the order of the arguments, and the output, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    tensors: Vec<Vec<u8>>,
    printed: Vec<String>,
}

/// The result of a stage: a fault as text counts as a result if the case expects one.
pub type Run = Result<Outcome, String>;

/// Checks a case for every number of warps and every target.
pub fn check(case: &Case) -> Result<(), String> {
    let kernel = parse(&case.text).map_err(|e| e.to_string())?;
    let make = |_: &str, warps: Option<u32>| {
        let mut kernel = kernel.clone();
        kernel.options.num_warps = warps.unwrap_or(kernel.options.num_warps);
        Ok(kernel)
    };
    check_made(case, &make, &SourceMap::new(), &mut || None)
}

/// Makes the kernel for a target and a number of warps.
pub type Make<'a> = &'a dyn Fn(&str, Option<u32>) -> Result<Kernel, String>;

/// Checks a case whose kernel is made for each target.
pub fn check_made(case: &Case, make: Make<'_>, sources: &SourceMap, further: Further<'_>) -> Result<(), String> {
    let warps = if case.warps.is_empty() { vec![None] } else { case.warps.iter().copied().map(Some).collect() };
    for warps in warps {
        check_targets(case, warps, make, sources, further).map_err(|e| match warps {
            Some(warps) => format!("{warps} warps, {e}"),
            None => e,
        })?;
    }
    Ok(())
}

fn check_targets(
    case: &Case,
    warps: Option<u32>,
    make: Make<'_>,
    sources: &SourceMap,
    further: Further<'_>,
) -> Result<(), String> {
    // Most kernels are the same for all targets up to a late pass; one look at each text is enough.
    let mut seen: HashSet<String> = HashSet::new();
    let mut reference: Option<(String, Run)> = None;
    let mut inputs = Inputs::default();
    let only: Vec<&str> = case.only.iter().map(String::as_str).collect();
    for name in if only.is_empty() { TARGETS.to_vec() } else { only } {
        let target = Target::named(name).map_err(|e| e.to_string())?;
        let kernel = make(name, warps).map_err(|e| format!("{name}, {e}"))?;
        if let Some(wanted) = &case.refused {
            let errors = verify(&kernel).err().map(|errors| print_errors(&kernel, &errors)).unwrap_or_default();
            return if errors.contains(wanted) {
                Ok(())
            } else {
                Err(format!("not refused with `{wanted}`:\n{errors}"))
            };
        }
        let text = print(&kernel);
        if case.interpreted && reference.as_ref().is_none_or(|(t, _)| *t != text) {
            let verified = verify(&kernel).map_err(|e| print_errors(&kernel, &e))?;
            let outcome = interpret(case, verified, Storage::Tiles, None);
            expected(case, &outcome, true).map_err(|e| format!("the interpreter: {e}"))?;
            if export::is_asked() {
                for (case, run) in std::iter::once(case)
                    .map(|case| (case, outcome.clone()))
                    .chain(case.more.iter().map(|other| (other, interpret(other, verified, Storage::Tiles, None))))
                {
                    export::results(case, run.as_ref().map_or(&[], |outcome| &outcome.tensors));
                }
            }
            reference = Some((text.clone(), outcome));
        }
        inputs.source(&kernel);
        if !seen.contains(&text) {
            reads_back(&text).map_err(|e| format!("{name}, {e}"))?;
            seen.insert(text);
        }
        let reference = reference.as_ref().map(|(_, outcome)| outcome);
        let mut checks = Checked { case, reference, seen: &mut seen, sources, inputs: &mut inputs };
        checks.target(kernel, target).map_err(|e| format!("{name}, {e}"))?;
    }
    inputs.check(case, further)
}

/// Whether a printed kernel is parsed as the same kernel.
fn reads_back(text: &str) -> Result<(), String> {
    let again = parse(text).map_err(|e| format!("the text does not read back: {e}\n{text}"))?;
    let printed = print(&again);
    if printed == text { Ok(()) } else { Err(format!("the text is not a fixed point:\n{text}\n{printed}")) }
}

/// The checks, and the observations.
struct Checked<'c> {
    case: &'c Case,
    /// The interpreter's outcome for the first inputs.
    reference: Option<&'c Run>,
    /// Texts that were read back and interpreted.
    seen: &'c mut HashSet<String>,
    sources: &'c SourceMap,
    inputs: &'c mut Inputs,
}

impl Checked<'_> {
    /// Checks the kernel for a target.
    fn target(&mut self, kernel: Kernel, target: &'static Target) -> Result<(), String> {
        let mut made = HashSet::new();
        let mut structures = plans::structures(&kernel, target);
        if let Some(sample) = self.case.sample {
            // The one that the compiler chooses, and two others.
            let others = structures.len() as u64 - 1;
            let chosen = |i: usize| i == 0 || (i as u64 + 2 * sample) % others.max(1) < 2;
            structures = structures.into_iter().enumerate().filter(|(i, _)| chosen(*i)).map(|(_, s)| s).collect();
        }
        for structure in structures.iter().copied().filter(|_| plans::asked().is_none()) {
            let plan = Plan::default();
            let cx = PassContext {
                target,
                max_instructions: 50_000,
                structure,
                overlap_launches: true,
                plan,
                instrument: 0,
            };
            self.passes(kernel.clone(), cx, &mut made)
                .map_err(|e| if structure == Structure::Auto { e } else { format!("structure {structure}, {e}") })?;
        }
        plans::check(self.case, self.reference, &kernel, target, &structures, self.sources)
    }

    /// Checks the kernel after each pass, and its PTX if `made` has no such kernel yet.
    fn passes(&mut self, mut kernel: Kernel, cx: PassContext, made: &mut HashSet<String>) -> Result<(), String> {
        let Checked { case, reference, .. } = *self;
        let (target, seen) = (cx.target, &mut *self.seen);
        let mut observer = |pass: &'static str, kernel: &Kernel| {
            let text = print(kernel);
            let wrong = |message: String| PassError::Internal(format!("after `{pass}`: {message}"));
            let verified = verify(kernel).map_err(|e| wrong(print_errors(kernel, &e)))?;
            // Most passes leave most kernels as they are.
            if seen.contains(&text) {
                return Ok(());
            }
            reads_back(&text).map_err(wrong)?;
            seen.insert(text);
            let Some(reference) = reference else { return Ok(()) };
            for storage in [Storage::Tiles, Storage::Registers] {
                if storage == Storage::Registers && kernel.phase == Phase::Tile {
                    continue;
                }
                // In another order a planted mistake may first show in another place.
                let seeds = seeds(kernel).into_iter().filter(|seed| seed.is_none() || case.fault.is_none());
                for seed in seeds {
                    let found = interpret(case, verified, storage, seed);
                    compare(case, reference, &found, true).map_err(|e| wrong(format!("{storage:?}, {seed:?}: {e}")))?;
                }
            }
            Ok(())
        };
        run_through(&mut kernel, &cx, &mut observer).map_err(|e| e.to_string())?;
        if let Some(name) = &case.removed {
            planted::without(case, &mut kernel, name)?;
        }
        let text = print(&kernel);
        dump(&format!("{}.{}.tir", kernel.name, target.name), &text);
        if !made.insert(text) {
            return Ok(());
        }
        let verified = verify(&kernel).map_err(|e| print_errors(&kernel, &e))?;
        let output = rtc_codegen::compile(verified, self.sources, target, CodegenOptions::default())
            .map_err(|e| format!("codegen: {e}\n{}", print(&kernel)))?;
        dump(&format!("{}.{}.ptx", kernel.name, target.name), &output.ptx);
        covered::check(&output.ptx)?;
        // The assembler is slow: it sees each kernel once for each target.
        if case.warps.last().is_none_or(|most| *most == kernel.options.num_warps) {
            // Assembler warnings about a planted bug do not matter; and dots do not overlap with calls.
            let calls = output.ptx.contains("call.uni");
            // Only the compiler's own choices must not spill.
            let may_spill = case.may_spill || !matches!(cx.structure, Structure::Auto | Structure::Pipelined);
            assembler::check(&output.ptx, target, may_spill, case.fault.is_some() || calls)?;
        }
        if export::is_asked() && (case.sample.is_some() || case.marks.is_some()) {
            export::form(exported(case, &kernel, &cx, &output.ptx)?);
        }
        let program = emulator::Program::load(&output.ptx).map_err(|e| format!("the emulator: {e}\n{}", output.ptx))?;
        for seed in seeds(&kernel) {
            // The checks do not change the results; after a finding, a launch continues.
            let (found, reports) = emulate(case, &kernel, target, &program, seed)?;
            if let Some(marks) = &case.marks {
                return planted::compare(marks, &reports);
            }
            if case.fault.is_none() && case.emulator_fault.is_none() {
                planted::allowed(&case.reports, &reports)?;
            }
            // If the sanitizer reports a bug without ending the launch, the first report is compared with the fault.
            let found = match reports.first() {
                Some(report) if case.emulator_fault.is_some() && found.is_ok() => {
                    Err(format!("fault: {}", report.message))
                }
                _ => found,
            };
            let wrong = |e: String| match seed {
                None => format!("the emulator: {e}"),
                Some(seed) => format!("the emulator, seed {seed}: {e}"),
            };
            expected(case, &found, false).map_err(wrong)?;
            if let Some(reference) = reference {
                compare(case, reference, &found, false).map_err(wrong)?;
            }
        }
        self.inputs.form(kernel, target, program);
        Ok(())
    }
}

/// The schedules of warps and copies: in the order of their numbers, and some at random if partitions or asynchronous
/// operations run at the same time. The results must not depend on it.
fn seeds(kernel: &Kernel) -> Vec<Option<u64>> {
    let is_async = |op: &Op| kernel.effects(*op).any(|(effect, _)| effect.when == When::Async);
    let at_once = kernel.specialization().is_some() || rtc_ir::walk(kernel).iter().any(is_async);
    std::iter::once(None).chain((0..if at_once { 4 } else { 0 }).map(Some)).collect()
}

/// The value of a parameter, or the index of its tensor.
fn argument<'c>(case: &'c Case, name: &str) -> Result<&'c Argument, String> {
    let found = case.args.iter().find(|(n, _)| n == name);
    found.map(|(_, arg)| arg).ok_or_else(|| format!("no argument `{name}`"))
}

fn scalar_of(kernel: &Kernel, param: &rtc_ir::Param) -> Scalar {
    kernel.value_type(param.value).elem().and_then(Elem::num).unwrap_or(Scalar::I64)
}

/// The value of a parameter.
enum Passed {
    Bits(u64),
    Tensor(Tensor),
}

/// The value of a parameter, from the header or, if it is hidden, as a launch computes it; `base_of` returns the
/// tensors' addresses.
fn passed(
    case: &Case,
    kernel: &Kernel,
    param: &rtc_ir::Param,
    base_of: &dyn Fn(&str) -> u64,
) -> Result<Passed, String> {
    match &param.hidden {
        Some(Hidden::Grid(axis)) => return Ok(Passed::Bits(case.grid[*axis as usize].into())),
        Some(Hidden::TensorMap(map)) => {
            let value = |name: &str| match argument(case, name) {
                Ok(Argument::Number(Literal::Int(number))) => Some(*number),
                _ => None,
            };
            return Tensor::made(kernel, param, map, base_of(&map.base), &value).map(Passed::Tensor);
        }
        None => {}
    }
    if let Type::Desc(_) = kernel.value_type(param.value)
        && let Some(tensor) = described(case, kernel, param, base_of)?
    {
        return Ok(Passed::Tensor(tensor));
    }
    Ok(match argument(case, &param.name)? {
        Argument::Number(literal) => Passed::Bits(literal.bits(scalar_of(kernel, param))),
        Argument::Desc { of, shape } => Passed::Tensor(Tensor::given(kernel, param, base_of(of), shape)?),
        Argument::Tensor { .. } => Passed::Bits(base_of(&param.name)),
    })
}

/// The tensor of a descriptor that the host makes, if the case has its parts: the parameter is `NAME` or `NAME.map.N`.
fn described(
    case: &Case,
    kernel: &Kernel,
    param: &rtc_ir::Param,
    base_of: &dyn Fn(&str) -> u64,
) -> Result<Option<Tensor>, String> {
    let name = param.name.split_once(".map.").map_or(&*param.name, |(name, _)| name);
    let base = format!("{name}.base");
    if argument(case, &base).is_err() {
        return Ok(None);
    }
    let Type::Desc(ty) = kernel.value_type(param.value) else { return Ok(None) };
    let number = |part: String| match argument(case, &format!("{name}.{part}"))? {
        Argument::Number(Literal::Int(number)) => Ok(*number),
        _ => Err(format!("`{name}.{part}` is no number")),
    };
    let all = |part: &str| (0..ty.shape.rank()).map(|axis| number(format!("{part}.{axis}"))).collect();
    let (shape, strides): (Result<Vec<_>, String>, Result<Vec<_>, String>) = (all("shape"), all("strides"));
    let pads_nan = number("padding".into())? != 0;
    Tensor::of_descriptor(kernel, param, base_of(&base), (&shape?, &strides?), pads_nan).map(Some)
}

/// The number of SMs for a persistent kernel.
const SMS: u32 = 2;

/// The blocks that are started for the programs of a case.
fn blocks(case: &Case, kernel: &Kernel) -> [u32; 3] {
    let programs = case.grid.iter().map(|size| u64::from(*size)).product();
    kernel.persistent.map_or(case.grid, |p| [p.blocks(programs, SMS) as u32, 1, 1])
}

/// The interpreter's input for a case: memory, its allocations with their names, the launch.
type Arranged<'c> = (HostMemory, Vec<(&'c String, u64)>, interp::LaunchConfig);

/// Allocates the tensors of a case.
fn arranged<'c>(case: &'c Case, kernel: &Kernel) -> Result<Arranged<'c>, String> {
    let mut memory = HostMemory::new();
    let mut bases = Vec::new();
    for (name, arg) in &case.args {
        match arg {
            Argument::Tensor { bytes, written: true, .. } => bases.push((name, memory.alloc(name, bytes.clone()))),
            Argument::Tensor { bytes, .. } => bases.push((name, memory.alloc_uninit(name, bytes.len()))),
            Argument::Number(_) | Argument::Desc { .. } => {}
        }
    }
    let mut launch = interp::LaunchConfig { grid: blocks(case, kernel), args: Vec::new() };
    let base_of = |of: &str| bases.iter().find(|(n, _)| *n == of).map(|(_, base)| *base).unwrap_or_default();
    for param in &kernel.params {
        launch.args.push(match passed(case, kernel, param, &base_of)? {
            Passed::Bits(bits) => ArgValue::Bits(bits),
            Passed::Tensor(tensor) => tensor.described(),
        });
    }
    Ok((memory, bases, launch))
}

/// The open results that a case leans on.
pub fn leaning(case: &Case, kernel: &Kernel) -> Result<Vec<interp::Finding>, String> {
    let verified = verify(kernel).map_err(|errors| print_errors(kernel, &errors))?;
    let (mut memory, _, launch) = arranged(case, kernel)?;
    let options = RunOptions { max_steps: BUDGET, ..RunOptions::default() };
    interp::leaning(verified, &mut memory, &launch, &options).map_err(|e| format!("fault: {e}"))
}

pub fn interpret(case: &Case, verified: Verified<'_>, storage: Storage, seed: Option<u64>) -> Run {
    let (mut memory, bases, launch) = arranged(case, verified.kernel())?;
    let options = RunOptions {
        max_steps: BUDGET,
        storage,
        schedule: seed.map_or(Schedule::RoundRobin, Schedule::Random),
        ..RunOptions::default()
    };
    let report = interp::run(verified, &mut memory, &launch, &options).map_err(|e| format!("fault: {e}"))?;
    for finding in &report.findings {
        let text = finding.to_string();
        if !case.findings.iter().any(|wanted| text.contains(wanted)) {
            return Err(format!("finding: {text}"));
        }
    }
    let tensors = bases.iter().map(|(_, base)| memory.bytes(*base).unwrap_or_default().to_vec()).collect();
    Ok(Outcome { tensors, printed: sorted(&report.printed) })
}

/// The outer error is a failure of the test, the inner one a fault of the launch. With it comes what the sanitizer found,
/// which looks on where warps run in order.
pub fn emulate(
    case: &Case,
    kernel: &Kernel,
    target: &Target,
    program: &emulator::Program,
    seed: Option<u64>,
) -> Result<(Run, Vec<Report>), String> {
    let mut memory = emulator::Memory::poisoned(POISON);
    memory.track();
    let mut bases = Vec::new();
    for (name, arg) in &case.args {
        if let Argument::Tensor { bytes, written, scalar } = arg {
            let base = memory.alloc(bytes.len(), 256, name);
            if *written {
                memory.write(base, bytes).map_err(|e| e.to_string())?;
            }
            for (_, sizes, strides) in case.shapes.iter().filter(|(n, ..)| n == name) {
                if !memory.set_shape(base, sizes, strides, scalar.bytes().into()) {
                    return Err(format!("the shape of `{name}` does not fit it"));
                }
            }
            bases.push((name, base, bytes.len()));
        }
    }
    let metadata = kernel.metadata(target);
    let mut params = vec![0; metadata.params_size() as usize];
    let base_of = |of: &str| bases.iter().find(|(n, ..)| *n == of).map(|(_, base, _)| *base).unwrap_or_default();
    for (param, placed) in kernel.params.iter().zip(&metadata.params) {
        let bytes = match passed(case, kernel, param, &base_of)? {
            Passed::Bits(bits) => bits.to_le_bytes()[..placed.size as usize].to_vec(),
            Passed::Tensor(tensor) => tensor.encoded()?.to_vec(),
        };
        params[placed.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    if let Some(offset) = metadata.scratch_offset() {
        let blocks: u64 = blocks(case, kernel).into_iter().chain(metadata.cluster).map(u64::from).product();
        let scratch = memory.alloc((blocks * metadata.global_scratch_bytes) as usize, 256, "scratch");
        params.resize(offset as usize, 0);
        params.extend(scratch.to_le_bytes());
    }
    let [x, y, z] = blocks(case, kernel);
    let config = emulator::LaunchConfig {
        grid: [x * metadata.cluster[0], y, z],
        cluster: metadata.cluster,
        block: [metadata.threads_per_block, 1, 1],
        shared_bytes: metadata.shared_bytes,
        params: &params,
        budget: Some(if case.marks.is_some() { PLANTED_BUDGET } else { BUDGET }),
        schedule: seed.map_or(emulator::Schedule::InOrder, emulator::Schedule::Random),
        sanitize: if seed.is_none() { Checks::ALL } else { Checks::NONE },
        ..emulator::LaunchConfig::new(&metadata.symbol)
    };
    let report = match program.launch(&mut memory, &config) {
        Ok(report) => report,
        Err(mut fault) => {
            let reports = std::mem::take(&mut fault.reports);
            let all = reports.into_iter().chain(fault.report()).collect();
            return Ok((Err(format!("fault: {fault}")), all));
        }
    };
    let read = |(_, base, size): &(&String, u64, usize)| memory.read(*base, *size).map(<[u8]>::to_vec);
    let tensors = bases.iter().map(read).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let reports = report.findings.iter().map(emulator::Finding::report).chain(report.reports).collect();
    Ok((Ok(Outcome { tensors, printed: sorted(&report.printed) }), reports))
}

/// A form of a kernel for a GPU: the launch, and the arguments of each set of inputs. An address is the number of the
/// tensor, from 1 on, above 40 bits of an offset in bytes.
fn exported(case: &Case, kernel: &Kernel, cx: &PassContext, ptx: &str) -> Result<serde_json::Value, String> {
    let metadata = kernel.metadata(cx.target);
    let mut sets = Vec::new();
    for case in std::iter::once(case).chain(&case.more) {
        let tensors = case.args.iter().filter(|(_, arg)| matches!(arg, Argument::Tensor { .. }));
        let names: Vec<&String> = tensors.map(|(name, _)| name).collect();
        let base_of = |of: &str| names.iter().position(|n| *n == of).map_or(0, |at| (at as u64 + 1) << 40);
        let mut values = Vec::new();
        for param in &kernel.params {
            values.push(match passed(case, kernel, param, &base_of)? {
                Passed::Bits(bits) => serde_json::json!(bits),
                Passed::Tensor(tensor) => tensor.fields()?,
            });
        }
        sets.push(values);
    }
    let params: Vec<_> = metadata.params.iter().map(|p| serde_json::json!([p.offset, p.size])).collect();
    Ok(serde_json::json!({
        "structure": cx.structure.to_string(), "target": cx.target.name, "symbol": metadata.symbol,
        "threads": metadata.threads_per_block, "shared": metadata.shared_bytes, "grid": blocks(case, kernel),
        "bytes": metadata.params_size(), "params": params, "sets": sets, "ptx": ptx,
        "scratch": metadata.global_scratch_bytes,
    }))
}

fn sorted(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = printed.lines().map(str::to_string).collect();
    lines.sort_unstable();
    lines
}

/// The expected results in the header.
pub fn expected(case: &Case, run: &Run, exact: bool) -> Result<(), String> {
    let fault = case.emulator_fault.as_ref().filter(|_| !exact).or(case.fault.as_ref());
    let outcome = match (run, fault) {
        (Ok(outcome), None) => outcome,
        (Err(found), Some(wanted))
            if wanted.split(" | ").any(|words| found.to_lowercase().contains(&words.to_lowercase())) =>
        {
            return Ok(());
        }
        (Err(found), _) => return Err(found.clone()),
        (Ok(_), Some(wanted)) => return Err(format!("no fault with `{wanted}`")),
    };
    if !case.prints.is_empty() && sorted(&case.prints) != outcome.printed {
        return Err(format!("printed:\n{}", outcome.printed.join("\n")));
    }
    let tensors: Vec<&String> =
        case.args.iter().filter(|(_, a)| matches!(a, Argument::Tensor { .. })).map(|(n, _)| n).collect();
    for (name, scalar, wanted) in &case.expects {
        let index = tensors.iter().position(|n| *n == name).ok_or_else(|| format!("no tensor `{name}`"))?;
        let tolerance = if exact && !case.values_within { None } else { case.tolerance(name) };
        same(*scalar, wanted, &outcome.tensors[index], tolerance).map_err(|e| format!("`{name}` {e}"))?;
    }
    Ok(())
}

/// Whether two stages agree. Interpretations agree exactly; approximations differ in the emulator only.
pub fn compare(case: &Case, reference: &Run, found: &Run, exact: bool) -> Result<(), String> {
    let (reference, found) = match (reference, found) {
        (Ok(reference), Ok(found)) => (reference, found),
        // Two faults: `expected` has looked at the one, and looks at the other here.
        (_, found) => return expected(case, found, exact),
    };
    let tensors = case.args.iter().filter_map(|(name, arg)| match arg {
        Argument::Tensor { scalar, .. } => Some((name, *scalar)),
        Argument::Number(_) | Argument::Desc { .. } => None,
    });
    for ((name, scalar), (wanted, found)) in tensors.zip(reference.tensors.iter().zip(&found.tensors)) {
        let tolerance = if exact { None } else { case.tolerance(name) };
        same(scalar, wanted, found, tolerance).map_err(|e| format!("`{name}` {e}"))?;
    }
    if reference.printed != found.printed {
        let found = found.printed.join("\n");
        return Err(format!("printed\n{found}\ninstead of\n{}", reference.printed.join("\n")));
    }
    Ok(())
}

/// Compares by bits (any NaN equals any NaN), or within a tolerance.
fn same(scalar: Scalar, wanted: &[u8], found: &[u8], tolerance: Option<Tolerance>) -> Result<(), String> {
    let (wanted, found): (Vec<u64>, Vec<u64>) = (elements(scalar, wanted).collect(), elements(scalar, found).collect());
    if wanted.len() != found.len() {
        return Err(format!("has {} elements, not {}", found.len(), wanted.len()));
    }
    let value = |bits: u64| decode_float(bits, scalar);
    let largest = match tolerance {
        Some(Tolerance::Relative(_)) => {
            wanted.iter().map(|b| value(*b).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max)
        }
        _ => 0.0,
    };
    let agree = |a: u64, b: u64| {
        if a == b || (scalar.is_float() && value(a).is_nan() && value(b).is_nan()) {
            return true;
        }
        match tolerance {
            None => false,
            Some(Tolerance::Ulp(n)) => ordinal(a, scalar).abs_diff(ordinal(b, scalar)) <= n,
            Some(Tolerance::Relative(bound)) => (value(a) - value(b)).abs() <= bound * largest,
        }
    };
    let wrong: Vec<usize> = (0..wanted.len()).filter(|i| !agree(wanted[*i], found[*i])).collect();
    let Some(first) = wrong.first() else { return Ok(()) };
    let show = |bits: u64| match scalar.is_float() {
        true => format!("{:?} ({bits:#x})", value(bits)),
        false => format!("{bits:#x}"),
    };
    let some: Vec<String> =
        wrong.iter().take(6).map(|i| format!("[{i}] {} instead of {}", show(found[*i]), show(wanted[*i]))).collect();
    let count = (wrong.len(), wanted.len());
    Err(format!("differs in {} of {} elements from [{first}] on: {}", count.0, count.1, some.join(", ")))
}

/// The place of a float among all floats of its type.
fn ordinal(bits: u64, scalar: Scalar) -> i64 {
    let top = 1u64 << (scalar.bits() - 1);
    let magnitude = (bits & (top - 1)) as i64;
    if scalar.is_float() && bits & top != 0 { -magnitude } else { magnitude }
}

/// Writes a stage to the folder that `RTC_CENTRAL_DUMP` names, for looking at a failure.
pub fn dump(name: &str, text: &str) {
    if let Some(folder) = std::env::var_os("RTC_CENTRAL_DUMP") {
        let path = std::path::Path::new(&folder).join(name);
        if let Err(e) = std::fs::write(&path, text) {
            eprintln!("{}: {e}", path.display());
        }
    }
}

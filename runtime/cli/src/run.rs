//! `rtc run`: compile, launch, write or check the results.

use crate::arguments::RunArguments;
use crate::cache::Store;
use crate::output;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::results::Results;
use crate::{decided, input, instrument, ptx, sanitize, tile_ir, trusted, tune};
use rtc_compiler::{Decisions, Failure, Observer, Program, Spec, Specialization, TileKernel};
use rtc_runtime::internal::quantile;
use rtc_runtime::sanitize::Check;
use rtc_runtime::{Device, jit};
use rtc_source::json_fields::Field;
use rtc_source::{Code, SourceMap};
use rtc_testing::{Error, LaunchFile, Tensors, Tolerance, compare};
use rtc_tune::Decision;
use serde_json::json;
use std::path::Path;

/// Runs a LAUNCH.json and prints the outcome on stdout.
pub(crate) fn run(arguments: &RunArguments, reporter: &Reporter) -> Result<(), Problem> {
    let mut results = Results::new(arguments.json || reporter.is_json());
    let done = launched(arguments, reporter, &mut results);
    // A launch with wrong results is reported, too.
    if done.as_ref().map_or_else(Problem::is_wrong_result, |()| true) {
        results.finish()?;
    }
    done
}

/// Runs a LAUNCH.json; the outcome goes to `results`.
pub(crate) fn launched(arguments: &RunArguments, reporter: &Reporter, results: &mut Results) -> Result<(), Problem> {
    let launch_text = input::read_text(&arguments.launch)?;
    if ptx::is_ptx(&arguments.file) {
        return ptx::run(arguments, &launch_text, reporter, results);
    }
    let launch = LaunchFile::parse(&launch_text).map_err(|e| in_launch(arguments, e.to_string()))?;
    let mut spec = read_spec(&launch).map_err(|e| in_launch(arguments, e))?;
    arguments.debug.apply(&mut spec.options);
    arguments.plan.apply(&mut spec.options)?;
    if arguments.debug.debug.is_some() {
        rtc_runtime::set_line_info(true);
    }
    let tensors = tensors_of(&arguments.launch, &launch)?;
    // Read before the launch, so that a mistake in its name costs nothing.
    let golden = match &arguments.check {
        Some(path) => Some((path, tensors_file(path)?)),
        None => None,
    };

    let device = sanitize::device(arguments)?;
    let recorded_blocks = arguments.records.option(arguments.instrument.is_some());
    if recorded_blocks > 0 {
        instrument::check_device(&device)?;
    }
    let arch = match (&arguments.arch, &spec.arch) {
        (Some(arch), _) => arch.clone(),
        (None, Some(arch)) if !device.is_cuda() => arch.clone(),
        (None, _) => device.arch().to_string(),
    };
    let mut configured = None;
    let (source, mut spec) = Input::read(arguments, spec, reporter, &mut |program, spec| {
        let (mut spec, why) = settle(program, spec, &launch, &tensors, (&device, &arch), reporter)?;
        configured = why;
        spec.options.instrument = recorded_blocks;
        Ok(spec)
    })?;
    spec.options.instrument = recorded_blocks;
    let mut progress = reporter.follow(format!("{} for {arch}", source.kernel()));
    let store = Store::open(!arguments.no_cache, reporter);
    let compiled = source.compile(&store, &device, &spec, &arch, reporter, &mut progress);
    progress.finish();
    let compiled = compiled.map_err(|error| match error {
        jit::CompileError::Compiler { failure, .. } => Problem::compile(source.sources(), failure),
        jit::CompileError::Runtime(error) => error.into(),
    })?;
    reporter.diagnostics(source.sources(), &compiled.warnings);
    let artifact = compiled.artifact.as_ref();
    decided::tell(reporter, source.sources(), artifact, &arch, || source.decisions(&spec, &arch));
    let kept = match (&arguments.keep, &compiled.artifact) {
        (Some(directory), Some(artifact)) => {
            Some(output::write_artifact(directory, &artifact.metadata.symbol, artifact)?)
        }
        _ => None,
    };

    let kernel = trusted::in_bounds(&compiled.kernel);
    let progress = reporter.follow(format!("{} on {device}", source.kernel()));
    let recording = match recorded_blocks {
        0 => None,
        blocks => Some(instrument::with_records((&launch, &tensors), kernel.metadata(), blocks)?),
    };
    let run = || {
        let (launch, tensors) = recording.as_ref().map_or((&launch, &tensors), |(launch, tensors)| (launch, tensors));
        launch.run(&kernel, tensors)
    };
    let outcome = run();
    progress.finish();
    let mut broken = Vec::new();
    let checks = sanitize::of_interpreter(arguments.sanitize.unwrap_or_default());
    if !checks.is_empty() {
        let device = Device::interpreter()?.with_sanitizer(checks)?;
        let mut progress = reporter.follow(format!("{} on {device}", source.kernel()));
        let interpreted = source.compile(&store, &device, &spec, &arch, reporter, &mut progress);
        if let Ok(interpreted) = interpreted {
            broken = sanitize::interpreted(&interpreted.kernel, &launch, &tensors, reporter);
        }
        progress.finish();
    }
    for finding in compiled.kernel.take_findings() {
        reporter.warning(Code::FINDING, &finding.to_string());
    }
    let mut outcome = match outcome {
        Err(Error::Runtime(rtc_runtime::Error::Sanitizer(found))) => {
            broken.extend(found);
            return Err(sanitize::report(&broken, source.sources(), reporter));
        }
        Ok(_) if !broken.is_empty() => return Err(sanitize::report(&broken, source.sources(), reporter)),
        outcome => outcome.map_err(|error| launch_problem(&arguments.launch, error))?,
    };

    let recorded =
        artifact.filter(|_| recording.is_some()).map(|artifact| instrument::take(&mut outcome.outputs, artifact));
    if let Some(path) = &arguments.output {
        output::write(path, &outcome.outputs.to_bytes()?)?;
    }
    let metadata = compiled.kernel.metadata();
    let [x, y, z] = launch.grid(metadata).map_err(|e| in_launch(arguments, e.to_string()))?;
    if let Some(configured) = configured {
        results.add("config", &configured, json!({"config": configured}))?;
    }
    let file = input::name_of(&arguments.file);
    let (name, threads, shared) = (&metadata.kernel, metadata.threads_per_block, metadata.shared_bytes);
    results.add("kernel", &format!("{name} ({file})"), json!({"kernel": name, "file": file}))?;
    let reason = device.cuda_error().map(ToString::to_string);
    let fallback = reason.as_ref().map_or(String::new(), |reason| format!(", as no GPU can be used: {reason}"));
    let fields = json!({"device": device.to_string(), "no_gpu_because": reason});
    results.add("device", &format!("{device}{fallback}"), fields)?;
    results.add(
        "launch",
        &format!("grid {x} x {y} x {z}, {threads} threads per block, {shared} bytes of shared memory"),
        json!({"grid": [x, y, z], "threads_per_block": threads, "shared_bytes": shared}),
    )?;
    if let Some(checks) = arguments.sanitize {
        let names: Vec<&str> = checks.iter().map(Check::name).collect();
        let text = format!("nothing found ({})", names.join(", "));
        results.add("sanitizer", &text, json!({"sanitizer": {"checks": names, "findings": 0}}))?;
    }
    if let Some(counters) = compiled.kernel.take_counters() {
        results.counters(&counters)?;
    }
    if let Some(usage) = compiled.kernel.usage() {
        let (registers, local) = (usage.registers, usage.local_bytes);
        let text = format!("{registers} per thread, {local} bytes spilled or local");
        results.add("registers", &text, json!({"registers": registers, "local_bytes": local}))?;
    }
    let first = outcome.elapsed.as_secs_f64() * 1e3;
    results.add("time", &format!("{first:.3} ms (first launch)"), json!({"first_milliseconds": first}))?;
    if arguments.repeat > 0 {
        let mut times = Vec::new();
        for _ in 0..arguments.repeat {
            times.push(run()?.elapsed.as_secs_f64() * 1e3);
        }
        let (median, launches) = (quantile(&times, 0.5).unwrap_or(first), times.len());
        let fields = json!({"median_milliseconds": median, "launches": launches});
        results.add("", &format!("{median:.3} ms (median of {launches})"), fields)?;
    }
    if let (Some(path), Some(recorded)) = (&arguments.instrument, &recorded) {
        instrument::write(path, recorded, results)?;
    }
    if let Some(path) = kept {
        let path = path.display().to_string();
        results.add("ptx", &path, json!({"ptx": path}))?;
    }
    if let Some(path) = &arguments.output {
        let path = path.display().to_string();
        results.add("output", &path, json!({"output": path}))?;
    }
    match golden {
        Some((path, golden)) => check(path, &golden, &outcome.outputs, arguments.tolerance, results),
        None => Ok(()),
    }
}

/// The compiled kernel: one of a source, or one of tile IR.
pub(crate) enum Input {
    Source(Box<(Program, Specialization)>),
    TileIr(Box<TileKernel>),
}

impl Input {
    /// Reads the file; `settle` gives the parameters that the spec leaves out.
    fn read(
        arguments: &RunArguments,
        spec: Spec,
        reporter: &Reporter,
        settle: &mut dyn FnMut(&Program, Spec) -> Result<Spec, Problem>,
    ) -> Result<(Input, Spec), Problem> {
        if tile_ir::is_tile_ir(&arguments.file) {
            let kernel = tile_ir::load(&arguments.file)?;
            tile_ir::check_spec(&spec, &kernel).map_err(|message| in_launch(arguments, message))?;
            return Ok((Input::TileIr(kernel.into()), spec));
        }
        let program = input::load(&arguments.file, &arguments.include, &arguments.levels, arguments.debug, reporter)?;
        let program = input::with_libdevice(program, arguments.libdevice.as_deref())?;
        let spec = settle(&program, spec)?;
        let specialization = spec.specialize(&program);
        match specialization {
            Ok(specialization) => Ok((Input::Source(Box::new((program, specialization))), spec)),
            Err(failure) => Err(Problem::compile(program.sources(), failure)),
        }
    }

    pub(crate) fn kernel(&self) -> &str {
        match self {
            Input::Source(source) => &source.1.kernel,
            Input::TileIr(kernel) => kernel.name(),
        }
    }

    pub(crate) fn sources(&self) -> &SourceMap {
        match self {
            Input::Source(source) => source.0.sources(),
            Input::TileIr(kernel) => kernel.sources(),
        }
    }

    pub(crate) fn decisions(&self, spec: &Spec, arch: &str) -> Result<Decisions, Failure> {
        match self {
            Input::Source(source) => rtc_compiler::decisions(&source.0, &source.1, arch),
            Input::TileIr(kernel) => kernel.decisions(&spec.options, arch),
        }
    }

    pub(crate) fn compile(
        &self,
        store: &Store,
        device: &Device,
        spec: &Spec,
        arch: &str,
        reporter: &Reporter,
        observer: &mut dyn Observer,
    ) -> Result<jit::CompiledKernel, jit::CompileError> {
        match self {
            Input::Source(source) if device.is_interpreter() => {
                let (program, specialization) = source.as_ref();
                let hash = rtc_compiler::source_hash(program, specialization, arch);
                jit::compile(device, program, specialization, arch, hash, observer)
            }
            Input::Source(source) => {
                let (program, specialization) = source.as_ref();
                let compiled = store.compile(program, specialization, arch, reporter, observer)?;
                trusted::load(device, compiled, observer)
            }
            Input::TileIr(kernel) if device.is_interpreter() => {
                jit::compile_tile_ir(device, kernel, &spec.options, arch, observer)
            }
            Input::TileIr(kernel) => {
                let compiled = store.compile_tile_ir(kernel, &spec.options, arch, reporter, observer)?;
                trusted::load(device, compiled, observer)
            }
        }
    }
}

/// The spec with what it leaves out: of an autotuned kernel the configuration that was found to be the fastest, or else the
/// first by the cost model, and values of heuristics. With it the configuration in words.
pub(crate) fn settle(
    program: &Program,
    spec: Spec,
    launch: &LaunchFile,
    tensors: &Tensors,
    (device, arch): (&Device, &str),
    reporter: &Reporter,
) -> Result<(Spec, Option<String>), Problem> {
    let Ok(kernel) = program.kernel(spec.kernel.as_deref()) else { return Ok((spec, None)) };
    let given = |name: &str| spec.args.iter().any(|arg| arg.name == name);
    if kernel.params.iter().all(|param| param.has_default || given(&param.name)) {
        return Ok((spec, None));
    }
    let failed = |error| tune::problem(program, error);
    let cache = tune::open_cache(false, reporter);
    let mut tuner = tune::tuner(program, spec.clone(), launch, tensors);
    let decorators = tuner.decorators(arch).map_err(failed)?;
    if decorators.choices.iter().all(|choice| choice.values.is_empty()) {
        return Ok((spec, None));
    }
    if let Some(cache) = &cache {
        tuner = tuner.cache(cache);
    }
    let report = tuner.choose(device, arch).map_err(failed)?;
    let (Some(winner), Some(settled)) = (report.winner(), report.winning_spec()) else {
        let reason = report.candidates.iter().find_map(|c| c.dropped.clone()).unwrap_or_default();
        return Err(Problem::input(Code::TUNING, format!("no configuration of `{}` can run: {reason}", report.kernel)));
    };
    let configured = report.is_tuned.then(|| {
        let why = match report.decision {
            Decision::Stored => "tuned before",
            _ => "the first of the cost model; `rtc tune` times them",
        };
        format!("{} ({why})", winner.choice)
    });
    Ok((settled, configured))
}

/// The error of a file's launch.
pub(crate) fn launch_problem(path: &Path, error: Error) -> Problem {
    match error {
        Error::LaunchFile(field) => Problem::file(Code::LAUNCH_FILE, path, field.to_string()),
        other => other.into(),
    }
}

fn in_launch(arguments: &RunArguments, message: String) -> Problem {
    Problem::file(Code::LAUNCH_FILE, &arguments.launch, message)
}

pub(crate) fn read_spec(launch: &LaunchFile) -> Result<Spec, String> {
    Spec::from_field(&Field::root(&launch.spec)).map_err(|error| {
        let place = if error.path.is_empty() { "spec".into() } else { format!("spec.{}", error.path) };
        format!("`{place}`: {}", error.message)
    })
}

/// The tensors of a LAUNCH.json at `path`.
pub(crate) fn tensors_of(path: &Path, launch: &LaunchFile) -> Result<Tensors, Problem> {
    match &launch.tensors {
        None => Ok(Tensors::default()),
        Some(name) => tensors_file(&input::beside(path, name)),
    }
}

pub(crate) fn tensors_file(path: &Path) -> Result<Tensors, Problem> {
    Tensors::from_bytes(&input::read_bytes(path)?)
        .map_err(|error| Problem::file(Code::TENSORS, path, error.to_string()))
}

/// Compares every tensor of the reference file and says how it went.
pub(crate) fn check(
    path: &Path,
    golden: &Tensors,
    outputs: &Tensors,
    tolerance: Option<Tolerance>,
    results: &mut Results,
) -> Result<(), Problem> {
    let tolerance = tolerance.unwrap_or(Tolerance::ByType);
    let mut wrong = Vec::new();
    for (name, expected) in golden.iter() {
        let actual = outputs.get(name).ok_or_else(|| {
            let message = format!("tensor `{name}` is not among the outputs: {}", outputs.names().join(", "));
            Problem::file(Code::TENSORS, path, message)
        })?;
        let comparison = compare(name, actual, expected, tolerance)
            .map_err(|error| Problem::file(Code::TENSORS, path, error.to_string()))?;
        results.compared(name, &comparison)?;
        if comparison.wrong > 0 {
            wrong.push(format!("`{name}` in {} of {} elements", comparison.wrong, comparison.elements));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Problem::file(Code::WRONG_RESULT, path, format!("the results differ from the reference: {}", wrong.join(", "))))
}

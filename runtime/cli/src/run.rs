//! `rtc run`: compile, launch, write or check the results.

use crate::arguments::RunArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::{input, output};
use rtc_compiler::Spec;
use rtc_runtime::{Device, Error, LaunchFile, Tensors, Tolerance, compare, jit};
use rtc_source::json_fields::Field;
use std::path::Path;

/// Runs a LAUNCH.json and says on stdout what was done.
pub(crate) fn run(arguments: &RunArguments, reporter: &Reporter) -> Result<(), Problem> {
    let launch_text = input::read_text(&arguments.launch)?;
    let launch = LaunchFile::parse(&launch_text).map_err(|e| in_launch(arguments, e.to_string()))?;
    let spec = read_spec(&launch).map_err(|e| in_launch(arguments, e))?;
    let tensors = read_tensors(arguments, &launch)?;
    // Read before the launch, so that a mistake in its name costs nothing.
    let golden = match &arguments.check {
        Some(path) => Some((path, tensors_file(path)?)),
        None => None,
    };

    let program = input::load(&arguments.file, &arguments.include, &arguments.levels, reporter)?;
    let program = input::with_libdevice(program, arguments.libdevice.as_deref())?;
    let specialization = spec.specialize(&program).map_err(|failure| Problem::compile(&program, failure))?;
    let device = Device::open(arguments.device)?;
    let arch = match (&arguments.arch, &spec.arch) {
        (Some(arch), _) => arch.clone(),
        (None, Some(arch)) if !device.is_cuda() => arch.clone(),
        (None, _) => device.arch(),
    };
    let mut progress = reporter.follow(format!("{} for {arch}", specialization.kernel));
    let hash = rtc_compiler::source_hash(&program, &spec, &arch);
    let compiled = jit::compile(&device, &program, &specialization, &arch, hash, &mut progress);
    progress.finish();
    let compiled = compiled.map_err(|error| match error {
        jit::CompileError::Compiler(failure) => Problem::compile(&program, failure),
        jit::CompileError::Runtime(error) => error.into(),
    })?;
    reporter.diagnostics(program.sources(), &compiled.warnings);
    let kept = match (&arguments.keep, &compiled.artifact) {
        (Some(directory), Some(artifact)) => {
            Some(output::write_artifact(directory, &artifact.metadata.symbol, artifact)?)
        }
        _ => None,
    };

    let progress = reporter.follow(format!("{} on {device}", specialization.kernel));
    let outcome = launch.run(&compiled.kernel, &tensors);
    progress.finish();
    for finding in compiled.kernel.take_findings() {
        reporter.warning("finding", &finding);
    }
    let outcome = outcome.map_err(|error| match error {
        Error::LaunchFile(field) => in_launch(arguments, field.to_string()),
        other => other.into(),
    })?;

    let metadata = compiled.kernel.metadata();
    let [x, y, z] = launch.grid;
    println!("kernel     {} ({})", metadata.kernel, arguments.file.display());
    match device.fallback_reason() {
        Some(reason) => println!("device     {device}, as no GPU can be used: {reason}"),
        None => println!("device     {device}"),
    }
    println!(
        "launch     grid {x} x {y} x {z}, {} threads per block, {} bytes of shared memory",
        metadata.threads_per_block, metadata.shared_bytes
    );
    if let Some(usage) = compiled.kernel.usage() {
        println!("registers  {} per thread, {} bytes spilled or local", usage.registers, usage.local_bytes);
    }
    println!("time       {:.3} ms (first launch)", outcome.elapsed.as_secs_f64() * 1e3);
    if arguments.repeat > 0 {
        let mut times = Vec::new();
        for _ in 0..arguments.repeat {
            times.push(launch.run(&compiled.kernel, &tensors)?.elapsed.as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("           {:.3} ms (median of {})", times[times.len() / 2], times.len());
    }
    if let Some(path) = kept {
        println!("ptx        {}", path.display());
    }
    if let Some(path) = &arguments.output {
        output::write(path, &outcome.outputs.to_bytes()?)?;
        println!("output     {}", path.display());
    }
    match golden {
        Some((path, golden)) => check(path, &golden, &outcome.outputs, arguments.tolerance),
        None => Ok(()),
    }
}

fn in_launch(arguments: &RunArguments, message: String) -> Problem {
    Problem::file("launch-file", &arguments.launch, message)
}

fn read_spec(launch: &LaunchFile) -> Result<Spec, String> {
    Spec::from_field(&Field::root(&launch.spec)).map_err(|error| {
        let place = if error.path.is_empty() { "spec".into() } else { format!("spec.{}", error.path) };
        format!("`{place}`: {}", error.message)
    })
}

fn read_tensors(arguments: &RunArguments, launch: &LaunchFile) -> Result<Tensors, Problem> {
    match &launch.tensors {
        None => Ok(Tensors::default()),
        Some(name) => tensors_file(&arguments.launch.parent().unwrap_or(Path::new("")).join(name)),
    }
}

fn tensors_file(path: &Path) -> Result<Tensors, Problem> {
    Tensors::from_bytes(&input::read_bytes(path)?).map_err(|error| Problem::file("tensors", path, error.to_string()))
}

/// Compares every tensor of the reference file and says how it went.
fn check(path: &Path, golden: &Tensors, outputs: &Tensors, tolerance: Option<Tolerance>) -> Result<(), Problem> {
    let tolerance = tolerance.unwrap_or(Tolerance::ByType);
    let mut wrong = Vec::new();
    for (name, expected) in golden.iter() {
        let actual = outputs.get(name).ok_or_else(|| {
            let message = format!("tensor `{name}` is not among the outputs: {}", outputs.names().join(", "));
            Problem::file("tensors", path, message)
        })?;
        let comparison = compare(name, actual, expected, tolerance)
            .map_err(|error| Problem::file("tensors", path, error.to_string()))?;
        println!("check      {name}: {comparison}");
        if comparison.wrong > 0 {
            wrong.push(format!("`{name}` in {} of {} elements", comparison.wrong, comparison.elements));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Problem::file("wrong-result", path, format!("the results differ from the reference: {}", wrong.join(", "))))
}

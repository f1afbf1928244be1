//! `rtc tune`: find the fastest configuration of a kernel.

use crate::debug_arguments::DebugArguments;
use crate::output::{self, out, outln};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::tune_arguments::{Clock, Ordinals, TuneArguments};
use crate::{input, run, trusted, tune_cluster, tune_shards};
use rtc_cache::{Cache, CacheConfig};
use rtc_compiler::{Program, Spec};
use rtc_runtime::{Device, DeviceKind};
use rtc_source::Code;
use rtc_testing::{LaunchFile, Tensors};
use rtc_tune::{Decision, Error, GridFn, ShardFile, Tuned, Tuner, TuningReport};
use std::path::Path;
use std::time::Duration;

/// Tunes the kernel of a LAUNCH.json and prints its configurations, as a table or as JSON.
pub(crate) fn tune(arguments: &TuneArguments, reporter: &Reporter) -> Result<(), Problem> {
    let (file, launch_path) = match (&arguments.file, &arguments.launch) {
        (Some(file), Some(launch)) => (file, launch),
        _ => return tune_shards::merge(arguments, reporter),
    };
    let launch_text = input::read_text(launch_path)?;
    let in_launch = |message: String| Problem::file(Code::LAUNCH_FILE, launch_path, message);
    let launch = LaunchFile::parse(&launch_text).map_err(|error| in_launch(error.to_string()))?;
    let spec = run::read_spec(&launch).map_err(in_launch)?;
    let tensors = run::tensors_of(launch_path, &launch)?;
    let program = input::load(file, &arguments.include, &arguments.levels, DebugArguments::default(), reporter)?;
    let cache = open_cache(arguments.no_cache, reporter);
    let mut tuner = tuner(&program, spec, &launch, &tensors);
    if arguments.space {
        tuner = tuner.widen_search();
    }
    let arch = || arguments.arch.clone().unwrap_or_else(|| "sm_90a".into());
    if let Some(address) = &arguments.cluster {
        let configurations = tuner.count(&arch()).map_err(|error| problem(&program, error))?;
        let tensors = launch.tensors.as_ref().map(|name| input::beside(launch_path, name));
        let files: Vec<&Path> = [file.as_path(), launch_path].into_iter().chain(tensors.as_deref()).collect();
        return tune_cluster::tune(address, &files, configurations, arguments);
    }
    if let Some(shard) = arguments.shard {
        tuner = tuner.shard(shard);
    }
    if let Some(cache) = &cache {
        tuner = tuner.cache(cache);
    }
    if arguments.compile_only {
        let compiled = tuner.compile_ahead(&arch()).map_err(|error| problem(&program, error))?;
        return outln!("compiled   {compiled} configurations for {}", arch());
    }
    let device = match &arguments.devices {
        Some(Ordinals::Some(numbers)) => Device::cuda(numbers.first().copied().unwrap_or(0))?,
        Some(Ordinals::All) => Device::cuda(0)?,
        None => tune_shards::device(arguments)?,
    };
    let has_clock = device.is_cuda() || arguments.clock == Clock::Counters;
    if arguments.shard.is_some() && !has_clock {
        let message =
            format!("--shard times configurations, and the {device} has no clock: use a GPU or --clock counters");
        return Err(Problem::Usage(message));
    }
    tuner = tuner.assembler(arguments.assembler.choose()?);
    if arguments.fresh {
        tuner = tuner.ignore_cached_times();
    }
    if arguments.clock == Clock::Counters {
        tuner = tuner.time_by_counters();
    }
    if reporter.shows_progress() {
        tuner = tuner.show_progress();
    }
    if let Some(seconds) = arguments.budget {
        tuner = tuner.budget(Duration::from_secs_f64(seconds));
    }
    let arch = arguments.arch.clone().unwrap_or_else(|| device.arch().to_string());
    let failed = |error: Error| problem(&program, error);
    // A stored result needs no other GPU, and opening one takes a while.
    let (expected, opened) = std::thread::scope(|scope| {
        let opened = arguments.fresh.then(|| scope.spawn(|| others(arguments, &device, reporter)));
        let expected = tuner.choose(&device, &arch).map_err(failed);
        (expected, opened.map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))))
    });
    let expected = expected?;
    let report = match (has_clock && tuner.is_open(&expected), expected.arguments()) {
        (true, Some(metadata)) => {
            let others = opened.unwrap_or_else(|| others(arguments, &device, reporter))?;
            let devices: Vec<Device> = std::iter::once(device.clone()).chain(others).collect();
            let tune = |args: &[rtc_runtime::Arg<'_>]| tuner.tune_chosen(&devices, args, expected);
            let tuned = launch.with_args(&device, &metadata, &tensors, tune);
            tuned.map_err(|error| run::launch_problem(launch_path, error))?.map_err(failed)?
        }
        _ => expected,
    };
    if let Some(path) = &arguments.plot {
        output::write(path, report.to_svg().as_bytes())?;
    }
    if let Some(path) = &arguments.output {
        match ShardFile::of(&report) {
            Some(shard) => output::write(path, shard.to_text().as_bytes())?,
            None => add_to(path, &Tuned::of(report.entry()))?,
        }
    }
    for note in &report.notes {
        reporter.warning(Code::TUNING, note);
    }
    if arguments.json || reporter.is_json() {
        return outln!("{}", report.to_json());
    }
    print(&report, &device)?;
    if let Some(path) = &arguments.plot {
        outln!("plot       {}", path.display())?;
    }
    if let Some(path) = &arguments.output {
        outln!("results    {}", path.display())?;
    }
    Ok(())
}

/// Adds results to a file. Its entries are kept: one file holds the results of many launches.
pub(crate) fn add_to(path: &Path, results: &Tuned) -> Result<(), Problem> {
    let mut tuned = match path.is_file() {
        true => Tuned::parse(&input::read_text(path)?)
            .map_err(|error| Problem::file(Code::TUNED_FILE, path, error.to_string()))?,
        false => Tuned::default(),
    };
    tuned.merge(results);
    output::write(path, tuned.to_text().as_bytes())
}

/// The other GPUs for tuning.
fn others(arguments: &TuneArguments, first: &Device, reporter: &Reporter) -> Result<Vec<Device>, Problem> {
    if !first.is_cuda() {
        return Ok(Vec::new());
    }
    let all = (1..Device::cuda_count()?).collect::<Vec<_>>();
    let (numbers, are_named) = match &arguments.devices {
        Some(Ordinals::Some(numbers)) => (numbers[1..].to_vec(), true),
        Some(Ordinals::All) => (all, false),
        None if arguments.device == DeviceKind::Auto => (all, false),
        None => (Vec::new(), true),
    };
    // Making a context takes a while.
    let opened = std::thread::scope(|scope| {
        let started: Vec<_> = numbers.iter().map(|number| scope.spawn(|| Device::cuda(*number))).collect();
        let joined = started.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        joined.collect::<Vec<_>>()
    });
    let mut others = Vec::new();
    for device in opened {
        match device {
            Ok(device) if are_named || Tuner::is_alike(first, &device) => others.push(device),
            // Another model.
            Ok(_) => {}
            Err(error) if are_named => return Err(error.into()),
            Err(error) => reporter.warning(Code::TUNING, &format!("a GPU is left out: {error}")),
        }
    }
    Ok(others)
}

/// The tuner for the kernel of a LAUNCH.json.
pub(crate) fn tuner<'p>(program: &'p Program, spec: Spec, launch: &LaunchFile, tensors: &Tensors) -> Tuner<'p> {
    let values = launch.host_values(&spec.args, tensors);
    let tuner = trusted::tuner(program, spec).grid(GridFn::new(launch.sizes().clone()));
    values.into_iter().fold(tuner, |tuner, (name, value)| tuner.argument(name, value))
}

/// The cache of tuning results; without one, tuning works all the same.
pub(crate) fn open_cache(is_off: bool, reporter: &Reporter) -> Option<Cache> {
    if is_off {
        return None;
    }
    match CacheConfig::from_env().and_then(Cache::open) {
        Ok(cache) => Some(cache),
        Err(error) => {
            reporter.warning(Code::CACHE, &format!("results are not kept: {error}"));
            None
        }
    }
}

/// The error, with its location in the source if it has one.
pub(crate) fn problem(program: &Program, error: Error) -> Problem {
    match error {
        Error::Compiler(failure) => Problem::compile(program.sources(), failure),
        Error::Runtime(error) => (*error).into(),
        other => Problem::input(Code::TUNING, other.to_string()),
    }
}

fn print(report: &TuningReport, device: &Device) -> Result<(), Problem> {
    outln!("kernel     {}", report.kernel)?;
    outln!("device     {device}")?;
    if !report.key.is_empty() {
        let key: Vec<String> = report.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
        outln!("key        {}", key.join(" "))?;
    }
    let timed = report.candidates.iter().filter(|c| !c.times.milliseconds.is_empty()).count();
    let how = match report.decision {
        Decision::Model => "by the cost model; nothing was timed".to_owned(),
        Decision::Stored => "stored by a tuning before".to_owned(),
        Decision::Timed => {
            let phases = report.phases;
            let steps = [
                (phases.estimating, "estimating"),
                (phases.compiling, if report.is_assembled { "compiling (assembled by ptxas)" } else { "compiling" }),
                (phases.preparing, "preparing"),
                (phases.timing, "timing"),
                (phases.comparing, "comparing the fastest"),
            ];
            let steps = steps.map(|(time, what)| format!("{:.2} s {what}", time.as_secs_f64()));
            format!(
                "timed {timed} of {} configurations in {:.1} s{}: {}{}",
                report.candidates.len(),
                report.elapsed.as_secs_f64(),
                if report.devices > 1 { format!(" on {} GPUs", report.devices) } else { String::new() },
                steps.join(", "),
                if report.is_cut { "; the budget ended it" } else { "" }
            )
        }
    };
    outln!("decided    {how}")?;
    match report.winner() {
        Some(winner) => outln!("winner     {}", winner.choice)?,
        None => outln!("winner     none: no configuration can run")?,
    }
    out!("\n{report}")
}

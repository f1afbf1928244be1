//! The launch of `rtc explore`: counters, the timeline, and findings of the sanitizer.

use crate::cache::Store;
use crate::explore::Subject;
use crate::explore_arguments::ExploreArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::{instrument, run, sanitize, trusted};
use rtc_compiler::{Compiled, Silent};
use rtc_explore::{LaunchInput, Output};
use rtc_runtime::counters::Counters;
use rtc_runtime::jit::CompileError;
use rtc_runtime::sanitize::{Checks, Report};
use rtc_runtime::timeline::{Model, Timeline};
use rtc_runtime::{Device, Error};
use rtc_source::SourceMap;
use rtc_testing::{LaunchFile, Outcome, Tensor, Tensors};
use std::path::Path;

/// Elements of a tensor that a page shows.
const MAX_ELEMENTS: usize = 8;

/// The findings of the interpreter, which alone knows the promises of the source.
fn promises(
    subject: &Subject,
    launch: &LaunchFile,
    tensors: &Tensors,
    reporter: &Reporter,
) -> Result<Vec<Report>, Problem> {
    let device = Device::interpreter()?.with_sanitizer(sanitize::of_interpreter(Checks::ALL))?;
    let Subject { input, spec, arch, .. } = subject;
    let store = Store::open(false, reporter);
    let compiled = input.compile(&store, &device, spec, arch, reporter, &mut Silent);
    Ok(compiled.map_or(Vec::new(), |compiled| sanitize::interpreted(&compiled.kernel, launch, tensors, reporter)))
}

/// The tensors that a launch changed, with their first elements.
fn changed(before: &Tensors, after: &Tensors) -> Vec<Output> {
    let changed = after.iter().filter(|(name, tensor)| before.get(name) != Some(tensor));
    let output = |(name, tensor): (&str, &Tensor)| {
        let bytes = tensor.dtype.bitsize().div_ceil(8);
        let count = (tensor.data.len() / bytes.max(1)).min(MAX_ELEMENTS);
        let start = Tensor::new(tensor.dtype, vec![count], tensor.data[..count * bytes].to_vec());
        let values = start.and_then(|start| start.to_f64()).unwrap_or_default();
        // Six digits are enough to recognize a value.
        let first = values.iter().map(|value| format!("{value:.6}")).map(|text| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        });
        Output {
            name: name.to_owned(),
            dtype: format!("{:?}", tensor.dtype).to_lowercase(),
            shape: tensor.shape.clone(),
            first: first.collect(),
        }
    };
    changed.map(output).collect()
}

/// The fault that ended a launch, or the tensors after it.
fn ended(path: &Path, outcome: rtc_testing::Result<Outcome>) -> Result<(Option<String>, Option<Tensors>), Problem> {
    match outcome {
        Ok(outcome) => Ok((None, Some(outcome.outputs))),
        Err(rtc_testing::Error::Runtime(Error::Fault(fault))) => Ok((Some(fault.to_string()), None)),
        Err(error) => Err(run::launch_problem(path, error)),
    }
}

/// Runs the launch in the interpreter, which has neither counters nor a timeline.
pub(crate) fn interpreted(
    arguments: &ExploreArguments,
    subject: &Subject,
    (path, launch, tensors): (&Path, &LaunchFile, &Tensors),
    reporter: &Reporter,
) -> Result<LaunchInput, Problem> {
    let Subject { input, spec, arch, .. } = subject;
    let (store, device) = (Store::open(false, reporter), Device::interpreter()?);
    let compiled = input.compile(&store, &device, spec, arch, reporter, &mut Silent);
    let kernel = compiled.map_err(|error| match error {
        CompileError::Compiler { failure, .. } => Problem::compile(input.sources(), failure),
        CompileError::Runtime(error) => error.into(),
    })?;
    let kernel = trusted::in_bounds(&kernel.kernel);
    let progress = reporter.follow(format!("{} on {device}", input.kernel()));
    let outcome = launch.run(&kernel, tensors);
    progress.finish();
    let (fault, after) = ended(path, outcome)?;
    let findings = match arguments.no_sanitize {
        true => Vec::new(),
        false => promises(subject, launch, tensors, reporter)?,
    };
    Ok(LaunchInput {
        executor: "interpreter",
        grid: launch.grid(kernel.metadata()).map_err(|error| run::launch_problem(path, error.into()))?,
        counters: Counters::default(),
        timeline: Timeline::default(),
        recording: None,
        model: Model::of_arch(arch).name,
        outputs: after.map_or(Vec::new(), |after| changed(tensors, &after)),
        findings,
        fault,
    })
}

/// Runs the launch in the emulator: once with counters and the timeline, once under the sanitizer.
pub(crate) fn launched(
    arguments: &ExploreArguments,
    subject: &Subject,
    (path, launch, tensors): (&Path, &LaunchFile, &Tensors),
    compiled: Compiled,
    reporter: &Reporter,
) -> Result<LaunchInput, Problem> {
    let load = |device: &Device| -> Result<rtc_runtime::Kernel, Problem> {
        let loaded = trusted::load(device, compiled.clone(), &mut Silent);
        let loaded = loaded.map_err(|error| match error {
            CompileError::Compiler { failure, .. } => Problem::compile(&SourceMap::new(), failure),
            CompileError::Runtime(error) => error.into(),
        })?;
        Ok(trusted::in_bounds(&loaded.kernel))
    };
    let given = (launch, tensors);
    let blocks = arguments.records.option(arguments.instrument);
    let with_records = match blocks {
        0 => None,
        blocks => Some(instrument::with_records(given, &compiled.artifact.metadata, blocks)?),
    };
    let (launch, tensors) = with_records.as_ref().map_or(given, |(launch, tensors)| (launch, tensors));
    let symbol = &compiled.artifact.metadata.symbol;
    let device = Device::emulator();
    let kernel = load(&device.with_counters()?.with_trace()?)?;
    let progress = reporter.follow(format!("{symbol} on {device}"));
    let outcome = launch.run(&kernel, tensors);
    progress.finish();
    let (fault, mut after) = ended(path, outcome)?;
    let mut records = after.as_mut().filter(|_| blocks > 0).map(|after| instrument::take(after, &compiled.artifact));
    let outputs = after.map_or(Vec::new(), |after| changed(given.1, &after));
    let mut findings = Vec::new();
    if !arguments.no_sanitize {
        let kernel = load(&device.sanitize_within(Checks::ALL, None)?)?;
        let progress = reporter.follow(format!("{} under the sanitizer", compiled.artifact.metadata.symbol));
        if let Err(rtc_testing::Error::Runtime(Error::Sanitizer(found))) = launch.run(&kernel, tensors) {
            findings = found.into();
        }
        progress.finish();
        findings.extend(promises(subject, given.0, given.1, reporter)?);
    }
    let mut recording_device = device;
    if blocks > 0 {
        let device = Device::open(arguments.device)?;
        instrument::check_device(&device)?;
        if device.is_cuda() {
            let progress = reporter.follow(format!("{symbol} on {device}"));
            let outcome = launch.run(&load(&device)?, tensors);
            progress.finish();
            let mut outcome = outcome.map_err(|error| run::launch_problem(path, error))?;
            records = Some(instrument::take(&mut outcome.outputs, &compiled.artifact));
            recording_device = device;
        }
    }
    let recording = records.as_ref().map(|records| rtc_explore::Recording {
        device: recording_device.to_string(),
        blocks: records.blocks,
        events: records.events,
        lost: records.lost,
    });
    let model = Model::of_arch(&subject.arch);
    let grid = launch.grid(kernel.metadata()).map_err(|error| run::launch_problem(path, error.into()))?;
    Ok(LaunchInput {
        executor: "emulator",
        grid,
        counters: kernel.take_counters().unwrap_or_default(),
        timeline: match records {
            Some(records) => records.timeline,
            None => kernel.take_trace().map(|trace| trace.replay(model)).unwrap_or_default(),
        },
        recording,
        model: model.name,
        outputs,
        findings,
        fault,
    })
}

//! `rtc explain-speed`: what bounds the speed of a launch, and which change would help most.

use crate::cache::Store;
use crate::debug_arguments::DebugArguments;
use crate::explain_speed_arguments::{ExplainSpeedArguments, When};
use crate::output::{out, outln};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::{input, ptx, run, tile_ir, trusted, tune};
use rtc_build::Assembler;
use rtc_compiler::{Compiled, Observer, Program, Silent, Spec};
use rtc_runtime::counters::Counters;
use rtc_runtime::{Device, Kernel, jit};
use rtc_source::Code;
use rtc_testing::{LaunchFile, Tensors, Tolerance, compare};
use rtc_tune::speed::Explainer;
use rtc_tune::{GridFn, Machine};
use std::path::Path;
use std::time::Duration;

/// The most instructions that the emulator counts without being asked to: some seconds.
const MOST: f64 = 3e7;
/// How often the launch is timed on a GPU.
const TIMED: usize = 20;

/// A launch with its files.
struct Launched<'a> {
    program: &'a Program,
    arch: &'a str,
    store: Store,
    path: &'a Path,
    launch: &'a LaunchFile,
    tensors: &'a Tensors,
    reporter: &'a Reporter,
}

impl Launched<'_> {
    /// The compiled kernel of a specification.
    fn compile(&self, spec: &Spec, observer: &mut dyn Observer) -> Result<Compiled, Problem> {
        let compiled = spec.specialize(self.program).and_then(|specialization| {
            self.store.compile(self.program, &specialization, self.arch, self.reporter, observer)
        });
        compiled.map_err(|failure| Problem::compile(self.program.sources(), failure))
    }

    fn load(&self, compiled: Compiled, device: &Device) -> Result<Kernel, Problem> {
        let loaded = trusted::load(device, compiled, &mut Silent).map_err(|error| match error {
            jit::CompileError::Compiler { failure, .. } => Problem::compile(self.program.sources(), failure),
            jit::CompileError::Runtime(error) => error.into(),
        })?;
        Ok(trusted::in_bounds(&loaded.kernel))
    }

    /// The counters of the launch in the emulator, and the tensors after it.
    fn count(&self, compiled: Compiled) -> Result<(Counters, Tensors), Problem> {
        let kernel = self.load(compiled, &Device::emulator().with_counters()?)?;
        let outcome = self.launch.run(&kernel, self.tensors);
        let outputs = outcome.map_err(|error| run::launch_problem(self.path, error))?.outputs;
        Ok((kernel.take_counters().unwrap_or_default(), outputs))
    }

    /// The median time on a GPU.
    fn time(&self, compiled: Compiled, device: &Device) -> Result<Duration, Problem> {
        let kernel = self.load(compiled, device)?;
        let mut times = Vec::new();
        // The first launch is slower.
        for _ in 0..=TIMED {
            let outcome = self.launch.run(&kernel, self.tensors);
            let elapsed = outcome.map_err(|error| run::launch_problem(self.path, error))?.elapsed;
            times.push(elapsed);
        }
        times.remove(0);
        times.sort();
        Ok(times[times.len() / 2])
    }
}

/// Explains the speed of a LAUNCH.json and prints the explanation, as text or as JSON.
pub(crate) fn explain_speed(arguments: &ExplainSpeedArguments, reporter: &Reporter) -> Result<(), Problem> {
    if ptx::is_ptx(&arguments.file) || tile_ir::is_tile_ir(&arguments.file) {
        let message = "explain-speed takes a source: it compiles the kernel with other configurations, which a .ptx or a \
                       .tir file does not have";
        return Err(Problem::Usage(message.into()));
    }
    let device = match arguments.device.map(Device::open).transpose()? {
        Some(device) if !device.is_cuda() => {
            let message = format!("--device times the launch on a GPU, and the {device} has no clock; leave it out");
            return Err(Problem::Usage(message));
        }
        device => device,
    };
    let launch_text = input::read_text(&arguments.launch)?;
    let in_launch = |message: String| Problem::file(Code::LAUNCH_FILE, &arguments.launch, message);
    let launch = LaunchFile::parse(&launch_text).map_err(|error| in_launch(error.to_string()))?;
    let mut spec = run::read_spec(&launch).map_err(in_launch)?;
    let tensors = run::tensors_of(&arguments.launch, &launch)?;
    let debug = DebugArguments::default();
    let program = input::load(&arguments.file, &arguments.include, &arguments.levels, debug, reporter)?;
    if let Some(kernel) = &arguments.kernel {
        spec.kernel = Some(kernel.clone());
    }
    let emulator = Device::emulator();
    let arch = match (&arguments.arch, &device) {
        (Some(arch), _) => arch.clone(),
        (None, Some(device)) => device.arch().to_string(),
        (None, None) => spec.arch.clone().unwrap_or_else(|| emulator.arch().to_string()),
    };
    let of_settings = (device.as_ref().unwrap_or(&emulator), arch.as_str());
    let (spec, _) = run::settle(&program, spec, &launch, &tensors, of_settings, reporter)?;
    let store = Store::open(!arguments.no_cache, reporter);
    let launched = Launched {
        program: &program,
        arch: &arch,
        store,
        path: &arguments.launch,
        launch: &launch,
        tensors: &tensors,
        reporter,
    };
    let mut progress = reporter.follow(format!("{} for {arch}", arguments.file.display()));
    let compiled = launched.compile(&spec, &mut progress);
    progress.finish();
    let compiled = compiled?;

    let mut explainer = Explainer::new(&program, spec.clone(), &arch).grid(GridFn::new(launch.sizes().clone()));
    for (name, value) in launch.host_values(&spec.args, &tensors) {
        explainer = explainer.argument(&name, value);
    }
    for name in multiples(&launch_text) {
        explainer = explainer.is_multiple_of_16(&name);
    }
    if let Some(usage) = usage(&compiled, &arch) {
        explainer = explainer.usage(usage.0, usage.1);
    }
    if let Some(device) = &device {
        explainer = explainer.machine(Machine::of_arch(&arch).with_sm_count(device.sm_count()));
        explainer = explainer.measured(launched.time(compiled.clone(), device)?);
    }
    if let Some(time) = arguments.measured_us {
        let time = Duration::try_from_secs_f64(time / 1e6);
        explainer = explainer.measured(time.map_err(|error| Problem::Usage(format!("--measured-us: {error}")))?);
    }
    if reporter.shows_progress() {
        explainer = explainer.show_progress();
    }
    let failed = |error| tune::problem(&program, error);
    let counts = match arguments.counters {
        When::Always => true,
        When::Never => false,
        When::Auto => explainer.instructions().map_err(failed)? <= MOST,
    };
    let counted = match counts {
        true => {
            let progress = reporter.follow(format!("{} on {emulator}", compiled.artifact.metadata.symbol));
            let counted = launched.count(compiled);
            progress.finish();
            Some(counted?)
        }
        false => None,
    };
    let mut count = |spec: &Spec| {
        let (_, expected) = counted.as_ref()?;
        let (counters, outputs) = launched.count(launched.compile(spec, &mut Silent).ok()?).ok()?;
        are_equal(&outputs, expected).then_some(counters)
    };
    let explained = explainer.explain(counted.as_ref().map(|(counters, _)| counters), &mut count).map_err(failed)?;
    match arguments.json || reporter.is_json() {
        true => outln!("{}", explained.to_json()),
        false => out!("{explained}"),
    }
}

/// Registers and spilled bytes of a thread, where an assembler is found.
fn usage(compiled: &Compiled, arch: &str) -> Option<(u32, u32)> {
    let artifact = &compiled.artifact;
    let usage = Assembler::find_for(arch)?.usage(&artifact.ptx, &artifact.metadata.symbol, arch).ok()?;
    Some((usage.registers, usage.spilled))
}

/// The tensor arguments that begin where their tensor does: memory is allocated at multiples of 256.
fn multiples(launch: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(launch).unwrap_or_default();
    let is_whole = |arg: &serde_json::Value| {
        arg.get("tensor").is_some() && arg.get("offset").is_none() && arg.get("view_of").is_none()
    };
    let args = json["args"].as_object().into_iter().flatten();
    args.filter(|(_, arg)| is_whole(arg)).map(|(name, _)| name.clone()).collect()
}

/// Whether all tensors are equal up to rounding.
fn are_equal(outputs: &Tensors, expected: &Tensors) -> bool {
    expected.iter().all(|(name, expected)| {
        let actual = outputs.get(name);
        let compared = actual.and_then(|actual| compare(name, actual, expected, Tolerance::ByType).ok());
        compared.is_some_and(|compared| compared.wrong == 0)
    })
}

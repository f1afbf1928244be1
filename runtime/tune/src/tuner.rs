//! The steps of tuning.

use crate::candidate::{Candidate, Estimated, order, reason};
use crate::device_timer::DeviceTimer;
use crate::halving::{Plan, race};
use crate::report::{Decision, Report};
use crate::store::Store;
use crate::tuned::{Entry, Record, Setting, key_value};
use crate::{Error, Grid, Machine, parallel, space};
use rtc_abi::spec::ConstValue;
use rtc_cache::Cache;
use rtc_compiler::{HostValue, Program, Silent, Spec, Tuning};
use rtc_runtime::{Arg, Device, Kernel};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many configurations of the wider space are compiled, the best by the cost model.
const WIDE: usize = 64;
/// How many configurations with stored times run again beside new ones, so that both are compared at one clock.
const COMPARED: usize = 3;

/// Finds the fastest configuration of a kernel.
///
/// ```
/// use rtc_compiler::{Program, Signature, Source, Spec};
/// use rtc_tune::{Grid, Tuner};
/// let text = "@triton.autotune([triton.Config({'B': b}) for b in (64, 1024)], key=['n'])\n\
///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
///             tl.store(x + i, 1.0, mask=i < n)\n";
/// let program = Program::parse(&[Source::new("fill.rt", text)]);
/// let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
/// let tuner = Tuner::new(&program, spec).integer("n", 1 << 20).grid(Grid::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]));
/// // Without a GPU the cost model decides.
/// let report = tuner.predict("sm_90a")?;
/// assert_eq!(report.candidates.len(), 2);
/// assert_eq!(report.winner().unwrap().grid[0], 1024);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tuner<'p> {
    program: &'p Program,
    spec: Spec,
    arguments: Vec<(String, HostValue)>,
    grid: Grid,
    plan: Plan,
    is_wide: bool,
    shows_progress: bool,
    cache: Option<&'p Cache>,
    is_fresh: bool,
    is_anywhere: bool,
}

impl<'p> Tuner<'p> {
    /// A tuner of the kernel that `spec` names; parameters that configurations and heuristics set may be left out of it.
    pub fn new(program: &'p Program, spec: Spec) -> Tuner<'p> {
        Tuner {
            program,
            spec,
            arguments: Vec::new(),
            grid: Grid::new([1.into(), 1.into(), 1.into()]),
            plan: Plan::default(),
            is_wide: false,
            shows_progress: false,
            cache: None,
            is_fresh: false,
            is_anywhere: false,
        }
    }

    /// An argument of the launch, as heuristics and keys see it.
    pub fn argument(mut self, name: impl Into<String>, value: HostValue) -> Self {
        let name = name.into();
        self.arguments.retain(|(known, _)| *known != name);
        self.arguments.push((name, value));
        self
    }

    /// An integer argument of the launch.
    pub fn integer(self, name: impl Into<String>, value: i64) -> Self {
        self.argument(name, HostValue::Value(ConstValue::Int(value.into())))
    }

    /// How many programs a configuration launches.
    pub fn grid(mut self, grid: Grid) -> Self {
        self.grid = grid;
        self
    }

    /// The longest time that the tuning may take; the cost model's favourites are timed first.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.plan.budget = Some(budget);
        self
    }

    /// Looks beyond the written configurations: other block sizes, warps, stages. What such a configuration computes must
    /// be what a written one does.
    pub fn wide(mut self, is_wide: bool) -> Self {
        self.is_wide = is_wide;
        self
    }

    /// Shows a progress bar, where standard error is a terminal.
    pub fn progress(mut self, shows_progress: bool) -> Self {
        self.shows_progress = shows_progress;
        self
    }

    /// Keeps results here, and takes them from here.
    pub fn cache(mut self, cache: &'p Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Times all configurations, also those of which the cache has times.
    pub fn fresh(mut self, is_fresh: bool) -> Self {
        self.is_fresh = is_fresh;
        self
    }

    /// Times on devices without a clock of a GPU, too: what it finds there says nothing of a GPU, but tests see each step.
    pub fn on_any_device(mut self) -> Self {
        self.is_anywhere = true;
        self
    }

    /// What the decorators say for these arguments.
    pub fn decorators(&self, arch: &str) -> Result<Tuning, Error> {
        let kernel = self.program.kernel(self.spec.kernel.as_deref())?;
        Ok(self.program.tuning(&kernel.name, Some(&self.arguments), arch)?)
    }

    /// The configurations in the order of the cost model, for the usual GPU of a target; nothing is compiled to the end and
    /// nothing runs.
    pub fn predict(&self, arch: &str) -> Result<Report, Error> {
        self.predict_on(arch, &Machine::of_arch(arch))
    }

    /// The same for a given GPU.
    pub fn predict_on(&self, arch: &str, machine: &Machine) -> Result<Report, Error> {
        let mut report = self.prepared(arch, machine)?;
        report.decide(order(&report.candidates).first().copied(), Decision::Model);
        Ok(report)
    }

    /// The stored winner for this device; without one, or on a device without a clock of its own, what the cost model puts
    /// first.
    pub fn choose(&self, device: &Device, arch: &str) -> Result<Report, Error> {
        let machine = machine_of(device, arch);
        let mut report = self.predict_on(arch, &machine)?;
        report.device = name_of(device);
        if let Some(cache) = self.cache {
            let (stored, problem) = Store::of(cache, &report.entry()).get();
            report.notes.extend(problem);
            if let Some(entry) = stored {
                self.recall(&mut report, &entry, &machine);
            }
        }
        Ok(report)
    }

    /// Finds the fastest configuration on this device. The tensors among `args` are as before when it returns; `args` stand in
    /// the order of the kernel's run-time parameters.
    pub fn tune(&self, device: &Device, args: &[Arg<'_>]) -> Result<Report, Error> {
        let started = Instant::now();
        let arch = device.arch();
        let mut report = self.choose(device, &arch)?;
        let is_stored = |c: &Candidate| c.stored.is_some() || c.dropped.is_some();
        if report.decision == Decision::Stored && !self.is_fresh && report.candidates.iter().all(is_stored) {
            return Ok(report);
        }
        if !device.is_cuda() && !self.is_anywhere {
            report.notes.push(format!("nothing was timed: the {device} has no clock of a GPU; the cost model decides"));
            return Ok(report);
        }
        let mut timed = order(&report.candidates);
        if !self.is_fresh {
            let mut by_time: Vec<usize> =
                timed.iter().copied().filter(|c| report.candidates[*c].stored.is_some()).collect();
            by_time.sort_by(|a, b| {
                report.candidates[*a].stored.partial_cmp(&report.candidates[*b].stored).unwrap_or(a.cmp(b))
            });
            let again: Vec<usize> = by_time.into_iter().take(COMPARED).collect();
            timed.retain(|c| report.candidates[*c].stored.is_none() || again.contains(c));
        }
        let machine = machine_of(device, &arch);
        let kernels = self.load(device, &arch, &machine, &timed, &mut report, started)?;
        report.loading = started.elapsed();
        let mut expected: Vec<usize> = order(&report.candidates);
        expected.retain(|c| kernels.contains_key(c));
        let tuning = self.decorators(&arch)?;
        let mut timer = DeviceTimer::new(device, args, &tuning, &kernels, &report, started)?;
        if self.is_wide {
            let written = expected.iter().copied().find(|c| report.candidates[*c].is_written);
            for (wrong, why) in timer.check(written, &expected)? {
                report.candidates[wrong].dropped = Some(why);
                expected.retain(|c| *c != wrong);
            }
        }
        let outcome = race(&expected, report.candidates.len(), &self.plan, &mut timer);
        timer.restore()?;
        let outcome = outcome?;
        for (candidate, times) in report.candidates.iter_mut().zip(outcome.times) {
            if times.failed {
                candidate.dropped.get_or_insert_with(|| "does not fit the device".into());
            }
            candidate.times = times;
        }
        report.is_cut = outcome.is_cut;
        match outcome.winner {
            Some(winner) => report.decide(Some(winner), Decision::Timed),
            None if report.is_cut => report.notes.push("the budget ended before anything was timed".into()),
            None => return Err(self.nothing_runs(&report)),
        }
        report.elapsed = started.elapsed();
        if let Some(cache) = self.cache.filter(|_| report.decision == Decision::Timed) {
            let entry = report.entry();
            report.notes.extend(Store::of(cache, &entry).put(&entry));
        }
        Ok(report)
    }

    /// All configurations, with what the cost model says of each.
    fn prepared(&self, arch: &str, machine: &Machine) -> Result<Report, Error> {
        let started = Instant::now();
        let tuning = self.decorators(arch)?;
        let written: Vec<Candidate> = tuning.choices.iter().cloned().map(Candidate::written).collect();
        let integers = self.integers();
        let tuned = |name: &str| tuning.choices.iter().any(|choice| choice.value(name).is_some());
        let mut spec = self.spec.clone();
        spec.args.retain(|arg| !tuned(&arg.name));
        let tensors = self.tensor_bytes();
        let what = Estimated { program: self.program, spec: &spec, arch, integers: &integers, machine, tensors };
        let mut candidates = self.estimated(written, &what, "estimating")?;
        if self.is_wide {
            let has_products = candidates.iter().filter_map(|c| c.work.as_ref()).any(|w| !w.products.is_empty());
            let more = space::space(&tuning.choices, &self.spec, has_products);
            let more = more.into_iter().map(|choice| Candidate { choice, ..Candidate::default() }).collect();
            let mut more = self.estimated(more, &what, "the space")?;
            let best: Vec<usize> = order(&more).into_iter().take(WIDE).collect();
            candidates.extend(best.into_iter().map(|i| std::mem::take(&mut more[i])));
        }
        let kernel = self.program.kernel(self.spec.kernel.as_deref())?.name.clone();
        let mut report = Report::new(kernel, arch, candidates);
        report.key = self.key(&tuning);
        report.spec = spec;
        report.is_tuned = tuning.is_tuned;
        report.elapsed = started.elapsed();
        let differ = |a: &Candidate| a.choice.values != report.candidates[0].choice.values;
        if self.grid.is_constant() && report.candidates.iter().any(differ) {
            report.notes.push(
                "the grid is the same for all configurations, though they have different parameters: write it as an \
                 expression such as \"cdiv(n, BLOCK)\""
                    .into(),
            );
        }
        Ok(report)
    }

    fn estimated(&self, mut list: Vec<Candidate>, what: &Estimated<'_>, title: &str) -> Result<Vec<Candidate>, Error> {
        for candidate in &mut list {
            candidate.grid = self.grid.sizes(&candidate.choice, what.integers)?;
        }
        let estimated = parallel::each(list.len(), title, self.shows_progress, |i| {
            let mut candidate = list[i].clone();
            candidate.estimate(what);
            Some(candidate)
        });
        Ok(estimated.into_iter().flatten().collect())
    }

    /// Compiles and loads configurations on all processors, the first ones first.
    fn load(
        &self,
        device: &Device,
        arch: &str,
        machine: &Machine,
        timed: &[usize],
        report: &mut Report,
        started: Instant,
    ) -> Result<HashMap<usize, Kernel>, Error> {
        let seen: Mutex<HashMap<Code, usize>> = Mutex::default();
        let candidates = &report.candidates;
        let spec = &report.spec;
        // Half of the budget is for timing.
        let is_late = || self.plan.budget.is_some_and(|budget| started.elapsed() > budget / 2);
        let loaded = parallel::each(timed.len(), "compiling", self.shows_progress, |i| {
            if i > 0 && is_late() {
                return None;
            }
            let number = timed[i];
            let candidate = &candidates[number];
            let spec = spec.with_choice(&candidate.choice);
            let compiled = spec.specialize(self.program).and_then(|specialization| {
                rtc_compiler::compile(self.program, &specialization, arch, String::new(), &mut Silent)
            });
            let artifact = match compiled {
                Ok(compiled) => compiled.artifact,
                Err(failure) => return Some(Loaded::Dropped(reason(&failure))),
            };
            let code: Code = (
                artifact.ptx.clone(),
                artifact.metadata.shared_bytes,
                artifact.metadata.threads_per_block,
                candidate.grid,
            );
            // The first of several that are the same is loaded.
            let first = *seen.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_insert(number);
            if first != number {
                return Some(Loaded::Same(first));
            }
            Some(match device.load(&artifact.ptx, &artifact.metadata) {
                Ok(kernel) => Loaded::Kernel(Box::new(kernel)),
                Err(error) => Loaded::Dropped(error.to_string()),
            })
        });
        let tensors = self.tensor_bytes();
        let mut kernels = HashMap::new();
        for (number, loaded) in timed.iter().copied().zip(loaded) {
            let candidate = &mut report.candidates[number];
            match loaded {
                Some(Loaded::Kernel(kernel)) => {
                    if let Some(usage) = kernel.usage() {
                        candidate.assembled(usage, machine, tensors);
                    }
                    kernels.insert(number, *kernel);
                }
                Some(Loaded::Same(other)) => candidate.same_as = Some(other),
                Some(Loaded::Dropped(why)) => candidate.dropped = Some(why),
                None => report.is_cut = true,
            }
        }
        if kernels.is_empty() {
            return Err(self.nothing_runs(report));
        }
        Ok(kernels)
    }

    fn nothing_runs(&self, report: &Report) -> Error {
        let reason = report.candidates.iter().find_map(|c| c.dropped.clone());
        Error::NothingRuns { kernel: report.kernel.clone(), reason: reason.unwrap_or_else(|| "there is none".into()) }
    }

    /// Takes over stored times of what is still the same code, and the stored winner.
    fn recall(&self, report: &mut Report, entry: &Entry, machine: &Machine) {
        let stored = |candidate: &Candidate| {
            let setting = Setting::of(&candidate.choice);
            let record = entry.records.iter().find(|r| r.setting == setting)?;
            (record.code == candidate.code()).then_some(record.milliseconds)
        };
        report.candidates.iter_mut().for_each(|candidate| candidate.stored = stored(candidate));
        let winner = report.candidates.iter().position(|c| Setting::of(&c.choice) == entry.winner);
        // A winner of a wider space stands in no source.
        let winner = winner.or_else(|| {
            let choice = entry.winner.choice()?;
            let integers = self.integers();
            let grid = self.grid.sizes(&choice, &integers).ok()?;
            let mut candidate = Candidate { choice, grid, ..Candidate::default() };
            let tensors = self.tensor_bytes();
            let (program, spec, arch) = (self.program, &report.spec, &report.arch);
            candidate.estimate(&Estimated { program, spec, arch, integers: &integers, machine, tensors });
            candidate.stored = stored(&candidate);
            report.candidates.push(candidate);
            Some(report.candidates.len() - 1)
        });
        let is_known = |number: &usize| report.candidates[*number].stored.is_some();
        report.decide(winner.filter(is_known), Decision::Stored);
    }

    fn integers(&self) -> Vec<(String, i64)> {
        let constexprs = self.spec.args.iter().filter_map(|arg| match &arg.kind {
            rtc_compiler::ArgKind::Constexpr(value) => Some((arg.name.clone(), HostValue::Value(value.clone()))),
            _ => None,
        });
        let number = |(name, value): (String, HostValue)| match value {
            HostValue::Value(ConstValue::Int(n)) => Some((name, i64::try_from(n).ok()?)),
            HostValue::Value(ConstValue::Bool(b)) => Some((name, b.into())),
            _ => None,
        };
        self.arguments.iter().cloned().chain(constexprs).filter_map(number).collect()
    }

    /// Bytes of all tensors whose sizes are known.
    fn tensor_bytes(&self) -> Option<f64> {
        let bytes = |value: &HostValue| match value {
            HostValue::Tensor { dtype, shape } => {
                let elements: u64 = shape.as_ref()?.iter().product();
                Some((elements * u64::from(dtype.bytes())) as f64)
            }
            _ => Some(0.0),
        };
        self.arguments.iter().map(|(_, value)| bytes(value)).sum()
    }

    /// What the best configuration depends on: the arguments in `key`, and the types of tensors.
    fn key(&self, tuning: &Tuning) -> serde_json::Map<String, serde_json::Value> {
        let mut key = serde_json::Map::new();
        for (name, value) in &self.arguments {
            match value {
                HostValue::Value(value) if tuning.key.contains(name) => {
                    drop(key.insert(name.clone(), key_value(value)))
                }
                HostValue::Tensor { dtype, .. } => drop(key.insert(name.clone(), dtype.to_string().into())),
                _ => {}
            }
        }
        key
    }
}

/// What tells launches apart: PTX, shared memory, threads of a block, grid.
type Code = (String, u32, u32, [u32; 3]);

enum Loaded {
    Kernel(Box<Kernel>),
    Same(usize),
    Dropped(String),
}

fn machine_of(device: &Device, arch: &str) -> Machine {
    let machine = Machine::of_arch(arch);
    if device.is_cuda() { machine.with_multiprocessors(device.multiprocessors()) } else { machine }
}

/// The name that results are kept under: that of the GPU, without its number.
fn name_of(device: &Device) -> String {
    let name = device.to_string();
    name.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')')).map_or(name.clone(), str::to_owned)
}

impl Report {
    /// The results as an entry of `tuned.json`.
    pub fn entry(&self) -> Entry {
        let record = |c: &Candidate| {
            let times = c.same_as.map_or(&c.times, |other| &self.candidates[other].times);
            let milliseconds = times.median().or(c.stored)?;
            let runs = times.runs.len() as u32;
            Some(Record { setting: Setting::of(&c.choice), milliseconds, runs, code: c.code().to_owned() })
        };
        Entry {
            kernel: self.kernel.clone(),
            device: self.device.clone(),
            arch: self.arch.clone(),
            signature: self.signature(),
            key: self.key.clone(),
            winner: self.winner().map(|c| Setting::of(&c.choice)).unwrap_or_default(),
            records: self.candidates.iter().filter_map(record).collect(),
        }
    }
}

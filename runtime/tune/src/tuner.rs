//! The steps of tuning.

mod ahead;
mod recall;
mod settings;

use crate::candidate::{Candidate, Estimated, order};
use crate::counted::CounterClock;
use crate::device_timer::DeviceTimer;
use crate::devices::{alike, machine_of, name_of, replicas};
use crate::finals::Finals;
use crate::halving::{Plan, race};
use crate::load::{Load, Loaded, Ready};
use crate::records::Records;
use crate::report::{Decision, TuningReport};
use crate::shard::{Shard, ShardPlan, part};
use crate::store::Store;
use crate::team::{Team, with_all};
use crate::tuned::key_value;
use crate::{Error, GridFn, Machine, parallel, space};
use rtc_abi::spec::ConstValue;
use rtc_build::Assembler;
use rtc_cache::Cache;
use rtc_compiler::{HostValue, Program, Spec, Tuning};
use rtc_runtime::{Arg, Device};
use std::collections::HashMap;
use std::time::Instant;

/// How many configurations of the wider space are compiled, the best by the cost model.
const WIDE: usize = 64;
/// How many configurations with stored times run again beside new ones, so that both are compared at one clock.
const COMPARED: usize = 3;

/// The target of the spans of this crate.
const TARGET: &str = "rtc::tune";

/// Finds the fastest configuration of a kernel.
///
/// ```
/// use rtc_compiler::{Program, Signature, Source, Spec};
/// use rtc_tune::{GridFn, Tuner};
/// let text = "@triton.autotune([triton.Config({'B': b}) for b in (64, 1024)], key=['n'])\n\
///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
///             tl.store(x + i, 1.0, mask=i < n)\n";
/// let program = Program::parse(&[Source::new("fill.rt", text)]);
/// let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
/// let tuner = Tuner::new(&program, spec).integer("n", 1 << 20).grid(GridFn::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]));
/// // Without a GPU the cost model decides.
/// let report = tuner.predict("sm_90a")?;
/// assert_eq!(report.candidates.len(), 2);
/// assert_eq!(report.winner().unwrap().grid[0], 1024);
/// assert!(report.to_svg().starts_with("<svg "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tuner<'p> {
    program: &'p Program,
    spec: Spec,
    arguments: Vec<(String, HostValue)>,
    grid: GridFn,
    plan: Plan,
    is_wide: bool,
    shows_progress: bool,
    cache: Option<&'p Cache>,
    is_fresh: bool,
    is_anywhere: bool,
    by_counters: bool,
    shard: Option<Shard>,
    in_bounds: bool,
    assembler: Option<Assembler>,
}

impl<'p> Tuner<'p> {
    /// A tuner of the kernel that `spec` names; parameters that configurations and heuristics set may be left out of it.
    pub fn new(program: &'p Program, spec: Spec) -> Tuner<'p> {
        Tuner {
            program,
            spec,
            arguments: Vec::new(),
            grid: GridFn::new([1.into(), 1.into(), 1.into()]),
            plan: Plan::default(),
            is_wide: false,
            shows_progress: false,
            cache: None,
            is_fresh: false,
            is_anywhere: false,
            by_counters: false,
            shard: None,
            in_bounds: false,
            assembler: None,
        }
    }

    /// What the decorators say for these arguments.
    ///
    /// # Errors
    ///
    /// [`Error::Compiler`] if there is no such kernel or target, or the decorators cannot be computed.
    pub fn decorators(&self, arch: &str) -> Result<Tuning, Error> {
        let kernel = self.program.kernel(self.spec.kernel.as_deref())?;
        Ok(self.program.tuning(&kernel.name, Some(&self.arguments), arch)?)
    }

    /// The configurations in the order of the cost model, for the usual GPU of a target; nothing is compiled to the end and
    /// nothing runs.
    ///
    /// # Errors
    ///
    /// As for [`Tuner::decorators`]; [`Error::Grid`] if the grid cannot be computed, [`Error::NothingRuns`] if no
    /// configuration can be compiled.
    pub fn predict(&self, arch: &str) -> Result<TuningReport, Error> {
        self.predict_on(arch, &Machine::of_arch(arch))
    }

    /// The same for a given GPU.
    ///
    /// # Errors
    ///
    /// As for [`Tuner::predict`].
    pub fn predict_on(&self, arch: &str, machine: &Machine) -> Result<TuningReport, Error> {
        let mut report = self.prepared(arch, machine)?;
        report.decide(order(&report.candidates).first().copied(), Decision::Model);
        Ok(report)
    }

    /// The stored winner for this device; without one, or on a device without a clock of its own, what the cost model puts
    /// first.
    ///
    /// # Errors
    ///
    /// As for [`Tuner::predict`].
    pub fn choose(&self, device: &Device, arch: &str) -> Result<TuningReport, Error> {
        let started = Instant::now();
        let machine = machine_of(device, arch);
        let mut report = self.predict_on(arch, &machine)?;
        report.device = name_of(device);
        if let (Some(cache), Some(_)) = (self.cache, self.shard) {
            self.recall_records(&mut report, cache);
        } else if let Some(cache) = self.cache {
            let (stored, problem) = Store::of(cache, &report.entry()).get();
            report.notes.extend(problem);
            if let Some(entry) = stored {
                self.recall(&mut report, &entry, &machine);
            }
        }
        report.phases.estimating = started.elapsed();
        Ok(report)
    }

    /// Whether times of two devices compare: they are of one model.
    pub fn is_alike(one: &Device, other: &Device) -> bool {
        (name_of(one), one.arch()) == (name_of(other), other.arch())
    }

    /// Whether there is something to time after [`Tuner::choose`].
    pub fn is_open(&self, chosen: &TuningReport) -> bool {
        let is_stored = |c: &Candidate| c.stored_milliseconds.is_some() || c.dropped.is_some() || c.is_reference;
        self.is_fresh || chosen.decision != Decision::Stored || !chosen.candidates.iter().all(is_stored)
    }

    /// Finds the fastest configuration on this device. The tensors among `args` are as before when it returns; `args` stand in
    /// the order of the kernel's run-time parameters; a tensor descriptor is one argument.
    ///
    /// # Errors
    ///
    /// As for [`Tuner::choose`]; [`Error::Devices`] for devices that do not go together, [`Error::UnknownTensor`] for a
    /// tensor of the decorators that is no argument, [`Error::NothingRuns`] if no configuration can run, and
    /// [`Error::Launch`] or [`Error::Runtime`] if a device fails.
    pub fn tune(&self, device: &Device, args: &[Arg<'_>]) -> Result<TuningReport, Error> {
        self.tune_on(std::slice::from_ref(device), args)
    }

    /// The same on several devices of one model at the same time. `args` are those of the first; the others get copies of
    /// the tensors. Each configuration is timed on one device alone, and the fastest of all devices once more on the first.
    ///
    /// ```no_run
    /// # fn f(tuner: rtc_tune::Tuner<'_>, args: &[rtc_runtime::Arg<'_>]) -> Result<(), Box<dyn std::error::Error>> {
    /// use rtc_runtime::Device;
    /// let devices = (0..Device::cuda_count()?).map(Device::cuda).collect::<Result<Vec<_>, _>>()?;
    /// let report = tuner.tune_on(&devices, args)?; // `args` of the first device
    /// println!("{} on {} GPUs", report, report.devices);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Tuner::tune`].
    pub fn tune_on(&self, devices: &[Device], args: &[Arg<'_>]) -> Result<TuningReport, Error> {
        let device = alike(devices)?;
        self.tune_chosen(devices, args, self.choose(device, &device.arch().to_string())?)
    }

    /// The same after [`Tuner::choose`] for the first device, which gave `report`.
    ///
    /// ```no_run
    /// # fn f(tuner: rtc_tune::Tuner<'_>, device: &rtc_runtime::Device, args: &[rtc_runtime::Arg<'_>])
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let mut report = tuner.choose(device, &device.arch().to_string())?;
    /// if tuner.is_open(&report) {
    ///     report = tuner.tune_chosen(std::slice::from_ref(device), args, report)?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Tuner::tune`].
    pub fn tune_chosen(
        &self,
        devices: &[Device],
        args: &[Arg<'_>],
        mut report: TuningReport,
    ) -> Result<TuningReport, Error> {
        let device = alike(devices)?;
        let arch = report.arch.clone();
        // The budget is for all of it.
        let _span =
            tracing::info_span!(target: TARGET, "tune", kernel = report.kernel, devices = devices.len()).entered();
        let now = Instant::now();
        let started = now.checked_sub(report.phases.estimating).unwrap_or(now);
        if !self.is_open(&report) {
            return Ok(report);
        }
        if !device.is_cuda() && !self.is_anywhere && !self.by_counters {
            report.notes.push(format!("nothing was timed: the {device} has no clock of a GPU; the cost model decides"));
            return Ok(report);
        }
        let mut timed = order(&report.candidates);
        // A shard may have nothing to time.
        if self.shard.is_some() && timed.iter().all(|c| report.candidates[*c].is_reference) {
            return Ok(report);
        }
        if !self.is_fresh {
            let mut by_time: Vec<usize> =
                timed.iter().copied().filter(|c| report.candidates[*c].stored_milliseconds.is_some()).collect();
            by_time.sort_by(|a, b| {
                report.candidates[*a]
                    .stored_milliseconds
                    .partial_cmp(&report.candidates[*b].stored_milliseconds)
                    .unwrap_or(a.cmp(b))
            });
            let again: Vec<usize> = by_time.into_iter().take(COMPARED).collect();
            timed.retain(|c| report.candidates[*c].stored_milliseconds.is_none() || again.contains(c));
        }
        let devices = &devices[..devices.len().min(timed.len()).max(1)];
        report.devices = devices.len();
        let machine = machine_of(device, &arch);
        // Tensors are copied to the other devices while the configurations are compiled.
        let (kernels, replicas) = std::thread::scope(|scope| {
            let replicas = (devices.len() > 1).then(|| scope.spawn(|| replicas(devices, args)));
            let kernels = self.load(devices, &arch, &machine, &timed, &mut report, started);
            let joined = replicas.map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            (kernels, joined.unwrap_or_else(|| Ok(Vec::new())))
        });
        let (kernels, replicas) = (kernels?, replicas?);
        if kernels.iter().all(HashMap::is_empty) {
            return Ok(report);
        }
        let clock = || CounterClock { machine, tensors: self.tensor_bytes() };
        report.clock = self.by_counters.then(clock);
        report.is_assembled = kernels.iter().flat_map(HashMap::values).any(|ready| ready.kernel.is_cubin());
        report.phases.compiling = now.elapsed();
        let tuning = self.decorators(&arch)?;
        with_all(args, &replicas, &mut |lists| self.timed(devices, lists, &tuning, &kernels, &mut report, started))?;
        report.elapsed = started.elapsed();
        if let Some(cache) = self.cache.filter(|_| report.decision == Decision::Timed) {
            let entry = report.entry();
            match self.shard {
                Some(_) => report.notes.extend(Records::of(cache, &entry).put_all(&entry, &report.candidates)),
                None => report.notes.extend(Store::of(cache, &entry).put(&entry)),
            }
        }
        Ok(report)
    }

    /// Times what is loaded, and decides.
    fn timed(
        &self,
        devices: &[Device],
        lists: &[&[Arg<'_>]],
        tuning: &Tuning,
        kernels: &[HashMap<usize, Ready>],
        report: &mut TuningReport,
        started: Instant,
    ) -> Result<(), Error> {
        let _span = tracing::debug_span!(target: TARGET, "time").entered();
        let mut expected: Vec<usize> = order(&report.candidates);
        expected.retain(|c| kernels.iter().any(|ready| ready.contains_key(c)));
        let plan = Plan {
            milliseconds: tuning.rep,
            together: if devices.len() > 1 { devices.len() * 64 } else { self.plan.together },
            ..self.plan
        };
        // The same launch gives the same counters.
        let plan = if self.by_counters { Plan { first: 1, most: 1, milliseconds: None, ..plan } } else { plan };
        let begun = Instant::now();
        let mut race = {
            let mut team = team(devices, lists, tuning, kernels, report, started)?;
            if self.is_wide {
                let written = expected.iter().copied().find(|c| report.candidates[*c].is_written);
                for (wrong, why) in team.check(written, &expected)? {
                    report.candidates[wrong].dropped = Some(why);
                    expected.retain(|c| *c != wrong);
                }
            }
            // A reference is timed only where a configuration of the shard is the same code.
            let has_same = |c: &usize| report.candidates.iter().any(|other| other.same_as == Some(*c));
            expected.retain(|c| !report.candidates[*c].is_reference || has_same(c));
            report.phases.preparing = begun.elapsed();
            let outcome = race(&expected, report.candidates.len(), &plan, &mut team);
            team.restore()?;
            outcome?
        };
        report.phases.timing = begun.elapsed() - report.phases.preparing;
        let begun = Instant::now();
        if !race.is_cut {
            let _span = tracing::debug_span!(target: TARGET, "compare").entered();
            let params = report.arguments().map(|metadata| metadata.params).unwrap_or_default();
            let finals =
                Finals { device: &devices[0], args: lists[0], params: &params, tuning, kernels, report, started };
            finals.run(&mut race, &plan)?;
            report.phases.comparing = begun.elapsed();
        }
        for (candidate, times) in report.candidates.iter_mut().zip(race.times) {
            if times.failed {
                candidate.dropped.get_or_insert_with(|| "does not fit the device".into());
            }
            candidate.times = times;
        }
        report.is_cut = race.is_cut;
        match race.winner {
            Some(winner) => {
                report.decide(Some(winner), Decision::Timed);
                tracing::info!(target: TARGET, winner = %report.candidates[winner].choice, "timed");
            }
            None if self.shard.is_some() && !report.is_cut => {}
            None if report.is_cut => report.notes.push("the budget ended before anything was timed".into()),
            None => return Err(self.nothing_runs(report)),
        }
        Ok(())
    }

    /// All configurations, with what the cost model says of each.
    fn prepared(&self, arch: &str, machine: &Machine) -> Result<TuningReport, Error> {
        let _span = tracing::debug_span!(target: TARGET, "estimate", arch).entered();
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
            let has_dots = candidates.iter().filter_map(|c| c.work.as_ref()).any(|w| !w.dots.is_empty());
            let more = space::space(&tuning.choices, &self.spec, has_dots);
            let more = more.into_iter().map(|choice| Candidate { choice, ..Candidate::default() }).collect();
            let mut more = self.estimated(more, &what, "the space")?;
            let best: Vec<usize> = order(&more).into_iter().take(WIDE).collect();
            candidates.extend(best.into_iter().map(|i| std::mem::take(&mut more[i])));
        }
        let kernel = self.program.kernel(self.spec.kernel.as_deref())?.name.clone();
        let mut report = TuningReport::new(kernel, arch, candidates);
        report.key = self.key(&tuning);
        report.spec = spec;
        report.is_tuned = tuning.is_tuned;
        if let Some(shard) = self.shard {
            report.shard = Some(ShardPlan::of(shard, &report));
            report.candidates = part(shard, std::mem::take(&mut report.candidates));
        }
        report.elapsed = started.elapsed();
        let differ = |a: &Candidate| report.candidates.first().is_some_and(|b| a.choice.values != b.choice.values);
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

    /// Compiles and loads configurations on all processors, the first ones first. Gives what each device has.
    fn load(
        &self,
        devices: &[Device],
        arch: &str,
        machine: &Machine,
        timed: &[usize],
        report: &mut TuningReport,
        started: Instant,
    ) -> Result<Vec<HashMap<usize, Ready>>, Error> {
        let _span = tracing::debug_span!(target: TARGET, "compile", configurations = timed.len()).entered();
        let params = report.arguments().map(|metadata| metadata.params).unwrap_or_default();
        let (program, spec, shows_progress) = (self.program, &report.spec, self.shows_progress);
        let assembler = self.assembler.as_ref().filter(|_| devices.iter().all(Device::is_cuda));
        let (in_bounds, cache) = (self.in_bounds, self.cache);
        let load = Load { params: &params, program, spec, arch, assembler, shows_progress, in_bounds, cache };
        // Half of the budget is for timing.
        let is_late = || self.plan.budget.is_some_and(|budget| started.elapsed() > budget / 2);
        // Those that take the longest begin first, unless the time may not suffice for all.
        let mut timed = timed.to_vec();
        if self.plan.budget.is_none() {
            let registers = |number: &usize| report.candidates[*number].resources.map_or(0, |r| r.registers);
            timed.sort_by_key(|number| std::cmp::Reverse(registers(number)));
        }
        let loaded = load.all(devices, &report.candidates, &timed, is_late);
        let tensors = self.tensor_bytes();
        let mut kernels: Vec<HashMap<usize, Ready>> = devices.iter().map(|_| HashMap::new()).collect();
        for (number, loaded) in timed.into_iter().zip(loaded) {
            let candidate = &mut report.candidates[number];
            match loaded {
                Some(Loaded::Ready(from, ready)) => {
                    if let Some(usage) = ready.first().and_then(|ready| ready.kernel.usage()) {
                        candidate.assembled(usage, machine, tensors);
                    }
                    for (of_device, ready) in kernels[from..].iter_mut().zip(ready) {
                        of_device.insert(number, ready);
                    }
                }
                Some(Loaded::Same(other)) => candidate.same_as = Some(other),
                Some(Loaded::Dropped(why)) => candidate.dropped = Some(why),
                None => report.is_cut = true,
            }
        }
        for number in 0..report.candidates.len() {
            let Some(first) = report.candidates[number].same_as else { continue };
            let first = report.candidates[first].same_as.unwrap_or(first);
            let Candidate { resources, prediction, .. } = report.candidates[first].clone();
            let candidate = &mut report.candidates[number];
            (candidate.same_as, candidate.resources, candidate.prediction) = (Some(first), resources, prediction);
        }
        // Of a shard others may run.
        if kernels.iter().all(HashMap::is_empty) && self.shard.is_none() {
            return Err(self.nothing_runs(report));
        }
        Ok(kernels)
    }

    fn nothing_runs(&self, report: &TuningReport) -> Error {
        let reason = report.candidates.iter().find_map(|c| c.dropped.clone());
        Error::NothingRuns { kernel: report.kernel.clone(), reason: reason.unwrap_or_else(|| "there is none".into()) }
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
            HostValue::Tensor { dtype, shape } | HostValue::Descriptor { dtype, shape, .. } => {
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
                HostValue::Tensor { dtype, .. } | HostValue::Descriptor { dtype, .. } => {
                    drop(key.insert(name.clone(), dtype.to_string().into()))
                }
                _ => {}
            }
        }
        key
    }
}

/// A timer for each device, with its own tensors and what is loaded there.
pub(crate) fn team<'t>(
    devices: &[Device],
    lists: &[&'t [Arg<'t>]],
    tuning: &Tuning,
    kernels: &'t [HashMap<usize, Ready>],
    report: &TuningReport,
    started: Instant,
) -> Result<Team<'t>, Error> {
    let devices = devices.iter().zip(lists).zip(kernels);
    let timers = devices
        .map(|((device, args), kernels)| DeviceTimer::new(device, args, tuning, kernels, report, started))
        .collect::<Result<_, _>>()?;
    let predicted = |candidate: &Candidate| candidate.prediction.as_ref().map_or(1.0, |p| p.milliseconds);
    Ok(Team { timers, costs: report.candidates.iter().map(predicted).collect() })
}

//! The timer of a device: events around each launch, the L2 cache flushed before it, the tensors put back after all.

use crate::Error;
use crate::candidate::Candidate;
use crate::counted::CounterClock;
use crate::halving::Timer;
use crate::load::Ready;
use crate::report::TuningReport;
use rtc_abi::{Param, ParamType};
use rtc_compiler::{Choice, DType, Tuning};
use rtc_runtime::{Arg, Buffer, Device, Stream, internal::Snapshot};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Bytes that are written to have nothing of the tensors left in the L2 cache.
const FLUSHED: usize = 256 << 20;

pub(crate) struct DeviceTimer<'t> {
    stream: Stream,
    args: &'t [Arg<'t>],
    kernels: &'t HashMap<usize, Ready>,
    /// What the arguments stand for.
    params: Vec<Param>,
    choices: Vec<(Choice, [u32; 3])>,
    /// The tensors as they were.
    before: Snapshot<'t>,
    /// Places in `args` that are zeroed, and that are put back, before each run.
    zeroed: Vec<usize>,
    restored: Vec<usize>,
    /// Nothing on devices without a cache.
    flushed: Option<Buffer<u8>>,
    warm: HashSet<usize>,
    /// Times a launch by what it did, in the place of events.
    counters: Option<(CounterClock, Vec<Candidate>)>,
    /// Milliseconds that a configuration runs before it is timed, where the source says so.
    warmup: Option<f64>,
    started: Instant,
}

impl<'t> DeviceTimer<'t> {
    pub(crate) fn new(
        device: &Device,
        args: &'t [Arg<'t>],
        tuning: &Tuning,
        kernels: &'t HashMap<usize, Ready>,
        report: &TuningReport,
        started: Instant,
    ) -> Result<DeviceTimer<'t>, Error> {
        let visible = |ready: &Ready| ready.kernel.metadata().visible_params().to_vec();
        let params = report.arguments().map(|metadata| metadata.params);
        let params = params.or_else(|| kernels.values().next().map(visible)).unwrap_or_default();
        let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let places = |list: &'static str, wanted: &[String]| {
            let place = |name: &String| {
                let found = names.iter().position(|n| n == name);
                found.ok_or_else(|| Error::UnknownTensor { list, name: name.clone() })
            };
            wanted.iter().map(place).collect::<Result<Vec<usize>, Error>>()
        };
        let zeroed = places("reset_to_zero", &tuning.reset_to_zero)?;
        let restored = places("restore_value", &tuning.restore_value)?;
        // What no configuration writes stays as it is.
        let is_kept = |place: usize| {
            let name = names.get(place).copied().unwrap_or_default();
            let is_set = |choice: &Choice| choice.zeroed.iter().any(|zeroed| zeroed == name);
            zeroed.contains(&place)
                || restored.contains(&place)
                || report.candidates.iter().any(|c| is_set(&c.choice))
                || kernels.values().any(|ready| ready.writes(name))
        };
        // Before the copies of tensors, which may also stay on the host.
        let flushed = device.is_cuda().then(|| device.alloc(FLUSHED)).transpose()?;
        Ok(DeviceTimer {
            stream: device.default_stream().clone(),
            args,
            kernels,
            choices: report.candidates.iter().map(|c| (c.choice.clone(), c.grid)).collect(),
            before: Snapshot::take_some(device, args, is_kept)?,
            zeroed,
            restored,
            params,
            flushed,
            warm: HashSet::new(),
            counters: report.clock.clone().map(|clock| (clock, report.candidates.clone())),
            warmup: tuning.warmup,
            started,
        })
    }

    /// Whether it can run a configuration.
    pub(crate) fn has(&self, configuration: usize) -> bool {
        self.kernels.contains_key(&configuration)
    }

    /// Whether a configuration ran here before.
    pub(crate) fn is_warm(&self, configuration: usize) -> bool {
        self.warm.contains(&configuration)
    }

    /// Puts all tensors back.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        self.stream.synchronize()?;
        Ok(self.before.restore()?)
    }

    /// Runs a configuration once; says where its results differ from the expected ones.
    pub(crate) fn difference(&self, configuration: usize, expected: &[Vec<u8>]) -> Result<Option<String>, Error> {
        let Some(found) = self.results(configuration)? else { return Ok(None) };
        let params = &self.params;
        let dtype = |place: usize| match params.get(place).map(|param| &param.ty) {
            Some(ParamType::Descriptor { element, .. }) => *element,
            Some(ty) => ty.pointee().unwrap_or(DType::UInt8),
            None => DType::UInt8,
        };
        Ok(self.before.difference(expected, &found, dtype).map(|(place, element)| {
            let name = params.get(place).map_or("a tensor", |p| p.name.as_str());
            format!("computes something else: element {element} of `{name}` differs")
        }))
    }

    /// What the tensors hold after a launch on those of before.
    pub(crate) fn results(&self, configuration: usize) -> Result<Option<Vec<Vec<u8>>>, Error> {
        self.before.restore()?;
        self.clear(configuration)?;
        if self.launch(configuration)?.is_none() {
            return Ok(None);
        }
        self.stream.synchronize()?;
        Ok(Some(self.before.contents()?))
    }

    /// What must be done before each run, outside of what is timed.
    fn clear(&self, configuration: usize) -> Result<(), Error> {
        for place in &self.restored {
            self.before.restore_one(*place)?;
        }
        for place in &self.zeroed {
            self.before.zero(*place)?;
        }
        for name in &self.choices[configuration].0.zeroed {
            let Some(place) = self.params.iter().position(|p| p.name == *name) else {
                return Err(Error::UnknownTensor { list: "pre_hook", name: name.clone() });
            };
            self.before.zero(place)?;
        }
        Ok(())
    }

    /// Runs a configuration for as long as the source asks for, the first run included in what came before.
    fn warm_up(&self, configuration: usize) -> Result<(), Error> {
        let Some(milliseconds) = self.warmup.filter(|ms| *ms > 0.0) else { return Ok(()) };
        self.stream.synchronize()?;
        let start = Instant::now();
        while start.elapsed().as_secs_f64() * 1e3 < milliseconds {
            self.clear(configuration)?;
            self.launch(configuration)?;
            self.stream.synchronize()?;
        }
        Ok(())
    }

    /// Runs a configuration once; gives its time by the counters of the launch.
    fn count(&self, configuration: usize, clock: &CounterClock, candidate: &Candidate) -> Result<Option<f64>, Error> {
        self.clear(configuration)?;
        if self.launch(configuration)?.is_none() {
            return Ok(None);
        }
        self.stream.synchronize()?;
        let counters = self.kernels[&configuration].kernel.take_counters();
        let without = || {
            Error::Devices(
                "the device does not count what launches do: `Device::with_counters` gives one that does".into(),
            )
        };
        Ok(clock.milliseconds(candidate, &counters.ok_or_else(without)?))
    }

    /// Launches once; nothing for a configuration that needs more than the device has.
    fn launch(&self, configuration: usize) -> Result<Option<()>, Error> {
        let (choice, grid) = &self.choices[configuration];
        match self.kernels[&configuration].launch(&self.stream, *grid, self.args) {
            Ok(()) => Ok(Some(())),
            Err(rtc_runtime::Error::OutOfResources { .. }) => Ok(None),
            Err(error) => Err(Error::Launch { choice: choice.to_string(), error: error.into() }),
        }
    }
}

impl Timer for DeviceTimer<'_> {
    type Error = Error;

    fn run(&mut self, configurations: &[usize]) -> Result<Vec<Option<f64>>, Error> {
        if let Some((clock, candidates)) = &self.counters {
            return configurations.iter().map(|c| self.count(*c, clock, &candidates[*c])).collect();
        }
        let mut events = Vec::with_capacity(configurations.len());
        for configuration in configurations.iter().copied() {
            if self.warm.insert(configuration) {
                self.clear(configuration)?;
                if self.launch(configuration)?.is_none() {
                    events.push(None);
                    continue;
                }
                self.warm_up(configuration)?;
            }
            self.clear(configuration)?;
            // The device is busy with this while the host prepares the launch, so that its time has no part in the result.
            self.flushed.as_mut().map_or(Ok(()), Buffer::clear)?;
            let start = self.stream.record()?;
            let launched = self.launch(configuration)?;
            let end = self.stream.record()?;
            events.push(launched.map(|()| (start, end)));
        }
        let synchronized = self.stream.synchronize();
        synchronized.map_err(|error| {
            let all = configurations.iter().map(|c| self.choices[*c].0.to_string()).collect::<Vec<_>>();
            Error::Launch { choice: all.join(" or "), error: error.into() }
        })?;
        let time = |pair: Option<(rtc_runtime::Event, rtc_runtime::Event)>| match pair {
            Some((start, end)) => Ok(Some(end.elapsed_since(&start)?.as_secs_f64() * 1e3)),
            None => Ok(None),
        };
        events.into_iter().map(time).collect()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

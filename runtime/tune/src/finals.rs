//! The last comparison: the fastest on one device, and as a launch gets them.
//!
//! What could not be loaded on all devices, and was timed on one of them, is compared once more on the first. What `ptxas` assembled may be other code than a launch
//! gets: it is of another version than the driver's compiler, most often, and the times of both are the same, nearly always.
//! So the winner is loaded as for a launch; only if it is slower then, the others are, too.

use crate::Error;
use crate::halving::{Plan, Race, race};
use crate::load::Ready;
use crate::report::TuningReport;
use crate::tuner::team;
use rtc_abi::Param;
use rtc_compiler::Tuning;
use rtc_runtime::{Arg, Device};
use std::collections::HashMap;
use std::time::Instant;

/// What is within this factor of the fastest may be faster on another GPU of the same model.
const CLOSE: f64 = 1.04;
/// What the assembler made may differ by more from what the driver makes.
const CLOSE_ASSEMBLED: f64 = 1.1;
/// Times of the same code differ by less.
const SAME: f64 = 1.02;
/// The most that are compared.
const MOST: usize = 4;
/// Runs of each: they tell close ones apart, and were timed at length before.
const RUNS: u32 = 12;

pub(crate) struct Finals<'t> {
    /// The first device, and the arguments on it.
    pub device: &'t Device,
    pub args: &'t [Arg<'t>],
    pub params: &'t [Param],
    pub tuning: &'t Tuning,
    /// What each device has.
    pub kernels: &'t [HashMap<usize, Ready>],
    pub report: &'t TuningReport,
    pub started: Instant,
}

impl Finals<'_> {
    /// Puts the times and the winner of the last comparisons into `race`.
    pub(crate) fn run(&self, race: &mut Race, plan: &Plan) -> Result<(), Error> {
        let plan = &Plan { most: plan.most.min(RUNS), milliseconds: None, ..*plan };
        let closest = race.closest(CLOSE, MOST);
        let is_everywhere = |number: &usize| self.kernels.iter().all(|ready| ready.contains_key(number));
        if closest.len() > 1 && !closest.iter().all(is_everywhere) {
            let times = self.among(&closest, plan, |ready| ready.on(self.device, self.params))?;
            race.replace(&closest, times);
        }
        let Some(winner) =
            race.winner.filter(|winner| self.ready(*winner).is_some_and(|ready| ready.kernel.is_cubin()))
        else {
            return Ok(());
        };
        let assembled = race.times[winner].median();
        let closest = race.closest(CLOSE_ASSEMBLED, MOST);
        let as_launched = |ready: &Ready| ready.as_launched(self.device, self.params);
        let alone = self.among(&[winner], plan, as_launched)?;
        if alone.times[winner].median() <= assembled.map(|milliseconds| milliseconds * SAME) {
            race.replace(&[winner], alone);
        } else {
            race.replace(&closest, self.among(&closest, plan, as_launched)?);
        }
        Ok(())
    }

    /// A configuration as one of the devices has it.
    fn ready(&self, number: usize) -> Option<&Ready> {
        self.kernels.iter().find_map(|ready| ready.get(&number))
    }

    /// Times some of the configurations on the first device.
    fn among(
        &self,
        some: &[usize],
        plan: &Plan,
        load: impl Fn(&Ready) -> Result<Ready, String>,
    ) -> Result<Race, Error> {
        let loaded = some.iter().filter_map(|number| Some((*number, self.ready(*number)?)));
        let loaded = loaded.map(|(number, ready)| Ok((number, load(ready)?)));
        let loaded = loaded.collect::<Result<HashMap<_, _>, String>>().map_err(Error::Devices)?;
        let (devices, lists) = (std::slice::from_ref(self.device), [self.args]);
        // They are warm, and the source's warm-up is for each by itself.
        let tuning = Tuning { warmup: None, ..self.tuning.clone() };
        let mut timer = team(devices, &lists, &tuning, std::slice::from_ref(&loaded), self.report, self.started)?;
        let outcome = race(some, self.report.candidates.len(), plan, &mut timer);
        timer.restore()?;
        outcome
    }
}

//! Times of tunings before this one.

use super::Tuner;
use crate::Machine;
use crate::candidate::{Candidate, Estimated};
use crate::records::Records;
use crate::report::{Decision, TuningReport};
use crate::tuned::{Entry, Setting};
use rtc_cache::Cache;

impl Tuner<'_> {
    /// Takes over stored times of what is still the same code, and the stored winner.
    pub(super) fn recall(&self, report: &mut TuningReport, entry: &Entry, machine: &Machine) {
        let stored = |candidate: &Candidate| {
            let setting = Setting::of(&candidate.choice);
            let record = entry.records.iter().find(|r| r.setting == setting)?;
            (record.code == candidate.code()).then_some((record.milliseconds, record.runs))
        };
        for candidate in &mut report.candidates {
            take(candidate, stored(candidate));
        }
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
            // Without a time of its own it is not a configuration, as in an entry that is damaged.
            let times = stored(&candidate)?;
            take(&mut candidate, Some(times));
            report.candidates.push(candidate);
            Some(report.candidates.len() - 1)
        });
        let is_known = |number: &usize| report.candidates[*number].stored_milliseconds.is_some();
        report.decide(winner.filter(is_known), Decision::Stored);
    }

    /// Takes over the times of single configurations.
    pub(super) fn recall_records(&self, report: &mut TuningReport, cache: &Cache) {
        let records = Records::of(cache, &report.entry());
        for candidate in report.candidates.iter_mut().filter(|c| c.dropped.is_none() && !c.is_reference) {
            let record = records.get(&Setting::of(&candidate.choice), candidate.code(), candidate.grid);
            take(candidate, record.map(|record| (record.milliseconds, record.runs)));
        }
        let known =
            report.candidates.iter().enumerate().filter_map(|(number, c)| Some((number, c.stored_milliseconds?)));
        let best = known.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(number, _)| number);
        report.decide(best, Decision::Stored);
    }
}

/// Takes over a stored time and of how many runs it is.
fn take(candidate: &mut Candidate, stored: Option<(f64, u32)>) {
    candidate.stored_milliseconds = stored.map(|(milliseconds, _)| milliseconds);
    candidate.stored_runs = stored.map_or(0, |(_, runs)| runs);
}

//! The time of each variant: by the cost model, and of the best ones by the counters of a launch.

use super::variants::Variant;
use super::{Basis, Change, Estimate, Explainer, LEAST_GAIN};
use crate::{model, parallel};
use rtc_compiler::Spec;
use rtc_runtime::counters::Counters;

/// How many of the best variants are launched in the emulator.
const LAUNCHED: usize = 8;
/// How many of those that wrote the same results are enough.
const ENOUGH: usize = 3;
/// A variant whose blocks move or compute less than this share of the work leaves some of it out.
const COMPLETE: f64 = 0.95;

impl Explainer<'_> {
    /// The variants that are faster, and how many were tried. `estimate` is the launch as the cost model estimates it, `now`
    /// with its counts.
    pub(super) fn evaluated(
        &self,
        estimate: &Estimate,
        now: &Estimate,
        is_counted: bool,
        count: &mut dyn FnMut(&Spec) -> Option<Counters>,
        notes: &mut Vec<String>,
    ) -> (Vec<Change>, usize) {
        let variants = self.variants();
        let estimates = parallel::each(variants.len(), "evaluating changes", self.shows_progress, |i| {
            let other = self.estimate(&variants[i].spec).ok()?;
            let fits = model::misfit(&other.resources, &self.machine).is_none();
            (fits && !is_same(&other, estimate)).then_some(other)
        });
        let tensors = self.tensors();
        // Estimates compare with estimates.
        let expected = estimate.predict(tensors, &self.machine).milliseconds;
        let time = now.predict(tensors, &self.machine).milliseconds;
        let tried = estimates.iter().flatten().count();
        let mut gains: Vec<(f64, usize, &Estimate)> = Vec::new();
        let mut unchecked = 0;
        for (i, other) in estimates.iter().enumerate() {
            let Some(other) = other else { continue };
            let gain = expected / other.predict(tensors, &self.machine).milliseconds;
            if gain < LEAST_GAIN {
                continue;
            }
            // Without a launch no results are compared.
            if !is_counted && variants[i].is_doubtful && !is_complete(other, estimate) {
                unchecked += 1;
                continue;
            }
            gains.push((gain, i, other));
        }
        if unchecked > 0 {
            notes.push(format!(
                "{unchecked} changes of block sizes were left out: the grid does not depend on them, and only a counted launch \
                 compares results"
            ));
        }
        // Of equal gains the change that comes first is the smaller one.
        gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if !is_counted {
            let change = |(gain, i, _): (f64, usize, _)| change(&variants[i], Basis::Model, time, gain);
            return (gains.into_iter().map(change).collect(), tried);
        }
        let (mut changes, mut differing) = (Vec::new(), 0);
        for (_, i, other) in gains.into_iter().take(LAUNCHED) {
            let Some(counters) = count(&variants[i].spec) else {
                differing += 1;
                continue;
            };
            let gain = time / other.counted(&counters).predict(tensors, &self.machine).milliseconds;
            if gain >= LEAST_GAIN {
                changes.push(change(&variants[i], Basis::Counters, time, gain));
            }
            if changes.len() == ENOUGH {
                break;
            }
        }
        if differing > 0 {
            notes
                .push(format!("{differing} changes that looked faster fail or write other results, and were left out"));
        }
        (changes, tried)
    }
}

fn change(variant: &Variant, basis: Basis, time: f64, gain: f64) -> Change {
    Change {
        subject: variant.subject,
        what: variant.what.clone(),
        basis,
        milliseconds: Some(time / gain),
        gain: Some(gain),
        place: None,
        code: None,
    }
}

/// Whether both are the same code for the same grid.
fn is_same(one: &Estimate, other: &Estimate) -> bool {
    let code = |of: &Estimate| (of.metadata.source_hash.clone(), of.resources, of.grid);
    code(one) == code(other)
}

/// Whether a variant does as much work as the kernel in all.
fn is_complete(variant: &Estimate, kernel: &Estimate) -> bool {
    let all = |of: &Estimate| {
        let blocks = of.blocks() as f64;
        [of.work.read, of.work.written, of.work.dot_operations()].map(|each| each * blocks)
    };
    all(variant).into_iter().zip(all(kernel)).all(|(new, old)| new >= old * COMPLETE)
}

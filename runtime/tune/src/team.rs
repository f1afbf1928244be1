//! Several devices as one timer: they share the runs of a round, all at the same time.

use crate::Error;
use crate::device_timer::DeviceTimer;
use crate::halving::Timer;
use rtc_runtime::{Arg, internal::ArgumentCopies};
use std::collections::BTreeMap;
use std::time::Duration;

/// The timers of the devices, at least one.
pub(crate) struct Team<'t> {
    pub(crate) timers: Vec<DeviceTimer<'t>>,
    /// Milliseconds of each configuration: predicted at first, then as last timed.
    pub(crate) costs: Vec<f64>,
}

impl Team<'_> {
    /// Has each member do `work` on its share of the configurations at the same time; gives what came out in the order of
    /// `configurations`.
    fn shared<T: Send>(
        &mut self,
        configurations: &[usize],
        work: impl Fn(&mut DeviceTimer<'_>, &[usize]) -> Result<Vec<T>, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if let [timer] = &mut self.timers[..] {
            return work(timer, configurations);
        }
        let can = |device: usize, c: usize| self.timers[device].has(c).then(|| self.timers[device].is_warm(c));
        let members = deal(configurations, self.timers.len(), &self.costs, can);
        let mut shares = vec![Vec::new(); self.timers.len()];
        for (configuration, member) in configurations.iter().zip(&members) {
            shares[*member].push(*configuration);
        }
        let work = &work;
        let results = std::thread::scope(|scope| {
            let started: Vec<_> = self
                .timers
                .iter_mut()
                .zip(&shares)
                .map(|(timer, share)| {
                    scope.spawn(move || if share.is_empty() { Ok(Vec::new()) } else { work(timer, share) })
                })
                .collect();
            let joined = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(Vec::into_iter)
            });
            joined.collect::<Vec<_>>()
        });
        let mut results = results.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(members.iter().filter_map(|member| results[*member].next()).collect())
    }

    /// Puts all tensors back.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        self.timers.iter().try_for_each(DeviceTimer::restore)
    }

    /// Runs each configuration of the wider space once; gives those whose results differ from those of a written one.
    pub(crate) fn check(&mut self, written: Option<usize>, all: &[usize]) -> Result<Vec<(usize, String)>, Error> {
        let Some(written) = written else { return Ok(Vec::new()) };
        let expected = self.shared(&[written], |timer, share| share.iter().map(|c| timer.results(*c)).collect())?;
        let Some(Some(expected)) = expected.into_iter().next() else { return Ok(Vec::new()) };
        let wrong = self.shared(all, |timer, share| {
            let wrong = share.iter().map(|c| timer.difference(*c, &expected)).collect::<Result<Vec<_>, _>>()?;
            timer.restore()?;
            Ok(wrong)
        })?;
        Ok(all.iter().zip(wrong).filter_map(|(c, why)| Some((*c, why?))).collect())
    }
}

impl Timer for Team<'_> {
    type Error = Error;

    fn run(&mut self, configurations: &[usize]) -> Result<Vec<Option<f64>>, Error> {
        let times = self.shared(configurations, |timer, share| timer.run(share))?;
        for (configuration, time) in configurations.iter().zip(&times) {
            if let (Some(cost), Some(time)) = (self.costs.get_mut(*configuration), time) {
                *cost = *time;
            }
        }
        Ok(times)
    }

    fn elapsed(&self) -> Duration {
        self.timers.first().map_or(Duration::ZERO, Timer::elapsed)
    }
}

/// Which device does which run: of the runs of a configuration each device does as many as every other, so that GPUs of
/// different speeds are fair to all configurations; those left over go, the longest first, to whichever is done first. `can`
/// says whether a device has a configuration, and then whether it ran there before: a first run takes as long once more.
fn deal(runs: &[usize], devices: usize, costs: &[f64], can: impl Fn(usize, usize) -> Option<bool>) -> Vec<usize> {
    let mut members = vec![0; runs.len()];
    let mut loads = vec![0.0; devices];
    let cost = |configuration: usize| costs.get(configuration).copied().unwrap_or(1.0);
    let mut of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, configuration) in runs.iter().enumerate() {
        of.entry(*configuration).or_default().push(place);
    }
    let mut left = Vec::new();
    for (configuration, places) in of {
        let able: Vec<usize> = (0..devices).filter(|device| can(*device, configuration).is_some()).collect();
        let even = places.len() / able.len().max(1) * able.len();
        for (i, place) in places[..even].iter().enumerate() {
            members[*place] = able[i % able.len()];
            loads[able[i % able.len()]] += cost(configuration);
        }
        left.extend(places[even..].iter().map(|place| (configuration, *place)));
    }
    left.sort_by(|(a, p), (b, q)| cost(*b).total_cmp(&cost(*a)).then(p.cmp(q)));
    let mut extra: Vec<Vec<usize>> = vec![Vec::new(); devices];
    for (configuration, place) in left {
        let done = |device: usize| {
            let warm = can(device, configuration)?;
            let runs = if warm { 1.0 } else { 2.0 };
            (!extra[device].contains(&configuration)).then(|| loads[device] + runs * cost(configuration))
        };
        let first = (0..devices).filter_map(|device| Some((device, done(device)?)));
        if let Some((device, load)) = first.min_by(|(_, a), (_, b)| a.total_cmp(b)) {
            members[place] = device;
            loads[device] = load;
            extra[device].push(configuration);
        }
    }
    members
}

/// Gives `f` the arguments on every device: `own`, and after them those of each replica.
pub(crate) fn with_all<R>(own: &[Arg<'_>], replicas: &[ArgumentCopies], f: &mut dyn FnMut(&[&[Arg<'_>]]) -> R) -> R {
    fn more<R>(lists: &[&[Arg<'_>]], left: &[ArgumentCopies], f: &mut dyn FnMut(&[&[Arg<'_>]]) -> R) -> R {
        match left.split_first() {
            None => f(lists),
            Some((first, left)) => first.with_args(|args| {
                let mut lists: Vec<&[Arg<'_>]> = lists.to_vec();
                lists.push(args);
                more(&lists, left, f)
            }),
        }
    }
    more(&[own], replicas, f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_busy_for_the_same_time() {
        let costs: Vec<f64> = (0..41).map(|i| 1.0 + f64::from(i % 7)).collect();
        let runs: Vec<usize> = (0..41).collect();
        let members = deal(&runs, 2, &costs, |_, _| Some(false));
        let load = |device: usize| (0..41).filter(|i| members[*i] == device).map(|i| costs[i]).sum::<f64>();
        assert!((load(0) - load(1)).abs() <= 1.0, "{} {}", load(0), load(1));
    }

    #[test]
    fn runs_of_one_configuration_are_shared_evenly() {
        let runs = [2, 0, 2, 0, 2, 0, 2, 0, 1];
        let members = deal(&runs, 2, &[1.0, 8.0, 3.0], |_, _| Some(true));
        for configuration in [0, 2] {
            let on_first = runs.iter().zip(&members).filter(|(c, m)| **c == configuration && **m == 0).count();
            assert_eq!(on_first, 2);
        }
        // Only the second has it.
        let members = deal(&runs, 2, &[1.0; 3], |device, c| (device == 1 || c != 2).then_some(true));
        assert!(runs.iter().zip(&members).all(|(c, m)| *c != 2 || *m == 1));
    }

    #[test]
    fn a_configuration_stays_where_it_is_warm_unless_that_takes_longer() {
        let members = deal(&[0, 1], 2, &[5.0, 5.0], |device, c| Some(device == c));
        assert_eq!(members, [0, 1]);
        let members = deal(&[0, 1, 2], 2, &[5.0, 5.0, 5.0], |device, _| Some(device == 0));
        assert_eq!(members.iter().filter(|m| **m == 1).count(), 1);
    }
}

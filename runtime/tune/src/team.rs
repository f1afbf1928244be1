//! Several devices as one timer: each configuration runs on one of them, all devices at the same time.

use crate::Error;
use crate::device_timer::DeviceTimer;
use crate::halving::Timer;
use rtc_runtime::{Arg, Replica};
use std::collections::HashMap;
use std::time::Duration;

/// The timers of the devices, at least one, and which of them each configuration belongs to.
pub(crate) struct Team<'t> {
    pub(crate) timers: Vec<DeviceTimer<'t>>,
    pub(crate) member: HashMap<usize, usize>,
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
        let mut shares = vec![Vec::new(); self.timers.len()];
        for configuration in configurations {
            shares[self.member.get(configuration).copied().unwrap_or(0)].push(*configuration);
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
        let of = |configuration: &usize| results[self.member.get(configuration).copied().unwrap_or(0)].next();
        Ok(configurations.iter().filter_map(of).collect())
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
        self.shared(configurations, |timer, share| timer.run(share))
    }

    fn elapsed(&self) -> Duration {
        self.timers.first().map_or(Duration::ZERO, Timer::elapsed)
    }
}

/// Gives `f` the arguments on every device: `own`, and after them those of each replica.
pub(crate) fn with_all<R>(own: &[Arg<'_>], replicas: &[Replica], f: &mut dyn FnMut(&[&[Arg<'_>]]) -> R) -> R {
    fn more<R>(lists: &[&[Arg<'_>]], left: &[Replica], f: &mut dyn FnMut(&[&[Arg<'_>]]) -> R) -> R {
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

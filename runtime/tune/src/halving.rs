//! Successive halving: all configurations are timed a little, the better half more, and so on.
//!
//! The configurations of a round take turns, one run each, in an order that is rotated from turn to turn: a GPU at its
//! power limit changes its clock over tens of milliseconds, so that configurations timed one after the other would be
//! compared at different clocks.

use rtc_runtime::internal::quantile;
use std::time::Duration;

/// What times runs. Tests plant times here.
pub(crate) trait Timer {
    /// Why a run failed for good; ends the tuning.
    type Error;

    /// Runs these configurations in this order; one may stand there several times. Gives milliseconds, or nothing for one that cannot run.
    ///
    /// # Errors
    ///
    /// A failure that ends the tuning.
    fn run(&mut self, configurations: &[usize]) -> Result<Vec<Option<f64>>, Self::Error>;

    /// The time since the tuning began.
    fn elapsed(&self) -> Duration;
}

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Runs of each configuration before the first are dropped.
    pub first: u32,
    /// Runs of a configuration that stays to the end.
    pub most: u32,
    /// Milliseconds that a configuration which stays to the end runs in all, in the place of `most` runs.
    pub milliseconds: Option<f64>,
    /// No run begins after this.
    pub budget: Option<Duration>,
    /// How many configurations share a turn before the device is waited for.
    pub together: usize,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { first: 1, most: 30, milliseconds: None, budget: None, together: 16 }
    }
}

/// The most runs of a configuration, however short they are.
const MOST_RUNS: f64 = 10_000.0;

impl Plan {
    /// How often a configuration runs that stays to the end, where the best takes so many milliseconds.
    fn runs_at(&self, best: f64) -> u32 {
        match self.milliseconds {
            Some(all) => (all / best).ceil().clamp(f64::from(self.first.max(1)), MOST_RUNS) as u32,
            None => self.most,
        }
    }
}

/// Times of one configuration.
///
/// ```
/// let times = rtc_tune::RunTimes { milliseconds: vec![3.0, 1.0, 2.0], failed: false };
/// assert_eq!((times.median(), times.quantile(1.0)), (Some(2.0), Some(3.0)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTimes {
    /// One for each run, in their order.
    pub milliseconds: Vec<f64>,
    /// It could not run.
    pub failed: bool,
}

impl RunTimes {
    /// The median in milliseconds.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// A quantile in milliseconds, by linear interpolation.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile(&self.milliseconds, q)
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Race {
    /// The times of each configuration, by its number.
    pub times: Vec<RunTimes>,
    /// The fastest of those that were timed longest.
    pub winner: Option<usize>,
    /// The budget ended it.
    pub is_cut: bool,
}

impl Race {
    /// The winner and those within a factor of it that were timed about as long: the fastest first, at most so many.
    pub(crate) fn closest(&self, factor: f64, most: usize) -> Vec<usize> {
        let Some(winner) = self.winner else { return Vec::new() };
        let median = |c: usize| self.times[c].median().unwrap_or(f64::INFINITY);
        let is_close = |c: &usize| {
            let times = &self.times[*c];
            !times.failed
                && 2 * times.milliseconds.len() > self.times[winner].milliseconds.len()
                && median(*c) <= median(winner) * factor
        };
        let mut close: Vec<usize> = (0..self.times.len()).filter(is_close).collect();
        close.sort_by(|a, b| median(*a).total_cmp(&median(*b)));
        close.truncate(most);
        close
    }

    /// Takes the times and the winner of another race among some of them.
    pub(crate) fn replace(&mut self, some: &[usize], race: Race) {
        let Race { mut times, winner, is_cut } = race;
        if winner.is_none() {
            return;
        }
        for number in some.iter().filter(|c| !times[**c].milliseconds.is_empty()).copied().collect::<Vec<_>>() {
            self.times[number] = std::mem::take(&mut times[number]);
        }
        (self.winner, self.is_cut) = (winner, is_cut);
    }
}

/// Configurations slower than the best by this factor are dropped at once.
const HOPELESS: f64 = 2.0;
/// Configurations within this factor of the one at the cut stay, too.
const CLOSE: f64 = 1.02;

/// Times configurations, the first ones first, until one is left or all that are left were run often enough.
///
/// # Errors
///
/// The first of the timer.
pub(crate) fn race<T: Timer>(order: &[usize], count: usize, plan: &Plan, timer: &mut T) -> Result<Race, T::Error> {
    let mut race = Race { times: vec![RunTimes::default(); count], winner: None, is_cut: false };
    let mut left: Vec<usize> = order.to_vec();
    let (mut runs, mut wanted) = (0, plan.first.max(1));
    let is_over = |timer: &T| plan.budget.is_some_and(|budget| timer.elapsed() >= budget);
    'rounds: loop {
        // The first turn keeps the order: the model's favourites must have been timed when the budget ends early.
        let turn = |run: u32| {
            let mut turn = left.clone();
            turn.rotate_left(run as usize % left.len().max(1));
            turn
        };
        let round: Vec<usize> = (runs..wanted).flat_map(turn).collect();
        for group in round.chunks(plan.together.max(1)) {
            if is_over(timer) {
                race.is_cut = true;
                break 'rounds;
            }
            for (configuration, time) in group.iter().zip(timer.run(group)?) {
                let times = &mut race.times[*configuration];
                match time {
                    Some(milliseconds) => times.milliseconds.push(milliseconds),
                    None => times.failed = true,
                }
            }
        }
        runs = wanted;
        left.retain(|c| !race.times[*c].failed);
        left.sort_by(|a, b| race.times[*a].median().partial_cmp(&race.times[*b].median()).unwrap_or(a.cmp(b)));
        let Some(best) = left.first().and_then(|c| race.times[*c].median()) else { break };
        let most = plan.runs_at(best);
        if runs >= most {
            break;
        }
        let half = left.len().div_ceil(2);
        let cut = race.times[left[half - 1]].median().unwrap_or(best);
        // Few runs are not conclusive: no configuration close to the best is dropped for them.
        let close = if runs < 4 { 1.05 } else { CLOSE };
        left.retain(|c| {
            let median = race.times[*c].median().unwrap_or(f64::INFINITY);
            median <= best * HOPELESS && (median <= cut || median <= best * close)
        });
        if left.len() == 1 && runs >= 3 {
            break;
        }
        wanted = (runs * 2).min(most);
    }
    // Of those that were run most.
    let most = race.times.iter().filter(|t| !t.failed).map(|t| t.milliseconds.len()).max().unwrap_or(0);
    let candidates = order.iter().copied().filter(|c| {
        let times = &race.times[*c];
        !times.failed && !times.milliseconds.is_empty() && 2 * times.milliseconds.len() > most
    });
    let median = |c: &usize| race.times[*c].median().unwrap_or(f64::INFINITY);
    race.winner = candidates.min_by(|a, b| median(a).total_cmp(&median(b)));
    Ok(race)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted times with noise that is the same in every run of the test.
    struct Fake {
        times: Vec<Option<f64>>,
        noise: f64,
        state: u64,
        runs: usize,
        spent: f64,
    }

    impl Fake {
        fn new(times: Vec<Option<f64>>, noise: f64) -> Fake {
            Fake { times, noise, state: 1, runs: 0, spent: 0.0 }
        }

        fn random(&mut self) -> f64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.state >> 40) as f64 / (1u64 << 24) as f64
        }
    }

    impl Timer for Fake {
        type Error = ();

        fn run(&mut self, configurations: &[usize]) -> Result<Vec<Option<f64>>, ()> {
            let run = |c: &usize| {
                self.runs += 1;
                let noise = 1.0 + self.noise * self.random();
                let time = self.times[*c].map(|time| time * noise);
                self.spent += time.unwrap_or(0.0);
                time
            };
            Ok(configurations.iter().map(run).collect())
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs_f64(self.spent * 1e-3)
        }
    }

    /// A hundred different times, the best at `best`.
    fn hundred(best: usize) -> Vec<Option<f64>> {
        (0..100).map(|i| Some(if i == best { 1.0 } else { 1.06 + 0.05 * ((i * 37) % 100) as f64 })).collect()
    }

    #[test]
    fn the_best_is_found_wherever_it_stands_and_with_few_runs() {
        let order: Vec<usize> = (0..100).collect();
        for best in [0, 1, 50, 99] {
            let mut timer = Fake::new(hundred(best), 0.04);
            let race = race(&order, 100, &Plan::default(), &mut timer).unwrap();
            assert_eq!(race.winner, Some(best));
            assert!(race.times[best].milliseconds.len() >= 3);
            // In full it were 3,000.
            assert!(timer.runs < 500, "{} runs", timer.runs);
            assert!(!race.is_cut);
        }
    }

    #[test]
    fn failures_are_left_out() {
        let mut times = hundred(7);
        times[7] = None;
        times[8] = Some(1.0);
        let order: Vec<usize> = (0..100).rev().collect();
        let race = race(&order, 100, &Plan::default(), &mut Fake::new(times, 0.0)).unwrap();
        assert_eq!(race.winner, Some(8));
        assert!(race.times[7].failed && race.times[7].milliseconds.is_empty());
        let none = super::race(&[0, 1], 2, &Plan::default(), &mut Fake::new(vec![None, None], 0.0)).unwrap();
        assert_eq!(none.winner, None);
    }

    #[test]
    fn the_budget_is_kept_and_the_first_in_order_are_timed() {
        let order: Vec<usize> = (0..100).rev().collect();
        let plan = Plan { budget: Some(Duration::from_millis(30)), together: 4, ..Plan::default() };
        let mut timer = Fake::new(hundred(97), 0.0);
        let race = race(&order, 100, &plan, &mut timer).unwrap();
        assert!(race.is_cut);
        assert_eq!(race.winner, Some(97));
        // One group may be in flight when the budget ends.
        assert!(timer.spent < 30.0 + 4.0 * 6.1, "{}", timer.spent);
        assert!(race.times[0].milliseconds.is_empty());
    }

    #[test]
    fn a_measurement_lasts_as_long_as_the_source_says() {
        let plan = Plan { milliseconds: Some(64.0), ..Plan::default() };
        let order: Vec<usize> = (0..100).collect();
        let times = (0..100).map(|i| Some(if i < 2 { 1.0 } else { 3.0 })).collect();
        let mut timer = Fake::new(times, 0.001);
        let race = race(&order, 100, &plan, &mut timer).unwrap();
        assert_eq!((race.times[0].milliseconds.len(), race.times[1].milliseconds.len()), (64, 64));
        assert_eq!(race.closest(1.01, 4).len(), 2);
        assert_eq!(race.closest(1.01, 1), [race.winner.unwrap()]);
        // One that is longer than that runs once all the same.
        let long = Plan { milliseconds: Some(0.5), ..Plan::default() };
        let one = super::race(&[0, 1], 2, &long, &mut Fake::new(vec![Some(1.0), Some(2.0)], 0.0)).unwrap();
        assert_eq!((one.winner, one.times[0].milliseconds.len()), (Some(0), 1));
    }

    #[test]
    fn finals_replace_what_was_timed_before() {
        let plan = Plan { most: 8, ..Plan::default() };
        let of = |order: &[usize], times: [f64; 3]| {
            super::race(order, 3, &plan, &mut Fake::new(times.map(Some).to_vec(), 0.0)).unwrap()
        };
        let mut first = of(&[0, 1, 2], [1.0, 1.01, 1.5]);
        assert_eq!((first.winner, first.closest(1.04, 4)), (Some(0), vec![0, 1]));
        let slow = first.times[2].clone();
        first.replace(&[0, 1], of(&[0, 1], [1.03, 1.02, 0.1]));
        assert_eq!(first.winner, Some(1));
        assert_eq!((first.times[0].median(), first.times[1].median()), (Some(1.03), Some(1.02)));
        assert_eq!(first.times[2], slow);
    }

    #[test]
    fn one_configuration_is_timed_to_the_end() {
        let plan = Plan { most: 8, ..Plan::default() };
        let race = race(&[0], 1, &plan, &mut Fake::new(vec![Some(2.0)], 0.1)).unwrap();
        assert_eq!(race.winner, Some(0));
        assert!((3..=8).contains(&race.times[0].milliseconds.len()));
    }

    #[test]
    fn quantiles_are_interpolated() {
        let times = RunTimes { milliseconds: vec![3.0, 1.0, 2.0, 4.0], failed: false };
        assert_eq!((times.median(), times.quantile(0.2), times.quantile(1.0)), (Some(2.5), Some(1.6), Some(4.0)));
        assert_eq!(RunTimes::default().median(), None);
    }
}

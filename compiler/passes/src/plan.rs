//! A plan for a kernel: decisions about its schedule that are given instead of made by the passes.
//!
//! Each pass of `schedule` decides something (how many slots a ring has, whether a dot of the next iteration overlaps one of
//! this), and does it. A plan gives such decisions from outside, for experiments and for tests: any plan leaves the meaning
//! of a kernel unchanged. What a kernel does not allow is left out, such as an overlap where a loop has one dot, and rings
//! get fewer slots until shared memory holds them.

use std::fmt;
use std::str::FromStr;

/// Decisions that are given; the passes make those that are `None`.
///
/// As text: `ring=4 slots=3 ahead=2 resident=no`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Slots of the rings between producer and consumer warps.
    pub ring: Option<u32>,
    /// Slots of the rings of loops in which all warps copy.
    pub slots: Option<u32>,
    /// By how many iterations the copies of such loops are ahead.
    pub ahead: Option<u32>,
    /// Whether the dot of an iteration stays in flight in the next one, in such loops.
    pub in_flight: Option<bool>,
    /// Whether loads beside copies are prefetched into registers.
    pub registers: Option<bool>,
    /// Whether producers copy operands that stay in shared memory throughout the loops.
    pub resident: Option<bool>,
    /// Whether producers copy row vectors.
    pub rows: Option<bool>,
    /// Whether the first of two chained dots overlaps the second one of the iteration before, or a dot the promotion of the
    /// one before.
    pub chained: Option<bool>,
    /// Whether independent dots of an iteration are begun early.
    pub early: Option<bool>,
    /// Whether reductions are hidden under the last dot of an iteration.
    pub reductions: Option<bool>,
    /// Whether conversions are hidden under a dot.
    pub conversions: Option<bool>,
}

/// A text that is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no part of a plan: ring, slots and ahead are numbers from 1 to 16; in_flight, registers, resident, rows, chained, early, reductions and conversions are yes or no"
)]
pub struct NoPlan(
    /// The part.
    pub String,
);

/// The numbers that a plan may give.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=16;

impl Plan {
    fn numbers(&mut self) -> [(&'static str, &mut Option<u32>); 3] {
        [("ring", &mut self.ring), ("slots", &mut self.slots), ("ahead", &mut self.ahead)]
    }

    fn answers(&mut self) -> [(&'static str, &mut Option<bool>); 8] {
        [
            ("in_flight", &mut self.in_flight),
            ("registers", &mut self.registers),
            ("resident", &mut self.resident),
            ("rows", &mut self.rows),
            ("chained", &mut self.chained),
            ("early", &mut self.early),
            ("reductions", &mut self.reductions),
            ("conversions", &mut self.conversions),
        ]
    }

    /// A plan in which `pick` chooses each decision: it is given how many choices there are, the first of which leaves the
    /// decision to the passes.
    pub fn drawn(mut pick: impl FnMut(u32) -> u32) -> Plan {
        let mut plan = Plan::default();
        for (_, number) in plan.numbers() {
            *number = Some(pick(7)).filter(|number| *number > 0);
        }
        for (_, answer) in plan.answers() {
            *answer = [None, Some(false), Some(true)][pick(3) as usize % 3];
        }
        plan
    }
}

impl FromStr for Plan {
    type Err = NoPlan;

    fn from_str(text: &str) -> Result<Plan, NoPlan> {
        let mut plan = Plan::default();
        for part in text.split_whitespace() {
            let wrong = || NoPlan(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            if let Some((_, number)) = plan.numbers().into_iter().find(|(known, _)| *known == name) {
                *number = Some(value.parse().ok().filter(|number| NUMBERS.contains(number)).ok_or_else(wrong)?);
                continue;
            }
            let answer = plan.answers().into_iter().find(|(known, _)| *known == name).ok_or_else(wrong)?.1;
            *answer = match value {
                "yes" => Some(true),
                "no" => Some(false),
                _ => return Err(wrong()),
            };
        }
        Ok(plan)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plan = *self;
        let numbers = plan.numbers().map(|(name, number)| number.map(|number| format!("{name}={number}")));
        let answer = |answer: bool| if answer { "yes" } else { "no" };
        let answers = plan.answers().map(|(name, given)| given.map(|given| format!("{name}={}", answer(given))));
        let parts: Vec<String> = numbers.into_iter().chain(answers).flatten().collect();
        f.write_str(&parts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_back() {
        let text = "ring=4 slots=3 ahead=2 in_flight=no rows=yes";
        let plan: Plan = text.parse().expect("it is a plan");
        assert_eq!((plan.ring, plan.ahead, plan.in_flight, plan.rows), (Some(4), Some(2), Some(false), Some(true)));
        assert_eq!(plan.to_string(), text);
        assert_eq!("".parse(), Ok(Plan::default()));
        for wrong in ["ring", "ring=0", "ring=17", "rows=maybe", "depth=3"] {
            assert_eq!(wrong.parse::<Plan>(), Err(NoPlan(wrong.to_owned())));
        }
    }

    #[test]
    fn every_decision_is_drawn() {
        let last = Plan::drawn(|choices| choices - 1);
        assert_eq!(last.to_string().split(' ').count(), 11, "{last}");
        assert_eq!(Plan::drawn(|_| 0), Plan::default());
        assert_eq!(last.to_string().parse(), Ok(last));
    }
}

//! A plan for a kernel: decisions about its schedule that are given instead of made by the passes.
//!
//! Each pass of `schedule` decides something (how many slots a ring has, whether a dot of the next iteration overlaps one of
//! this), and does it. A plan gives such decisions from outside, for experiments and for tests: any plan leaves the meaning
//! of a kernel unchanged. Decisions that are not applicable to a kernel are left out, such as an overlap where a loop has one
//! dot, and rings get fewer slots until shared memory holds them.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Decisions that are given; the passes make those that are `None`.
///
/// As text: `ring=4 slots=3 ahead=2 resident=no`, in any order, on one line or several; `#` begins a comment.
///
/// ```
/// use rtc_abi::Plan;
/// let plan: Plan = "ring=4\nrows=no  # by the consumers".parse()?;
/// assert_eq!((plan.ring, plan.rows, plan.slots), (Some(4), Some(false), None));
/// let error = "ring=4 depth=3".parse::<Plan>().unwrap_err();
/// assert_eq!(&"ring=4 depth=3"[error.at], "depth=3");
/// # Ok::<(), rtc_abi::InvalidPlan>(())
/// ```
///
/// Decisions are listed, exchanged and drawn at random by name:
///
/// ```
/// use rtc_abi::{Plan, PlanValue};
/// let plan = Plan { ring: Some(4), ..Plan::default() };
/// assert_eq!(plan.given(), [("ring", PlanValue::Number(4))]);
/// assert_eq!(plan.with("ring", None).with("rows", Some(PlanValue::Answer(true))).to_string(), "rows=yes");
/// assert_eq!(Plan::drawn(|choices| choices - 1).ring, Some(6));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
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
    /// Whether producers copy row vectors, and rows that a list selects however small their tiles are.
    pub rows: Option<bool>,
    /// Whether the first of two chained dots overlaps the second one of the iteration before, or a dot the promotion of the
    /// one before.
    pub chained: Option<bool>,
    /// Whether independent dots of an iteration are begun early.
    pub early: Option<bool>,
    /// Whether reductions are hidden under the last dot of an iteration.
    pub reductions: Option<bool>,
    /// Whether conversions, reads of rows and the computation of operands are hidden under a dot.
    pub conversions: Option<bool>,
}

/// A text that is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidPlan {
    /// The offending part, in bytes of the text.
    pub at: Range<usize>,
    /// The reason.
    pub message: String,
}

/// The numbers that a plan may give.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=16;

/// A decision that a plan gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanValue {
    /// A number of slots or iterations.
    Number(u32),
    /// Whether something is done.
    Answer(bool),
}

impl fmt::Display for PlanValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanValue::Number(number) => write!(f, "{number}"),
            PlanValue::Answer(answer) => f.write_str(if *answer { "yes" } else { "no" }),
        }
    }
}

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

    /// The decisions that are given, by name.
    pub fn given(mut self) -> Vec<(&'static str, PlanValue)> {
        let numbers = self.numbers().map(|(name, number)| number.map(|number| (name, PlanValue::Number(number))));
        let answers = self.answers().map(|(name, answer)| answer.map(|answer| (name, PlanValue::Answer(answer))));
        numbers.into_iter().chain(answers).flatten().collect()
    }

    /// The same plan with another decision of that name, or with none. A name or a kind of decision that does not exist changes
    /// nothing.
    pub fn with(mut self, name: &str, given: Option<PlanValue>) -> Plan {
        let (mut number, mut answer) = (None, None);
        match given {
            Some(PlanValue::Number(value)) => number = Some(value),
            Some(PlanValue::Answer(value)) => answer = Some(value),
            None => {}
        }
        self.numbers().into_iter().filter(|(known, _)| *known == name).for_each(|(_, own)| *own = number);
        self.answers().into_iter().filter(|(known, _)| *known == name).for_each(|(_, own)| *own = answer);
        self
    }

    /// A plan in which `pick` chooses each decision: its argument is the number of choices, the first of which leaves the
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

    /// Reads one part, such as `ring=4`.
    fn read(&mut self, part: &str) -> Result<(), String> {
        let Some((name, text)) = part.split_once('=') else {
            return Err(format!("`{part}` is not of the form NAME=VALUE"));
        };
        let repeated = || Err(format!("`{name}` is given twice"));
        if let Some((_, number)) = self.numbers().into_iter().find(|(known, _)| *known == name) {
            let value = text.parse().ok().filter(|value| NUMBERS.contains(value));
            let value = value.ok_or_else(|| {
                format!("`{name}` takes a number from {} to {}, not `{text}`", NUMBERS.start(), NUMBERS.end())
            })?;
            return if number.replace(value).is_some() { repeated() } else { Ok(()) };
        }
        if let Some((_, answer)) = self.answers().into_iter().find(|(known, _)| *known == name) {
            let value = match text {
                "yes" => true,
                "no" => false,
                _ => return Err(format!("`{name}` takes yes or no, not `{text}`")),
            };
            return if answer.replace(value).is_some() { repeated() } else { Ok(()) };
        }
        let numbers = self.numbers().map(|(name, _)| name).join(", ");
        let answers = self.answers().map(|(name, _)| name).join(", ");
        Err(format!("a plan has no `{name}`; {numbers} are numbers, {answers} are yes or no"))
    }
}

impl FromStr for Plan {
    type Err = InvalidPlan;

    fn from_str(text: &str) -> Result<Plan, InvalidPlan> {
        let mut plan = Plan::default();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let code = line.split('#').next().unwrap_or_default();
            let mut from = 0;
            for part in code.split_whitespace() {
                // Parts are found in order, so that equal ones differ in their place.
                let at = from + code[from..].find(part).unwrap_or_default();
                from = at + part.len();
                plan.read(part).map_err(|message| InvalidPlan { at: start + at..start + from, message })?;
            }
            start += line.len();
        }
        Ok(plan)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.given().into_iter().map(|(name, given)| format!("{name}={given}")).collect();
        f.write_str(&parts.join(" "))
    }
}

impl TryFrom<String> for Plan {
    type Error = InvalidPlan;

    fn try_from(text: String) -> Result<Plan, InvalidPlan> {
        text.parse()
    }
}

impl From<Plan> for String {
    fn from(plan: Plan) -> String {
        plan.to_string()
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
        assert_eq!("rows=yes # slots=9\n\n  in_flight=no\tahead=2\nslots=3 ring=4".parse(), Ok(plan));
        assert_eq!("".parse(), Ok(Plan::default()));
    }

    #[test]
    fn another_text_is_refused_with_its_place() {
        for (text, part, message) in [
            ("rows=yes ring", "ring", "`ring` is not of the form NAME=VALUE"),
            ("ring=1 ring=0", "ring=0", "`ring` takes a number from 1 to 16, not `0`"),
            ("slots=17", "slots=17", "`slots` takes a number from 1 to 16, not `17`"),
            ("# ahead=1\n rows=maybe", "rows=maybe", "`rows` takes yes or no, not `maybe`"),
            ("ring=4\nring=4", "ring=4", "`ring` is given twice"),
            (
                "depth=3",
                "depth=3",
                "a plan has no `depth`; ring, slots, ahead are numbers, in_flight, registers, resident, rows, chained, \
                 early, reductions, conversions are yes or no",
            ),
        ] {
            let error = text.parse::<Plan>().expect_err(text);
            assert_eq!((&text[error.at.clone()], error.message.as_str()), (part, message));
            assert_eq!(error.at.end, text.len(), "{text}");
        }
    }

    #[test]
    fn every_decision_is_drawn_and_exchanged() {
        let last = Plan::drawn(|choices| choices - 1);
        assert_eq!(last.given().len(), 11, "{last}");
        assert_eq!(Plan::drawn(|_| 0), Plan::default());
        assert_eq!(last.to_string().parse(), Ok(last));
        assert_eq!(last.with("ring", Some(PlanValue::Number(2))).ring, Some(2));
        assert_eq!(last.given().iter().fold(last, |plan, (name, _)| plan.with(name, None)), Plan::default());
    }
}

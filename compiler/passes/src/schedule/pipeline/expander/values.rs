//! The values that operations use in a step.

use rtc_ir::{Builder, Literal, Value};

use super::staged_loop::{Carried, Source};
use super::{Ends, Expansion, Step};
use crate::PassError;
use crate::pass::missing;

impl Expansion<'_> {
    /// The index of the iteration that a stage executes in a step.
    pub(super) fn index(&mut self, stage: u32, step: Step) -> Result<Value, PassError> {
        let carried = |age: u32| Carried { age, value: self.staged.args[0], stage: 0 };
        let more = match (self.staged.ends, step) {
            (_, Step::Before(step)) => (self.lower, step.saturating_sub(stage)),
            (Ends::Masked, _) => (self.index, self.staged.last - stage),
            (Ends::Peeled, Step::Steady) if stage == 0 => (self.index, 0),
            (Ends::Peeled, Step::Steady) => (self.within[&carried(stage)], 0),
            (Ends::Peeled, Step::After(step)) => (self.results[&carried(stage + 1 - step)], 0),
        };
        let (from, more) = more;
        if more == 0 {
            return Ok(from);
        }
        if let Some(known) = self.indices.get(&(stage, step)) {
            return Ok(*known);
        }
        let of = self.staged.of;
        let (ty, more) = (self.kernel.value_type(from), i64::from(more) * self.step);
        let more = Builder::before(self.kernel, of).constant_of(Literal::Int(more), ty)?;
        let index = self.place(step).builder(self.kernel).addi(from, more)?;
        self.indices.insert((stage, step), index);
        Ok(index)
    }

    /// What an operation of a stage uses for a value in a step.
    pub(super) fn value(&mut self, value: Value, stage: u32, step: Step) -> Result<Value, PassError> {
        match self.staged.source(self.kernel, value, stage)? {
            Source::Outside => Ok(value),
            Source::Index => self.index(stage, step),
            Source::Arg { number, stage: own } => {
                self.aged(Carried { age: stage - own, value, stage: own }, Some(number), step)
            }
            Source::Result { stage: own } => self.aged(Carried { age: stage - own, value, stage: own }, None, step),
        }
    }

    /// What was computed for a value so many iterations before the current one of its stage in a step. A loop-carried value has
    /// a number.
    fn aged(&mut self, of: Carried, number: Option<usize>, step: Step) -> Result<Value, PassError> {
        let missing = || missing("what an earlier stage computes");
        let step = match (step, number) {
            (Step::Before(step), Some(number)) => {
                let iteration = step.checked_sub(of.stage + of.age).ok_or_else(missing)?;
                if iteration == 0 {
                    return Ok(self.kernel.variadic(self.staged.of)[number]);
                }
                return self.value(self.staged.yields[number], of.stage, Step::Before(iteration - 1 + of.stage));
            }
            (Step::Before(step), None) => Step::Before(step.checked_sub(of.age).ok_or_else(missing)?),
            (Step::Steady, None) if of.age == 0 => Step::Steady,
            (Step::Steady, _) => return self.within.get(&of).copied().ok_or_else(missing),
            (Step::After(step), Some(_)) if of.age + 1 >= step => {
                return self.results.get(&Carried { age: of.age + 1 - step, ..of }).copied().ok_or_else(missing);
            }
            (Step::After(step), Some(number)) => {
                return self.value(self.staged.yields[number], of.stage, Step::After(step - 1 - of.age));
            }
            (Step::After(step), None) if of.age >= step => {
                return self.results.get(&Carried { age: of.age + 1 - step, ..of }).copied().ok_or_else(missing);
            }
            (Step::After(step), None) => Step::After(step - of.age),
        };
        self.made.get(&(of.value, of.stage, step)).copied().ok_or_else(missing)
    }

    /// What the steady state carries at first. For an iteration before the first one, it is of the first: nothing is done with
    /// it.
    pub(super) fn start(&mut self, of: Carried) -> Result<Value, PassError> {
        let user = of.stage + of.age;
        let step = Step::Before(self.prologue().max(user));
        match self.number(of.value) {
            Some(0) => self.index(user, step),
            number => self.aged(of, number.map(|number| number - 1), step),
        }
    }

    /// What the steady state carries on.
    pub(super) fn next(&mut self, of: Carried) -> Result<Value, PassError> {
        match (of.age, self.number(of.value)) {
            (0, Some(number)) => self.value(self.staged.yields[number - 1], of.stage, Step::Steady),
            (1, Some(0)) => Ok(self.index),
            (1, None) => self.aged(Carried { age: 0, ..of }, None, Step::Steady),
            (age, _) => {
                let younger = Carried { age: age - 1, ..of };
                self.within.get(&younger).copied().ok_or_else(|| missing("a carried value"))
            }
        }
    }

    /// The number of an argument of the loop's body.
    fn number(&self, value: Value) -> Option<usize> {
        self.staged.args.iter().position(|arg| *arg == value)
    }

    /// The loop-carried values after the last step.
    pub(super) fn last_values(&mut self) -> Result<Vec<Value>, PassError> {
        let values = (0..self.staged.yields.len()).map(|number| {
            let of = self.staged.carried_arg(self.kernel, number)?;
            let after = match self.staged.ends {
                Ends::Masked => 1,
                Ends::Peeled => of.stage + 1,
            };
            self.aged(of, Some(number), Step::After(after))
        });
        values.collect()
    }
}

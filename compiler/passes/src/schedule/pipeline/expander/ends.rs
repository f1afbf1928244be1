//! Whether a stage has an iteration in a step, and branches around operations that may have none.

use rtc_ir::{OpKind, Predicate, Value};

use super::masks::{goes_on, has_iteration};
use super::{Ends, Exists, Expansion, Place, Step};
use crate::PassError;

impl Expansion<'_> {
    /// The end of a branch for operations of a stage whose iteration exists on a condition.
    pub(super) fn open_guard(&mut self, stage: u32, step: Step, condition: Value) -> Result<Place, PassError> {
        if let Some((open, block)) = self.guard
            && open == stage
        {
            return Ok(Place::End(block, self.loc));
        }
        self.close_guard()?;
        let blocks = [self.kernel.new_block(), self.kernel.new_block()];
        Place::End(blocks[1], self.loc).builder(self.kernel).yield_values(&[])?;
        let place = self.place(step);
        place.builder(self.kernel).build(OpKind::IfElse {}, &[condition], &[], &[], &blocks, &[])?;
        self.guard = Some((stage, blocks[0]));
        Ok(Place::End(blocks[0], self.loc))
    }

    pub(super) fn close_guard(&mut self) -> Result<(), PassError> {
        if let Some((_, block)) = self.guard.take() {
            Place::End(block, self.loc).builder(self.kernel).yield_values(&[])?;
        }
        Ok(())
    }

    /// Whether the iteration exists that a stage executes in a step.
    pub(super) fn exists(&mut self, stage: u32, step: Step) -> Result<Exists, PassError> {
        if let Some(known) = self.exists.get(&(stage, step)) {
            return Ok(*known);
        }
        let exists = match self.staged.ends {
            Ends::Masked => self.is_before_end(stage, step)?,
            Ends::Peeled => self.is_behind_start(stage, step)?,
        };
        self.exists.insert((stage, step), exists);
        Ok(exists)
    }

    /// With [`Ends::Masked`]: iterations of early stages may be beyond the last one.
    fn is_before_end(&mut self, stage: u32, step: Step) -> Result<Exists, PassError> {
        let (iteration, outside) = match step {
            Step::Before(step) => (step - stage, true),
            _ => (self.staged.last - stage, false),
        };
        if iteration == 0 && !outside || outside && self.trips.is_some_and(|trips| trips > iteration.into()) {
            return Ok(Exists::Always);
        }
        if !outside && self.trips.is_some_and(|trips| trips <= iteration.into()) {
            return Ok(Exists::Never);
        }
        // The index comes first: operations of the stage use it.
        self.index(stage, step)?;
        let (of, place) = (self.staged.of, self.place(step));
        let more = i64::from(iteration) * self.step;
        let runs = if outside {
            has_iteration(self.kernel, of, place, self.lower, more)?
        } else {
            goes_on(self.kernel, of, place, self.index, more)?
        };
        Ok(Exists::If(runs))
    }

    /// With [`Ends::Peeled`]: iterations of late stages may be before the first one.
    fn is_behind_start(&mut self, stage: u32, step: Step) -> Result<Exists, PassError> {
        let more = match step {
            Step::Before(_) => 0,
            Step::Steady => stage.saturating_sub(1),
            Step::After(step) => stage - step,
        };
        match (more, step, self.several) {
            (0, ..) => Ok(Exists::Always),
            (1, Step::Steady, _) => {
                let mut builder = self.place(step).builder(self.kernel);
                Ok(Exists::If(builder.cmpi(self.index, self.begin, Predicate::Ne)?))
            }
            (1, _, Some(several)) => Ok(Exists::If(several)),
            _ => Err(PassError::Internal("a stage is too late for a peeled loop".into())),
        }
    }
}

//! Dots with operands in shared memory.
//!
//! An asynchronous dot has its result at once, but marked ([`Data::Sums`]): only `mma_wait` and `mma_await` take the mark off, and
//! only further dots may take marked accumulators as accumulators.

use std::rc::Rc;

use super::machine::{Machine, Stop};
use super::shared::{CopyId, Loaded, SharedError};
use super::value::Data;
use super::{FaultKind, FindingKind};
use crate::{Op, OpKind, Precision, Traits, Type, Value, view};

impl Machine<'_> {
    /// `mma`.
    pub(crate) fn mma(&mut self, op: Op) -> Result<(), Stop> {
        let dot = view::Mma::at(self.kernel, op);
        let lhs = self.operand_elements(op, dot.lhs())?;
        let rhs = self.operand_elements(op, dot.rhs())?;
        let accs = self.accs(op, [dot.lhs(), dot.rhs(), dot.acc()], &lhs, &rhs)?;
        self.set_result(op, accs);
        Ok(())
    }

    /// `dot_buffers`: threads read the buffers as `local_load` does.
    pub(crate) fn dot_buffers(&mut self, op: Op) -> Result<(), Stop> {
        let dot = view::DotBuffers::at(self.kernel, op);
        let mut read = |value: Value| -> Result<Vec<u64>, Stop> {
            let Some((slot, at)) = self.positions(value)? else { return Ok(Vec::new()) };
            let ty = self.whole(value);
            self.load_shared(op, ty, slot, &at)
        };
        let (lhs, rhs) = (read(dot.lhs())?, read(dot.rhs())?);
        let acc = self.elements(dot.acc())?.to_vec();
        let accs = self.dot_tiles([dot.lhs(), dot.rhs(), dot.acc()], &lhs, &rhs, acc, Precision::Ieee)?;
        let placed = self.place(self.result_type(op), accs);
        self.set_result(op, placed);
        Ok(())
    }

    /// `mma_async`: the buffers are read until the dot is complete.
    pub(crate) fn mma_async(&mut self, op: Op) -> Result<(), Stop> {
        let mut reads = Vec::new();
        let dot = view::MmaAsync::at(self.kernel, op);
        let lhs = self.start_operand(op, dot.lhs(), &mut reads)?;
        let rhs = self.start_operand(op, dot.rhs(), &mut reads)?;
        let accs = self.accs(op, [dot.lhs(), dot.rhs(), dot.acc()], &lhs, &rhs)?;
        let pending = &mut self.group.pending;
        pending.mmas.push_back(reads);
        let number = pending.complete + pending.mmas.len() as u64;
        let marked = match accs {
            Data::Many(slots) => Data::Sums(number, slots),
            other => other,
        };
        self.set_result(op, marked);
        Ok(())
    }

    /// `mma_await`: completes the dots that its accumulators are of.
    pub(crate) fn mma_await(&mut self, op: Op) -> Result<(), Stop> {
        let number = |data: &Data| if let Data::Sums(number, _) = data { *number } else { 0 };
        let last = self.all(self.kernel.variadic(op)).iter().map(number).max().unwrap_or(0);
        let begun = self.group.pending.complete + self.group.pending.mmas.len() as u64;
        self.mma_wait(op, (begun - last) as u32)
    }

    /// `mma_wait`: takes the marks off accumulators that are complete.
    pub(crate) fn mma_wait(&mut self, op: Op, pending: u32) -> Result<(), Stop> {
        while self.group.pending.mmas.len() > pending as usize {
            let reads = self.group.pending.mmas.pop_front().unwrap_or_default();
            self.group.pending.complete += 1;
            self.complete_all(reads)?;
        }
        let mut complete = self.all(self.kernel.variadic(op));
        for data in &mut complete {
            if let Data::Sums(number, slots) = data {
                if *number > self.group.pending.complete {
                    return Err(self.stop(FaultKind::Shared(SharedError::SumUnderWay)));
                }
                *data = Data::Many(slots.clone());
            }
        }
        self.set_results(op, complete);
        self.tick(1)
    }

    /// That an operation does not use accumulators of dots in flight, if it is none that may.
    pub(crate) fn check_sums(&self, op: Op) -> Result<(), Stop> {
        let data = self.kernel.op(op);
        let allowed = match data.kind {
            OpKind::MmaWait { .. } | OpKind::MmaAwait {} => return Ok(()),
            OpKind::MmaAsync {} => Some(2),
            // They are passed on; reductions use their elements.
            _ if data.kind.spec().traits.has(Traits::NESTED) => return Ok(()),
            _ => None,
        };
        let used = |(i, value): (usize, &Value)| Some(i) != allowed && matches!(self.get(*value), Data::Sums(..));
        match data.operands.iter().enumerate().any(used) {
            true => Err(self.stop(FaultKind::Shared(SharedError::SumUnderWay))),
            false => Ok(()),
        }
    }

    /// The accumulator of an operation with the dot of the operands added.
    fn accs(&mut self, op: Op, operands: [Value; 3], lhs: &[u64], rhs: &[u64]) -> Result<Data, Stop> {
        let (kernel, [_, _, acc]) = (self.kernel, operands);
        let keep = kernel.use_acc(op).is_none_or(|flag| self.scalar(flag) & 1 != 0);
        let slots = match self.get(acc) {
            Data::Sums(_, slots) => Data::Many(slots),
            data => data,
        };
        let acc = match self.elements_of(kernel.value_type(acc), slots)? {
            acc if keep => acc.to_vec(),
            acc => vec![0; acc.len()],
        };
        let accs = self.dot_tiles(operands, lhs, rhs, acc, Precision::Tf32)?;
        Ok(self.place(self.result_type(op), accs))
    }

    /// The elements of an operand, a tile or a buffer, in row-major order.
    fn operand_elements(&mut self, op: Op, value: Value) -> Result<Rc<Vec<u64>>, Stop> {
        let Some((slot, at)) = self.positions(value)? else { return self.elements(value) };
        let ty = self.whole(value);
        let loaded = self.shared.load_async(slot, &at).map_err(|refused| self.refuse(ty, refused))?;
        self.note_unwritten(op, ty, &loaded);
        Ok(Rc::new(loaded.bits))
    }

    /// The same, where a buffer is read from now on until the dot is complete.
    fn start_operand(&mut self, op: Op, value: Value, reads: &mut Vec<CopyId>) -> Result<Rc<Vec<u64>>, Stop> {
        let Some(place) = self.positions(value)? else { return self.elements(value) };
        let (ty, start) = (self.whole(value), self.start(op));
        let read = self.shared.start_read_async(place, start).map_err(|refused| self.refuse(ty, refused))?;
        self.note_unwritten(op, ty, &read.1);
        reads.push(read.0);
        Ok(Rc::new(read.1.bits))
    }

    /// Records a read of uninitialized elements.
    pub(super) fn note_unwritten(&mut self, op: Op, ty: Type, loaded: &Loaded) {
        if let Some(position) = loaded.unwritten {
            self.find(op, FindingKind::UnwrittenShared, ty, position);
        }
    }

    /// The type of a buffer's content as a whole tile, for reports.
    fn whole(&self, value: Value) -> Type {
        match self.kernel.value_type(value) {
            Type::Shared(buffer) => Type::tile(buffer.elem, buffer.shape),
            ty => ty,
        }
    }
}

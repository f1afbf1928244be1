//! Loops and branches: how each starts, and what it does when one of its blocks is done; see `frame.rs`.

use super::FaultKind;
use super::frame::{BlockValues, Exit};
use super::machine::{Machine, Stop};
use super::value::Data;
use crate::ops::eval::{mask, sign_extend};
use crate::{Elem, Op, view};

/// The iterations of a `for_range` that are still to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// How many.
    count: u64,
    /// The index of the next one.
    index: u64,
    step: u64,
    /// The type of the index.
    elem: Elem,
}

impl Machine<'_> {
    /// `for_range`.
    pub(crate) fn for_range(&mut self, op: Op, unsigned: bool) -> Result<(), Stop> {
        let kernel = self.kernel;
        let range = view::ForRange::at(kernel, op);
        let elem = kernel.value_type(range.lower()).elem().unwrap_or(Elem::I32);
        let number = |bits: u64| if unsigned { i128::from(bits) } else { i128::from(sign_extend(bits, elem)) };
        let [index, upper, step] = [range.lower(), range.upper(), range.step()].map(|v| number(self.scalar(v)));
        if index < upper && step <= 0 {
            return Err(self.stop(FaultKind::LoopStep(step)));
        }
        let count = if index < upper { (upper - index + step - 1) / step } else { 0 };
        let range = Range { count: count as u64, index: index as u64, step: step as u64, elem };
        self.iterate(op, range, self.all(kernel.variadic(op)))
    }

    /// The next iteration of a `for_range`, or its results.
    pub(crate) fn iterate(&mut self, op: Op, range: Range, carried: BlockValues) -> Result<(), Stop> {
        if range.count == 0 {
            self.set_results(op, carried);
            return Ok(());
        }
        self.tick(1)?;
        let kernel = self.kernel;
        let block = kernel.op(op).blocks[0];
        let args = &kernel.block(block).args;
        self.set(args[0], Data::Scalar(mask(range.index, range.elem)));
        let rest = Range { count: range.count - 1, index: range.index.wrapping_add(range.step), ..range };
        self.enter(block, &args[1..], carried, Exit::Iterate(op, rest));
        Ok(())
    }

    /// The first block of a `while_loop`.
    pub(crate) fn repeat(&mut self, op: Op, carried: BlockValues) -> Result<(), Stop> {
        self.tick(1)?;
        let block = self.kernel.op(op).blocks[0];
        self.enter(block, &self.kernel.block(block).args, carried, Exit::Condition(op));
        Ok(())
    }

    /// After the first block of a `while_loop`: the second one, or the results.
    pub(crate) fn decide(&mut self, op: Op, go_on: bool, handed: BlockValues) {
        if !go_on {
            return self.set_results(op, handed);
        }
        let block = self.kernel.op(op).blocks[1];
        self.enter(block, &self.kernel.block(block).args, handed, Exit::Repeat(op));
    }

    /// `if_else`.
    pub(crate) fn if_else(&mut self, op: Op) -> Result<(), Stop> {
        let data = self.kernel.op(op);
        let holds = self.scalar(view::IfElse::at(self.kernel, op).condition()) & 1 != 0;
        self.tick(1)?;
        self.enter(data.blocks[usize::from(!holds)], &[], BlockValues::new(), Exit::Branch(op));
        Ok(())
    }
}

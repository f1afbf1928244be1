//! Loops and branches.

use super::FaultKind;
use super::machine::{Machine, Stop};
use super::value::Data;
use crate::ops::eval::{mask, sign_extend};
use crate::{Block, Elem, Op, Value};

impl Machine<'_> {
    /// `for_range`.
    pub(crate) fn for_range(&mut self, op: Op, unsigned: bool) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let elem = kernel.value_type(data.operands[0]).elem().unwrap_or(Elem::I32);
        let number = |bits: u64| if unsigned { i128::from(bits) } else { i128::from(sign_extend(bits, elem)) };
        let [mut index, upper, step] = [0, 1, 2].map(|i| number(self.scalar(data.operands[i])));
        let block = data.blocks[0];
        let mut carried = self.all(kernel.variadic(op));
        if index < upper && step <= 0 {
            return Err(self.stop(FaultKind::LoopStep(step)));
        }
        while index < upper {
            self.tick(1)?;
            let args = &kernel.block(block).args;
            self.set(args[0], Data::Scalar(mask(index as u64, elem)));
            carried = self.run_with(block, &args[1..], carried)?.1;
            index += step;
        }
        self.set_results(op, carried);
        Ok(())
    }

    /// `while_loop`.
    pub(crate) fn while_loop(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let (before, after) = (data.blocks[0], data.blocks[1]);
        let mut carried = self.all(kernel.variadic(op));
        loop {
            self.tick(1)?;
            let (end, handed) = self.run_with(before, &kernel.block(before).args, carried)?;
            if end.is_none_or(|end| self.scalar(kernel.operand(end, 0)) & 1 == 0) {
                self.set_results(op, handed);
                return Ok(());
            }
            carried = self.run_with(after, &kernel.block(after).args, handed)?.1;
        }
    }

    /// `if_else`.
    pub(crate) fn if_else(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let holds = self.scalar(data.operands[0]) & 1 != 0;
        self.tick(1)?;
        let block = data.blocks[usize::from(!holds)];
        let (_, handed) = self.run_with(block, &[], Vec::new())?;
        self.set_results(op, handed);
        Ok(())
    }

    fn all(&self, values: &[Value]) -> Vec<Data> {
        values.iter().map(|v| self.get(*v)).collect()
    }

    fn set_results(&mut self, op: Op, values: Vec<Data>) {
        let kernel = self.kernel;
        for (result, data) in kernel.op(op).results.iter().zip(values) {
            self.set(*result, data);
        }
    }

    /// Runs a block on arguments; gives its terminator and what that hands over.
    fn run_with(&mut self, block: Block, args: &[Value], values: Vec<Data>) -> Result<(Option<Op>, Vec<Data>), Stop> {
        for (arg, data) in args.iter().zip(values) {
            self.set(*arg, data);
        }
        let end = self.block(block)?;
        let handed = end.map(|end| self.all(self.kernel.variadic(end))).unwrap_or_default();
        Ok((end, handed))
    }
}

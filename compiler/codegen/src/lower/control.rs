//! Loops and branches. Carried tiles are flattened: one MLIR value per register.

use rtc_ir::{Block, Op};

use super::{Lowering, Registers};
use crate::{
    emit::{Loop, Type, Value, type_of},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn for_range(&self, op: Op, unsigned: bool) -> Result<()> {
        let bound = |index| self.scalar(self.kernel.operand(op, index));
        let range = Loop { lower: bound(0)?, upper: bound(1)?, step: bound(2)?, unsigned };
        let initial = self.flatten(self.kernel.variadic(op))?;
        let body = self.kernel.op(op).blocks[0];
        let results = self.e.for_loop(range, &initial, |index, carried| {
            let (index_argument, arguments) = self.kernel.block(body).args.split_first().ok_or_else(no_index)?;
            self.set(*index_argument, vec![index]);
            self.unflatten(arguments, carried)?;
            Ok::<_, CodegenError>(flat(&self.block(body)?))
        })?;
        self.unflatten(&self.kernel.op(op).results, &results)
    }

    pub(super) fn while_loop(&self, op: Op) -> Result<()> {
        let initial = self.flatten(self.kernel.variadic(op))?;
        let (before, after) = (self.kernel.op(op).blocks[0], self.kernel.op(op).blocks[1]);
        let results = self.e.while_loop(
            &initial,
            |carried| {
                let handed = self.region(before, carried)?;
                let (condition, forwarded) = handed.split_first().ok_or_else(no_condition)?;
                Ok::<_, CodegenError>((condition[0], flat(forwarded)))
            },
            |carried| Ok(flat(&self.region(after, carried)?)),
        )?;
        self.unflatten(&self.kernel.op(op).results, &results)
    }

    pub(super) fn if_else(&self, op: Op) -> Result<()> {
        let data = self.kernel.op(op);
        let condition = self.scalar(data.operands[0])?;
        let mut types: Vec<Type<'c>> = Vec::new();
        for result in &data.results {
            types.extend(vec![self.element(self.elem(*result)?); self.register_count(*result)?]);
        }
        let branch = |block: Block| Ok::<_, CodegenError>(flat(&self.block(block)?));
        let results = self.e.if_else(condition, &types, || branch(data.blocks[0]), || branch(data.blocks[1]))?;
        debug_assert!(results.iter().zip(&types).all(|(value, ty)| type_of(*value) == *ty));
        self.unflatten(&data.results, &results)
    }

    /// Lowers a block whose arguments take the given registers.
    fn region(&self, block: Block, carried: &[Value<'c>]) -> Result<Vec<Registers<'c>>> {
        self.unflatten(&self.kernel.block(block).args, carried)?;
        self.block(block)
    }

    fn flatten(&self, values: &[rtc_ir::Value]) -> Result<Vec<Value<'c>>> {
        let mut registers = Vec::new();
        for value in values {
            registers.extend_from_slice(&self.get(*value)?);
        }
        Ok(registers)
    }

    fn unflatten(&self, values: &[rtc_ir::Value], mut registers: &[Value<'c>]) -> Result<()> {
        for value in values {
            let (own, rest) = registers.split_at(self.register_count(*value)?.min(registers.len()));
            self.set(*value, own.to_vec());
            registers = rest;
        }
        Ok(())
    }
}

fn flat<'c>(values: &[Registers<'c>]) -> Vec<Value<'c>> {
    values.iter().flat_map(|registers| registers.iter().copied()).collect()
}

fn no_index() -> CodegenError {
    CodegenError::lowering("a `for_range` without an index argument")
}

fn no_condition() -> CodegenError {
    CodegenError::lowering("a `while_loop` without a condition")
}

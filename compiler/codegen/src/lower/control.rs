//! Loops and branches. Carried tiles are flattened: one MLIR value per register.

use rtc_ir::{Block, Literal, Op, OpKind, view};

use super::{Lowering, Registers};
use crate::{
    emit::{Cmpi, Loop, Type, Value, type_of},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn for_range(&self, op: Op, unsigned: bool) -> Result<()> {
        let range = view::ForRange::at(self.kernel, op);
        let (lower, upper, step) =
            (self.scalar(range.lower())?, self.scalar(range.upper())?, self.scalar(range.step())?);
        let initial = self.flatten(self.kernel.variadic(op))?;
        let body = self.kernel.op(op).blocks[0];
        let run = |index: Value<'c>, carried: &[Value<'c>]| {
            let (index_argument, arguments) = self.kernel.block(body).args.split_first().ok_or_else(no_index)?;
            self.set(*index_argument, vec![index]);
            self.unflatten(arguments, carried)?;
            Ok::<_, CodegenError>(flat(&self.block(body)?))
        };
        let results = if self.is_one(range.step()) {
            self.e.for_loop(Loop { lower, upper, step, unsigned }, &initial, run)?
        } else {
            // An index that steps over the end could overflow, so the iterations are counted.
            let ty = type_of(lower);
            let (zero, one) = (self.e.int(ty, 0), self.e.int(ty, 1));
            let rounds = self.rounds(lower, upper, step, unsigned);
            let counter = Loop { lower: zero, upper: rounds, step: one, unsigned: true };
            self.e.for_loop(counter, &initial, |round, carried| {
                run(self.e.addi(lower, self.e.muli(round, step)), carried)
            })?
        };
        self.unflatten(&self.kernel.op(op).results, &results)
    }

    /// How often a loop from `lower` to `upper` by a positive step runs.
    fn rounds(&self, lower: Value<'c>, upper: Value<'c>, step: Value<'c>, unsigned: bool) -> Value<'c> {
        let e = self.e;
        let ty = type_of(lower);
        let (zero, one) = (e.int(ty, 0), e.int(ty, 1));
        let runs = e.cmpi(if unsigned { Cmpi::Ult } else { Cmpi::Slt }, lower, upper);
        // The distance is positive and fits without sign even where the bounds have opposite ones.
        let last = e.subi(e.subi(upper, lower), one);
        // Where it does not run the step may be anything, even zero.
        let divisor = e.select(runs, step, one);
        e.select(runs, e.addi(e.divui(last, divisor), one), zero)
    }

    fn is_one(&self, value: rtc_ir::Value) -> bool {
        let maker = self.kernel.def_op(value).map(|op| &self.kernel.op(op).kind);
        matches!(maker, Some(OpKind::Constant { value: Literal::Int(1) }))
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
        let condition = self.scalar(view::IfElse::at(self.kernel, op).condition())?;
        let mut types: Vec<Type<'c>> = Vec::new();
        for result in &data.results {
            types.extend(vec![self.register_type(*result)?; self.register_count(*result)?]);
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

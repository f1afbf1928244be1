//! Matrix products by multiply-adds, and by `mma.sync` on `f64`, whose operands come from shared memory: stored once, then
//! a loop over the axis that is summed over, of which a few steps stand in the body.

use rtc_ir::{DotKind, Elem, Op};
use rtc_layout::{Coord, Layout, Multiplier, OperandPlan, operand_plan, unrolled_steps};

use super::Lowering;
use crate::{
    emit::{Loop, Value},
    error::{CodegenError, Result},
};

/// One operand in shared memory.
struct Stored<'c> {
    plan: OperandPlan,
    /// The axis that is summed over.
    axis: usize,
    /// The address of the first slice.
    start: Value<'c>,
}

/// One product.
struct Product<'a, 'c> {
    operands: [Stored<'c>; 2],
    multiplier: Multiplier,
    /// The elements of the sums, and of the operands in shared memory.
    elem: Elem,
    /// The layout of the sums.
    layout: &'a Layout,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn dot_shared(&self, op: Op, kind: DotKind) -> Result<()> {
        let e = self.e;
        let multiplier = rtc_ir::multiplier(kind)
            .ok_or_else(|| CodegenError::lowering(format!("a product of kind {kind} through shared memory")))?;
        let sums = self.kernel.operand(op, 2);
        let (elem, layout) = (self.elem(sums)?, self.layout(sums)?);
        let rank = layout.rank();
        let plan = |index: u32| {
            let source = self.layout(self.kernel.operand(op, index as usize))?;
            Ok::<_, CodegenError>(operand_plan(source, layout, index, elem.bytes() * 8, multiplier))
        };
        let base = self.scratch(op, 0)?;
        let lhs = Stored { plan: plan(0)?, axis: rank - 1, start: base };
        let after = e.constant_offset(base, lhs.plan.bytes() as i32);
        let rhs = Stored { plan: plan(1)?, axis: rank - 2, start: after };
        self.store_operand(&lhs, elem, &self.widened(op, 0, elem)?);
        self.store_operand(&rhs, elem, &self.widened(op, 1, elem)?);
        e.barrier();

        let steps = lhs.plan.depth * lhs.plan.slices;
        let in_body = unrolled_steps(layout.registers(), steps).max(lhs.plan.depth).max(rhs.plan.depth);
        let initial = self.operand(op, 2)?;
        let product = Product { operands: [lhs, rhs], multiplier, elem, layout };
        let results = if in_body == steps {
            let starts = [0, 1].map(|index| product.operands[index].start);
            self.multiply_slices(&product, starts, steps, &initial)?
        } else {
            let rounds = e.i32((steps / in_body) as i32);
            let range = Loop { lower: e.i32(0), upper: rounds, step: e.i32(1), unsigned: true };
            e.for_loop(range, &initial, |round, sums| {
                let starts = [0, 1].map(|index| {
                    let Stored { plan, start, .. } = &product.operands[index];
                    let bytes = in_body / plan.depth * plan.stride;
                    e.byte_offset(*start, e.muli(round, e.i32(bytes as i32)))
                });
                self.multiply_slices(&product, starts, in_body, sums)
            })?
        };
        self.define(op, results);
        Ok(())
    }

    /// Stores an operand slice by slice.
    fn store_operand(&self, operand: &Stored<'c>, elem: Elem, registers: &[Value<'c>]) {
        let e = self.e;
        let (plan, access) = (&operand.plan, &operand.plan.store);
        let bytes = access.bits / 8;
        let thread: Vec<u32> = access.lane.iter().chain(&access.warp).copied().collect();
        let within: Vec<u32> = thread.iter().map(|basis| basis % plan.elements * bytes).collect();
        let slice: Vec<u32> = thread.iter().map(|basis| basis / plan.elements).collect();
        let (within, slice) = (self.spot(&within), self.spot(&slice));
        for step in &access.steps {
            // What thread and register add to the number of the slice is one sum where they share no bit.
            let (mixed, immediate) = slice.split(step.offset / plan.elements);
            let mut start = operand.start;
            if !slice.is_constant() {
                start = e.byte_offset(start, e.muli(self.at(slice, mixed), e.i32(plan.stride as i32)));
            }
            let immediate = if slice.is_constant() { mixed + immediate } else { immediate };
            start = e.constant_offset(start, (immediate * plan.stride) as i32);
            let address = self.shared_address(start, within, step.offset % plan.elements * bytes);
            let values: Vec<_> = step.registers.iter().map(|register| registers[*register as usize]).collect();
            self.store_shared(address, elem, &values, access.width * bytes);
        }
    }

    /// Adds the products of `steps` steps, whose slices begin at the two addresses, to the sums.
    fn multiply_slices(
        &self,
        product: &Product<'_, 'c>,
        starts: [Value<'c>; 2],
        steps: u32,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let mut sums = sums.to_vec();
        let mut fragments = [Vec::new(), Vec::new()];
        for step in (0..steps).step_by(product.multiplier.steps() as usize) {
            for (index, Stored { plan, .. }) in product.operands.iter().enumerate() {
                if step % plan.depth == 0 {
                    let start = self.e.constant_offset(starts[index], (step / plan.depth * plan.stride) as i32);
                    fragments[index] = self.load_tile(start, &plan.load, product.elem);
                }
            }
            match product.multiplier {
                Multiplier::Threads => self.multiply_step(product, step, &fragments, &mut sums)?,
                Multiplier::MmaF64 => self.multiply_steps_of_f64(product, step, &fragments, &mut sums)?,
            }
        }
        Ok(sums)
    }

    /// One step by multiply-adds.
    fn multiply_step(
        &self,
        product: &Product<'_, 'c>,
        step: u32,
        fragments: &[Vec<Value<'c>>; 2],
        sums: &mut [Value<'c>],
    ) -> Result<()> {
        let map = |operand: &Stored<'c>| {
            let map = product.layout.register_map(&operand.plan.fragment, |mut coord: Coord| {
                coord[operand.axis] = step % operand.plan.depth;
                coord
            });
            map.ok_or_else(elsewhere)
        };
        let (from_lhs, from_rhs) = (map(&product.operands[0])?, map(&product.operands[1])?);
        for (register, sum) in sums.iter_mut().enumerate() {
            let a = fragments[0][from_lhs[register] as usize];
            let b = fragments[1][from_rhs[register] as usize];
            *sum = self.multiply_add(product.elem, a, b, *sum);
        }
        Ok(())
    }

    /// Four steps by `mma.sync` on `f64`.
    fn multiply_steps_of_f64(
        &self,
        product: &Product<'_, 'c>,
        step: u32,
        fragments: &[Vec<Value<'c>>; 2],
        sums: &mut [Value<'c>],
    ) -> Result<()> {
        let instruction = self.instruction(product.elem, product.elem, product.elem)?;
        for (pair, sums) in sums.chunks_mut(2).enumerate() {
            let place = product.layout.coords(2 * pair as u32, 0, 0);
            let mut operands = Vec::new();
            for (operand, fragment) in product.operands.iter().zip(fragments) {
                let mut coord = place;
                coord[operand.axis] = step % operand.plan.depth;
                let register = operand.plan.fragment.find_register(coord, 0, 0).ok_or_else(elsewhere)?;
                operands.push(fragment[register as usize]);
            }
            let results = self.multiply(&instruction, operands, sums.to_vec());
            sums.copy_from_slice(&results);
        }
        Ok(())
    }
}

fn elsewhere() -> CodegenError {
    CodegenError::lowering("a fragment of a product that is held in other threads")
}

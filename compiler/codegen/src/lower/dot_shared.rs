//! Matrix products by multiply-adds whose operands come from shared memory: stored once, then a loop over the axis that
//! is summed over, of which a few steps stand in the body.

use rtc_ir::{Elem, Op};
use rtc_layout::{Coord, Layout, OperandPlan, operand_plan, unrolled_steps};

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

impl<'c> Lowering<'_, 'c> {
    pub(super) fn dot_shared(&self, op: Op) -> Result<()> {
        let e = self.e;
        let sums = self.kernel.operand(op, 2);
        let (elem, layout) = (self.elem(sums)?, self.layout(sums)?);
        let rank = layout.rank();
        let base = self.scratch(op, 0)?;
        let plan = |index: u32| {
            let source = self.layout(self.kernel.operand(op, index as usize))?;
            Ok::<_, CodegenError>(operand_plan(source, layout, index, elem.bytes() * 8))
        };
        let lhs = Stored { plan: plan(0)?, axis: rank - 1, start: base };
        let after = e.constant_offset(base, lhs.plan.bytes() as i32);
        let rhs = Stored { plan: plan(1)?, axis: rank - 2, start: after };
        self.store_operand(&lhs, elem, &self.widened(op, 0, elem)?);
        self.store_operand(&rhs, elem, &self.widened(op, 1, elem)?);
        e.barrier();

        let steps = lhs.plan.depth * lhs.plan.slices;
        let in_body = unrolled_steps(layout.registers(), steps).max(lhs.plan.depth).max(rhs.plan.depth);
        let initial = self.operand(op, 2)?;
        if in_body == steps {
            let results = self.multiply_slices([&lhs, &rhs], [lhs.start, rhs.start], steps, elem, layout, &initial)?;
            self.define(op, results);
            return Ok(());
        }
        let range = Loop { lower: e.i32(0), upper: e.i32((steps / in_body) as i32), step: e.i32(1), unsigned: true };
        let results = e.for_loop(range, &initial, |round, sums| {
            let at = |operand: &Stored<'c>| {
                let bytes = in_body / operand.plan.depth * operand.plan.stride;
                e.byte_offset(operand.start, e.muli(round, e.i32(bytes as i32)))
            };
            self.multiply_slices([&lhs, &rhs], [at(&lhs), at(&rhs)], in_body, elem, layout, sums)
        })?;
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
        operands: [&Stored<'c>; 2],
        starts: [Value<'c>; 2],
        steps: u32,
        elem: Elem,
        layout: &Layout,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let e = self.e;
        let mut sums = sums.to_vec();
        let mut fragments = [Vec::new(), Vec::new()];
        for step in 0..steps {
            let mut maps = [Vec::new(), Vec::new()];
            for (index, operand) in operands.into_iter().enumerate() {
                let plan = &operand.plan;
                let (slice, depth) = (step / plan.depth, step % plan.depth);
                if depth == 0 {
                    let start = e.constant_offset(starts[index], (slice * plan.stride) as i32);
                    fragments[index] = self.load_tile(start, &plan.load, elem);
                }
                let map = layout.register_map(&plan.fragment, |mut coord: Coord| {
                    coord[operand.axis] = depth;
                    coord
                });
                maps[index] = map.ok_or_else(|| CodegenError::lowering("a fragment of a product that is elsewhere"))?;
            }
            for (register, sum) in sums.iter_mut().enumerate() {
                let [a, b] = [0, 1].map(|i| fragments[i][maps[i][register] as usize]);
                *sum = self.multiply_add(elem, a, b, *sum);
            }
        }
        Ok(sums)
    }
}

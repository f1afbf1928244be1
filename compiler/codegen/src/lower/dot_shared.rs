//! Matrix products by multiply-adds, and by `mma.sync` on `f64`, whose operands come from shared memory: stored once, then
//! a loop over the axis that is summed over, of which a few steps stand in the body.

use rtc_ir::{DotKind, Elem, Op};
use rtc_layout::{Coord, Layout, Multiplier, OperandPlan, operand_plan, unrolled_steps};

use super::Lowering;
use crate::{
    emit::{Access, Loop, Value},
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
        self.barrier();

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
        let mut stores = Vec::new();
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
            stores.push((address, self.packed(elem, &values)));
        }
        let access_of = Access { align: access.width * bytes, ..Access::default() };
        self.by_holders(access, || stores.iter().for_each(|(address, value)| e.store(*value, *address, access_of)));
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
        let rows = product.layout.rank() - 2;
        let pairs: Vec<Coord> = (0..sums.len() as u32).step_by(2).map(|r| product.layout.coords(r, 0, 0)).collect();
        let find = |index: usize, place: Coord| {
            let operand = &product.operands[index];
            let mut coord = place;
            coord[operand.axis] = step % operand.plan.depth;
            let register = operand.plan.fragment.find_register(coord, 0, 0).ok_or_else(elsewhere)?;
            Ok::<_, CodegenError>(fragments[index][register as usize])
        };
        // Two pairs eight rows apart have the same columns.
        let tall = pairs.get(1).is_some_and(|second| second[rows] == pairs[0][rows] + 8);
        if tall && self.target.capability >= 90 {
            for (places, sums) in pairs.chunks(2).zip(sums.chunks_mut(4)) {
                let operands = [find(0, places[0])?, find(0, places[1])?, find(1, places[0])?];
                let results = self.multiply_tall_f64(operands, sums);
                sums.copy_from_slice(&results);
            }
            return Ok(());
        }
        for (place, sums) in pairs.into_iter().zip(sums.chunks_mut(2)) {
            let operands = vec![find(0, place)?, find(1, place)?];
            let results = self.multiply(&instruction, operands, sums.to_vec());
            sums.copy_from_slice(&results);
        }
        Ok(())
    }

    /// `mma.sync` m16n8k4 on `f64`, which LLVM has no intrinsic for.
    fn multiply_tall_f64(&self, operands: [Value<'c>; 3], sums: &[Value<'c>]) -> Vec<Value<'c>> {
        let text =
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};";
        let all = [&operands[..], sums].concat();
        self.e.assembly(text, "=d,=d,=d,=d,d,d,d,d,d,d,d", &all, &[self.e.ty.f64; 4], true)
    }
}

fn elsewhere() -> CodegenError {
    CodegenError::lowering("a fragment of a product that is held in other threads")
}

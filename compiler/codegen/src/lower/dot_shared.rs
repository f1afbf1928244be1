//! Dots by FMAs, and by `mma.sync` on `f64`, whose operands come from shared memory: those of `dot` are stored first,
//! those of `dot_buffers` are there already. A loop runs over K, with a few steps unrolled in its body.

use rtc_ir::{DotKind, Elem, Op, view};
use rtc_layout::{OperandPlan, fragment_plan, operand_plan, unrolled_in_buffers, unrolled_steps};

use super::{
    Lowering,
    dot_steps::{Fragments, Numbers, SharedDot},
};
use crate::{
    emit::{AccessAttrs, Loop, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn dot_shared(&self, op: Op, kind: DotKind) -> Result<()> {
        let e = self.e;
        let multiplier = multiplier(kind)?;
        let dot = view::Dot::at(self.kernel, op);
        let (elem, layout) = (self.elem(dot.acc())?, self.layout(dot.acc())?);
        let plan = |index: u32, operand: rtc_ir::Value| {
            Ok::<_, CodegenError>(operand_plan(self.layout(operand)?, layout, index, elem.bytes() * 8, multiplier))
        };
        let (lhs, rhs) = (plan(0, dot.lhs())?, plan(1, dot.rhs())?);
        let starts = {
            let base = self.scratch(op)?;
            [base, e.constant_offset(base, lhs.bytes() as i32)]
        };
        self.store_operand(&lhs, starts[0], elem, &self.widened(dot.lhs(), elem)?);
        self.store_operand(&rhs, starts[1], elem, &self.widened(dot.rhs(), elem)?);
        self.barrier();

        let steps = lhs.depth * lhs.slices;
        let in_body = unrolled_steps(layout.registers(), steps).max(lhs.depth).max(rhs.depth);
        let fragments = |plan: OperandPlan, axis: usize| Fragments {
            depth: plan.depth,
            fragment: plan.fragment,
            axis,
            numbers: Numbers::Apart { load: plan.load, stride: plan.stride },
        };
        let rank = layout.rank();
        let operands = [fragments(lhs, rank - 1), fragments(rhs, rank - 2)];
        let initial = self.get(dot.acc())?;
        let shared = SharedDot { operands, multiplier, elem, layout };
        self.define(op, self.multiply_all(&initial, &shared, starts, steps, in_body)?);
        Ok(())
    }

    /// `dot_buffers`.
    pub(super) fn dot_buffers(&self, op: Op, kind: DotKind) -> Result<()> {
        let multiplier = multiplier(kind)?;
        let dot = view::DotBuffers::at(self.kernel, op);
        let (elem, layout) = (self.elem(dot.acc())?, self.layout(dot.acc())?);
        let (mut steps, mut in_body, mut starts, mut operands) = (1, 1, Vec::new(), Vec::new());
        for (index, axis, buffer) in [(0, 1, dot.lhs()), (1, 0, dot.rhs())] {
            let (_, shared) = self.slot_layout(buffer)?;
            let plan = fragment_plan(&shared, layout, index as u32, elem.bytes() * 8, multiplier);
            steps = shared.shape()[axis];
            in_body = in_body.max(plan.depth * plan.period());
            starts.push(self.scalar(buffer)?);
            operands.push(Fragments {
                depth: plan.depth,
                fragment: plan.fragment.clone(),
                axis,
                numbers: Numbers::Mixed(plan),
            });
        }
        let in_body = in_body.max(unrolled_in_buffers(layout.registers(), steps));
        let (Ok(operands), Ok(starts)) = (operands.try_into(), starts.try_into()) else {
            return Err(CodegenError::lowering("a dot with other than two operands"));
        };
        let initial = self.get(dot.acc())?;
        let shared = SharedDot { operands, multiplier, elem, layout };
        self.define(op, self.multiply_all(&initial, &shared, starts, steps, in_body)?);
        Ok(())
    }

    /// Adds all dots to accumulators, `in_body` of the `steps` steps at a time.
    fn multiply_all(
        &self,
        initial: &[Value<'c>],
        dot: &SharedDot<'_>,
        starts: [Value<'c>; 2],
        steps: u32,
        in_body: u32,
    ) -> Result<Vec<Value<'c>>> {
        let e = self.e;
        if in_body >= steps {
            return self.multiply_steps(dot, starts, steps, initial);
        }
        let rounds = e.i32((steps / in_body) as i32);
        let range = Loop { lower: e.i32(0), upper: rounds, step: e.i32(1), unsigned: true };
        e.for_loop(range, initial, |round, accs| {
            let starts = [0, 1].map(|index| {
                let bytes = dot.operands[index].bytes_to(in_body, dot.elem);
                e.byte_offset(starts[index], e.muli(round, e.i32(bytes as i32)))
            });
            self.multiply_steps(dot, starts, in_body, accs)
        })
    }

    /// Stores an operand slice by slice.
    fn store_operand(&self, plan: &OperandPlan, begin: Value<'c>, elem: Elem, registers: &[Value<'c>]) {
        let (e, access) = (self.e, &plan.store);
        let bytes = access.bits / 8;
        let thread: Vec<u32> = access.lane.iter().chain(&access.warp).copied().collect();
        let within: Vec<u32> = thread.iter().map(|basis| basis % plan.elements * bytes).collect();
        let slice: Vec<u32> = thread.iter().map(|basis| basis / plan.elements).collect();
        let (within, slice) = (self.spot(&within), self.spot(&slice));
        let mut stores = Vec::new();
        for step in &access.steps {
            // The contributions of thread and register to the number of the slice are added, as they share no bit.
            let (mixed, immediate) = slice.split(step.offset / plan.elements);
            let mut start = begin;
            if !slice.is_constant() {
                start = e.byte_offset(start, e.muli(self.at(slice, mixed), e.i32(plan.stride as i32)));
            }
            let immediate = if slice.is_constant() { mixed + immediate } else { immediate };
            start = e.constant_offset(start, (immediate * plan.stride) as i32);
            let address = self.shared_address(start, within, step.offset % plan.elements * bytes);
            let values: Vec<_> = step.registers.iter().map(|register| registers[*register as usize]).collect();
            stores.push((address, self.packed(elem, &values)));
        }
        let access_of = AccessAttrs { align: access.width * bytes, ..AccessAttrs::default() };
        self.by_holders(access, || stores.iter().for_each(|(address, value)| e.store(*value, *address, access_of)));
    }
}

fn multiplier(kind: DotKind) -> Result<rtc_layout::Multiplier> {
    let found = rtc_ir::multiplier(kind);
    found.ok_or_else(|| CodegenError::lowering(format!("a dot of kind {kind} through shared memory")))
}

//! Reductions: values of one row meet in registers, then between lanes by shuffles, then between warps through scratch
//! memory, as `reduce_plan` says.

use rtc_ir::{Block, Op, OpKind, part_bytes};
use rtc_layout::{reduce_plan, shared_plan};

use super::{Lowering, combine::Tuple};
use crate::{
    emit::ShuffleKind,
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn reduce(&self, op: Op, axis: u32) -> Result<()> {
        let operands = self.kernel.variadic(op).to_vec();
        let combine = self.kernel.op(op).blocks[0];
        let plan = reduce_plan(self.layout(operands[0])?, axis as usize);
        let tuples = self.tuples(&operands)?;
        let mut partials: Vec<Tuple<'c>> = Vec::with_capacity(plan.groups.len());
        for group in &plan.groups {
            partials.push(self.fold(combine, group.iter().map(|register| &tuples[*register as usize]))?);
        }
        let masks: Vec<u32> = plan.lane_steps.iter().map(|step| step.mask).collect();
        let plain = plan.lane_steps.iter().all(|step| step.register_xor == 0);
        match self.warp_instruction(combine, &operands)? {
            Some(name) if plain && masks.iter().fold(0, |all, mask| all | mask) == 31 => {
                for partial in &mut partials {
                    partial[0] = self.e.intrinsic(name, &[partial[0], self.e.i32(-1)], self.e.ty.i32);
                }
            }
            Some(_) | None => {
                for step in &plan.lane_steps {
                    partials = self.reduce_lanes(combine, &partials, step.mask, step.register_xor)?;
                }
            }
        }
        if let Some(step) = &plan.warp_step {
            let scratch = self.scratch(op, 0)?;
            let plans: Vec<_> = operands
                .iter()
                .map(|operand| {
                    let elem = self.elem(*operand)?;
                    let bits = elem.bytes() * 8;
                    Ok((elem, shared_plan(&step.partial, &step.gathered, bits, self.matrix_instructions())))
                })
                .collect::<Result<_>>()?;
            let mut offsets = vec![0];
            for (index, (elem, plan)) in plans.iter().enumerate() {
                let base = self.e.constant_offset(scratch, offsets[index] as i32);
                let values: Vec<_> = partials.iter().map(|partial| partial[index]).collect();
                self.store_tile(base, &plan.store, *elem, &values);
                offsets.push(offsets[index] + part_bytes(*elem, step.partial.elements()));
            }
            self.e.barrier();
            let mut gathered: Vec<Tuple<'c>> = vec![Vec::new(); partials.len() * step.count as usize];
            for (index, (elem, plan)) in plans.iter().enumerate() {
                let base = self.e.constant_offset(scratch, offsets[index] as i32);
                for (tuple, value) in gathered.iter_mut().zip(self.load_tile(base, &plan.load, *elem)) {
                    tuple.push(value);
                }
            }
            partials =
                gathered.chunks(step.count as usize).map(|row| self.fold(combine, row)).collect::<Result<_>>()?;
        }
        for index in 0..operands.len() {
            let result = self.kernel.result(op, index);
            let values = match self.kernel.layout_of(result) {
                None => vec![partials[0][index]],
                Some(layout) => {
                    let map = layout.register_map(&plan.result, |coord| coord).ok_or_else(|| {
                        CodegenError::lowering("`reduce` to a layout that holds the results in other threads")
                    })?;
                    map.iter().map(|register| partials[*register as usize][index]).collect()
                }
            };
            self.set(result, values);
        }
        Ok(())
    }

    /// Combines each partial result with that of the lane at distance `mask`.
    fn reduce_lanes(
        &self,
        combine: Block,
        partials: &[Tuple<'c>],
        mask: u32,
        register_xor: u32,
    ) -> Result<Vec<Tuple<'c>>> {
        let e = self.e;
        let distance = e.i32(mask as i32);
        // Both lanes must come to the same bits, so that copies agree: where the order of operands could matter, the
        // lane with the lower number gives the first one.
        let first = if self.is_symmetric(combine) { None } else { Some(self.lane_bit_clear(highest_bit(mask))) };
        let step = |register: usize| {
            let other = &partials[register ^ register_xor as usize];
            let other: Tuple<'c> =
                other.iter().map(|value| e.shuffle(ShuffleKind::Butterfly, *value, distance)).collect();
            let own = &partials[register];
            match first {
                None => self.combine(combine, own, &other),
                Some(first) => {
                    let lhs = self.select_tuple(first, own, &other);
                    let rhs = self.select_tuple(first, &other, own);
                    self.combine(combine, &lhs, &rhs)
                }
            }
        };
        (0..partials.len()).map(step).collect()
    }

    /// The instruction that reduces an `i32` over a whole warp, if the block is one that has it.
    fn warp_instruction(&self, combine: Block, operands: &[rtc_ir::Value]) -> Result<Option<&'static str>> {
        let ops: Vec<Op> = self.kernel.ops(combine).collect();
        let ([only, _], [operand]) = (&ops[..], operands) else { return Ok(None) };
        if self.elem(*operand)? != rtc_ir::Elem::I32 {
            return Ok(None);
        }
        let yields_it = self.kernel.op(ops[1]).operands[..] == self.kernel.op(*only).results[..];
        Ok(match &self.kernel.op(*only).kind {
            _ if !yields_it => None,
            OpKind::AddI {} => Some("llvm.nvvm.redux.sync.add"),
            OpKind::MinSI {} => Some("llvm.nvvm.redux.sync.min"),
            OpKind::MaxSI {} => Some("llvm.nvvm.redux.sync.max"),
            OpKind::MinUI {} => Some("llvm.nvvm.redux.sync.umin"),
            OpKind::MaxUI {} => Some("llvm.nvvm.redux.sync.umax"),
            OpKind::AndI {} => Some("llvm.nvvm.redux.sync.and"),
            OpKind::OrI {} => Some("llvm.nvvm.redux.sync.or"),
            OpKind::XorI {} => Some("llvm.nvvm.redux.sync.xor"),
            _ => None,
        })
    }
}

fn highest_bit(mask: u32) -> u32 {
    1 << (31 - mask.leading_zeros().min(31))
}

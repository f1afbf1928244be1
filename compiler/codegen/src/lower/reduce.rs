//! Reductions: values of one row meet in registers, then between lanes by shuffles, then between warps through scratch
//! memory and once more between lanes, as `reduce_plan` says.

use rtc_ir::{Block, Elem, Op, OpKind, part_bytes};
use rtc_layout::{MatrixInstructions, ReduceLaneStep, ReduceWarpStep, reduce_plan, shared_plan};

use super::{
    Lowering,
    combine::Tuple,
    extremum::{self, ExtremumLanes, Wanted},
};
use crate::{
    emit::{Cmpf, Emitter, ShuffleKind, Value},
    error::{CodegenError, Result},
};

/// If the order does not matter, a thread combines its values in so many independent chains.
const CHAINS: usize = 4;

/// Which of two lanes gives the first operand of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaneOrder {
    /// It does not matter.
    Any,
    /// The lower one, in both lanes.
    LowerFirst,
    /// Each gives its own first: only the lower lanes have results.
    OwnFirst,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn reduce(&self, op: Op, axis: u32) -> Result<()> {
        let operands = self.kernel.variadic(op).to_vec();
        let combine = self.kernel.op(op).blocks[0];
        let plan = reduce_plan(self.layout(operands[0])?, axis as usize);
        let tuples = self.tuples(&operands)?;
        let mut partials: Vec<Tuple<'c>> = Vec::with_capacity(plan.groups.len());
        let any_order = self.warp_instruction(combine, &operands)?.is_some_and(|instruction| instruction.idempotent);
        for group in &plan.groups {
            let members: Vec<&Tuple<'c>> = group.iter().map(|register| &tuples[*register as usize]).collect();
            let chains = if any_order && members.len() >= 2 * CHAINS { CHAINS } else { 1 };
            let chain = |first: usize| self.fold(combine, members.iter().copied().skip(first).step_by(chains));
            let chained = (0..chains).map(chain).collect::<Result<Vec<_>>>()?;
            partials.push(self.fold(combine, &chained)?);
        }
        let plain = plan.lane_steps.iter().all(|step| step.register_xor == 0);
        // Fewer steps may name all bits of a lane where its bits mix axes.
        let whole_warp = plain && plan.lane_steps.len() == 5;
        let instruction = if whole_warp { self.warp_instruction(combine, &operands)? } else { None };
        // Floats are represented by integers of the same order until the end.
        let keyed = instruction.filter(|instruction| instruction.float);
        if let Some(instruction) = keyed {
            partials.iter_mut().for_each(|partial| partial[0] = self.order_key(partial[0], instruction.name));
        }
        let extremum = if plain { self.extremum(combine, &operands)? } else { None };
        let between_lanes =
            |partials: Vec<Tuple<'c>>, steps: &[ReduceLaneStep], last: bool| match (instruction, extremum) {
                // Lanes beyond the steps hold copies.
                (Some(instruction), _) if steps.len() == 5 || instruction.idempotent && !steps.is_empty() => {
                    Ok(partials.into_iter().map(|partial| vec![self.redux(instruction.name, partial[0])]).collect())
                }
                (None, Some(extremum)) if steps.len() >= extremum::MIN_STEPS => {
                    let wanted = match (self.kernel.is_used(self.kernel.result(op, 0)), last) {
                        (true, _) => Wanted::Exact,
                        (false, true) => Wanted::Nothing,
                        (false, false) => Wanted::Equal,
                    };
                    let lanes = ExtremumLanes { combine, steps, whole_warp, wanted };
                    self.extremum_between_lanes(extremum, &lanes, &partials)
                }
                _ => self.reduce_in_steps(combine, partials, steps),
            };
        partials = between_lanes(partials, &plan.lane_steps, plan.warp_step.is_none())?;
        if let Some(step) = &plan.warp_step {
            let gathered = self.gather_partials(op, &operands, step, &partials, keyed.is_some())?;
            let fold = |row: &[Tuple<'c>]| match keyed {
                None => self.fold_halves(combine, row),
                Some(instruction) => {
                    let values = row.iter().map(|tuple| tuple[0]);
                    Ok(values.reduce(|a, b| instruction.combine_keys(self.e, a, b)).into_iter().collect())
                }
            };
            partials = gathered.chunks(step.in_thread as usize).map(fold).collect::<Result<_>>()?;
            partials = between_lanes(partials, &step.lane_steps, true)?;
        }
        if keyed.is_some() {
            let number = |key| self.e.bitcast(self.flip_negative(key), self.e.ty.f32);
            partials.iter_mut().for_each(|partial| partial[0] = number(partial[0]));
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

    /// Combines partial results, each with that which is half of them away.
    fn fold_halves(&self, combine: Block, row: &[Tuple<'c>]) -> Result<Tuple<'c>> {
        let mut row = row.to_vec();
        while row.len() > 1 {
            let (low, high) = row.split_at(row.len() / 2);
            row = low.iter().zip(high).map(|(a, b)| self.combine(combine, a, b)).collect::<Result<_>>()?;
        }
        Ok(row.swap_remove(0))
    }

    /// Stores the partial results of each warp to scratch memory and loads those of all: `in_thread` of each result.
    /// Keys are stored in place of their floats.
    fn gather_partials(
        &self,
        op: Op,
        operands: &[rtc_ir::Value],
        step: &ReduceWarpStep,
        partials: &[Tuple<'c>],
        keys: bool,
    ) -> Result<Vec<Tuple<'c>>> {
        let e = self.e;
        let scratch = self.scratch(op)?;
        let plans: Vec<_> = operands
            .iter()
            .map(|operand| {
                let elem = self.elem(*operand)?;
                let bits = elem.bytes() * 8;
                Ok((elem, shared_plan(&step.partial, &step.gathered, bits, MatrixInstructions::default())))
            })
            .collect::<Result<_>>()?;
        let mut offsets = vec![0];
        for (index, (elem, plan)) in plans.iter().enumerate() {
            let base = self.e.constant_offset(scratch, offsets[index] as i32);
            let value = |partial: &Tuple<'c>| if keys { e.bitcast(partial[index], e.ty.f32) } else { partial[index] };
            let values: Vec<_> = partials.iter().map(value).collect();
            self.store_tile(base, &plan.store, *elem, &values);
            offsets.push(offsets[index] + part_bytes(*elem, step.partial.elements()));
        }
        self.barrier();
        let mut gathered: Vec<Tuple<'c>> = vec![Vec::new(); partials.len() * step.in_thread as usize];
        for (index, (elem, plan)) in plans.iter().enumerate() {
            let base = self.e.constant_offset(scratch, offsets[index] as i32);
            for (tuple, value) in gathered.iter_mut().zip(self.load_tile(base, &plan.load, *elem)) {
                tuple.push(if keys { e.bitcast(value, e.ty.i32) } else { value });
            }
        }
        Ok(gathered)
    }

    /// Step by step, each between two lanes, all of which come to the same bits: where the order of operands could matter, the
    /// lane with the lower number gives the first one.
    pub(super) fn reduce_in_steps(
        &self,
        combine: Block,
        partials: Vec<Tuple<'c>>,
        steps: &[ReduceLaneStep],
    ) -> Result<Vec<Tuple<'c>>> {
        let is_plain = |step: &ReduceLaneStep| step.register_xor == 0 && step.mask.is_power_of_two();
        let order = match self.is_symmetric(combine) {
            true => LaneOrder::Any,
            false if steps.len() > 1 && steps.iter().all(is_plain) => LaneOrder::OwnFirst,
            false => LaneOrder::LowerFirst,
        };
        let reduced =
            steps.iter().try_fold(partials, |partials, step| self.reduce_lanes(combine, &partials, step, order))?;
        if order != LaneOrder::OwnFirst {
            return Ok(reduced);
        }
        // The lane that was the lower one in all steps has the result.
        let above = steps.iter().fold(0, |all, step| all | step.mask);
        let lowest = self.e.andi(self.lane(), self.e.i32(!above as i32));
        let from_lowest = |value: Value<'c>| self.e.shuffle(ShuffleKind::Index, value, lowest);
        Ok(reduced.into_iter().map(|tuple| tuple.into_iter().map(from_lowest).collect()).collect())
    }

    /// Combines each partial result with that of the partner's lane.
    fn reduce_lanes(
        &self,
        combine: Block,
        partials: &[Tuple<'c>],
        step: &ReduceLaneStep,
        order: LaneOrder,
    ) -> Result<Vec<Tuple<'c>>> {
        let e = self.e;
        let ReduceLaneStep { mask, register_xor } = *step;
        let distance = e.i32(mask as i32);
        let lower = (order == LaneOrder::LowerFirst).then(|| self.lane_bit_clear(highest_bit(mask)));
        let step = |register: usize| {
            let other = &partials[register ^ register_xor as usize];
            let other: Tuple<'c> =
                other.iter().map(|value| e.shuffle(ShuffleKind::Butterfly, *value, distance)).collect();
            let own = &partials[register];
            match lower {
                None => self.combine(combine, own, &other),
                Some(lower) => {
                    let lhs = self.select_tuple(lower, own, &other);
                    let rhs = self.select_tuple(lower, &other, own);
                    self.combine(combine, &lhs, &rhs)
                }
            }
        };
        (0..partials.len()).map(step).collect()
    }

    /// The instruction that reduces a value over a whole warp, if the block is one that has it.
    fn warp_instruction(&self, combine: Block, operands: &[rtc_ir::Value]) -> Result<Option<WarpInstruction>> {
        let ops: Vec<Op> = self.kernel.ops(combine).collect();
        let ([only, _], [operand]) = (&ops[..], operands) else { return Ok(None) };
        if self.kernel.op(ops[1]).operands[..] != self.kernel.op(*only).results[..] {
            return Ok(None);
        }
        let elem = self.elem(*operand)?;
        let (name, idempotent) = match &self.kernel.op(*only).kind {
            OpKind::MinNum {} if elem == Elem::F32 => ("min", true),
            OpKind::MaxNum {} if elem == Elem::F32 => ("max", true),
            _ if elem != Elem::I32 => return Ok(None),
            OpKind::AddI {} => ("add", false),
            OpKind::MinSI {} => ("min", true),
            OpKind::MaxSI {} => ("max", true),
            OpKind::MinUI {} => ("umin", true),
            OpKind::MaxUI {} => ("umax", true),
            OpKind::AndI {} => ("and", true),
            OpKind::OrI {} => ("or", true),
            OpKind::XorI {} => ("xor", false),
            _ => return Ok(None),
        };
        Ok(Some(WarpInstruction { name, float: elem == Elem::F32, idempotent }))
    }

    /// `redux.sync` over the whole warp.
    pub(super) fn redux(&self, name: &str, value: Value<'c>) -> Value<'c> {
        let name = format!("llvm.nvvm.redux.sync.{name}");
        self.e.intrinsic(&name, &[value, self.e.i32(-1)], self.e.ty.i32)
    }

    /// An integer that orders as the float does. A NaN comes last in the direction of the reduction, so that any number
    /// wins over it, and it becomes a NaN again if there is none.
    fn order_key(&self, value: Value<'c>, direction: &str) -> Value<'c> {
        let e = self.e;
        let last = if direction == "max" { i32::MIN } else { i32::MAX };
        let key = self.flip_negative(e.bitcast(value, e.ty.i32));
        e.select(e.cmpf(Cmpf::Uno, value, value), e.i32(last), key)
    }

    /// Flips all bits but the sign of negative numbers: from a float's bits to an integer of its order, and back.
    pub(super) fn flip_negative(&self, bits: Value<'c>) -> Value<'c> {
        let e = self.e;
        e.xori(bits, e.andi(e.shrsi(bits, e.i32(31)), e.i32(i32::MAX)))
    }
}

/// `redux.sync`, on integers or on floats by their order.
#[derive(Clone, Copy)]
struct WarpInstruction {
    name: &'static str,
    float: bool,
    /// Whether a value may count twice.
    idempotent: bool,
}

impl WarpInstruction {
    /// The same on two keys.
    fn combine_keys<'c>(self, e: &Emitter<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        if self.name == "max" { e.maxsi(a, b) } else { e.minsi(a, b) }
    }
}

fn highest_bit(mask: u32) -> u32 {
    1 << (31 - mask.leading_zeros().min(31))
}

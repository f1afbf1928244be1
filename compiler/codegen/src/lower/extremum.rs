//! The greatest or least fp32 of a row together with its index, the lower index on ties: first the value is reduced
//! between the lanes, then the least index of the lanes that have it. That takes far fewer instructions than reducing
//! pairs, each of which is compared three times and selected twice. With NaN the result depends on the order, so pairs
//! are reduced if a lane has one.

use rtc_ir::{Block, Elem, Op, OpKind, Predicate};
use rtc_layout::ReduceLaneStep;

use super::{Lowering, combine::Tuple};
use crate::{
    emit::{Cmpf, Cmpi, ShuffleKind, Value, type_of},
    error::Result,
};

/// The number of steps between lanes from which on the check for NaN is profitable.
pub(super) const MIN_STEPS: usize = 2;

/// The extremum of a block.
#[derive(Clone, Copy)]
pub(super) struct Extremum {
    greatest: bool,
}

/// The values reduced between lanes, and the reduction.
pub(super) struct ExtremumLanes<'s> {
    pub combine: Block,
    pub steps: &'s [ReduceLaneStep],
    /// Whether all lanes look for one result.
    pub whole_warp: bool,
    pub wanted: Wanted,
}

/// The use of the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// None: only the index is used.
    Nothing,
    /// It is compared once more, for which both zeros are the same.
    Equal,
    Exact,
}

impl<'c> Lowering<'_, 'c> {
    /// The extremum that the block computes, if it is of that form.
    pub(super) fn extremum(&self, combine: Block, operands: &[rtc_ir::Value]) -> Result<Option<Extremum>> {
        let [value, place] = operands else { return Ok(None) };
        if self.elem(*value)? != Elem::F32 || self.elem(*place)? != Elem::I32 {
            return Ok(None);
        }
        Ok(self.extremum_of(combine).map(|greatest| Extremum { greatest }))
    }

    /// Whether a block on pairs takes the greater value (or the less), the lower index on ties.
    fn extremum_of(&self, combine: Block) -> Option<bool> {
        let kernel = self.kernel;
        let [l, i, r, j] = kernel.block(combine).args[..] else { return None };
        let ops: Vec<Op> = kernel.ops(combine).collect();
        let made_by = |value: rtc_ir::Value| kernel.def_op(value).filter(|op| ops.contains(op));
        let operands = |op: Op| kernel.op(op).operands.to_vec();
        let last = kernel.op(*ops.last()?).operands.to_vec();
        let [value, place] = last[..] else { return None };
        let (value, place) = (made_by(value)?, made_by(place)?);
        let selects = [value, place].iter().all(|op| matches!(kernel.kind(*op), OpKind::Select {}));
        let left = operands(value)[0];
        if !selects || operands(value) != [left, l, r] || operands(place) != [left, i, j] {
            return None;
        }
        let either = made_by(left).filter(|op| matches!(kernel.kind(*op), OpKind::OrI {}))?;
        let [a, b] = operands(either)[..] else { return None };
        let (further, tie) = (made_by(a)?, made_by(b)?);
        let (further, tie) = if matches!(kernel.kind(tie), OpKind::AndI {}) { (further, tie) } else { (tie, further) };
        let greatest = match kernel.kind(further) {
            OpKind::CmpF { predicate: Predicate::Gt } => true,
            OpKind::CmpF { predicate: Predicate::Lt } => false,
            _ => return None,
        };
        let [a, b] = operands(tie)[..] else { return None };
        let (a, b) = (made_by(a)?, made_by(b)?);
        let is_equal = |op: Op| {
            matches!(kernel.kind(op), OpKind::CmpF { predicate: Predicate::Eq })
                && (operands(op) == [l, r] || operands(op) == [r, l])
        };
        let (equal, lower) = if is_equal(a) { (a, b) } else { (b, a) };
        let holds = matches!(kernel.kind(tie), OpKind::AndI {})
            && operands(further) == [l, r]
            && is_equal(equal)
            && matches!(kernel.kind(lower), OpKind::CmpI { predicate: Predicate::Lt })
            && operands(lower) == [i, j];
        holds.then_some(greatest)
    }

    pub(super) fn extremum_between_lanes(
        &self,
        extremum: Extremum,
        lanes: &ExtremumLanes<'_>,
        partials: &[Tuple<'c>],
    ) -> Result<Vec<Tuple<'c>>> {
        let e = self.e;
        let unordered = partials.iter().map(|pair| e.cmpf(Cmpf::Uno, pair[0], pair[0])).reduce(|a, b| e.ori(a, b));
        let Some(unordered) = unordered else { return Ok(Vec::new()) };
        let any = e.intrinsic("llvm.nvvm.vote.any.sync", &[e.i32(-1), unordered], e.ty.i1);
        let types: Vec<_> = partials.iter().flatten().map(|value| type_of(*value)).collect();
        let pairs = || {
            let pairs = self.reduce_in_steps(lanes.combine, partials.to_vec(), lanes.steps)?;
            Ok(pairs.into_iter().flatten().collect())
        };
        let parts = || Ok(partials.iter().flat_map(|pair| self.value_then_place(extremum, lanes, pair)).collect());
        let values = e.if_else(any, &types, pairs, parts)?;
        Ok(values.chunks(2).map(<[_]>::to_vec).collect())
    }

    /// For a pair without NaN: the value, then the place.
    fn value_then_place(&self, extremum: Extremum, lanes: &ExtremumLanes<'_>, pair: &Tuple<'c>) -> Tuple<'c> {
        let e = self.e;
        let (value, place) = (pair[0], pair[1]);
        let (best, has_it) = if lanes.whole_warp {
            // As an integer of the same order. Both zeros are equal.
            let key = self.flip_negative(e.bitcast(e.addf(value, e.float_constant(e.ty.f32, 0), false), e.ty.i32));
            let best = self.redux(if extremum.greatest { "max" } else { "min" }, key);
            (best, e.cmpi(Cmpi::Eq, key, best))
        } else {
            let further = |a, b| if extremum.greatest { e.maxnumf(a, b) } else { e.minnumf(a, b) };
            let best = self.fold_lanes(lanes, value, further);
            (best, e.cmpf(Cmpf::Oeq, value, best))
        };
        let candidate = e.select(has_it, place, e.i32(i32::MAX));
        let lowest = self.reduce_integers(lanes, candidate, "min", |a, b| e.minsi(a, b));
        let value = match lanes.wanted {
            Wanted::Nothing => value,
            Wanted::Equal if lanes.whole_warp => e.bitcast(self.flip_negative(best), e.ty.f32),
            Wanted::Equal => best,
            Wanted::Exact => {
                // Only the lane with that index has the right sign of a zero.
                let is_it = e.andi(has_it, e.cmpi(Cmpi::Eq, place, lowest));
                let bits = e.select(is_it, e.bitcast(value, e.ty.i32), e.i32(0));
                e.bitcast(self.reduce_integers(lanes, bits, "or", |a, b| e.ori(a, b)), e.ty.f32)
            }
        };
        vec![value, lowest]
    }

    /// By the warp's instruction of that name where all lanes look for one result.
    fn reduce_integers(
        &self,
        lanes: &ExtremumLanes<'_>,
        value: Value<'c>,
        instruction: &str,
        combine: impl Fn(Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        if lanes.whole_warp { self.redux(instruction, value) } else { self.fold_lanes(lanes, value, combine) }
    }

    fn fold_lanes(
        &self,
        lanes: &ExtremumLanes<'_>,
        value: Value<'c>,
        combine: impl Fn(Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        lanes.steps.iter().fold(value, |value, step| {
            combine(value, self.e.shuffle(ShuffleKind::Butterfly, value, self.e.i32(step.mask as i32)))
        })
    }
}

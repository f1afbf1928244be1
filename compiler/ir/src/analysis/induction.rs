//! Affine forms of loop-carried values: induction variables, and values that change by the same step in each iteration.
//! The value in iteration `round` is computed from its start and the step, without iterating the loop.

use smallvec::SmallVec;

use super::affine::{Affine, AffineForm, moved_pointer, whole};
use super::poly::{Poly, Symbol};
use super::ranges::{Wraps, block_of, width};
use crate::{Block, Op, OpKind, Value, regions, view};

/// How many additions are followed from a loop-carried value to the next one.
const MAX_STEPS: usize = 8;

impl Affine<'_> {
    /// The index of a loop: `lower + round * step`.
    pub(super) fn counter(&self, op: Op) -> Option<AffineForm> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let index = kernel.block(data.blocks[0]).args[0];
        let range = view::ForRange::at(kernel, op);
        let [lower, step] = [range.lower(), range.step()].map(|value| self.known(value));
        let (lower, step) = (lower?, step?);
        let poly = lower.poly.plus(&step.poly.times(&Poly::symbol(Symbol::Round(op)))?, 1)?;
        // It stays below the upper bound, so that it does not wrap.
        let OpKind::ForRange { unsigned: false, .. } = data.kind else { return None };
        let bits = lower.bits.min(step.bits).min(width(kernel.value_type(index)));
        Some(AffineForm { pointer: None, poly, bits, wraps: lower.wraps.max(step.wraps) })
    }

    /// A value that a loop moves by the same step in each iteration: in iteration `round`, or after all.
    pub(super) fn carried(&self, value: Value, times: fn(Op) -> Symbol) -> Option<AffineForm> {
        let moved = self.moved(value)?;
        let start = self.known(moved.start)?;
        let mut step = whole(Poly::default(), 64);
        for (by, sign) in &moved.steps {
            let by = self.known(*by).filter(|form| form.pointer.is_none())?;
            step = AffineForm {
                poly: step.poly.plus(&by.poly, *sign)?,
                bits: step.bits.min(by.bits),
                wraps: step.wraps.max(by.wraps),
                pointer: None,
            };
        }
        if step.poly.mentions(|symbol| self.varies(symbol, moved.op)) {
            return None;
        }
        let poly = start.poly.plus(&step.poly.times(&Poly::symbol(times(moved.op)))?, 1)?;
        if start.pointer.is_some() {
            return Some(moved_pointer(start, poly, &step));
        }
        let ty = self.kernel.value_type(value);
        let bits = width(ty).min(start.bits).min(step.bits);
        let wraps = if self.proven(&poly, ty, bits) {
            Wraps::Never
        } else {
            let sums = moved.sums.iter().map(|op| self.ranges.wraps(*op));
            sums.fold(start.wraps.max(step.wraps).max(Wraps::Unexpected), Wraps::max)
        };
        Some(AffineForm { pointer: None, poly, bits, wraps })
    }

    /// How a loop moves the value of the slot of `value`, if by sums alone.
    pub(super) fn moved(&self, value: Value) -> Option<Moved> {
        let slot = regions::slot_of(self.kernel, value)?;
        let OpKind::ForRange { .. } = self.kernel.kind(slot.op) else { return None };
        let (mut values, arg) = (slot.values(self.kernel), *slot.targets.first()?);
        let (start, back) = (values.next()?, values.next()?);
        let mut moved = Moved { op: slot.op, start, steps: SmallVec::new(), sums: SmallVec::new() };
        let body = self.kernel.op(slot.op).blocks[0];
        self.way(back, arg, body, MAX_STEPS, &mut moved).then_some(moved)
    }

    /// Goes from the next value back to the loop-carried one.
    fn way(&self, value: Value, to: Value, body: Block, left: usize, moved: &mut Moved) -> bool {
        if value == to {
            return true;
        }
        let Some(op) = self.kernel.def_op(value).filter(|_| left > 0) else { return false };
        if self.kernel.op(op).parent != Some(body) {
            return false;
        }
        let operands = &self.kernel.op(op).operands;
        let sides: &[(usize, Option<usize>, i128)] = match self.kernel.kind(op) {
            OpKind::AddI {} => &[(0, Some(1), 1), (1, Some(0), 1)],
            OpKind::AddPtr {} => &[(0, Some(1), 1)],
            OpKind::SubI {} => &[(0, Some(1), -1)],
            // The others do not keep each element in its place.
            OpKind::Hint { .. } | OpKind::ConvertLayout {} => &[(0, None, 1)],
            _ => &[],
        };
        for (along, by, sign) in sides {
            if self.way(operands[*along], to, body, left - 1, moved) {
                if let Some(by) = by {
                    moved.steps.push((operands[*by], *sign));
                    moved.sums.push(op);
                }
                return true;
            }
        }
        false
    }

    /// Whether a symbol can be another number in another iteration of a loop.
    fn varies(&self, symbol: Symbol, around: Op) -> bool {
        match symbol {
            Symbol::Dim(_) | Symbol::Program(_) | Symbol::Programs(_) => false,
            Symbol::Round(op) => op == around || self.inside(self.kernel.op(op).parent, around),
            Symbol::Rounds(op) => self.inside(self.kernel.op(op).parent, around),
            Symbol::Scalar(value) => self.inside(block_of(self.kernel, value), around),
            Symbol::Wrap(number) => {
                let wrap = self.wrap(number);
                [&wrap.dividend, &wrap.divisor].iter().any(|f| f.poly.mentions(|s| self.varies(s, around)))
            }
        }
    }

    fn inside(&self, mut block: Option<Block>, around: Op) -> bool {
        while let Some(op) = block.and_then(|b| self.kernel.block(b).parent) {
            if op == around {
                return true;
            }
            block = self.kernel.op(op).parent;
        }
        false
    }
}

/// A value that a loop moves.
pub(super) struct Moved {
    op: Op,
    start: Value,
    /// The addend, and its sign.
    steps: SmallVec<[(Value, i128); 2]>,
    sums: SmallVec<[Op; 2]>,
}

impl Moved {
    pub(super) fn values(&self) -> SmallVec<[Value; 4]> {
        self.steps.iter().map(|(value, _)| *value).chain([self.start]).collect()
    }
}

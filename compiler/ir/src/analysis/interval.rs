//! Intervals of integers, and their transfer through operations.

use super::ranges::width;
use crate::{Kernel, Literal, Op, OpKind, Traits};

/// All integers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

impl Interval {
    /// The integers from `low` to `high`.
    pub fn new(low: i128, high: i128) -> Interval {
        Interval { low, high }
    }

    /// One integer alone.
    pub fn constant(x: i128) -> Interval {
        Interval { low: x, high: x }
    }

    /// Everything that `bits` bits hold, with a sign; for one bit 0 and 1.
    pub fn full(bits: u32) -> Interval {
        let half = 1i128 << (bits.clamp(1, 64) - 1);
        if bits == 1 { Interval::new(0, 1) } else { Interval::new(-half, half - 1) }
    }

    /// The integers of both, and those between.
    pub fn join(self, other: Interval) -> Interval {
        Interval::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The integers that both have; the first if they have none in common.
    pub fn meet(self, other: Interval) -> Interval {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low > high { self } else { Interval::new(low, high) }
    }

    /// Whether it lies within another.
    pub fn within(self, other: Interval) -> bool {
        self.low >= other.low && self.high <= other.high
    }

    /// Whether a signed integer of that many bits holds all of it.
    pub fn fits(self, bits: u32) -> bool {
        self.within(Interval::full(bits))
    }

    /// The integer, if it is one alone.
    pub fn value(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// All sums.
    pub fn sum(self, other: Interval) -> Interval {
        Interval::new(self.low.saturating_add(other.low), self.high.saturating_add(other.high))
    }

    /// All differences.
    pub fn difference(self, other: Interval) -> Interval {
        Interval::new(self.low.saturating_sub(other.high), self.high.saturating_sub(other.low))
    }

    /// All products.
    pub fn product(self, other: Interval) -> Interval {
        Interval::hull(
            [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)]
                .map(|(a, b)| a.saturating_mul(b)),
        )
    }

    /// Quotients toward zero, that by zero being 0.
    fn quotient(self, by: Interval) -> Interval {
        if by.low >= 1 {
            return Interval::hull([self.low / by.low, self.low / by.high, self.high / by.low, self.high / by.high]);
        }
        let most = self.low.abs().max(self.high.abs());
        Interval::new(if self.low >= 0 && by.low >= 0 { 0 } else { -most }, most)
    }

    /// Remainders with the sign of the dividend, that by zero being 0.
    fn remainder(self, by: Interval) -> Interval {
        let most = (by.low.abs().max(by.high.abs()) - 1).max(0);
        let low = if self.low < 0 { -most } else { 0 };
        Interval::new(low.max(self.low.min(0)), most.min(self.high.max(0)))
    }

    fn hull(ends: [i128; 4]) -> Interval {
        Interval::new(ends.into_iter().min().unwrap_or(i128::MIN), ends.into_iter().max().unwrap_or(i128::MAX))
    }

    /// The same bits without a sign.
    fn unsigned(self, bits: u32) -> Interval {
        if self.low >= 0 { self } else { Interval::new(0, (1 << bits) - 1) }
    }
}

/// The result of an operation on integers without overflow, for all operands in their intervals; `None` if nothing is
/// known. A result outside of its type has overflowed.
pub(super) fn apply(kernel: &Kernel, op: Op, operand: &dyn Fn(usize) -> Interval) -> Option<Interval> {
    let data = kernel.op(op);
    let bits = width(kernel.value_type(*data.results.first()?));
    if let OpKind::Constant { value: Literal::Int(i) } = data.kind {
        let unused = 64 - bits.min(64);
        let signed = (i << unused) >> unused;
        return Some(Interval::constant(if bits == 1 { i128::from(i & 1) } else { signed.into() }));
    }
    let from = data.operands.first().map_or(bits, |v| width(kernel.value_type(*v)));
    Some(match &data.kind {
        OpKind::Arange { start, end } => Interval::new(i128::from(*start), i128::from(*end) - 1),
        OpKind::CmpI { .. } | OpKind::CmpF { .. } => Interval::full(1),
        OpKind::Select {} => operand(1).join(operand(2)),
        OpKind::Split {} | OpKind::Gather { .. } | OpKind::Sort { .. } => operand(0),
        kind if kind.forwards().is_some() => operand(0),
        OpKind::Join {} | OpKind::Cat {} => operand(0).join(operand(1)),
        OpKind::ExtUI { .. } => operand(0).unsigned(from),
        OpKind::ExtSI { .. } if from == 1 => Interval::new(-operand(0).high, -operand(0).low),
        OpKind::ExtSI { .. } => operand(0),
        OpKind::TruncI { .. } if operand(0).fits(bits) => operand(0),
        OpKind::AndI {} => match (operand(0), operand(1)) {
            (l, r) if l.low >= 0 && r.low >= 0 => Interval::new(0, l.high.min(r.high)),
            (l, _) if l.low >= 0 => Interval::new(0, l.high),
            (_, r) if r.low >= 0 => Interval::new(0, r.high),
            _ => return None,
        },
        OpKind::OrI {} | OpKind::XorI {} => match (operand(0), operand(1)) {
            (l, r) if l.low >= 0 && r.low >= 0 => {
                let most = l.high.max(r.high) as u128;
                Interval::new(0, ((most + 1).next_power_of_two() - 1) as i128)
            }
            _ => return None,
        },
        kind if bits == 1 => return kind.spec().traits.has(Traits::ELEMENTWISE).then(|| Interval::full(1)),
        OpKind::AddI {} => operand(0).sum(operand(1)),
        OpKind::SubI {} => operand(0).difference(operand(1)),
        OpKind::MulI {} => operand(0).product(operand(1)),
        OpKind::ShlI {} => operand(0).product(Interval::constant(1 << count(operand(1), bits)?)),
        OpKind::ShrSI {} => {
            let (l, n) = (operand(0), count(operand(1), bits)?);
            Interval::new(l.low >> n, l.high >> n)
        }
        OpKind::ShrUI {} => {
            let (l, n) = (operand(0).unsigned(bits), count(operand(1), bits)?);
            return signed(Interval::new(l.low >> n, l.high >> n), bits);
        }
        OpKind::DivSI {} => operand(0).quotient(operand(1)),
        OpKind::DivUI {} => return signed(operand(0).unsigned(bits).quotient(operand(1).unsigned(bits)), bits),
        OpKind::RemSI {} => operand(0).remainder(operand(1)),
        OpKind::RemUI {} => return signed(operand(0).unsigned(bits).remainder(operand(1).unsigned(bits)), bits),
        OpKind::MinSI {} => {
            let (l, r) = (operand(0), operand(1));
            Interval::new(l.low.min(r.low), l.high.min(r.high))
        }
        OpKind::MaxSI {} => {
            let (l, r) = (operand(0), operand(1));
            Interval::new(l.low.max(r.low), l.high.max(r.high))
        }
        OpKind::MinUI {} | OpKind::MaxUI {} => operand(0).join(operand(1)),
        OpKind::AbsI {} => {
            let x = operand(0);
            let most = x.low.abs().max(x.high.abs());
            Interval::new(if x.low <= 0 && x.high >= 0 { 0 } else { x.low.abs().min(x.high.abs()) }, most)
        }
        OpKind::Clz {} | OpKind::PopC {} => Interval::new(0, i128::from(bits)),
        _ => return None,
    })
}

/// Numbers without sign as those with one: the same where these hold them.
fn signed(interval: Interval, bits: u32) -> Option<Interval> {
    interval.fits(bits).then_some(interval)
}

/// By how many bits a shift moves, if that is one number below the width.
fn count(by: Interval, bits: u32) -> Option<u32> {
    by.value().and_then(|n| u32::try_from(n).ok()).filter(|n| *n < bits)
}

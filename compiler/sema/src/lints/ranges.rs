//! What integers can be: an interval for each value, and how many run-time numbers are multiplied in it.
//!
//! The intervals assume that nothing wraps: a result that leaves its type is cut to the type, so that one product that may
//! wrap is reported and not all that is computed from it. `factors` tells a number that the launch gives (an argument, a
//! program id, something loaded: 1) and what is linear in it from a product of two such numbers (2), which grows beyond
//! the type long before its factors do. What is known to be small counts as a constant.
//!
//! ```text
//! pid                    0 .. 2147483647, 1 factor       row = pid * 128 + arange(0, 128)    1 factor
//! arange(0, 128)         0 .. 127,        none           row * stride                        2 factors
//! row % 512              0 .. 511,        none           tl.assume(stride < 4096)            .. 4095
//! ```

use cranelift_entity::SecondaryMap;
use rtc_ir::regions::{self, Slot};
use rtc_ir::{Block, Elem, Kernel, Literal, Op, OpKind, Predicate, Scalar, Traits, Type, Value, walk};

use super::NESTING;

/// Below this a number counts as a constant, whatever it is.
const SMALL: i128 = 1 << 12;
/// More factors are not told apart.
const MANY: u8 = 3;
/// The most blocks of a grid along x.
const GRID_X: i128 = (1 << 31) - 1;
/// The most blocks of a grid along y and z.
const GRID_YZ: i128 = (1 << 16) - 1;

/// What an integer can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The least value.
    pub low: i128,
    /// The greatest value.
    pub high: i128,
    /// How many run-time numbers are multiplied.
    pub factors: u8,
}

impl Range {
    fn new(low: i128, high: i128, factors: u8) -> Range {
        let factors = if low > -SMALL && high < SMALL { 0 } else { factors.min(MANY) };
        Range { low, high, factors }
    }

    fn constant(x: i128) -> Range {
        Range { low: x, high: x, factors: 0 }
    }

    /// Everything that `bits` bits hold.
    fn full(bits: u32, factors: u8) -> Range {
        let half = 1i128 << (bits.clamp(1, 64) - 1);
        if bits == 1 { Range::constant(0).join(Range::constant(1)) } else { Range::new(-half, half - 1, factors) }
    }

    fn join(self, other: Range) -> Range {
        Range::new(self.low.min(other.low), self.high.max(other.high), self.factors.max(other.factors))
    }

    fn meet(self, low: i128, high: i128) -> Range {
        let (low, high) = (self.low.max(low), self.high.min(high));
        if low > high { self } else { Range::new(low, high, self.factors) }
    }

    /// All products.
    pub(super) fn product(self, other: Range) -> Range {
        let corners = [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let (low, high) = corners.iter().fold((i128::MAX, i128::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
        Range::new(low, high, self.factors + other.factors)
    }

    /// Whether a signed integer of that many bits holds it.
    pub(super) fn fits(self, bits: u32) -> bool {
        let full = Range::full(bits, 0);
        self.low >= full.low && self.high <= full.high
    }

    fn value(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }
}

/// The ranges of all values of a kernel.
pub(super) struct Ranges<'k> {
    kernel: &'k Kernel,
    known: SecondaryMap<Value, Option<Range>>,
    /// Bounds that `tl.assume` promises.
    promised: SecondaryMap<Value, Option<(i128, i128)>>,
    /// Loops around the current operation.
    nesting: u32,
}

impl<'k> Ranges<'k> {
    /// Computes the ranges.
    pub(super) fn new(kernel: &'k Kernel) -> Ranges<'k> {
        let mut ranges = Ranges { kernel, known: SecondaryMap::new(), promised: SecondaryMap::new(), nesting: 0 };
        for op in walk(kernel) {
            if let OpKind::Assume {} = kernel.kind(op) {
                ranges.promise(kernel.operand(op, 0));
            }
        }
        ranges.block(kernel.body());
        ranges
    }

    /// What a value can be.
    pub(super) fn of(&self, value: Value) -> Range {
        let range = self.known[value].unwrap_or_else(|| Range::full(bits(self.kernel.value_type(value)), 1));
        match self.promised[value] {
            Some((low, high)) => range.meet(low, high),
            None => range,
        }
    }

    fn promise(&mut self, condition: Value) {
        let Some(op) = self.kernel.def_op(condition) else { return };
        let data = self.kernel.op(op);
        match &data.kind {
            OpKind::AndI {} => {
                for side in data.operands.clone() {
                    self.promise(side);
                }
            }
            OpKind::CmpI { predicate } => {
                let [l, r] = data.operands[..] else { return };
                let literal = |v: Value| match self.kernel.def_op(v).map(|op| self.kernel.kind(op)) {
                    Some(OpKind::Constant { value: Literal::Int(i) }) => Some(i128::from(*i)),
                    _ => None,
                };
                let (value, bound, from_left) = match (literal(l), literal(r)) {
                    (None, Some(bound)) => (l, bound, true),
                    (Some(bound), None) => (r, bound, false),
                    _ => return,
                };
                let (low, high) = match (predicate, from_left) {
                    (Predicate::Lt, true) | (Predicate::Gt, false) => (i128::MIN, bound - 1),
                    (Predicate::Le, true) | (Predicate::Ge, false) => (i128::MIN, bound),
                    (Predicate::Gt, true) | (Predicate::Lt, false) => (bound + 1, i128::MAX),
                    (Predicate::Ge, true) | (Predicate::Le, false) => (bound, i128::MAX),
                    (Predicate::Eq, _) => (bound, bound),
                    _ => return,
                };
                let (l, h) = self.promised[value].unwrap_or((i128::MIN, i128::MAX));
                self.promised[value] = Some((l.max(low), h.min(high)));
            }
            _ => {}
        }
    }

    fn set(&mut self, value: Value, range: Range) {
        let ty = self.kernel.value_type(value);
        if !is_integer(ty) {
            return;
        }
        let full = Range::full(bits(ty), range.factors);
        self.known[value] = Some(Range::new(
            range.low.clamp(full.low, full.high),
            range.high.clamp(full.low, full.high),
            range.factors,
        ));
    }

    fn block(&mut self, block: Block) {
        for op in self.kernel.ops(block) {
            self.op(op);
        }
    }

    fn op(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        if let OpKind::ForRange { .. } = data.kind {
            let [lower, upper, step] = [0, 1, 2].map(|i| self.of(data.operands[i]));
            let index = if step.low >= 0 {
                Range::new(lower.low, (upper.high - 1).max(lower.high), lower.factors.max(upper.factors))
            } else {
                lower.join(upper)
            };
            self.set(kernel.block(data.blocks[0]).args[0], index);
        }
        if regions::is_loop(&data.kind) {
            self.nesting += 1;
            self.carried(op);
            self.nesting -= 1;
        } else if !regions::flow(&data.kind).is_empty() {
            data.blocks.iter().for_each(|b| self.block(*b));
            regions::slots(kernel, op).iter().for_each(|slot| self.join_sources(slot));
        } else if let ([result], true) = (&data.results[..], data.blocks.is_empty())
            && is_integer(kernel.value_type(*result))
            && let Some(range) = self.transfer(op, *result)
        {
            self.set(*result, range);
        }
    }

    fn set_targets(&mut self, slot: &Slot, range: Range) {
        slot.targets.iter().for_each(|target| self.set(*target, range));
    }

    fn join_sources(&mut self, slot: &Slot) {
        if let Some(range) = slot.values(self.kernel).map(|value| self.of(value)).reduce(Range::join) {
            self.set_targets(slot, range);
        }
    }

    /// Values carried around a loop: a bound that grows in the first round is given up.
    fn carried(&mut self, op: Op) {
        let kernel = self.kernel;
        let from_outside = |slot: &Slot| slot.sources[0].0 == op && slot.sources.len() > 1;
        let (carried, inner): (Vec<Slot>, Vec<Slot>) = regions::slots(kernel, op).into_iter().partition(from_outside);
        for slot in &carried {
            let first = slot.values(kernel).next();
            first.into_iter().for_each(|value| self.set_targets(slot, self.of(value)));
        }
        for _ in 0..if self.nesting > NESTING { 0 } else { 3 } {
            self.round(op, &inner);
            let mut changed = false;
            for slot in &carried {
                let Some(new) = slot.values(kernel).skip(1).map(|value| self.of(value)).reduce(Range::join) else {
                    continue;
                };
                let old = self.of(slot.targets[0]);
                let full = Range::full(bits(kernel.value_type(slot.targets[0])), 1);
                let low = if new.low < old.low { full.low } else { old.low };
                let high = if new.high > old.high { full.high } else { old.high };
                // What is added up over steps is as large as a number of the launch.
                let grows = u8::from((low, high) != (old.low, old.high));
                let next = Range::new(low, high, old.factors.max(new.factors).max(grows));
                changed |= next != old;
                self.set_targets(slot, next);
            }
            if !changed {
                return;
            }
        }
        for target in carried.iter().flat_map(|slot| &slot.targets) {
            self.known[*target] = None;
        }
        self.round(op, &inner);
    }

    /// One go over the blocks of a loop; `inner` is what its blocks hand to each other.
    fn round(&mut self, op: Op, inner: &[Slot]) {
        for block in &self.kernel.op(op).blocks {
            inner.iter().for_each(|slot| self.join_sources(slot));
            self.block(*block);
        }
        inner.iter().for_each(|slot| self.join_sources(slot));
    }

    fn transfer(&self, op: Op, result: Value) -> Option<Range> {
        let data = self.kernel.op(op);
        let operand = |i: usize| self.of(data.operands[i]);
        let width = bits(self.kernel.value_type(result));
        Some(match &data.kind {
            OpKind::Constant { value: Literal::Int(i) } => Range::constant(i128::from(*i)),
            OpKind::Arange { start, end } => Range::new(i128::from(*start), i128::from(*end) - 1, 0),
            OpKind::ProgramId { axis } => Range::new(0, if *axis == 0 { GRID_X - 1 } else { GRID_YZ - 1 }, 1),
            OpKind::NumPrograms { axis } => Range::new(1, if *axis == 0 { GRID_X } else { GRID_YZ }, 1),
            OpKind::CmpI { .. } | OpKind::CmpF { .. } => Range::full(1, 0),
            OpKind::AddI {} => {
                let (l, r) = (operand(0), operand(1));
                Range::new(l.low + r.low, l.high + r.high, l.factors.max(r.factors))
            }
            OpKind::SubI {} => {
                let (l, r) = (operand(0), operand(1));
                Range::new(l.low - r.high, l.high - r.low, l.factors.max(r.factors))
            }
            OpKind::MulI {} => operand(0).product(operand(1)),
            OpKind::ShlI {} => match operand(1).value() {
                Some(n @ 0..64) => operand(0).product(Range::constant(1 << n)),
                _ => return None,
            },
            OpKind::DivSI {} | OpKind::DivUI {} => quotient(operand(0), operand(1)),
            OpKind::ShrSI {} | OpKind::ShrUI {} => match (operand(0), operand(1).value()) {
                (l, Some(n @ 0..64)) if l.low >= 0 => Range::new(l.low >> n, l.high >> n, l.factors),
                _ => return None,
            },
            OpKind::RemSI {} | OpKind::RemUI {} => {
                let (l, r) = (operand(0), operand(1));
                let most = r.low.abs().max(r.high.abs()) - 1;
                let (low, high) = (if l.low < 0 { -most } else { 0 }, most.min(l.high.max(0)));
                Range::new(low.max(l.low.min(0)), high, l.factors.min(r.factors))
            }
            OpKind::AndI {} => match (operand(0), operand(1)) {
                (l, r) if l.low >= 0 && r.low >= 0 => Range::new(0, l.high.min(r.high), l.factors.min(r.factors)),
                (l, _) if l.low >= 0 => Range::new(0, l.high, l.factors),
                (_, r) if r.low >= 0 => Range::new(0, r.high, r.factors),
                _ => return None,
            },
            OpKind::OrI {} | OpKind::XorI {} => match (operand(0), operand(1)) {
                (l, r) if l.low >= 0 && r.low >= 0 => {
                    let most = l.high.max(r.high) as u128;
                    Range::new(0, ((most + 1).next_power_of_two() - 1) as i128, l.factors.max(r.factors))
                }
                _ => return None,
            },
            OpKind::MinSI {} | OpKind::MinUI {} => {
                let (l, r) = (operand(0), operand(1));
                let factors = if l.high <= r.high { l.factors } else { r.factors };
                Range::new(l.low.min(r.low), l.high.min(r.high), factors)
            }
            OpKind::MaxSI {} | OpKind::MaxUI {} => {
                let (l, r) = (operand(0), operand(1));
                Range::new(l.low.max(r.low), l.high.max(r.high), l.factors.max(r.factors))
            }
            OpKind::Select {} => operand(1).join(operand(2)),
            OpKind::ExtUI { .. } if operand(0).low < 0 => {
                let from = bits(self.kernel.value_type(data.operands[0]));
                Range::new(0, (1 << from) - 1, operand(0).factors)
            }
            OpKind::ExtSI { .. } | OpKind::ExtUI { .. } => operand(0),
            OpKind::TruncI { .. } if operand(0).fits(width) => operand(0),
            OpKind::Splat {}
            | OpKind::ExpandDims { .. }
            | OpKind::Broadcast {}
            | OpKind::Reshape { .. }
            | OpKind::Trans { .. }
            | OpKind::ConvertLayout {}
            | OpKind::Unsplat {}
            | OpKind::Gather { .. }
            | OpKind::Sort { .. }
            | OpKind::Hint { .. } => operand(0),
            OpKind::Join {} | OpKind::Cat {} => operand(0).join(operand(1)),
            kind if kind.spec().traits.has(Traits::ELEMENTWISE) => {
                let factors = data.operands.iter().map(|v| self.of(*v).factors).max().unwrap_or(1);
                Range::full(width, factors.max(1))
            }
            _ => return None,
        })
    }
}

fn quotient(l: Range, r: Range) -> Range {
    if r.low >= 1 {
        let ends = [l.low / r.low, l.low / r.high, l.high / r.low, l.high / r.high];
        let (low, high) = ends.iter().fold((i128::MAX, i128::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        return Range::new(low, high, l.factors);
    }
    let most = l.low.abs().max(l.high.abs());
    Range::new(if l.low >= 0 && r.low >= 0 { 0 } else { -most }, most, l.factors)
}

fn is_integer(ty: Type) -> bool {
    matches!(ty.elem(), Some(Elem::Num(s)) if s.is_int())
}

fn bits(ty: Type) -> u32 {
    ty.elem().and_then(Elem::num).map_or(64, Scalar::bits)
}

//! The ranges of integers: an interval for each scalar and for the elements of each tile.
//!
//! The inputs are program ids, the bounds of loops, constants and `assume`. Numbers wrap, so `pid * 128` can be
//! anything: a grid may have 2^31 programs. Therefore there are three separate queries:
//!
//! - [`Ranges::of`]: the range in any launch. Proofs use it.
//! - [`Ranges::expected`]: the range for sizes of real launches: program ids and loop indices times a constant below
//!   2^16 fit in their type, and divisors are positive. A hash, which wraps on purpose, is not expected to fit, nor are
//!   multiples of a number that may be negative and whose bits were shifted to the right as if it were unsigned.
//! - [`Ranges::growth`]: the range without overflow, cut to the type, and how many launch-dependent numbers are
//!   multiplied in it. Lints use it to report the one product that may overflow and not all values computed from it.
//!
//! ```text
//! pid                     0 .. 2147483647, 1 factor       row = pid * 128 + arange(0, 128)    1 factor
//! arange(0, 128)          0 .. 127,        none           row * stride                        2 factors
//! row % 512 (expected)    0 .. 511,        none           tl.assume(stride < 4096)            .. 4095
//! ```
//!
//! A bound that changes in a loop is given up at once, so that each block is visited at most four times per loop around
//! it, and once from the fourth loop on.

use cranelift_entity::SecondaryMap;

use super::interval::{Interval, apply};
use super::ordered::Ordered;
use crate::regions::{self, Slot};
use crate::{Block, Elem, Kernel, Literal, Op, OpKind, Predicate, Scalar, Traits, Type, Value, ValueDef, view, walk};

/// Below this a number counts as a constant.
const SMALL: i128 = 1 << 12;
/// More factors are not distinguished.
const MANY: u8 = 3;
/// The most programs of a grid along x.
const GRID_X: i128 = (1 << 31) - 1;
/// The most programs of a grid along y and z.
const GRID_YZ: i128 = (1 << 16) - 1;
/// The deepest nesting of loops in which loop-carried values are followed.
const NESTING: u32 = 3;
/// By how many bits a number may seem to leave its type and yet be expected to fit: the largest factor of an index.
const EXPECTED_BITS: u8 = 16;

/// Whether an operation can wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wraps {
    /// In no launch.
    Never,
    /// In launches of more programs, or longer loops, than are expected; see [`Ranges::expected`].
    Unexpected,
    /// Nothing speaks against it.
    Possible,
}

/// The range of an integer without overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// From where to where, within the type.
    pub interval: Interval,
    /// How many launch-dependent numbers are multiplied: 0 for values that are known to be small.
    pub factors: u8,
}

impl Growth {
    fn new(interval: Interval, factors: u8) -> Growth {
        let small = interval.low > -SMALL && interval.high < SMALL;
        Growth { interval, factors: if small { 0 } else { factors.min(MANY) } }
    }
}

/// The ranges of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueRange {
    sure: Interval,
    growth: Growth,
    /// Its expected range is `expected`, unless it left its type by more than so many bits.
    expected: Interval,
    excess: u8,
}

impl ValueRange {
    fn unknown(ty: Type) -> ValueRange {
        let full = Interval::full(width(ty));
        ValueRange { sure: full, growth: Growth::new(full, 1), expected: full, excess: 0 }
    }

    fn join(self, other: ValueRange) -> ValueRange {
        ValueRange {
            sure: self.sure.join(other.sure),
            growth: Growth::new(
                self.growth.interval.join(other.growth.interval),
                self.growth.factors.max(other.growth.factors),
            ),
            expected: self.expected.join(other.expected),
            excess: self.excess.max(other.excess),
        }
    }

    fn meet(self, bounds: Interval) -> ValueRange {
        ValueRange {
            sure: self.sure.meet(bounds),
            growth: Growth::new(self.growth.interval.meet(bounds), self.growth.factors),
            expected: self.expected.meet(bounds),
            excess: self.excess,
        }
    }
}

/// The ranges of all values of a kernel.
pub struct Ranges<'k> {
    kernel: &'k Kernel,
    known: SecondaryMap<Value, Option<ValueRange>>,
    /// Bounds that `assume` promises.
    promised: SecondaryMap<Value, Option<Interval>>,
    /// Loops around the current operation.
    nesting: u32,
    ordered: Ordered,
}

impl<'k> Ranges<'k> {
    /// Computes the ranges.
    pub fn new(kernel: &'k Kernel) -> Ranges<'k> {
        let mut ranges = Ranges {
            kernel,
            known: SecondaryMap::new(),
            promised: SecondaryMap::new(),
            nesting: 0,
            ordered: Ordered::default(),
        };
        for op in walk(kernel) {
            if let OpKind::Assume {} = kernel.kind(op) {
                ranges.promise(op, view::Assume::at(kernel, op).condition());
            }
        }
        ranges.block(kernel.body());
        ranges
    }

    /// The range of a value in any launch, as signed numbers.
    pub fn of(&self, value: Value) -> Interval {
        self.get(value).sure
    }

    /// The range of a value in a launch of expected size.
    pub fn expected(&self, value: Value) -> Interval {
        let known = self.get(value);
        if known.excess <= EXPECTED_BITS { known.expected } else { known.sure }
    }

    /// The range of a value without overflow.
    pub fn growth(&self, value: Value) -> Growth {
        self.get(value).growth
    }

    /// Whether the result of an operation on integers can wrap around.
    pub fn wraps(&self, op: Op) -> Wraps {
        let (data, Some(result)) = (self.kernel.op(op), self.kernel.op(op).results.first()) else {
            return Wraps::Never;
        };
        let arithmetic = matches!(
            data.kind,
            OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} | OpKind::ShlI {} | OpKind::AbsI {} | OpKind::DivSI {}
        );
        let result_bits = width(self.kernel.value_type(*result));
        let fits = apply(self.kernel, op, &|i| self.of(data.operands[i])).is_some_and(|i| i.fits(result_bits));
        match self.get(*result).excess {
            _ if fits || !arithmetic => Wraps::Never,
            0..=EXPECTED_BITS => Wraps::Unexpected,
            _ => Wraps::Possible,
        }
    }

    /// The kernel with the ranges of integers that are less than their type.
    pub fn print(&self) -> String {
        let text = |value: Value| {
            let ty = self.kernel.value_type(value);
            let full = Interval::full(width(ty));
            let (sure, expected) = (self.of(value), self.expected(value));
            if !is_integer(ty) || expected == full || width(ty) == 1 {
                return None;
            }
            let shown = |i: Interval| format!("{} .. {}", i.low, i.high);
            let factors = match self.growth(value).factors {
                0 => String::new(),
                n => format!("; factors {n}"),
            };
            Some(if sure == expected {
                format!("{}{factors}", shown(sure))
            } else if sure == full {
                format!("expected {}{factors}", shown(expected))
            } else {
                format!("{}, expected {}{factors}", shown(sure), shown(expected))
            })
        };
        super::annotated(self.kernel, &|value, _| text(value), &|_, _| None)
    }

    fn get(&self, value: Value) -> ValueRange {
        let known = self.known[value].unwrap_or_else(|| ValueRange::unknown(self.kernel.value_type(value)));
        match self.promised[value] {
            Some(bounds) => known.meet(bounds),
            None => known,
        }
    }

    /// Records an assumption about values of the block that contains it.
    fn promise(&mut self, assume: Op, condition: Value) {
        let Some(op) = self.kernel.def_op(condition) else { return };
        let data = self.kernel.op(op);
        match &data.kind {
            OpKind::AndI {} => data.operands.iter().for_each(|side| self.promise(assume, *side)),
            OpKind::CmpI { predicate } => {
                let [l, r] = data.operands[..] else { return };
                let literal = |v: Value| match self.kernel.def_op(v).map(|op| self.kernel.kind(op)) {
                    Some(OpKind::Constant { value: Literal::Int(i) }) => Some(Interval::constant(i128::from(*i))),
                    _ => None,
                };
                let (value, bounds) = match (literal(l), literal(r)) {
                    (None, Some(bound)) => (l, bounds(*predicate, true, bound)),
                    (Some(bound), None) => (r, bounds(*predicate, false, bound)),
                    _ => return,
                };
                // Elsewhere the promise would be given for some runs of the block that the value comes from.
                if self.kernel.op(assume).parent == block_of(self.kernel, value) {
                    self.promised[value] = Some(self.promised[value].map_or(bounds, |b| b.meet(bounds)));
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, value: Value, known: Option<ValueRange>) {
        if is_integer(self.kernel.value_type(value)) {
            self.known[value] = known;
        }
    }

    fn block(&mut self, block: Block) {
        for op in self.kernel.ops(block) {
            self.op(op);
        }
    }

    /// A nested block of an operation.
    fn nested(&mut self, op: Op, number: usize) {
        let before = self.ordered.enter(self.kernel, op, number);
        self.block(self.kernel.op(op).blocks[number]);
        self.ordered.leave(before);
    }

    fn op(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        if let OpKind::ForRange { unsigned, .. } = data.kind {
            let range = view::ForRange::at(kernel, op);
            let [lower, upper] = [range.lower(), range.upper()].map(|value| self.get(value));
            // Within the block the index is below the upper bound.
            let between = |l: Interval, u: Interval| Interval::new(l.low, (u.high - 1).max(l.low));
            let known = ValueRange {
                sure: between(lower.sure, upper.sure),
                growth: Growth::new(
                    between(lower.growth.interval, upper.growth.interval),
                    lower.growth.factors.max(upper.growth.factors),
                ),
                expected: between(lower.expected, upper.expected),
                excess: lower.excess,
            };
            let signed = !unsigned || lower.sure.low >= 0 && upper.sure.low >= 0;
            self.set(kernel.block(data.blocks[0]).args[0], signed.then_some(known));
        }
        if regions::is_loop(&data.kind) {
            self.nesting += 1;
            self.carried(op);
            self.nesting -= 1;
        } else if !regions::flow(&data.kind).is_empty() {
            (0..data.blocks.len()).for_each(|number| self.nested(op, number));
            regions::slots(kernel, op).iter().for_each(|slot| self.join_sources(slot));
        } else if data.blocks.is_empty() {
            for result in &data.results {
                if is_integer(kernel.value_type(*result)) {
                    let known = self.transfer(op, *result);
                    self.set(*result, known);
                }
            }
        }
    }

    fn set_targets(&mut self, slot: &Slot, known: ValueRange) {
        slot.targets.iter().for_each(|target| self.set(*target, Some(known)));
    }

    fn join_sources(&mut self, slot: &Slot) {
        if let Some(known) = slot.values(self.kernel).map(|value| self.get(value)).reduce(ValueRange::join) {
            self.set_targets(slot, known);
        }
    }

    /// Loop-carried values: a bound that grows in the first visit is given up.
    fn carried(&mut self, op: Op) {
        let kernel = self.kernel;
        let from_outside = |slot: &Slot| slot.sources[0].0 == op && slot.sources.len() > 1;
        let (mut carried, inner): (Vec<Slot>, Vec<Slot>) =
            regions::slots(kernel, op).into_iter().partition(from_outside);
        carried.retain(|slot| is_integer(kernel.value_type(slot.targets[0])));
        for slot in &carried {
            let first = slot.values(kernel).next();
            first.into_iter().for_each(|value| self.set_targets(slot, self.get(value)));
        }
        for _ in 0..if self.nesting > NESTING { 0 } else { 3 } {
            self.round(op, &inner);
            let mut changed = false;
            for slot in &carried {
                let Some(new) = slot.values(kernel).skip(1).map(|value| self.get(value)).reduce(ValueRange::join)
                else {
                    continue;
                };
                let (old, ty) = (self.get(slot.targets[0]), kernel.value_type(slot.targets[0]));
                let next = widened(old, new, ty);
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

    /// One visit of the blocks of a loop; `inner` has the values that its blocks pass to each other.
    fn round(&mut self, op: Op, inner: &[Slot]) {
        for number in 0..self.kernel.op(op).blocks.len() {
            inner.iter().for_each(|slot| self.join_sources(slot));
            self.nested(op, number);
        }
        inner.iter().for_each(|slot| self.join_sources(slot));
    }

    fn transfer(&self, op: Op, result: Value) -> Option<ValueRange> {
        let data = self.kernel.op(op);
        let operand = |i: usize| self.get(data.operands[i]);
        let bits = width(self.kernel.value_type(result));
        let full = Interval::full(bits);
        let grid = match data.kind {
            OpKind::ProgramId { axis } => Some(Interval::new(0, if axis == 0 { GRID_X - 1 } else { GRID_YZ - 1 })),
            OpKind::NumPrograms { axis } => Some(Interval::new(1, if axis == 0 { GRID_X } else { GRID_YZ })),
            _ => None,
        };
        if let Some(sure) = grid {
            return Some(ValueRange { sure, growth: Growth::new(sure, 1), expected: sure, excess: 0 });
        }
        let factors = self.factors(op)?;
        let in_order =
            view::SubI::of(self.kernel, op).is_some_and(|sides| self.ordered.holds(sides.lhs(), sides.rhs()));
        let least = if in_order { 0 } else { i128::MIN };
        let apply = |kernel: &Kernel, op: Op, operand: &dyn Fn(usize) -> Interval| {
            Some(apply(kernel, op, operand)?.meet(Interval::new(least, i128::MAX)))
        };
        let sure = apply(self.kernel, op, &|i| operand(i).sure).filter(|i| i.fits(bits)).unwrap_or(full);
        let divides = matches!(data.kind, OpKind::DivSI {} | OpKind::RemSI {});
        let ideal = |i: usize| {
            let expected = operand(i).expected;
            if divides && i == 1 { expected.meet(Interval::new(1, i128::MAX)) } else { expected }
        };
        let (expected, left) = cut(apply(self.kernel, op, &ideal), full);
        let grown = apply(self.kernel, op, &|i| operand(i).growth.interval);
        let factors = if grown.is_some() { factors } else { factors.max(1) };
        let (grown, _) = cut(grown, full);
        let integers = || data.operands.iter().filter(|v| is_integer(self.kernel.value_type(**v)));
        let before = integers().map(|v| self.get(*v).excess);
        let excess = match data.kind {
            // A product of constants that is too large overflows in every launch.
            _ if left > 0 && factors == 0 => u8::MAX,
            // Sums leave the type by one bit and come back, unless both sides do; products grow.
            OpKind::AddI {} | OpKind::SubI {} => {
                let both = before.clone().all(|e| e > 0);
                before.max().unwrap_or(0).saturating_add(u8::from(both)).max(left.min(1))
            }
            OpKind::MulI {} | OpKind::ShlI {} => before.fold(left, u8::saturating_add),
            // Of a negative number that is no size, and its multiples may wrap.
            OpKind::ShrUI {} if ideal(0).low < 0 => u8::MAX,
            _ => before.max().unwrap_or(0),
        };
        Some(ValueRange { sure, growth: Growth::new(grown, factors), expected, excess })
    }

    /// How many numbers of the launch are multiplied in a result; `None` if it is a number of its own.
    fn factors(&self, op: Op) -> Option<u8> {
        let data = self.kernel.op(op);
        let growth = |i: usize| self.growth(data.operands[i]);
        let factors = |i: usize| growth(i).factors;
        Some(match &data.kind {
            OpKind::Constant { .. } | OpKind::Arange { .. } | OpKind::CmpI { .. } | OpKind::CmpF { .. } => 0,
            OpKind::MulI {} => factors(0) + factors(1),
            OpKind::ShlI {} | OpKind::ShrSI {} | OpKind::ShrUI {} | OpKind::DivSI {} | OpKind::DivUI {} => factors(0),
            OpKind::RemSI {} | OpKind::RemUI {} => factors(0).min(factors(1)),
            OpKind::AndI {} => match (growth(0).interval.low >= 0, growth(1).interval.low >= 0) {
                (true, true) => factors(0).min(factors(1)),
                (true, false) => factors(0),
                (false, true) => factors(1),
                (false, false) => factors(0).max(factors(1)),
            },
            OpKind::MinSI {} | OpKind::MinUI {} if growth(0).interval.high <= growth(1).interval.high => factors(0),
            OpKind::MinSI {} | OpKind::MinUI {} => factors(1),
            OpKind::Select {} => factors(1).max(factors(2)),
            OpKind::AddI {}
            | OpKind::SubI {}
            | OpKind::OrI {}
            | OpKind::XorI {}
            | OpKind::MaxSI {}
            | OpKind::MaxUI {}
            | OpKind::Join {}
            | OpKind::Cat {} => factors(0).max(factors(1)),
            OpKind::ExtSI { .. } | OpKind::ExtUI { .. } | OpKind::TruncI { .. } => factors(0),
            OpKind::Split {} | OpKind::Gather { .. } | OpKind::Sort { .. } => factors(0),
            kind if kind.forwards().is_some() => factors(0),
            kind if kind.spec().traits.has(Traits::ELEMENTWISE) => {
                data.operands.iter().map(|v| self.growth(*v).factors).max().unwrap_or(1).max(1)
            }
            _ => return None,
        })
    }
}

/// An interval cut to what the type holds, and by how many bits it left that.
fn cut(interval: Option<Interval>, full: Interval) -> (Interval, u8) {
    let Some(interval) = interval else { return (full, 0) };
    let bits = |x: i128| 128 - x.unsigned_abs().leading_zeros();
    let most = bits(interval.low.min(0) + 1).max(bits(interval.high));
    let left = most.saturating_sub(bits(full.high));
    (Interval::new(interval.low.clamp(full.low, full.high), interval.high.clamp(full.low, full.high)), left as u8)
}

/// A loop-carried value after one more visit: changing bounds go to 0 or to the limit of the type.
fn widened(old: ValueRange, new: ValueRange, ty: Type) -> ValueRange {
    let full = Interval::full(width(ty));
    let wider = |old: Interval, new: Interval| {
        // Most decreasing values stay above 0.
        let least = if new.low >= 0 { 0 } else { full.low };
        let low = if new.low < old.low { least } else { old.low };
        let high = if new.high > old.high { full.high } else { old.high };
        Interval::new(low, high)
    };
    let grown = wider(old.growth.interval, new.growth.interval);
    // A sum over steps is as large as a launch-dependent number.
    let grows = u8::from(grown != old.growth.interval);
    ValueRange {
        sure: wider(old.sure, new.sure),
        growth: Growth::new(grown, old.growth.factors.max(new.growth.factors).max(grows)),
        expected: wider(old.expected, new.expected),
        excess: old.excess.max(new.excess),
    }
}

/// The range of `value` if it is in relation `predicate` to `other`, on its left or right.
fn bounds(predicate: Predicate, left: bool, other: Interval) -> Interval {
    let below = |n: i128| Interval::new(i128::MIN, n);
    let above = |n: i128| Interval::new(n, i128::MAX);
    match (predicate, left) {
        (Predicate::Lt, true) | (Predicate::Gt, false) => below(other.high.saturating_sub(1)),
        (Predicate::Le, true) | (Predicate::Ge, false) => below(other.high),
        (Predicate::Gt, true) | (Predicate::Lt, false) => above(other.low.saturating_add(1)),
        (Predicate::Ge, true) | (Predicate::Le, false) => above(other.low),
        (Predicate::Eq, _) => other,
        // Below a number without sign that has none: not negative either.
        (Predicate::Ult, true) | (Predicate::Ugt, false) if other.low >= 0 => Interval::new(0, (other.high - 1).max(0)),
        (Predicate::Ule, true) | (Predicate::Uge, false) if other.low >= 0 => Interval::new(0, other.high),
        _ => Interval::new(i128::MIN, i128::MAX),
    }
}

/// The block from which on a value is known.
pub(super) fn block_of(kernel: &Kernel, value: Value) -> Option<Block> {
    match kernel.value(value).def {
        ValueDef::Result(op, _) => kernel.op(op).parent,
        ValueDef::Arg(block, _) => Some(block),
    }
}

/// Whether a type is one of integers, or of tiles of them.
pub(super) fn is_integer(ty: Type) -> bool {
    matches!(ty.elem(), Some(Elem::Num(s)) if s.is_int())
}

/// The bits of an element.
pub(super) fn width(ty: Type) -> u32 {
    ty.elem().and_then(Elem::num).map_or(64, Scalar::bits)
}

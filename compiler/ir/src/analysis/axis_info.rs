//! Axis information: contiguity, divisibility and constancy along each dimension of a tile.
//!
//! For every dimension three powers of two (capped):
//! - `contiguity`: the tile falls into aligned runs of this many values that grow by one;
//! - `divisibility`: divides the first value of each such run (bytes for pointers);
//! - `constancy`: the tile falls into aligned runs of this many equal values;
//!
//! and `strided`: the tile falls into aligned runs of values that grow by some other constant.
//!
//! Numbers wrap, and a wrap may be inside of a run, but never inside of its aligned pieces of min(contiguity,
//! divisibility), which one access or comparison covers. For signed quotients the dividend must be known not to be
//! negative, in launches of expected size ([`Ranges::expected`]); for remainders, which are indices, this is assumed if
//! nothing is known about the lower bound of the dividend, as Triton assumes everywhere. A load yields equal values for
//! equal addresses, so that an index that is read from a table once per page is constant along the page.
//!
//! Example: `pid * 1024 + arange(0, 1024)` has contiguity 1024, divisibility 1024, constancy 1. A comparison of it
//! with a bound divisible by 16 has constancy 16, which makes 16 masked elements one access.

use std::cell::OnceCell;

use cranelift_entity::SecondaryMap;

use super::axis::{
    Axis, CAP, Strided, comparison_constancy, difference, divisibility_of, gcd, lcm_power, pointer_sum,
    power_of_two_part, product, reshaped, sum,
};
use super::interval::Interval;
use super::ranges::{Ranges, width};
use crate::{Block, Elem, HintKind, Kernel, Literal, Op, OpKind, Traits, Value, regions, view};

/// The properties of one value: one entry per dimension; scalars have one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisInfo {
    /// Per dimension.
    pub axes: Vec<Axis>,
    /// The value of a constant.
    pub constant: Option<i64>,
}

/// The axis information of all values of a kernel.
pub struct AxisInfos {
    infos: SecondaryMap<Value, Option<AxisInfo>>,
}

impl AxisInfos {
    /// The properties of a value along dimension `axis`.
    pub fn axis(&self, value: Value, axis: usize) -> Axis {
        self.infos[value].as_ref().and_then(|i| i.axes.get(axis)).copied().unwrap_or(Axis::UNKNOWN)
    }

    /// The constant that a value is, or is filled with.
    pub fn constant(&self, value: Value) -> Option<i64> {
        self.infos[value].as_ref().and_then(|i| i.constant)
    }
}

impl AxisInfos {
    /// The kernel with the properties of tiles, and of scalars with a known divisor.
    pub fn print(&self, kernel: &Kernel) -> String {
        let text = |value: Value| {
            let info = self.infos[value].as_ref()?;
            let ty = kernel.value_type(value);
            let wanted = matches!(ty.elem()?, Elem::Ptr(_)) || ty.elem()?.num().is_some_and(|s| s.is_int());
            if !wanted || ty.shape().is_none() && info.axes == [Axis::UNKNOWN] {
                return None;
            }
            let axis = |a: &Axis| {
                let divisor = if a.divisibility == CAP { "all".to_string() } else { a.divisibility.to_string() };
                let strided = match a.strided.run {
                    1 => String::new(),
                    run => format!(", by {} in runs of {run}", a.strided.step),
                };
                format!("contiguous {}, divisible {divisor}, constant {}{strided}", a.contiguity, a.constancy)
            };
            let axes: Vec<String> = info.axes.iter().map(axis).collect();
            let constant = info.constant.map_or(String::new(), |c| format!("; is {c}"));
            Some(axes.join(" | ") + &constant)
        };
        super::annotated(kernel, &|value, _| text(value), &|_, _| None)
    }
}

/// Computes the axis information of all values.
pub fn axis_info(kernel: &Kernel) -> AxisInfos {
    let mut analysis = Analysis { kernel, ranges: OnceCell::new(), infos: SecondaryMap::new() };
    for param in &kernel.params {
        let divisibility = power_of_two_part(param.divisible_by.into());
        analysis.infos[param.value] =
            Some(AxisInfo { axes: vec![Axis { divisibility, ..Axis::UNKNOWN }], constant: None });
    }
    analysis.block(kernel.body());
    AxisInfos { infos: analysis.infos }
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    /// Computed when a quotient or remainder needs it.
    ranges: OnceCell<Ranges<'k>>,
    infos: SecondaryMap<Value, Option<AxisInfo>>,
}

impl Analysis<'_> {
    fn rank(&self, value: Value) -> usize {
        self.kernel.value_type(value).shape().map_or(1, |s| s.rank())
    }

    fn size(&self, value: Value, axis: usize) -> u64 {
        self.kernel.value_type(value).shape().map_or(1, |s| s[axis].into())
    }

    fn unknown(&self, value: Value) -> AxisInfo {
        AxisInfo { axes: vec![Axis::UNKNOWN; self.rank(value)], constant: None }
    }

    fn info(&self, value: Value) -> AxisInfo {
        self.infos[value].clone().unwrap_or_else(|| self.unknown(value))
    }

    fn block(&mut self, block: Block) {
        for op in self.kernel.ops(block) {
            self.op(op);
        }
    }

    fn op(&mut self, op: Op) {
        let data = self.kernel.op(op);
        if regions::flow(&data.kind).is_empty() {
            // Values that were not visited have no entry, so that loops can tell them from unknown ones.
            for result in &data.results {
                let is_plain = data.blocks.is_empty() && data.results.len() == 1;
                let info = if is_plain { self.transfer(op, *result) } else { self.unknown(*result) };
                self.infos[*result] = Some(info);
            }
            return;
        }
        if let OpKind::ForRange { .. } = data.kind {
            let range = view::ForRange::at(self.kernel, op);
            let (lower, step) = (self.info(range.lower()), self.info(range.step()));
            let divisibility = gcd(lower.axes[0].divisibility, step.axes[0].divisibility);
            let index = self.kernel.block(data.blocks[0]).args[0];
            self.infos[index] = Some(AxisInfo { axes: vec![Axis { divisibility, ..Axis::UNKNOWN }], constant: None });
        }
        self.handed_values(op);
    }

    /// The values that nested blocks receive and yield: starts with those of the first source and weakens them until
    /// all sources agree.
    fn handed_values(&mut self, op: Op) {
        let slots = regions::slots(self.kernel, op);
        // Each pass lowers some power of two; 48 passes are enough, and the last resort is no information.
        for round in 0..=48 {
            let mut changed = false;
            for block in self.kernel.op(op).blocks.clone() {
                changed |= self.join_sources(&slots, round == 48);
                self.block(block);
            }
            changed |= self.join_sources(&slots, round == 48);
            if !changed {
                return;
            }
        }
    }

    /// Weakens the targets of slots to the sources known so far; true if that changed something.
    fn join_sources(&mut self, slots: &[regions::Slot], give_up: bool) -> bool {
        let mut changed = false;
        for slot in slots {
            let first = slot.targets[0];
            let known = slot.values(self.kernel).filter_map(|value| self.infos[value].clone());
            let Some(mut info) = known.chain(self.infos[first].clone()).reduce(join) else { continue };
            if give_up {
                info = self.unknown(first);
            }
            if self.infos[first].as_ref() != Some(&info) {
                changed = true;
                slot.targets.iter().for_each(|target| self.infos[*target] = Some(info.clone()));
            }
        }
        changed
    }

    fn transfer(&self, op: Op, result: Value) -> AxisInfo {
        let data = self.kernel.op(op);
        let operand = |i: usize| self.info(data.operands[i]);
        let per_axis =
            |f: &dyn Fn(usize) -> Axis| AxisInfo { axes: (0..self.rank(result)).map(f).collect(), constant: None };
        match &data.kind {
            OpKind::Constant { value } => {
                let constant = match value {
                    Literal::Int(i) => Some(*i),
                    Literal::Float(_) => None,
                };
                let divisibility = constant.map_or(1, divisibility_of);
                let mut info = per_axis(&|i| Axis { divisibility, constancy: self.size(result, i), ..Axis::UNKNOWN });
                info.constant = constant;
                info
            }
            OpKind::Arange { start, end } => {
                let contiguity = power_of_two_part(end.wrapping_sub(*start) as u64);
                per_axis(&|_| Axis { contiguity, divisibility: divisibility_of(*start), ..Axis::UNKNOWN })
            }
            OpKind::Splat {} => {
                let scalar = operand(0);
                let divisibility = scalar.axes[0].divisibility;
                let mut info = per_axis(&|i| Axis { divisibility, constancy: self.size(result, i), ..Axis::UNKNOWN });
                info.constant = scalar.constant;
                info
            }
            OpKind::ExpandDims { axis } => {
                let source = operand(0);
                let all = source.axes.iter().map(|a| a.divides_all()).min().unwrap_or(1);
                let mut axes = source.axes;
                axes.insert(*axis as usize, Axis { divisibility: all, ..Axis::UNKNOWN });
                AxisInfo { axes, constant: source.constant }
            }
            OpKind::Broadcast {} => {
                let source = operand(0);
                let mut info = per_axis(&|i| {
                    let axis = source.axes[i];
                    let grown = self.size(view::Broadcast::at(self.kernel, op).source(), i) != self.size(result, i);
                    if grown {
                        let (divisibility, constancy) = (axis.divides_all(), self.size(result, i));
                        Axis { divisibility, constancy, ..Axis::UNKNOWN }
                    } else {
                        axis
                    }
                });
                info.constant = source.constant;
                info
            }
            OpKind::Trans { order } => {
                let source = operand(0);
                per_axis(&|i| source.axes[order[i] as usize])
            }
            OpKind::ConvertLayout {} => operand(0),
            OpKind::Reshape { reorder: false } => {
                let shapes = [view::Reshape::at(self.kernel, op).source(), result]
                    .map(|value| self.kernel.value_type(value).shape());
                let ([Some(from), Some(to)], source) = (shapes, operand(0)) else { return self.unknown(result) };
                AxisInfo { axes: reshaped(&source.axes, &from, &to), constant: source.constant }
            }
            OpKind::ExtSI { .. } | OpKind::ExtUI { .. } => {
                let mut info = operand(0);
                // The literal of a negative number says nothing of the bits that are put before it.
                let narrow = width(self.kernel.value_type(data.operands[0])) == 1;
                info.constant = info.constant.filter(|c| *c >= 0 && !narrow);
                info
            }
            OpKind::TruncI { .. } => {
                // A run within the narrower type does not wrap.
                let bits = width(self.kernel.value_type(result));
                let most = 1u64 << (bits - 1).min(40);
                let source = operand(0);
                let mut info = per_axis(&|i| {
                    let axis = source.axes[i];
                    let contiguity = axis.contiguity.min(most);
                    Axis { contiguity, divisibility: axis.start_of(contiguity), ..axis }
                });
                info.constant = source.constant.filter(|c| Interval::constant((*c).into()).fits(bits));
                info
            }
            OpKind::Hint { kind, values } => {
                let source = operand(0);
                let mut info = per_axis(&|i| {
                    let (axis, promised) = (source.axes[i], u64::from(values.get(i).copied().unwrap_or(1)).max(1));
                    match kind {
                        HintKind::MultipleOf => Axis { divisibility: lcm_power(axis.divisibility, promised), ..axis },
                        HintKind::MaxContiguous => Axis { contiguity: lcm_power(axis.contiguity, promised), ..axis },
                        HintKind::MaxConstancy => Axis { constancy: lcm_power(axis.constancy, promised), ..axis },
                    }
                });
                info.constant = source.constant;
                info
            }
            OpKind::AddI {} => {
                let (l, r) = (operand(0), operand(1));
                per_axis(&|i| sum(l.axes[i], r.axes[i]))
            }
            OpKind::AddPtr {} => {
                let (pointer, offset) = (operand(0), operand(1));
                let bytes =
                    u64::from(self.kernel.value_type(result).elem().and_then(|e| e.pointee()).map_or(1, |s| s.bytes()));
                per_axis(&|i| pointer_sum(pointer.axes[i], offset.axes[i], bytes))
            }
            OpKind::SubI {} => {
                let (l, r) = (operand(0), operand(1));
                per_axis(&|i| difference(l.axes[i], r.axes[i]))
            }
            OpKind::MulI {} => {
                let (l, r) = (operand(0), operand(1));
                let mut info = per_axis(&|i| product(l.axes[i], r.axes[i], l.constant, r.constant));
                let bits = width(self.kernel.value_type(result));
                let both = l.constant.zip(r.constant).and_then(|(a, b)| a.checked_mul(b));
                info.constant = both.filter(|c| Interval::constant((*c).into()).fits(bits));
                info
            }
            OpKind::ShlI {} => {
                let (l, r) = (operand(0), operand(1));
                let factor = r.constant.filter(|c| (0..40).contains(c)).map(|c| 1i64 << c);
                let Some(factor) = factor else { return self.only_constancy(op, result) };
                let by = Axis { divisibility: factor as u64, constancy: CAP, ..Axis::UNKNOWN };
                per_axis(&|i| product(l.axes[i], by, l.constant, Some(factor)))
            }
            OpKind::DivSI {} | OpKind::DivUI {} => self.quotient(op, result, operand(1).constant),
            // A shift rounds down, regardless of the sign.
            OpKind::ShrSI {} | OpKind::ShrUI {} => {
                self.quotient(op, result, operand(1).constant.filter(|c| (0..40).contains(c)).map(|c| 1 << c))
            }
            OpKind::RemSI {} | OpKind::RemUI {} => {
                let (l, r) = (operand(0), operand(1));
                let rounds_down = self.rounds_down(op) || self.is_unbounded(op);
                per_axis(&|i| {
                    let (l, r) = (l.axes[i], r.axes[i]);
                    let divisor = r.divides_all();
                    let run = if rounds_down { gcd(gcd(l.contiguity, l.divisibility), divisor) } else { 1 };
                    let whole = r.constancy >= run;
                    let contiguity = if whole { run } else { 1 };
                    Axis {
                        contiguity,
                        divisibility: if whole { gcd(l.start_of(contiguity), divisor) } else { 1 },
                        constancy: gcd(l.constancy, r.constancy),
                        strided: Strided::NONE,
                    }
                })
            }
            OpKind::CmpI { predicate } => {
                let (l, r) = (operand(0), operand(1));
                per_axis(&|i| Axis {
                    constancy: comparison_constancy(l.axes[i], r.axes[i], *predicate),
                    ..Axis::UNKNOWN
                })
            }
            OpKind::Select {} => {
                let (c, l, r) = (operand(0), operand(1), operand(2));
                per_axis(&|i| {
                    let joined = l.axes[i].join(r.axes[i]);
                    let contiguity = gcd(joined.contiguity, c.axes[i].constancy);
                    Axis {
                        contiguity,
                        divisibility: joined.start_of(contiguity),
                        constancy: gcd(joined.constancy, c.axes[i].constancy),
                        strided: Strided::NONE,
                    }
                })
            }
            OpKind::MinSI {} | OpKind::MaxSI {} | OpKind::MinUI {} | OpKind::MaxUI {} => {
                let (l, r) = (operand(0), operand(1));
                per_axis(&|i| {
                    let (l, r) = (l.axes[i], r.axes[i]);
                    Axis {
                        divisibility: gcd(l.divides_all(), r.divides_all()),
                        constancy: gcd(l.constancy, r.constancy),
                        ..Axis::UNKNOWN
                    }
                })
            }
            // One load gives equal values for equal addresses; a volatile one may read the same address twice.
            OpKind::Load { volatile: false, .. } => self.only_constancy(op, result),
            kind if kind.spec().traits.has(Traits::ELEMENTWISE) => self.only_constancy(op, result),
            _ => self.unknown(result),
        }
    }

    /// An element-wise operation without further rules keeps common runs of equal values.
    fn only_constancy(&self, op: Op, result: Value) -> AxisInfo {
        let operands = &self.kernel.op(op).operands;
        let axes = (0..self.rank(result))
            .map(|i| {
                let constancy = operands.iter().map(|v| self.info(*v).axes[i].constancy).fold(0, gcd).max(1);
                Axis { constancy, ..Axis::UNKNOWN }
            })
            .collect();
        AxisInfo { axes, constant: None }
    }

    /// Whether a quotient or remainder rounds down. A signed division rounds toward zero, so that in the runs of a
    /// negative dividend the first element differs: `-8 / 8` is -1, but `-7 / 8` is 0.
    fn rounds_down(&self, op: Op) -> bool {
        let data = self.kernel.op(op);
        let signed = matches!(data.kind, OpKind::DivSI {} | OpKind::RemSI {});
        let ranges = || self.ranges.get_or_init(|| Ranges::new(self.kernel));
        !signed || self.kernel.sides(op).is_some_and(|[dividend, _]| ranges().expected(dividend).low >= 0)
    }

    /// Whether nothing is known of the least dividend, as where it follows from arguments of any sign: no constant makes it
    /// negative. Only runs that begin at a negative multiple of the divisor would not be runs.
    fn is_unbounded(&self, op: Op) -> bool {
        let Some([dividend, _]) = self.kernel.sides(op) else { return true };
        let least = Interval::full(width(self.kernel.value_type(dividend))).low;
        let ranges = self.ranges.get_or_init(|| Ranges::new(self.kernel));
        ranges.expected(dividend).low <= least / 2
    }

    fn quotient(&self, op: Op, result: Value, divisor: Option<i64>) -> AxisInfo {
        let mut info = self.only_constancy(op, result);
        let Some([source, by]) = self.kernel.sides(op).map(|sides| sides.map(|side| self.info(side))) else {
            return info;
        };
        let rounds_down = self.rounds_down(op);
        let Some(divisor) = divisor.filter(|d| *d > 0) else {
            // A multiple of the run, whichever it is.
            let is_division = matches!(self.kernel.kind(op), OpKind::DivSI {} | OpKind::DivUI {});
            for ((axis, of), by) in info.axes.iter_mut().zip(&source.axes).zip(&by.axes) {
                let run = gcd(gcd(of.contiguity, of.divisibility), by.divides_all());
                if is_division && rounds_down && by.constancy >= run {
                    axis.constancy = axis.constancy.max(run);
                }
            }
            return info;
        };
        if divisor == 1 {
            return source;
        }
        let part = power_of_two_part(divisor as u64);
        for (axis, of) in info.axes.iter_mut().zip(&source.axes) {
            if rounds_down {
                axis.constancy = axis.constancy.max(gcd(gcd(of.contiguity, of.divisibility), part));
            }
            if of.contiguity == 1 && part == divisor as u64 {
                axis.divisibility = (of.divisibility / part).max(1);
            }
        }
        info
    }
}

fn join(a: AxisInfo, b: AxisInfo) -> AxisInfo {
    let axes = a.axes.iter().zip(&b.axes).map(|(x, y)| x.join(*y)).collect();
    AxisInfo { axes, constant: a.constant.filter(|c| b.constant == Some(*c)) }
}

//! The change of a tile's values along its index, bit by bit of the index.
//!
//! The sizes of tiles are powers of two, so an index is a sequence of bits, those of the last dimension lowest, and an
//! address such as `i // 8 * stride + i % 8` is the sum of the contributions of its bits: 1, 2, 4, then `stride`, twice
//! `stride`, ... [`AxisInfos`] has only the length of the first of these runs, but is reliable. This analysis may be
//! wrong if numbers overflow, if quotients have a remainder at the start of the tile, or in iterations of a loop after
//! the first: it is meant for estimates of cost, such as how many sectors a warp touches, and not for correctness.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::AxisInfos;
use crate::{HintKind, Kernel, Op, OpKind, Shape, Traits, Value, regions, view};

/// The contribution of one bit of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This much: bytes for pointers, else as the number counts.
    By(i64),
    /// This much times a number that is not known before the launch, such as a stride that may be 1.
    Times(i64),
    /// A large or unknown amount: a stride that is a multiple of something, an index that was loaded.
    Far,
}

impl Step {
    const ZERO: Step = Step::By(0);

    /// The joint contribution of two bits that differ together, or of two numbers at one bit.
    #[must_use]
    pub fn plus(self, other: Step) -> Step {
        match (self, other) {
            (Step::By(a), Step::By(b)) => Step::By(a.wrapping_add(b)),
            (Step::By(0), other) | (other, Step::By(0)) => other,
            // An addend is small compared with a run-time stride unless the stride is 1.
            (Step::Times(a), Step::By(_)) | (Step::By(_), Step::Times(a)) => Step::Times(a),
            (Step::Times(a), Step::Times(b)) => Step::Times(a.wrapping_add(b)),
            (Step::Far, _) | (_, Step::Far) => Step::Far,
        }
    }

    fn times(self, factor: i64) -> Step {
        match (self, factor) {
            (_, 0) => Step::ZERO,
            (Step::By(a), factor) => Step::By(a.saturating_mul(factor)),
            (Step::Times(a), factor) => Step::Times(a.saturating_mul(factor)),
            (Step::Far, _) => Step::Far,
        }
    }
}

/// The steps of all values of a kernel, computed on demand.
pub struct Steps<'k> {
    kernel: &'k Kernel,
    infos: &'k AxisInfos,
    known: RefCell<HashMap<Value, Rc<[Step]>>>,
}

impl<'k> Steps<'k> {
    /// The kernel.
    pub fn new(kernel: &'k Kernel, infos: &'k AxisInfos) -> Steps<'k> {
        Steps { kernel, infos, known: RefCell::default() }
    }

    /// The contribution of each bit of the index, those of the last dimension first, lowest first. Empty for scalars.
    pub fn of(&self, value: Value) -> Rc<[Step]> {
        if let Some(known) = self.known.borrow().get(&value) {
            return known.clone();
        }
        let bits = self.bits(value);
        // The answer to requests for it within a loop.
        self.known.borrow_mut().insert(value, vec![Step::ZERO; bits].into());
        let found: Rc<[Step]> = match regions::slot_of(self.kernel, value) {
            Some(slot) => slot.values(self.kernel).next().map_or_else(|| self.far(bits), |first| self.of(first)),
            None => self.kernel.def_op(value).map_or_else(|| self.far(bits), |op| self.result(op, value).into()),
        };
        self.known.borrow_mut().insert(value, found.clone());
        found
    }

    /// The same along one dimension.
    pub fn along(&self, value: Value, axis: usize) -> Vec<Step> {
        let shape = self.kernel.value_type(value).shape();
        let inner = shape.map_or(0, |shape| (axis + 1..shape.rank()).map(|a| size_bits(&shape, a)).sum::<usize>());
        let own = shape.map_or(0, |shape| size_bits(&shape, axis));
        self.of(value)[inner..inner + own].to_vec()
    }

    /// The kernel with the steps of tiles of integers and pointers, those of the first dimension first.
    pub fn print(&self) -> String {
        let step = |step: &Step| match step {
            Step::By(by) => by.to_string(),
            Step::Times(by) => format!("{by} * ?"),
            Step::Far => "far".into(),
        };
        let text = |value: Value| {
            let ty = self.kernel.value_type(value);
            let elem = ty.elem()?;
            let counts = elem.is_ptr() || elem.num().is_some_and(|num| num.is_int());
            let shape = ty.shape().filter(|_| counts)?;
            let axis = |axis| self.along(value, axis).iter().map(step).collect::<Vec<_>>().join(", ");
            Some((0..shape.rank()).map(axis).collect::<Vec<_>>().join(" | "))
        };
        super::annotated(self.kernel, &|value, _| text(value), &|_, _| None)
    }

    fn bits(&self, value: Value) -> usize {
        let shape = self.kernel.value_type(value).shape();
        shape.map_or(0, |shape| (0..shape.rank()).map(|axis| size_bits(&shape, axis)).sum())
    }

    fn far(&self, bits: usize) -> Rc<[Step]> {
        vec![Step::Far; bits].into()
    }

    fn result(&self, op: Op, value: Value) -> Vec<Step> {
        let data = self.kernel.op(op);
        let of = |index: usize| self.of(data.operands[index]);
        let both = |combine: &dyn Fn(Step, Step) -> Step| -> Vec<Step> {
            of(0).iter().zip(of(1).iter()).map(|(a, b)| combine(*a, *b)).collect()
        };
        let constant = |index: usize| self.infos.constant(data.operands[index]);
        let each = |index: usize, f: &dyn Fn(Step) -> Step| -> Vec<Step> { of(index).iter().map(|s| f(*s)).collect() };
        let quotient = |divisor: Option<i64>| match self.kernel.sides(op) {
            Some([dividend, by]) => self.quotient(dividend, by, divisor),
            None => self.other(op, value),
        };
        match &data.kind {
            OpKind::Constant { .. } | OpKind::Splat {} => vec![Step::ZERO; self.bits(value)],
            OpKind::Arange { .. } => (0..self.bits(value)).map(|bit| Step::By(1 << bit)).collect(),
            OpKind::ExpandDims { .. }
            | OpKind::Reshape { .. }
            | OpKind::ConvertLayout {}
            | OpKind::ExtSI { .. }
            | OpKind::ExtUI { .. }
            | OpKind::TruncI { .. } => of(0).to_vec(),
            OpKind::Broadcast {} => self.broadcast(view::Broadcast::at(self.kernel, op).source(), value),
            OpKind::Trans { order } => order
                .iter()
                .rev()
                .flat_map(|axis| self.along(view::Trans::at(self.kernel, op).source(), *axis as usize))
                .collect(),
            OpKind::Hint { kind, values } => self.promised(view::Hint::at(self.kernel, op).value(), *kind, values),
            OpKind::AddI {} | OpKind::OrI {} | OpKind::XorI {} => both(&Step::plus),
            OpKind::SubI {} => both(&|a, b| a.plus(b.times(-1))),
            OpKind::AddPtr {} => {
                let elem = self.kernel.value_type(value).elem().and_then(|elem| elem.pointee());
                let bytes = elem.map_or(1, |elem| i64::from(elem.bytes()));
                both(&|pointer, offset| pointer.plus(offset.times(bytes)))
            }
            OpKind::MulI {} => match (constant(0), constant(1)) {
                (_, Some(factor)) => each(0, &|step| step.times(factor)),
                (Some(factor), _) => each(1, &|step| step.times(factor)),
                _ => {
                    let divisor = |index: usize| self.divisor(data.operands[index]);
                    let (left, right) = (divisor(0), divisor(1));
                    both(&|a, b| match (a, b) {
                        (Step::By(0), Step::By(0)) => Step::ZERO,
                        (step, Step::By(0)) => scaled(step, right),
                        (Step::By(0), step) => scaled(step, left),
                        _ => Step::Far,
                    })
                }
            },
            OpKind::ShlI {} => match constant(1) {
                Some(by @ 0..40) => each(0, &|step| step.times(1 << by)),
                _ => self.other(op, value),
            },
            OpKind::DivSI {} | OpKind::DivUI {} => quotient(constant(1)),
            OpKind::ShrSI {} | OpKind::ShrUI {} => match constant(1) {
                Some(by @ 0..40) => quotient(Some(1 << by)),
                _ => self.other(op, value),
            },
            // An unknown size is not expected to be many times smaller than a tile.
            OpKind::RemSI {} | OpKind::RemUI {} => each(0, &|step| match (step, constant(1)) {
                (Step::By(by), Some(size)) if size != 0 => Step::By(by % size),
                _ => step,
            }),
            OpKind::AndI {} => match (constant(0), constant(1)) {
                (_, Some(mask @ 0..)) => each(0, &|step| masked(step, mask)),
                (Some(mask @ 0..), _) => each(1, &|step| masked(step, mask)),
                _ => self.other(op, value),
            },
            // A bound or a fill value is uniform.
            OpKind::Select {} => {
                let select = view::Select::at(self.kernel, op);
                self.one_that_varies(&[select.lhs(), select.rhs()])
            }
            OpKind::MinSI {} | OpKind::MaxSI {} | OpKind::MinUI {} | OpKind::MaxUI {} => {
                self.one_that_varies(&data.operands)
            }
            _ => self.other(op, value),
        }
    }

    /// A number that divides a value of any place.
    fn divisor(&self, value: Value) -> u64 {
        let rank = self.kernel.value_type(value).shape().map_or(1, |shape| shape.rank());
        (0..rank).map(|axis| self.infos.axis(value, axis)).map(|axis| axis.divides_all()).min().unwrap_or(1)
    }

    fn broadcast(&self, source: Value, value: Value) -> Vec<Step> {
        let shapes = (self.kernel.value_type(source).shape(), self.kernel.value_type(value).shape());
        let (Some(from), Some(to)) = shapes else { return vec![Step::ZERO; self.bits(value)] };
        let along = |axis: usize| match size_bits(&from, axis) {
            0 => vec![Step::ZERO; size_bits(&to, axis)],
            _ => self.along(source, axis),
        };
        (0..to.rank()).rev().flat_map(along).collect()
    }

    fn promised(&self, source: Value, kind: HintKind, values: &[u32]) -> Vec<Step> {
        let mut steps = self.of(source).to_vec();
        let Some(shape) = self.kernel.value_type(source).shape() else { return steps };
        let bytes = self.kernel.value_type(source).elem().and_then(|e| e.pointee()).map_or(1, |e| i64::from(e.bytes()));
        let mut first = 0;
        for axis in (0..shape.rank()).rev() {
            let own = size_bits(&shape, axis);
            let run = values.get(axis).map_or(0, |run| run.max(&1).ilog2() as usize).min(own);
            for (bit, step) in steps[first..first + run].iter_mut().enumerate() {
                match kind {
                    HintKind::MaxConstancy => *step = Step::ZERO,
                    HintKind::MaxContiguous => *step = Step::By(bytes << bit),
                    HintKind::MultipleOf => {}
                }
            }
            first += own;
        }
        steps
    }

    fn quotient(&self, dividend: Value, divisor: Value, constant: Option<i64>) -> Vec<Step> {
        let least = i64::try_from(self.divisor(divisor)).unwrap_or(i64::MAX);
        let each = |step: &Step| match (*step, constant) {
            (Step::By(by), Some(divisor)) if divisor != 0 => Step::By(by / divisor),
            (Step::By(by), None) if by.abs() < least => Step::ZERO,
            (step, Some(_)) => step,
            _ => Step::Far,
        };
        self.of(dividend).iter().map(each).collect()
    }

    fn one_that_varies(&self, values: &[Value]) -> Vec<Step> {
        let varies = |steps: &Rc<[Step]>| steps.iter().any(|step| *step != Step::ZERO);
        let all: Vec<Rc<[Step]>> = values.iter().map(|value| self.of(*value)).collect();
        all.iter().find(|steps| varies(steps)).or(all.first()).map_or_else(Vec::new, |steps| steps.to_vec())
    }

    /// Equal operands give equal results; of others nothing is known.
    fn other(&self, op: Op, value: Value) -> Vec<Step> {
        let data = self.kernel.op(op);
        let bits = self.bits(value);
        let element_wise = data.kind.spec().traits.has(Traits::ELEMENTWISE) || matches!(data.kind, OpKind::Load { .. });
        if !element_wise {
            return vec![Step::Far; bits];
        }
        let operands: Vec<Rc<[Step]>> = data.operands.iter().map(|operand| self.of(*operand)).collect();
        let same = |bit: usize| operands.iter().all(|steps| steps.get(bit).is_none_or(|step| *step == Step::ZERO));
        (0..bits).map(|bit| if same(bit) { Step::ZERO } else { Step::Far }).collect()
    }
}

/// A step of a number times one that is the same everywhere and a multiple of `divisor`.
fn scaled(step: Step, divisor: u64) -> Step {
    match step {
        Step::By(0) => Step::ZERO,
        Step::By(by) if divisor == 1 => Step::Times(by),
        _ => Step::Far,
    }
}

fn masked(step: Step, mask: i64) -> Step {
    match step {
        Step::By(by) if by >= 0 => Step::By(by & mask),
        step => step,
    }
}

fn size_bits(shape: &Shape, axis: usize) -> usize {
    shape[axis].max(1).ilog2() as usize
}

//! One element of each run of equal elements along a dimension of a tile, computed by the same operations on a smaller tile.

use std::collections::{HashMap, HashSet};

use rtc_ir::{Builder, HintKind, Kernel, Literal, Op, OpKind, Position, Traits, Type, Value, constant_bits, regions};

use crate::PassError;

/// How many operations may be repeated for one load.
const BUDGET: usize = 64;

/// Runs of `length` equal elements along dimension `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Runs {
    pub axis: usize,
    pub length: u32,
}

impl Runs {
    /// The type of a tile with one element of each run.
    pub fn narrowed(self, ty: Type) -> Result<Type, PassError> {
        let narrow = ty.as_tile().and_then(|tile| {
            let count = tile.shape[self.axis] / self.length;
            Some(Type::tile(tile.elem, tile.shape.without(self.axis).with(self.axis, count)?))
        });
        narrow.ok_or_else(|| PassError::Internal("a tile without the dimension".into()))
    }

    fn along(self, axis: usize) -> Runs {
        Runs { axis, ..self }
    }
}

/// Where the elements of a result come from.
enum Source {
    /// Not from operands that have the dimension.
    Nothing,
    /// From the same elements along this dimension of the operands.
    Axis(usize),
    Unknown,
}

fn source_axis(kind: &OpKind, axis: usize) -> Source {
    match kind {
        OpKind::Constant { .. } | OpKind::Splat {} | OpKind::Arange { .. } => Source::Nothing,
        OpKind::Broadcast {} | OpKind::Hint { .. } => Source::Axis(axis),
        OpKind::ExpandDims { axis: new } if axis == *new as usize => Source::Unknown,
        OpKind::ExpandDims { axis: new } => Source::Axis(axis - usize::from(axis > *new as usize)),
        OpKind::Trans { order } => Source::Axis(order[axis] as usize),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => Source::Axis(axis),
        _ => Source::Unknown,
    }
}

/// Whether one element of each run can be computed alone, for all of these values together.
pub(super) fn can_narrow(kernel: &Kernel, values: &[Value], runs: Runs) -> bool {
    let mut search = Search { kernel, seen: HashSet::new() };
    values.iter().all(|value| search.can(*value, runs))
}

struct Search<'k> {
    kernel: &'k Kernel,
    seen: HashSet<(Value, usize)>,
}

impl Search<'_> {
    fn can(&mut self, value: Value, runs: Runs) -> bool {
        let kernel = self.kernel;
        let Some(shape) = kernel.value_type(value).shape() else { return true };
        if shape[runs.axis] == 1 || !self.seen.insert((value, runs.axis)) {
            return true;
        }
        if self.seen.len() > BUDGET {
            return false;
        }
        if let Some((_, values)) = carried(kernel, value) {
            return values.into_iter().all(|value| self.can(value, runs));
        }
        let Some(op) = kernel.def_op(value) else { return false };
        match source_axis(kernel.kind(op), runs.axis) {
            Source::Nothing => true,
            Source::Axis(axis) => {
                kernel.op(op).operands.clone().into_iter().all(|operand| self.can(operand, runs.along(axis)))
            }
            Source::Unknown => false,
        }
    }
}

/// The loop that carries a value, and what the value is at the start and after an iteration.
fn carried(kernel: &Kernel, value: Value) -> Option<(Op, [Value; 2])> {
    let slot = regions::slot_of(kernel, value)?;
    let mut values = slot.values(kernel);
    let both = [values.next()?, values.next()?];
    (matches!(kernel.kind(slot.op), OpKind::ForRange { .. }) && values.next().is_none()).then_some((slot.op, both))
}

/// The narrow versions of values so far, each next to its original.
#[derive(Default)]
pub(super) struct Narrow {
    made: HashMap<(Value, Runs), Value>,
}

impl Narrow {
    /// One element of each run of a value, for which [`can_narrow`] holds.
    pub fn of(&mut self, kernel: &mut Kernel, value: Value, runs: Runs) -> Result<Value, PassError> {
        let ty = kernel.value_type(value);
        if ty.shape().is_none_or(|shape| shape[runs.axis] == 1) {
            return Ok(value);
        }
        if let Some(known) = self.made.get(&(value, runs)) {
            return Ok(*known);
        }
        if let Some((of, [start, next])) = carried(kernel, value) {
            return self.carried(kernel, value, (of, start, next), runs);
        }
        let missing = || PassError::Internal("an operation that cannot be computed for a part of a dimension".into());
        let op = kernel.def_op(value).ok_or_else(missing)?;
        let narrow = runs.narrowed(ty)?;
        if let Some(quotient) = quotient(kernel, op, runs)? {
            self.made.insert((value, runs), quotient);
            return Ok(quotient);
        }
        let new = match (kernel.kind(op).clone(), source_axis(kernel.kind(op), runs.axis)) {
            (OpKind::Arange { start, .. }, _) => numbers(kernel, op, start, narrow, i64::from(runs.length))?,
            (_, Source::Nothing) => {
                let operands = kernel.op(op).operands.clone();
                copy_beside(kernel, op, &operands, narrow)
            }
            (kind, Source::Axis(from)) => {
                let operands = kernel.op(op).operands.clone();
                let operands: Vec<Value> = operands
                    .iter()
                    .map(|operand| self.of(kernel, *operand, runs.along(from)))
                    .collect::<Result<_, _>>()?;
                match kind {
                    // The rest of the dimensions may be as they are already.
                    OpKind::Broadcast {} if kernel.value_type(operands[0]) == narrow => operands[0],
                    // A promise for runs along the dimension does not hold for elements that are apart.
                    OpKind::Hint { kind: HintKind::MaxContiguous | HintKind::MaxConstancy, .. } => operands[0],
                    OpKind::Hint { .. } if narrow.shape().is_some_and(|shape| shape[runs.axis] > 1) => operands[0],
                    _ => copy_beside(kernel, op, &operands, narrow),
                }
            }
            (_, Source::Unknown) => return Err(missing()),
        };
        self.made.insert((value, runs), new);
        Ok(new)
    }

    /// Carries the narrow version of a value next to the value.
    fn carried(
        &mut self,
        kernel: &mut Kernel,
        value: Value,
        (of, start, next): (Op, Value, Value),
        runs: Runs,
    ) -> Result<Value, PassError> {
        let missing = || PassError::Internal("a loop that carries no further value".into());
        let targets = regions::slot_of(kernel, value).ok_or_else(missing)?.targets;
        let start = self.of(kernel, start, runs)?;
        let (within, after) = kernel.carry(of, start).ok_or_else(missing)?;
        for target in targets {
            let is_after = kernel.def_op(target) == Some(of);
            self.made.insert((target, runs), if is_after { after } else { within });
        }
        let end = kernel.terminator(kernel.op(of).blocks[0]).ok_or_else(missing)?;
        let number = kernel.op(end).operands.len() - 1;
        let next = self.of(kernel, next, runs)?;
        kernel.set_operand(end, number, next);
        self.made.get(&(value, runs)).copied().ok_or_else(missing)
    }
}

/// A quotient of consecutive numbers by a constant, without the division: `(2 * arange(0, 16)) // 2` is `arange(0, 16)`, whose
/// contiguity is known to analyses.
fn quotient(kernel: &mut Kernel, op: Op, runs: Runs) -> Result<Option<Value>, PassError> {
    let is_quotient = matches!(kernel.kind(op), OpKind::DivSI {} | OpKind::DivUI {});
    let Some([dividend, divisor]) = kernel.sides(op).filter(|_| is_quotient) else { return Ok(None) };
    match constant_bits(kernel, divisor).and_then(|bits| i64::try_from(bits).ok()) {
        Some(divisor) if divisor > 0 => divided(kernel, dividend, runs, divisor),
        _ => Ok(None),
    }
}

/// One element of each run of a value that holds consecutive numbers, divided by a number that divides all of them.
fn divided(kernel: &mut Kernel, value: Value, runs: Runs, divisor: i64) -> Result<Option<Value>, PassError> {
    let Some(op) = kernel.def_op(value) else { return Ok(None) };
    let narrow = runs.narrowed(kernel.value_type(value))?;
    match (kernel.kind(op).clone(), source_axis(kernel.kind(op), runs.axis)) {
        (OpKind::Arange { start, .. }, _) => {
            let length = i64::from(runs.length);
            let is_exact = start >= 0 && start % divisor == 0 && length % divisor == 0;
            is_exact.then(|| numbers(kernel, op, start / divisor, narrow, length / divisor)).transpose()
        }
        (OpKind::Broadcast {} | OpKind::ExpandDims { .. } | OpKind::Trans { .. }, Source::Axis(from)) => {
            let Some(operand) = kernel.forwarded(op) else { return Ok(None) };
            if kernel.value_type(operand).shape().is_none_or(|shape| shape[from] == 1) {
                return Ok(None);
            }
            let operand = divided(kernel, operand, runs.along(from), divisor)?;
            Ok(operand.map(|operand| copy_beside(kernel, op, &[operand], narrow)))
        }
        _ => Ok(None),
    }
}

/// The numbers `start`, `start + step`, ..
fn numbers(kernel: &mut Kernel, at: Op, start: i64, ty: Type, step: i64) -> Result<Value, PassError> {
    let mut builder = Builder::after(kernel, at);
    let count = ty.shape().map_or(1, |shape| i64::from(shape[0]));
    if count == 1 {
        return Ok(builder.constant_of(Literal::Int(start), ty)?);
    }
    if step == 1 {
        return Ok(builder.arange(start, start + count)?);
    }
    let numbers = builder.arange(0, count)?;
    let step = builder.constant_of(Literal::Int(step), ty)?;
    let places = builder.muli(numbers, step)?;
    if start == 0 {
        return Ok(places);
    }
    let start = builder.constant_of(Literal::Int(start), ty)?;
    Ok(builder.addi(places, start)?)
}

fn copy_beside(kernel: &mut Kernel, op: Op, operands: &[Value], ty: Type) -> Value {
    let new = kernel.clone_op(op, operands, &[ty]);
    kernel.insert_op(new, Position::After(op));
    kernel.result(new, 0)
}

//! Loads that read the same along a whole dimension load one element of it, which is then broadcast.
//!
//! ```text
//! %p = .. (32 * %i + arange(0, 32)) // 128 ..                    %q = .. (32 * %i + 0) // 128 ..
//! %s = load %p : tile<32x64xf16>                            →    %t = load %q : tile<1x64xf16>
//!                                                                %s = broadcast %t : tile<32x64xf16>
//! ```
//!
//! Scales of groups of numbers are loaded so, with the same address for each number of a group. That the address, the mask
//! and what stands in for masked elements are the same is known from `axis_info`; they are computed anew for the first
//! place of the dimension, by the same operations on smaller tiles.

use std::collections::HashMap;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Builder, HintKind, Kernel, Literal, Op, OpKind, Phase, Position, Traits, Type, Value};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "narrow-loads", needs: Phase::Tile, leaves: Phase::Tile, run };

/// How many operations may be repeated for one load.
const BUDGET: usize = 64;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let loads: Vec<Op> = rtc_ir::walk(kernel)
        .into_iter()
        .filter(|op| matches!(kernel.kind(*op), OpKind::Load { volatile: false, .. }))
        .collect();
    let infos = axis_info(kernel);
    let found: Vec<(Op, Vec<usize>)> = loads.into_iter().map(|op| (op, repeated(kernel, &infos, op))).collect();
    for (load, axes) in found {
        let mut narrow = load;
        for axis in axes {
            let mut budget = BUDGET;
            let has_first = |value: &Value| has_first(kernel, *value, axis, &mut budget);
            if kernel.op(narrow).operands.clone().iter().all(has_first) {
                narrow = first_of_load(kernel, narrow, load, axis)?;
            }
        }
        if narrow != load {
            let (result, ty) = (kernel.result(load, 0), kernel.value_type(kernel.result(load, 0)));
            let made = kernel.result(narrow, 0);
            let wide = Builder::before(kernel, load).broadcast_to(made, ty)?;
            kernel.replace_uses(result, wide);
            kernel.erase(load);
        }
    }
    Ok(())
}

/// The dimensions along which all that a load takes is the same.
fn repeated(kernel: &Kernel, infos: &AxisInfos, load: Op) -> Vec<usize> {
    let Some(shape) = kernel.value_type(kernel.result(load, 0)).shape() else { return Vec::new() };
    let is_same = |axis: &usize| {
        let mut operands = kernel.op(load).operands.iter();
        shape[*axis] > 1 && operands.all(|value| infos.axis(*value, *axis).constancy >= u64::from(shape[*axis]))
    };
    (0..shape.rank()).filter(is_same).collect()
}

/// Whether the first place of a dimension of a value can be computed by itself.
fn has_first(kernel: &Kernel, value: Value, axis: usize, budget: &mut usize) -> bool {
    let Some(shape) = kernel.value_type(value).shape() else { return true };
    if shape[axis] == 1 {
        return true;
    }
    let Some(op) = kernel.def_op(value) else { return false };
    *budget = budget.saturating_sub(1);
    *budget > 0
        && match source_axis(kernel.kind(op), axis) {
            AxisSource::Nothing => true,
            AxisSource::Axis(axis) => {
                let operands = kernel.op(op).operands.clone();
                operands.into_iter().all(|operand| has_first(kernel, operand, axis, budget))
            }
            AxisSource::Unknown => false,
        }
}

/// What the first place of a dimension of a result follows from.
enum AxisSource {
    /// From nothing that has the dimension.
    Nothing,
    /// From the first place of this dimension of the operands.
    Axis(usize),
    Unknown,
}

fn source_axis(kind: &OpKind, axis: usize) -> AxisSource {
    match kind {
        OpKind::Constant { .. } | OpKind::Splat {} | OpKind::Arange { .. } => AxisSource::Nothing,
        OpKind::Broadcast {} | OpKind::Hint { .. } => AxisSource::Axis(axis),
        OpKind::ExpandDims { axis: new } if axis == *new as usize => AxisSource::Unknown,
        OpKind::ExpandDims { axis: new } => AxisSource::Axis(axis - usize::from(axis > *new as usize)),
        OpKind::Trans { order } => AxisSource::Axis(order[axis] as usize),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => AxisSource::Axis(axis),
        _ => AxisSource::Unknown,
    }
}

/// The load before `at` of the first place of a dimension.
fn first_of_load(kernel: &mut Kernel, load: Op, at: Op, axis: usize) -> Result<Op, PassError> {
    let mut made = HashMap::new();
    let operands = kernel.op(load).operands.clone();
    let operands: Vec<Value> =
        operands.iter().map(|value| first(kernel, *value, at, axis, &mut made)).collect::<Result<_, _>>()?;
    let ty = narrowed(kernel.value_type(kernel.result(load, 0)), axis)?;
    let new = kernel.clone_op(load, &operands, &[ty]);
    kernel.insert_op(new, Position::Before(at));
    Ok(new)
}

/// The first place of a dimension of a value, computed before `at`.
fn first(
    kernel: &mut Kernel,
    value: Value,
    at: Op,
    axis: usize,
    made: &mut HashMap<(Value, usize), Value>,
) -> Result<Value, PassError> {
    let ty = kernel.value_type(value);
    if ty.shape().is_none_or(|shape| shape[axis] == 1) {
        return Ok(value);
    }
    if let Some(known) = made.get(&(value, axis)) {
        return Ok(*known);
    }
    let missing = || PassError::Internal("a load of one place was to be made of others".into());
    let op = kernel.def_op(value).ok_or_else(missing)?;
    let narrow = narrowed(ty, axis)?;
    let new = match (kernel.kind(op).clone(), source_axis(kernel.kind(op), axis)) {
        (OpKind::Arange { start, .. }, _) => Builder::before(kernel, at).constant_of(Literal::Int(start), narrow)?,
        (kind, AxisSource::Nothing) => {
            let operands = kernel.op(op).operands.clone();
            debug_assert!(matches!(kind, OpKind::Constant { .. } | OpKind::Splat {}));
            clone_before(kernel, op, &operands, narrow, at)
        }
        (kind, AxisSource::Axis(from)) => {
            let operands = kernel.op(op).operands.clone();
            let operands: Vec<Value> =
                operands.iter().map(|operand| first(kernel, *operand, at, from, made)).collect::<Result<_, _>>()?;
            match kind {
                // The rest of the dimensions may be as they are already.
                OpKind::Broadcast {} if kernel.value_type(operands[0]) == narrow => operands[0],
                // A promise for runs along the dimension says nothing of one place.
                OpKind::Hint { kind: HintKind::MaxContiguous | HintKind::MaxConstancy, .. } => operands[0],
                _ => clone_before(kernel, op, &operands, narrow, at),
            }
        }
        (_, AxisSource::Unknown) => return Err(missing()),
    };
    made.insert((value, axis), new);
    Ok(new)
}

fn clone_before(kernel: &mut Kernel, op: Op, operands: &[Value], ty: Type, at: Op) -> Value {
    let new = kernel.clone_op(op, operands, &[ty]);
    kernel.insert_op(new, Position::Before(at));
    kernel.result(new, 0)
}

fn narrowed(ty: Type, axis: usize) -> Result<Type, PassError> {
    let narrow = ty.as_tile().and_then(|tile| Some(Type::tile(tile.elem, tile.shape.without(axis).with(axis, 1)?)));
    narrow.ok_or_else(|| PassError::Internal("a tile without the dimension".into()))
}

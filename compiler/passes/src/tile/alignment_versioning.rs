//! Loop versioning for sizes and strides that happen to be multiples of 16 bytes.
//!
//! ```text
//! {program}   →   if_else ((%K | %stride) % 8 == 0) ^() {
//!                   {program with %K / 8 * 8 for %K, %stride / 8 * 8 for %stride}
//!                 } ^() {
//!                   {program}
//!                 }
//! ```
//!
//! Without a promise in the signature an operand of 16 bits can only be read by single elements, for which there is no
//! asynchronous copy, and the loop with the dot waits for memory in each iteration. Sizes such as 1000 or 1016 carry no
//! promise and still are multiples of 8. In the first version the analyses can derive that. Versions are made if loads
//! for dots are too narrow for copies and would have full width with the promise, for as few arguments as possible. TMA
//! copies (`specialize_warps`) need promises of strides alone: if these are there, one version is enough.

use std::collections::HashSet;

use rtc_abi::{Feature, ParamType, ValueType};
use rtc_ir::analysis::axis_info;
use rtc_ir::{
    Builder, Elem, Kernel, Literal, Op, OpKind, Param, Phase, Position, Predicate, Type, Value, ValueDef, ValueMap,
    constant_bits, view,
};

use crate::access::addresses::{innermost_loops, loads_of_dots};
use crate::access::specializable::may_specialize;
use crate::access::vector_width::vector_width;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "alignment-versioning", needs: Phase::Tile, leaves: Phase::Tile, run };

/// Bytes of the widest access of a thread.
pub(super) const WIDEST: u64 = 16;
/// Longer kernels are not written out twice.
pub(super) const MOST_OPERATIONS: usize = 2000;
/// Bytes of the narrowest asynchronous copy.
const NARROWEST: u64 = 4;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if !cx.structure.stages() || !cx.target.has(Feature::CpAsync) || kernel.specialization().is_some() {
        return Ok(());
    }
    let loops = innermost_loops(kernel);
    if loops.is_empty() || rtc_ir::walk(kernel).len() > MOST_OPERATIONS {
        return Ok(());
    }
    let loads: Vec<Op> = loops.into_iter().flat_map(|of| loads_of_dots(kernel, of)).collect();
    let bytes = |load: &Op| {
        kernel.value_type(kernel.result(*load, 0)).elem().map(|elem| u64::from(elem.bytes())).filter(|n| *n < NARROWEST)
    };
    let Some(least) = loads.iter().filter_map(bytes).min() else { return Ok(()) };
    let factor = (WIDEST / least) as u32;
    let open = asked(kernel, &loads, factor);
    if open.is_empty() || narrowest(kernel, &loads, &[], factor) >= NARROWEST {
        return Ok(());
    }
    if narrowest(kernel, &loads, &open, factor) < WIDEST || may_specialize(kernel, cx, &loads)? {
        return Ok(());
    }
    let mut needed = open.clone();
    for param in open {
        let fewer: Vec<usize> = needed.iter().copied().filter(|other| *other != param).collect();
        if narrowest(kernel, &loads, &fewer, factor) >= WIDEST {
            needed = fewer;
        }
    }
    split(kernel, &needed, Ask::Multiple(factor))
}

/// The bytes of the narrowest of these loads, if those parameters were promised to be multiples of `factor`.
fn narrowest(kernel: &Kernel, loads: &[Op], promised: &[usize], factor: u32) -> u64 {
    let mut trial = kernel.clone();
    for param in promised {
        trial.params[*param].divisible_by = factor;
    }
    let infos = axis_info(&trial);
    let width = |load: &Op| {
        let access = view::Load::at(&trial, *load);
        let (pointer, mask) = (access.pointer(), access.mask());
        let rank = trial.value_type(pointer).shape().map_or(0, |shape| shape.rank());
        let widest = (0..rank).map(|axis| vector_width(&trial, &infos, pointer, mask, axis)).max().unwrap_or(1);
        widest * trial.value_type(trial.result(*load, 0)).elem().map_or(1, |elem| u64::from(elem.bytes()))
    };
    loads.iter().map(width).min().unwrap_or(WIDEST)
}

/// The integer parameters in the backward slices of addresses or masks of these loads whose promises are too weak.
fn asked(kernel: &Kernel, loads: &[Op], factor: u32) -> Vec<usize> {
    let of = |load: &Op| [kernel.pointer(*load), kernel.mask(*load)];
    let seen = reached(kernel, loads.iter().flat_map(of).flatten().collect());
    let open = |number: &usize| {
        let param = &kernel.params[*number];
        let is_integer =
            matches!(&param.ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_integer() && dtype.bits() >= 32);
        is_integer && is_reached(param, &seen) && !param.divisible_by.is_multiple_of(factor)
    };
    (0..kernel.params.len()).filter(open).collect()
}

/// All that these values follow from.
pub(super) fn reached(kernel: &Kernel, mut work: Vec<Value>) -> HashSet<Value> {
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match kernel.value(value).def {
            ValueDef::Result(op, _) if kernel.op(op).blocks.is_empty() => work.extend(&kernel.op(op).operands),
            _ => work.extend(rtc_ir::regions::sources(kernel, value)),
        }
    }
    seen
}

/// Whether it is a parameter of the source among these values.
pub(super) fn is_reached(param: &Param, seen: &HashSet<Value>) -> bool {
    param.hidden.is_none() && seen.contains(&param.value)
}

/// The run-time condition on a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Whether it is a multiple of this power of two.
    Multiple(u32),
    /// Whether it is 1.
    One,
}

impl Ask {
    fn holds(self, kernel: &mut Kernel, before: Op, value: Value) -> Result<Value, PassError> {
        let ty = kernel.value_type(value);
        let mut builder = Builder::before(kernel, before);
        let (number, of) = match self {
            Ask::Multiple(factor) => {
                let low = builder.constant_of(Literal::Int(i64::from(factor) - 1), ty)?;
                (0, builder.andi(value, low)?)
            }
            Ask::One => (1, value),
        };
        let number = builder.constant_of(Literal::Int(number), ty)?;
        Ok(builder.cmpi(of, number, Predicate::Eq)?)
    }

    /// The value under that condition, in a form that analyses understand.
    fn seen(self, kernel: &mut Kernel, before: Op, value: Value) -> Result<Value, PassError> {
        let ty = kernel.value_type(value);
        let mut builder = Builder::before(kernel, before);
        match self {
            Ask::Multiple(factor) => {
                let by = builder.constant_of(Literal::Int(factor.into()), ty)?;
                let count = builder.divsi(value, by)?;
                Ok(builder.muli(count, by)?)
            }
            Ask::One => Ok(builder.constant_of(Literal::Int(1), ty)?),
        }
    }
}

/// The condition of a branch between two versions.
pub(crate) struct Asked {
    /// The parameters, by their names.
    pub names: Vec<String>,
    /// The condition on each.
    pub what: Ask,
}

/// The condition of the branch `op`, if it is one between versions: whether the low bits of parameters are zero, or
/// whether they are 1.
pub(crate) fn asked_of(kernel: &Kernel, op: Op) -> Option<Asked> {
    let OpKind::IfElse {} = kernel.kind(op) else { return None };
    let mut asked = Asked { names: Vec::new(), what: Ask::One };
    let mut work = vec![view::IfElse::at(kernel, op).condition()];
    while let Some(value) = work.pop() {
        let made = kernel.def_op(value)?;
        let [left, right] = [0, 1].map(|place| kernel.op(made).operands.get(place).copied());
        let of = match kernel.kind(made) {
            OpKind::AndI {} if kernel.value_type(value) == Type::Scalar(Elem::I1) => {
                work.extend([right?, left?]);
                continue;
            }
            OpKind::CmpI { predicate: Predicate::Eq } => match constant_bits(kernel, right?)? {
                0 => {
                    let rest = view::AndI::defining(kernel, left?)?;
                    let low = constant_bits(kernel, rest.rhs())?;
                    asked.what = Ask::Multiple(u32::try_from(low).ok()?.checked_add(1)?);
                    rest.lhs()
                }
                1 => left?,
                _ => return None,
            },
            _ => return None,
        };
        asked.names.push(kernel.params.iter().find(|param| param.value == of)?.name.clone());
    }
    Some(asked)
}

/// Makes the two versions: one where that holds of all these parameters, and one for all others.
pub(super) fn split(kernel: &mut Kernel, needed: &[usize], ask: Ask) -> Result<(), PassError> {
    let body = kernel.body();
    let missing = || PassError::Internal("a kernel without an end".into());
    let ret = kernel.terminator(body).ok_or_else(missing)?;
    let program: Vec<Op> = kernel.ops(body).filter(|op| *op != ret).collect();
    let first = kernel.first_op(body).ok_or_else(missing)?;
    let values: Vec<Value> = needed.iter().map(|param| kernel.params[*param].value).collect();

    let mut fits: Option<Value> = None;
    for value in &values {
        let holds = ask.holds(kernel, first, *value)?;
        fits = Some(match fits {
            Some(fits) => Builder::before(kernel, first).andi(fits, holds)?,
            None => holds,
        });
    }
    let Some(fits) = fits else { return Ok(()) };
    let blocks = [kernel.new_block(), kernel.new_block()];
    for block in blocks {
        Builder::at_end(kernel, block).yield_values(&[])?;
    }
    Builder::before(kernel, ret).build(OpKind::IfElse {}, &[fits], &[], &[], &blocks, &[])?;
    let [aligned, other] = blocks.map(|block| kernel.terminator(block));
    let (aligned, other) = (aligned.ok_or_else(missing)?, other.ok_or_else(missing)?);
    let mut map = ValueMap::new();
    for value in values {
        let seen = ask.seen(kernel, aligned, value)?;
        map.insert(value, seen);
    }
    for op in program {
        kernel.move_op(op, Position::Before(other));
    }
    kernel.clone_ops(blocks[1], &mut map, Position::Before(aligned));
    // The copy of the end.
    if let Some(end) = kernel.previous_op(aligned) {
        kernel.erase(end);
    }
    Ok(())
}

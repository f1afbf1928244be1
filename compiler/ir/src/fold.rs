//! Operations on constants.

use std::collections::HashMap;

use crate::{Elem, EvalContext, Evaluate, Kernel, Literal, Op, OpKind, Scalar, Traits, Value, view};

/// The most operations that [`known_bits`] follows.
const MAX_STEPS: usize = 1000;

/// The bits of a constant number, or of a tile filled with one.
pub fn constant_bits(kernel: &Kernel, value: Value) -> Option<u64> {
    let op = kernel.def_op(value)?;
    match kernel.kind(op) {
        OpKind::Constant { value: literal } => Some(literal.bits(kernel.value_type(value).elem()?.num()?)),
        // The ways in which a tile is filled with a number.
        OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ExpandDims { .. } => {
            constant_bits(kernel, kernel.forwarded(op)?)
        }
        _ => None,
    }
}

/// A constant integer, or what a tile is filled with, as a signed number.
pub fn constant_int(kernel: &Kernel, value: Value) -> Option<i64> {
    let unused = 64 - kernel.value_type(value).elem()?.bits();
    constant_bits(kernel, value).map(|bits| ((bits << unused) as i64) >> unused)
}

/// The trip count of a loop with constant bounds.
pub fn trip_count(kernel: &Kernel, op: Op) -> Option<u64> {
    let OpKind::ForRange { unsigned: false, .. } = kernel.kind(op) else { return None };
    let range = view::ForRange::at(kernel, op);
    let [lower, upper, step] = [range.lower(), range.upper(), range.step()].map(|bound| constant_int(kernel, bound));
    let step = u64::try_from(step?).ok().filter(|step| *step > 0)?;
    Some(u64::try_from(upper?.checked_sub(lower?)?).map_or(0, |length| length.div_ceil(step)))
}

/// The result of an exact element-wise operation on constants.
pub fn fold(kernel: &Kernel, op: Op) -> Option<Literal> {
    let bits = result_bits(kernel, op, |value| constant_bits(kernel, value))?;
    literal_of(bits, kernel.value_type(kernel.result(op, 0)).elem()?.num()?)
}

/// The bits of a scalar that exact operations compute from nothing but constants.
pub fn known_bits(kernel: &Kernel, value: Value) -> Option<u64> {
    KnownBits::default().get(kernel, value)
}

/// The bits of scalars that exact operations compute from constants and from values that are given.
#[derive(Clone, Debug, Default)]
pub struct KnownBits {
    known: HashMap<Value, Option<u64>>,
}

impl KnownBits {
    /// Gives a value, such as an argument of the kernel.
    pub fn give(&mut self, value: Value, bits: u64) {
        self.known.insert(value, Some(bits));
    }

    /// The bits of a value, if they are known.
    pub fn get(&mut self, kernel: &Kernel, value: Value) -> Option<u64> {
        let limit = self.known.len() + MAX_STEPS;
        follow(kernel, value, &mut self.known, limit)
    }
}

fn follow(kernel: &Kernel, value: Value, known: &mut HashMap<Value, Option<u64>>, limit: usize) -> Option<u64> {
    if let Some(bits) = known.get(&value) {
        return *bits;
    }
    if known.len() >= limit {
        return None;
    }
    known.insert(value, None);
    let bits = constant_bits(kernel, value)
        .or_else(|| result_bits(kernel, kernel.def_op(value)?, |operand| follow(kernel, operand, known, limit)));
    known.insert(value, bits);
    bits
}

fn result_bits(kernel: &Kernel, op: Op, mut operand: impl FnMut(Value) -> Option<u64>) -> Option<u64> {
    let data = kernel.op(op);
    let spec = data.kind.spec();
    let Evaluate::Each(eval) = spec.eval else { return None };
    if !spec.traits.has(Traits::EXACT) {
        return None;
    }
    let result = kernel.value_type(data.results[0]).elem()?;
    result.num()?;
    let operands: Vec<Elem> = data.operands.iter().map(|v| kernel.value_type(*v).elem()).collect::<Option<_>>()?;
    let bits: Vec<u64> = data.operands.iter().map(|v| operand(*v)).collect::<Option<_>>()?;
    if !is_defined(&data.kind, &operands, result, &bits) {
        return None;
    }
    Some(eval(&EvalContext { kind: &data.kind, operands: &operands, result }, &bits))
}

/// Whether the language defines the result: devices disagree on division by zero and on floats that do not fit an integer.
fn is_defined(kind: &OpKind, operands: &[Elem], result: Elem, bits: &[u64]) -> bool {
    let range = match kind {
        OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {} => return bits[1] != 0,
        OpKind::FpToSI { .. } => {
            let half = 2f64.powi(result.bits() as i32 - 1);
            -half..half
        }
        OpKind::FpToUI { .. } => 0.0..2f64.powi(result.bits() as i32),
        _ => return true,
    };
    let value = operands[0].num().map(|scalar| crate::decode_float(bits[0], scalar).trunc());
    value.is_some_and(|value| range.contains(&value))
}

/// The literal with these bits; `None` for NaNs, whose payload a literal does not keep.
pub fn literal_of(bits: u64, scalar: Scalar) -> Option<Literal> {
    let unused = 64 - scalar.bits();
    let literal = match scalar {
        Scalar::F64 => Literal::Float(bits),
        Scalar::F32 => Literal::float(f64::from(f32::from_bits(bits as u32))),
        Scalar::F16 | Scalar::BF16 | Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => {
            Literal::float(crate::decode_float(bits, scalar))
        }
        Scalar::I1 => Literal::Int(bits as i64),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Literal::Int(((bits << unused) as i64) >> unused),
    };
    (literal.bits(scalar) == bits).then_some(literal)
}

/// The greatest common divisor; of 0 and a number that number.
pub fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

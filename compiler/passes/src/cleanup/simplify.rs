//! Folds what is known: exact operations on constants, the laws of [`rules`], branches on constants.
//!
//! ```text
//! %c = addi %two, %three : i32   →   %c = constant {value = 5} : i32
//! %d = muli %x, %one : i32       →   uses of %d become %x
//! ```

mod rules;

use rtc_ir::{Elem, EvalContext, Evaluate, Kernel, Literal, Op, OpKind, Phase, Position, Scalar, Traits, Value};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "simplify", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut dead = Vec::new();
    for op in rtc_ir::walk(kernel) {
        // An operation inside of a branch that went away stands nowhere.
        if kernel.op(op).parent.is_none() {
            continue;
        }
        if let Some(literal) = fold(kernel, op) {
            kernel.make_constant(op, literal);
        } else if let Some(same) = rules::apply(kernel, op) {
            kernel.replace_uses(kernel.result(op, 0), same);
            dead.push(op);
        } else if matches!(kernel.kind(op), OpKind::IfElse {}) {
            take_known_branch(kernel, op);
        }
    }
    for op in dead {
        kernel.erase(op);
    }
    Ok(())
}

/// The bits of a constant number, or of a tile filled with one.
fn constant_bits(kernel: &Kernel, value: Value) -> Option<u64> {
    let op = kernel.def_op(value)?;
    match kernel.kind(op) {
        OpKind::Constant { value: literal } => Some(literal.bits(kernel.value_type(value).elem()?.num()?)),
        OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ExpandDims { .. } => {
            constant_bits(kernel, kernel.operand(op, 0))
        }
        _ => None,
    }
}

fn fold(kernel: &Kernel, op: Op) -> Option<Literal> {
    let data = kernel.op(op);
    let spec = data.kind.spec();
    let Evaluate::Each(eval) = spec.eval else { return None };
    if !spec.traits.has(Traits::EXACT) {
        return None;
    }
    let result = kernel.value_type(data.results[0]).elem()?;
    let scalar = result.num().filter(|s| !s.is_fp8())?;
    let operands: Vec<Elem> = data.operands.iter().map(|v| kernel.value_type(*v).elem()).collect::<Option<_>>()?;
    let bits: Vec<u64> = data.operands.iter().map(|v| constant_bits(kernel, *v)).collect::<Option<_>>()?;
    let divides = matches!(data.kind, OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {});
    if divides && bits[1] == 0 {
        return None;
    }
    literal_of(eval(&EvalContext { kind: &data.kind, operands: &operands, result }, &bits), scalar)
}

/// The literal that stands for these bits; `None` for NaNs, whose payload a literal does not keep.
fn literal_of(bits: u64, scalar: Scalar) -> Option<Literal> {
    let unused = 64 - scalar.bits();
    let literal = match scalar {
        Scalar::F64 => Literal::Float(bits),
        Scalar::F32 => Literal::float(f64::from(f32::from_bits(bits as u32))),
        Scalar::F16 | Scalar::BF16 => Literal::float(rtc_ir::decode_float(bits, scalar)),
        Scalar::I1 => Literal::Int(bits as i64),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Literal::Int(((bits << unused) as i64) >> unused),
        Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => return None,
    };
    (literal.bits(scalar) == bits).then_some(literal)
}

/// Puts the operations of the branch that is taken in the place of the whole; they are walked later.
fn take_known_branch(kernel: &mut Kernel, op: Op) {
    let Some(bits) = constant_bits(kernel, kernel.operand(op, 0)) else { return };
    let taken = kernel.op(op).blocks[usize::from(bits == 0)];
    let Some(end) = kernel.terminator(taken) else { return };
    let values: Vec<Value> = kernel.variadic(end).to_vec();
    for inner in kernel.ops(taken).filter(|inner| *inner != end).collect::<Vec<_>>() {
        kernel.move_op(inner, Position::Before(op));
    }
    for (result, value) in kernel.op(op).results.clone().into_iter().zip(values) {
        kernel.replace_uses(result, value);
    }
    kernel.erase(op);
}

//! f32 arithmetic of sm_100 and later: on pairs in 64 bits, and with f16 or bf16 operands that are widened first.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::float::{binary, fused, operand, product, result};
use super::{AluFn, Flags, Form, f2, f3};
use crate::numeric::float::{Operation, half_format, half_value};
use Modifier::*;

/// Set in the flags for bf16.
const BRAIN: u64 = 1 << 32;

/// The form of an instruction on pairs of f32, or on f32 and a half.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let flags = Flags::of(instruction);
    match *instruction.modifiers.last()? {
        F32x2 => pairs(instruction, flags),
        half @ (F16 | Bf16) if instruction.has(F32) => widened(instruction, half, flags),
        _ => None,
    }
}

fn pairs(instruction: &Instruction, flags: Flags) -> Option<Form> {
    let (function, count): (AluFn, usize) = match instruction.opcode {
        Opcode::Add => (f2!(flags | g, a, b | each(a, b, 0, |a, b, _| sum(Operation::Add, a, b, g))), 2),
        Opcode::Sub => (f2!(flags | g, a, b | each(a, b, 0, |a, b, _| sum(Operation::Sub, a, b, g))), 2),
        Opcode::Mul => {
            (f2!(flags | g, a, b | each(a, b, 0, |a, b, _| result(product(operand(a, g), operand(b, g), g), g))), 2)
        }
        Opcode::Fma => (f3!(flags | g, a, b, c | each(a, b, c, |a, b, c| multiply_add(a, b, c, g))), 3),
        _ => return None,
    };
    Form::new(function, F32x2, &vec![F32x2; count]).map(|form| form.flagged(flags))
}

fn widened(instruction: &Instruction, half: Modifier, flags: Flags) -> Option<Form> {
    let flags = if half == Bf16 { flags.with(BRAIN) } else { flags };
    let (function, sources): (AluFn, &[Modifier]) = match instruction.opcode {
        Opcode::Add => (f2!(flags | g, a, b | sum(Operation::Add, wide(a, g), b, g)), &[half, F32]),
        Opcode::Sub => (f2!(flags | g, a, b | sum(Operation::Sub, wide(a, g), b, g)), &[half, F32]),
        Opcode::Fma => (f3!(flags | g, a, b, c | multiply_add(wide(a, g), wide(b, g), c, g)), &[half, half, F32]),
        _ => return None,
    };
    Form::new(function, F32, sources).map(|form| form.flagged(flags))
}

/// An operation on the lower and on the upper numbers.
fn each(a: u64, b: u64, c: u64, operation: impl Fn(u64, u64, u64) -> u64) -> u64 {
    let low = |x: u64| x & 0xffff_ffff;
    operation(low(a), low(b), low(c)) | operation(a >> 32, b >> 32, c >> 32) << 32
}

/// The bits of a half as f32.
fn wide(x: u64, flags: Flags) -> u64 {
    half_value(half_format(flags.has(BRAIN)), x as u16).to_bits().into()
}

fn sum(operation: Operation, a: u64, b: u64, flags: Flags) -> u64 {
    result(binary(operation, operand(a, flags), operand(b, flags), flags), flags)
}

fn multiply_add(a: u64, b: u64, c: u64, flags: Flags) -> u64 {
    result(fused(operand(a, flags), operand(b, flags), operand(c, flags), flags), flags)
}

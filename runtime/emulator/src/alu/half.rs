//! f16 and bf16 arithmetic, single and packed in pairs; every result is rounded once.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f1, f2, f3};
use crate::numeric::float::{Operation, flush, half, half_format, half_value, max32, min32, saturate};
use crate::numeric::format::{Format, Round};
use Modifier::*;

/// Set in the flags for bf16.
const BRAIN: u64 = 1 << 32;
/// Set in the flags for a packed pair.
const PAIR: u64 = 1 << 33;

/// The form of an f16 or bf16 instruction.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let ty = *instruction.modifiers.last()?;
    let mut flags = Flags::of(instruction);
    match ty {
        F16 => {}
        F16x2 => flags = flags.with(PAIR),
        Bf16 => flags = flags.with(BRAIN),
        Bf16x2 => flags = flags.with(BRAIN | PAIR),
        _ => return None,
    }
    let function: AluFn = match instruction.opcode {
        Opcode::Add => f2!(flags | g, a, b | each(g, a, b, 0, |f, x, y, _| half(f, Operation::Add, x, y, 0.0))),
        Opcode::Sub => f2!(flags | g, a, b | each(g, a, b, 0, |f, x, y, _| half(f, Operation::Sub, x, y, 0.0))),
        Opcode::Mul => f2!(flags | g, a, b | each(g, a, b, 0, |f, x, y, _| half(f, Operation::Mul, x, y, 0.0))),
        Opcode::Fma => f3!(flags | g, a, b, c | each(g, a, b, c, |f, x, y, z| half(f, Operation::Fma, x, y, z))),
        Opcode::Min => f2!(flags | g, a, b | each(g, a, b, 0, |f, x, y, _| extremum(f, x, y, g, false))),
        Opcode::Max => f2!(flags | g, a, b | each(g, a, b, 0, |f, x, y, _| extremum(f, x, y, g, true))),
        Opcode::Ex2 => f1!(flags | g, a | each(g, a, 0, 0, |f, x, _, _| approximate(f, x, f64::exp2))),
        Opcode::Tanh => f1!(flags | g, a | each(g, a, 0, 0, |f, x, _, _| approximate(f, x, f64::tanh))),
        Opcode::Abs => f1!(flags | g, a | signs(g, a, 0x7fff_7fff, 0)),
        Opcode::Neg => f1!(flags | g, a | signs(g, a, 0xffff_ffff, 0x8000_8000)),
        _ => return None,
    };
    let count = instruction.operands.len() - 1;
    if count == 3 && instruction.opcode != Opcode::Fma {
        return None;
    }
    Form::new(function, ty, &vec![ty; count]).map(|form| form.flagged(flags))
}

/// Applies an operation to one value or to both of a pair, with the flags' flushing and clamping around it.
fn each(flags: Flags, a: u64, b: u64, c: u64, operation: impl Fn(&Format, f32, f32, f32) -> u16) -> u64 {
    let format = half_format(flags.has(BRAIN));
    let one = |shift: u32| {
        let value = |bits: u64| flushed(format, half_value(format, (bits >> shift) as u16), flags);
        let bits = operation(format, value(a), value(b), value(c));
        u64::from(finish(format, bits, flags)) << shift
    };
    if flags.has(PAIR) { one(0) | one(16) } else { one(0) }
}

fn flushed(format: &Format, x: f32, flags: Flags) -> f32 {
    // Below the smallest normal: f16 subnormals are normal as f32.
    let smallest = if format.exponent == 5 { f32::from_bits(0x3880_0000) } else { f32::MIN_POSITIVE };
    if flags.has(Flags::FTZ) && x.abs() < smallest { flush(x * 0.0) } else { x }
}

fn finish(format: &Format, bits: u16, flags: Flags) -> u16 {
    if flags.0 & (Flags::FTZ | Flags::SAT | Flags::RELU) == 0 {
        return bits;
    }
    let mut x = flushed(format, half_value(format, bits), flags);
    if flags.has(Flags::SAT) {
        x = saturate(x);
    }
    if flags.has(Flags::RELU) && x <= 0.0 {
        x = 0.0;
    }
    format.narrow(x.into(), Round::Nearest) as u16
}

fn extremum(format: &Format, a: f32, b: f32, flags: Flags, largest: bool) -> u16 {
    if flags.has(Flags::NAN) && (a.is_nan() || b.is_nan()) {
        return format.nan as u16;
    }
    let pick = |a, b| if largest { max32(a, b) } else { min32(a, b) };
    let x = if flags.has(Flags::XORSIGN_ABS) {
        let magnitude = pick(a.abs(), b.abs());
        if a.is_sign_negative() != b.is_sign_negative() { -magnitude } else { magnitude }
    } else {
        pick(a, b)
    };
    format.narrow(x.into(), Round::Nearest) as u16
}

fn approximate(format: &Format, x: f32, function: impl Fn(f64) -> f64) -> u16 {
    format.narrow(function(x.into()), Round::Nearest) as u16
}

/// `abs` and `neg`: the sign bits change, a NaN becomes the canonical one.
fn signs(flags: Flags, a: u64, and: u64, xor: u64) -> u64 {
    let width = if flags.has(PAIR) { 0xffff_ffff } else { 0xffff };
    let a = ((a & and) ^ xor) & width;
    let format = half_format(flags.has(BRAIN));
    let one = |shift: u32| {
        let x = flushed(format, half_value(format, (a >> shift) as u16), flags);
        u64::from(format.encode(x.into())) << shift
    };
    if flags.has(PAIR) { one(0) | one(16) } else { one(0) }
}

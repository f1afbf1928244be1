//! f32 and f64 arithmetic, and the approximations.
//!
//! `.approx` and `.full` instructions give the correctly rounded result here; hardware may differ by a few ulp, as
//! the PTX manual bounds it.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f1, f2, f3};
use crate::numeric::float::{
    NAN32, Operation, QUIET64, add_odd, bits32, directed32, directed64, flush, max32, max64, min32, min64, quiet64,
    saturate,
};
use crate::numeric::format::{self, Round};
use Modifier::*;

/// The form of an f32 or f64 instruction.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let ty = *instruction.modifiers.last()?;
    let flags = Flags::of(instruction);
    match ty {
        F32 => single(instruction, flags),
        F64 => double(instruction, flags),
        _ => None,
    }
}

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

/// Flushes an operand if the instruction has `.ftz`.
pub(super) fn operand(x: u64, flags: Flags) -> f32 {
    if flags.has(Flags::FTZ) { flush(f(x)) } else { f(x) }
}

/// Flushes and saturates a result, and makes its NaN canonical.
pub(super) fn result(x: f32, flags: Flags) -> u64 {
    let x = if flags.has(Flags::FTZ) { flush(x) } else { x };
    let x = if flags.has(Flags::SAT) { saturate(x) } else { x };
    u64::from(bits32(x))
}

pub(super) fn binary(operation: Operation, a: f32, b: f32, flags: Flags) -> f32 {
    match (flags.round(), operation) {
        (Round::Nearest, Operation::Add) => a + b,
        (Round::Nearest, Operation::Sub) => a - b,
        (Round::Nearest, Operation::Mul) => a * b,
        (Round::Nearest, Operation::Div) => a / b,
        (mode, _) => directed32(operation, a, b, 0.0, mode),
    }
}

pub(super) fn fused(a: f32, b: f32, c: f32, flags: Flags) -> f32 {
    if flags.has(Flags::FTZ)
        && let Some(flushed) = tiny(add_odd(f64::from(a) * f64::from(b), c.into()), flags)
    {
        return flushed;
    }
    match flags.round() {
        Round::Nearest => a.mul_add(b, c),
        mode => directed32(Operation::Fma, a, b, c, mode),
    }
}

/// A product.
pub(super) fn product(a: f32, b: f32, flags: Flags) -> f32 {
    let flushed = || tiny(f64::from(a) * f64::from(b), flags);
    flushed().unwrap_or_else(|| binary(Operation::Mul, a, b, flags))
}

/// Flushes values that are subnormal before rounding, if `.ftz` is set: decided after rounding to 24 bits with an
/// unbounded exponent. `x` is exact or rounded to odd.
fn tiny(x: f64, flags: Flags) -> Option<f32> {
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    if !flags.has(Flags::FTZ) || x == 0.0 || x.is_nan() || x.abs() >= SMALLEST {
        return None;
    }
    let scale = 2f64.powi(100);
    let rounded = format::F32.round(x * scale, flags.round()).abs();
    let magnitude = if rounded >= SMALLEST * scale { f32::MIN_POSITIVE } else { 0.0 };
    Some(magnitude.copysign(x as f32))
}

/// `div.approx`: a reciprocal and a multiplication; the reciprocal of numbers larger than 2^126 is zero.
fn quotient(a: f32, b: f32) -> f32 {
    if b.is_finite() && b.abs() > 2f32.powi(126) { a * 0f32.copysign(b) } else { a / b }
}

/// An approximation: the f64 function, rounded once.
fn approximate(x: u64, flags: Flags, function: impl Fn(f64) -> f64) -> u64 {
    result(function(f64::from(operand(x, flags))) as f32, flags)
}

fn single(instruction: &Instruction, flags: Flags) -> Option<Form> {
    let plain = flags == Flags(0);
    let function: AluFn = match instruction.opcode {
        Opcode::Add if plain => f2!(|a, b| bits32(f(a) + f(b)) as u64),
        Opcode::Sub if plain => f2!(|a, b| bits32(f(a) - f(b)) as u64),
        Opcode::Mul if plain => f2!(|a, b| bits32(f(a) * f(b)) as u64),
        Opcode::Fma | Opcode::Mad if plain => f3!(|a, b, c| bits32(f(a).mul_add(f(b), f(c))) as u64),
        Opcode::Add => f2!(flags | g, a, b | result(binary(Operation::Add, operand(a, g), operand(b, g), g), g)),
        Opcode::Sub => f2!(flags | g, a, b | result(binary(Operation::Sub, operand(a, g), operand(b, g), g), g)),
        Opcode::Mul => f2!(flags | g, a, b | result(product(operand(a, g), operand(b, g), g), g)),
        Opcode::Div if instruction.has(Approx) => {
            f2!(flags | g, a, b | result(quotient(operand(a, g), operand(b, g)), g))
        }
        Opcode::Div => f2!(flags | g, a, b | result(binary(Operation::Div, operand(a, g), operand(b, g), g), g)),
        Opcode::Fma | Opcode::Mad => {
            f3!(flags | g, a, b, c | result(fused(operand(a, g), operand(b, g), operand(c, g), g), g))
        }
        Opcode::Rcp => f1!(flags | g, a | result(binary(Operation::Div, 1.0, operand(a, g), g), g)),
        Opcode::Sqrt => f1!(
            flags | g,
            a | {
                let a = operand(a, g);
                let root = match g.round() {
                    Round::Nearest => a.sqrt(),
                    mode => directed32(Operation::Sqrt, a, 0.0, 0.0, mode),
                };
                result(root, g)
            }
        ),
        Opcode::Rsqrt => f1!(flags | g, a | approximate(a, g, |x| 1.0 / x.sqrt())),
        Opcode::Ex2 => f1!(flags | g, a | approximate(a, g, f64::exp2)),
        Opcode::Lg2 => f1!(flags | g, a | approximate(a, g, f64::log2)),
        Opcode::Sin => f1!(flags | g, a | approximate(a, g, f64::sin)),
        Opcode::Cos => f1!(flags | g, a | approximate(a, g, f64::cos)),
        Opcode::Tanh => f1!(flags | g, a | approximate(a, g, f64::tanh)),
        Opcode::Abs => f1!(flags | g, a | sign_only(f32::from_bits(a as u32 & 0x7fff_ffff), g)),
        Opcode::Neg => f1!(flags | g, a | sign_only(f32::from_bits(a as u32 ^ 0x8000_0000), g)),
        Opcode::Min | Opcode::Max => return extremum(instruction, flags),
        Opcode::Copysign => f2!(|a, b| (b & 0x7fff_ffff) | (a & 0x8000_0000)),
        Opcode::Testp => return testp(instruction, F32),
        _ => return None,
    };
    let count = instruction.operands.len() - 1;
    Form::new(function, F32, &vec![F32; count]).map(|form| form.flagged(flags))
}

/// `abs` and `neg`: the sign bit changes, a NaN becomes the canonical one.
fn sign_only(x: f32, flags: Flags) -> u64 {
    let x = if flags.has(Flags::FTZ) { flush(x) } else { x };
    u64::from(bits32(x))
}

/// `min` and `max` of two or three f32.
fn extremum(instruction: &Instruction, flags: Flags) -> Option<Form> {
    let flags = if instruction.opcode == Opcode::Max { flags.with(Flags::MAX) } else { flags };
    fn pick(a: f32, b: f32, g: Flags) -> f32 {
        let (a, b) = if g.has(Flags::FTZ) { (flush(a), flush(b)) } else { (a, b) };
        if g.has(Flags::NAN) && (a.is_nan() || b.is_nan()) {
            return f32::from_bits(NAN32);
        }
        if g.has(Flags::XORSIGN_ABS) {
            let negative = a.is_sign_negative() != b.is_sign_negative();
            let (a, b) = (a.abs(), b.abs());
            let magnitude = if g.has(Flags::MAX) { max32(a, b) } else { min32(a, b) };
            return if negative { -magnitude } else { magnitude };
        }
        if g.has(Flags::MAX) { max32(a, b) } else { min32(a, b) }
    }
    let form = if instruction.operands.len() == 4 {
        Form::new(f3!(flags | g, a, b, c | bits32(pick(pick(f(a), f(b), g), f(c), g)) as u64), F32, &[F32; 3])
    } else {
        Form::new(f2!(flags | g, a, b | bits32(pick(f(a), f(b), g)) as u64), F32, &[F32; 2])
    };
    form.map(|form| form.flagged(flags))
}

fn testp(instruction: &Instruction, ty: Modifier) -> Option<Form> {
    let test = instruction.one_of(&[Finite, Infinite, Number, Notanumber, Normal, Subnormal])?;
    let code = match test {
        Finite => 0,
        Infinite => 1,
        Number => 2,
        Notanumber => 3,
        Normal => 4,
        _ => 5,
    };
    macro_rules! test {
        ($x:expr, $g:expr) => {{
            let (x, g) = ($x, $g);
            u64::from(match g.0 {
                0 => x.is_finite(),
                1 => x.is_infinite(),
                2 => !x.is_nan(),
                3 => x.is_nan(),
                // Zeros count as normal.
                4 => x.is_normal() || x == 0.0,
                _ => x.is_subnormal(),
            })
        }};
    }
    let function: AluFn =
        if ty == F32 { f1!(flags | g, a | test!(f(a), g)) } else { f1!(flags | g, a | test!(f64::from_bits(a), g)) };
    Form::new(function, Pred, &[ty]).map(|form| form.flagged(Flags(code)))
}

fn d(x: u64) -> f64 {
    f64::from_bits(x)
}

fn double(instruction: &Instruction, flags: Flags) -> Option<Form> {
    let function: AluFn = match instruction.opcode {
        Opcode::Add => f2!(flags | g, a, b | directed64(Operation::Add, d(a), d(b), 0.0, g.round()).to_bits()),
        Opcode::Sub => f2!(flags | g, a, b | directed64(Operation::Sub, d(a), d(b), 0.0, g.round()).to_bits()),
        Opcode::Mul => f2!(flags | g, a, b | directed64(Operation::Mul, d(a), d(b), 0.0, g.round()).to_bits()),
        Opcode::Div => f2!(flags | g, a, b | directed64(Operation::Div, d(a), d(b), 0.0, g.round()).to_bits()),
        Opcode::Fma | Opcode::Mad => {
            f3!(flags | g, a, b, c | directed64(Operation::Fma, d(a), d(b), d(c), g.round()).to_bits())
        }
        // The approximations of f64 see and give the upper 32 bits only.
        Opcode::Rcp if instruction.has(Approx) => f1!(|a| upper_result(1.0 / upper(a))),
        Opcode::Rsqrt if instruction.has(Ftz) => f1!(|a| upper_result(1.0 / upper(a).sqrt())),
        Opcode::Rsqrt => f1!(|a| (1.0 / d(a).sqrt()).to_bits()),
        Opcode::Rcp => f1!(flags | g, a | directed64(Operation::Div, 1.0, d(a), 0.0, g.round()).to_bits()),
        Opcode::Sqrt => f1!(flags | g, a | directed64(Operation::Sqrt, d(a), 0.0, 0.0, g.round()).to_bits()),
        // A NaN keeps its sign.
        Opcode::Abs => f1!(|a| if d(a).is_nan() { a | QUIET64 } else { a & !(1 << 63) }),
        Opcode::Neg => f1!(|a| if d(a).is_nan() { a | QUIET64 } else { a ^ 1 << 63 }),
        Opcode::Min => f2!(|a, b| quiet64(min64(d(a), d(b)).to_bits())),
        Opcode::Max => f2!(|a, b| quiet64(max64(d(a), d(b)).to_bits())),
        Opcode::Copysign => f2!(|a, b| (b & !(1 << 63)) | (a & 1 << 63)),
        Opcode::Testp => return testp(instruction, F64),
        _ => return None,
    };
    let count = instruction.operands.len() - 1;
    Form::new(function, F64, &vec![F64; count]).map(|form| form.flagged(flags))
}

/// The upper half of an f64, with subnormals flushed.
fn upper(a: u64) -> f64 {
    let x = f64::from_bits(a & !0xffff_ffff);
    if x.is_subnormal() { 0f64.copysign(x) } else { x }
}

/// The result of an approximation of f64: the upper half, subnormals flushed.
fn upper_result(x: f64) -> u64 {
    if x.is_nan() {
        0x7fff_ffff_0000_0000
    } else if x.is_subnormal() {
        0f64.copysign(x).to_bits()
    } else {
        x.to_bits() & !0xffff_ffff
    }
}

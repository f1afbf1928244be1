//! `cvt` and `cvt.pack`.
//!
//! NaN to an integer is 0, or the top bit alone where the source is f64 or the destination has 64 bits. Float to
//! integer clamps to the destination's range; integer to integer wraps unless `.sat` is there.

use rtc_ptx::module::Instruction;
use rtc_ptx::types::{bits, is_float, is_signed};
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f1, f2, f3};
use crate::numeric::convert::{integer_odd, integer_to_f64, integer_value, integral, mask, range, to_integer};
use crate::numeric::float::{NAN32, NAN32_AS_F64, flush, quiet64, saturate};
use crate::numeric::format::{self, Format, Round, bf16_value, f16_value};
use Modifier::*;

/// The form of a conversion.
pub fn form(instruction: &Instruction) -> Option<Form> {
    if instruction.opcode == Opcode::CvtPack {
        return pack(instruction);
    }
    let [.., to, from] = instruction.modifiers[..] else { return None };
    if instruction.operands.len() == 3 {
        return pair(instruction, to, from);
    }
    match (to, from) {
        (F16x2, E4m3x2) => {
            return Form::new(f1!(flags | g, a | widen_pair(&format::E4M3, a, g)), B32, &[B16])
                .map(|form| form.flagged(Flags::of(instruction)));
        }
        (F16x2, E5m2x2) => {
            return Form::new(f1!(flags | g, a | widen_pair(&format::E5M2, a, g)), B32, &[B16])
                .map(|form| form.flagged(Flags::of(instruction)));
        }
        (E4m3x2 | E5m2x2, F16x2) => {
            let flags = Flags::of(instruction);
            let function: AluFn = if to == E4m3x2 {
                f1!(flags | g, a | narrow_pair(&format::E4M3, f16_value((a >> 16) as u16), f16_value(a as u16), g))
            } else {
                f1!(flags | g, a | narrow_pair(&format::E5M2, f16_value((a >> 16) as u16), f16_value(a as u16), g))
            };
            return Form::new(function, B16, &[B32]).map(|form| form.flagged(flags));
        }
        _ => {}
    }
    let code = |ty: Modifier| Some(CODES.iter().position(|c| *c == ty)? as u64);
    let flags =
        Flags::of(instruction).with(code(from)? << Flags::SOURCE_SHIFT).with(code(to)? << Flags::DESTINATION_SHIFT);
    let function: AluFn = match (is_float(from), is_float(to)) {
        _ if flags.0 & 0xffff == 0 && (from, to) == (F16, F32) => f1!(|a| {
            let x = f16_value(a as u16);
            if x.is_nan() { u64::from(NAN32) } else { u64::from(x.to_bits()) }
        }),
        (false, false) => integer_function(flags, to, from),
        (false, true) => f1!(flags | g, a | from_integer(a, g)),
        (true, false) => f1!(flags | g, a | from_float(a, g)),
        (true, true) => f1!(flags | g, a | between_floats(a, g)),
    };
    Form::new(function, storage(to), &[storage(from)]).map(|form| form.flagged(flags))
}

/// The types that a single value converts between; positions are used in flags.
const CODES: &[Modifier] = &[U8, U16, U32, U64, S8, S16, S32, S64, F16, Bf16, F32, F64, Tf32];

fn source_type(flags: Flags) -> Modifier {
    CODES[(flags.0 >> Flags::SOURCE_SHIFT & 0xff) as usize]
}

fn destination_type(flags: Flags) -> Modifier {
    CODES[(flags.0 >> Flags::DESTINATION_SHIFT & 0xff) as usize]
}

/// tf32 lives in 32-bit registers.
fn storage(ty: Modifier) -> Modifier {
    if ty == Tf32 { B32 } else { ty }
}

fn width(ty: Modifier) -> u32 {
    bits(ty).unwrap_or(64)
}

fn integer_function(flags: Flags, to: Modifier, from: Modifier) -> AluFn {
    if flags.has(Flags::SAT) {
        return f1!(
            flags | g,
            a | {
                let (from, to) = (source_type(g), destination_type(g));
                let (low, high) = range(width(to), is_signed(to));
                integer_value(a, width(from), is_signed(from)).clamp(low, high) as u64 & mask(width(to))
            }
        );
    }
    // Extension by the source's sign, then truncation.
    match (is_signed(from), width(from), width(to)) {
        (true, 8, 16) => f1!(|a| a as i8 as u16 as u64),
        (true, 8, 32) => f1!(|a| a as i8 as u32 as u64),
        (true, 8, 64) => f1!(|a| a as i8 as u64),
        (true, 16, 32) => f1!(|a| a as i16 as u32 as u64),
        (true, 16, 64) => f1!(|a| a as i16 as u64),
        (true, 32, 64) => f1!(|a| a as i32 as u64),
        (_, from, to) => super::zero_extend(from.min(to)),
    }
}

fn from_integer(a: u64, flags: Flags) -> u64 {
    let (from, to) = (source_type(flags), destination_type(flags));
    let value = integer_value(a, width(from), is_signed(from));
    let mode = flags.round();
    if to == F64 {
        let x = integer_to_f64(value, mode);
        return if flags.has(Flags::SAT) { x.clamp(0.0, 1.0) } else { x }.to_bits();
    }
    let format = format_of(to);
    let bits = format.narrow(integer_odd(value), mode);
    if flags.has(Flags::SAT) {
        let x = saturate(format.decode(bits) as f32);
        return u64::from(format.narrow(x.into(), Round::Nearest));
    }
    u64::from(bits)
}

fn format_of(ty: Modifier) -> &'static Format {
    match ty {
        F16 => &format::F16,
        Bf16 => &format::BF16,
        _ => &format::F32,
    }
}

fn float_value(a: u64, ty: Modifier, flags: Flags) -> f64 {
    match ty {
        F16 => f16_value(a as u16).into(),
        Bf16 => bf16_value(a as u16).into(),
        F64 => f64::from_bits(a),
        _ => {
            let x = f32::from_bits(a as u32);
            // The f16 value of a subnormal is subnormal, too, and stays.
            let flushes = flags.has(Flags::FTZ) && destination_type(flags) != F16;
            (if flushes { flush(x) } else { x }).into()
        }
    }
}

fn from_float(a: u64, flags: Flags) -> u64 {
    let (from, to) = (source_type(flags), destination_type(flags));
    let width = width(to);
    let nan = if from == F64 || width == 64 { 1 << (width - 1) } else { 0 };
    to_integer(float_value(a, from, flags), flags.round(), width, is_signed(to), nan)
}

fn between_floats(a: u64, flags: Flags) -> u64 {
    let (from, to) = (source_type(flags), destination_type(flags));
    let mut x = float_value(a, from, flags);
    if x.is_nan() && !flags.has(Flags::SAT | Flags::RELU | Flags::FINITE) {
        match (from, to) {
            // These keep the upper bits of the payload.
            (Bf16, F32) if !flags.has(Flags::FTZ) => return a << 16,
            (F32, F32) if flags.0 & 0xffff == 0 => return a,
            (F32, Tf32) if flags.round() == Round::Away => return a & 0xffff_e000,
            (F64, F64) if flags.has(Flags::INTEGRAL) => return quiet64(a),
            (F64, F64) => return a,
            (F64, Bf16) => return (a >> 48 & 0x8000) | 0x7fc0 | (a >> 45 & 0x3f),
            (F64, F32) => return (a >> 32 & 0x8000_0000) | 0x7fc0_0000 | (a >> 29 & 0x3f_ffff),
            (F64, F16) => return (a >> 48 & 0x8000) | 0x7e00 | (a >> 42 & 0x1ff),
            (F32, F64) if flags.has(Flags::FTZ) => return NAN32_AS_F64,
            _ => {}
        }
    }
    let mut mode = flags.round();
    if flags.has(Flags::INTEGRAL) {
        x = integral(x, mode);
        mode = Round::Nearest;
    }
    if to == F64 {
        // The same type through: the payload of a NaN stays.
        let x = if flags.has(Flags::SAT) { if x > 0.0 { x.min(1.0) } else { 0.0 } } else { x };
        return x.to_bits();
    }
    if to == Tf32 {
        // With `rna.satfinite` infinity and NaN become the bits below them.
        if mode == Round::Away && flags.has(Flags::FINITE) && !x.is_finite() {
            return (a & 0xffff_e000) - 0x2000;
        }
        return u64::from(to_tf32(x, mode, flags));
    }
    let format = format_of(to);
    u64::from(narrow(format, x, mode, flags))
}

fn narrow(to: &Format, x: f64, mode: Round, flags: Flags) -> u32 {
    let x = if flags.has(Flags::RELU) && x <= 0.0 { 0.0 } else { x };
    let x = if flags.has(Flags::SAT) { if x > 0.0 { x.min(1.0) } else { 0.0 } } else { x };
    let bits = if flags.has(Flags::FINITE) { to.narrow_finite(x, mode) } else { to.narrow(x, mode) };
    if flags.has(Flags::FTZ) && to.mantissa == format::F32.mantissa {
        return flush(f32::from_bits(bits)).to_bits();
    }
    bits
}

/// tf32: f32 with 10 mantissa bits, the rest zero.
fn to_tf32(x: f64, mode: Round, flags: Flags) -> u32 {
    if x.is_nan() {
        return NAN32 & 0xffff_e000;
    }
    const MAX: f64 = f32::from_bits(0x7f7f_e000) as f64;
    const TF32: Format = Format { mantissa: 10, exponent: 8, max: MAX, has_infinity: true, nan: NAN32 >> 13 };
    let x = if flags.has(Flags::RELU) && x <= 0.0 { 0.0 } else { x };
    let bits = if flags.has(Flags::FINITE) { TF32.narrow_finite(x, mode) } else { TF32.narrow(x, mode) };
    bits << 13
}

/// `cvt.…x2.f32 d, a, b`: `a` goes to the upper half.
fn pair(instruction: &Instruction, to: Modifier, from: Modifier) -> Option<Form> {
    if from != F32 {
        return None;
    }
    let function: AluFn = match to {
        F16x2 => f2!(flags | g, a, b | wide_pair(&format::F16, a, b, g)),
        Bf16x2 => f2!(flags | g, a, b | wide_pair(&format::BF16, a, b, g)),
        E4m3x2 => {
            f2!(flags | g, a, b | narrow_pair(&format::E4M3, f32::from_bits(a as u32), f32::from_bits(b as u32), g))
        }
        E5m2x2 => {
            f2!(flags | g, a, b | narrow_pair(&format::E5M2, f32::from_bits(a as u32), f32::from_bits(b as u32), g))
        }
        _ => return None,
    };
    let destination = if matches!(to, F16x2 | Bf16x2) { B32 } else { B16 };
    Form::new(function, destination, &[F32, F32]).map(|form| form.flagged(Flags::of(instruction)))
}

fn wide_pair(format: &Format, a: u64, b: u64, flags: Flags) -> u64 {
    let one = |x: u64| u64::from(narrow(format, float_value(x, F32, flags), flags.round(), flags));
    one(a) << 16 | one(b)
}

fn narrow_pair(format: &Format, a: f32, b: f32, flags: Flags) -> u64 {
    let one = |x: f32| u64::from(narrow(format, x.into(), flags.round(), flags));
    one(a) << 8 | one(b)
}

fn widen_pair(format: &Format, a: u64, flags: Flags) -> u64 {
    let one = |bits: u64| {
        let x = format.decode(bits as u32 & 0xff);
        let x = if flags.has(Flags::RELU) && x <= 0.0 { 0.0 } else { x };
        u64::from(format::F16.narrow(x, Round::Nearest))
    };
    one(a >> 8) << 16 | one(a)
}

/// `cvt.pack.sat.…`: two 32-bit integers to the low half, the third source moved up.
fn pack(instruction: &Instruction) -> Option<Form> {
    let to = *instruction.modifiers.get(1)?;
    let flags = Flags(u64::from(is_signed(to)) << 8 | u64::from(width(to)));
    fn clamp(x: u64, g: Flags) -> u64 {
        let bits = g.0 as u8 as u32;
        let (low, high) = range(bits, g.0 >> 8 & 1 == 1);
        i128::from(x as i32).clamp(low, high) as u64 & mask(bits)
    }
    let form = match instruction.operands.len() {
        3 => Form::new(f2!(flags | g, a, b | clamp(a, g) << (g.0 as u8) | clamp(b, g)), B32, &[S32; 2]),
        _ => Form::new(
            f3!(
                flags | g,
                a,
                b,
                c | {
                    let n = g.0 as u8 as u32;
                    (c << (2 * n) | clamp(a, g) << n | clamp(b, g)) as u32 as u64
                }
            ),
            B32,
            &[S32, S32, B32],
        ),
    };
    form.map(|form| form.flagged(flags))
}

//! Integer arithmetic.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f1, f2, f3, f4};
use Modifier::*;

const INTEGERS: &[Modifier] = &[U16, U32, U64, S16, S32, S64, U16x2, S16x2, B32, B64];

macro_rules! int1 {
    ($ty:expr, |$a:ident| $e:expr) => {
        match $ty {
            S16 => f1!(|x| {
                let $a = x as i16;
                ($e) as u16 as u64
            }),
            S32 => f1!(|x| {
                let $a = x as i32;
                ($e) as u32 as u64
            }),
            S64 => f1!(|x| {
                let $a = x as i64;
                ($e) as u64
            }),
            _ => return None,
        }
    };
}

macro_rules! int2 {
    ($ty:expr, |$a:ident, $b:ident| $e:expr) => {
        match $ty {
            U16 => f2!(|x, y| {
                let ($a, $b) = (x as u16, y as u16);
                ($e) as u16 as u64
            }),
            S16 => f2!(|x, y| {
                let ($a, $b) = (x as i16, y as i16);
                ($e) as u16 as u64
            }),
            U32 => f2!(|x, y| {
                let ($a, $b) = (x as u32, y as u32);
                ($e) as u32 as u64
            }),
            S32 => f2!(|x, y| {
                let ($a, $b) = (x as i32, y as i32);
                ($e) as u32 as u64
            }),
            U64 => f2!(|x, y| {
                let ($a, $b) = (x, y);
                ($e) as u64
            }),
            S64 => f2!(|x, y| {
                let ($a, $b) = (x as i64, y as i64);
                ($e) as u64
            }),
            _ => return None,
        }
    };
}

macro_rules! int3 {
    ($ty:expr, |$a:ident, $b:ident, $c:ident| $e:expr) => {
        match $ty {
            U16 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x as u16, y as u16, z as u16);
                ($e) as u16 as u64
            }),
            S16 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x as i16, y as i16, z as i16);
                ($e) as u16 as u64
            }),
            U32 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x as u32, y as u32, z as u32);
                ($e) as u32 as u64
            }),
            S32 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x as i32, y as i32, z as i32);
                ($e) as u32 as u64
            }),
            U64 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x, y, z);
                ($e) as u64
            }),
            S64 => f3!(|x, y, z| {
                let ($a, $b, $c) = (x as i64, y as i64, z as i64);
                ($e) as u64
            }),
            _ => return None,
        }
    };
}

/// Applies to both 16-bit halves.
fn packed(a: u64, b: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// The form of an integer instruction.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let ty = *instruction.modifiers.last().filter(|ty| INTEGERS.contains(ty))?;
    let has = |modifier| instruction.has(modifier);
    let relu = has(Relu);
    let function: AluFn = match instruction.opcode {
        Opcode::Add if has(Sat) => f2!(|a, b| (a as i32).saturating_add(b as i32) as u32 as u64),
        Opcode::Add if matches!(ty, U16x2 | S16x2) => f2!(|a, b| packed(a, b, u16::wrapping_add)),
        Opcode::Add => int2!(ty, |a, b| a.wrapping_add(b)),
        Opcode::Sub if has(Sat) => f2!(|a, b| (a as i32).saturating_sub(b as i32) as u32 as u64),
        Opcode::Sub => int2!(ty, |a, b| a.wrapping_sub(b)),
        // The carry is the third source.
        Opcode::Addc => match ty {
            U32 | S32 => f3!(|a, b, c| (a as u32).wrapping_add(b as u32).wrapping_add(c as u32) as u64),
            _ => f3!(|a, b, c| a.wrapping_add(b).wrapping_add(c)),
        },
        Opcode::Subc => match ty {
            U32 | S32 => f3!(|a, b, c| (a as u32).wrapping_sub(b as u32).wrapping_sub(c as u32) as u64),
            _ => f3!(|a, b, c| a.wrapping_sub(b).wrapping_sub(c)),
        },
        Opcode::Mul if has(Wide) => return Form::new(wide_multiply(ty)?, doubled(ty)?, &[ty, ty]),
        Opcode::Mul if has(Hi) => high_multiply(ty)?,
        Opcode::Mul => int2!(ty, |a, b| a.wrapping_mul(b)),
        Opcode::Mul24 if ty == U32 && has(Lo) => f2!(|a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff) as u32 as u64),
        Opcode::Mul24 if ty == U32 => f2!(|a, b| ((a & 0xff_ffff).wrapping_mul(b & 0xff_ffff) >> 16) as u32 as u64),
        Opcode::Mul24 if has(Lo) => f2!(|a, b| signed24(a).wrapping_mul(signed24(b)) as u32 as u64),
        Opcode::Mul24 => f2!(|a, b| (signed24(a).wrapping_mul(signed24(b)) >> 16) as u32 as u64),
        Opcode::Mad if has(Wide) => {
            let d = doubled(ty)?;
            return Form::new(wide_multiply_add(ty)?, d, &[ty, ty, d]);
        }
        Opcode::Mad if has(Sat) => f3!(|a, b, c| {
            let high = (i64::from(a as i32) * i64::from(b as i32)) >> 32;
            (high as i32).saturating_add(c as i32) as u32 as u64
        }),
        Opcode::Mad if has(Hi) => high_multiply_add(ty)?,
        Opcode::Mad => int3!(ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        Opcode::Madc => {
            let f: AluFn = match (has(Hi), ty) {
                (false, U32 | S32) => {
                    f4!(|a, b, c, k| (a as u32).wrapping_mul(b as u32).wrapping_add(c as u32).wrapping_add(k as u32)
                        as u64)
                }
                (false, _) => f4!(|a, b, c, k| a.wrapping_mul(b).wrapping_add(c).wrapping_add(k)),
                (true, U32) => f4!(|a, b, c, k| ((a * b) >> 32).wrapping_add(c).wrapping_add(k) as u32 as u64),
                (true, S32) => f4!(|a, b, c, k| {
                    (((a as i32 as i64 * b as i32 as i64) >> 32) as u64).wrapping_add(c).wrapping_add(k) as u32 as u64
                }),
                (true, S64) => f4!(|a, b, c, k| {
                    (((a as i64 as i128 * b as i64 as i128) >> 64) as u64).wrapping_add(c).wrapping_add(k)
                }),
                (true, _) => {
                    f4!(|a, b, c, k| (((a as u128 * b as u128) >> 64) as u64).wrapping_add(c).wrapping_add(k))
                }
            };
            return Form::new(f, ty, &[ty, ty, ty]);
        }
        // PTX leaves division by zero open; hardware returns all ones (and the dividend as remainder).
        Opcode::Div => int2!(ty, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
        Opcode::Rem => int2!(ty, |a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
        Opcode::Abs => int1!(ty, |a| a.wrapping_abs()),
        Opcode::Neg => int1!(ty, |a| a.wrapping_neg()),
        Opcode::Min => match ty {
            U16x2 => f2!(|a, b| packed(a, b, u16::min)),
            S16x2 if relu => f2!(|a, b| packed(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16)),
            S16x2 => f2!(|a, b| packed(a, b, |x, y| (x as i16).min(y as i16) as u16)),
            S32 if relu => f2!(|a, b| (a as i32).min(b as i32).max(0) as u32 as u64),
            _ if relu => return None,
            _ => int2!(ty, |a, b| a.min(b)),
        },
        Opcode::Max => match ty {
            U16x2 => f2!(|a, b| packed(a, b, u16::max)),
            S16x2 if relu => f2!(|a, b| packed(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16)),
            S16x2 => f2!(|a, b| packed(a, b, |x, y| (x as i16).max(y as i16) as u16)),
            S32 if relu => f2!(|a, b| (a as i32).max(b as i32).max(0) as u32 as u64),
            _ if relu => return None,
            _ => int2!(ty, |a, b| a.max(b)),
        },
        Opcode::Sad => int3!(ty, |a, b, c| (if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) }).wrapping_add(c)),
        Opcode::Dp4a | Opcode::Dp2a => return dot(instruction),
        _ => return None,
    };
    let count = instruction.operands.len() - 1;
    // Addition with carry takes the carry as a hidden last source.
    let mut sources = vec![ty; count];
    if matches!(instruction.opcode, Opcode::Addc | Opcode::Subc) {
        sources.truncate(2);
    }
    Form::new(function, ty, &sources).map(|form| form.flagged(Flags(0)))
}

/// The carry (or borrow) that an instruction with `.cc` leaves, from its sources and, last, the carry in.
pub fn carry(instruction: &Instruction) -> Option<AluFn> {
    let wide = matches!(instruction.modifiers.last(), Some(U64 | S64));
    let high = instruction.has(Hi);
    let signed = matches!(instruction.modifiers.last(), Some(S32 | S64));
    Some(match (instruction.opcode, wide) {
        (Opcode::Add, false) => f2!(|a, b| ((a as u32 as u64) + (b as u32 as u64)) >> 32),
        (Opcode::Add, true) => f2!(|a, b| a.overflowing_add(b).1 as u64),
        (Opcode::Addc, false) => f3!(|a, b, c| ((a as u32 as u64) + (b as u32 as u64) + c) >> 32),
        (Opcode::Addc, true) => f3!(|a, b, c| ((a as u128 + b as u128 + c as u128) >> 64) as u64),
        (Opcode::Sub, false) => f2!(|a, b| ((a as u32) < (b as u32)) as u64),
        (Opcode::Sub, true) => f2!(|a, b| (a < b) as u64),
        (Opcode::Subc, false) => f3!(|a, b, c| ((a as u32 as u64) < (b as u32 as u64) + c) as u64),
        (Opcode::Subc, true) => f3!(|a, b, c| ((a as u128) < b as u128 + c as u128) as u64),
        (Opcode::Mad | Opcode::Madc, false) if !high => {
            f4!(|a, b, c, k| ((a as u32).wrapping_mul(b as u32) as u64 + (c as u32 as u64) + k) >> 32)
        }
        (Opcode::Mad | Opcode::Madc, true) if !high => {
            f4!(|a, b, c, k| ((a.wrapping_mul(b) as u128 + c as u128 + k as u128) >> 64) as u64)
        }
        (Opcode::Mad | Opcode::Madc, false) if signed => f4!(|a, b, c, k| {
            (((a as i32 as i64 * b as i32 as i64) >> 32) as u32 as u64 + (c as u32 as u64) + k) >> 32
        }),
        (Opcode::Mad | Opcode::Madc, false) => {
            f4!(|a, b, c, k| ((((a as u32 as u64) * (b as u32 as u64)) >> 32) + (c as u32 as u64) + k) >> 32)
        }
        (Opcode::Mad | Opcode::Madc, true) if signed => f4!(|a, b, c, k| {
            ((((a as i64 as i128 * b as i64 as i128) >> 64) as u64 as u128 + c as u128 + k as u128) >> 64) as u64
        }),
        (Opcode::Mad | Opcode::Madc, true) => {
            f4!(|a, b, c, k| ((((a as u128 * b as u128) >> 64) + c as u128 + k as u128) >> 64) as u64)
        }
        _ => return None,
    })
}

fn signed24(a: u64) -> i64 {
    ((a as i64) << 40) >> 40
}

fn doubled(ty: Modifier) -> Option<Modifier> {
    Some(match ty {
        U16 => U32,
        S16 => S32,
        U32 => U64,
        S32 => S64,
        _ => return None,
    })
}

fn wide_multiply(ty: Modifier) -> Option<AluFn> {
    Some(match ty {
        U16 => f2!(|a, b| (a as u16 as u32 * b as u16 as u32) as u64),
        S16 => f2!(|a, b| (a as i16 as i32 * b as i16 as i32) as u32 as u64),
        U32 => f2!(|a, b| (a as u32 as u64) * (b as u32 as u64)),
        S32 => f2!(|a, b| (a as i32 as i64 * b as i32 as i64) as u64),
        _ => return None,
    })
}

fn wide_multiply_add(ty: Modifier) -> Option<AluFn> {
    Some(match ty {
        U16 => f3!(|a, b, c| (a as u16 as u32 * b as u16 as u32).wrapping_add(c as u32) as u64),
        S16 => f3!(|a, b, c| (a as i16 as i32 * b as i16 as i32).wrapping_add(c as i32) as u32 as u64),
        U32 => f3!(|a, b, c| ((a as u32 as u64) * (b as u32 as u64)).wrapping_add(c)),
        S32 => f3!(|a, b, c| (a as i32 as i64 * b as i32 as i64).wrapping_add(c as i64) as u64),
        _ => return None,
    })
}

fn high_multiply(ty: Modifier) -> Option<AluFn> {
    Some(match ty {
        U16 => f2!(|a, b| ((a as u16 as u32 * b as u16 as u32) >> 16) as u64),
        S16 => f2!(|a, b| ((a as i16 as i32 * b as i16 as i32) >> 16) as u16 as u64),
        U32 => f2!(|a, b| ((a as u32 as u64) * (b as u32 as u64)) >> 32),
        S32 => f2!(|a, b| ((a as i32 as i64 * b as i32 as i64) >> 32) as u32 as u64),
        U64 => f2!(|a, b| ((a as u128 * b as u128) >> 64) as u64),
        S64 => f2!(|a, b| ((a as i64 as i128 * b as i64 as i128) >> 64) as u64),
        _ => return None,
    })
}

fn high_multiply_add(ty: Modifier) -> Option<AluFn> {
    Some(match ty {
        U16 => f3!(|a, b, c| ((a as u16 as u32 * b as u16 as u32) >> 16).wrapping_add(c as u32) as u16 as u64),
        S16 => f3!(|a, b, c| ((a as i16 as i32 * b as i16 as i32) >> 16).wrapping_add(c as i32) as u16 as u64),
        U32 => f3!(|a, b, c| (((a as u32 as u64) * (b as u32 as u64)) >> 32).wrapping_add(c) as u32 as u64),
        S32 => f3!(|a, b, c| (((a as i32 as i64 * b as i32 as i64) >> 32) as u64).wrapping_add(c) as u32 as u64),
        U64 => f3!(|a, b, c| (((a as u128 * b as u128) >> 64) as u64).wrapping_add(c)),
        S64 => f3!(|a, b, c| (((a as i64 as i128 * b as i64 as i128) >> 64) as u64).wrapping_add(c)),
        _ => return None,
    })
}

/// Byte `i` of `value` with the sign the type has.
fn byte(value: u64, i: u32, signed: bool) -> i64 {
    let raw = (value >> (8 * i)) as u8;
    if signed { i64::from(raw as i8) } else { i64::from(raw) }
}

/// Half-word `i` of `value` with the sign the type has.
fn word(value: u64, i: u32, signed: bool) -> i64 {
    let raw = (value >> (16 * i)) as u16;
    if signed { i64::from(raw as i16) } else { i64::from(raw) }
}

/// `dp4a` and `dp2a`; the flags hold which sources are signed and which half is taken.
fn dot(instruction: &Instruction) -> Option<Form> {
    let types: Vec<Modifier> = instruction.modifiers.iter().copied().filter(|m| matches!(m, U32 | S32)).collect();
    let [a, b] = types[..] else { return None };
    let result = if a == U32 && b == U32 { U32 } else { S32 };
    let flags = u64::from(a == S32) | u64::from(b == S32) << 1 | u64::from(instruction.has(Hi)) << 2;
    let function: AluFn = if instruction.opcode == Opcode::Dp4a {
        f3!(
            flags | g,
            a,
            b,
            c | {
                let sum: i64 = (0..4).map(|i| byte(a, i, g.0 & 1 != 0) * byte(b, i, g.0 & 2 != 0)).sum();
                (c as i64).wrapping_add(sum) as u32 as u64
            }
        )
    } else {
        f3!(
            flags | g,
            a,
            b,
            c | {
                let first = if g.0 & 4 != 0 { 2 } else { 0 };
                let sum: i64 = (0..2).map(|i| word(a, i, g.0 & 1 != 0) * byte(b, first + i, g.0 & 2 != 0)).sum();
                (c as i64).wrapping_add(sum) as u32 as u64
            }
        )
    };
    Form::new(function, result, &[a, b, result]).map(|form| form.flagged(Flags(flags)))
}

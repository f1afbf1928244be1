//! Comparison and selection.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f3};
use crate::numeric::float::flush;
use crate::numeric::format::{bf16_value, f16_value};
use Modifier::*;

const COMPARISONS: &[Modifier] = &[Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, IsNan];

/// Bits of a comparison: which of less, equal, greater, unordered hold.
const LESS: u64 = 1;
const EQUAL: u64 = 2;
const GREATER: u64 = 4;
const UNORDERED: u64 = 8;
const FTZ: u64 = 16;
/// Combination with the third source: 0 none, 1 and, 2 or, 3 xor.
const COMBINE_SHIFT: u32 = 8;
/// The second destination of `setp`: the comparison is inverted.
const INVERT: u64 = 1 << 12;
/// A packed pair: the second destination of `setp` compares the upper halves.
const PAIR: u64 = 1 << 13;
const BRAIN_PAIR: u64 = 1 << 14;
/// The value of true: 0 a predicate, 1 and 3 all ones of 32 and 16 bits, 2, 4, 5 one as f32, f16, bf16.
const TRUE_SHIFT: u32 = 16;

/// The form of a comparison or selection.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let ty = *instruction.modifiers.last()?;
    match instruction.opcode {
        Opcode::Selp => Form::new(f3!(|a, b, p| if p & 1 == 1 { a } else { b }), ty, &[ty, ty, Pred]),
        Opcode::Slct => {
            let data = instruction.modifiers[instruction.modifiers.len() - 2];
            let function: AluFn = if ty == F32 {
                f3!(
                    flags | g,
                    a,
                    b,
                    c | {
                        let c = f32::from_bits(c as u32);
                        let c = if g.0 & FTZ != 0 { flush(c) } else { c };
                        if c >= 0.0 { a } else { b }
                    }
                )
            } else {
                f3!(|a, b, c| if c as i32 >= 0 { a } else { b })
            };
            let flags = if instruction.has(Ftz) { FTZ } else { 0 };
            Form::new(function, data, &[data, data, ty]).map(|form| form.flagged(Flags(flags)))
        }
        Opcode::Setp | Opcode::Set => {
            let comparison = instruction.one_of(COMPARISONS)?;
            let mut flags = holds(comparison);
            if instruction.has(Ftz) {
                flags |= FTZ;
            }
            // Of `and`, `or`, `xor` only the modifier after the comparison is a combination.
            flags |= match instruction.modifiers.get(1) {
                Some(And) => 1 << COMBINE_SHIFT,
                Some(Or) => 2 << COMBINE_SHIFT,
                Some(Xor) => 3 << COMBINE_SHIFT,
                _ => 0,
            };
            let mut sources = vec![ty, ty];
            if flags >> COMBINE_SHIFT & 3 != 0 {
                sources.push(Pred);
            }
            let function = comparator(ty)?;
            flags |= match ty {
                F16x2 => PAIR,
                Bf16x2 => BRAIN_PAIR,
                _ => 0,
            };
            if instruction.opcode == Opcode::Setp {
                return Form::new(function, Pred, &sources).map(|form| form.flagged(Flags(flags)));
            }
            let result = instruction.modifiers[instruction.modifiers.len() - 2];
            flags |= match result {
                U32 | S32 => 1,
                F32 => 2,
                U16 | S16 => 3,
                F16 => 4,
                Bf16 => 5,
                F16x2 => 4,
                Bf16x2 => 5,
                _ => return None,
            } << TRUE_SHIFT;
            if matches!(ty, F16x2 | Bf16x2) {
                // A pair of results: integers of 32 bits are one, too.
                if matches!(result, U32 | S32) {
                    flags = flags & !(7 << TRUE_SHIFT) | 3 << TRUE_SHIFT;
                }
                return Form::new(pairs(ty == Bf16x2), result, &sources).map(|form| form.flagged(Flags(flags)));
            }
            Form::new(function, result, &sources).map(|form| form.flagged(Flags(flags)))
        }
        _ => None,
    }
}

/// The form of the second destination of `setp.… p|q`: the inverted comparison, combined in the same way; for packed
/// pairs the comparison of the upper halves.
pub fn second(form: &Form) -> Form {
    let (function, flags) = match form.flags.0 & (PAIR | BRAIN_PAIR) {
        PAIR => (upper_halves(false), form.flags.0),
        BRAIN_PAIR => (upper_halves(true), form.flags.0),
        _ => (form.function, form.flags.0 | INVERT),
    };
    Form { function, destination: form.destination, sources: form.sources.clone(), flags: Flags(flags) }
}

fn holds(comparison: Modifier) -> u64 {
    match comparison {
        Eq => EQUAL,
        // `ne` of floats is ordered: false for NaN.
        Ne => LESS | GREATER,
        Lt | Lo => LESS,
        Le | Ls => LESS | EQUAL,
        Gt | Hi => GREATER,
        Ge | Hs => GREATER | EQUAL,
        Equ => EQUAL | UNORDERED,
        Neu => LESS | GREATER | UNORDERED,
        Ltu => LESS | UNORDERED,
        Leu => LESS | EQUAL | UNORDERED,
        Gtu => GREATER | UNORDERED,
        Geu => GREATER | EQUAL | UNORDERED,
        Num => LESS | EQUAL | GREATER,
        _ => UNORDERED,
    }
}

fn order<T: PartialOrd>(left: T, right: T) -> u64 {
    if left < right {
        LESS
    } else if left > right {
        GREATER
    } else if left == right {
        EQUAL
    } else {
        UNORDERED
    }
}

/// `set` of packed pairs: a result for each half.
fn pairs(brain: bool) -> AluFn {
    if brain {
        f3!(
            flags | g,
            a,
            b,
            c | decide(halves(a, b, true, g.0), c, g.0) | decide(halves(a >> 16, b >> 16, true, g.0), c, g.0) << 16
        )
    } else {
        f3!(
            flags | g,
            a,
            b,
            c | decide(halves(a, b, false, g.0), c, g.0) | decide(halves(a >> 16, b >> 16, false, g.0), c, g.0) << 16
        )
    }
}

/// The order of two values of 16 bits.
fn halves(a: u64, b: u64, brain: bool, flags: u64) -> u64 {
    let value = |bits: u64| {
        let bits = bits as u16;
        // Subnormals of f16; bf16 is not flushed.
        let bits = if flags & FTZ != 0 && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits };
        if brain { bf16_value(bits) } else { f16_value(bits) }
    };
    order(value(a), value(b))
}

/// The comparison of the upper halves of packed pairs, bf16 or f16.
fn upper_halves(brain: bool) -> AluFn {
    if brain {
        f3!(flags | g, a, b, c | decide(halves(a >> 16, b >> 16, true, g.0), c, g.0))
    } else {
        f3!(flags | g, a, b, c | decide(halves(a >> 16, b >> 16, false, g.0), c, g.0))
    }
}

fn comparator(ty: Modifier) -> Option<AluFn> {
    macro_rules! compare {
        (|$x:ident| $value:expr) => {
            f3!(
                flags | g,
                a,
                b,
                c | {
                    let left = {
                        let $x = a;
                        let _ = g;
                        $value
                    };
                    let right = {
                        let $x = b;
                        $value
                    };
                    decide(order(left, right), c, g.0)
                }
            )
        };
        (float |$x:ident| $value:expr) => {
            f3!(
                flags | g,
                a,
                b,
                c | {
                    let left = {
                        let $x = a;
                        $value
                    };
                    let right = {
                        let $x = b;
                        $value
                    };
                    let (left, right) = if g.0 & FTZ != 0 { (flush(left), flush(right)) } else { (left, right) };
                    decide(order(left, right), c, g.0)
                }
            )
        };
    }
    Some(match ty {
        U16 | B16 => compare!(|x| x as u16),
        S16 => compare!(|x| x as i16),
        U32 | B32 => compare!(|x| x as u32),
        S32 => compare!(|x| x as i32),
        U64 | B64 => compare!(|x| x),
        S64 => compare!(|x| x as i64),
        F32 => compare!(float | x | f32::from_bits(x as u32)),
        F64 => compare!(|x| f64::from_bits(x)),
        F16 | F16x2 => f3!(flags | g, a, b, c | decide(halves(a, b, false, g.0), c, g.0)),
        Bf16 | Bf16x2 => compare!(|x| bf16_value(x as u16)),
        _ => return None,
    })
}

/// The result of a comparison: combined with `c`, as the type that the flags select.
fn decide(outcome: u64, c: u64, flags: u64) -> u64 {
    let held = (outcome & flags != 0) != (flags & INVERT != 0);
    let c = c & 1 == 1;
    let result = match flags >> COMBINE_SHIFT & 3 {
        1 => held && c,
        2 => held || c,
        3 => held != c,
        _ => held,
    };
    let when_true = match flags >> TRUE_SHIFT & 7 {
        1 => 0xffff_ffff,
        2 => u64::from(1f32.to_bits()),
        3 => 0xffff,
        4 => 0x3c00,
        5 => 0x3f80,
        _ => 1,
    };
    if result { when_true } else { 0 }
}

//! Logic, shifts and bit fields.

use rtc_ptx::module::Instruction;
use rtc_ptx::{Modifier, Opcode};

use super::{AluFn, Flags, Form, f1, f2, f3, f4};
use Modifier::*;

/// The form of a bit instruction.
pub fn form(instruction: &Instruction) -> Option<Form> {
    let has = |modifier| instruction.has(modifier);
    let ty = *instruction.modifiers.iter().rev().find(|m| rtc_ptx::types::bits(**m).is_some())?;
    let same = |function: AluFn, n: usize| Form::new(function, ty, &vec![ty; n]);
    match instruction.opcode {
        Opcode::And => same(f2!(|a, b| a & b), 2),
        Opcode::Or => same(f2!(|a, b| a | b), 2),
        Opcode::Xor => same(f2!(|a, b| a ^ b), 2),
        Opcode::Not => same(
            match ty {
                Pred => f1!(|a| (a & 1) ^ 1),
                B16 => f1!(|a| !a as u16 as u64),
                B32 => f1!(|a| !a as u32 as u64),
                _ => f1!(|a| !a),
            },
            1,
        ),
        Opcode::Cnot => same(f1!(|a| (a == 0) as u64), 1),
        // Shift amounts beyond the width are clamped to it.
        Opcode::Shl => Form::new(
            match ty {
                B16 => f2!(|a, b| if b as u32 > 15 { 0 } else { (a << (b as u32)) as u16 as u64 }),
                B32 => f2!(|a, b| if b as u32 > 31 { 0 } else { (a << (b as u32)) as u32 as u64 }),
                _ => f2!(|a, b| if b as u32 > 63 { 0 } else { a << (b as u32) }),
            },
            ty,
            &[ty, B32],
        ),
        Opcode::Shr => Form::new(
            match ty {
                S16 => f2!(|a, b| (a as i16 >> (b as u32).min(15)) as u16 as u64),
                S32 => f2!(|a, b| (a as i32 >> (b as u32).min(31)) as u32 as u64),
                S64 => f2!(|a, b| (a as i64 >> (b as u32).min(63)) as u64),
                B16 | U16 => f2!(|a, b| if b as u32 > 15 { 0 } else { (a as u16 >> (b as u32)) as u64 }),
                B32 | U32 => f2!(|a, b| if b as u32 > 31 { 0 } else { (a as u32 >> (b as u32)) as u64 }),
                _ => f2!(|a, b| if b as u32 > 63 { 0 } else { a >> (b as u32) }),
            },
            ty,
            &[ty, B32],
        ),
        Opcode::Shf => {
            let function: AluFn = match (has(L), has(Wrap)) {
                (true, true) => f3!(|a, b, c| ((((b << 32) | a as u32 as u64) << (c & 31)) >> 32) as u32 as u64),
                (true, false) => {
                    f3!(|a, b, c| ((((b << 32) | a as u32 as u64) << (c as u32).min(32)) >> 32) as u32 as u64)
                }
                (false, true) => f3!(|a, b, c| (((b << 32) | a as u32 as u64) >> (c & 31)) as u32 as u64),
                (false, false) => {
                    f3!(|a, b, c| (((b << 32) | a as u32 as u64) >> (c as u32).min(32)) as u32 as u64)
                }
            };
            same(function, 3)
        }
        Opcode::Lop3 => Form::new(f4!(|a, b, c, t| lop3(a as u32, b as u32, c as u32, t as u8)), B32, &[B32; 4]),
        Opcode::Prmt => {
            let mode = instruction.one_of(&[F4e, B4e, Rc8, Ecl, Ecr, Rc16]);
            let code = match mode {
                None => 0,
                Some(F4e) => 1,
                Some(B4e) => 2,
                Some(Rc8) => 3,
                Some(Ecl) => 4,
                Some(Ecr) => 5,
                _ => 6,
            };
            let function = f3!(flags | g, a, b, c | permute(a, b, c, g.0));
            same(function, 3).map(|form| form.flagged(Flags(code)))
        }
        Opcode::Bfe => Form::new(
            match ty {
                U32 => f3!(|a, b, c| extract(a as u32 as u64, b, c, 32, false)),
                S32 => f3!(|a, b, c| extract(a as u32 as u64, b, c, 32, true)),
                U64 => f3!(|a, b, c| extract(a, b, c, 64, false)),
                _ => f3!(|a, b, c| extract(a, b, c, 64, true)),
            },
            ty,
            &[ty, U32, U32],
        ),
        Opcode::Bfi => Form::new(
            if ty == B32 { f4!(|a, b, c, d| insert(a, b, c, d, 32)) } else { f4!(|a, b, c, d| insert(a, b, c, d, 64)) },
            ty,
            &[ty, ty, U32, U32],
        ),
        Opcode::Bfind => {
            let (width, signed, amount) =
                (if matches!(ty, U64 | S64) { 64 } else { 32 }, matches!(ty, S32 | S64), has(Shiftamt));
            let flags = width | u64::from(signed) << 8 | u64::from(amount) << 9;
            let form = Form::new(f1!(flags | g, a | find(a, g.0)), U32, &[ty]);
            form.map(|form| form.flagged(Flags(flags)))
        }
        Opcode::Brev => {
            same(if ty == B32 { f1!(|a| (a as u32).reverse_bits() as u64) } else { f1!(|a| a.reverse_bits()) }, 1)
        }
        Opcode::Clz => Form::new(
            if ty == B32 { f1!(|a| (a as u32).leading_zeros() as u64) } else { f1!(|a| a.leading_zeros() as u64) },
            U32,
            &[ty],
        ),
        Opcode::Popc => Form::new(
            if ty == B32 { f1!(|a| (a as u32).count_ones() as u64) } else { f1!(|a| a.count_ones() as u64) },
            U32,
            &[ty],
        ),
        _ => None,
    }
}

/// Any function of three bits, by its truth table.
fn lop3(a: u32, b: u32, c: u32, table: u8) -> u64 {
    let mut result = 0;
    for row in 0..8 {
        if table >> row & 1 == 1 {
            let pick = |value: u32, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
            result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    u64::from(result)
}

/// Byte permutation; `mode` as [`form`] numbers them.
fn permute(a: u64, b: u64, c: u64, mode: u64) -> u64 {
    let all = (b << 32) | (a as u32 as u64);
    let byte = |n: u64| all >> (8 * (n & 7)) & 0xff;
    let n = c & 3;
    let selectors: [u64; 4] = match mode {
        0 => {
            let mut result = 0;
            for i in 0..4 {
                let selector = c >> (4 * i) & 0xf;
                let value = byte(selector);
                let value = if selector & 8 != 0 { if value & 0x80 != 0 { 0xff } else { 0 } } else { value };
                result |= value << (8 * i);
            }
            return result;
        }
        1 => [n, n + 1, n + 2, n + 3],
        2 => [n, n.wrapping_sub(1) & 7, n.wrapping_sub(2) & 7, n.wrapping_sub(3) & 7],
        3 => [n; 4],
        4 => [n, n.max(1), n.max(2), 3],
        5 => [0, n.min(1), n.min(2), n],
        _ => {
            if n & 1 == 0 {
                [0, 1, 0, 1]
            } else {
                [2, 3, 2, 3]
            }
        }
    };
    selectors.iter().enumerate().map(|(i, s)| byte(*s) << (8 * i)).sum()
}

/// Position or length of a bit field: the low 8 bits. The 64-bit forms see all bits, as hardware shows.
fn field(value: u64, width: u32) -> u32 {
    if width == 32 { value as u32 & 0xff } else { (value as u32).min(0xff) }
}

/// `bfe`: bits beyond the top are the sign (or zero).
fn extract(a: u64, b: u64, c: u64, width: u32, signed: bool) -> u64 {
    let (position, length) = (field(b, width), field(c, width));
    let top = width - 1;
    let sign = if !signed || length == 0 { 0 } else { a >> (position + length - 1).min(top) & 1 };
    let mut result = 0;
    for i in 0..width {
        let bit = if i < length && position + i <= top { a >> (position + i) & 1 } else { sign };
        result |= bit << i;
    }
    result
}

/// `bfi`: the low bits of `a` into `b`.
fn insert(a: u64, b: u64, c: u64, d: u64, width: u32) -> u64 {
    let (position, length) = (field(c, width), field(d, width));
    let mut result = b;
    for i in 0..length.min(width) {
        if position + i < width {
            let at = position + i;
            result = result & !(1 << at) | (a >> i & 1) << at;
        }
    }
    result
}

/// `bfind`: position of the top bit that differs from the sign; all ones if there is none.
fn find(a: u64, flags: u64) -> u64 {
    let width = flags as u8 as u32;
    let (signed, amount) = (flags >> 8 & 1 == 1, flags >> 9 & 1 == 1);
    let a = if width == 32 { a as u32 as u64 } else { a };
    let negative = signed && a >> (width - 1) & 1 == 1;
    let value = if negative { if width == 32 { !a as u32 as u64 } else { !a } } else { a };
    if value == 0 {
        return 0xffff_ffff;
    }
    let position = 63 - value.leading_zeros();
    u64::from(if amount { width - 1 - position } else { position })
}

//! Conversion of bytes to floats, four at a time, without the conversion instructions, whose throughput is a sixteenth
//! of that of additions: a byte becomes the last bits of a large float, from which that float is subtracted. Exact.

use rtc_abi::Feature;
use rtc_ir::{Elem, Kernel, Op, OpKind, Scalar, constant_bits, view};

use super::Lowering;
use crate::{
    emit::{Cmpi, Value},
    error::Result,
};

/// 2^23 as `f32`: its last bits count ones.
const SINGLE: i64 = 0x4b00_0000;
/// The same number.
const SINGLE_VALUE: f64 = 8_388_608.0;
/// Sums of it and integers up to this are exact.
const SMALL_INTEGER: f32 = 4_194_304.0;
/// By how much a signed byte grows when its sign bit is flipped.
const SIGN: f64 = 128.0;
/// The upper byte of 2^10 as `f16`, in each byte.
const HALF: i64 = 0x6464_6464;
/// The upper byte of 2^7 as `bf16`, in each byte.
const BRAIN: i64 = 0x4343_4343;

impl<'c> Lowering<'_, 'c> {
    /// Integers to floats.
    pub(super) fn integers_to_floats(&self, op: Op, signed: bool) -> Result<()> {
        let e = self.e;
        let from = self.elem(self.kernel.operand(op, 0))?;
        let target = self.elem(self.kernel.result(op, 0))?;
        let to = self.element(target);
        // Without an instruction for it LLVM goes through f32 and rounds twice, which is wrong if f32 is too short.
        let twice = target == Elem::BF16 && from.bits() >= 32 && !self.target.has(Feature::Bf16Arithmetic);
        let single = |value: Value<'c>| match signed {
            _ if twice => self.wide_integer_to_bf16(value, from.bits(), signed),
            true => e.sitofp(value, to),
            false => e.uitofp(value, to),
        };
        let values = self.operand(op, 0)?;
        let (fours, rest) = match (from, target) {
            (Elem::Num(Scalar::I8), Elem::F32 | Elem::F16 | Elem::BF16) => values.as_chunks::<4>(),
            _ => (&[][..], &values[..]),
        };
        let mut floats: Vec<Value<'c>> =
            fours.iter().flat_map(|four| self.four_bytes_to_floats(*four, target, signed)).collect();
        floats.extend(rest.iter().map(|value| single(*value)));
        self.define(op, floats);
        Ok(())
    }

    /// An integer of 32 or 64 bits as bf16: as f32 cut off, with the last bit set if anything was lost, and then rounded.
    fn wide_integer_to_bf16(&self, value: Value<'c>, bits: u32, signed: bool) -> Value<'c> {
        let e = self.e;
        let sign = if signed { "" } else { "u" };
        let (letters, ty) = if bits == 64 { ("ll", e.ty.i64) } else { ("i", e.ty.i32) };
        let single = e.intrinsic(&format!("llvm.nvvm.{sign}{letters}2f.rz"), &[value], e.ty.f32);
        let back = e.intrinsic(&format!("llvm.nvvm.f2{sign}{letters}.rz"), &[single], ty);
        let lost = e.extui(e.cmpi(Cmpi::Ne, back, value), e.ty.i32);
        e.truncf(e.bitcast(e.ori(e.bitcast(single, e.ty.i32), lost), e.ty.f32), self.element(Elem::BF16))
    }

    /// `subf` of a byte that is cast to f32 and an integer, such as a zero point: both are subtracted from the large float at
    /// once. Exact, so the result is that of the cast and the difference. False if it is another difference.
    pub(super) fn byte_less_integer(&self, op: Op) -> Result<bool> {
        let (e, kernel) = (self.e, self.kernel);
        let difference = view::SubF::at(kernel, op);
        let (lhs, rhs) = (difference.lhs(), difference.rhs());
        let Some(cast) = kernel.def_op(lhs).filter(|cast| kernel.op(*cast).parent == kernel.op(op).parent) else {
            return Ok(false);
        };
        let signed = match kernel.kind(cast) {
            OpKind::SIToFp { to: Elem::F32 } => true,
            OpKind::UIToFp { to: Elem::F32 } => false,
            _ => return Ok(false),
        };
        let Some(bytes) = kernel.value_operand(cast) else { return Ok(false) };
        if self.elem(bytes)? != Elem::Num(Scalar::I8) || !is_small_integer(kernel, rhs) {
            return Ok(false);
        }
        let (bytes, integers) = (self.get(bytes)?, self.get(rhs)?);
        let (fours, []) = bytes.as_chunks::<4>() else { return Ok(false) };
        let more = e.float(e.ty.f32, SINGLE_VALUE + if signed { SIGN } else { 0.0 });
        let large = fours.iter().flat_map(|four| self.bytes_in_large_floats(self.byte_word(four, signed)));
        let less = |(large, integer): (Value<'c>, &Value<'c>)| e.subf(large, e.addf(*integer, more, false), false);
        self.define(op, large.zip(integers.iter()).map(less).collect());
        Ok(true)
    }

    /// Four bytes as a word; with `signed` each is 128 more than it was.
    fn byte_word(&self, bytes: &[Value<'c>; 4], signed: bool) -> Value<'c> {
        let e = self.e;
        let word = e.bitcast(e.pack(bytes), e.ty.i32);
        if signed { e.xori(word, e.int(e.ty.i32, 0x8080_8080)) } else { word }
    }

    /// The bytes of a word as the last bits of 2^23.
    fn bytes_in_large_floats(&self, word: Value<'c>) -> [Value<'c>; 4] {
        let e = self.e;
        [0, 1, 2, 3].map(|number| {
            let operands = [word, e.int(e.ty.i32, SINGLE), e.int(e.ty.i32, 0x7650 + number)];
            e.bitcast(e.intrinsic("llvm.nvvm.prmt", &operands, e.ty.i32), e.ty.f32)
        })
    }

    fn four_bytes_to_floats(&self, bytes: [Value<'c>; 4], to: Elem, signed: bool) -> Vec<Value<'c>> {
        let e = self.e;
        let int = |bits: i64| e.int(e.ty.i32, bits);
        let pick = |low: Value<'c>, high: Value<'c>, selector: i64| {
            e.intrinsic("llvm.nvvm.prmt", &[low, high, int(selector)], e.ty.i32)
        };
        if to == Elem::BF16 && signed && self.target.has(Feature::Bf16Arithmetic) {
            let word = e.bitcast(e.pack(&bytes), e.ty.i32);
            // 2^7 and the seven low bits, from which 2^7 is subtracted, or 2^8 where the sign bit makes that of it.
            let pair = |selector: i64| {
                let both = pick(word, int(BRAIN), selector);
                let [low, sign] = [0xff7f_ff7f_u32, 0xff80_ff80].map(|mask| {
                    let mask = int(i64::from(mask as i32));
                    e.bitcast(e.andi(both, mask), e.vector_type(2, e.ty.bf16))
                });
                e.unpack(e.subf(low, sign, false), 2, e.ty.bf16)
            };
            return [pair(0x4140), pair(0x4342)].concat();
        }
        let (word, bias) = (self.byte_word(&bytes, signed), if signed { SIGN } else { 0.0 });
        if to == Elem::F16 {
            let pair = |selector: i64| {
                let halves = e.bitcast(pick(word, int(HALF), selector), e.vector_type(2, e.ty.f16));
                let beside = e.float(e.ty.f16, 1024.0 + bias);
                e.unpack(e.subf(halves, e.pack(&[beside, beside]), false), 2, e.ty.f16)
            };
            return [pair(0x4140), pair(0x4342)].concat();
        }
        let less = e.float(e.ty.f32, SINGLE_VALUE + bias);
        let singles = self.bytes_in_large_floats(word).map(|large| e.subf(large, less, false));
        if to == Elem::F32 {
            return singles.to_vec();
        }
        // A byte has no more bits than a bf16: its lower half is zero.
        let pair = |low: Value<'c>, high: Value<'c>| {
            let [low, high] = [low, high].map(|float| e.bitcast(float, e.ty.i32));
            e.unpack(e.bitcast(pick(low, high, 0x7632), e.vector_type(2, e.ty.bf16)), 2, e.ty.bf16)
        };
        [pair(singles[0], singles[1]), pair(singles[2], singles[3])].concat()
    }
}

/// Whether all elements are integers small enough that sums with 2^23 are exact.
fn is_small_integer(kernel: &Kernel, value: rtc_ir::Value) -> bool {
    if let Some(bits) = constant_bits(kernel, value) {
        let number = f32::from_bits(bits as u32);
        return number.fract() == 0.0 && number.abs() <= SMALL_INTEGER;
    }
    let Some(made) = kernel.def_op(kernel.source(value)) else { return false };
    let is_cast = matches!(kernel.kind(made), OpKind::SIToFp { .. } | OpKind::UIToFp { .. });
    let from = kernel.value_operand(made).filter(|_| is_cast).and_then(|value| kernel.value_type(value).elem());
    from.is_some_and(|elem| elem.bits() <= 16)
}

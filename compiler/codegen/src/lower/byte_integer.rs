//! Conversion of bytes to floats, four at a time, without the conversion instructions, whose throughput is a sixteenth
//! of that of additions: a byte becomes the last bits of a large float, from which that float is subtracted. Exact.

use rtc_abi::Feature;
use rtc_ir::{Elem, Op, Scalar};

use super::Lowering;
use crate::{
    emit::{Cmpi, Value},
    error::Result,
};

/// 2^23 as `f32`: its last bits count ones.
const SINGLE: i64 = 0x4b00_0000;
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
        // With the sign bit flipped, a signed byte is 128 more than before.
        let word = e.bitcast(e.pack(&bytes), e.ty.i32);
        let (word, bias) = if signed { (e.xori(word, int(0x8080_8080)), 128.0) } else { (word, 0.0) };
        if to == Elem::F16 {
            let pair = |selector: i64| {
                let halves = e.bitcast(pick(word, int(HALF), selector), e.vector_type(2, e.ty.f16));
                let beside = e.float(e.ty.f16, 1024.0 + bias);
                e.unpack(e.subf(halves, e.pack(&[beside, beside]), false), 2, e.ty.f16)
            };
            return [pair(0x4140), pair(0x4342)].concat();
        }
        let singles = [0, 1, 2, 3].map(|number| {
            let float = e.bitcast(pick(word, int(SINGLE), 0x7650 + number), e.ty.f32);
            e.subf(float, e.float(e.ty.f32, 8_388_608.0 + bias), false)
        });
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

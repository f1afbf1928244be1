//! Bitwise operations on bytes that lie together in registers, and their extension to 16 bits in pairs, which takes one
//! instruction: weights of four bits lie two in a byte. LLVM takes each byte out of its word for that, and puts the results
//! together again.

use rtc_ir::{Elem, Op, OpKind, Scalar, constant_bits};

use super::Lowering;
use crate::{emit::Value, error::Result};

impl<'c> Lowering<'_, 'c> {
    /// An operation on bytes whose bits depend on the same bits of the operands alone. False if the operands are no bytes, or do
    /// not lie together.
    pub(super) fn bitwise_on_bytes(&self, op: Op, compute: impl Fn(Value<'c>, Value<'c>) -> Value<'c>) -> Result<bool> {
        let Some([left, right]) = self.kernel.sides(op) else { return Ok(false) };
        let left = self.get(left)?;
        let Some(count) = self.bytes_of_a_word(op, &left)? else { return Ok(false) };
        let [left, right] = [left, self.get(right)?].map(|bytes| self.words_of_bytes(&bytes, count));
        let words = left.iter().zip(&right).map(|(left, right)| compute(*left, *right));
        self.define(op, self.bytes_of_words(words, count));
        Ok(true)
    }

    /// A shift of bytes to the right by the same constant. False if it is another one.
    pub(super) fn shift_of_bytes(&self, op: Op) -> Result<bool> {
        let Some([shifted, by]) = self.kernel.sides(op) else { return Ok(false) };
        let (e, bytes) = (self.e, self.get(shifted)?);
        let by = constant_bits(self.kernel, by).filter(|by| *by < 8);
        let (Some(by), Some(count)) = (by, self.bytes_of_a_word(op, &bytes)?) else { return Ok(false) };
        let ty = e.integer_type(8 * count as u32);
        let mask = u32::from(0xff_u8 >> by) * 0x0101_0101;
        let mask = e.int(ty, if count == 4 { i64::from(mask as i32) } else { i64::from(mask as i16) });
        let words = self.words_of_bytes(&bytes, count);
        let shifted = words.iter().map(|word| e.andi(e.shrui(*word, e.int(ty, by as i64)), mask));
        self.define(op, self.bytes_of_words(shifted, count));
        Ok(true)
    }

    /// The extension of bytes without a sign to 16 bits. False if it is another one, or they do not lie in pairs.
    pub(super) fn bytes_to_halfwords(&self, op: Op) -> Result<bool> {
        let (e, kernel) = (self.e, self.kernel);
        let is_so = matches!(kernel.kind(op), OpKind::ExtUI { to: Elem::Num(Scalar::I16) });
        let Some(bytes) = kernel.value_operand(op).filter(|_| is_so) else { return Ok(false) };
        if self.elem(bytes)? != Elem::Num(Scalar::I8) {
            return Ok(false);
        }
        let Some(words) = self.halfwords(bytes)? else { return Ok(false) };
        let ty = e.vector_type(2, e.ty.i16);
        self.define(op, words.into_iter().flat_map(|word| e.unpack(e.bitcast(word, ty), 2, e.ty.i16)).collect());
        Ok(true)
    }

    /// Bytes as words of two halfwords, if they lie in pairs. What is computed of them is computed of the words: those of the
    /// lower and of the upper four bits are then extended once.
    fn halfwords(&self, value: rtc_ir::Value) -> Result<Option<Vec<Value<'c>>>> {
        let (e, kernel) = (self.e, self.kernel);
        let both = |bits: u32| e.int(e.ty.i32, i64::from(bits * 0x0001_0001));
        let made = kernel.def_op(value).filter(|op| matches!(kernel.kind(*op), OpKind::AndI {} | OpKind::ShrUI {}));
        if let Some(op) = made
            && let Some([of, by]) = kernel.sides(op)
            && let Some(by) = constant_bits(kernel, by).map(|bits| bits as u32 & 0xff)
        {
            let Some(words) = self.halfwords(of)? else { return Ok(None) };
            let computed = words.into_iter().map(|word| match kernel.kind(op) {
                OpKind::AndI {} => e.andi(word, both(by)),
                _ => e.andi(e.shrui(word, e.i32(by.min(8) as i32)), both(0xff_u32.checked_shr(by).unwrap_or(0))),
            });
            return Ok(Some(computed.collect()));
        }
        let bytes = self.get(value)?;
        let Some(count) = together(self, &bytes) else { return Ok(None) };
        // Two bytes of the word, each below a zero.
        let pair = |word: Value<'c>, selector: i64| {
            e.intrinsic("llvm.nvvm.prmt", &[word, e.i32(0), e.int(e.ty.i32, selector)], e.ty.i32)
        };
        let words = self.words_of_bytes(&bytes, count).into_iter().flat_map(|word| match count {
            2 => vec![pair(e.extui(word, e.ty.i32), 0x4140)],
            _ => vec![pair(word, 0x4140), pair(word, 0x4342)],
        });
        Ok(Some(words.collect()))
    }

    /// How many of the bytes that an operation takes and gives lie together.
    fn bytes_of_a_word(&self, op: Op, bytes: &[Value<'c>]) -> Result<Option<usize>> {
        let is_byte = self.elem(self.kernel.result(op, 0))? == Elem::Num(Scalar::I8);
        Ok(if is_byte { together(self, bytes) } else { None })
    }

    fn words_of_bytes(&self, bytes: &[Value<'c>], count: usize) -> Vec<Value<'c>> {
        let e = self.e;
        let ty = e.integer_type(8 * count as u32);
        bytes.chunks_exact(count).map(|bytes| e.bitcast(e.pack(bytes), ty)).collect()
    }

    fn bytes_of_words(&self, words: impl Iterator<Item = Value<'c>>, count: usize) -> Vec<Value<'c>> {
        let e = self.e;
        let ty = e.vector_type(count as u32, e.ty.i8);
        words.flat_map(|word| e.unpack(e.bitcast(word, ty), count as u32, e.ty.i8)).collect()
    }
}

/// Four if the bytes are the elements of vectors of four, else two if they are those of pairs.
fn together<'c>(lowering: &Lowering<'_, 'c>, bytes: &[Value<'c>]) -> Option<usize> {
    let are_vectors = |count: &usize| {
        !bytes.is_empty()
            && bytes.len().is_multiple_of(*count)
            && bytes.chunks(*count).all(|bytes| lowering.e.is_vector(bytes))
    };
    [4, 2].into_iter().find(are_vectors)
}

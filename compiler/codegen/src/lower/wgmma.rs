//! Dots by `wgmma`, operands in shared memory.

use rtc_ir::{Elem, MmaForm, Op, Scalar, constant_bits, view};
use rtc_layout::MatrixDescriptor;

use super::{Lowering, memory::Words};
use crate::{
    emit::{FirstDot, Value, WgmmaDescriptor, WgmmaOperand, WgmmaProduct, WgmmaShape},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    /// `mma`: all dots in one statement that also waits for them.
    pub(super) fn mma(&self, op: Op) -> Result<()> {
        let acc = view::Mma::at(self.kernel, op).acc();
        let accs = self.start_mmas(op, &self.sum_words(acc)?, Some(0))?;
        self.define(op, self.from_sum_words(acc, &accs)?);
        Ok(())
    }

    /// `mma_async`: all dots in one statement that does not wait for them.
    pub(super) fn mma_async(&self, op: Op) -> Result<()> {
        let accs = self.start_mmas(op, &self.get(view::MmaAsync::at(self.kernel, op).acc())?, None)?;
        self.define(op, accs);
        Ok(())
    }

    /// `mma_wait`: later uses of the accumulators use its results.
    pub(super) fn mma_wait(&self, op: Op, pending: u32) -> Result<()> {
        let mut all = Vec::new();
        for value in self.kernel.variadic(op) {
            all.extend_from_slice(&self.get(*value)?);
        }
        let mut complete = self.e.wgmma_wait(pending, &all);
        for (value, result) in self.kernel.variadic(op).iter().zip(&self.kernel.op(op).results) {
            let rest = complete.split_off(self.register_count(*value)?.min(complete.len()));
            self.set(*result, std::mem::replace(&mut complete, rest));
        }
        Ok(())
    }

    /// The dots of an operation in one statement; `sums` and the results are registers of 32 bits.
    fn start_mmas(&self, op: Op, accs: &[Value<'c>], wait: Option<u32>) -> Result<Vec<Value<'c>>> {
        let form = MmaForm::of(self.kernel, op).map_err(CodegenError::lowering)?;
        let missing = || CodegenError::lowering("`wgmma` of no dot");
        let operands @ [lhs, rhs, acc] = self.kernel.dot_operands(op).ok_or_else(missing)?;
        let shape = self.wgmma_shape(&form, operands)?;
        let [groups_m, groups_n] = [form.warps[0] / 4, form.warps[1]];
        let in_registers = form.lhs.is_none().then(|| self.operand_words(lhs)).transpose()?;
        let lhs = match form.lhs {
            Some(piece) => Some((piece, self.descriptor(lhs, &piece, (64, groups_m), 4)?)),
            None => None,
        };
        let rhs = self.descriptor(rhs, &form.rhs, (form.n, groups_n), form.warps[0])?;
        let mut mmas = Vec::new();
        for step in 0..form.steps {
            for m in 0..form.repeats[0] {
                let a = match (&lhs, &in_registers) {
                    (Some((form_of, base)), _) => {
                        WgmmaOperand::Shared(behind(*base, form_of.start(64 * groups_m * m, step * form.k)))
                    }
                    (None, Some(words)) => {
                        let at = 4 * (m * form.steps + step) as usize;
                        WgmmaOperand::Registers([words[at], words[at + 1], words[at + 2], words[at + 3]])
                    }
                    (None, None) => return Err(CodegenError::lowering("a dot without a left operand")),
                };
                for n in 0..form.repeats[1] {
                    let b = behind(rhs, form.rhs.start(form.n * groups_n * n, step * form.k));
                    mmas.push(WgmmaProduct { accumulator: (m * form.repeats[1] + n) as usize, a, b });
                }
            }
        }
        Ok(self.e.wgmma(&shape, &mmas, accs, self.first_dot(op, acc)?, wait))
    }

    /// What the first of the dots of an operation does with the accumulator.
    fn first_dot(&self, op: Op, acc: rtc_ir::Value) -> Result<FirstDot<'c>> {
        if constant_bits(self.kernel, acc) == Some(0) {
            return Ok(FirstDot::Overwrites);
        }
        let flag = self.kernel.use_acc(op).map(|flag| self.scalar(flag)).transpose()?;
        Ok(flag.map_or(FirstDot::Adds, FirstDot::AddsIf))
    }

    fn wgmma_shape(&self, form: &MmaForm, [lhs, rhs, acc]: [rtc_ir::Value; 3]) -> Result<WgmmaShape> {
        let [a, b, c] = [self.elem(lhs)?, self.elem(rhs)?, self.elem(acc)?];
        let name = |elem: Elem, is_sum: bool| match elem {
            Elem::Num(Scalar::F16) => Some("f16"),
            Elem::Num(Scalar::BF16) => Some("bf16"),
            Elem::Num(Scalar::F32) => Some(if is_sum { "f32" } else { "tf32" }),
            Elem::Num(Scalar::F8E4) => Some("e4m3"),
            Elem::Num(Scalar::F8E5) => Some("e5m2"),
            Elem::Num(Scalar::I8) => Some("s8"),
            Elem::Num(Scalar::I32) => Some("s32"),
            _ => None,
        };
        let (Some(d), Some(ta), Some(tb)) = (name(c, true), name(a, false), name(b, false)) else {
            return Err(CodegenError::lowering(format!("`wgmma` of {a} and {b} into {c}")));
        };
        let transposed = [form.lhs.is_some_and(|lhs| lhs.transposed), form.rhs.transposed];
        Ok(WgmmaShape { n: form.n, k: form.k, types: [d, ta, tb], transposed })
    }

    /// The matrix descriptor of the first piece of the thread's warp group. Of the `groups` pieces, `size` long,
    /// consecutive ones belong to warps `warps` apart.
    fn descriptor(
        &self,
        buffer: rtc_ir::Value,
        form: &MatrixDescriptor,
        (size, groups): (u32, u32),
        warps: u32,
    ) -> Result<Value<'c>> {
        let e = self.e;
        let address = e.ptrtoint(self.scalar(buffer)?, e.ty.i32);
        let mut place = e.andi(e.shrui(address, e.i32(4)), e.i32(0x3fff));
        for bit in 0..groups.trailing_zeros() {
            let number = e.andi(e.shrui(self.warp(), e.i32((warps.trailing_zeros() + bit) as i32)), e.i32(1));
            place = e.addi(place, e.muli(number, e.i32((form.start(size << bit, 0) >> 4) as i32)));
        }
        Ok(e.ori(e.extui(place, e.ty.i64), e.i64(form.fields() as i64)))
    }

    /// An operand in registers, in words of 32 bits.
    fn operand_words(&self, value: rtc_ir::Value) -> Result<Vec<Value<'c>>> {
        let elem = self.elem(value)?;
        let registers = self.get(value)?;
        let count = 32 / elem.bits();
        let words = Words { bits: 32, count: registers.len() as u32 / count };
        Ok(self.to_words(elem, &registers, words))
    }

    /// The registers of an accumulator as instructions take them: pairs of halves are one.
    fn sum_words(&self, value: rtc_ir::Value) -> Result<Vec<Value<'c>>> {
        let registers = self.get(value)?;
        Ok(match self.elem(value)? {
            Elem::Num(Scalar::F16) => self.operand_words(value)?,
            _ => registers.to_vec(),
        })
    }

    /// The inverse of [`Lowering::sum_words`].
    fn from_sum_words(&self, value: rtc_ir::Value, words: &[Value<'c>]) -> Result<Vec<Value<'c>>> {
        let e = self.e;
        Ok(match self.elem(value)? {
            Elem::Num(Scalar::F16) => {
                let pair = e.vector_type(2, e.ty.f16);
                words.iter().flat_map(|word| e.unpack(e.bitcast(*word, pair), 2, e.ty.f16)).collect()
            }
            _ => words.to_vec(),
        })
    }
}

/// A descriptor of the data so many bytes behind another one.
fn behind(start: Value<'_>, bytes: u32) -> WgmmaDescriptor<'_> {
    WgmmaDescriptor { start, behind: bytes >> 4 }
}

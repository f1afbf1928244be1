//! What reductions and scans share: several operands are combined together, as a [`Tuple`] with one value of each, by
//! the operation's nested block, which is lowered in place each time.

use rtc_ir::{Block, OpKind, Traits};

use super::Lowering;
use crate::{
    emit::Value,
    error::{CodegenError, Result},
};

/// One value of each operand.
pub(super) type Tuple<'c> = Vec<Value<'c>>;

impl<'c> Lowering<'_, 'c> {
    /// The registers of several tiles, as one tuple per register.
    pub(super) fn tuples(&self, operands: &[rtc_ir::Value]) -> Result<Vec<Tuple<'c>>> {
        let lists: Vec<_> = operands.iter().map(|operand| self.get(*operand)).collect::<Result<_>>()?;
        Ok((0..lists[0].len()).map(|register| lists.iter().map(|list| list[register]).collect()).collect())
    }

    pub(super) fn fold<'t>(&self, combine: Block, tuples: impl IntoIterator<Item = &'t Tuple<'c>>) -> Result<Tuple<'c>>
    where
        'c: 't,
    {
        let mut tuples = tuples.into_iter();
        let first = tuples.next().cloned().ok_or_else(|| CodegenError::lowering("a reduction of nothing"))?;
        tuples.try_fold(first, |sum, next| self.combine(combine, &sum, next))
    }

    /// Lowers the nested block on two tuples.
    pub(super) fn combine(&self, block: Block, lhs: &Tuple<'c>, rhs: &Tuple<'c>) -> Result<Tuple<'c>> {
        for (argument, value) in self.kernel.block(block).args.iter().zip(lhs.iter().chain(rhs)) {
            self.set(*argument, vec![*value]);
        }
        Ok(self.block(block)?.iter().map(|registers| registers[0]).collect())
    }

    /// Whether a block gives the same bits when its two tuples are exchanged, as far as its operations tell: all of
    /// them commute, compare or choose.
    pub(super) fn is_symmetric(&self, block: Block) -> bool {
        self.kernel.block(block).ops.iter().all(|op| {
            let kind = &self.kernel.op(*op).kind;
            let traits = kind.spec().traits;
            traits.has(Traits::COMMUTATIVE)
                || traits.has(Traits::TERMINATOR)
                || matches!(
                    kind,
                    OpKind::CmpI { .. } | OpKind::CmpF { .. } | OpKind::Select {} | OpKind::Constant { .. }
                )
        })
    }

    pub(super) fn select_tuple(&self, condition: Value<'c>, a: &Tuple<'c>, b: &Tuple<'c>) -> Tuple<'c> {
        a.iter().zip(b).map(|(a, b)| self.e.select(condition, *a, *b)).collect()
    }

    pub(super) fn lane_bit_clear(&self, bit: u32) -> Value<'c> {
        self.thread_bits_clear(bit).unwrap_or_else(|| self.e.bool(true))
    }

    pub(super) fn lane_bit_set(&self, bit: u32) -> Value<'c> {
        self.e.xori(self.lane_bit_clear(bit), self.e.bool(true))
    }
}

//! Common parts of reductions, scans and element-wise functions: several operands are combined together, as a [`Tuple`]
//! with one value of each, by the operation's nested block, which is inlined each time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rtc_ir::{Block, Op, Traits};

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
        self.apply(block, lhs.iter().chain(rhs))
    }

    /// Lowers the nested block on one value for each of its arguments.
    fn apply<'t>(&self, block: Block, values: impl Iterator<Item = &'t Value<'c>>) -> Result<Tuple<'c>>
    where
        'c: 't,
    {
        for (argument, value) in self.kernel.block(block).args.iter().zip(values) {
            self.set(*argument, vec![*value]);
        }
        Ok(self.block(block)?.iter().map(|registers| registers[0]).collect())
    }

    /// `map_elements`: the nested block on each register. Threads go their own ways where it branches.
    pub(super) fn map_elements(&self, op: Op) -> Result<()> {
        let data = self.kernel.op(op);
        let mut columns = vec![Vec::new(); data.results.len()];
        for tuple in self.tuples(self.kernel.variadic(op))? {
            let mapped = self.apply(data.blocks[0], tuple.iter())?;
            columns.iter_mut().zip(mapped).for_each(|(column, value)| column.push(value));
        }
        for (result, column) in data.results.iter().zip(columns) {
            self.set(*result, column);
        }
        Ok(())
    }

    /// Whether a block gives the same bits when its two tuples are exchanged, as far as its structure shows: after the
    /// exchange, and with the operands of commutative operations in one order, it is the same.
    pub(super) fn is_symmetric(&self, block: Block) -> bool {
        let args = &self.kernel.block(block).args;
        let (lhs, rhs) = args.split_at(args.len() / 2);
        let exchanged: Vec<rtc_ir::Value> = rhs.iter().chain(lhs).copied().collect();
        self.form(block, args).is_some_and(|form| Some(form) == self.form(block, &exchanged))
    }

    /// A number for what the block yields, with its arguments named by their places in `names`; none for blocks with
    /// control flow.
    fn form(&self, block: Block, names: &[rtc_ir::Value]) -> Option<u64> {
        let hash = |parts: (&str, &[u64])| {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            hasher.finish()
        };
        let mut forms: HashMap<rtc_ir::Value, u64> = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            forms.insert(*name, hash(("argument", &[place as u64])));
        }
        let mut last = 0;
        for op in self.kernel.ops(block) {
            let op = self.kernel.op(op);
            if !op.blocks.is_empty() {
                return None;
            }
            let outside = |value: &rtc_ir::Value| hash((&format!("{value:?}"), &[]));
            let mut operands: Vec<u64> =
                op.operands.iter().map(|v| forms.get(v).copied().unwrap_or_else(|| outside(v))).collect();
            if op.kind.spec().traits.has(Traits::COMMUTATIVE) {
                operands.sort_unstable();
            }
            last = hash((&format!("{:?}", op.kind), &operands));
            for (number, result) in op.results.iter().enumerate() {
                forms.insert(*result, hash(("result", &[last, number as u64])));
            }
        }
        Some(last)
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

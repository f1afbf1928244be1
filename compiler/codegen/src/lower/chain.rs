//! Chains of element-wise operations on tiles of many registers, a few registers at a time.
//!
//! Lowering one operation after the other, each for all registers, keeps every intermediate result of every element
//! live at the same time: the random numbers of 128 elements are 512 registers between two rounds. NVIDIA's assembler
//! reorders a short chain, but not a long one (a kernel that draws 128 numbers per thread spilled 27 KB and took half a
//! minute to assemble). So the whole chain is emitted for the first registers, then for the next ones.

use rtc_ir::{HintKind, Op, OpKind, Traits, Type, Value};

use super::Lowering;
use crate::error::Result;

/// How many registers are taken at a time: enough for the latency of arithmetic, and whole groups of elements of a byte.
const PIECE: usize = 8;
/// Tiles of fewer registers are lowered operation by operation.
const FEWEST: usize = 16;
/// So are chains of fewer instructions than this.
const SHORTEST: usize = 1024;

/// The operations of a chain.
pub(super) struct Chain {
    /// How many operations of the block it spans.
    pub len: usize,
    /// Its other operands: scalars, constants, indices.
    first: Vec<Op>,
    /// The operations on each element.
    each: Vec<Op>,
    registers: usize,
}

impl Chain {
    /// Whether it is long enough to be lowered in pieces.
    pub fn is_long(&self) -> bool {
        self.registers * self.each.len() >= SHORTEST
    }
}

impl Lowering<'_, '_> {
    /// The chain that begins with the first of the operations, if that is one on each element of a large tile.
    pub(super) fn chain(&self, ops: &[Op]) -> Result<Option<Chain>> {
        let (mut first, mut each) = (Vec::new(), Vec::new());
        let registers = match ops.first() {
            Some(op) if self.is_on_each(*op) => self.register_count(self.kernel.result(*op, 0))?,
            _ => return Ok(None),
        };
        if registers < FEWEST {
            return Ok(None);
        }
        for op in ops {
            let data = self.kernel.op(*op);
            let has_tile =
                |values: &[Value]| values.iter().any(|v| matches!(self.kernel.value_type(*v), Type::Tile(_)));
            match &data.kind {
                OpKind::Constant { .. } | OpKind::Splat {} | OpKind::Arange { .. } => first.push(*op),
                _ if !self.is_on_each(*op) => break,
                _ if !has_tile(&data.results) && !has_tile(&data.operands) => first.push(*op),
                _ => {
                    for value in data.operands.iter().chain(&data.results) {
                        if self.register_count(*value)? != registers {
                            return Ok(Some(Chain { len: first.len() + each.len(), first, each, registers }));
                        }
                    }
                    each.push(*op);
                }
            }
        }
        Ok(Some(Chain { len: first.len() + each.len(), first, each, registers }))
    }

    /// Whether an operation takes each register of its operands to the same one of its result, and nothing else.
    fn is_on_each(&self, op: Op) -> bool {
        let data = self.kernel.op(op);
        let by_layout = matches!(
            data.kind,
            OpKind::Hint { kind: HintKind::MaxConstancy, .. } | OpKind::ExternCall { .. } | OpKind::MapElements {}
        );
        data.kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) && data.results.len() == 1 && !by_layout
    }

    /// Lowers a chain in pieces.
    pub(super) fn in_pieces(&self, chain: &Chain) -> Result<()> {
        for op in &chain.first {
            self.at_its_line(*op)?;
        }
        for start in (0..chain.registers).step_by(PIECE) {
            self.piece.replace(Some(start..start + PIECE));
            let lowered = chain.each.iter().try_for_each(|op| self.at_its_line(*op));
            self.piece.take();
            lowered?;
        }
        Ok(())
    }

    /// The registers of a piece of a tile.
    pub(super) fn piece_of<'v, T>(&self, registers: &'v [T]) -> &'v [T] {
        self.piece.borrow().as_ref().map_or(registers, |piece| &registers[piece.clone()])
    }
}

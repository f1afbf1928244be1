//! Reductions, scans, and functions of each element.
//!
//! The nested block is run on all rows at once where it holds element-wise operations only, else row by row.

use super::elementwise::is_flat;
use super::machine::{Machine, Stop};
use super::shape::around;
use super::value::Data;
use crate::{Block, Op};

/// One list per operand.
type Columns = Vec<Vec<u64>>;

/// In which order elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As this file says.
    Usual,
    /// Neighbours first.
    Neighbours,
    /// As usual, with the operands exchanged where they may be.
    Exchanged,
}

impl Machine<'_> {
    /// `reduce`: element `i` with element `i + n/2`, then the same for `n/2` elements, until one is left.
    pub(crate) fn reduce(&mut self, op: Op, axis: usize) -> Result<(), Stop> {
        self.reduce_in(op, axis, Order::Usual)
    }

    /// `reduce` in some order.
    pub(super) fn reduce_in(&mut self, op: Op, axis: usize, order: Order) -> Result<(), Stop> {
        let (mut tiles, (before, size, after)) = self.columns(op, axis)?;
        let block = self.kernel.op(op).blocks[0];
        let mut size = size;
        while size > 1 {
            let half = size / 2;
            let part = |tile: &[u64], upper: usize| {
                let mut out = Vec::with_capacity(before * half * after);
                for row in (0..before).map(|row| row * size) {
                    if order == Order::Neighbours {
                        (0..half).for_each(|i| out.extend_from_slice(&tile[(row + 2 * i + upper) * after..][..after]));
                    } else {
                        out.extend_from_slice(&tile[(row + upper * half) * after..][..half * after]);
                    }
                }
                out
            };
            let sides = if order == Order::Exchanged { [1, 0] } else { [0, 1] };
            let [left, right] = sides.map(|side| tiles.iter().map(|t| part(t, side)).collect());
            tiles = self.apply(block, pairs(left, right))?;
            size = half;
        }
        self.set_tiles(op, tiles);
        Ok(())
    }

    /// `scan`: one after the other, from the high end if `reverse`.
    pub(crate) fn scan(&mut self, op: Op, axis: usize, reverse: bool) -> Result<(), Stop> {
        self.scan_in(op, axis, reverse, Order::Usual)
    }

    /// `scan` in some order: if not the usual one, each element with the one before it, then with what those two, four, and so
    /// on before it have become.
    pub(super) fn scan_in(&mut self, op: Op, axis: usize, reverse: bool, order: Order) -> Result<(), Stop> {
        let (mut tiles, (before, size, after)) = self.columns(op, axis)?;
        let block = self.kernel.op(op).blocks[0];
        let index = |row: usize, i: usize, column: usize| {
            (row * size + if reverse { size - 1 - i } else { i }) * after + column
        };
        let slice = |tile: &[u64], i: usize| -> Vec<u64> {
            (0..before)
                .flat_map(|row| (0..after).map(move |column| (row, column)))
                .map(|(row, column)| tile[index(row, i, column)])
                .collect()
        };
        let mut distance = 1;
        while distance < size {
            let source = if order == Order::Usual { None } else { Some(tiles.clone()) };
            for i in distance..size {
                let left = source.as_ref().unwrap_or(&tiles).iter().map(|t| slice(t, i - distance)).collect();
                let right = source.as_ref().unwrap_or(&tiles).iter().map(|t| slice(t, i)).collect();
                let sums = self.apply(block, pairs(left, right))?;
                for (tile, sum) in tiles.iter_mut().zip(&sums) {
                    for (k, bits) in sum.iter().enumerate() {
                        tile[index(k / after, i, k % after)] = *bits;
                    }
                }
            }
            distance = if order == Order::Usual { size } else { 2 * distance };
        }
        self.set_tiles(op, tiles);
        Ok(())
    }

    /// `map_elements`: slot by slot, wherever the slots are.
    pub(crate) fn map_elements(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let operands = kernel.variadic(op);
        let count = self.slots(kernel.value_type(operands[0]));
        self.tick(count)?;
        let mut columns = Vec::new();
        for operand in operands {
            let data = self.get(*operand);
            columns.push((0..count).map(|i| data.slot(i)).collect());
        }
        let mapped = self.apply(kernel.op(op).blocks[0], columns)?;
        for (result, column) in kernel.op(op).results.iter().zip(mapped) {
            self.set(*result, Data::many(column));
        }
        Ok(())
    }

    fn columns(&mut self, op: Op, axis: usize) -> Result<(Columns, (usize, usize, usize)), Stop> {
        let kernel = self.kernel;
        let operands = kernel.variadic(op);
        let mut tiles = Vec::new();
        for operand in operands {
            tiles.push(self.elements(*operand)?.to_vec());
        }
        self.tick(tiles.first().map_or(1, Vec::len))?;
        Ok((tiles, around(kernel.value_type(operands[0]), axis)))
    }

    fn set_tiles(&mut self, op: Op, tiles: Columns) {
        let kernel = self.kernel;
        for (result, tile) in kernel.op(op).results.iter().zip(tiles) {
            let placed = self.place(kernel.value_type(*result), tile);
            self.set(*result, placed);
        }
    }

    /// The nested block on each row of its arguments.
    fn apply(&mut self, block: Block, columns: Columns) -> Result<Columns, Stop> {
        let kernel = self.kernel;
        let args = &kernel.block(block).args;
        let count = columns[0].len();
        if is_flat(kernel, block) {
            for (arg, column) in args.iter().zip(columns) {
                self.set(*arg, Data::many(column));
            }
            let yielded = self.evaluate(block)?;
            let column = |v: &crate::Value| {
                let data = self.get(*v);
                (0..count).map(|i| data.slot(i)).collect()
            };
            return Ok(yielded.iter().map(column).collect());
        }
        let width = kernel.terminator(block).map_or(0, |end| kernel.variadic(end).len());
        let mut out: Columns = vec![Vec::with_capacity(count); width];
        for i in 0..count {
            for (arg, column) in args.iter().zip(&columns) {
                self.set(*arg, Data::Scalar(column[i]));
            }
            let yielded = self.evaluate(block)?;
            for (column, value) in out.iter_mut().zip(yielded) {
                column.push(self.scalar(*value));
            }
        }
        Ok(out)
    }
}

/// The arguments of a combine block: all left values, then all right ones.
fn pairs(mut lower: Columns, upper: Columns) -> Columns {
    lower.extend(upper);
    lower
}

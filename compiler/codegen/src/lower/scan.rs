//! Inclusive scans.
//!
//! The coordinate along the axis is made of register bits, then lanes, then warps, then again registers (chunks). Each
//! thread scans its low registers; the totals are scanned between lanes; the totals of warps and chunks go through
//! scratch memory, and each thread sums up those before its own.

use rtc_ir::{Block, Op, part_bytes};
use rtc_layout::{Coord, InputBit, Layout};

use super::{Lowering, combine::Tuple, place::Spot};
use crate::{
    emit::{Cmpi, ShuffleKind, Value},
    error::{CodegenError, Result},
};

/// How a scan walks along its axis; see [`Lowering::scan`].
struct Walk {
    /// Register bits below the lanes, lowest first.
    low: Vec<u32>,
    /// Lane bits.
    lanes: Vec<u32>,
    /// Warp bits.
    warps: Vec<u32>,
    /// Register bits above the warps: chunks that follow each other.
    high: Vec<u32>,
    /// The registers at the start of each row.
    rows: Vec<u32>,
    reverse: bool,
}

impl Walk {
    fn new(layout: &Layout, axis: usize, reverse: bool) -> Option<Walk> {
        if !layout.is_scan_order(axis) {
            return None;
        }
        let mut walk = Walk { low: vec![], lanes: vec![], warps: vec![], high: vec![], rows: vec![], reverse };
        for bit in layout.axis_bits(axis)? {
            match bit {
                InputBit::Register(i) if walk.lanes.is_empty() && walk.warps.is_empty() => walk.low.push(i),
                InputBit::Register(i) => walk.high.push(i),
                InputBit::Lane(i) => walk.lanes.push(i),
                InputBit::Warp(i) => walk.warps.push(i),
                InputBit::Block(_) => return None,
            }
        }
        let along = walk.low.iter().chain(&walk.high).fold(0, |all, bit| all | 1 << bit);
        walk.rows = (0..layout.registers()).filter(|register| register & along == 0).collect();
        Some(walk)
    }

    /// The numbers below `1 << bits`, in the order of the walk.
    fn steps(&self, bits: &[u32]) -> Vec<u32> {
        let ascending = 0..1u32 << bits.len();
        if self.reverse { ascending.rev().collect() } else { ascending.collect() }
    }

    /// `number` spread over the places `bits`.
    fn spread(number: u32, bits: &[u32]) -> u32 {
        bits.iter().enumerate().fold(0, |all, (i, bit)| all | (number >> i & 1) << bit)
    }

    fn lane_mask(&self) -> u32 {
        self.lanes.iter().fold(0, |all, bit| all | 1 << bit)
    }
}

/// A partial result that precedes a thread's own values, and the condition under which there is one.
struct Prefix<'c> {
    value: Tuple<'c>,
    /// Absent if there always is one.
    valid: Option<Value<'c>>,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn scan(&self, op: Op, axis: u32, reverse: bool) -> Result<()> {
        let operands = self.kernel.variadic(op).to_vec();
        let combine = self.kernel.op(op).blocks[0];
        let layout = self.layout(operands[0])?;
        let walk = Walk::new(layout, axis as usize, reverse)
            .ok_or_else(|| CodegenError::lowering("`scan` along an axis whose layout is not in scan order"))?;
        let mut values = self.tuples(&operands)?;
        // Totals per row and chunk, chunks in ascending order.
        let mut totals: Vec<Vec<Tuple<'c>>> = Vec::new();
        for row in &walk.rows {
            let mut of_row = Vec::new();
            for chunk in 0..1u32 << walk.high.len() {
                let start = row | Walk::spread(chunk, &walk.high);
                let mut running: Option<Tuple<'c>> = None;
                for step in walk.steps(&walk.low) {
                    let register = (start | Walk::spread(step, &walk.low)) as usize;
                    let value = match running {
                        None => values[register].clone(),
                        Some(before) => self.combine(combine, &before, &values[register])?,
                    };
                    values[register].clone_from(&value);
                    running = Some(value);
                }
                of_row.extend(running);
            }
            totals.push(of_row);
        }
        let mut exclusive: Vec<Vec<Option<Prefix<'c>>>> = Vec::new();
        for of_row in &mut totals {
            let mut before = Vec::new();
            for total in of_row.iter_mut() {
                before.push(self.scan_lanes(combine, &walk, total)?);
            }
            exclusive.push(before);
        }
        let outer = if walk.warps.is_empty() {
            self.chunk_prefixes(combine, &walk, &totals)?
        } else {
            self.warp_prefixes(op, &operands, layout, axis as usize, &walk, &totals)?
        };
        for ((row, lanes), outer) in walk.rows.iter().zip(exclusive).zip(outer) {
            for (chunk, (inner, outer)) in lanes.into_iter().zip(outer).enumerate() {
                let Some(prefix) = self.join_prefixes(combine, outer, inner)? else { continue };
                let start = row | Walk::spread(chunk as u32, &walk.high);
                for step in walk.steps(&walk.low) {
                    let register = (start | Walk::spread(step, &walk.low)) as usize;
                    let with = self.combine(combine, &prefix.value, &values[register])?;
                    values[register] = match prefix.valid {
                        None => with,
                        Some(valid) => self.select_tuple(valid, &with, &values[register]),
                    };
                }
            }
        }
        for index in 0..operands.len() {
            self.set(self.kernel.result(op, index), values.iter().map(|tuple| tuple[index]).collect());
        }
        Ok(())
    }

    /// Scans a total over the lanes in place; the total of the lanes before this one.
    fn scan_lanes(&self, combine: Block, walk: &Walk, total: &mut Tuple<'c>) -> Result<Option<Prefix<'c>>> {
        if walk.lanes.is_empty() {
            return Ok(None);
        }
        let e = self.e;
        let lane = self.lane();
        let constant = |bits: u32| e.i32(bits as i32);
        let mut below = 0u32;
        for bit in &walk.lanes {
            // The last lane of the half before this one has that half's total.
            let bit = 1u32 << bit;
            let (source, takes) = if walk.reverse {
                (e.andi(e.ori(lane, constant(bit)), constant(!below)), self.lane_bit_clear(bit))
            } else {
                (e.ori(e.andi(lane, constant(!bit)), constant(below)), self.lane_bit_set(bit))
            };
            let other: Tuple<'c> = total.iter().map(|value| e.shuffle(ShuffleKind::Index, *value, source)).collect();
            let with = self.combine(combine, &other, total)?;
            *total = self.select_tuple(takes, &with, total);
            below |= bit;
        }
        let mask = walk.lane_mask();
        let own = e.andi(lane, constant(mask));
        let rest = e.andi(lane, constant(!mask));
        // Counting within the mask: the bits outside are filled so that the carry runs through them.
        let (neighbour, edge) = if walk.reverse {
            (e.addi(e.ori(lane, constant(!mask)), constant(1)), mask)
        } else {
            (e.subi(own, constant(1)), 0)
        };
        let source = e.ori(e.andi(neighbour, constant(mask)), rest);
        let value = total.iter().map(|value| e.shuffle(ShuffleKind::Index, *value, source)).collect();
        Ok(Some(Prefix { value, valid: Some(e.cmpi(Cmpi::Ne, own, constant(edge))) }))
    }

    /// The sums of the chunks before each one, for a scan that stays within warps.
    fn chunk_prefixes(
        &self,
        combine: Block,
        walk: &Walk,
        totals: &[Vec<Tuple<'c>>],
    ) -> Result<Vec<Vec<Option<Prefix<'c>>>>> {
        let e = self.e;
        let mask = walk.lane_mask();
        let constant = |bits: u32| e.i32(bits as i32);
        totals
            .iter()
            .map(|of_row| {
                let mut prefixes: Vec<Option<Prefix<'c>>> = of_row.iter().map(|_| None).collect();
                let mut running: Option<Tuple<'c>> = None;
                for chunk in walk.steps(&walk.high) {
                    let total = &of_row[chunk as usize];
                    prefixes[chunk as usize] = running.clone().map(|value| Prefix { value, valid: None });
                    let last = if mask == 0 || of_row.len() == 1 {
                        total.clone()
                    } else {
                        let lane = self.lane();
                        let source =
                            if walk.reverse { e.andi(lane, constant(!mask)) } else { e.ori(lane, constant(mask)) };
                        total.iter().map(|value| e.shuffle(ShuffleKind::Index, *value, source)).collect()
                    };
                    running = Some(match running {
                        None => last,
                        Some(before) if of_row.len() > 1 => self.combine(combine, &before, &last)?,
                        Some(before) => before,
                    });
                }
                Ok(prefixes)
            })
            .collect()
    }

    /// The sums of the warps and chunks before each one, exchanged through scratch memory.
    fn warp_prefixes(
        &self,
        op: Op,
        operands: &[rtc_ir::Value],
        layout: &Layout,
        axis: usize,
        walk: &Walk,
        totals: &[Vec<Tuple<'c>>],
    ) -> Result<Vec<Vec<Option<Prefix<'c>>>>> {
        let e = self.e;
        let combine = self.kernel.op(op).blocks[0];
        let scratch = self.scratch(op, 0)?;
        let (warps, chunks) = (1u32 << walk.warps.len(), 1u32 << walk.high.len());
        let others = layout.elements() / layout.shape()[axis];
        // Partial results lie as [row of the tile][chunk][warp].
        let row_of = |coord: Coord| {
            let shape = layout.shape();
            let along = (0..shape.len()).filter(|i| *i != axis);
            along.fold(0, |index, i| index * shape[i] + coord[i]) * chunks * warps
        };
        let lane_rows = (0..5).map(|bit| row_of(layout.coords(0, 1 << bit, 0)));
        let warp_rows = (0..layout.warps().trailing_zeros()).map(|bit| row_of(layout.coords(0, 0, 1 << bit)));
        let rows: Vec<u32> = lane_rows.chain(warp_rows).collect();
        let mut numbers = vec![0u32; rows.len()];
        for (i, bit) in walk.warps.iter().enumerate() {
            numbers[5 + *bit as usize] = 1 << i;
        }
        let places: Vec<u32> = rows.iter().zip(&numbers).map(|(row, number)| row | number).collect();
        let scaled = |list: &[u32], bytes: u32| -> Spot<'c> {
            self.spot(&list.iter().map(|place| place * bytes).collect::<Vec<_>>())
        };
        let row_start = |row: usize| row_of(layout.coords(walk.rows[row], 0, 0));

        // The last lane of each row has the warp's total; copies stay silent.
        let copies = layout.copies();
        let mask = walk.lane_mask();
        let silent = copies.lanes | copies.warps << 5;
        let last = if walk.reverse { 0 } else { mask };
        let speaker = e.cmpi(Cmpi::Eq, e.andi(self.thread(), e.i32((mask | silent) as i32)), e.i32(last as i32));
        let mut offset = 0;
        let mut bases = Vec::new();
        for (index, operand) in operands.iter().enumerate() {
            let elem = self.elem(*operand)?;
            let bytes = elem.bytes();
            let base = e.constant_offset(scratch, offset as i32);
            let spot = scaled(&places, bytes);
            e.if_then(speaker, || {
                for (row, of_row) in totals.iter().enumerate() {
                    for (chunk, total) in of_row.iter().enumerate() {
                        let place = (row_start(row) + chunk as u32 * warps) * bytes;
                        self.store_shared(self.shared_address(base, spot, place), elem, &[total[index]], bytes);
                    }
                }
            });
            bases.push((base, elem, scaled(&rows, bytes)));
            offset += part_bytes(elem, others * chunks * warps);
        }
        self.barrier();
        let number = self.at(self.spot(&numbers), 0);
        let mut prefixes = Vec::new();
        for row in 0..totals.len() {
            let mut of_row: Vec<Option<Prefix<'c>>> = (0..chunks).map(|_| None).collect();
            let mut running: Option<Tuple<'c>> = None;
            for (position, chunk) in walk.steps(&walk.high).into_iter().enumerate() {
                let warp_steps = walk.steps(&walk.warps);
                let mut mine: Option<Tuple<'c>> = None;
                for warp in &warp_steps {
                    let place = row_start(row) + chunk * warps + warp;
                    let load = |(base, elem, spot): &(Value<'c>, rtc_ir::Elem, Spot<'c>)| {
                        let address = self.shared_address(*base, *spot, place * elem.bytes());
                        self.load_shared(address, *elem, 1, elem.bytes())[0]
                    };
                    let total: Tuple<'c> = bases.iter().map(load).collect();
                    if let Some(before) = &running {
                        mine = Some(match mine {
                            None => before.clone(),
                            Some(other) => {
                                let is_mine = e.cmpi(Cmpi::Eq, number, e.i32(*warp as i32));
                                self.select_tuple(is_mine, before, &other)
                            }
                        });
                    }
                    running = Some(match running {
                        None => total,
                        Some(before) => self.combine(combine, &before, &total)?,
                    });
                }
                // Only the first warp of the first chunk has nothing before it.
                let valid = (position == 0).then(|| e.cmpi(Cmpi::Ne, number, e.i32(warp_steps[0] as i32)));
                of_row[chunk as usize] = mine.map(|value| Prefix { value, valid });
            }
            prefixes.push(of_row);
        }
        Ok(prefixes)
    }

    /// What precedes a thread's values, from what precedes its warp (or chunk) and what precedes it in the warp.
    fn join_prefixes(
        &self,
        combine: Block,
        outer: Option<Prefix<'c>>,
        inner: Option<Prefix<'c>>,
    ) -> Result<Option<Prefix<'c>>> {
        let (outer, inner) = match (outer, inner) {
            (Some(outer), Some(inner)) => (outer, inner),
            (one, other) => return Ok(one.or(other)),
        };
        let both = self.combine(combine, &outer.value, &inner.value)?;
        let with_inner = match outer.valid {
            None => both,
            Some(valid) => self.select_tuple(valid, &both, &inner.value),
        };
        let value = match inner.valid {
            None => with_inner,
            Some(valid) => self.select_tuple(valid, &with_inner, &outer.value),
        };
        let valid = match (outer.valid, inner.valid) {
            (Some(a), Some(b)) => Some(self.e.ori(a, b)),
            (None, _) | (_, None) => None,
        };
        Ok(Some(Prefix { value, valid }))
    }
}

//! Inclusive scans.
//!
//! The coordinate along the axis consists of register bits, then lanes, then warps, then again registers (chunks). Each
//! thread scans its low registers; the totals are scanned between lanes; the totals of warps and chunks go through
//! scratch memory, and each thread adds up those before its own. The prefix of a row is computed when the row is
//! finished, not for all rows at once: there are several values of each, and registers limit the occupancy.

use rtc_ir::{Block, Elem, Op, part_bytes};
use rtc_layout::{Coord, InputBit, Layout};

use super::{Lowering, combine::Tuple, coordinates::Spot};
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

/// Where the totals of warps and chunks lie in scratch memory.
struct Exchange<'c> {
    /// For each operand its place, its element type, and what the thread's rows add to the address.
    parts: Vec<(Value<'c>, Elem, Spot<'c>)>,
    /// The number of the thread's warp along the axis.
    number: Value<'c>,
    /// The place of each row of registers.
    rows: Vec<u32>,
    /// How far the places of warps that follow each other lie apart.
    stride: u32,
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
        for total in totals.iter_mut().flatten() {
            self.scan_lanes(combine, &walk, total)?;
        }
        let exchange = if walk.warps.is_empty() {
            None
        } else {
            Some(self.exchange_totals(op, &operands, layout, axis as usize, &walk, &totals)?)
        };
        for (number, (row, totals)) in walk.rows.iter().zip(&totals).enumerate() {
            let outer = match &exchange {
                None => self.chunk_prefixes(combine, &walk, totals)?,
                Some(exchange) => self.warp_prefixes(combine, &walk, exchange, number)?,
            };
            for (chunk, (total, outer)) in totals.iter().zip(outer).enumerate() {
                let start = row | Walk::spread(chunk as u32, &walk.high);
                let registers = walk.steps(&walk.low).into_iter().map(|step| start | Walk::spread(step, &walk.low));
                let mut registers: Vec<_> = registers.map(|register| register as usize).collect();
                // The total is what the last register has with all before it in the warp.
                if let Some(last) = registers.pop() {
                    values[last] = self.behind(combine, outer.as_ref(), total)?;
                }
                if registers.is_empty() {
                    continue;
                }
                let inner = self.lanes_before(&walk, total);
                let prefix = self.join_prefixes(combine, outer, inner)?;
                for register in registers {
                    values[register] = self.behind(combine, prefix.as_ref(), &values[register])?;
                }
            }
        }
        for index in 0..operands.len() {
            self.set(self.kernel.result(op, index), values.iter().map(|tuple| tuple[index]).collect());
        }
        Ok(())
    }

    /// A value with its prefix.
    fn behind(&self, combine: Block, prefix: Option<&Prefix<'c>>, value: &Tuple<'c>) -> Result<Tuple<'c>> {
        let Some(prefix) = prefix else { return Ok(value.clone()) };
        let with = self.combine(combine, &prefix.value, value)?;
        Ok(match prefix.valid {
            None => with,
            Some(valid) => self.select_tuple(valid, &with, value),
        })
    }

    /// Scans a total over the lanes in place.
    fn scan_lanes(&self, combine: Block, walk: &Walk, total: &mut Tuple<'c>) -> Result<()> {
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
        Ok(())
    }

    /// The total of the lanes before this one, of totals that are scanned over the lanes.
    fn lanes_before(&self, walk: &Walk, total: &Tuple<'c>) -> Option<Prefix<'c>> {
        let mask = walk.lane_mask();
        if mask == 0 {
            return None;
        }
        let e = self.e;
        let lane = self.lane();
        let constant = |bits: u32| e.i32(bits as i32);
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
        Some(Prefix { value, valid: Some(e.cmpi(Cmpi::Ne, own, constant(edge))) })
    }

    /// The sums of the chunks of a row before each one, for a scan that stays within warps.
    fn chunk_prefixes(&self, combine: Block, walk: &Walk, totals: &[Tuple<'c>]) -> Result<Vec<Option<Prefix<'c>>>> {
        let e = self.e;
        let mask = walk.lane_mask();
        let constant = |bits: u32| e.i32(bits as i32);
        let mut prefixes: Vec<Option<Prefix<'c>>> = totals.iter().map(|_| None).collect();
        let mut running: Option<Tuple<'c>> = None;
        for chunk in walk.steps(&walk.high) {
            let total = &totals[chunk as usize];
            prefixes[chunk as usize] = running.clone().map(|value| Prefix { value, valid: None });
            let last = if mask == 0 || totals.len() == 1 {
                total.clone()
            } else {
                let lane = self.lane();
                let source = if walk.reverse { e.andi(lane, constant(!mask)) } else { e.ori(lane, constant(mask)) };
                total.iter().map(|value| e.shuffle(ShuffleKind::Index, *value, source)).collect()
            };
            running = Some(match running {
                None => last,
                Some(before) if totals.len() > 1 => self.combine(combine, &before, &last)?,
                Some(before) => before,
            });
        }
        Ok(prefixes)
    }

    /// Stores the totals of warps and chunks to scratch memory.
    fn exchange_totals(
        &self,
        op: Op,
        operands: &[rtc_ir::Value],
        layout: &Layout,
        axis: usize,
        walk: &Walk,
        totals: &[Vec<Tuple<'c>>],
    ) -> Result<Exchange<'c>> {
        let e = self.e;
        let scratch = self.scratch(op)?;
        let (warps, chunks) = (1u32 << walk.warps.len(), 1u32 << walk.high.len());
        let others = layout.elements() / layout.shape()[axis];
        // Partial results lie as [chunk][warp][row of the tile]: lanes mostly differ in the row, and then lie in different banks.
        let row_of = |coord: Coord| {
            let shape = layout.shape();
            let along = (0..shape.len()).filter(|i| *i != axis);
            along.fold(0, |index, i| index * shape[i] + coord[i])
        };
        let lane_rows = (0..5).map(|bit| row_of(layout.coords(0, 1 << bit, 0)));
        let warp_rows = (0..layout.warps().trailing_zeros()).map(|bit| row_of(layout.coords(0, 0, 1 << bit)));
        let rows: Vec<u32> = lane_rows.chain(warp_rows).collect();
        let mut numbers = vec![0u32; rows.len()];
        for (i, bit) in walk.warps.iter().enumerate() {
            numbers[5 + *bit as usize] = 1 << i;
        }
        let places: Vec<u32> = rows.iter().zip(&numbers).map(|(row, number)| row + number * others).collect();
        let scaled = |list: &[u32], bytes: u32| -> Spot<'c> {
            self.spot(&list.iter().map(|place| place * bytes).collect::<Vec<_>>())
        };
        let starts: Vec<u32> = walk.rows.iter().map(|row| row_of(layout.coords(*row, 0, 0))).collect();

        // The last lane of each row has the warp's total; copies stay silent.
        let copies = layout.copies();
        let mask = walk.lane_mask();
        let silent = copies.lanes | copies.warps << 5;
        let last = if walk.reverse { 0 } else { mask };
        let speaker = e.cmpi(Cmpi::Eq, e.andi(self.thread(), e.i32((mask | silent) as i32)), e.i32(last as i32));
        let mut offset = 0;
        let mut parts = Vec::new();
        for (index, operand) in operands.iter().enumerate() {
            let elem = self.elem(*operand)?;
            let bytes = elem.bytes();
            let base = e.constant_offset(scratch, offset as i32);
            let spot = scaled(&places, bytes);
            e.if_then(speaker, || {
                for (start, of_row) in starts.iter().zip(totals) {
                    for (chunk, total) in of_row.iter().enumerate() {
                        let place = (start + chunk as u32 * warps * others) * bytes;
                        self.store_shared(self.shared_address(base, spot, place), elem, &[total[index]], bytes);
                    }
                }
            });
            parts.push((base, elem, scaled(&rows, bytes)));
            offset += part_bytes(elem, others * chunks * warps);
        }
        self.barrier();
        Ok(Exchange { parts, number: self.at(self.spot(&numbers), 0), rows: starts, stride: others })
    }

    /// The sums of the warps and chunks before each chunk of a row, from scratch memory.
    fn warp_prefixes(
        &self,
        combine: Block,
        walk: &Walk,
        exchange: &Exchange<'c>,
        row: usize,
    ) -> Result<Vec<Option<Prefix<'c>>>> {
        let e = self.e;
        let warp_steps = walk.steps(&walk.warps);
        let mut prefixes: Vec<Option<Prefix<'c>>> = walk.steps(&walk.high).iter().map(|_| None).collect();
        let mut running: Option<Tuple<'c>> = None;
        for (position, chunk) in walk.steps(&walk.high).into_iter().enumerate() {
            let mut mine: Option<Tuple<'c>> = None;
            for warp in &warp_steps {
                let place = exchange.rows[row] + (chunk * warp_steps.len() as u32 + warp) * exchange.stride;
                let load = |(base, elem, spot): &(Value<'c>, Elem, Spot<'c>)| {
                    let address = self.shared_address(*base, *spot, place * elem.bytes());
                    self.load_shared(address, *elem, 1, elem.bytes())[0]
                };
                let total: Tuple<'c> = exchange.parts.iter().map(load).collect();
                if let Some(before) = &running {
                    mine = Some(match mine {
                        None => before.clone(),
                        Some(other) => {
                            let is_mine = e.cmpi(Cmpi::Eq, exchange.number, e.i32(*warp as i32));
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
            let valid = (position == 0).then(|| e.cmpi(Cmpi::Ne, exchange.number, e.i32(warp_steps[0] as i32)));
            prefixes[chunk as usize] = mine.map(|value| Prefix { value, valid });
        }
        Ok(prefixes)
    }

    /// The prefix of a thread's values, from the prefix of its warp (or chunk) and its prefix within the warp.
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

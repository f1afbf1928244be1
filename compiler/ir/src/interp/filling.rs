//! Other values and other orders where operations leave them open: see `open.rs`.

use std::collections::HashMap;

use super::OpenResult;
use super::machine::{Machine, Stop};
use super::open::Filling;
use super::reduce::Order;
use super::value::Data;
use crate::ops::eval::{decode, mask, sign_extend};
use crate::{Block, Elem, Kernel, Op, OpKind, Padding, Rounding, Scalar, Type, encode_float, view};

impl Machine<'_> {
    /// After an operation: puts something else where its result is open.
    pub(crate) fn fill_open(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let Some((what, slots)) = self.open_slots(op)? else { return Ok(()) };
        let Some(first) = slots.first().copied() else { return Ok(()) };
        let ty = match kernel.op(op).results.first() {
            Some(result) => kernel.value_type(*result),
            None => kernel.value_type(kernel.operand(op, 0)),
        };
        let (program, element) = (self.program, self.coordinate(ty, first));
        let Some(opening) = &mut self.open else { return Ok(()) };
        if opening.seen.iter().all(|seen| seen.0 != op) {
            opening.seen.push((op, what, program, element));
        }
        let filling = opening.filling;
        if filling == Filling::Usual || opening.only.is_some_and(|only| only != op) {
            return Ok(());
        }
        match what {
            OpenResult::StoredTwice => self.store_turned_around(op),
            OpenResult::CombineOrder => self.combine_differently(op, filling),
            OpenResult::CatOrder => self.turn_cat(op, filling),
            OpenResult::SortedNan => self.move_nan(op, filling),
            OpenResult::HistogramBin => self.count_elsewhere(op, slots.len(), filling),
            _ => {
                let Data::Many(old) = self.get(kernel.op(op).results[0]) else {
                    self.set_result(op, Data::Scalar(value(ty.elem(), 0, filling)));
                    return Ok(());
                };
                let mut new = old.to_vec();
                for slot in slots {
                    new[slot] = value(ty.elem(), old[slot], filling);
                }
                self.set_result(op, Data::many(new));
                Ok(())
            }
        }
    }

    /// Where open results are looked for, the bits of a NaN that is stored do not count.
    pub(super) fn without_nan_bits(&self, values: &Data, scalar: Scalar) -> Data {
        let one = |bits: &u64| {
            if decode(*bits, scalar).is_nan() { encode_float(f64::NAN, scalar, Rounding::NearestEven) } else { *bits }
        };
        match values {
            Data::Scalar(bits) if self.open.is_some() && scalar.is_float() => Data::Scalar(one(bits)),
            Data::Many(slots) if self.open.is_some() && scalar.is_float() => {
                Data::many(slots.iter().map(one).collect())
            }
            other => other.clone(),
        }
    }

    /// The unspecified results of an operation that was just run, and their slots.
    fn open_slots(&mut self, op: Op) -> Result<Option<(OpenResult, Vec<usize>)>, Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let slot_of = |machine: &Self, n: usize| machine.get(data.operands[n]);
        let count = |of: &[Data]| {
            of.iter().find_map(|d| if let Data::Many(slots) = d { Some(slots.len()) } else { None }).unwrap_or(1)
        };
        let where_off = |machine: &mut Self| -> Vec<usize> {
            let (Some(pointer), Some(mask)) = (kernel.pointer(op), kernel.mask(op)) else { return Vec::new() };
            let mask = machine.get(mask);
            (0..machine.slots(kernel.value_type(pointer))).filter(|i| mask.slot(*i) & 1 == 0).collect()
        };
        Ok(Some(match &data.kind {
            OpKind::Load { .. } if view::Load::at(kernel, op).other().is_none() => {
                (OpenResult::MaskedLoad, where_off(self))
            }
            OpKind::BlockLoad { check, padding: Padding::Unspecified, .. } => {
                (OpenResult::MaskedLoad, self.outside_of_block(op, check))
            }
            OpKind::AtomicRmw { .. } | OpKind::AtomicLoad { .. } => (OpenResult::MaskedAtomic, where_off(self)),
            OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {} => {
                let (a, b) = (slot_of(self, 0), slot_of(self, 1));
                (OpenResult::DivisionByZero, (0..count(&[a, b.clone()])).filter(|i| b.slot(*i) == 0).collect())
            }
            OpKind::ShlI {} | OpKind::ShrSI {} | OpKind::ShrUI {} => {
                let (a, b) = (slot_of(self, 0), slot_of(self, 1));
                let width = u64::from(self.result_type(op).elem().map_or(64, Elem::bits));
                (OpenResult::ShiftCount, (0..count(&[a, b.clone()])).filter(|i| b.slot(*i) >= width).collect())
            }
            OpKind::FpToSI { .. } | OpKind::FpToUI { .. } => {
                let source = slot_of(self, 0);
                let ty = kernel.value_operand(op).map(|value| kernel.value_type(value));
                let scalar = ty.and_then(|ty| ty.elem()?.num()).unwrap_or(Scalar::F32);
                let bits = self.result_type(op).elem().map_or(64, Elem::bits) as i32;
                let (low, high) = match data.kind {
                    OpKind::FpToSI { .. } => (-f64::powi(2.0, bits - 1), f64::powi(2.0, bits - 1)),
                    _ => (0.0, f64::powi(2.0, bits)),
                };
                let holds = |i: &usize| {
                    let x = decode(source.slot(*i), scalar).trunc();
                    x >= low && x < high
                };
                (OpenResult::CastRange, (0..count(std::slice::from_ref(&source))).filter(|i| !holds(i)).collect())
            }
            OpKind::Gather { axis } => {
                let gather = view::Gather::at(kernel, op);
                let (source, index) = (kernel.value_type(gather.source()), gather.index());
                let size = source.shape().map_or(1, |shape| i64::from(shape[*axis as usize]));
                let (elem, index) = (kernel.value_type(index).elem().unwrap_or(Elem::I32), self.get(index));
                let is_outside = |i: &usize| !(0..size).contains(&sign_extend(index.slot(*i), elem));
                (OpenResult::GatherIndex, (0..count(std::slice::from_ref(&index))).filter(is_outside).collect())
            }
            OpKind::Histogram { bins } => {
                let histogram = view::Histogram::at(kernel, op);
                let (source, counted) = (self.get(histogram.source()), histogram.mask().map(|v| self.get(v)));
                let is_on = |i: usize| counted.as_ref().is_none_or(|m| m.slot(i) & 1 != 0);
                let is_outside = |i: &usize| is_on(*i) && source.slot(*i) >= u64::from(*bins);
                (OpenResult::HistogramBin, (0..count(std::slice::from_ref(&source))).filter(is_outside).collect())
            }
            OpKind::Sort { .. } => {
                let sorted = view::Sort::at(kernel, op).source();
                let (source, scalar) = (self.get(sorted), kernel.value_type(sorted).elem().and_then(Elem::num));
                let is_nan = |i: &usize| scalar.is_some_and(|s| s.is_float() && decode(source.slot(*i), s).is_nan());
                (OpenResult::SortedNan, (0..count(std::slice::from_ref(&source))).filter(is_nan).collect())
            }
            OpKind::Store { .. } => (OpenResult::StoredTwice, self.stored_twice(op)),
            OpKind::Cat {} => (OpenResult::CatOrder, vec![0]),
            OpKind::Reduce { .. } | OpKind::Scan { .. } if is_exact(kernel, data.blocks[0]) => {
                (OpenResult::CombineOrder, vec![0])
            }
            _ => return Ok(None),
        }))
    }

    /// A slot of a store to whose place another value was stored, too.
    fn stored_twice(&mut self, op: Op) -> Vec<usize> {
        let mut stored = HashMap::new();
        let (slots, addresses, values) = self.stored(op);
        let differs =
            |slot: &&usize| *stored.entry(addresses.slot(**slot)).or_insert(values.slot(**slot)) != values.slot(**slot);
        slots.iter().find(differs).into_iter().copied().collect()
    }

    /// The slots that a store writes, their addresses and values.
    fn stored(&mut self, op: Op) -> (Vec<usize>, Data, Data) {
        let kernel = self.kernel;
        let store = view::Store::at(kernel, op);
        let ty = kernel.value_type(store.pointer());
        let (addresses, values) = (self.get(store.pointer()), self.get(store.value()));
        let mask = store.mask().map(|v| self.get(v));
        let is_on = |slot: &usize| mask.as_ref().is_none_or(|m| m.slot(*slot) & 1 != 0);
        (self.owners(ty).into_iter().map(|slot| slot as usize).filter(is_on).collect(), addresses, values)
    }

    /// A store again, its last element first.
    fn store_turned_around(&mut self, op: Op) -> Result<(), Stop> {
        let ty = self.kernel.value_type(view::Store::at(self.kernel, op).pointer());
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (slots, addresses, values) = self.stored(op);
        for slot in slots.into_iter().rev() {
            self.write(ty, slot, addresses.slot(slot), scalar, values.slot(slot))?;
        }
        Ok(())
    }

    /// A reduction or a scan again, in another order.
    fn combine_differently(&mut self, op: Op, filling: Filling) -> Result<(), Stop> {
        let order = match filling {
            Filling::Usual | Filling::Nan => return Ok(()),
            Filling::Low => Order::Neighbours,
            Filling::High => Order::Exchanged,
        };
        match self.kernel.kind(op) {
            OpKind::Reduce { axis } => self.reduce_in(op, *axis as usize, order),
            OpKind::Scan { axis, reverse } => self.scan_in(op, *axis as usize, *reverse, order),
            _ => Ok(()),
        }
    }

    /// The second operand of `cat` first.
    fn turn_cat(&mut self, op: Op, filling: Filling) -> Result<(), Stop> {
        let result = self.kernel.op(op).results[0];
        if filling != Filling::Nan {
            let mut elements = self.elements(result)?.to_vec();
            let half = elements.len() / 2;
            elements.rotate_left(half);
            let placed = self.place(self.kernel.value_type(result), elements);
            self.set(result, placed);
        }
        Ok(())
    }

    /// NaN at the other end of each sorted row.
    fn move_nan(&mut self, op: Op, filling: Filling) -> Result<(), Stop> {
        let result = self.kernel.op(op).results[0];
        let ty = self.kernel.value_type(result);
        let scalar = ty.elem().and_then(Elem::num).unwrap_or(Scalar::F32);
        let mut elements = self.elements(result)?.to_vec();
        let row = ty.shape().and_then(|s| s.last().copied()).unwrap_or(1) as usize;
        for row in elements.chunks_mut(row) {
            row.sort_by_key(|bits| decode(*bits, scalar).is_nan() != (filling == Filling::Low));
        }
        let placed = self.place(ty, elements);
        self.set(result, placed);
        Ok(())
    }

    /// Numbers outside of the bins counted in the first or the last.
    fn count_elsewhere(&mut self, op: Op, numbers: usize, filling: Filling) -> Result<(), Stop> {
        let result = self.kernel.op(op).results[0];
        let mut counts = self.elements(result)?.to_vec();
        let bin = if filling == Filling::High { counts.len() - 1 } else { 0 };
        counts[bin] = mask(counts[bin] + numbers as u64, Elem::I32);
        let placed = self.place(self.kernel.value_type(result), counts);
        self.set(result, placed);
        Ok(())
    }
}

/// The value of an unspecified element that is usually `usual`.
fn value(elem: Option<Elem>, usual: u64, filling: Filling) -> u64 {
    let elem = elem.unwrap_or(Elem::I64);
    let bits = elem.bits();
    match (elem, filling) {
        (_, Filling::Usual) => usual,
        (Elem::Num(Scalar::I1), _) => 1 - (usual & 1),
        (Elem::Num(scalar), _) if scalar.is_float() => {
            // The largest power of two that every format of this width can hold, or nearly.
            let large = f64::powi(
                2.0,
                if bits == 64 {
                    1000
                } else if bits == 32 {
                    120
                } else if bits == 16 {
                    14
                } else {
                    8
                },
            );
            let x = match filling {
                Filling::Nan => f64::NAN,
                Filling::Low => -large,
                _ => large,
            };
            encode_float(x, scalar, Rounding::NearestEven)
        }
        (_, Filling::Nan) => mask(0x5555_5555_5555_5555, elem),
        (_, Filling::Low) => 1 << (bits - 1),
        (_, Filling::High) => mask((1 << (bits - 1)) - 1, elem),
    }
}

/// Whether a combine block does not round, so that another order gives the same bits if the order does not matter.
fn is_exact(kernel: &Kernel, block: Block) -> bool {
    kernel.ops(block).all(|op| {
        let data = kernel.op(op);
        let is_float = |v: &crate::Value| match kernel.value_type(*v) {
            ty @ Type::Scalar(_) => ty.elem().and_then(Elem::num).is_some_and(Scalar::is_float),
            _ => false,
        };
        !data.results.iter().any(is_float)
            || matches!(
                data.kind,
                OpKind::Select {}
                    | OpKind::MinNum {}
                    | OpKind::MaxNum {}
                    | OpKind::Minimum {}
                    | OpKind::Maximum {}
                    | OpKind::AbsF {}
                    | OpKind::NegF {}
                    | OpKind::Constant { .. }
                    | OpKind::IfElse {}
            )
    })
}

//! Gather, histogram and sort: elements that go to places which only the data decide, through scratch memory.

use std::collections::HashMap;

use rtc_ir::{Elem, Op, Scalar};
use rtc_layout::{InputBit, Layout};

use super::{Lowering, place::Spot};
use crate::{
    emit::{Access, Cmpf, Cmpi, ShuffleKind, Value},
    error::Result,
};

/// A condition that is known while lowering, or a thread's.
#[derive(Clone, Copy)]
enum Truth<'c> {
    Known(bool),
    Of(Value<'c>),
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn gather(&self, op: Op, axis: u32) -> Result<()> {
        let e = self.e;
        let axis = axis as usize;
        let (source, index) = (self.kernel.operand(op, 0), self.kernel.operand(op, 1));
        let (from, to) = (self.layout(source)?, self.layout(index)?);
        let elem = self.elem(source)?;
        let narrow = self.elem(index)?.bits() < 32;
        let base = self.scratch(op, 0)?;
        self.store_row_major(base, from, elem, &self.get(source)?);
        e.barrier();
        // The place of an element is the sum of what its other coordinates say and its index times a stride.
        let stride = from.shape()[axis + 1..].iter().product::<u32>() * elem.bytes();
        let other = |coord: rtc_layout::Coord| {
            let flat = from
                .shape()
                .iter()
                .enumerate()
                .fold(0, |flat, (i, size)| flat * size + if i == axis { 0 } else { coord[i] });
            flat * elem.bytes()
        };
        let lanes = (0..5).map(|bit| other(to.coords(0, 1 << bit, 0)));
        let warps = (0..to.warps().trailing_zeros()).map(|bit| other(to.coords(0, 0, 1 << bit)));
        let spot = self.spot(&lanes.chain(warps).collect::<Vec<_>>());
        let indices = self.get(index)?;
        let values = indices.iter().enumerate().map(|(register, index)| {
            let index = if narrow { e.extsi(*index, e.ty.i32) } else { e.trunci(*index, e.ty.i32) };
            let along = e.muli(index, e.i32(stride as i32));
            let start = self.shared_address(base, spot, other(to.coords(register as u32, 0, 0)));
            self.load_shared(e.byte_offset(start, along), elem, 1, elem.bytes())[0]
        });
        self.define(op, values.collect());
        Ok(())
    }

    pub(super) fn histogram(&self, op: Op, bins: u32) -> Result<()> {
        let e = self.e;
        let source = self.kernel.operand(op, 0);
        let elem = self.elem(source)?;
        let (values, mask) = (self.get(source)?, self.optional(op, 0)?);
        let base = self.scratch(op, 1)?;
        let access = Access { align: 4, ..Access::default() };
        let threads = super::threads_per_block(self.kernel);
        let own = e.byte_offset(base, e.muli(e.thread, e.i32(4)));
        for first in (0..bins).step_by(threads as usize) {
            let store = || e.store(e.i32(0), e.constant_offset(own, 4 * first as i32), access);
            if bins - first < threads {
                e.if_then(e.cmpi(Cmpi::Ult, e.thread, e.i32((bins - first) as i32)), store);
            } else {
                store();
            }
        }
        e.barrier();
        let holders = self.holders(source)?;
        for (register, value) in values.iter().enumerate() {
            if register as u32 & holders.copied_registers != 0 {
                continue;
            }
            let word = if elem.bits() < 32 { e.extui(*value, e.ty.i32) } else { e.trunci(*value, e.ty.i32) };
            let in_range = e.cmpi(Cmpi::Ult, word, e.i32(bins as i32));
            let chosen = self.both(mask.as_ref().map(|mask| mask[register]), holders.thread);
            let condition = self.both(chosen, Some(in_range)).unwrap_or(in_range);
            let bin = e.byte_offset(base, e.muli(word, e.i32(4)));
            e.assembly("@$1 red.shared.add.u32 [$0], 1;", "r,b", &[bin, condition], &[], true);
        }
        e.barrier();
        let layout = self.layout(self.kernel.result(op, 0))?;
        let counts = self.load_row_major(base, layout, Elem::I32);
        self.define(op, counts);
        Ok(())
    }

    /// Bitonic sort along the last axis. Partners at a distance that is a register or a lane bit meet there; others
    /// through scratch memory.
    pub(super) fn sort(&self, op: Op, descending: bool, signed: bool) -> Result<()> {
        let e = self.e;
        let source = self.kernel.operand(op, 0);
        let layout = self.layout(source)?;
        let elem = self.elem(source)?;
        let axis = layout.rank() - 1;
        let length = layout.shape()[axis].trailing_zeros();
        let carriers = layout.axis_bits(axis);
        let position = self.layout_spot(layout, |flat| flat & (layout.shape()[axis] - 1));
        // Whether a bit of a place is clear: known for each register, or one condition on the thread for all.
        let clear = |register: usize, bit: u32| {
            let own = layout.coords(register as u32, 0, 0)[axis] >> bit & 1 == 0;
            if position.is_free_of(1 << bit) {
                return Truth::Known(own);
            }
            let of_thread = self.is_zero(e.andi(self.at(position, 0), e.i32(1 << bit)));
            Truth::Of(if own { of_thread } else { e.xori(of_thread, e.bool(true)) })
        };
        let mut values = self.get(source)?.to_vec();
        for size in 1..=length {
            for distance in (0..size).rev() {
                let partners = match carriers.as_ref().map(|bits| bits[distance as usize]) {
                    Some(InputBit::Register(bit)) => (0..values.len()).map(|r| values[r ^ 1 << bit]).collect(),
                    Some(InputBit::Lane(bit)) => {
                        let mask = e.i32(1 << bit);
                        values.iter().map(|value| e.shuffle(ShuffleKind::Butterfly, *value, mask)).collect()
                    }
                    Some(InputBit::Warp(_) | InputBit::Block(_)) | None => {
                        self.partners_through_scratch(op, layout, elem, &values, 1 << distance)?
                    }
                };
                // The lower of two places keeps the smaller value while its run ascends. Few registers differ in that.
                let mut conditions = HashMap::new();
                values = (0..values.len())
                    .map(|register| {
                        let (own, other) = (values[register], partners[register]);
                        let place = layout.coords(register as u32, 0, 0)[axis];
                        let key = (place >> distance & 1, if size == length { 0 } else { place >> size & 1 });
                        let keeps_larger = *conditions.entry(key).or_insert_with(|| {
                            let ascends = if size == length { Truth::Known(true) } else { clear(register, size) };
                            self.differ(self.differ(clear(register, distance), ascends), Truth::Known(descending))
                        });
                        let takes = match keeps_larger {
                            Truth::Known(true) => self.less(elem, signed, own, other),
                            Truth::Known(false) => self.less(elem, signed, other, own),
                            Truth::Of(condition) => e.select(
                                condition,
                                self.less(elem, signed, own, other),
                                self.less(elem, signed, other, own),
                            ),
                        };
                        e.select(takes, other, own)
                    })
                    .collect();
            }
        }
        self.define(op, values);
        Ok(())
    }

    /// Whether one of two conditions holds and the other does not.
    fn differ(&self, a: Truth<'c>, b: Truth<'c>) -> Truth<'c> {
        match (a, b) {
            (Truth::Known(a), Truth::Known(b)) => Truth::Known(a != b),
            (Truth::Of(value), Truth::Known(flip)) | (Truth::Known(flip), Truth::Of(value)) => {
                Truth::Of(if flip { self.e.xori(value, self.e.bool(true)) } else { value })
            }
            (Truth::Of(a), Truth::Of(b)) => Truth::Of(self.e.xori(a, b)),
        }
    }

    /// The values at the places whose coordinate along the last axis differs by `distance` in one bit.
    fn partners_through_scratch(
        &self,
        op: Op,
        layout: &Layout,
        elem: Elem,
        values: &[Value<'c>],
        distance: u32,
    ) -> Result<Vec<Value<'c>>> {
        let bytes = elem.bytes();
        let base = self.scratch(op, 0)?;
        self.e.barrier();
        self.store_row_major(base, layout, elem, values);
        self.e.barrier();
        let spot: Spot<'c> = self.layout_spot(layout, |flat| flat * bytes);
        let partners = (0..values.len()).map(|register| {
            let place = layout.index(register as u32, 0, 0) ^ distance;
            self.load_shared(self.shared_address(base, spot, place * bytes), elem, 1, bytes)[0]
        });
        Ok(partners.collect())
    }

    fn less(&self, elem: Elem, signed: bool, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let e = self.e;
        if elem.num().is_some_and(Scalar::is_fp8) {
            let single = |value| {
                let scalar = elem.num().unwrap_or(Scalar::F8E5);
                self.cast_floats(&[value], scalar, Scalar::F32, rtc_ir::Rounding::NearestEven)[0]
            };
            return e.cmpf(Cmpf::Olt, single(a), single(b));
        }
        if elem.is_float() {
            return e.cmpf(Cmpf::Olt, a, b);
        }
        let (a, b) = if elem.is_ptr() { (e.ptrtoint(a, e.ty.i64), e.ptrtoint(b, e.ty.i64)) } else { (a, b) };
        e.cmpi(if signed { Cmpi::Slt } else { Cmpi::Ult }, a, b)
    }
}

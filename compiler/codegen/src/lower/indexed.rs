//! Gather and histogram: elements that go to places which only the data decide, through scratch memory.

use rtc_ir::{Elem, Op, view};

use super::Lowering;
use crate::{
    emit::{AccessAttrs, Cmpi},
    error::Result,
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn gather(&self, op: Op, axis: u32) -> Result<()> {
        let e = self.e;
        let axis = axis as usize;
        let gather = view::Gather::at(self.kernel, op);
        let (source, index) = (gather.source(), gather.index());
        let (from, to) = (self.layout(source)?, self.layout(index)?);
        let elem = self.elem(source)?;
        let narrow = self.elem(index)?.bits() < 32;
        let base = self.scratch(op)?;
        self.store_row_major(base, from, elem, &self.get(source)?);
        self.barrier();
        // The offset of an element is the sum of the contributions of its other coordinates and its index times a
        // stride.
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
        let histogram = view::Histogram::at(self.kernel, op);
        let elem = self.elem(histogram.source())?;
        let (values, mask) = (self.get(histogram.source())?, self.present(histogram.mask())?);
        let base = self.scratch(op)?;
        let access = AccessAttrs { align: 4, ..AccessAttrs::default() };
        let threads = self.kernel.group_of(op).threads();
        let own = e.byte_offset(base, e.muli(self.thread(), e.i32(4)));
        for first in (0..bins).step_by(threads as usize) {
            let store = || e.store(e.i32(0), e.constant_offset(own, 4 * first as i32), access);
            if bins - first < threads {
                e.if_then(e.cmpi(Cmpi::Ult, self.thread(), e.i32((bins - first) as i32)), store);
            } else {
                store();
            }
        }
        self.barrier();
        let holders = self.holders(histogram.source())?;
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
        self.barrier();
        let layout = self.layout(self.kernel.result(op, 0))?;
        let counts = self.load_row_major(base, layout, Elem::I32);
        self.define(op, counts);
        Ok(())
    }
}

//! Bitonic sort along the last axis: runs of two, four, ... elements are merged by comparing partners at halving
//! distances. Partners at a distance that is a register or a lane bit meet there; others through scratch memory.

use std::collections::HashMap;

use rtc_ir::{Elem, Op, Scalar, view};
use rtc_layout::{InputBit, Layout};

use super::{Lowering, coordinates::Spot};
use crate::{
    emit::{Cmpf, Cmpi, Loop, ShuffleKind, Value, type_of},
    error::Result,
};

/// A condition that is known while lowering, or a thread's.
#[derive(Clone, Copy)]
enum Truth<'c> {
    Known(bool),
    Of(Value<'c>),
}

/// One sort.
struct Sort<'a, 'k, 'c> {
    cx: &'a Lowering<'k, 'c>,
    op: Op,
    layout: &'a Layout,
    elem: Elem,
    signed: bool,
    descending: bool,
    /// Whether each row only has to be merged.
    bitonic: bool,
    /// The place along the last axis.
    position: Spot<'c>,
    /// Where each bit of the place is, if each is a bit of the register, lane or warp.
    carriers: Option<Vec<InputBit>>,
    /// The logarithm of the length.
    length: u32,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn sort(&self, op: Op, descending: bool, signed: bool, bitonic: bool) -> Result<()> {
        let source = view::Sort::at(self.kernel, op).source();
        let layout = self.layout(source)?;
        let axis = layout.rank() - 1;
        let length = layout.shape()[axis].trailing_zeros();
        let sort = Sort {
            cx: self,
            op,
            layout,
            elem: self.elem(source)?,
            signed,
            descending,
            bitonic,
            position: self.layout_spot(layout, |flat| flat & (layout.shape()[axis] - 1)),
            carriers: layout.axis_bits(axis),
            length,
        };
        let values = self.get(source)?.to_vec();
        let rolled = !bitonic && rtc_ir::sort_is_rolled(values.len() as u64, u64::from(length));
        self.define(op, if rolled { sort.rolled(&values)? } else { sort.straight(values)? });
        Ok(())
    }
}

impl<'c> Sort<'_, '_, 'c> {
    /// All steps one after the other.
    fn straight(&self, mut values: Vec<Value<'c>>) -> Result<Vec<Value<'c>>> {
        let first = if self.bitonic { self.length } else { 1 };
        for size in first..=self.length {
            let last = size == self.length;
            for distance in (0..size).rev() {
                let partners = self.partners(&values, distance)?;
                // Few registers differ in whether they keep the larger value.
                let mut conditions = HashMap::new();
                values = self.exchange(&values, &partners, distance, |register| {
                    let place = self.place(register);
                    let key = (place >> distance & 1, if last { 0 } else { place >> size & 1 });
                    *conditions.entry(key).or_insert_with(|| {
                        let ascends = if last { Truth::Known(true) } else { self.clear(register, size) };
                        self.keeps_larger(register, distance, ascends)
                    })
                });
            }
        }
        Ok(values)
    }

    /// A loop over the sizes of runs, whose body has each distance once and skips those that reach beyond the run: a long
    /// sort would be too much code otherwise.
    fn rolled(&self, values: &[Value<'c>]) -> Result<Vec<Value<'c>>> {
        let e = self.cx.e;
        let types: Vec<_> = values.iter().map(|value| type_of(*value)).collect();
        let range = Loop { lower: e.i32(1), upper: e.i32(self.length as i32 + 1), step: e.i32(1), unsigned: true };
        e.for_loop(range, values, |size, values| {
            // A run ascends where the bit above its places is clear.
            let mut runs = HashMap::new();
            let mut ascends = |register| {
                let place = self.place(register);
                *runs.entry(place).or_insert_with(|| {
                    let above = e.shrui(self.cx.at(self.position, place), size);
                    self.cx.is_zero(e.andi(above, e.i32(1)))
                })
            };
            let ascends: Vec<Value<'c>> = (0..values.len()).map(&mut ascends).collect();
            let mut values = values.to_vec();
            for distance in (0..self.length).rev() {
                let within = e.cmpi(Cmpi::Ugt, size, e.i32(distance as i32));
                let step = || {
                    let partners = self.partners(&values, distance)?;
                    let keeps = |register: usize| self.keeps_larger(register, distance, Truth::Of(ascends[register]));
                    Ok(self.exchange(&values, &partners, distance, keeps))
                };
                values = e.if_else(within, &types, step, || Ok(values.clone()))?;
            }
            Ok(values)
        })
    }

    /// A register's own part of the place along the axis.
    fn place(&self, register: usize) -> u32 {
        self.layout.coords(register as u32, 0, 0)[self.layout.rank() - 1]
    }

    /// Whether a bit of a place is clear: known for each register, or one condition on the thread for all.
    fn clear(&self, register: usize, bit: u32) -> Truth<'c> {
        let e = self.cx.e;
        let own = self.place(register) >> bit & 1 == 0;
        if self.position.is_free_of(1 << bit) {
            return Truth::Known(own);
        }
        let of_thread = self.cx.is_zero(e.andi(self.cx.at(self.position, 0), e.i32(1 << bit)));
        Truth::Of(if own { of_thread } else { e.xori(of_thread, e.bool(true)) })
    }

    /// The lower of two places keeps the smaller value while its run ascends.
    fn keeps_larger(&self, register: usize, distance: u32, ascends: Truth<'c>) -> Truth<'c> {
        self.differ(self.differ(self.clear(register, distance), ascends), Truth::Known(self.descending))
    }

    /// Whether one of two conditions holds and the other does not.
    fn differ(&self, a: Truth<'c>, b: Truth<'c>) -> Truth<'c> {
        let e = self.cx.e;
        match (a, b) {
            (Truth::Known(a), Truth::Known(b)) => Truth::Known(a != b),
            (Truth::Of(value), Truth::Known(flip)) | (Truth::Known(flip), Truth::Of(value)) => {
                Truth::Of(if flip { e.xori(value, e.bool(true)) } else { value })
            }
            (Truth::Of(a), Truth::Of(b)) => Truth::Of(e.xori(a, b)),
        }
    }

    /// The values at the places whose coordinate along the axis differs in one bit.
    fn partners(&self, values: &[Value<'c>], distance: u32) -> Result<Vec<Value<'c>>> {
        let e = self.cx.e;
        Ok(match self.carriers.as_ref().map(|bits| bits[distance as usize]) {
            Some(InputBit::Register(bit)) => (0..values.len()).map(|r| values[r ^ 1 << bit]).collect(),
            Some(InputBit::Lane(bit)) => {
                let mask = e.i32(1 << bit);
                values.iter().map(|value| e.shuffle(ShuffleKind::Butterfly, *value, mask)).collect()
            }
            Some(InputBit::Warp(_) | InputBit::Block(_)) | None => {
                self.partners_through_scratch(values, 1 << distance)?
            }
        })
    }

    fn partners_through_scratch(&self, values: &[Value<'c>], distance: u32) -> Result<Vec<Value<'c>>> {
        let (cx, layout, elem) = (self.cx, self.layout, self.elem);
        let bytes = elem.bytes();
        let base = cx.scratch(self.op)?;
        cx.barrier();
        cx.store_row_major(base, layout, elem, values);
        cx.barrier();
        let spot: Spot<'c> = cx.layout_spot(layout, |flat| flat * bytes);
        let partners = (0..values.len()).map(|register| {
            let place = layout.index(register as u32, 0, 0) ^ distance;
            cx.load_shared(cx.shared_address(base, spot, place * bytes), elem, 1, bytes)[0]
        });
        Ok(partners.collect())
    }

    /// Each register's value or its partner's.
    fn exchange(
        &self,
        values: &[Value<'c>],
        partners: &[Value<'c>],
        distance: u32,
        mut keeps_larger: impl FnMut(usize) -> Truth<'c>,
    ) -> Vec<Value<'c>> {
        let e = self.cx.e;
        // Equal integers are the same bits, so that it does not matter which of them a place takes: one comparison will
        // do, also for both of two registers.
        let exact = !self.elem.is_float();
        let within = match self.carriers.as_ref().map(|bits| bits[distance as usize]) {
            Some(InputBit::Register(bit)) => 1 << bit,
            _ => 0,
        };
        let mut kept: Vec<Option<Value<'c>>> = vec![None; values.len()];
        let mut choose = |register: usize| {
            let (own, other) = (values[register], partners[register]);
            let takes = match keeps_larger(register) {
                Truth::Known(true) => self.less(own, other),
                Truth::Known(false) => self.less(other, own),
                Truth::Of(condition) if exact => {
                    let known = if register & within == 0 { None } else { kept[register ^ within] };
                    let keeps = known.unwrap_or_else(|| e.xori(self.less(own, other), condition));
                    kept[register] = Some(keeps);
                    return e.select(keeps, own, other);
                }
                Truth::Of(condition) => e.select(condition, self.less(own, other), self.less(other, own)),
            };
            e.select(takes, other, own)
        };
        (0..values.len()).map(&mut choose).collect()
    }

    fn less(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let (e, elem) = (self.cx.e, self.elem);
        if elem.num().is_some_and(Scalar::is_fp8) {
            let single = |value| {
                let scalar = elem.num().unwrap_or(Scalar::F8E5);
                self.cx.cast_floats(&[value], scalar, Scalar::F32, rtc_ir::Rounding::NearestEven)[0]
            };
            return e.cmpf(Cmpf::Olt, single(a), single(b));
        }
        if elem.is_float() {
            return e.cmpf(Cmpf::Olt, a, b);
        }
        let (a, b) = if elem.is_ptr() { (e.ptrtoint(a, e.ty.i64), e.ptrtoint(b, e.ty.i64)) } else { (a, b) };
        e.cmpi(if self.signed { Cmpi::Slt } else { Cmpi::Ult }, a, b)
    }
}

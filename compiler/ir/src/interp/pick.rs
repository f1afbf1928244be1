//! Elements picked, counted and put in order.

use std::cmp::Ordering;

use super::FindingKind;
use super::machine::{Machine, Stop};
use super::shape::around;
use crate::ops::eval::{decode, sign_extend};
use crate::{Elem, Op, Type, view};

impl Machine<'_> {
    /// `gather`; an index out of range gives 0.
    pub(crate) fn gather(&mut self, op: Op, axis: usize) -> Result<(), Stop> {
        let kernel = self.kernel;
        let gather = view::Gather::at(kernel, op);
        let (source_ty, index_ty) = (kernel.value_type(gather.source()), kernel.value_type(gather.index()));
        let (source, index) = (self.elements(gather.source())?, self.elements(gather.index())?);
        self.tick(index.len())?;
        let elem = index_ty.elem().unwrap_or(Elem::I32);
        let (_, size, after) = around(source_ty, axis);
        let (_, rows, _) = around(index_ty, axis);
        let mut out = Vec::with_capacity(index.len());
        for (i, bits) in index.iter().enumerate() {
            let wanted = sign_extend(*bits, elem);
            let (row, column) = (i / (rows * after), i % after);
            match usize::try_from(wanted).ok().filter(|w| *w < size) {
                Some(wanted) => out.push(source[(row * size + wanted) * after + column]),
                None => {
                    self.find(op, FindingKind::IndexOutOfRange { index: wanted }, Type::Scalar(elem), i);
                    out.push(0);
                }
            }
        }
        let placed = self.place(self.result_type(op), out);
        self.set_result(op, placed);
        Ok(())
    }

    /// `histogram`; values out of range do not count.
    pub(crate) fn histogram(&mut self, op: Op, bins: u32) -> Result<(), Stop> {
        let kernel = self.kernel;
        let source = view::Histogram::at(kernel, op).source();
        let elem = kernel.value_type(source).elem().unwrap_or(Elem::I32);
        let values = self.elements(source)?;
        let mask = match view::Histogram::at(kernel, op).mask() {
            Some(mask) => Some(self.elements(mask)?),
            None => None,
        };
        self.tick(values.len())?;
        let mut counts = vec![0u64; bins as usize];
        for (i, bits) in values.iter().enumerate() {
            if mask.as_ref().is_some_and(|m| m[i] & 1 == 0) {
                continue;
            }
            match counts.get_mut(*bits as usize) {
                Some(count) => *count += 1,
                None => {
                    let index = sign_extend(*bits, elem);
                    self.find(op, FindingKind::IndexOutOfRange { index }, Type::Scalar(elem), i);
                }
            }
        }
        let placed = self.place(self.result_type(op), counts);
        self.set_result(op, placed);
        Ok(())
    }

    /// `sort`: the last axis, numbers before NaN when ascending.
    pub(crate) fn sort(&mut self, op: Op, descending: bool, signed: bool) -> Result<(), Stop> {
        let source = view::Sort::at(self.kernel, op).source();
        let ty = self.kernel.value_type(source);
        let elem = ty.elem().unwrap_or(Elem::I32);
        let mut elements = self.elements(source)?.to_vec();
        self.tick(elements.len())?;
        let row = ty.shape().and_then(|s| s.last().copied()).unwrap_or(1) as usize;
        for row in elements.chunks_mut(row) {
            row.sort_by(|a, b| compare(*a, *b, elem, signed));
            if descending {
                row.reverse();
            }
        }
        let placed = self.place(self.result_type(op), elements);
        self.set_result(op, placed);
        Ok(())
    }
}

fn compare(a: u64, b: u64, elem: Elem, signed: bool) -> Ordering {
    match elem {
        Elem::Num(scalar) if scalar.is_float() => {
            let (a, b) = (decode(a, scalar), decode(b, scalar));
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        _ if signed => sign_extend(a, elem).cmp(&sign_extend(b, elem)),
        _ => a.cmp(&b),
    }
}

//! Row vectors whose elements lie anywhere, such as scales of rows that are taken modulo a size: threads of the producer
//! compute the addresses and copy each element, several iterations before the consumer reads it.
//!
//! ```text
//! %s = load %p : tile<128xf32, #l>   →   producer:   copy_async from %p in a layout of its own, into a slot of a ring;
//!                                                    copy_arrive
//!                                        consumer:   %s = local_load of the slot
//! ```
//!
//! The addresses must follow from scalars by operations on each element alone, so that the producer can compute them without
//! the consumer's threads.

use std::collections::HashSet;

use rtc_ir::{Builder, Kernel, Op, OpKind, Traits, Value, constant_bits, regions, view};
use rtc_layout::Layout;

use crate::PassError;
use crate::access::addresses::{Memory, memory};
use crate::pass::missing;

/// The most elements of a row: eight addresses in a thread of the producer.
pub(super) const MOST_ELEMENTS: u64 = 256;

/// A row, by the addresses that the load in the loop has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScatteredRow {
    pointer: Value,
    mask: Option<Value>,
}

/// The row that an operation loads, if it is one.
pub(super) fn row(kernel: &Kernel, load: Op) -> Option<ScatteredRow> {
    let OpKind::Load { volatile: false, .. } = kernel.kind(load) else { return None };
    let (ty, load) = (kernel.value_type(kernel.result(load, 0)), view::Load::at(kernel, load));
    let (pointer, mask) = (load.pointer(), load.mask());
    let (shape, elem) = (ty.shape()?, ty.elem()?.num()?);
    // Copies are of 4 or 8 bytes, and give zeros where the mask is false.
    let copied =
        matches!(elem.bits(), 32 | 64) && load.other().is_none_or(|other| constant_bits(kernel, other) == Some(0));
    (shape.rank() == 1 && shape.numel() <= MOST_ELEMENTS && copied).then_some(())?;
    let row = ScatteredRow { pointer, mask };
    row.slice(kernel).map(|_| row)
}

impl ScatteredRow {
    /// Whether nothing that it depends on, nor it, is in memory that the kernel writes.
    pub fn is_unchanged(&self, kernel: &Kernel, written: &HashSet<Memory>) -> bool {
        let reads = |pointer: Value| memory(kernel, pointer).is_some_and(|read| !written.contains(&read));
        let loads = self.slice(kernel).map(|slice| slice.loads);
        reads(self.pointer)
            && loads.is_some_and(|loads| loads.iter().all(|load| reads(view::Load::at(kernel, *load).pointer())))
    }

    /// The same values by other names.
    pub fn renamed(&self, name: impl Fn(Value) -> Value) -> ScatteredRow {
        ScatteredRow { pointer: name(self.pointer), mask: self.mask.map(name) }
    }

    /// Computes the addresses in a layout for so many warps, of which each thread has as few as can be, and copies what is
    /// there to a buffer.
    pub fn copy(self, kernel: &mut Kernel, before: Op, buffer: Value, warps: u32) -> Result<(), PassError> {
        let slice = self.slice(kernel).ok_or_else(|| missing("the addresses of a row"))?;
        Builder::before(kernel, before).build(
            OpKind::CopyAsync { vector: 1 },
            &[self.pointer, buffer],
            &[self.mask],
            &[],
            &[],
            &[],
        )?;
        for value in slice.tiles {
            let ty = kernel.value_type(value);
            let Some(elements) = ty.shape().map(|shape| shape.numel() as u32) else { continue };
            let layout = kernel.intern_layout(Layout::blocked(&[elements], &[1], &[32], &[warps], &[0]));
            kernel.set_type(value, ty.with_layout(Some(layout)));
        }
        for conversion in slice.conversions {
            let source = view::ConvertLayout::at(kernel, conversion).source();
            kernel.replace_op(conversion, source);
        }
        Ok(())
    }

    /// What it follows from; `None` if something works on more than each element alone.
    fn slice(&self, kernel: &Kernel) -> Option<Slice> {
        let mut slice = Slice::default();
        let mut work: Vec<Value> = [self.pointer].into_iter().chain(self.mask).collect();
        let mut seen = HashSet::new();
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(shape) = kernel.value_type(value).shape() {
                (shape.rank() == 1).then_some(())?;
                slice.tiles.push(value);
            }
            if let Some(slot) = regions::slot_of(kernel, value) {
                work.extend(&slot.targets);
                work.extend(slot.values(kernel));
            } else if let Some(op) = kernel.def_op(value) {
                slice.add(kernel, op)?;
                work.extend(&kernel.op(op).operands);
            }
        }
        Some(slice)
    }
}

/// Whether an operation is one that addresses may follow from.
pub(crate) fn works_on_each(kernel: &Kernel, op: Op) -> bool {
    Slice::default().add(kernel, op).is_some()
}

/// What addresses follow from.
#[derive(Default)]
struct Slice {
    /// All tiles, of one dimension each.
    tiles: Vec<Value>,
    /// Changes of layout.
    conversions: Vec<Op>,
    /// Loads, which are of scalars.
    loads: Vec<Op>,
}

impl Slice {
    fn add(&mut self, kernel: &Kernel, op: Op) -> Option<()> {
        let data = kernel.op(op);
        let is_tile = |value: &Value| kernel.value_type(*value).shape().is_some();
        let on_each = match data.kind {
            OpKind::ConvertLayout {} => {
                self.conversions.push(op);
                true
            }
            OpKind::Load { volatile, .. } => {
                self.loads.push(op);
                !volatile && !data.results.iter().any(is_tile)
            }
            OpKind::Splat {} | OpKind::Arange { .. } | OpKind::Constant { .. } => true,
            ref kind if kernel.only_computes(op) => {
                kind.spec().traits.has(Traits::ELEMENTWISE) || !data.operands.iter().chain(&data.results).any(is_tile)
            }
            _ => false,
        };
        on_each.then_some(())
    }
}

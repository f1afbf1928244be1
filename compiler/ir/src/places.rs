//! Which memory a buffer or barrier is.

use std::ops::Range;

use crate::{BARRIER_BYTES, Kernel, Op, OpKind, Value, constant_bits, place_bytes, view};

impl Kernel {
    /// The bytes from one slot of a ring to the next.
    fn stride(&self, ring: Value) -> u64 {
        self.value_type(ring).as_shared().map_or(BARRIER_BYTES.into(), |ring| ring.slot_stride())
    }

    /// The allocation behind a value of type `Shared` or `Barrier`: slots and views are followed back to it. `None` for
    /// other values.
    pub fn allocation(&self, value: Value) -> Option<Op> {
        self.extent(value).map(|(op, _)| op)
    }

    /// The allocation behind a value of type `Shared` or `Barrier`, and the bytes of it that the value may refer to:
    /// all of them if a slot is known only at run time.
    pub fn extent(&self, value: Value) -> Option<(Op, Range<u64>)> {
        let op = self.def_op(value)?;
        let ty = self.value_type(value);
        let size = place_bytes(ty);
        if matches!(self.kind(op), OpKind::AllocShared { .. } | OpKind::AllocBarriers { .. }) {
            return Some((op, 0..size));
        }
        if !ty.is_place() {
            return None;
        }
        // A view is made of its first operand.
        let source = *self.op(op).operands.first()?;
        let (made, whole) = self.extent(source)?;
        if whole.end - whole.start != place_bytes(self.value_type(source)) {
            // Which slot the source is is not known.
            return Some((made, whole));
        }
        let start = match self.kind(op) {
            OpKind::Slot {} => match constant_bits(self, view::Slot::at(self, op).index()) {
                Some(index) => u64::from(index as u32) * self.stride(source),
                None => return Some((made, whole)),
            },
            OpKind::SharedSlice { offsets, shape } => {
                let source = self.value_type(source).as_shared()?;
                let (start, _) = self.slot_layout(source).slice(offsets, shape)?;
                u64::from(start) * u64::from(source.elem.bytes())
            }
            OpKind::SharedView {} | OpKind::CopyAwait {} => 0,
            _ => return Some((made, whole)),
        };
        Some((made, whole.start + start..whole.start + start + size))
    }
}

//! Operations on buffers and barriers in shared memory.

use std::rc::Rc;

use super::FaultKind;
use super::machine::{Machine, Stop};
use super::shared::{BufferId, SharedError, SlotId};
use super::value::Data;
use crate::{Op, SharedType, Type, Value, view};

/// Slots of a buffer, or a part of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferView {
    buffer: BufferId,
    /// The first slot.
    first: usize,
    /// Where in a slot the part begins.
    start: u32,
}

impl Machine<'_> {
    pub(crate) fn alloc_shared(&mut self, op: Op) -> Result<(), Stop> {
        if let Type::Shared(ty) = self.result_type(op) {
            let buffer = self.shared.alloc_for(op, ty.shape.numel() as usize, ty.slots as usize);
            self.set_result(op, Data::Buffer(BufferView { buffer, first: 0, start: 0 }));
        }
        self.tick(1)
    }

    pub(crate) fn alloc_barriers(&mut self, op: Op, count: u32) -> Result<(), Stop> {
        if let Type::Barrier { slots } = self.result_type(op) {
            let ring = self.shared.alloc_barriers(slots as usize);
            for index in 0..slots {
                let barrier = self.shared.barrier(ring, index.into());
                let set = barrier.and_then(|barrier| self.shared.init(barrier, count));
                set.map_err(|error| self.stop(FaultKind::Shared(error)))?;
            }
            self.set_result(op, Data::Barriers(ring));
        }
        self.tick(1)
    }

    pub(crate) fn slot(&mut self, op: Op) -> Result<(), Stop> {
        let slot_of = view::Slot::at(self.kernel, op);
        let (ring, index) = (slot_of.buffer(), slot_of.index());
        let index = i64::from(self.scalar(index) as i32);
        let slots = self.kernel.value_type(ring).as_shared().map_or(0, |ty| ty.slots as usize);
        let chosen = match self.get(ring) {
            Data::Buffer(view) => match usize::try_from(index).ok().filter(|i| *i < slots) {
                Some(i) => Ok(Data::Buffer(BufferView { first: view.first + i, ..view })),
                None => Err(SharedError::Slot { index, slots }),
            },
            Data::Barriers(ring) => ring.one(index).map(Data::Barriers),
            other => Ok(other),
        };
        let chosen = chosen.map_err(|error| self.stop(FaultKind::Shared(error)))?;
        self.set_result(op, chosen);
        self.tick(1)
    }

    pub(crate) fn shared_again(&mut self, op: Op) -> Result<(), Stop> {
        // The layout of the new type says where the elements are now.
        let Some(buffer) = self.kernel.buffer(op) else { return Ok(()) };
        let same = self.get(buffer);
        self.set_result(op, same);
        self.tick(1)
    }

    pub(crate) fn shared_slice(&mut self, op: Op, offsets: &[u32], shape: &[u32]) -> Result<(), Stop> {
        let source = view::SharedSlice::at(self.kernel, op).buffer();
        if let (Data::Buffer(view), Type::Shared(ty)) = (self.get(source), self.kernel.value_type(source)) {
            let part = self.kernel.slot_layout(ty).slice(offsets, shape);
            let start = view.start + part.map_or(0, |(start, _)| start);
            self.set_result(op, Data::Buffer(BufferView { start, ..view }));
        }
        self.tick(1)
    }

    pub(crate) fn local_store(&mut self, op: Op) -> Result<(), Stop> {
        let store = view::LocalStore::at(self.kernel, op);
        let (value, buffer) = (store.value(), store.buffer());
        let elements = self.elements(value)?;
        if let Some((slot, at)) = self.positions(buffer)? {
            self.store_shared(self.kernel.value_type(value), slot, &at, &elements)?;
        }
        self.tick(elements.len())
    }

    pub(crate) fn local_load(&mut self, op: Op) -> Result<(), Stop> {
        let ty = self.result_type(op);
        let mut elements = Vec::new();
        if let Some((slot, at)) = self.positions(view::LocalLoad::at(self.kernel, op).buffer())? {
            elements = self.load_shared(op, ty, slot, &at)?;
        }
        let steps = elements.len();
        let loaded = self.place(ty, elements);
        self.set_result(op, loaded);
        self.tick(steps)
    }

    /// The slot of a buffer value with one slot, and the position in it of each element of the tile, in row-major
    /// order.
    pub(crate) fn positions(&mut self, value: Value) -> Result<Option<(SlotId, Vec<u32>)>, Stop> {
        let (Data::Buffer(view), Type::Shared(ty)) = (self.get(value), self.kernel.value_type(value)) else {
            return Ok(None);
        };
        let slot = self.shared.slot(view.buffer, view.first as i64);
        let slot = slot.map_err(|error| self.stop(FaultKind::Shared(error)))?;
        let at = self.offsets(ty).iter().map(|offset| view.start + offset).collect();
        Ok(Some((slot, at)))
    }

    /// Where in a slot the elements of a tile lie.
    fn offsets(&mut self, ty: SharedType) -> Rc<Vec<u32>> {
        let Some(id) = ty.layout else { return Rc::new((0..ty.shape.numel() as u32).collect()) };
        let kernel = self.kernel;
        // The verifier has seen that the layout leaves nothing out.
        let made = || Rc::new(kernel.shared_layout(id).offsets().unwrap_or_default());
        self.offsets.entry(id).or_insert_with(made).clone()
    }
}

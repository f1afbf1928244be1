//! Buffers and barriers in shared memory: a value of these types is an address.

use rtc_abi::Feature;
use rtc_ir::{BARRIER_BYTES, Op, SharedType, view};
use rtc_layout::{SharedAccess as TileAccess, SharedLayout};

use super::{Lowering, SHARED_SYMBOL};
use crate::{
    emit::{Space, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn alloc_shared(&self, op: Op, offset: Option<u32>) -> Result<()> {
        let base = self.shared_place(op, offset)?;
        self.define(op, vec![base]);
        Ok(())
    }

    /// The first thread of the block initializes the barriers. A barrier of the block, which is in the IR, makes that
    /// visible to the others.
    pub(super) fn alloc_barriers(&self, op: Op, count: u32, offset: Option<u32>) -> Result<()> {
        let base = self.shared_place(op, offset)?;
        let e = self.e;
        let rtc_ir::Type::Barrier { slots } = self.kernel.value_type(self.kernel.result(op, 0)) else {
            return Err(CodegenError::lowering("`alloc_barriers` of another type"));
        };
        let set_up = || {
            for slot in 0..slots {
                let address = e.constant_offset(base, (slot * BARRIER_BYTES) as i32);
                e.intrinsic_effect("llvm.nvvm.mbarrier.init.shared", &[address, e.i32(count as i32)]);
            }
            if self.target.has(Feature::Tma) {
                e.fence_barrier_init();
            }
            Ok::<_, CodegenError>(Vec::new())
        };
        match self.thread_bits_clear(u32::MAX) {
            Some(first) => drop(e.if_else(first, &[], set_up, || Ok(Vec::new()))?),
            None => drop(set_up()?),
        }
        self.define(op, vec![base]);
        Ok(())
    }

    pub(super) fn slot(&self, op: Op) -> Result<()> {
        let slot = view::Slot::at(self.kernel, op);
        let (ring, index) = (slot.buffer(), slot.index());
        let bytes = match self.kernel.value_type(ring).as_shared() {
            Some(shared) => shared.slot_stride() as i32,
            None => BARRIER_BYTES as i32,
        };
        let e = self.e;
        let address = e.byte_offset(self.scalar(ring)?, e.muli(self.scalar(index)?, e.i32(bytes)));
        self.define(op, vec![address]);
        Ok(())
    }

    /// The memory stays as it is; the type says what it means.
    pub(super) fn shared_again(&self, op: Op) -> Result<()> {
        let missing = || CodegenError::lowering("a view of no buffer");
        let buffer = self.kernel.buffer(op).ok_or_else(missing)?;
        let address = self.scalar(buffer)?;
        self.define(op, vec![address]);
        Ok(())
    }

    pub(super) fn shared_slice(&self, op: Op, offsets: &[u32], shape: &[u32]) -> Result<()> {
        let source = view::SharedSlice::at(self.kernel, op).buffer();
        let (ty, layout) = self.slot_layout(source)?;
        let (start, _) = layout
            .slice(offsets, shape)
            .ok_or_else(|| CodegenError::lowering("`shared_slice` of a part that does not lie in one piece"))?;
        let address = self.e.constant_offset(self.scalar(source)?, (start * ty.elem.bytes()) as i32);
        self.define(op, vec![address]);
        Ok(())
    }

    pub(super) fn local_store(&self, op: Op) -> Result<()> {
        let store = view::LocalStore::at(self.kernel, op);
        let (value, buffer) = (store.value(), store.buffer());
        let (ty, shared) = self.slot_layout(buffer)?;
        let matrices = self.matrix_instructions().store;
        let access = TileAccess::best(&shared, self.layout(value)?, ty.elem.bytes() * 8, matrices, true);
        let (base, registers) = (self.scalar(buffer)?, self.get(value)?);
        // Warps with copies would store the same elements again.
        let store = || self.store_tile(base, &access, ty.elem, &registers);
        match self.thread_bits_clear(self.layout(value)?.copies().warps << 5) {
            Some(holds) => self.e.if_then(holds, store),
            None => store(),
        }
        Ok(())
    }

    pub(super) fn local_load(&self, op: Op) -> Result<()> {
        let (buffer, result) = (view::LocalLoad::at(self.kernel, op).buffer(), self.kernel.result(op, 0));
        let (ty, shared) = self.slot_layout(buffer)?;
        let matrices = self.matrix_instructions().load;
        let access = TileAccess::best(&shared, self.layout(result)?, ty.elem.bytes() * 8, matrices, false);
        let loaded = self.load_tile(self.scalar(buffer)?, &access, ty.elem);
        self.define(op, loaded);
        Ok(())
    }

    /// The type of a buffer, and where the elements of a slot of it lie.
    pub(super) fn slot_layout(&self, buffer: rtc_ir::Value) -> Result<(SharedType, SharedLayout)> {
        let ty = self.kernel.value_type(buffer);
        let shared = ty.as_shared().ok_or_else(|| CodegenError::lowering(format!("a buffer of type {ty}")))?;
        Ok((shared, self.kernel.slot_layout(shared).into_owned()))
    }

    /// The address that an allocation was given.
    fn shared_place(&self, op: Op, offset: Option<u32>) -> Result<Value<'c>> {
        let offset = offset.ok_or_else(|| {
            CodegenError::lowering(format!("`{}` without a place", self.kernel.op(op).kind.spec().mnemonic))
        })?;
        let e = self.e;
        Ok(e.in_prologue(|| e.constant_offset(e.address_of(SHARED_SYMBOL, Space::Shared), offset as i32)))
    }
}

//! Tensor maps that a kernel makes, each in places of its own in the block's scratch memory.

use rtc_ir::{MAP_BYTES, Op, Scalar, Type, view};

use super::Lowering;
use crate::{
    emit::{AccessAttrs, MapFields, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    /// `make_map`: the first warp makes it, and its first thread is the one that copies by it.
    pub(super) fn make_map(&self, op: Op, nan: bool, tf32: bool, later: bool) -> Result<()> {
        let (e, kernel) = (self.e, self.kernel);
        let none = || CodegenError::lowering("a tensor map without a tensor");
        let Type::Desc(desc) = kernel.value_type(kernel.result(op, 0)) else { return Err(none()) };
        let (sizes, strides) = kernel.variadic(op).split_at(desc.shape.rank());
        let size = |value: &rtc_ir::Value| Ok(e.maxsi(self.scalar(*value)?, e.i32(1)));
        let stride = |value: &rtc_ir::Value| Ok(e.muli(self.scalar(*value)?, e.i64(desc.elem.bytes().into())));
        let fields = MapFields {
            base: self.scalar(view::MakeMap::at(self.kernel, op).base())?,
            sizes: sizes.iter().rev().map(size).collect::<Result<_>>()?,
            strides: strides.iter().rev().map(stride).collect::<Result<_>>()?,
            shape: desc.shape.iter().rev().copied().collect(),
            element: element(desc.elem, tf32).ok_or_else(none)?,
            swizzle: if desc.swizzle == 0 { 0 } else { desc.swizzle.ilog2() - 4 },
            nan,
        };
        let made = self.scratch(op)?;
        let place = self.map_place(op)?;
        let lane = e.andi(self.thread(), e.i32(31));
        let word = e.byte_offset(made, e.muli(lane, e.i32(4)));
        self.when(self.thread_bits_clear(!31), || {
            e.store(e.i32(0), word, AccessAttrs { align: 4, ..AccessAttrs::default() });
            e.warp_barrier();
            e.fill_map(self.leader(), made, &fields);
            e.warp_barrier();
            e.publish_map(place, made);
            if !later {
                e.acquire_map(place);
            }
        });
        self.barrier();
        self.define(op, vec![place]);
        Ok(())
    }

    /// Where the map that an operation makes lies in global memory.
    fn map_place(&self, op: Op) -> Result<Value<'c>> {
        let lost = || CodegenError::lowering("a kernel without scratch memory");
        let (e, maps) = (self.e, self.kernel.maps());
        let scratch = self.global_scratch.ok_or_else(lost)?;
        let number = maps.iter().find(|(other, _)| *other == op).map(|(_, places)| places.start).ok_or_else(lost)?;
        let first = e.in_prologue(|| {
            let [x, y, z] = ["ctaid.x", "ctaid.y", "ctaid.z"].map(|name| e.special_register(name));
            let [nx, ny] = ["nctaid.x", "nctaid.y"].map(|name| e.special_register(name));
            let block = e.addi(e.muli(e.addi(e.muli(z, ny), y), nx), x);
            let bytes = e.muli(e.extui(block, e.ty.i64), e.i64(self.kernel.global_scratch_bytes().into()));
            let place = e.constant_offset(e.byte_offset(scratch, bytes), (number * MAP_BYTES) as i32);
            e.value("llvm.addrspacecast", &[place], e.ty.generic, &[])
        });
        Ok(match view::MakeMap::at(self.kernel, op).turn() {
            Some(turn) => e.byte_offset(first, e.muli(self.scalar(turn)?, e.i32(MAP_BYTES as i32))),
            None => first,
        })
    }

    /// `await_map`: for the thread that copies.
    pub(super) fn await_map(&self, op: Op) -> Result<()> {
        let place = self.scalar(view::AwaitMap::at(self.kernel, op).desc())?;
        self.when(Some(self.leader()), || self.e.acquire_map(place));
        Ok(())
    }

    /// `no_map`.
    pub(super) fn no_map(&self, op: Op) -> Result<()> {
        self.define(op, vec![self.e.zero(self.e.ty.generic)]);
        Ok(())
    }
}

/// The number of an element's type for `tensormap.replace`; floats of 8 bits are bytes.
fn element(scalar: Scalar, tf32: bool) -> Option<u32> {
    Some(match scalar {
        Scalar::I1 => return None,
        Scalar::I8 | Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => 0,
        Scalar::I16 => 1,
        Scalar::I32 => 2,
        Scalar::I64 => 4,
        Scalar::F16 => 6,
        Scalar::F32 if tf32 => 11,
        Scalar::F32 => 7,
        Scalar::F64 => 9,
        Scalar::BF16 => 10,
    })
}

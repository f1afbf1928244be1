//! Asynchronous copies, of elements by each thread and of tiles by tensor maps, and barriers.

use rtc_abi::Feature;
use rtc_ir::{Op, RmwOp, Type, view};

use super::Lowering;
use crate::{
    emit::{BulkReduction, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    /// `copy_async`: each thread copies the elements of its pointers, `vector` elements at a time; where several threads have
    /// an element, one of them.
    pub(super) fn copy_async(&self, op: Op, vector: u32) -> Result<()> {
        let copy = view::CopyAsync::at(self.kernel, op);
        let e = self.e;
        let (pointer, buffer) = (copy.pointer(), copy.buffer());
        let (pointers, mask) = (self.get(pointer)?, self.present(copy.mask())?);
        let (layout, (ty, shared)) = (self.layout(pointer)?, self.slot_layout(buffer)?);
        let size = ty.elem.bytes();
        let place = |index: u32| shared.offset_of(index).unwrap_or(0) * size;
        let (base, spot) = (self.scalar(buffer)?, self.layout_spot(layout, place));
        let holder = self.holders(pointer)?.thread;
        for first in (0..pointers.len()).step_by(vector as usize) {
            let to = self.shared_address(base, spot, place(layout.index(first as u32, 0, 0)));
            let bytes = (vector * size) as i32;
            let read = mask.as_ref().map(|mask| e.select(mask[first], e.i32(bytes), e.i32(0)));
            e.copy_async(holder, to, pointers[first], vector * size, read);
        }
        Ok(())
    }

    /// Whether the thread is the one that acts for those that run the current code. `ptxas` knows that one lane of a warp is
    /// elected, and issues copies of tiles once instead of in a loop over the lanes.
    pub(super) fn leader(&self) -> Value<'c> {
        let (e, threads) = (self.e, self.threads());
        *threads.leader.get_or_init(|| {
            if !self.target.has(Feature::Tma) {
                return self.thread_bits_clear(u32::MAX).unwrap_or_else(|| e.bool(true));
            }
            let first = self.thread_bits_clear(!31);
            e.in_prologue(|| first.map_or_else(|| e.elected(), |first| e.andi(first, e.elected())))
        })
    }

    pub(super) fn barrier_expect(&self, op: Op, bytes: u32) -> Result<()> {
        let expected = view::BarrierExpect::at(self.kernel, op);
        let all = self.e.i32(bytes as i32);
        let bytes = match expected.fewer() {
            Some(fewer) => self.e.subi(all, self.scalar(fewer)?),
            None => all,
        };
        self.e.barrier_expect(self.leader(), self.scalar(expected.barrier())?, bytes);
        Ok(())
    }

    /// One arrival for each warp, after all that its lanes did.
    pub(super) fn barrier_arrive(&self, op: Op) -> Result<()> {
        let first = self.thread_bits_clear(31).unwrap_or_else(|| self.e.bool(true));
        self.e.warp_barrier();
        self.e.barrier_arrive(first, self.scalar(view::BarrierArrive::at(self.kernel, op).barrier())?);
        Ok(())
    }

    /// One arrival for each thread, after its copies.
    pub(super) fn copy_arrive(&self, op: Op) -> Result<()> {
        self.e.copy_arrive(self.scalar(view::CopyArrive::at(self.kernel, op).barrier())?);
        Ok(())
    }

    pub(super) fn barrier_wait(&self, op: Op) -> Result<()> {
        let wait = view::BarrierWait::at(self.kernel, op);
        let (barrier, parity) = (wait.barrier(), wait.parity());
        self.e.barrier_wait(self.scalar(barrier)?, self.e.andi(self.scalar(parity)?, self.e.i32(1)));
        Ok(())
    }

    pub(super) fn copy_bulk(&self, op: Op) -> Result<()> {
        let copy = view::CopyBulk::at(self.kernel, op);
        let (to, from, barrier) =
            (self.scalar(copy.buffer())?, self.scalar(copy.pointer())?, self.scalar(copy.barrier())?);
        let (ty, _) = self.slot_layout(copy.buffer())?;
        let bytes = ty.shape.numel() as u32 * ty.elem.bytes();
        self.e.bulk_copy(self.leader(), to, from, bytes, barrier);
        Ok(())
    }

    pub(super) fn copy_desc(&self, op: Op) -> Result<()> {
        let copy = view::CopyDesc::at(self.kernel, op);
        let (to, desc, barrier) =
            (self.scalar(copy.buffer())?, self.scalar(copy.desc())?, self.scalar(copy.barrier())?);
        self.e.bulk_load(self.leader(), to, desc, &self.coordinates(op)?, barrier);
        Ok(())
    }

    /// A copy to a tensor, of one box or several, is a group of its own.
    pub(super) fn copy_desc_store(&self, op: Op, reduction: Option<RmwOp>) -> Result<()> {
        let missing = || CodegenError::lowering("a copy to a tensor without its operands");
        let (desc, buffer) = self.kernel.desc(op).zip(self.kernel.buffer(op)).ok_or_else(missing)?;
        let Type::Desc(boxes) = self.kernel.value_type(desc) else { return Err(missing()) };
        let reduction = reduction.map(bulk_reduction).transpose()?;
        let (e, at) = (self.e, self.coordinates(op)?);
        let (map, from) = (self.scalar(desc)?, self.scalar(buffer)?);
        let (ty, layout) = self.slot_layout(buffer)?;
        e.if_then(self.leader(), || {
            for part in boxes.parts(&ty.shape) {
                let place = layout.offset(part[..].into()).unwrap_or(0) * ty.elem.bytes();
                // Coordinates have the innermost first.
                let moved = at.iter().enumerate().map(|(axis, at)| match part.iter().rev().nth(axis) {
                    Some(by) if *by != 0 => e.addi(*at, e.i32(*by as i32)),
                    _ => *at,
                });
                e.bulk_store(map, &moved.collect::<Vec<_>>(), e.constant_offset(from, place as i32), reduction);
            }
            e.bulk_commit();
        });
        Ok(())
    }

    /// The coordinates of a box, innermost first, as tensor maps have them.
    fn coordinates(&self, op: Op) -> Result<Vec<Value<'c>>> {
        self.kernel.variadic(op).iter().rev().map(|value| self.scalar(*value)).collect()
    }
}

fn bulk_reduction(op: RmwOp) -> Result<BulkReduction> {
    match op {
        RmwOp::Add | RmwOp::FAdd => Ok(BulkReduction::Add),
        // The map says whether integers have a sign.
        RmwOp::Min | RmwOp::UMin | RmwOp::FMin => Ok(BulkReduction::Min),
        RmwOp::Max | RmwOp::UMax | RmwOp::FMax => Ok(BulkReduction::Max),
        RmwOp::And => Ok(BulkReduction::And),
        RmwOp::Or => Ok(BulkReduction::Or),
        RmwOp::Xor => Ok(BulkReduction::Xor),
        RmwOp::Xchg => Err(CodegenError::lowering(format!("a copy of a tile that combines by `{op}`"))),
    }
}

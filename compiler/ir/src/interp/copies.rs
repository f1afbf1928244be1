//! Asynchronous copies, of elements by pointers and of tiles by tensor descriptors; barriers; waits.

use std::collections::VecDeque;
use std::rc::Rc;

use super::atomics::modify;
use super::machine::{Machine, Stop};
use super::scheduler::Wait;
use super::shared::{BarrierId, CopyId, Start};
use super::value::Data;
use super::{DescArg, FaultKind};
use crate::ops::eval::encode;
use crate::{DescType, Elem, Op, OpKind, RmwOp, Rounding, Scalar, Type, Value, view};

/// The asynchronous operations that a warp group has started and not waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// Copies of elements since the last `copy_commit`.
    open: Vec<CopyId>,
    /// Groups of them, oldest first.
    groups: VecDeque<Vec<CopyId>>,
    /// How many groups are complete.
    complete_groups: u64,
    /// Copies of tiles from shared memory that may not have read their buffers, oldest first.
    stores: VecDeque<CopyId>,
    /// The writes of such copies that are in flight, oldest first.
    writes: VecDeque<TileWrite>,
    /// Tensor maps that were made and not waited for.
    maps: Vec<Rc<DescArg>>,
    /// The reads of dots in flight, oldest first.
    pub(super) mmas: VecDeque<Vec<CopyId>>,
    /// How many dots are complete.
    pub(super) complete: u64,
}

impl Pending {
    /// Whether a dot was ever in flight.
    pub(super) fn has_dots(&self) -> bool {
        self.complete > 0 || !self.mmas.is_empty()
    }
}

/// The global memory that a tile copy writes.
#[derive(Clone, Debug)]
struct TileWrite {
    op: Op,
    ty: DescType,
    reduction: Option<RmwOp>,
    /// For each element inside of the tensor its address, its index in the box, its bits.
    elements: Vec<(u64, usize, u64)>,
}

/// Addresses and sizes of bulk copies are multiples of so many bytes.
const BULK: u64 = 16;

/// A box of a tensor: for each element in row-major order its address, or `None` outside of the tensor.
type Addresses = Vec<Option<u64>>;

impl Machine<'_> {
    /// The mark of what an operation starts.
    pub(super) fn start(&self, op: Op) -> Start {
        let data = self.kernel.op(op);
        Start { op: data.kind.spec().mnemonic, span: self.spans(data.loc).first().copied() }
    }

    /// Runs an asynchronous copy or an operation on its barrier or group.
    pub(super) fn asynchronous(&mut self, op: Op) -> Result<(), Stop> {
        match *self.kernel.kind(op) {
            OpKind::CopyAsync { .. } => self.copy_async(op),
            OpKind::CopyCommit {} => self.copy_commit(),
            OpKind::CopyGroup {} => self.copy_group(op),
            OpKind::CopyAwait {} => self.copy_await(op),
            OpKind::CopyWait { pending } => self.copy_wait(pending),
            OpKind::BarrierExpect { bytes } => self.barrier_expect(op, bytes),
            OpKind::BarrierArrive {} => self.barrier_arrive(op),
            OpKind::CopyArrive {} => self.copy_arrive(op),
            OpKind::BarrierWait {} => self.barrier_wait(op),
            OpKind::CopyBulk {} => self.copy_bulk(op),
            OpKind::MakeMap { nan, tf32, later } => self.make_map(op, nan, tf32, later),
            OpKind::AwaitMap {} => {
                if let Data::Desc(made) = self.get(view::AwaitMap::at(self.kernel, op).desc()) {
                    self.group.pending.maps.retain(|other| !Rc::ptr_eq(other, &made));
                }
                self.tick(1)
            }
            OpKind::NoMap {} => {
                self.set_result(op, Data::Nothing);
                self.tick(1)
            }
            OpKind::CopyDesc {} => self.copy_desc(op),
            OpKind::CopyDescStore {} => self.copy_desc_store(op, None),
            OpKind::CopyDescReduce { op: rmw } => self.copy_desc_store(op, Some(rmw)),
            OpKind::CopyDescWait { pending, read } => self.copy_desc_wait(pending, read),
            OpKind::FenceAsync {} => {
                self.shared.fence();
                self.tick(1)
            }
            // All others have an arm in `Machine::op` or say in their row what they compute; a test walks the table.
            ref other => {
                let message = format!("the row of `{}` lacks its evaluation", other.spec().mnemonic);
                Err(self.stop(FaultKind::Unsupported(message)))
            }
        }
    }

    /// `copy_async`: the elements are taken now and arrive when they are waited for.
    fn copy_async(&mut self, op: Op) -> Result<(), Stop> {
        let copy = view::CopyAsync::at(self.kernel, op);
        let kernel = self.kernel;
        let (pointer, buffer) = (copy.pointer(), copy.buffer());
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (addresses, mask) = (self.get(pointer), copy.mask().map(|v| self.get(v)));
        let owners = self.owners(ty);
        self.tick(owners.len())?;
        let mut bits = Vec::with_capacity(owners.len());
        for slot in owners {
            let slot = slot as usize;
            let on = mask.as_ref().is_none_or(|mask| mask.slot(slot) & 1 != 0);
            bits.push(if on { self.read(op, ty, slot, addresses.slot(slot), scalar)? } else { 0 });
        }
        let Some(place) = self.positions(buffer)? else { return Ok(()) };
        let start = self.start(op);
        let copy = self.shared.start_write(place, bits, None, start).map_err(|refused| self.refuse(ty, refused))?;
        self.group.pending.open.push(copy);
        Ok(())
    }

    /// `copy_commit`.
    fn copy_commit(&mut self) -> Result<(), Stop> {
        let group = std::mem::take(&mut self.group.pending.open);
        self.group.pending.groups.push_back(group);
        self.tick(1)
    }

    /// `copy_wait`.
    fn copy_wait(&mut self, pending: u32) -> Result<(), Stop> {
        while self.group.pending.groups.len() > pending as usize {
            let group = self.group.pending.groups.pop_front().unwrap_or_default();
            self.group.pending.complete_groups += 1;
            self.complete_all(group)?;
        }
        self.tick(1)
    }

    /// `copy_group`.
    fn copy_group(&mut self, op: Op) -> Result<(), Stop> {
        self.copy_commit()?;
        let pending = &self.group.pending;
        let number = pending.complete_groups + pending.groups.len() as u64;
        self.set_result(op, Data::Group(number));
        Ok(())
    }

    /// `copy_await`: no earlier group stays in flight; the buffer is then there for all.
    fn copy_await(&mut self, op: Op) -> Result<(), Stop> {
        let number = |data: &Data| if let Data::Group(number) = data { *number } else { 0 };
        let last = self.all(self.kernel.variadic(op)).iter().map(number).max().unwrap_or(0);
        let begun = self.group.pending.complete_groups + self.group.pending.groups.len() as u64;
        self.copy_wait((begun - last) as u32)?;
        self.shared.fence();
        if let Some(buffer) = view::CopyAwait::at(self.kernel, op).buffer() {
            let buffer = self.get(buffer);
            self.set_result(op, buffer);
        }
        Ok(())
    }

    /// Completes copies.
    pub(super) fn complete_all(&mut self, copies: impl IntoIterator<Item = CopyId>) -> Result<(), Stop> {
        for copy in copies {
            self.shared.complete(copy).map_err(|error| self.stop(FaultKind::Shared(error)))?;
        }
        Ok(())
    }

    /// `barrier_expect`.
    fn barrier_expect(&mut self, op: Op, bytes: u32) -> Result<(), Stop> {
        let expected = view::BarrierExpect::at(self.kernel, op);
        let bytes = bytes.wrapping_sub(expected.fewer().map_or(0, |fewer| self.scalar(fewer) as u32));
        if let Some(barrier) = self.barrier_at(expected.barrier())? {
            let done = self.shared.expect_tx(barrier, bytes).and_then(|()| self.shared.arrive(barrier, 1));
            done.map_err(|error| self.stop(FaultKind::Shared(error)))?;
        }
        self.tick(1)
    }

    /// `barrier_arrive`: once for each warp.
    fn barrier_arrive(&mut self, op: Op) -> Result<(), Stop> {
        if let Some(barrier) = self.barrier_at(view::BarrierArrive::at(self.kernel, op).barrier())? {
            let warps = self.kernel.group_of(op).warps;
            self.shared.arrive(barrier, warps).map_err(|error| self.stop(FaultKind::Shared(error)))?;
        }
        self.tick(1)
    }

    /// `copy_arrive`: once for each thread; the phase also waits for their copies.
    fn copy_arrive(&mut self, op: Op) -> Result<(), Stop> {
        let copies = std::mem::take(&mut self.group.pending.open);
        if let Some(barrier) = self.barrier_at(view::CopyArrive::at(self.kernel, op).barrier())? {
            let threads = self.kernel.group_of(op).threads();
            let done = self.shared.announce(&copies, barrier).and_then(|()| self.shared.arrive(barrier, threads));
            done.map_err(|error| self.stop(FaultKind::Shared(error)))?;
        }
        self.tick(1)
    }

    /// `barrier_wait`.
    fn barrier_wait(&mut self, op: Op) -> Result<(), Stop> {
        let wait = view::BarrierWait::at(self.kernel, op);
        let parity = self.scalar(wait.parity()) as u32 & 1;
        if let Some(barrier) = self.barrier_at(wait.barrier())? {
            let done = self.shared.try_wait(barrier, parity).map_err(|error| self.stop(FaultKind::Shared(error)))?;
            if !done {
                self.wait_for(Wait::Phase { barrier, parity });
            }
        }
        self.tick(1)
    }

    fn barrier_at(&self, barrier: Value) -> Result<Option<BarrierId>, Stop> {
        let Data::Barriers(ring) = self.get(barrier) else { return Ok(None) };
        let barrier = self.shared.barrier(ring, 0);
        barrier.map(Some).map_err(|error| self.stop(FaultKind::Shared(error)))
    }

    /// `copy_bulk`: the elements are taken now and arrive with the barrier.
    fn copy_bulk(&mut self, op: Op) -> Result<(), Stop> {
        let copy = view::CopyBulk::at(self.kernel, op);
        let buffer = copy.buffer();
        let Some(ty) = self.kernel.value_type(buffer).as_shared() else { return Ok(()) };
        let (tile, scalar) = (Type::tile(ty.elem, ty.shape), ty.elem.num().unwrap_or(Scalar::I8));
        let (base, size) = (self.scalar(copy.pointer()), u64::from(ty.elem.bytes()));
        let count = ty.shape.numel();
        self.tick(count as usize)?;
        if !base.is_multiple_of(BULK) {
            return Err(self.stop(FaultKind::Misaligned { address: base, size: BULK as u32 }));
        }
        let mut bits = Vec::with_capacity(count as usize);
        for slot in 0..count {
            bits.push(self.read(op, tile, slot as usize, base.wrapping_add(slot * size), scalar)?);
        }
        let arrival = self.barrier_at(copy.barrier())?.map(|barrier| (barrier, (count * size) as u32));
        let Some(place) = self.positions(buffer)? else { return Ok(()) };
        let start = self.start(op);
        self.shared.start_write(place, bits, arrival, start).map_err(|refused| self.refuse(tile, refused))?;
        Ok(())
    }

    /// That the machine takes a map: what it is made of may be anything where no copy is by it.
    fn check_map(&self, ty: DescType, arg: &DescArg) -> Result<(), Stop> {
        if !arg.base.is_multiple_of(BULK) {
            return Err(self.stop(FaultKind::Misaligned { address: arg.base, size: BULK as u32 }));
        }
        for (axis, bytes) in arg.strides[..ty.shape.rank() - 1].iter().map(|bytes| *bytes as i64).enumerate() {
            if bytes < 0 || bytes % BULK as i64 != 0 {
                return Err(self.stop(FaultKind::Stride { bytes, axis }));
            }
        }
        Ok(())
    }

    /// `make_map`: what a map must not be is said of the copies by it.
    fn make_map(&mut self, op: Op, pads_nan: bool, rounds_tf32: bool, later: bool) -> Result<(), Stop> {
        let kernel = self.kernel;
        let Type::Desc(ty) = self.result_type(op) else { return Ok(()) };
        let base = self.scalar(view::MakeMap::at(kernel, op).base());
        let mut arg = DescArg { base, pads_nan, rounds_tf32, ..DescArg::default() };
        let (sizes, strides) = kernel.variadic(op).split_at(ty.shape.rank());
        for (axis, size) in sizes.iter().enumerate() {
            arg.shape[axis] = i64::from(self.scalar(*size) as i32).max(1) as u64;
        }
        for (axis, stride) in strides.iter().enumerate() {
            arg.strides[axis] = self.scalar(*stride).wrapping_mul(ty.elem.bytes().into());
        }
        let made = Rc::new(arg);
        if later {
            self.group.pending.maps.push(made.clone());
        }
        self.set_result(op, Data::Desc(made));
        self.tick(1)
    }

    /// `copy_desc`: elements outside of the tensor are zero; the barrier receives all bytes of the box.
    fn copy_desc(&mut self, op: Op) -> Result<(), Stop> {
        let Some((desc, arg, mut places)) = self.box_of(op)? else { return Ok(()) };
        let ty = Type::tile(desc.elem(), desc.shape);
        places.truncate(arg.copied(&desc));
        let mut bits = Vec::with_capacity(places.len());
        for (slot, address) in places.into_iter().enumerate() {
            bits.push(match address {
                Some(address) => arg.rounded(self.read(op, ty, slot, address, desc.elem)?),
                None if arg.pads_nan => encode(f64::NAN, desc.elem, Rounding::NearestEven),
                None => 0,
            });
        }
        let copy = view::CopyDesc::at(self.kernel, op);
        let bytes = bits.len() as u32 * desc.elem.bytes();
        let arrival = self.barrier_at(copy.barrier())?.map(|barrier| (barrier, bytes));
        let Some(mut place) = self.positions(copy.buffer())? else { return Ok(()) };
        place.1.truncate(bits.len());
        let start = self.start(op);
        self.shared.start_write(place, bits, arrival, start).map_err(|refused| self.refuse(ty, refused))?;
        Ok(())
    }

    /// `copy_desc_store`, or `copy_desc_reduce` with what it does: the buffer is read until that is waited for, and global
    /// memory has the elements once the copy itself is waited for, or the warp group ends.
    fn copy_desc_store(&mut self, op: Op, reduction: Option<RmwOp>) -> Result<(), Stop> {
        let Some((desc, _, places)) = self.box_of(op)? else { return Ok(()) };
        let ty = Type::tile(desc.elem(), desc.shape);
        let Some(buffer) = self.kernel.buffer(op) else { return Ok(()) };
        let Some(place) = self.positions(buffer)? else { return Ok(()) };
        let start = self.start(op);
        let read = self.shared.start_read_async(place, start).map_err(|refused| self.refuse(ty, refused))?;
        let (copy, loaded) = read;
        self.note_unwritten(op, ty, &loaded);
        self.group.pending.stores.push_back(copy);
        let elements = places.into_iter().zip(loaded.bits).enumerate();
        let elements = elements.filter_map(|(slot, (address, bits))| Some((address?, slot, bits))).collect();
        self.group.pending.writes.push_back(TileWrite { op, ty: desc, reduction, elements });
        Ok(())
    }

    /// `copy_desc_wait`.
    fn copy_desc_wait(&mut self, pending: u32, read: bool) -> Result<(), Stop> {
        while self.group.pending.stores.len() > pending as usize {
            let copy = self.group.pending.stores.pop_front();
            self.complete_all(copy)?;
        }
        if !read {
            self.write_tiles(pending as usize)?;
        }
        self.tick(1)
    }

    /// Writes of the warp group that are in flight complete when it ends.
    pub(super) fn end_copies(&mut self) -> Result<(), Stop> {
        self.write_tiles(0)
    }

    /// All but the latest `pending` copies of tiles write what they have to.
    fn write_tiles(&mut self, pending: usize) -> Result<(), Stop> {
        while self.group.pending.writes.len() > pending {
            let Some(TileWrite { op, ty: desc, reduction, elements }) = self.group.pending.writes.pop_front() else {
                break;
            };
            let ty = Type::tile(desc.elem(), desc.shape);
            // The fault belongs to the copy, not to the wait.
            let current = self.group.current.replace(op);
            for (address, slot, bits) in elements {
                let bits = match reduction {
                    None => bits,
                    Some(rmw) => modify(rmw, desc.elem, self.read(op, ty, slot, address, desc.elem)?, bits),
                };
                self.write(ty, slot, address, desc.elem, bits)?;
            }
            self.group.current = current;
        }
        Ok(())
    }

    /// An operation's descriptor, with the shape of the buffer, and the addresses of the elements from the coordinates on, which
    /// come last.
    fn box_of(&mut self, op: Op) -> Result<Option<(DescType, Rc<DescArg>, Addresses)>, Stop> {
        let kernel = self.kernel;
        let Some(value) = kernel.desc(op) else { return Ok(None) };
        let Type::Desc(ty) = kernel.value_type(value) else { return Ok(None) };
        let Data::Desc(arg) = self.get(value) else {
            return Err(self.stop(FaultKind::Unsupported("a copy by a tensor map that was never made".into())));
        };
        if self.group.pending.maps.iter().any(|other| Rc::ptr_eq(other, &arg)) {
            return Err(self.stop(FaultKind::Unsupported("a copy by a tensor map that was not waited for".into())));
        }
        let at: Vec<i64> = kernel.variadic(op).iter().map(|v| i64::from(self.scalar(*v) as i32)).collect();
        // The host has made maps that are parameters.
        if !kernel.params.iter().any(|param| param.value == value) {
            self.check_map(ty, &arg)?;
        }
        let shape = kernel.buffer(op).and_then(|buffer| Some(kernel.value_type(buffer).as_shared()?.shape));
        let ty = shape.map_or(ty, |shape| ty.of_buffer(&shape));
        self.tick(ty.shape.numel() as usize)?;
        let places = (0..ty.shape.numel() as u32).map(|index| {
            let within = crate::layout_rules::unflatten(index, &ty.shape);
            arg.address(&ty, |axis| at[axis] + i64::from(within[axis]))
        });
        let places = places.collect();
        Ok(Some((ty, arg, places)))
    }
}

impl DescArg {
    /// The bits of an element as a copy to shared memory gives them.
    fn rounded(&self, bits: u64) -> u64 {
        let float = bits as u32;
        if !self.rounds_tf32 || float & 0x7f80_0000 == 0x7f80_0000 {
            return bits;
        }
        (float.wrapping_add(0xfff + (float >> 13 & 1)) & !0x1fff).into()
    }

    /// How many elements of a box a copy brings, the first in row-major order.
    fn copied(&self, ty: &DescType) -> usize {
        let all = ty.shape.numel() as usize;
        match (self.rows, &ty.shape[..]) {
            (Some(rows), [.., of, _]) => all / *of as usize * (rows.min(*of) as usize),
            _ => all,
        }
    }

    /// Where an element of the tensor is, if it has one there.
    fn address(&self, ty: &DescType, at: impl Fn(usize) -> i64) -> Option<u64> {
        let last = ty.shape.rank() - 1;
        (0..=last).try_fold(self.base, |address, axis| {
            let index = u64::try_from(at(axis)).ok().filter(|index| *index < self.shape[axis])?;
            let stride = if axis == last { u64::from(ty.elem.bytes()) } else { self.strides[axis] };
            Some(address.wrapping_add(index * stride))
        })
    }
}

//! Which threads run a region: all of the block, or those of a partition, which count from 0 and have a barrier of
//! their own.
//!
//! `warp_specialize` becomes a chain of branches on the warp number. A partition starts by changing the register count
//! of its threads, which idle warps do, too; thread-dependent values are computed after that, in a prologue of the
//! partition, so that they take no registers of other partitions.

use std::{cell::OnceCell, rc::Rc};

use rtc_ir::{Block, Op, WarpGroup, warps_of_partition};

use super::{Lowering, coordinates::ThreadParts};
use crate::{
    emit::{Cmpi, ShuffleKind, Value},
    error::{CodegenError, Result},
};

/// The threads that run a region.
pub(super) struct Threads<'c> {
    /// The thread's number among them.
    number: Value<'c>,
    count: u32,
    /// The number of their barrier, if it is not that of the block.
    barrier: Option<u32>,
    pub(super) places: ThreadParts<'c>,
    /// The number of the thread's warp among theirs, computed on demand.
    warp: OnceCell<Value<'c>>,
    /// Whether the thread is their leader, computed on demand.
    pub(super) leader: OnceCell<Value<'c>>,
}

impl<'c> Threads<'c> {
    /// All threads of the block.
    pub fn of_block(number: Value<'c>, count: u32) -> Rc<Self> {
        let places = ThreadParts::new(count);
        Rc::new(Threads { number, count, barrier: None, places, warp: OnceCell::new(), leader: OnceCell::new() })
    }
}

impl<'c> Lowering<'_, 'c> {
    /// The threads that run the current code.
    pub(super) fn threads(&self) -> Rc<Threads<'c>> {
        self.threads.borrow().clone()
    }

    /// The thread's number among those that run the current code.
    pub(super) fn thread(&self) -> Value<'c> {
        self.threads.borrow().number
    }

    /// The number of the thread's warp among those that run the current code, as a value that is known to be uniform in
    /// the warp.
    pub(super) fn warp(&self) -> Value<'c> {
        let (e, threads) = (self.e, self.threads());
        *threads.warp.get_or_init(|| {
            e.in_prologue(|| e.shuffle(ShuffleKind::Index, e.shrui(threads.number, e.i32(5)), e.i32(0)))
        })
    }

    /// Waits for all threads that run the current code; shared memory is then ordered among them.
    pub(super) fn barrier(&self) {
        let e = self.e;
        let threads = self.threads();
        match threads.barrier {
            None => e.barrier(),
            Some(_) if threads.count == 32 => e.warp_barrier(),
            Some(id) => e.named_barrier(e.i32(id as i32), e.i32(threads.count as i32)),
        }
    }

    pub(super) fn warp_specialize(&self, op: Op, registers: Option<&[u32]>) -> Result<()> {
        let e = self.e;
        // Lane 0 provides the number of the warp, so that it is known to be uniform.
        let warp = e.shuffle(ShuffleKind::Index, e.shrui(e.thread, e.i32(5)), e.i32(0));
        let partitions = self.kernel.op(op).blocks.clone();
        self.partitions(op, warp, &partitions, registers)?;
        // The partitions are done when all are.
        self.barrier();
        Ok(())
    }

    /// Branches to the first of `partitions`, or on to the others.
    fn partitions(&self, op: Op, warp: Value<'c>, partitions: &[Block], registers: Option<&[u32]>) -> Result<()> {
        let Some((partition, others)) = partitions.split_first() else { return Ok(()) };
        if others.is_empty() {
            return self.partition(op, warp, *partition, registers);
        }
        let e = self.e;
        let group = self.kernel.group_of_nested(op, *partition);
        let end = group.first + warps_of_partition(group.warps, registers);
        let is_own = e.cmpi(Cmpi::Ult, warp, e.i32(end as i32));
        let own = || self.partition(op, warp, *partition, registers).map(|()| Vec::new());
        let rest = || self.partitions(op, warp, others, registers).map(|()| Vec::new());
        e.if_else(is_own, &[], own, rest).map(drop)
    }

    fn partition(&self, op: Op, warp: Value<'c>, block: Block, registers: Option<&[u32]>) -> Result<()> {
        let e = self.e;
        let group = self.kernel.group_of_nested(op, block);
        let partition = group.partition.ok_or_else(|| CodegenError::lowering("a partition without warps"))?;
        let wanted = registers.and_then(|registers| registers.get(partition)).copied().unwrap_or(0);
        if let Some(start) = self.kernel.registers_at_start()
            && wanted != 0
            && wanted != start
        {
            e.set_registers(wanted, wanted > start);
        }
        if warps_of_partition(group.warps, registers) == group.warps {
            return self.partition_of(block, &group);
        }
        let works = e.cmpi(Cmpi::Ult, warp, e.i32((group.first + group.warps) as i32));
        let work = || self.partition_of(block, &group).map(|()| Vec::new());
        e.if_else(works, &[], work, || Ok(Vec::new())).map(drop)
    }

    /// The block of a partition, for the warps that run it.
    fn partition_of(&self, block: Block, group: &WarpGroup) -> Result<()> {
        let e = self.e;
        let partition = group.partition.ok_or_else(|| CodegenError::lowering("a partition without warps"))?;
        // The mask gives LLVM an upper bound of the number.
        let moved = e.subi(e.thread, e.i32(32 * group.first as i32));
        let number = e.andi(moved, e.i32(group.threads() as i32 - 1));
        let places = ThreadParts::new(group.threads());
        let own = Threads {
            number,
            count: group.threads(),
            barrier: Some(1 + partition as u32),
            places,
            warp: OnceCell::new(),
            leader: OnceCell::new(),
        };
        let outer = self.threads.replace(Rc::new(own));
        let lowered = e.with_prologue(number, || self.block(block));
        self.threads.replace(outer);
        lowered.map(drop)
    }
}

//! Which registers an operation reads and writes, for the checks of `wgmma`.

use crate::code::{AddressOperand, BlockBarrier, CONSTANT, Direction, Kind, NONE, Reg, Src, WarpOp};

/// Calls `visit` with each register that an operation reads (false) or writes (true). `wgmma` itself is not looked at.
pub fn visit(kind: &Kind, visit: &mut dyn FnMut(Reg, bool)) {
    let mut each = |list: &[u32], write: bool| {
        for register in list.iter().filter(|r| **r & CONSTANT == 0 && **r != NONE) {
            visit(*register, write);
        }
    };
    let mut addresses = |list: &[AddressOperand]| list.iter().for_each(|address| each(&[address.base], false));
    match kind {
        Kind::Load(load) => {
            addresses(&[load.address]);
            each(&load.registers, true);
        }
        Kind::Store(store) => {
            addresses(&[store.address]);
            each(&store.sources, false);
        }
        Kind::Atomic(atomic) => {
            addresses(&[atomic.address]);
            each(&atomic.sources, false);
            each(atomic.swap.as_slice(), false);
            each(&atomic.registers, true);
        }
        Kind::CopyAsync(copy) => {
            addresses(&[copy.to, copy.from]);
            each(copy.size.as_slice(), false);
        }
        Kind::LoadMatrix(to, address, _) => {
            addresses(&[*address]);
            each(to, true);
        }
        Kind::StoreMatrix(from, address, _) => {
            addresses(&[*address]);
            each(from, false);
        }
        Kind::Mma(mma) => {
            for list in [&mma.a, &mma.b, &mma.c] {
                each(list, false);
            }
            each(&mma.d, true);
        }
        Kind::Mbarrier(op) => {
            addresses(&[op.address]);
            each(op.count.as_slice(), false);
            each(op.bytes.as_slice(), false);
            each(&[op.state], true);
        }
        Kind::MbarrierTest(test) => {
            addresses(&[test.address]);
            each(&[test.value], false);
            each(&[test.to], true);
        }
        Kind::Tensor(copy) => {
            addresses(&[copy.map]);
            match copy.direction {
                Direction::In { to, barrier, .. } => addresses(&[to, barrier]),
                Direction::Out { from, .. } => addresses(&[from]),
                Direction::Prefetch => {}
            }
            each(&copy.at, false);
        }
        Kind::Bulk(copy) => {
            addresses(&[copy.to, copy.from]);
            addresses(copy.barrier.as_slice());
            each(&[copy.bytes], false);
        }
        Kind::TensormapReplace(replace) => {
            addresses(&[replace.address]);
            each(&[replace.value], false);
        }
        Kind::TensormapCopy(to, from) => addresses(&[*to, *from]),
        Kind::TensormapAcquire(map) => addresses(&[*map]),
        Kind::CopyArrive(address, _) => addresses(&[*address]),
        Kind::Warp(op, members) => {
            each(&[*members], false);
            warp_op(op, &mut each);
        }
        Kind::Barrier(barrier) => {
            let BlockBarrier { id, count, reduce, .. } = &**barrier;
            each(&[*id], false);
            each(count.as_slice(), false);
            if let Some((_, to, source)) = reduce {
                each(&[*source], false);
                each(&[*to], true);
            }
        }
        Kind::BranchTable(index, _) => each(&[*index], false),
        Kind::IsSpace(_, to, from) => {
            each(&[*from], false);
            each(&[*to], true);
        }
        Kind::MapShared(to, address, rank, _) => {
            each(&[*address, *rank], false);
            each(&[*to], true);
        }
        Kind::RankOf(to, address, _) => {
            each(&[*address], false);
            each(&[*to], true);
        }
        Kind::Special(_, to) | Kind::FrameAddress(to, _) | Kind::ActiveMask(to) => each(&[*to], true),
        // `Alu` and `wgmma` are looked at where they are executed; the others have no registers but predicates.
        _ => {}
    }
}

fn warp_op(op: &WarpOp, each: &mut dyn FnMut(&[Src], bool)) {
    match op {
        WarpOp::Barrier => {}
        WarpOp::Shuffle(_, to, predicate, sources) => {
            each(sources, false);
            each(&[*to, *predicate], true);
        }
        WarpOp::Vote(_, to, source) | WarpOp::Reduce(_, _, to, source) => {
            each(&[*source], false);
            each(&[*to], true);
        }
        WarpOp::Match(_, to, predicate, source) => {
            each(&[*source], false);
            each(&[*to, *predicate], true);
        }
        WarpOp::Elect(to, predicate) => each(&[*to, *predicate], true),
    }
}

//! Computes which accesses other threads may not have finished at each operation, and where a barrier is needed so that
//! no conflicting accesses meet. Based on the effects of operations and, for global memory, on layouts.
//!
//! Threads run independently until they meet at a barrier of the block. So a read waits for all earlier writes, and a
//! write for all earlier reads and writes, unless there was a barrier in between. An exchange (the use of a scratch
//! buffer) contains a barrier: earlier accesses are finished, its own reads are pending. Barriers in shared memory
//! (`mbarrier`) need no ordering; only their initialization must be visible to all before they are used. The waits for
//! asynchronous effects are explicit in the kernel; behind that for a dot, its reads are pending, for other warps may still
//! wait. But an asynchronous read waits like any other for earlier writes,
//! and since other buffers may have used the same bytes before, no asynchronous effect starts while those are accessed.
//! If an operation in a loop has to wait only for accesses before the loop, the barrier is placed before the loop.
//!
//! Global memory has the order of the source if several warps load one element, be it a scalar or part of a tile that
//! is smaller than the warps: later writes through the same argument wait until all have loaded, and such a load waits
//! for earlier writes. `elect_redundant_loads` has left those whose copies are needed. If each thread loads for itself,
//! the order is up to `tl.debug_barrier` in the program. A barrier for accesses before a branch is placed before the
//! branch: warps need not agree on a condition that they loaded from memory that another program writes.
//!
//! Partitions of `warp_specialize` run at the same time, and a barrier in one is a barrier of its threads alone. So
//! nothing may be pending when they start, and all threads meet when they end. Buffers of one partition do not overlap
//! those of others (`allocate_shared.rs`); buffers that several partitions use are guarded by barriers in shared
//! memory, and need no barrier in a partition.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use rtc_ir::effects::{EffectKind, On, Space, When};
use rtc_ir::{Block, Kernel, Op, OpKind, Value, regions, view};

use crate::access::addresses;

/// A part of an allocation, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BufferPart {
    pub(crate) of: Op,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl BufferPart {
    /// The part that a value of type `Shared` refers to.
    fn of(kernel: &Kernel, value: Value) -> Option<BufferPart> {
        let (of, Range { start, end }) = kernel.extent(value)?;
        Some(BufferPart { of, start, end })
    }

    /// Whether both have a byte of one allocation.
    pub(crate) fn meets(&self, other: &BufferPart) -> bool {
        self.of == other.of && self.start < other.end && other.start < self.end
    }
}

/// The accesses that may not be finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    reads: BTreeSet<BufferPart>,
    writes: BTreeSet<BufferPart>,
    /// What dots in flight read. When they are waited for, other warps may not have waited for theirs.
    in_flight: BTreeSet<BufferPart>,
    /// Barriers that have been set up.
    set_up: BTreeSet<Op>,
    /// Arguments through which several warps have loaded the same elements.
    loaded: BTreeSet<Value>,
    /// Arguments through which something was stored.
    stored: BTreeSet<Value>,
}

impl Pending {
    /// The allocations that are still accessed.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = Op> + '_ {
        self.reads.iter().chain(&self.writes).map(|part| part.of)
    }

    /// What is pending behind a barrier.
    fn clear(&mut self) {
        *self = Pending { in_flight: std::mem::take(&mut self.in_flight), ..Pending::default() };
    }

    fn is_empty(&self) -> bool {
        *self == Pending::default()
    }

    fn without_global(&self) -> Pending {
        Pending { loaded: BTreeSet::new(), stored: BTreeSet::new(), ..self.clone() }
    }

    fn join(&mut self, other: &Pending) {
        self.reads.extend(other.reads.iter().cloned());
        self.writes.extend(other.writes.iter().cloned());
        self.in_flight.extend(other.in_flight.iter().cloned());
        self.set_up.extend(&other.set_up);
        self.loaded.extend(&other.loaded);
        self.stored.extend(&other.stored);
    }
}

/// The accesses of an operation to shared memory that are done with it.
pub(crate) fn accesses(kernel: &Kernel, op: Op) -> Vec<(EffectKind, BufferPart)> {
    accesses_at(kernel, op, When::Now)
}

fn accesses_at(kernel: &Kernel, op: Op, when: When) -> Vec<(EffectKind, BufferPart)> {
    let then = kernel.effects(op).filter(|(effect, _)| effect.space == Space::Shared && effect.when == when);
    then.filter_map(|(effect, value)| Some((effect.access, BufferPart::of(kernel, value?)?))).collect()
}

/// Called for each operation that accesses shared memory, with the accesses that are pending before it; more than once
/// for those in loops, first with those at the loop's entry.
pub(crate) type AccessObserver<'a> = &'a mut dyn FnMut(Op, &Pending);

/// The operations that need a barrier before them. `meet` says whether two parts have a byte in common.
pub(crate) fn needed(
    kernel: &Kernel,
    meet: &dyn Fn(&BufferPart, &BufferPart) -> bool,
    watch: AccessObserver<'_>,
) -> Vec<Op> {
    let guarded = guarded(kernel);
    let mut visitor = Visitor { kernel, meet, watch, guarded, needed: HashSet::new(), known: HashMap::new() };
    visitor.visit(kernel.body(), Pending::default());
    let mut needed: Vec<Op> = visitor.needed.into_iter().collect();
    needed.sort_unstable();
    needed
}

/// Propagates pending accesses through blocks.
struct Visitor<'k> {
    kernel: &'k Kernel,
    meet: &'k dyn Fn(&BufferPart, &BufferPart) -> bool,
    watch: AccessObserver<'k>,
    /// See [`guarded`].
    guarded: HashSet<Op>,
    /// Operations that need a barrier before them. Operations are never removed: the barrier may be sufficient for
    /// later ones.
    needed: HashSet<Op>,
    /// The pending accesses after an operation with nested blocks, by the operation, the pending accesses before it and
    /// the number of barriers: nested loops would otherwise be visited twice as often with each level.
    known: HashMap<(Op, Pending, usize), Pending>,
}

impl Visitor<'_> {
    fn visit(&mut self, block: Block, mut pending: Pending) -> Pending {
        let kernel = self.kernel;
        for op in kernel.ops(block) {
            if matches!(kernel.kind(op), OpKind::Barrier {}) {
                pending.clear();
                continue;
            }
            let mut accesses = accesses(kernel, op);
            accesses.retain(|(_, part)| !self.guarded.contains(&part.of) || kernel.group_of(op).partition.is_none());
            let divides = regions::is_concurrent(kernel.kind(op));
            let global = Global::of(kernel, op);
            if divides && !pending.is_empty() {
                self.needed.insert(op);
            }
            if self.needed.contains(&op) || global.collides(&pending) || self.collides(op, &accesses, &pending) {
                self.needed.insert(op);
                pending.clear();
            }
            if !accesses.is_empty() {
                (self.watch)(op, &pending);
            }
            if accesses.iter().any(|(access, _)| *access == EffectKind::Exchange) {
                pending.clear();
            }
            for (access, part) in accesses {
                match access {
                    EffectKind::Read | EffectKind::Exchange => pending.reads.insert(part),
                    EffectKind::Write => pending.writes.insert(part),
                };
            }
            self.follow_dots(op, &mut pending);
            pending.loaded.extend(global.loaded);
            pending.stored.extend(global.stored);
            if kernel.effects(op).any(|(effect, _)| effect.space == Space::Barrier && effect.on == On::Result) {
                pending.set_up.insert(op);
            }
            if !kernel.op(op).blocks.is_empty() {
                pending = self.nested(op, pending);
            }
            if divides {
                pending.clear();
            }
        }
        pending
    }

    /// Dots in flight that an operation begins or waits for.
    fn follow_dots(&self, op: Op, pending: &mut Pending) {
        match self.kernel.kind(op) {
            OpKind::MmaAsync {} => {
                let reads = accesses_at(self.kernel, op, When::Async).into_iter().map(|(_, part)| part);
                pending.in_flight.extend(reads.filter(|part| !self.guarded.contains(&part.of)));
            }
            OpKind::MmaWait { pending: 0 } => pending.reads.append(&mut pending.in_flight),
            OpKind::MmaWait { .. } => pending.reads.extend(pending.in_flight.iter().cloned()),
            _ => {}
        }
    }

    fn collides(&self, op: Op, accesses: &[(EffectKind, BufferPart)], pending: &Pending) -> bool {
        let with = |parts: &BTreeSet<BufferPart>, part: &BufferPart| parts.iter().any(|other| (self.meet)(part, other));
        let collides = accesses.iter().any(|(access, part)| {
            with(&pending.writes, part) || (*access != EffectKind::Read && with(&pending.reads, part))
        });
        let others = |parts: &BTreeSet<BufferPart>, part: &BufferPart| {
            parts.iter().any(|other| other.of != part.of && (self.meet)(part, other))
        };
        let begins_early = accesses_at(self.kernel, op, When::Async).iter().any(|(access, part)| match access {
            EffectKind::Read => with(&pending.writes, part),
            EffectKind::Write | EffectKind::Exchange => others(&pending.writes, part) || others(&pending.reads, part),
        });
        collides || begins_early || (!pending.set_up.is_empty() && uses_barrier(self.kernel, op, &pending.set_up))
    }

    fn nested(&mut self, op: Op, entry: Pending) -> Pending {
        let key = (op, entry.clone(), self.needed.len());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let after = self.follow(op, entry);
        self.known.insert(key, after.clone());
        after
    }

    fn follow(&mut self, op: Op, entry: Pending) -> Pending {
        let visit = |visitor: &mut Self, entry: Pending| {
            regions::follow(visitor.kernel, op, entry, Pending::join, |block, pending| visitor.visit(block, pending))
        };
        // The accesses that need a barrier before the operation rather than in it.
        let without = match regions::is_loop(self.kernel.kind(op)) {
            true => Pending::default(),
            false => entry.without_global(),
        };
        if without == entry {
            return visit(self, entry);
        }
        let before = self.needed.clone();
        let after_without = visit(self, without.clone());
        let own = self.needed.clone();
        let after = visit(self, entry);
        if self.needed == own {
            return after;
        }
        let (own, after) = match without.is_empty() {
            true => (own, after_without),
            false => {
                self.needed = before;
                let after = visit(self, Pending::default());
                (self.needed.clone(), after)
            }
        };
        self.needed = own;
        self.needed.insert(op);
        after
    }
}

/// The ordered effect of an operation on global memory.
struct Global {
    /// The argument through which several warps load the same elements.
    loaded: Option<Value>,
    /// The arguments through which it writes.
    stored: Vec<Value>,
}

impl Global {
    fn of(kernel: &Kernel, op: Op) -> Global {
        let writes = |access| matches!(access, EffectKind::Write | EffectKind::Exchange);
        let effects =
            kernel.effects(op).filter(move |(effect, _)| effect.space == Space::Global && writes(effect.access));
        let stored = effects.filter_map(|(_, value)| addresses::base(kernel, value?)).collect();
        Global { loaded: loaded_by_several(kernel, op), stored }
    }

    fn collides(&self, pending: &Pending) -> bool {
        self.stored.iter().any(|base| pending.loaded.contains(base))
            || self.loaded.is_some_and(|base| pending.stored.contains(&base))
    }
}

/// The argument through which several warps load the same elements.
pub(super) fn loaded_by_several(kernel: &Kernel, op: Op) -> Option<Value> {
    let OpKind::Load { once: false, .. } = kernel.kind(op) else { return None };
    let by_several = match kernel.layout_of(kernel.result(op, 0)) {
        Some(layout) => layout.copies().warps != 0,
        None => kernel.group_of(op).warps > 1,
    };
    by_several.then(|| addresses::base(kernel, view::Load::at(kernel, op).pointer()))?
}

/// The buffers that several partitions use: barriers in shared memory say when, also to the threads of one partition.
fn guarded(kernel: &Kernel) -> HashSet<Op> {
    let mut partition_of: HashMap<Op, usize> = HashMap::new();
    let mut guarded = HashSet::new();
    let partitions = kernel.specialization().map(|op| kernel.op(op).blocks.clone()).unwrap_or_default();
    for (partition, block) in partitions.into_iter().enumerate() {
        for op in rtc_ir::walk_block(kernel, block) {
            let used = kernel.effects(op).filter(|(effect, _)| effect.space == Space::Shared);
            for made in used.filter_map(|(_, value)| kernel.allocation(value?)) {
                if *partition_of.entry(made).or_insert(partition) != partition {
                    guarded.insert(made);
                }
            }
        }
    }
    guarded
}

/// Whether an operation or one nested in it uses one of these barriers. Barriers are set up in the body of the kernel,
/// and that is where all threads are sure to meet afterwards.
fn uses_barrier(kernel: &Kernel, op: Op, set_up: &BTreeSet<Op>) -> bool {
    rtc_ir::walk_op(kernel, op).into_iter().any(|op| {
        let mut used =
            kernel.effects(op).filter(|(effect, _)| effect.space == Space::Barrier && effect.on != On::Result);
        used.any(|(_, value)| value.and_then(|v| kernel.allocation(v)).is_some_and(|made| set_up.contains(&made)))
    })
}

//! Which accesses threads may not have finished at each operation, and where a barrier must stand so that none meets another
//! one that it must not meet. Follows from the effects of operations and, for global memory, from layouts.
//!
//! Threads run ahead of each other until they meet at a barrier of the block. So a read waits for all writes before it,
//! and a write for all reads and writes, unless there was a barrier in between. An exchange (the use of a scratch buffer)
//! has one inside: what came before it is done, its own reads are pending. Barriers in shared memory (`mbarrier`) order
//! themselves; only that they are set up must be seen by all before they are used. What asynchronous effects wait for
//! and who waits for them is written out in the kernel. But an
//! asynchronous read waits like another for the writes before it, and since other buffers may have had the same bytes
//! before, no asynchronous effect begins while those are accessed. Where an operation in a loop has to wait for what was
//! before the loop alone, the barrier stands before the loop.
//!
//! Global memory has the order that the source gives it where several warps load one element, be it a scalar or of a tile
//! smaller than the warps: what is written through the same argument afterwards waits until all have loaded, and such a load
//! waits for what was written before. `elect_redundant_loads` has left those whose copies count. Where each thread loads for itself, `tl.debug_barrier` is the program's matter. A
//! barrier for the sake of what was before a branch stands before the branch: warps need not agree on a condition that they
//! loaded from memory that another program writes.
//!
//! Roles of `warp_specialize` run at the same time, and a barrier in one is a barrier of its threads alone. So nothing may
//! be pending when they begin, and all have met when they have ended. Buffers that one role has to itself lie apart from
//! those of the others (`allocate_shared.rs`); buffers that several use are guarded by barriers in shared memory, and no
//! barrier is put into a role for their sake.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use rtc_ir::effects::{EffectKind, On, Space, When};
use rtc_ir::{Block, Kernel, Op, OpKind, Value, regions};

use crate::schedule::addresses;

/// A part of an allocation, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BufferPart {
    pub(crate) of: Op,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl BufferPart {
    /// The part that a value of type `Shared` stands for.
    fn of(kernel: &Kernel, value: Value) -> Option<BufferPart> {
        let (of, Range { start, end }) = kernel.extent(value)?;
        Some(BufferPart { of, start, end })
    }

    /// Whether both have a byte of one allocation.
    pub(crate) fn meets(&self, other: &BufferPart) -> bool {
        self.of == other.of && self.start < other.end && other.start < self.end
    }
}

/// What may not be finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    reads: BTreeSet<BufferPart>,
    writes: BTreeSet<BufferPart>,
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

    fn clear(&mut self) {
        *self = Pending::default();
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

/// Called for each operation that accesses shared memory, with what is pending when it begins; more than once for those
/// in loops, first with what is pending when the loop is entered.
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

/// Follows what is pending through blocks.
struct Visitor<'k> {
    kernel: &'k Kernel,
    meet: &'k dyn Fn(&BufferPart, &BufferPart) -> bool,
    watch: AccessObserver<'k>,
    /// See [`guarded`].
    guarded: HashSet<Op>,
    /// Operations that need a barrier before them. Once in, an operation stays: the barrier then also serves those
    /// after it.
    needed: HashSet<Op>,
    /// What is pending after an operation with nested blocks, by the operation, what is pending before it and how many
    /// barriers there are: nested loops would else be followed twice as often with each level.
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
        // What a barrier before the operation rather than in it has to be needed for.
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

/// What an operation does to global memory that has an order.
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
    by_several.then(|| addresses::base(kernel, kernel.operand(op, 0)))?
}

/// The buffers that several roles use: barriers in shared memory say when, also to the threads of one role.
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
    let nested = kernel.op(op).blocks.iter().flat_map(|block| rtc_ir::walk_block(kernel, *block));
    [op].into_iter().chain(nested).any(|op| {
        let mut used =
            kernel.effects(op).filter(|(effect, _)| effect.space == Space::Barrier && effect.on != On::Result);
        used.any(|(_, value)| value.and_then(|v| kernel.allocation(v)).is_some_and(|made| set_up.contains(&made)))
    })
}

//! Assigns offsets in shared memory to buffers and barriers, and computes how much the kernel needs.
//!
//! A buffer is live from its first access to its last one, over whole loops if it is allocated outside of them. If an
//! asynchronous operation accesses it, it is live up to the barrier after which all threads have waited for it, or to
//! the end of the kernel; barriers are live throughout. Buffers that are live at the same time do not overlap. Others
//! may share bytes, but then a barrier is needed between them; so as long as there is enough space they do not overlap
//! either, unless there is a barrier anyway. Space is short above [`ROOMY`], and outside of loops where shared memory alone
//! limits how many blocks run on an SM. Partitions of `warp_specialize` run at the same time: their buffers never
//! overlap.
//!
//! ```text
//! %b = alloc_shared {align = 16}   →   %b = alloc_shared {align = 16, offset = 0}
//! ```

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use rtc_abi::SmLimits;
use rtc_ir::effects::{Space, When};
use rtc_ir::{BARRIER_BYTES, Kernel, Op, OpKind, Phase, place_bytes, regions};
use rtc_source::{Code, Diagnostic};

use super::pending::{self, BufferPart};
use crate::work::registers_or_set;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "allocate-shared", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Up to this many bytes buffers are kept apart for the sake of a barrier; above it space counts more.
const ROOMY: u64 = 48 * 1024;

/// Something to be placed.
struct Item {
    op: Op,
    bytes: u64,
    align: u64,
    /// The partition that it is made in.
    partition: Option<usize>,
    /// Numbers of the first and the last operation that use it; `None` if none does.
    used: Option<(usize, usize)>,
    /// The accesses that are pending at its accesses: a barrier would be needed if they had a byte in common.
    apart: BTreeSet<Op>,
    /// The same without accesses of a previous iteration.
    neighbours: BTreeSet<Op>,
    /// Those of `apart` where the barrier would be in a loop.
    in_loops: BTreeSet<Op>,
}

/// Where each item lies.
type Offsets = HashMap<Op, Range<u64>>;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let items = items(kernel);
    let (mut places, mut total) = place_apart(&items, ROOMY);
    if total <= ROOMY {
        if let Some((closer, less)) = place_for_more_blocks(kernel, cx, &items, total) {
            (places, total) = (closer, less);
        }
    } else {
        let (tight, least) = place_tightly(&items);
        if least < total {
            (places, total) = (tight, least);
        }
    }
    let most = u64::from(cx.target.shared_bytes_max);
    if total > most {
        let largest = items.iter().rev().filter(|item| places[&item.op].end > most).max_by_key(|item| item.bytes);
        let span = largest.and_then(|item| kernel.loc(kernel.op(item.op).loc).span).unwrap_or_default();
        let message = format!("the kernel needs {total} bytes of shared memory, the target has {most} for a block");
        let diagnostic = Diagnostic::error(Code::OUT_OF_RESOURCES, span, message)
            .primary("this tile goes through shared memory")
            .help("use smaller blocks, or fewer stages");
        return Err(PassError::Diagnostic(Box::new(diagnostic)));
    }
    for (op, place) in places {
        if let OpKind::AllocShared { offset, .. } | OpKind::AllocBarriers { offset, .. } = kernel.kind_mut(op) {
            *offset = Some(place.start as u32);
        }
    }
    kernel.shared_bytes = total as u32;
    Ok(())
}

/// Places for fewer bytes, with which more blocks run on an SM; `None` if there are none.
fn place_for_more_blocks(kernel: &Kernel, cx: &PassContext, items: &[Item], total: u64) -> Option<(Offsets, u64)> {
    let (sm, threads) = (cx.target.sm, kernel.threads_per_block());
    let blocks = |bytes: u64| sm.blocks_beside_registers(threads, bytes as u32);
    if blocks(total) == blocks(0) {
        return None;
    }
    let by_registers = SmLimits::blocks_by_registers(registers_or_set(kernel), threads);
    let roomy = u64::from(sm.shared_for(by_registers.min(blocks(0))));
    if total <= roomy {
        return None;
    }
    let (places, less) = place_apart(items, roomy);
    (blocks(less) > blocks(total)).then_some((places, less))
}

/// In program order, each at the lowest offset: without overlap with buffers that would need a barrier if the total
/// stays the same, without overlap with its neighbours up to a total of `roomy`, without a barrier in a loop up to
/// [`ROOMY`], and otherwise only without overlap with live buffers.
fn place_apart(items: &[Item], roomy: u64) -> (Offsets, u64) {
    let (mut places, mut total) = (Offsets::new(), 0);
    for (index, item) in items.iter().enumerate() {
        let choose = |avoided: &dyn Fn(&Item) -> bool| {
            let placed = items[..index].iter().filter(|other| item.overlaps(other) || avoided(other));
            first_fit(item, placed.map(|other| places[&other.op].clone()).collect())
        };
        let mut place = choose(&|other| item.apart.contains(&other.op) || other.apart.contains(&item.op));
        if place.end > total {
            place = choose(&|other| item.neighbours.contains(&other.op));
        }
        if place.end > roomy.max(total) {
            place = choose(&|other| item.in_loops.contains(&other.op) || other.in_loops.contains(&item.op));
        }
        if place.end > ROOMY.max(total) {
            place = choose(&|_| false);
        }
        total = total.max(place.end);
        places.insert(item.op, place);
    }
    (places, total)
}

/// The largest first, each as low as may be.
fn place_tightly(items: &[Item]) -> (Offsets, u64) {
    let mut order: Vec<&Item> = items.iter().collect();
    order.sort_by_key(|item| std::cmp::Reverse(item.bytes));
    let (mut places, mut total) = (Offsets::new(), 0);
    for (index, item) in order.iter().enumerate() {
        let placed = order[..index].iter().filter(|other| item.overlaps(other));
        let place = first_fit(item, placed.map(|other| places[&other.op].clone()).collect());
        total = total.max(place.end);
        places.insert(item.op, place);
    }
    (places, total)
}

/// The lowest aligned place that meets none of `taken`.
fn first_fit(item: &Item, mut taken: Vec<Range<u64>>) -> Range<u64> {
    taken.sort_by_key(|range| range.start);
    let mut start = 0;
    for range in taken {
        if start + item.bytes > range.start && range.end > start {
            start = range.end.next_multiple_of(item.align);
        }
    }
    start..start + item.bytes
}

impl Item {
    /// Whether both are in use at one time.
    fn overlaps(&self, other: &Item) -> bool {
        if matches!((self.partition, other.partition), (Some(partition), Some(another)) if partition != another) {
            return true;
        }
        match (self.used, other.used) {
            (Some((first, last)), Some((other_first, other_last))) => first <= other_last && other_first <= last,
            _ => false,
        }
    }
}

/// All allocations in the order of their first use.
fn items(kernel: &Kernel) -> Vec<Item> {
    let order = rtc_ir::walk(kernel);
    let numbers: HashMap<Op, usize> = order.iter().enumerate().map(|(number, op)| (*op, number)).collect();
    let end = order.len();
    let mut items: Vec<Item> = Vec::new();
    let mut known: HashMap<Op, usize> = HashMap::new();
    for op in &order {
        let (align, used) = match kernel.kind(*op) {
            OpKind::AllocShared { align, .. } => (*align, None),
            OpKind::AllocBarriers { .. } => (BARRIER_BYTES, Some((0, end))),
            _ => continue,
        };
        let bytes = place_bytes(kernel.value_type(kernel.result(*op, 0)));
        known.insert(*op, items.len());
        let [apart, neighbours, in_loops] = [const { BTreeSet::new() }; 3];
        let partition = kernel.group_of(*op).partition;
        items.push(Item { op: *op, bytes, align: align.into(), partition, used, apart, neighbours, in_loops });
    }
    for op in &order {
        for (effect, value) in kernel.effects(*op).filter(|(effect, _)| effect.space == Space::Shared) {
            let Some(made) = value.and_then(|value| kernel.allocation(value)) else { continue };
            let Some(item) = known.get(&made).and_then(|index| items.get_mut(*index)) else { continue };
            let (mut first, mut last) = spread(kernel, &numbers, *op, made);
            if effect.when == When::Async {
                last = last.max(waited_for(kernel, *op).map_or(end, |wait| numbers[&wait]));
            }
            if let Some((before, after)) = item.used {
                (first, last) = (first.min(before), last.max(after));
            }
            item.used = Some((first, last));
        }
    }
    let mut seen: BTreeSet<Op> = BTreeSet::new();
    pending::needed(kernel, &BufferPart::meets, &mut |op, pending| {
        let first_time = seen.insert(op);
        for (_, part) in pending::accesses(kernel, op) {
            let Some(item) = known.get(&part.of).and_then(|index| items.get_mut(*index)) else { continue };
            let others: Vec<Op> = pending.allocations().filter(|other| *other != part.of).collect();
            item.apart.extend(&others);
            if regions::loop_around(kernel, op).is_some() {
                item.in_loops.extend(&others);
            }
            if first_time {
                item.neighbours.extend(&others);
            }
        }
    });
    items
}

/// The barrier after which all threads have waited for a copy by threads into a buffer, or for the dot that reads one;
/// after the loop that `begun` is in if there is none behind it in the loop.
fn waited_for(kernel: &Kernel, begun: Op) -> Option<Op> {
    let copies = match kernel.kind(begun) {
        OpKind::CopyAsync { .. } => true,
        OpKind::MmaAsync {} => false,
        _ => return None,
    };
    let mut at = begun;
    let (mut is_group, mut is_done) = (false, false);
    loop {
        while let Some(next) = kernel.next_op(at) {
            at = next;
            match kernel.kind(at) {
                OpKind::CopyCommit {} => is_group = true,
                OpKind::CopyWait { pending: 0 } => is_done |= copies && is_group,
                OpKind::MmaWait { pending: 0 } => is_done |= !copies,
                OpKind::Barrier {} if is_done => return Some(at),
                _ => {}
            }
        }
        at = kernel.block(kernel.op(at).parent?).parent?;
    }
}

/// The numbers of the first and the last operation during which a buffer made by `made` is in use because `op` uses it.
fn spread(kernel: &Kernel, numbers: &HashMap<Op, usize>, op: Op, made: Op) -> (usize, usize) {
    let (mut first, mut last) = (numbers[&op], numbers[&op]);
    let scope = kernel.op(made).parent;
    let mut block = kernel.op(op).parent;
    while let Some(around) = block.filter(|_| block != scope).and_then(|block| kernel.block(block).parent) {
        // Blocks that are not run one after the other, or more than once.
        let kind = kernel.kind(around);
        if regions::is_loop(kind) || regions::is_concurrent(kind) || regions::flow(kind).is_empty() {
            let nested = rtc_ir::walk_nested(kernel, around).into_iter();
            first = first.min(numbers[&around]);
            last = nested.map(|op| numbers[&op]).fold(last, usize::max);
        }
        block = kernel.op(around).parent;
    }
    (first, last)
}

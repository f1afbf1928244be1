//! Makes waits that count of those that name what they wait for, and puts fences between threads and the units that read
//! shared memory by themselves.
//!
//! ```text
//! %t = copy_group                                      copy_commit
//! for_range .. (%p = %s, %q = %t) {                    for_range .. {
//!   %a = copy_await buffer = %slot, (%p)                          copy_wait {pending = 1}
//!   %x = mma_async %a, %b, %acc                          fence_async
//!   copy_async ..                                →       barrier
//!   %u = copy_group                                      %x = mma_async %slot, %b, %acc
//!   mma_await (%acc)                                     copy_async ..
//!   yields (%q, %u)                                      copy_commit
//! }                                                      mma_wait {pending = 1}
//!                                                      }
//! ```
//!
//! Groups of copies complete in the order in which they were begun, and so do dots. So a wait leaves as many in flight as
//! were begun after the one that it names, on whatever way control came. What has been waited for on all ways is not waited
//! for again.
//!
//! `wgmma` and TMA read shared memory by themselves: a fence follows the last write of threads before it, ahead of the
//! barrier. Copies that arrive at a barrier are written when that is complete, so there the fence follows the wait for it.
//! One fence does for copies and for a store behind them that the same dot reads.

use std::collections::{BTreeMap, HashMap, HashSet};

use rtc_ir::effects::{EffectKind, When};
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Traits, Type, Value, regions, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-waits", needs: Phase::Laid, leaves: Phase::Laid, run };

pub(crate) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut waits = Waits { kernel, pending: HashMap::new() };
    waits.visit(kernel.body(), InFlight::default());
    let pending = waits.pending;
    let all = rtc_ir::walk(kernel);
    let counted = |op: &Op| matches!(pending.get(op), Some(Some(_)));
    let fences = all.iter().any(|op| needs_fence_elsewhere(kernel, *op, &counted));
    for op in all {
        let pending = pending.get(&op).copied().flatten();
        match kernel.kind(op) {
            OpKind::CopyAwait {} => wait_for_copies(kernel, op, pending, fences)?,
            OpKind::MmaAwait {} => wait_for_dots(kernel, op, pending)?,
            _ => {}
        }
    }
    remove_tokens(kernel)?;
    fence_arrivals(kernel)?;
    fence_stores(kernel)
}

/// What was begun and not waited for.
#[derive(Clone, Debug, Default, PartialEq)]
struct InFlight {
    /// For each group of copies how many groups were begun after it.
    groups: BTreeMap<Value, u32>,
    /// For the accumulators of each dot how many dots were begun after it.
    dots: BTreeMap<Value, u32>,
}

impl InFlight {
    /// Adds what may be in flight where control comes from elsewhere.
    fn join(&mut self, other: &InFlight) {
        for (all, more) in [(&mut self.groups, &other.groups), (&mut self.dots, &other.dots)] {
            for (value, later) in more {
                all.entry(*value).and_modify(|known| *known = (*known).min(*later)).or_insert(*later);
            }
        }
    }

    /// What enters a nested block, or leaves it, goes on under other names.
    fn rename(&mut self, kernel: &Kernel, targets: &[Value]) {
        for all in [&mut self.groups, &mut self.dots] {
            let least = |target: &Value| {
                let sources = regions::sources(kernel, *target).into_iter();
                (*target, sources.filter_map(|source| all.get(&source).copied()).min())
            };
            let renamed: Vec<(Value, Option<u32>)> = targets.iter().map(least).collect();
            for (target, later) in renamed {
                match later {
                    Some(later) => drop(all.insert(target, later)),
                    None => drop(all.remove(&target)),
                }
            }
        }
    }
}

/// Begins one more.
fn begin(all: &mut BTreeMap<Value, u32>, started: Value) {
    all.values_mut().for_each(|later| *later += 1);
    all.insert(started, 0);
}

/// How many may stay in flight when these are waited for; `None` if none of these is in flight. They are not any more.
fn wait(all: &mut BTreeMap<Value, u32>, waited: &[Value]) -> Option<u32> {
    let pending = waited.iter().filter_map(|value| all.get(value).copied()).min()?;
    all.retain(|_, later| *later < pending);
    Some(pending)
}

/// Follows control through a kernel, as often as what is in flight changes.
struct Waits<'k> {
    kernel: &'k Kernel,
    /// For each wait how many may stay in flight. The last visit of a block is with all that may be.
    pending: HashMap<Op, Option<u32>>,
}

impl Waits<'_> {
    fn visit(&mut self, block: Block, mut state: InFlight) -> InFlight {
        let kernel = self.kernel;
        for op in kernel.ops(block) {
            match kernel.kind(op) {
                OpKind::CopyGroup {} => begin(&mut state.groups, kernel.result(op, 0)),
                OpKind::MmaAsync {} => begin(&mut state.dots, kernel.result(op, 0)),
                OpKind::CopyAwait {} => {
                    self.pending.insert(op, wait(&mut state.groups, kernel.variadic(op)));
                }
                OpKind::MmaWait { pending } => state.dots.retain(|_, later| *later < *pending),
                OpKind::MmaAwait {} => {
                    self.pending.insert(op, wait(&mut state.dots, kernel.variadic(op)));
                }
                kind if regions::is_concurrent(kind) => {
                    // Each thread counts its own.
                    for partition in &kernel.op(op).blocks {
                        self.visit(*partition, InFlight::default());
                    }
                }
                kind if !regions::flow(kind).is_empty() => {
                    let visit = |block: Block, mut state: InFlight| {
                        state.rename(kernel, &kernel.block(block).args);
                        self.visit(block, state)
                    };
                    state = regions::follow(kernel, op, state, InFlight::join, visit);
                    state.rename(kernel, &kernel.op(op).results);
                }
                _ => {}
            }
        }
        state
    }
}

/// Whether an operation waits for a buffer that `wgmma` or TMA read, and the wait is needless because of one in another block:
/// that one has to have the fence.
fn needs_fence_elsewhere(kernel: &Kernel, op: Op, counted: &impl Fn(&Op) -> bool) -> bool {
    let is_read = awaited(kernel, op).is_some_and(|buffer| is_read_by_units(kernel, buffer));
    let mut before = std::iter::successors(Some(op), |op| kernel.previous_op(*op));
    is_read && !before.any(|op| matches!(kernel.kind(op), OpKind::CopyAwait {}) && counted(&op))
}

/// What an operation gives once copies are complete, if it waits for such.
fn awaited(kernel: &Kernel, op: Op) -> Option<Value> {
    let is_wait = matches!(kernel.kind(op), OpKind::CopyAwait {});
    kernel.op(op).results.first().copied().filter(|_| is_wait)
}

/// Waits for copies by threads, and until all threads have done so, with a fence if `fences`, or for what the block waits for.
fn wait_for_copies(kernel: &mut Kernel, op: Op, pending: Option<u32>, fences: bool) -> Result<(), PassError> {
    if let (Some(pending), Some(block)) = (pending, kernel.op(op).parent) {
        let mut buffers = kernel.ops(block).filter_map(|op| awaited(kernel, op));
        let fences =
            fences || (buffers.any(|buffer| is_read_by_units(kernel, buffer)) && !is_fenced_by_a_store(kernel, op));
        let mut builder = Builder::before(kernel, op);
        builder.copy_wait(pending)?;
        if fences {
            builder.fence_async()?;
        }
        builder.barrier()?;
    }
    match view::CopyAwait::at(kernel, op).buffer() {
        Some(buffer) => kernel.replace_op(op, buffer),
        None => kernel.erase(op),
    }
    Ok(())
}

/// Whether the next reader among the units also reads what threads store after this wait: then the fence behind that
/// store and the barrier between it and the reader order the copies, too.
fn is_fenced_by_a_store(kernel: &Kernel, wait: Op) -> bool {
    let mut stored = HashSet::new();
    for op in std::iter::successors(kernel.next_op(wait), |op| kernel.next_op(*op)) {
        let operands = || kernel.op(op).operands.iter().filter_map(|value| kernel.allocation(*value));
        if view::LocalStore::of(kernel, op).is_some() {
            stored.extend(operands());
        } else if matches!(kernel.kind(op), OpKind::Mma {} | OpKind::MmaAsync {}) {
            return operands().any(|made| stored.contains(&made));
        } else if !kernel.op(op).blocks.is_empty() || kernel.effects(op).any(|(effect, _)| effect.when == When::Async) {
            return false;
        }
    }
    false
}

fn wait_for_dots(kernel: &mut Kernel, op: Op, pending: Option<u32>) -> Result<(), PassError> {
    let accs: Vec<Value> = kernel.variadic(op).to_vec();
    let results = kernel.op(op).results.clone();
    if let Some(pending) = pending {
        let used: Vec<usize> = (0..accs.len()).filter(|number| kernel.is_used(results[*number])).collect();
        let handed: Vec<Value> = used.iter().map(|number| accs[*number]).collect();
        let types: Vec<Type> = handed.iter().map(|acc| kernel.value_type(*acc)).collect();
        let made = Builder::before(kernel, op).build(OpKind::MmaWait { pending }, &[], &[], &handed, &[], &types)?;
        for (place, number) in used.into_iter().enumerate() {
            kernel.replace_value(results[number], kernel.result(made, place));
        }
    } else {
        for (acc, result) in accs.into_iter().zip(results) {
            kernel.replace_value(result, acc);
        }
    }
    kernel.erase(op);
    Ok(())
}

/// Groups without tokens.
fn remove_tokens(kernel: &mut Kernel) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let slots = regions::slots(kernel, op);
        let is_token = |slot: &&regions::Slot| kernel.value_type(slot.targets[0]) == Type::Token;
        for slot in slots.iter().filter(is_token).rev().cloned().collect::<Vec<_>>() {
            kernel.remove_slot(&slot);
        }
    }
    for op in rtc_ir::walk(kernel) {
        if let OpKind::CopyGroup {} = kernel.kind(op) {
            Builder::before(kernel, op).copy_commit()?;
            kernel.erase(op);
        }
    }
    Ok(())
}

/// Whether `wgmma` or TMA read a buffer.
fn is_read_by_units(kernel: &Kernel, buffer: Value) -> bool {
    kernel.users(buffer).into_iter().any(|user| {
        let by_unit = matches!(kernel.kind(user), OpKind::Mma {} | OpKind::MmaAsync {})
            || kernel.effects(user).any(|(effect, value)| {
                effect.when == When::Async && effect.access == EffectKind::Read && value == Some(buffer)
            });
        let views = kernel.op(user).results.iter().filter(|value| kernel.value_type(**value).is_place());
        by_unit || views.into_iter().any(|view| is_read_by_units(kernel, *view))
    })
}

/// Puts a fence behind waits for barriers at which copies by threads to what `wgmma` or TMA read arrive.
fn fence_arrivals(kernel: &mut Kernel) -> Result<(), PassError> {
    let all = rtc_ir::walk(kernel);
    let is_arrival = |op: &Op| matches!(kernel.kind(*op), OpKind::CopyArrive {});
    let fills = |op: Op| {
        let made = view::CopyAsync::of(kernel, op).and_then(|copy| kernel.allocation(copy.buffer()));
        made.is_some_and(|made| is_read_by_units(kernel, kernel.result(made, 0)))
    };
    let is_read = |arrival: &Op| {
        let before = std::iter::successors(kernel.previous_op(*arrival), |op| kernel.previous_op(*op));
        before.take_while(|op| !is_arrival(op)).any(fills)
    };
    let arrivals = all.iter().copied().filter(|op| is_arrival(op) && is_read(op));
    let barriers: HashSet<Op> = arrivals.filter_map(|op| kernel.allocation(kernel.operand(op, 0))).collect();
    for op in all {
        let is_wait = matches!(kernel.kind(op), OpKind::BarrierWait {});
        if is_wait && kernel.allocation(kernel.operand(op, 0)).is_some_and(|made| barriers.contains(&made)) {
            Builder::after(kernel, op).fence_async()?;
        }
    }
    Ok(())
}

/// Puts a fence behind stores of threads to what `wgmma` or TMA read; one for several stores with nothing but computations
/// between them.
fn fence_stores(kernel: &mut Kernel) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let OpKind::LocalStore {} = kernel.kind(op) else { continue };
        let made = kernel.allocation(view::LocalStore::at(kernel, op).buffer());
        let read = made.is_some_and(|made| is_read_by_units(kernel, kernel.result(made, 0)));
        if read && !is_fenced_later(kernel, op) {
            Builder::after(kernel, op).fence_async()?;
        }
    }
    Ok(())
}

/// Whether a fence, or another store that gets one, follows with nothing but computations between.
fn is_fenced_later(kernel: &Kernel, store: Op) -> bool {
    let mut at = store;
    while let Some(next) = kernel.next_op(at) {
        match kernel.kind(next) {
            OpKind::FenceAsync {} => return true,
            OpKind::LocalStore {} => {
                let made = kernel.allocation(view::LocalStore::at(kernel, next).buffer());
                return made.is_some_and(|made| is_read_by_units(kernel, kernel.result(made, 0)));
            }
            OpKind::AllocShared { .. } => {}
            kind if kind.spec().traits.has(Traits::PURE) => {}
            _ => return false,
        }
        at = next;
    }
    false
}

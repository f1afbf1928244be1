//! Stages operands of dots in shared memory: loads in a loop become asynchronous copies, other operands of `wgmma` are
//! stored.
//!
//! ```text
//! for_range .. {                                      %b = alloc_shared .. : shared<64x32xf16, #s0>
//!   %x = load %p : tile<64x32xf16, #l0>               for_range .. {slots = 1} {
//!   %y = convert_layout %x : tile<.., #l1>              barrier
//!   %s = dot %y, .. {kind = mma_v2}               →     copy_async %p, %b
//! }                                                     %t = copy_group
//!                                                       %c = copy_await buffer = %b, (%t)
//!                                                       %y = local_load %c : tile<.., #l1>
//!                                                       %s = dot %y, .. {kind = mma_v2}
//!                                                     }
//! ```
//!
//! Here each copy is waited for immediately; `slots` marks loops for `schedule_loop`, which chooses the prefetch
//! distance. A load becomes a copy if a dot in the loop uses it, if it can be copied 4 bytes at a time or more and
//! fills with zeros, and if its addresses can be computed for later iterations. Loops with one stage keep their loads.
//! Dots by FMAs and on `f64` whose operands are such loads become `dot_buffers`, those on `f64` also outside of loops.
//! If all dots of a loop are of that kind but some compute an operand, they store their operands themselves; if their
//! accumulators are small, `ahead = 1` is set instead: their operands are loaded into registers one iteration ahead, if
//! there are enough. The loads of a loop without dots that has `num_stages` of its own become copies, too, and register
//! prefetches where that is impossible.

use std::collections::{HashMap, HashSet};

use crate::schedule::pipeline::stages::stages;
use rtc_abi::Feature;
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Value, view};

use super::buffer_dots;
use super::mma_operands::stage_dot;
use super::operand_layouts::buffer_layout;
use super::read_back::read_back;
use super::staged::{StagedOperands, copied_width, width_of_copies};
use crate::access::addresses::{Memory, addresses, innermost_loops, is_unchanged, loads_of_dots, memory, small_step};
use crate::schedule::pipeline::copy_groups;
use crate::schedule::pipeline::register_prefetch::{asked_for, hold, most_slots, without_copies};
use crate::schedule::pipeline::stages::copies;
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "stage-operands", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    stage(kernel, cx, None)
}

/// Loads that others than the warps of the loop bring: which dimension of the tile is innermost in memory, and how many
/// elements are copied at a time.
pub(crate) type Brought = HashMap<Op, (usize, u32)>;

/// Does it; with `brought` these loads become copies, however wide, and no others.
pub(crate) fn stage(kernel: &mut Kernel, cx: &PassContext, brought: Option<&Brought>) -> Result<(), PassError> {
    let (mut staged, mut outside) = (StagedOperands::default(), false);
    if cx.structure.stages() && cx.target.has(Feature::CpAsync) {
        for of in innermost_loops(kernel) {
            stage_loop(kernel, of, brought, &mut staged)?;
        }
        let (dots, loads) = buffer_dots::outside_of_loops(kernel);
        staged.direct.extend(dots);
        begin_copies(kernel, &loads, None, None, &mut staged)?;
        outside = !loads.is_empty();
    }
    for op in rtc_ir::walk(kernel) {
        if matrix_unit::is_async_dot(kernel.kind(op)) {
            stage_dot(kernel, op, &mut staged)?;
        }
    }
    for op in rtc_ir::walk(kernel).into_iter().filter(|op| staged.direct.contains(op)) {
        buffer_dots::stage(kernel, op, &staged.buffers)?;
    }
    for load in staged.loads.clone() {
        let buffer = staged.buffers[&kernel.result(load, 0)];
        read_back(kernel, kernel.result(load, 0), buffer)?;
        kernel.erase(load);
    }
    for of in staged.loops {
        wait_for_copies(kernel, of)?;
    }
    if outside {
        arrivals(kernel, kernel.body())?;
    }
    Ok(())
}

/// Whether a copy fills a slot of a ring, as those do that are issued ahead.
fn fills_slot(kernel: &Kernel, copy: Op) -> bool {
    kernel
        .def_op(view::CopyAsync::at(kernel, copy).buffer())
        .is_some_and(|made| matches!(kernel.kind(made), OpKind::Slot {}))
}

/// Makes copies of the loads in a loop that dots use.
fn stage_loop(
    kernel: &mut Kernel,
    of: Op,
    brought: Option<&Brought>,
    staged: &mut StagedOperands,
) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    if stages(kernel, of) < 2 || small_step(kernel, of).is_none() {
        return Ok(());
    }
    // Its copies are issued ahead already: the kernel was printed in this phase and read back.
    if copies(kernel, of).into_iter().any(|copy| fills_slot(kernel, copy)) {
        return Ok(());
    }
    let asked = asked_for(kernel, of);
    let mut loads: Vec<(Op, u32)> = asked
        .clone()
        .unwrap_or_else(|| loads_of_dots(kernel, of))
        .into_iter()
        .filter_map(|load| match brought {
            Some(brought) => brought.get(&load).map(|(_, width)| (load, *width)),
            None if asked.is_some() => Some((load, width_of_copies(kernel, load)?)),
            None => Some((load, copied_width(kernel, load)?)),
        })
        .filter(|(load, _)| {
            let roots: Vec<Value> = kernel.op(*load).operands.iter().take(2).copied().collect();
            let Some(part) = addresses(kernel, of, &roots) else { return false };
            let read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
            let pointers = read.map(|op| kernel.operand(*op, 0)).chain([roots[0]]);
            pointers.into_iter().all(|pointer| is_unchanged(kernel, of, pointer))
        })
        .collect();
    // Loads that addresses depend on stay loads.
    let mut indices: HashSet<Op> = HashSet::new();
    for (load, _) in &loads {
        let roots: Vec<Value> = kernel.op(*load).operands.iter().take(2).copied().collect();
        indices.extend(addresses(kernel, of, &roots).into_iter().flat_map(|part| part.ops));
    }
    loads.retain(|(load, _)| !indices.contains(load));
    if let Some(all) = asked.filter(|_| most_slots(kernel, loads.iter().map(|(load, _)| *load)) < 2) {
        if let (true, OpKind::ForRange { hints, .. }) = (hold(kernel, &all), kernel.kind_mut(of)) {
            hints.ahead = Some(1);
        }
        return Ok(());
    }
    let direct = buffer_dots::find(kernel, body, &loads.iter().map(|(load, _)| *load).collect());
    if let Some(ahead) = without_copies(kernel, of, &direct) {
        if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
            hints.ahead = ahead.then_some(1).or(hints.ahead);
        }
        return Ok(());
    }
    staged.direct.extend(direct);
    begin_copies(kernel, &loads, Some(of), brought, staged)?;
    if kernel.ops(body).any(|op| matches!(kernel.kind(op), OpKind::CopyAsync { .. })) {
        staged.loops.push(of);
    }
    Ok(())
}

/// Puts copies before loads, so many elements at a time, with buffers before the loop `of` that they are in.
fn begin_copies(
    kernel: &mut Kernel,
    loads: &[(Op, u32)],
    of: Option<Op>,
    brought: Option<&Brought>,
    staged: &mut StagedOperands,
) -> Result<(), PassError> {
    for (load, width) in loads {
        let result = kernel.result(*load, 0);
        let inner = brought.and_then(|brought| brought.get(load)).map(|(inner, _)| *inner);
        let chosen = buffer_layout(kernel, result, *width, inner, &staged.direct);
        let Some((layout, align)) = chosen else { continue };
        let Some(ty) = kernel.value_type(result).elem().and_then(|elem| kernel.shared_type(elem, &layout, 1)) else {
            continue;
        };
        let buffer = Builder::before(kernel, of.unwrap_or(*load)).buffer(ty, align)?;
        let (pointer, mask) = (view::Load::at(kernel, *load).pointer(), kernel.mask(*load));
        let copy = OpKind::CopyAsync { vector: *width };
        Builder::before(kernel, *load).build(copy, &[pointer, buffer], &[mask], &[], &[], &[])?;
        staged.buffers.insert(result, buffer);
        staged.loads.push(*load);
    }
    Ok(())
}

/// Puts in what a loop waits for: a barrier at its start, so that the slots are free, and the arrival of its copies.
fn wait_for_copies(kernel: &mut Kernel, of: Op) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    arrivals(kernel, body)?;
    if let Some(first) = kernel.first_op(body) {
        Builder::before(kernel, first).barrier()?;
    }
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
        hints.slots = Some(1);
    }
    Ok(())
}

/// Waits for the copies that a block begins, before the first use of their buffers, and before stores to where they read.
fn arrivals(kernel: &mut Kernel, body: Block) -> Result<(), PassError> {
    let mut filled: Vec<Value> = Vec::new();
    let mut copied: HashSet<Option<Memory>> = HashSet::new();
    for op in kernel.ops(body).collect::<Vec<_>>() {
        if let Some(copy) = view::CopyAsync::of(kernel, op) {
            filled.push(copy.buffer());
            copied.insert(memory(kernel, copy.pointer()));
            continue;
        }
        let uses = |op: &Op| {
            let overwrites = match kernel.kind(*op) {
                OpKind::Store { .. } => copied.contains(&memory(kernel, kernel.operand(*op, 0))),
                _ => false,
            };
            overwrites || kernel.op(*op).operands.iter().any(|value| filled.contains(value))
        };
        if !rtc_ir::walk_op(kernel, op).iter().any(uses) {
            continue;
        }
        copied.clear();
        let token = Builder::before(kernel, op).copy_group()?;
        for buffer in filled.drain(..) {
            let ready = Builder::before(kernel, op).await_copies(buffer, &[token])?;
            copy_groups::read_after(kernel, buffer, ready);
        }
    }
    Ok(())
}

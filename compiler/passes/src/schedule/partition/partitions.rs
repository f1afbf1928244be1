//! Creates the partitions of `specialize_warps`: a producer and a consumer, each of which loops over the programs of
//! the block.
//!
//! The producer is a clone of the whole program that keeps only the operations that its copies, loops and branches
//! need. The loops of both are rewritten in `rings.rs`.

use rtc_abi::Persistent;
use rtc_ir::{
    Block, Builder, Elem, Hidden, Kernel, Literal, Op, OpKind, Position, SharedType, Type, Value, ValueDef, ValueMap,
    view,
};

use super::candidate::Candidate;
use super::config::{PRODUCER_WARPS, PartitionConfig};
use super::defer_stores;
use super::maps::Maps;
use super::persistent::{Programs, are_unequal, started};
use super::resident_operands::{self, ResidentCopy};
use super::rings::{Shared, SlotBarriers};
use super::row_vectors;
use crate::PassError;
use crate::access::addresses::memory;
use crate::pass::missing;
use crate::schedule::pipeline::copy_groups;
use crate::schedule::tma::coordinates::Names;
use crate::schedule::tma::kernel_tensor_maps;
use crate::schedule::tma::tensor_maps;

/// Whether the producer, now that nothing idle is left in it, computes no tiles and reads nothing that is written.
pub(crate) fn is_plain(kernel: &Kernel, found: &Candidate) -> bool {
    let Some(division) = kernel.specialization() else { return false };
    rtc_ir::walk_block(kernel, kernel.op(division).blocks[0]).into_iter().all(|op| {
        let data = kernel.op(op);
        let args = data.blocks.iter().flat_map(|block| &kernel.block(*block).args);
        let tiles =
            data.results.iter().chain(&data.operands).chain(args).any(|v| kernel.value_type(*v).shape().is_some());
        let unchanged = |pointer: Value| memory(kernel, pointer).is_some_and(|read| !found.written.contains(&read));
        !tiles && (!matches!(data.kind, OpKind::Load { .. }) || unchanged(data.operands[0]))
    })
}

/// Rewrites the kernel.
pub(crate) fn partition_warps(kernel: &mut Kernel, found: &Candidate, form: &PartitionConfig) -> Result<(), PassError> {
    let ret = kernel.terminator(kernel.body()).ok_or_else(|| missing("no end"))?;
    let maps = Maps::make(kernel, found, form)?;
    let unequal = are_unequal(kernel, found);
    let blocks = started(kernel, found, form.blocks);
    let grid = [0, 1, 2].map(|axis| {
        let name = format!("grid.{axis}");
        kernel.add_hidden(name, Type::Scalar(Elem::I32), Hidden::Grid(axis))
    });
    let warps = kernel.options.num_warps;
    let buffers: Vec<Option<Op>> = found.before.iter().map(|before| kernel.def_op(before.buffer)).collect();
    let is_program = |op: &Op| *op != ret && !buffers.contains(&Some(*op));
    let program: Vec<Op> = kernel.ops(kernel.body()).filter(is_program).collect();

    // The shared buffers and barriers.
    let mut rings = Vec::new();
    for (number, ty) in found.rings.iter().enumerate() {
        let mut align = 1;
        for (copy, _) in found.loops.iter().filter_map(|of| of.copies.get(number)) {
            let made = kernel.def_op(view::CopyAsync::at(kernel, *copy).buffer()).map(|made| kernel.kind(made));
            let Some(OpKind::AllocShared { align: own, .. }) = made else { return Err(missing("a buffer")) };
            align = align.max(*own);
        }
        let ty = SharedType { slots: form.slots, ..*ty };
        rings.push(Builder::before(kernel, ret).buffer(ty, align)?);
    }
    let before = found.before.iter().zip(&maps.before);
    let brought = before.map(|(before, map)| ResidentCopy::share(kernel, ret, before, map, warps));
    let brought = brought.collect::<Result<Vec<ResidentCopy<'_>>, _>>()?;
    let mut builder = Builder::before(kernel, ret);
    let mut barriers = Vec::new();
    let rows =
        found.row_rings.iter().map(|ty| builder.buffer(SharedType { slots: form.slots, ..*ty }, row_vectors::ALIGN));
    let row_rings = rows.collect::<Result<Vec<Value>, _>>()?;
    let groups = found.loops[0].groups.iter().max().map_or(0, |last| last + 1);
    for _ in 0..groups + usize::from(!row_rings.is_empty()) {
        barriers
            .push(SlotBarriers { full: builder.barriers(form.slots, 1)?, empty: builder.barriers(form.slots, warps)? });
    }
    let outs = tensor_maps::buffers(&maps.stores, &mut builder)?;
    builder.barrier()?;
    let number = |builder: &mut Builder<'_>, n: i64| builder.constant_of(Literal::Int(n), Type::Scalar(Elem::I32));
    let zero = number(&mut builder, 0)?;
    let some = builder.muli(grid[0], grid[1])?;
    let programs = builder.muli(some, grid[2])?;
    let programs = Programs::new(&mut builder, programs, unequal)?;

    // The consumer gets the program itself.
    let partitions = [kernel.new_block(), kernel.new_block()];
    let division =
        OpKind::WarpSpecialize { warps: vec![PRODUCER_WARPS, warps], registers: Some(form.registers.to_vec()) };
    Builder::before(kernel, ret).build(division, &[], &[], &[], &partitions, &[])?;
    let bodies = [kernel.new_block(), kernel.new_block()];
    let mut pids = Vec::new();
    let mut loops = Vec::new();
    for (partition, body) in partitions.into_iter().zip(bodies) {
        let index = kernel.add_arg(body, Type::Scalar(Elem::I32), Some("program".into()));
        let carried = ["slot", "phase"].map(|name| kernel.add_arg(body, Type::Scalar(Elem::I32), Some(name.into())));
        let mut inside = Builder::at_end(kernel, body);
        let index = programs.number(&mut inside, index)?;
        let x = inside.remsi(index, grid[0])?;
        let rows = inside.divsi(index, grid[0])?;
        let (y, z) = (inside.remsi(rows, grid[1])?, inside.divsi(rows, grid[1])?);
        inside.yield_values(&carried)?;
        pids.push([x, y, z]);
        let kind = OpKind::ForRange { unsigned: false, hints: Default::default() };
        let types = [Type::Scalar(Elem::I32); 2];
        let of =
            Builder::at_end(kernel, partition).build(kind, &programs.bounds, &[], &[zero, zero], &[body], &types)?;
        Builder::at_end(kernel, partition).yield_values(&[])?;
        loops.push(of);
    }
    let end = kernel.terminator(bodies[1]).ok_or_else(|| missing("an end"))?;
    for op in program {
        kernel.move_op(op, Position::Before(end));
    }

    // The producer gets a clone without side effects.
    let copy_end = kernel.terminator(bodies[0]).ok_or_else(|| missing("an end"))?;
    let args = bodies.map(|body| kernel.block(body).args.clone());
    let mut map: ValueMap = args[1].iter().copied().zip(args[0].iter().copied()).collect();
    kernel.clone_ops(bodies[1], &mut map, Position::Before(copy_end));
    if let Some(end) = kernel.previous_op(copy_end) {
        kernel.erase(end);
    }

    let shared = Shared { form, barriers, groups, rings, row_rings, grid };
    remove_side_effects(kernel, bodies[0]);
    for (of, maps) in found.loops.iter().zip(&maps.copies) {
        shared.producer(kernel, of, &map, maps, loops[0], pids[0])?;
        shared.consumer(kernel, of, loops[1])?;
    }
    if let ([first, ..], false) = (&found.loops[..], brought.is_empty()) {
        let index = map.get(&kernel.block(kernel.op(first.of).blocks[0]).args[0]).ok_or_else(|| missing("an index"))?;
        let ValueDef::Arg(block, _) = kernel.value(*index).def else { return Err(missing("an index")) };
        let at = kernel.block(block).parent.ok_or_else(|| missing("a loop"))?;
        let last = found.loops.last().unwrap_or(first).of;
        let phases =
            [resident_operands::phase(kernel, loops[0], zero)?, resident_operands::phase(kernel, loops[1], zero)?];
        for operand in &brought {
            operand.producer(kernel, at, &Names { pids: pids[0], grid, map: Some(&map) }, phases[0])?;
            operand.consumer(kernel, last, phases[1])?;
        }
    }
    let names = Names { pids: pids[1], grid, map: None };
    match (&maps.stores[..], &outs[..]) {
        ([store], [out]) if form.deferred => defer_stores::defer(kernel, found, store, *out, &names, loops[1])?,
        _ => tensor_maps::copy_out(kernel, &found.stores, &maps.stores, &outs, &names)?,
    }
    for store in &maps.stores {
        if let Some(maker) = kernel_tensor_maps::maker(kernel, store.map) {
            let wait = OpKind::CopyDescWait { pending: 0, read: false };
            Builder::before(kernel, maker).build(wait, &[], &[], &[], &[], &[])?;
        }
    }
    if !outs.is_empty() {
        let end = kernel.terminator(partitions[1]).ok_or_else(|| missing("an end"))?;
        Builder::before(kernel, end).build(OpKind::CopyDescWait { pending: 0, read: true }, &[], &[], &[], &[], &[])?;
    }
    for (body, pids) in bodies.into_iter().zip(pids) {
        for op in rtc_ir::walk_block(kernel, body) {
            let new = match kernel.kind(op) {
                OpKind::ProgramId { axis } => pids[*axis as usize],
                OpKind::NumPrograms { axis } => grid[*axis as usize],
                _ => continue,
            };
            kernel.replace_uses(kernel.result(op, 0), new);
            kernel.erase(op);
        }
    }
    kernel.persistent = Some(Persistent { blocks_per_multiprocessor: blocks });
    // One block of a cluster does the work.
    kernel.options.num_ctas = 1;
    if form.blocks > 1 {
        kernel.options.maxnreg = Some(form.at_start);
    }
    Ok(())
}

/// Removes side effects, and operations for dots alone, from the producer's clone of the program.
fn remove_side_effects(kernel: &mut Kernel, body: Block) {
    copy_groups::remove(kernel, rtc_ir::walk_block(kernel, body));
    for op in rtc_ir::walk_block(kernel, body) {
        let gone = matches!(
            kernel.kind(op),
            OpKind::Store { .. }
                | OpKind::AtomicRmw { .. }
                | OpKind::LocalStore {}
                | OpKind::CopyAsync { .. }
                | OpKind::Barrier {}
                | OpKind::Assume {}
        );
        if gone {
            kernel.erase(op);
        }
    }
}

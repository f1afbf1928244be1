//! Creates the partitions of `specialize_warps`: a producer and a consumer, each of which loops over the programs of
//! the block.
//!
//! The producer is a clone of the whole program that keeps only the operations that its copies, loops and branches
//! need. The loops of both are rewritten in `rings.rs`.

use rtc_ir::{
    Block, Builder, Elem, Hidden, Kernel, Literal, Op, OpKind, Position, SharedType, Traits, Type, Value, ValueDef,
    ValueMap,
};

use super::candidate::Candidate;
use super::config::{PartitionConfig, Role};
use super::defer_stores;
use super::loop_carried::CarriedThrough;
use super::maps::Maps;
use super::persistent::{Programs, are_unequal, started};
use super::resident_operands::{self, ResidentCopy};
use super::rings::{Shared, SlotBarriers};
use super::short_operands::ShortOperands;
use super::split_stores;
use super::transfers::{gathered_tiles, scattered_rows};
use crate::PassError;
use crate::access::addresses::memory;
use crate::pass::missing;
use crate::schedule::pipeline::copy_groups;
use crate::schedule::resources::STORED_BYTES;
use crate::schedule::tma::coordinates::Names;
use crate::schedule::tma::kernel_tensor_maps;
use crate::schedule::tma::tensor_maps::{self, StoreMap};

/// A partition of a kernel.
struct Partition {
    role: Role,
    block: Block,
    /// Its loop over programs, and the block of that.
    programs: Op,
    body: Block,
    /// The program ids of an iteration.
    pids: [Value; 3],
}

/// Whether the partitions that copy, now that nothing idle is left in them, compute no tiles but addresses of copies by threads,
/// and read nothing that is written.
pub(crate) fn is_plain(kernel: &Kernel, found: &Candidate, form: &PartitionConfig) -> bool {
    let Some(division) = kernel.specialization() else { return false };
    let blocks = form.partitions.iter().zip(&kernel.op(division).blocks);
    let copying = blocks.filter(|(spec, _)| spec.role == Role::Producer).map(|(_, block)| *block);
    copying.flat_map(|block| rtc_ir::walk_block(kernel, block)).all(|op| {
        let data = kernel.op(op);
        let args = data.blocks.iter().flat_map(|block| &kernel.block(*block).args);
        let tiles =
            data.results.iter().chain(&data.operands).chain(args).any(|v| kernel.value_type(*v).shape().is_some());
        let of_addresses = || match data.kind {
            OpKind::CopyAsync { .. } => true,
            ref kind => {
                is_handing_on(kind)
                    || scattered_rows::works_on_each(kernel, op)
                    || gathered_tiles::can_be_repeated(kernel, op)
            }
        };
        let unchanged = |pointer: Value| memory(kernel, pointer).is_some_and(|read| !found.written.contains(&read));
        (!tiles || of_addresses()) && (!matches!(data.kind, OpKind::Load { .. }) || unchanged(data.operands[0]))
    })
}

/// Whether an operation only hands values into its blocks, or out of them.
fn is_handing_on(kind: &OpKind) -> bool {
    matches!(kind, OpKind::ForRange { .. } | OpKind::WhileLoop {} | OpKind::IfElse {})
        || kind.spec().traits.has(Traits::TERMINATOR)
}

/// Rewrites the kernel.
pub(crate) fn partition_warps(kernel: &mut Kernel, found: &Candidate, form: &PartitionConfig) -> Result<(), PassError> {
    let ret = kernel.terminator(kernel.body()).ok_or_else(|| missing("no end"))?;
    let maps = Maps::make(kernel, found, form)?;
    let unequal = are_unequal(kernel, found);
    let persistent = started(kernel, found, form.blocks);
    let grid = [0, 1, 2].map(|axis| {
        let name = format!("grid.{axis}");
        kernel.add_hidden(name, Type::Scalar(Elem::I32), Hidden::Grid(axis))
    });
    let buffers: Vec<Option<Op>> = found.before.iter().map(|before| kernel.def_op(before.buffer)).collect();
    let is_program = |op: &Op| *op != ret && !buffers.contains(&Some(*op));
    let program: Vec<Op> = kernel.ops(kernel.body()).filter(is_program).collect();

    let rings = make_rings(kernel, ret, found, form)?;
    let before = found.before.iter().zip(&maps.before);
    let brought =
        before.map(|(before, map)| ResidentCopy::share(kernel, ret, before, map, warps_of(form, Role::Consumer)));
    let brought = brought.collect::<Result<Vec<ResidentCopy<'_>>, _>>()?;
    let barriers = make_barriers(kernel, ret, found, form)?;
    let operands = (&found.loops[..], &found.slot_types()[..]);
    let short = ShortOperands::find(kernel, ret, operands, &maps.rows, warps_of(form, Role::Consumer))?;
    let shared = Shared { form, barriers, rings, short, grid };
    let outs = tensor_maps::buffers(&maps.stores, &mut Builder::before(kernel, ret))?;
    let partitions = divide(kernel, ret, form, grid, unequal)?;
    let [producer, consumer] = [Role::Producer, Role::Consumer]
        .map(|role| partitions.iter().find(|partition| partition.role == role).ok_or_else(|| missing("a partition")));
    let (producer, consumer) = (producer?, consumer?);
    let map = share_program(kernel, program, producer, consumer)?;
    if let Some(short) = &shared.short {
        short.producer(kernel, producer.programs)?;
        short.consumer(kernel, consumer.programs, &shared.rings)?;
    }
    let mut carried = CarriedThrough::new();
    for (of, maps) in found.loops.iter().zip(&maps.copies) {
        shared.producer(kernel, of, &map, maps, (producer.programs, producer.pids), &mut carried)?;
        shared.consumer(kernel, of, consumer.programs, &mut carried)?;
    }
    bring_operands(kernel, found, &brought, (producer, &map), consumer, grid)?;
    store_results(kernel, found, form, (&maps.stores, &outs), consumer, grid)?;
    for partition in &partitions {
        replace_program_ids(kernel, partition, grid);
    }
    kernel.persistent = Some(persistent);
    // One block of a cluster does the work.
    kernel.options.num_ctas = 1;
    if form.blocks > 1 {
        kernel.options.maxnreg = Some(form.at_start);
    }
    Ok(())
}

/// The warps of a role.
fn warps_of(form: &PartitionConfig, role: Role) -> u32 {
    form.partitions.iter().filter(|partition| partition.role == role).map(|partition| partition.warps).sum()
}

/// The rings.
fn make_rings(
    kernel: &mut Kernel,
    ret: Op,
    found: &Candidate,
    form: &PartitionConfig,
) -> Result<Vec<Value>, PassError> {
    let mut builder = Builder::before(kernel, ret);
    let rings = found.rings.iter();
    Ok(rings
        .map(|ring| builder.buffer(SharedType { slots: form.slots, ..ring.ty }, ring.align))
        .collect::<Result<_, _>>()?)
}

/// The barriers of all groups.
fn make_barriers(
    kernel: &mut Kernel,
    ret: Op,
    found: &Candidate,
    form: &PartitionConfig,
) -> Result<Vec<SlotBarriers>, PassError> {
    let mut builder = Builder::before(kernel, ret);
    let last = found.loops.iter().flat_map(|of| &of.transfers).map(|transfer| transfer.group).max();
    let mut barriers = Vec::new();
    for group in 0..last.map_or(0, |last| last + 1) {
        let all = || found.loops.iter().flat_map(|of| &of.transfers);
        let by_threads = all().any(|transfer| transfer.group == group && transfer.is_by_threads());
        // One arrival says how many bytes come.
        let arrivals = 1 + if by_threads { 32 * warps_of(form, Role::Producer) } else { 0 };
        let full = builder.barriers(form.slots, arrivals)?;
        let empty = builder.barriers(form.slots, warps_of(form, Role::Consumer))?;
        barriers.push(SlotBarriers { full, empty, by_threads });
    }
    Ok(barriers)
}

/// Makes the partitions, each with an empty loop over the programs of the block that carries a slot and its phase.
fn divide(
    kernel: &mut Kernel,
    ret: Op,
    form: &PartitionConfig,
    grid: [Value; 3],
    unequal: bool,
) -> Result<Vec<Partition>, PassError> {
    let mut builder = Builder::before(kernel, ret);
    builder.barrier()?;
    let zero = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
    let some = builder.muli(grid[0], grid[1])?;
    let programs = builder.muli(some, grid[2])?;
    let programs = Programs::new(&mut builder, programs, unequal)?;
    let blocks: Vec<Block> = form.partitions.iter().map(|_| kernel.new_block()).collect();
    let division = OpKind::WarpSpecialize {
        warps: form.partitions.iter().map(|partition| partition.warps).collect(),
        registers: Some(form.partitions.iter().map(|partition| partition.registers).collect()),
    };
    Builder::before(kernel, ret).build(division, &[], &[], &[], &blocks, &[])?;
    let mut partitions = Vec::new();
    for (spec, block) in form.partitions.iter().zip(blocks) {
        let body = kernel.new_block();
        let index = kernel.add_arg(body, Type::Scalar(Elem::I32), Some("program".into()));
        let carried = ["slot", "phase"].map(|name| kernel.add_arg(body, Type::Scalar(Elem::I32), Some(name.into())));
        let mut inside = Builder::at_end(kernel, body);
        let index = programs.number(&mut inside, index)?;
        let x = inside.remsi(index, grid[0])?;
        let rows = inside.divsi(index, grid[0])?;
        let pids = [x, inside.remsi(rows, grid[1])?, inside.divsi(rows, grid[1])?];
        inside.yield_values(&carried)?;
        let kind = OpKind::ForRange { unsigned: false, hints: Default::default() };
        let types = [Type::Scalar(Elem::I32); 2];
        let mut builder = Builder::at_end(kernel, block);
        let programs = builder.build(kind, &programs.bounds, &[], &[zero, zero], &[body], &types)?;
        builder.yield_values(&[])?;
        partitions.push(Partition { role: spec.role, block, programs, body, pids });
    }
    Ok(partitions)
}

/// Gives the consumer the program itself, and the producer a clone without side effects; returns the clones of values.
fn share_program(
    kernel: &mut Kernel,
    program: Vec<Op>,
    producer: &Partition,
    consumer: &Partition,
) -> Result<ValueMap, PassError> {
    let end = kernel.terminator(consumer.body).ok_or_else(|| missing("an end"))?;
    for op in program {
        kernel.move_op(op, Position::Before(end));
    }
    let copy_end = kernel.terminator(producer.body).ok_or_else(|| missing("an end"))?;
    let [from, to] = [consumer, producer].map(|partition| kernel.block(partition.body).args.clone());
    let mut map: ValueMap = from.iter().copied().zip(to.iter().copied()).collect();
    kernel.clone_ops(consumer.body, &mut map, Position::Before(copy_end));
    if let Some(end) = kernel.previous_op(copy_end) {
        kernel.erase(end);
    }
    remove_side_effects(kernel, producer.body);
    Ok(map)
}

/// Copies the operands that stay in shared memory throughout the loops.
fn bring_operands(
    kernel: &mut Kernel,
    found: &Candidate,
    brought: &[ResidentCopy<'_>],
    (producer, map): (&Partition, &ValueMap),
    consumer: &Partition,
    grid: [Value; 3],
) -> Result<(), PassError> {
    let ([first, .., last] | [first @ last], false) = (&found.loops[..], brought.is_empty()) else { return Ok(()) };
    let index = map.get(&kernel.block(kernel.op(first.of).blocks[0]).args[0]).ok_or_else(|| missing("an index"))?;
    let ValueDef::Arg(block, _) = kernel.value(*index).def else { return Err(missing("an index")) };
    let at = kernel.block(block).parent.ok_or_else(|| missing("a loop"))?;
    let mut phases = Vec::new();
    for partition in [producer, consumer] {
        let zero = kernel.variadic(partition.programs)[0];
        phases.push(resident_operands::phase(kernel, partition.programs, zero)?);
    }
    for operand in brought {
        operand.producer(kernel, at, &Names { pids: producer.pids, grid, map: Some(map) }, phases[0])?;
        operand.consumer(kernel, last.of, phases[1])?;
    }
    Ok(())
}

/// Stores results by copies out of shared memory, at once or under the next program.
fn store_results(
    kernel: &mut Kernel,
    found: &Candidate,
    form: &PartitionConfig,
    (stores, outs): (&[StoreMap], &[Value]),
    consumer: &Partition,
    grid: [Value; 3],
) -> Result<(), PassError> {
    let names = Names { pids: consumer.pids, grid, map: None };
    match (stores, outs) {
        ([store], [out]) if form.deferred => {
            defer_stores::defer(kernel, found, store, *out, &names, consumer.programs)?;
        }
        _ => tensor_maps::copy_out(kernel, &found.stores, stores, outs, &names)?,
    }
    for store in stores {
        if let Some(maker) = kernel_tensor_maps::maker(kernel, store.map) {
            let wait = OpKind::CopyDescWait { pending: 0, read: false };
            Builder::before(kernel, maker).build(wait, &[], &[], &[], &[], &[])?;
        }
    }
    if form.in_pieces {
        split_stores::split(kernel, consumer.body, STORED_BYTES * warps_of(form, Role::Consumer))?;
    }
    if !outs.is_empty() {
        let end = kernel.terminator(consumer.block).ok_or_else(|| missing("an end"))?;
        Builder::before(kernel, end).build(OpKind::CopyDescWait { pending: 0, read: true }, &[], &[], &[], &[], &[])?;
    }
    Ok(())
}

/// The ids of the program in hand, and the numbers of programs of the launch.
fn replace_program_ids(kernel: &mut Kernel, partition: &Partition, grid: [Value; 3]) {
    for op in rtc_ir::walk_block(kernel, partition.body) {
        let new = match kernel.kind(op) {
            OpKind::ProgramId { axis } => partition.pids[*axis as usize],
            OpKind::NumPrograms { axis } => grid[*axis as usize],
            _ => continue,
        };
        kernel.replace_uses(kernel.result(op, 0), new);
        kernel.erase(op);
    }
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

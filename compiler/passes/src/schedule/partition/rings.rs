//! The loops of producer and consumer, with the rings and barriers through which they communicate. Slot and phase are
//! carried through all loops; the phase bit flips when the slot wraps around.
//!
//! ```text
//! full, empty: a barrier for each slot
//! producer:   wait(empty[slot], phase ^ 1); barrier; expect(full[slot], bytes); copies into the slot; next slot
//! consumer:   wait(full[slot], phase); dots; arrive(empty[slot]) by each warp; next slot
//! ```

use std::collections::HashMap;

use rtc_ir::{
    Block, Builder, Elem, Kernel, Literal, Loc, Op, OpKind, Position, Predicate, Type, Value, ValueDef, ValueMap,
    constant_bits, regions, view,
};

use super::branch::branch;
use super::config::PartitionConfig;
use super::loop_carried::{self, CarriedThrough, Level, PathStep};
use super::producer_loop::ProducerLoop;
use super::short_operands::ShortOperands;
use super::transfers::{Copies, Transfer};
use crate::PassError;
use crate::pass::missing;
use crate::schedule::pipeline::copy_groups;
use crate::schedule::tma::coordinates::Names;
use crate::schedule::tma::kernel_tensor_maps;

/// The buffers and barriers that both partitions use.
pub(crate) struct Shared<'f> {
    /// The numbers of the new form.
    pub form: &'f PartitionConfig,
    /// One pair for each group of transfers.
    pub barriers: Vec<SlotBarriers>,
    /// The rings, by the numbers that transfers have.
    pub rings: Vec<Value>,
    /// The operands of few rows.
    pub short: Option<ShortOperands>,
    /// The numbers of programs.
    pub grid: [Value; 3],
}

/// The barriers that say that slots are full, and that they are empty.
pub(crate) struct SlotBarriers {
    /// Full.
    pub full: Value,
    /// Empty.
    pub empty: Value,
    /// Whether each thread of the producer arrives at `full`, with its copies.
    pub by_threads: bool,
}

impl SlotBarriers {
    /// The two of a slot.
    pub fn at(&self, builder: &mut Builder<'_>, slot: Value) -> Result<[Value; 2], PassError> {
        Ok([builder.slot(self.full, slot)?, builder.slot(self.empty, slot)?])
    }

    /// Waits until a slot is empty, and lets it be full once so many bytes, less `fewer`, have come; gives the barrier that says
    /// so.
    pub fn begin(
        &self,
        mut at: Builder<'_>,
        slot: Value,
        phase: Value,
        (bytes, fewer): (u32, Option<Value>),
    ) -> Result<Value, PassError> {
        let one = at.constant_of(Literal::Int(1), Type::Scalar(Elem::I32))?;
        let [full, empty] = self.at(&mut at, slot)?;
        let before = at.xori(phase, one)?;
        at.barrier_wait(empty, before)?;
        // A warp that came later than the next time the slot is freed would wait for the time after that.
        at.barrier()?;
        at.barrier_expect(full, fewer, bytes)?;
        Ok(full)
    }
}

/// Where a partition is in the ring, in the innermost loop.
struct PipelineState {
    slot: Value,
    phase: Value,
    /// The end of the loop.
    end: Op,
    /// The way from the loop over programs into the loop.
    steps: Vec<PathStep>,
    /// The slot and the phase in each block on the way, that of the loop over programs first.
    levels: Vec<[Level; 2]>,
}

impl Shared<'_> {
    /// Carries slot and phase from the loop over programs, where they are carried already, through the operations of `path`,
    /// after the loops that they are carried through already. `carried` has the operations around those.
    fn carry(
        &self,
        kernel: &mut Kernel,
        programs: Op,
        path: &[Op],
        carried: &mut CarriedThrough,
    ) -> Result<PipelineState, PassError> {
        let body = kernel.op(programs).blocks[0];
        let inside = path.last().and_then(|of| kernel.first_op(kernel.op(*of).blocks[0]));
        let steps =
            inside.and_then(|inside| loop_carried::path_to(kernel, path, inside)).ok_or_else(|| missing("a way"))?;
        let mut levels = vec![loop_carried::known(kernel, body, [0, 1])?];
        for (op, block) in &steps {
            let Some(places) = carried.get(op) else { break };
            levels.push(loop_carried::known(kernel, *block, *places)?);
        }
        let others = &steps[levels.len() - 1..];
        let outer = levels[levels.len() - 1];
        let mut through = |number: usize, name| {
            let level: Level = outer[number];
            let (inner, result) = loop_carried::carry(kernel, others, level.value, Some(name))?;
            level.set(kernel, result);
            Ok::<_, PassError>(inner)
        };
        let inner = through(0, "slot")?.into_iter().zip(through(1, "phase")?);
        for ((op, _), (slot, phase)) in others.iter().zip(inner) {
            carried.insert(*op, [slot.at, phase.at]);
            levels.push([slot, phase]);
        }
        let [slot, phase] = levels[levels.len() - 1];
        Ok(PipelineState { slot: slot.value, phase: phase.value, end: slot.end, steps, levels })
    }

    /// The slot of a transfer, as a buffer like its own.
    fn place(&self, kernel: &mut Kernel, before: Op, slot: Value, transfer: &Transfer) -> Result<Value, PassError> {
        let mut builder = Builder::before(kernel, before);
        let place = builder.slot(self.rings[transfer.ring], slot)?;
        match kernel.value_type(transfer.buffer).as_shared() {
            Some(ty) if kernel.value_type(place) != Type::Shared(ty) => {
                Ok(Builder::before(kernel, before).shared_view_as(place, ty)?)
            }
            _ => Ok(place),
        }
    }

    /// Goes on to the next slot at the end of the loop.
    fn advance(&self, kernel: &mut Kernel, state: &PipelineState) -> Result<(), PassError> {
        let mut builder = Builder::before(kernel, state.end);
        let ty = Type::Scalar(Elem::I32);
        let [zero, one, slots] = [0, 1, i64::from(self.form.slots)].map(|n| builder.constant_of(Literal::Int(n), ty));
        let (zero, one, slots) = (zero?, one?, slots?);
        let next = builder.addi(state.slot, one)?;
        let wraps = builder.cmpi(next, slots, Predicate::Eq)?;
        let slot = builder.select(wraps, zero, next)?;
        let turned = builder.xori(state.phase, one)?;
        let phase = builder.select(wraps, turned, state.phase)?;
        let [at_slot, at_phase] = state.levels[state.levels.len() - 1];
        at_slot.set(kernel, slot);
        at_phase.set(kernel, phase);
        Ok(())
    }

    /// A loop of the producer: `map` maps values of the program to their clones.
    pub fn producer(
        &self,
        kernel: &mut Kernel,
        of: &ProducerLoop,
        map: &ValueMap,
        copies: &[Copies<'_>],
        (programs, pids): (Op, [Value; 3]),
        carried: &mut CarriedThrough,
    ) -> Result<(), PassError> {
        // The copy of an operation with a block is the one around the copy of an operation in it.
        let mut path = Vec::new();
        let inner = kernel.op(of.of).blocks[0];
        let index = map.get(&kernel.block(inner).args[0]).ok_or_else(|| missing("an index"))?;
        let ValueDef::Arg(mut block, _) = kernel.value(*index).def else { return Err(missing("an index")) };
        while let Some(op) = kernel.block(block).parent.filter(|op| *op != programs) {
            path.insert(0, op);
            block = kernel.op(op).parent.ok_or_else(|| missing("a block"))?;
        }
        let state = self.carry(kernel, programs, &path, carried)?;
        let names = Names { pids, grid: self.grid, map: Some(map) };
        for (group, barriers) in self.barriers.iter().enumerate() {
            let members = || of.transfers.iter().zip(copies).filter(|(transfer, _)| transfer.group == group);
            let bytes = members().map(|(transfer, copies)| copies.bytes(kernel, transfer.buffer)).sum();
            let mut fewer: Option<Value> = None;
            let mut last_tiles = HashMap::new();
            for (transfer, _) in members() {
                let Some(short) = &self.short else { break };
                let (last, left_out) = short.left_out(kernel, state.end, &names, transfer)?;
                last_tiles.extend(last.map(|last| (transfer.buffer, last)));
                fewer = match (fewer, left_out) {
                    (Some(all), Some(more)) => Some(Builder::before(kernel, state.end).addi(all, more)?),
                    (all, more) => all.or(more),
                };
            }
            let at = Builder::before(kernel, state.end);
            let full = barriers.begin(at, state.slot, state.phase, (bytes, fewer))?;
            // Copies by TMA take one instruction each, so they begin first.
            let (by_threads, others): (Vec<_>, Vec<_>) = members().partition(|(transfer, _)| transfer.is_by_threads());
            for (transfer, copies) in others.into_iter().chain(by_threads) {
                let last = kernel.previous_op(state.end);
                let place = self.place(kernel, state.end, state.slot, transfer)?;
                copies.issue(kernel, state.end, &names, (place, full), last_tiles.get(&transfer.buffer).copied())?;
                // A copy is at the place of the load that it stands for, not at that of the loop.
                if let Some(loc) = transfer.loc {
                    let first = last.and_then(|last| kernel.next_op(last));
                    locate(kernel, first, state.end, loc);
                }
            }
            if barriers.by_threads {
                Builder::before(kernel, state.end).build(OpKind::CopyArrive {}, &[full], &[], &[], &[], &[])?;
            }
        }
        self.make_maps(kernel, &state, &names, copies, programs)?;
        self.advance(kernel, &state)?;
        no_slots(kernel, path[path.len() - 1]);
        Ok(())
    }

    /// Makes maps in two slots in turn, after the last of their values. Before a map overwrites one that copies in
    /// flight may use, waits until all slots are full, unless all have been filled since.
    fn make_maps(
        &self,
        kernel: &mut Kernel,
        state: &PipelineState,
        names: &Names<'_>,
        copies: &[Copies<'_>],
        programs: Op,
    ) -> Result<(), PassError> {
        let all = copies.iter().flat_map(Copies::maps);
        let makers: Vec<Op> = all.filter_map(|map| kernel_tensor_maps::maker(kernel, names.of(map))).collect();
        for (number, [slot, phase]) in state.levels.iter().enumerate() {
            let here: Vec<Op> = kernel.ops(slot.block).filter(|op| makers.contains(op)).collect();
            let Some((last, others)) = here.split_last() else { continue };
            for maker in others {
                kernel.move_op(*maker, Position::Before(*last));
            }
            let first = *others.first().unwrap_or(last);
            let body = kernel.op(programs).blocks[0];
            let outer: Vec<PathStep> =
                [(programs, body)].into_iter().chain(state.steps[..number].iter().copied()).collect();
            let ty = Type::Scalar(Elem::I32);
            let number_before = |kernel: &mut Kernel, before: Op, number: u32| {
                Builder::before(kernel, before).constant_of(Literal::Int(number.into()), ty)
            };
            let none = number_before(kernel, programs, 0)?;
            let at = last_of(loop_carried::carry(kernel, &outer, none, Some("turn"))?)?;
            let one = number_before(kernel, first, 1)?;
            // All are begun before one is waited for.
            let after = kernel.next_op(*last).ok_or_else(|| missing("an end"))?;
            for maker in &here {
                kernel.set_optional(*maker, 1, at.value);
                kernel_tensor_maps::begin(kernel, *maker);
                let map = kernel.result(*maker, 0);
                kernel_tensor_maps::await_map(kernel, after, map)?;
            }
            let next = Builder::before(kernel, at.end).xori(at.value, one)?;
            at.set(kernel, next);

            // How many slots were filled since maps were made.
            let slots = number_before(kernel, programs, self.form.slots)?;
            let filled = last_of(loop_carried::carry(kernel, &outer, slots, Some("filled"))?)?;
            let inner = &state.steps[number..];
            let [(enters, _), ..] = inner else { return Err(missing("a loop")) };
            let none = number_before(kernel, *enters, 0)?;
            let (levels, since) = loop_carried::carry(kernel, inner, none, Some("filled"))?;
            filled.set(kernel, since);
            let fill = last_of((levels, since))?;
            let mut builder = Builder::before(kernel, fill.end);
            let one = builder.constant_of(Literal::Int(1), ty)?;
            let more = builder.addi(fill.value, one)?;
            fill.set(kernel, more);

            let slots = number_before(kernel, first, self.form.slots)?;
            let few = Builder::before(kernel, first).cmpi(filled.value, slots, Predicate::Lt)?;
            let waits = branch(kernel, first, few)?;
            self.drain(kernel, waits, [slot.value, phase.value])?;
        }
        Ok(())
    }

    /// Waits until all slots are full: no copy is in flight then.
    fn drain(&self, kernel: &mut Kernel, end: Op, [slot, phase]: [Value; 2]) -> Result<(), PassError> {
        let mut builder = Builder::before(kernel, end);
        let ty = Type::Scalar(Elem::I32);
        let one = builder.constant_of(Literal::Int(1), ty)?;
        let before = builder.xori(phase, one)?;
        for number in 0..self.form.slots {
            let at = builder.constant_of(Literal::Int(number.into()), ty)?;
            let is_passed = builder.cmpi(at, slot, Predicate::Lt)?;
            let last = builder.select(is_passed, phase, before)?;
            for barriers in &self.barriers {
                let full = builder.slot(barriers.full, at)?;
                builder.barrier_wait(full, last)?;
            }
        }
        Ok(())
    }

    /// A loop of the consumer.
    pub fn consumer(
        &self,
        kernel: &mut Kernel,
        of: &ProducerLoop,
        programs: Op,
        carried: &mut CarriedThrough,
    ) -> Result<(), PassError> {
        let body = kernel.op(of.of).blocks[0];
        let state = self.carry(kernel, programs, &of.path, carried)?;
        let all: Vec<Op> = kernel.ops(body).collect();
        copy_groups::remove(kernel, all);
        for op in kernel.ops(body).collect::<Vec<_>>() {
            if matches!(kernel.kind(op), OpKind::CopyAsync { .. } | OpKind::Barrier {}) {
                kernel.erase(op);
            }
        }
        let start = kernel.first_op(body).ok_or_else(|| missing("a loop"))?;
        for (group, barriers) in self.barriers.iter().enumerate() {
            let members = of.transfers.iter().filter(|transfer| transfer.group == group);
            let buffers: Vec<Op> = members.filter_map(|transfer| kernel.def_op(transfer.buffer)).collect();
            let readers: Vec<Op> = kernel.ops(body).filter(|op| reads(kernel, *op, &buffers)).collect();
            let [full, empty] = barriers.at(&mut Builder::before(kernel, start), state.slot)?;
            match (readers.first(), readers.last()) {
                (Some(first), Some(last)) => {
                    Builder::before(kernel, *first).barrier_wait(full, state.phase)?;
                    Builder::after(kernel, *last).barrier_arrive(empty)?;
                }
                // The loop reads nothing of this group, but others do.
                _ => {
                    let mut builder = Builder::before(kernel, state.end);
                    builder.barrier_wait(full, state.phase)?;
                    builder.barrier_arrive(empty)?;
                }
            }
        }
        // Views are made again of the slot.
        for transfer in &of.transfers {
            let slot = self.place(kernel, start, state.slot, transfer)?;
            kernel.replace_uses(transfer.buffer, slot);
            let made = kernel.def_op(transfer.buffer).ok_or_else(|| missing("a buffer"))?;
            kernel.erase(made);
        }
        self.advance(kernel, &state)?;
        skip_zeros(kernel, of.of)?;
        no_slots(kernel, of.of);
        Ok(())
    }
}

fn last_of((levels, _): (Vec<Level>, Value)) -> Result<Level, PassError> {
    levels.last().copied().ok_or_else(|| missing("a loop"))
}

/// Gives operations from one up to `end`, and those in them, a place in the source.
fn locate(kernel: &mut Kernel, first: Option<Op>, end: Op, loc: Loc) {
    let mut next = first.filter(|op| *op != end);
    while let Some(op) = next {
        let blocks: Vec<Block> = kernel.op(op).blocks.iter().copied().collect();
        let nested = blocks.into_iter().flat_map(|block| rtc_ir::walk_block(kernel, block)).collect::<Vec<Op>>();
        nested.into_iter().chain([op]).for_each(|op| kernel.set_loc(op, loc));
        next = kernel.next_op(op).filter(|op| *op != end);
    }
}

/// Whether an operation, or one in its blocks, accesses one of these buffers.
fn reads(kernel: &Kernel, op: Op, buffers: &[Op]) -> bool {
    rtc_ir::walk_op(kernel, op).into_iter().any(|op| {
        let places = kernel.effects(op).filter_map(|(_, value)| value);
        places.filter_map(|value| kernel.allocation(value)).any(|made| buffers.contains(&made))
    })
}

/// The loop is not pipelined by others any more.
fn no_slots(kernel: &mut Kernel, of: Op) {
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
        hints.slots = None;
    }
}

/// Makes the first dot of a loop ignore an accumulator that starts as zeros, which then need not exist. Code generation
/// does it for dots that always add to zeros.
fn skip_zeros(kernel: &mut Kernel, of: Op) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    let (index, lower) = (kernel.block(body).args[0], view::ForRange::at(kernel, of).lower());
    for op in kernel.ops(body).collect::<Vec<_>>() {
        let OpKind::Mma {} = kernel.kind(op) else { continue };
        let acc = kernel.operand(op, 2);
        let slot = regions::slot_of(kernel, acc).filter(|slot| slot.op == of);
        let start = slot.and_then(|slot| slot.values(kernel).next());
        let zeros = start.is_some_and(|start| constant_bits(kernel, start) == Some(0));
        if zeros && kernel.users(acc) == [op] {
            let adds = Builder::before(kernel, op).cmpi(index, lower, Predicate::Ne)?;
            kernel.set_optional(op, 0, adds);
        }
    }
    Ok(())
}

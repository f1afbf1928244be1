//! The form that `split_roles` gives a kernel: a role that copies and a role that computes, each of which loops over the
//! programs of the block.
//!
//! ```text
//! full, empty: a barrier for each slot
//! copying:    wait(empty[slot], phase ^ 1); barrier; expect(full[slot], bytes); copies into the slot; next slot
//! computing:  wait(full[slot], phase); products; arrive(empty[slot]) by each warp; next slot
//! ```
//!
//! The role that copies is a copy of the whole program in which only those operations stay that its copies, loops and
//! branches need. The slot and the phase, which turns whenever the ring has been gone round, are carried through all loops.

use rtc_abi::Persistent;
use rtc_ir::{
    Block, Builder, Elem, Hidden, Kernel, Literal, Op, OpKind, Position, Predicate, SharedType, Type, Value, ValueDef,
    ValueMap, constant_bits, place_bytes, regions,
};

use super::addresses::base;
use super::coordinates::Names;
use super::defer_stores;
use super::found::{Copying, Found};
use super::programs::{Programs, are_unequal};
use super::rows;
use super::split_roles::COPYING_WARPS;
use super::tensor_maps::{CopyMap, Maps, copy_boxes};
use crate::PassError;

/// The numbers of the new form.
pub(super) struct Form {
    /// Registers of a thread that copies, and of one that computes.
    pub registers: [u32; 2],
    /// Registers that each starts with.
    pub at_start: u32,
    /// Blocks on a multiprocessor.
    pub blocks: u32,
    /// Slots of the rings.
    pub slots: u32,
    /// Of results so many bytes are brought into shared memory at a time, to be copied from there; `None`: they are stored
    /// as they were.
    pub stored: Option<u32>,
    /// Whether that waits for the next program.
    pub deferred: bool,
}

/// Something that was there when the kernel was looked at.
pub(super) fn lost(what: &str) -> PassError {
    PassError::Internal(format!("dividing the warps: {what}"))
}

/// The buffer behind a view of one.
pub(super) fn buffer_of(kernel: &Kernel, mut value: Value) -> Option<Value> {
    while let Some(op) = kernel.def_op(value) {
        match kernel.kind(op) {
            OpKind::SharedTrans { .. } => value = kernel.operand(op, 0),
            OpKind::AllocShared { .. } => return Some(value),
            _ => return None,
        }
    }
    None
}

/// Whether a buffer is a ring that copies fill.
pub(super) fn is_ring(kernel: &Kernel, alloc: Op) -> bool {
    let fills = |op: Op| {
        matches!(kernel.kind(op), OpKind::CopyDesc {}) && kernel.allocation(kernel.operand(op, 1)) == Some(alloc)
    };
    matches!(kernel.kind(alloc), OpKind::AllocShared { .. }) && rtc_ir::walk(kernel).into_iter().any(fills)
}

/// Whether the role that copies, now that nothing idle is left in it, computes no tiles and reads nothing that is written.
pub(super) fn is_plain(kernel: &Kernel, found: &Found) -> bool {
    let Some(division) = kernel.specialization() else { return false };
    rtc_ir::walk_block(kernel, kernel.op(division).blocks[0]).into_iter().all(|op| {
        let data = kernel.op(op);
        let args = data.blocks.iter().flat_map(|block| &kernel.block(*block).args);
        let tiles =
            data.results.iter().chain(&data.operands).chain(args).any(|v| kernel.value_type(*v).shape().is_some());
        let unchanged = |pointer: Value| base(kernel, pointer).is_some_and(|base| !found.written.contains(&base));
        !tiles && (!matches!(data.kind, OpKind::Load { .. }) || unchanged(data.operands[0]))
    })
}

/// Rewrites the kernel.
pub(super) fn divide(kernel: &mut Kernel, found: &Found, form: &Form) -> Result<(), PassError> {
    let ret = kernel.terminator(kernel.body()).ok_or_else(|| lost("no end"))?;
    let maps = Maps::make(kernel, found, form)?;
    let unequal = are_unequal(kernel, found);
    let grid = [0, 1, 2].map(|axis| {
        let name = format!("grid.{axis}");
        kernel.add_hidden(name, Type::Scalar(Elem::I32), Hidden::Grid(axis))
    });
    let program: Vec<Op> = kernel.ops(kernel.body()).filter(|op| *op != ret).collect();

    // What the roles share.
    let mut rings = Vec::new();
    for (number, ty) in found.rings.iter().enumerate() {
        let mut align = 1;
        for (copy, _) in found.loops.iter().filter_map(|of| of.copies.get(number)) {
            let made = kernel.def_op(kernel.operand(*copy, 1)).map(|made| kernel.kind(made));
            let Some(OpKind::AllocShared { align: own, .. }) = made else { return Err(lost("a buffer")) };
            align = align.max(*own);
        }
        let ty = SharedType { slots: form.slots, ..*ty };
        rings.push(Builder::before(kernel, ret).buffer(ty, align)?);
    }
    let warps = kernel.options.num_warps;
    let mut builder = Builder::before(kernel, ret);
    let mut barriers = Vec::new();
    let rows = found.row_rings.iter().map(|ty| builder.buffer(SharedType { slots: form.slots, ..*ty }, rows::ALIGN));
    let row_rings = rows.collect::<Result<Vec<Value>, _>>()?;
    let groups = found.loops[0].groups.iter().max().map_or(0, |last| last + 1);
    for _ in 0..groups + usize::from(!row_rings.is_empty()) {
        barriers.push(Pair { full: builder.barriers(form.slots, 1)?, empty: builder.barriers(form.slots, warps)? });
    }
    let outs = maps.buffers(&mut builder)?;
    builder.barrier()?;
    let number = |builder: &mut Builder<'_>, n: i64| builder.constant_of(Literal::Int(n), Type::Scalar(Elem::I32));
    let zero = number(&mut builder, 0)?;
    let some = builder.muli(grid[0], grid[1])?;
    let programs = builder.muli(some, grid[2])?;
    let programs = Programs::new(&mut builder, programs, unequal)?;

    // The role that computes gets the program itself.
    let roles = [kernel.new_block(), kernel.new_block()];
    let division =
        OpKind::WarpSpecialize { warps: vec![COPYING_WARPS, warps], registers: Some(form.registers.to_vec()) };
    Builder::before(kernel, ret).build(division, &[], &[], &[], &roles, &[])?;
    let bodies = [kernel.new_block(), kernel.new_block()];
    let mut pids = Vec::new();
    let mut loops = Vec::new();
    for (role, body) in roles.into_iter().zip(bodies) {
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
        let of = Builder::at_end(kernel, role).build(kind, &programs.bounds, &[], &[zero, zero], &[body], &types)?;
        Builder::at_end(kernel, role).yield_values(&[])?;
        loops.push(of);
    }
    let end = kernel.terminator(bodies[1]).ok_or_else(|| lost("an end"))?;
    for op in program {
        kernel.move_op(op, Position::Before(end));
    }

    // The role that copies gets a copy of it, from which everything is taken that shows.
    let copy_end = kernel.terminator(bodies[0]).ok_or_else(|| lost("an end"))?;
    let args = bodies.map(|body| kernel.block(body).args.clone());
    let mut map: ValueMap = args[1].iter().copied().zip(args[0].iter().copied()).collect();
    kernel.clone_ops(bodies[1], &mut map, Position::Before(copy_end));
    if let Some(end) = kernel.previous_op(copy_end) {
        kernel.erase(end);
    }

    let shared = Shared { form, barriers, groups, rings, row_rings, grid };
    take_out_stores(kernel, bodies[0]);
    for (of, maps) in found.loops.iter().zip(&maps.copies) {
        shared.copying(kernel, of, &map, maps, loops[0], pids[0])?;
        shared.computing(kernel, of, loops[1])?;
    }
    let names = Names { pids: pids[1], grid, map: None };
    match (&maps.stores[..], &outs[..]) {
        ([store], [out]) if form.deferred => defer_stores::defer(kernel, found, store, *out, &names, loops[1])?,
        _ => maps.store(kernel, found, &outs, &names)?,
    }
    if !outs.is_empty() {
        let end = kernel.terminator(roles[1]).ok_or_else(|| lost("an end"))?;
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
    kernel.persistent = Some(Persistent { blocks_per_multiprocessor: form.blocks });
    if form.blocks > 1 {
        kernel.options.maxnreg = Some(form.at_start);
    }
    Ok(())
}

/// What both roles use.
struct Shared<'f> {
    form: &'f Form,
    /// Of each group of copies, and last those of rows if there are some.
    barriers: Vec<Pair>,
    /// How many groups of copies there are.
    groups: usize,
    /// In the order of the copies in a loop; a loop that copies less uses the first ones.
    rings: Vec<Value>,
    /// The same for rows.
    row_rings: Vec<Value>,
    grid: [Value; 3],
}

/// The barriers that say that slots are full, and that they are empty.
struct Pair {
    full: Value,
    empty: Value,
}

/// Where a role is in the ring, in the innermost loop.
struct Turn {
    slot: Value,
    phase: Value,
    /// The end of the loop, and which operands of it are the slot and the phase of the next iteration.
    end: Op,
    at: [usize; 2],
}

impl Shared<'_> {
    /// Carries slot and phase from the loop over programs, where they are carried already, through the operations of `path`,
    /// after those that they are carried through already.
    fn carry(&self, kernel: &mut Kernel, programs: Op, path: &[Op]) -> Result<Turn, PassError> {
        let body = kernel.op(programs).blocks[0];
        let end = kernel.terminator(body).ok_or_else(|| lost("an end"))?;
        let [slot, phase] = [0, 1].map(|at| kernel.operand(end, at));
        let mut turn = Turn { slot, phase, end, at: [0, 1] };
        for (number, op) in path.iter().enumerate() {
            let inner = path.get(number + 1).and_then(|inner| kernel.op(*inner).parent);
            let blocks = kernel.op(*op).blocks.clone();
            let through = inner.or(blocks.first().copied()).ok_or_else(|| lost("a block"))?;
            let ends = blocks.iter().map(|block| kernel.terminator(*block)).collect::<Option<Vec<_>>>();
            let ends = ends.ok_or_else(|| lost("an end"))?;
            let before = [turn.slot, turn.phase];
            let mut inside = before;
            let mut at = [0; 2];
            for (which, value) in before.into_iter().enumerate() {
                let (arg, result) = kernel.carry(*op, value).ok_or_else(|| lost("a loop"))?;
                inside[which] = arg;
                kernel.name_value(arg, ["slot", "phase"][which]);
                kernel.name_value(result, ["slot", "phase"][which]);
                kernel.set_operand(turn.end, turn.at[which], result);
                let end = ends[blocks.iter().position(|block| *block == through).unwrap_or(0)];
                at[which] = kernel.op(end).operands.len() - 1;
            }
            let end = ends[blocks.iter().position(|block| *block == through).unwrap_or(0)];
            turn = Turn { slot: inside[0], phase: inside[1], end, at };
        }
        Ok(turn)
    }

    /// A slot of a ring, as a buffer like `single`.
    fn place(
        &self,
        kernel: &mut Kernel,
        before: Op,
        ring: Value,
        slot: Value,
        single: Value,
    ) -> Result<Value, PassError> {
        let ty = kernel.value_type(single);
        let mut builder = Builder::before(kernel, before);
        let place = builder.slot(ring, slot)?;
        match ty.as_shared() {
            Some(ty) if kernel.value_type(place) != Type::Shared(ty) => {
                Ok(Builder::before(kernel, before).shared_view_as(place, ty)?)
            }
            _ => Ok(place),
        }
    }

    /// Goes on to the next slot at the end of the loop.
    fn advance(&self, kernel: &mut Kernel, turn: &Turn) -> Result<(), PassError> {
        let mut builder = Builder::before(kernel, turn.end);
        let ty = Type::Scalar(Elem::I32);
        let [zero, one, slots] = [0, 1, i64::from(self.form.slots)].map(|n| builder.constant_of(Literal::Int(n), ty));
        let (zero, one, slots) = (zero?, one?, slots?);
        let next = builder.addi(turn.slot, one)?;
        let wraps = builder.cmpi(next, slots, Predicate::Eq)?;
        let slot = builder.select(wraps, zero, next)?;
        let turned = builder.xori(turn.phase, one)?;
        let phase = builder.select(wraps, turned, turn.phase)?;
        kernel.set_operand(turn.end, turn.at[0], slot);
        kernel.set_operand(turn.end, turn.at[1], phase);
        Ok(())
    }

    /// A loop of the role that copies: `map` tells what of it stands for what of the program.
    fn copying(
        &self,
        kernel: &mut Kernel,
        of: &Copying,
        map: &ValueMap,
        maps: &[CopyMap],
        programs: Op,
        pids: [Value; 3],
    ) -> Result<(), PassError> {
        // The copy of an operation with a block is the one around the copy of an operation in it.
        let mut path = Vec::new();
        let inner = kernel.op(of.of).blocks[0];
        let index = map.get(&kernel.block(inner).args[0]).ok_or_else(|| lost("an index"))?;
        let ValueDef::Arg(mut block, _) = kernel.value(*index).def else { return Err(lost("an index")) };
        while let Some(op) = kernel.block(block).parent.filter(|op| *op != programs) {
            path.insert(0, op);
            block = kernel.op(op).parent.ok_or_else(|| lost("a block"))?;
        }
        let turn = self.carry(kernel, programs, &path)?;
        let names = Names { pids, grid: self.grid, map: Some(map) };
        for (group, barriers) in self.barriers.iter().enumerate() {
            let members: Vec<usize> = (0..maps.len()).filter(|number| of.groups[*number] == group).collect();
            let boxes = members.iter().map(|number| &maps[*number].2);
            let mut bytes = boxes.map(|boxes| boxes.ty.bytes() * boxes.parts.len() as u32).sum();
            let rows = if group == self.groups { &of.rows[..] } else { &[] };
            bytes += rows.iter().map(|(row, _)| place_bytes(kernel.value_type(*row)) as u32).sum::<u32>();
            let mut builder = Builder::before(kernel, turn.end);
            let one = builder.constant_of(Literal::Int(1), Type::Scalar(Elem::I32))?;
            let full = builder.slot(barriers.full, turn.slot)?;
            let empty = builder.slot(barriers.empty, turn.slot)?;
            let before = builder.xori(turn.phase, one)?;
            builder.barrier_wait(empty, before)?;
            // A warp that came later than the next time the slot is freed would wait for the time after that.
            builder.barrier()?;
            builder.barrier_expect(full, bytes)?;
            for (number, (buffer, row)) in rows.iter().enumerate() {
                let place = self.place(kernel, turn.end, self.row_rings[number], turn.slot, *buffer)?;
                let at = names.sum_in(kernel, turn.end, &row.at, Elem::I64)?;
                let mut builder = Builder::before(kernel, turn.end);
                let pointer = builder.addptr(row.base, at)?;
                builder.build(OpKind::CopyBulk {}, &[pointer, place, full], &[], &[], &[], &[])?;
            }
            for number in members {
                let (_, access) = &of.copies[number];
                let (map, other, boxes) = &maps[number];
                let buffer = kernel.operand(of.copies[number].0, 1);
                let mut place = self.place(kernel, turn.end, self.rings[number], turn.slot, buffer)?;
                let filled = kernel.value_type(place).as_shared().ok_or_else(|| lost("a buffer"))?;
                let at = names.place(kernel, turn.end, access, &filled.shape)?;
                if access.inner == 0 {
                    place = Builder::before(kernel, turn.end).shared_trans_of(place, &[1, 0])?;
                }
                let Some((flag, with_nan)) = other else {
                    copy_boxes(kernel, turn.end, *map, boxes, place, full, &at)?;
                    continue;
                };
                let blocks = [kernel.new_block(), kernel.new_block()];
                let ends = blocks.map(|block| Builder::at_end(kernel, block).yield_values(&[]));
                Builder::before(kernel, turn.end).build(OpKind::IfElse {}, &[*flag], &[], &[], &blocks, &[])?;
                for (end, map) in ends.into_iter().zip([*with_nan, *map]) {
                    copy_boxes(kernel, end?, map, boxes, place, full, &at)?;
                }
            }
        }
        self.advance(kernel, &turn)?;
        no_slots(kernel, path[path.len() - 1]);
        Ok(())
    }

    /// A loop of the role that computes.
    fn computing(&self, kernel: &mut Kernel, of: &Copying, programs: Op) -> Result<(), PassError> {
        let body = kernel.op(of.of).blocks[0];
        let turn = self.carry(kernel, programs, &of.path)?;
        let copied = of.copies.iter().map(|(copy, _)| kernel.operand(*copy, 1));
        let singles: Vec<Value> = copied.chain(of.rows.iter().map(|(row, _)| *row)).collect();
        let mut after_wait = false;
        for op in kernel.ops(body).collect::<Vec<_>>() {
            let fences = after_wait && matches!(kernel.kind(op), OpKind::FenceAsync {});
            after_wait = matches!(kernel.kind(op), OpKind::CopyWait { .. });
            let kind = kernel.kind(op);
            let copies = matches!(kind, OpKind::CopyAsync { .. } | OpKind::CopyCommit {} | OpKind::Barrier {});
            if fences || after_wait || copies {
                kernel.erase(op);
            }
        }
        let start = kernel.first_op(body).ok_or_else(|| lost("a loop"))?;
        for (group, barriers) in self.barriers.iter().enumerate() {
            let members = (0..singles.len()).filter(|number| of.groups.get(*number).unwrap_or(&self.groups) == &group);
            let buffers: Vec<Op> = members.filter_map(|number| kernel.def_op(singles[number])).collect();
            let readers: Vec<Op> = kernel.ops(body).filter(|op| reads(kernel, *op, &buffers)).collect();
            let mut builder = Builder::before(kernel, start);
            let full = builder.slot(barriers.full, turn.slot)?;
            let empty = builder.slot(barriers.empty, turn.slot)?;
            match (readers.first(), readers.last()) {
                (Some(first), Some(last)) => {
                    Builder::before(kernel, *first).barrier_wait(full, turn.phase)?;
                    Builder::after(kernel, *last).barrier_arrive(empty)?;
                }
                // The loop reads no rows, but others do.
                _ => {
                    let mut builder = Builder::before(kernel, turn.end);
                    builder.barrier_wait(full, turn.phase)?;
                    builder.barrier_arrive(empty)?;
                }
            }
        }
        // Views are made anew of the slot.
        let rings = self.rings[..of.copies.len()].iter().chain(&self.row_rings);
        for (ring, single) in rings.zip(singles) {
            let slot = self.place(kernel, start, *ring, turn.slot, single)?;
            kernel.replace_uses(single, slot);
            let made = kernel.def_op(single).ok_or_else(|| lost("a buffer"))?;
            kernel.erase(made);
        }
        self.advance(kernel, &turn)?;
        skip_zeros(kernel, of.of)?;
        no_slots(kernel, of.of);
        Ok(())
    }
}

/// Whether an operation, or one in its blocks, accesses one of these buffers.
fn reads(kernel: &Kernel, op: Op, buffers: &[Op]) -> bool {
    let nested = kernel.op(op).blocks.iter().flat_map(|block| rtc_ir::walk_block(kernel, *block));
    [op].into_iter().chain(nested).any(|op| {
        let places = kernel.effects(op).filter_map(|(_, value)| value);
        places.filter_map(|value| kernel.allocation(value)).any(|made| buffers.contains(&made))
    })
}

/// Takes what shows of the program, and what only products need, out of the copy for the role that copies.
fn take_out_stores(kernel: &mut Kernel, body: Block) {
    for op in rtc_ir::walk_block(kernel, body) {
        let gone = matches!(
            kernel.kind(op),
            OpKind::Store { .. }
                | OpKind::AtomicRmw { .. }
                | OpKind::LocalStore {}
                | OpKind::CopyAsync { .. }
                | OpKind::CopyCommit {}
                | OpKind::CopyWait { .. }
                | OpKind::Barrier {}
                | OpKind::FenceAsync {}
                | OpKind::Assume {}
        );
        if gone {
            kernel.erase(op);
        }
    }
}

/// The loop is not pipelined by others any more.
fn no_slots(kernel: &mut Kernel, of: Op) {
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
        hints.slots = None;
    }
}

/// Lets the first product of a loop replace sums that start as zeros, which then need not be there.
fn skip_zeros(kernel: &mut Kernel, of: Op) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    let (index, lower) = (kernel.block(body).args[0], kernel.operand(of, 0));
    for op in kernel.ops(body).collect::<Vec<_>>() {
        let OpKind::Mma {} = kernel.kind(op) else { continue };
        let acc = kernel.operand(op, 2);
        if constant_bits(kernel, acc) == Some(0) && kernel.optional(op, 0).is_none() {
            let never = Builder::before(kernel, of).constant_of(Literal::Int(0), Type::Scalar(Elem::I1))?;
            kernel.set_optional(op, 0, never);
            continue;
        }
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

//! Builds the loop nest.
//!
//! The results of a branch for the first part are carried by the inner loop: the initial value is the one that the
//! branch computes, before that loop, and the next value is the one that the branch yields otherwise. Values that
//! change in branches alone are invariant in the inner loop, and are not carried by it.

use rtc_ir::{
    Block, Builder, Kernel, Literal, Op, OpKind, Position, Predicate, Traits, Value, ValueMap, constant_bits, regions,
    view,
};

use super::{Flat, Number, yielded};
use crate::PassError;

/// Splits a loop, if the values that its branches use are known where they are moved; otherwise the kernel is left in
/// an intermediate state.
pub(super) fn unflatten(kernel: &mut Kernel, flat: &Flat) -> Result<bool, PassError> {
    Ok(take_apart(kernel, flat)?.is_some())
}

/// Values of an iteration where the part is known.
struct Values {
    /// The replacements of values in the loop.
    map: ValueMap,
    /// Where copies of operations are put.
    at: Position,
}

impl Values {
    /// The replacement of a value; its defining operations are cloned.
    fn of(&mut self, kernel: &mut Kernel, flat: &Flat, value: Value) -> Option<Value> {
        if let Some(known) = self.map.get(&value) {
            return Some(*known);
        }
        if regions::is_outside(kernel, value, flat.of) {
            return Some(value);
        }
        let op = kernel.def_op(value).filter(|op| kernel.op(*op).parent == Some(flat.body))?;
        let repeats = kernel.kind(op).spec().traits.has(Traits::PURE)
            && kernel.op(op).blocks.is_empty()
            && !matches!(kernel.kind(op), OpKind::Dot { .. });
        repeats.then_some(())?;
        for operand in kernel.op(op).operands.clone() {
            self.of(kernel, flat, operand)?;
        }
        self.copy(kernel, op);
        self.map.get(&value).copied()
    }

    /// Puts a copy of an operation whose operands are known.
    fn copy(&mut self, kernel: &mut Kernel, op: Op) {
        let copy = kernel.clone_whole(op, &mut self.map);
        kernel.move_op(copy, self.at);
    }

    /// Puts a copy of the first block of a branch, and lets its results be what that yields.
    fn take(&mut self, kernel: &mut Kernel, flat: &Flat, branch: Op) -> Option<()> {
        let block = kernel.op(branch).blocks[0];
        let end = kernel.terminator(block)?;
        for op in rtc_ir::walk_block(kernel, block) {
            for operand in kernel.op(op).operands.clone() {
                if regions::is_outside(kernel, operand, branch) {
                    self.of(kernel, flat, operand)?;
                }
            }
        }
        for op in kernel.ops(block).filter(|op| *op != end).collect::<Vec<_>>() {
            self.copy(kernel, op);
        }
        for (number, value) in yielded(kernel, branch, 0).to_vec().into_iter().enumerate() {
            let value = self.map.get(&value).copied().unwrap_or(value);
            self.map.insert(kernel.result(branch, number), value);
        }
        Some(())
    }
}

fn take_apart(kernel: &mut Kernel, flat: &Flat) -> Result<Option<()>, PassError> {
    let loc = kernel.op(flat.of).loc;
    let index = kernel.block(flat.body).args[0];
    let ty = kernel.value_type(index);
    let at_end = |block: Block, map: ValueMap| Values { map, at: Position::End(block) };
    let Some(counts) = counts(kernel, flat)? else { return Ok(None) };

    // The loop over tiles, and what it carries.
    let outer = kernel.new_block();
    let tile = kernel.add_arg(outer, ty, Some("tile".into()));
    let args = kernel.block(flat.body).args[1..].to_vec();
    let starts = kernel.variadic(flat.of).to_vec();
    let mut current = starts.clone();
    let kept: Vec<usize> = (0..args.len())
        .filter(|number| Some(*number) != flat.parts.carried && !starts_again(kernel, flat, *number))
        .collect();
    for number in &kept {
        let value = kernel.value(args[*number]);
        let (ty, name) = (value.ty, value.name.clone());
        current[*number] = kernel.add_arg(outer, ty, name);
    }
    let kind = OpKind::ForRange { unsigned: false, hints: Default::default() };
    let started: Vec<Value> = kept.iter().map(|number| starts[*number]).collect();
    let [zero, one] = counts.zero_and_one;
    Builder::before(kernel, flat.of).build(kind, &[zero, counts.tiles, one], &[], &started, &[outer], &[])?;

    // The first part.
    let mut builder = Builder::at_end(kernel, outer);
    builder.set_loc(loc);
    let first_index = builder.muli(tile, counts.parts)?;
    let mut known: ValueMap = flat.parts.tile.iter().map(|value| (*value, tile)).collect();
    known.extend(args.iter().copied().zip(current.iter().copied()));
    if let Some(number) = flat.parts.carried {
        known.remove(&args[number]);
    }
    let mut first = at_end(outer, known.clone());
    first.map.insert(index, first_index);
    first.map.extend(flat.parts.part.iter().map(|part| (*part, zero)));
    for branch in &flat.first {
        if first.take(kernel, flat, *branch).is_none() {
            return Ok(None);
        }
    }

    // The loop over the parts of a tile. Values that it does not change keep their old value.
    let carried = |kernel: &Kernel, number: usize| flat.next(kernel, number) != args[number];
    let by_first: Vec<(Value, usize)> = flat.first.iter().flat_map(|branch| by_first(kernel, flat, *branch)).collect();
    let inner = kernel.new_block();
    let part = kernel.add_arg(inner, ty, Some("part".into()));
    let mut values = at_end(inner, known.clone());
    values.map.extend(flat.parts.part.iter().map(|value| (*value, part)));
    let mut slots: Vec<(Value, usize)> = Vec::new();
    for (result, number) in by_first.iter().copied() {
        if flat.next(kernel, number) == result {
            let value = first.map[&result];
            values.map.insert(result, value);
        } else {
            slots.push((result, number));
        }
    }
    let changing = (0..args.len()).filter(|number| Some(*number) != flat.parts.carried && carried(kernel, *number));
    let changing = changing.filter(|number| {
        let next = flat.next(kernel, *number);
        let is_settled = by_first.iter().any(|(result, _)| *result == next && !slots.iter().any(|slot| slot.0 == next));
        !is_settled || flat.is_seen(kernel, args[*number])
    });
    slots.extend(changing.map(|number| (args[number], number)).collect::<Vec<_>>());
    let mut starts = Vec::new();
    for (value, _) in &slots {
        starts.push(first.map.get(value).copied().unwrap_or(*value));
        let (ty, name) = (kernel.value(*value).ty, kernel.value(*value).name.clone());
        let arg = kernel.add_arg(inner, ty, name);
        values.map.insert(*value, arg);
    }
    if kernel.is_used(index) {
        let mut builder = Builder::at_end(kernel, inner);
        builder.set_loc(loc);
        let here = builder.addi(first_index, part)?;
        values.map.insert(index, here);
    }
    let branches: Vec<Op> = flat.first.iter().chain(&flat.last).chain(&flat.parts.counting).copied().collect();
    for op in kernel.ops(flat.body).filter(|op| *op != flat.end && !branches.contains(op)).collect::<Vec<_>>() {
        values.copy(kernel, op);
    }
    let next: Vec<Value> = slots.iter().map(|(_, number)| flat.next(kernel, *number)).collect();
    let yields: Vec<Value> = next.iter().map(|value| values.map.get(value).copied().unwrap_or(*value)).collect();
    Builder::at_end(kernel, inner).yield_values(&yields)?;
    let kind = kernel.kind(flat.of).clone();
    let mut builder = Builder::at_end(kernel, outer);
    builder.set_loc(loc);
    let of = builder.build(kind, &[zero, counts.parts, one], &[], &starts, &[inner], &[])?;

    // The last part.
    let mut last = at_end(outer, known);
    for number in (0..args.len()).filter(|number| carried(kernel, *number)) {
        last.map.remove(&args[number]);
    }
    for (result, _) in by_first {
        if !slots.iter().any(|(value, _)| *value == result) {
            last.map.insert(result, first.map[&result]);
        }
    }
    let mut builder = Builder::at_end(kernel, outer);
    builder.set_loc(loc);
    let last_part = builder.subi(counts.parts, one)?;
    let last_index = builder.addi(first_index, last_part)?;
    last.map.insert(index, last_index);
    last.map.extend(flat.parts.part.iter().map(|part| (*part, last_part)));
    for (number, value) in next.into_iter().enumerate() {
        if !regions::is_outside(kernel, value, flat.of) {
            let result = kernel.result(of, number);
            last.map.entry(value).or_insert(result);
        }
    }
    for branch in &flat.last {
        if last.take(kernel, flat, *branch).is_none() {
            return Ok(None);
        }
    }
    let mut yields = Vec::new();
    for number in kept {
        let next = kernel.variadic(flat.end)[number];
        let Some(value) = last.of(kernel, flat, next) else { return Ok(None) };
        yields.push(value);
    }
    Builder::at_end(kernel, outer).yield_values(&yields)?;
    kernel.erase(flat.of);
    Ok(Some(()))
}

/// Whether a carried value starts each tile as the constant that it starts the loop as.
fn starts_again(kernel: &Kernel, flat: &Flat, number: usize) -> bool {
    let Some((branch, result)) = flat.by_last(kernel, kernel.variadic(flat.end)[number]) else { return false };
    let start = constant_bits(kernel, kernel.variadic(flat.of)[number]);
    start.is_some() && start == constant_bits(kernel, yielded(kernel, branch, 0)[result])
}

/// The results of a branch for the first part, each with which carried value it is otherwise.
fn by_first(kernel: &Kernel, flat: &Flat, branch: Op) -> Vec<(Value, usize)> {
    let otherwise = yielded(kernel, branch, 1).iter().filter_map(|value| flat.carried(kernel, *value));
    kernel.op(branch).results.iter().copied().zip(otherwise).collect()
}

/// How often the loops run.
struct Counts {
    zero_and_one: [Value; 2],
    parts: Value,
    /// Whole tiles.
    tiles: Value,
}

fn counts(kernel: &mut Kernel, flat: &Flat) -> Result<Option<Counts>, PassError> {
    let (of, ty) = (flat.of, kernel.value_type(kernel.block(flat.body).args[0]));
    let Number { base, offset } = flat.parts.count;
    let number = |kernel: &mut Kernel, n: i64| Builder::before(kernel, of).constant_of(Literal::Int(n), ty);
    let zero_and_one = [number(kernel, 0)?, number(kernel, 1)?];
    let [zero, one] = zero_and_one;
    let mut parts = number(kernel, offset)?;
    if let Some(base) = base {
        let mut before = Values { map: ValueMap::new(), at: Position::Before(of) };
        let Some(base) = before.of(kernel, flat, base) else { return Ok(None) };
        parts = if offset == 0 { base } else { Builder::before(kernel, of).addi(base, parts)? };
    }
    let upper = view::ForRange::at(kernel, of).upper();
    let mut builder = Builder::before(kernel, of);
    let some = builder.maxsi(parts, one)?;
    let whole = builder.divsi(upper, some)?;
    let is_tile = builder.cmpi(parts, one, Predicate::Ge)?;
    let tiles = builder.select(is_tile, whole, zero)?;
    Ok(Some(Counts { zero_and_one, parts, tiles }))
}

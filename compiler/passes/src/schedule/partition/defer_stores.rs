//! Deferred epilogue: results are stored while the next program is computed.
//!
//! ```text
//! for_range programs, (last, there = false) {
//!   for_range k {                                  a piece in each of the first iterations, under the dot
//!     mma_async ..
//!     if_else (k == 0 and there) { store piece 0 of last }
//!     if_else (k == 1 and there) { store piece 1 of last }
//!     mma_wait
//!   }
//!   if_else (there and k was never 1) { .. }       what is left if there were few
//!   yields (results, true)
//! }
//! if_else there { store last }
//! ```
//!
//! The loop-carried values are pairs of 16 bits in words (`packed_pairs.rs`). Stores are copies out of shared memory
//! (`tensor_maps.rs`). If the source itself loops over tiles, results are carried through all the loops and branches
//! around the one with the dot (`loop_carried.rs`), such as those over groups and their tiles. A map that the kernel
//! makes for a group is carried with the results: the next one is made in the other slot.

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Predicate, Type, Value, constant_bits, regions, view};

use super::branch::branch;
use super::candidate::Candidate;
use super::loop_carried::{self, Level, PathStep};
use super::packed_pairs::{packed, pair_axis, unpacked};
use crate::PassError;
use crate::access::addresses::memory;
use crate::pass::missing;
use crate::schedule::in_flight;
use crate::schedule::tma::coordinates::{BoxCoordinates, Names};
use crate::schedule::tma::kernel_tensor_maps;
use crate::schedule::tma::tensor_maps::{StoreMap, stored_tile};

/// The results of a thread that are worth more effort.
const LARGE: u32 = 128;

/// Whether a store can be deferred: it comes after the loop with the dot, whose iterations count from 0, perhaps in a
/// branch, and its elements have 16 bits and form pairs within a thread. Checked on the kernel before partitioning.
pub(crate) fn can_wait(kernel: &Kernel, found: &Candidate) -> bool {
    let ([(store, _)], [of]) = (&found.stores[..], &found.loops[..]) else { return false };
    let (store, of) = (*store, of.of);
    let counts = constant_bits(kernel, view::ForRange::at(kernel, of).lower()) == Some(0)
        && constant_bits(kernel, view::ForRange::at(kernel, of).step()) == Some(1);
    let body = kernel.op(of).blocks[0];
    let mmas: Vec<Op> =
        rtc_ir::walk_block(kernel, body).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
    let behind = is_behind(kernel, of, branch_of(kernel, found, store).unwrap_or(store));
    let narrow = kernel.value_type(stored_tile(kernel, store)).elem().is_some_and(|elem| elem.bits() == 16);
    let stays = !found.has_work_between(kernel)
        && mmas.last().is_some_and(|op| in_flight::can_be(kernel, *op) && kernel.op(*op).parent == Some(body));
    let pairs = kernel.layout_of(stored_tile(kernel, store)).and_then(pair_axis).is_some();
    around(kernel, found).is_some() && counts && stays && behind && narrow && pairs && in_order(kernel, of, store)
}

/// Whether waiting is worth it. Where results go through more than the loop over tiles around the dot, it is for large
/// tiles: of 128 columns, the accumulators of a thread are 64, and the store takes less time than waiting does.
pub(crate) fn is_profitable(kernel: &Kernel, found: &Candidate) -> bool {
    let ([(store, access)], [of]) = (&found.stores[..], &found.loops[..]) else { return false };
    let in_loop = match of.path[..] {
        [.., around, _] => matches!(kernel.kind(around), OpKind::ForRange { .. }),
        _ => true,
    };
    let plain = in_loop && !access.is_made && branch_of(kernel, found, *store).is_none();
    let accs = kernel.layout_of(stored_tile(kernel, *store)).map_or(0, |layout| layout.registers());
    plain || accs >= LARGE
}

/// The path from the outermost source loop to the loop with the dot; empty if only the loop over programs is around it,
/// `None` for a branch that is in no loop.
fn around(kernel: &Kernel, found: &Candidate) -> Option<Vec<PathStep>> {
    let (of, path) = found.loops[0].path.split_last()?;
    if path.is_empty() {
        return Some(Vec::new());
    }
    let first = path.iter().position(|op| regions::is_loop(kernel.kind(*op)))?;
    loop_carried::path_to(kernel, &path[first..], *of)
}

/// The branch of a store after the loop with the dot.
fn branch_of(kernel: &Kernel, found: &Candidate, store: Op) -> Option<Op> {
    let around = kernel.op(store).parent.and_then(|block| kernel.block(block).parent)?;
    let beside = kernel.op(around).parent == kernel.op(found.loops[0].of).parent;
    (beside && matches!(kernel.kind(around), OpKind::IfElse {})).then_some(around)
}

fn is_behind(kernel: &Kernel, of: Op, op: Op) -> bool {
    kernel.op(op).parent == kernel.op(of).parent && kernel.is_before(of, op)
}

/// Whether what else the kernel writes to the memory of a store is written behind the loop with the dot, so that it
/// still is when the results before are.
fn in_order(kernel: &Kernel, of: Op, store: Op) -> bool {
    let own = memory(kernel, kernel.operand(store, 0));
    rtc_ir::walk(kernel).into_iter().all(|op| {
        if !matches!(kernel.kind(op), OpKind::Store { .. } | OpKind::AtomicRmw { .. } | OpKind::AtomicStore { .. }) {
            return true;
        }
        let around =
            std::iter::successors(Some(op), |op| kernel.op(*op).parent.and_then(|block| kernel.block(block).parent));
        let other = memory(kernel, kernel.operand(op, 0));
        let apart = own.is_some() && other.is_some() && own != other;
        op == store || apart || around.into_iter().any(|op| is_behind(kernel, of, op))
    })
}

/// The results that are carried from one program to the next.
struct DeferredResult {
    /// How it is stored, by the map that it waits with.
    store: StoreMap,
    /// Whether the kernel makes that map, which is waited for then.
    is_made: bool,
    pieces: Vec<Value>,
    /// Along which the elements of a word are neighbours.
    axis: usize,
    at: BoxCoordinates,
    /// Whether there is something.
    there: Value,
}

/// Defers a store. `programs` is the loop over programs of the consumer, `out` the buffer. If the source itself loops
/// over tiles, the store is deferred to the next iteration of that loop.
pub(crate) fn defer(
    kernel: &mut Kernel,
    found: &Candidate,
    store: &StoreMap,
    out: Value,
    names: &Names<'_>,
    programs: Op,
) -> Result<(), PassError> {
    let (op, access) = &found.stores[store.number];
    let mut steps = around(kernel, found).ok_or_else(|| missing("a loop"))?;
    if steps.is_empty() {
        steps.push((programs, kernel.op(programs).blocks[0]));
    }
    let (first, turns) = (steps[0].0, steps[steps.len() - 1]);
    let choice = branch_of(kernel, found, *op);
    let tile = stored_tile(kernel, *op);
    let shape = kernel.value_type(tile).shape().ok_or_else(|| missing("a tile"))?;
    let elem = kernel.value_type(tile).elem().ok_or_else(|| missing("a tile"))?;
    let axis = kernel.layout_of(tile).and_then(pair_axis).ok_or_else(|| missing("a pair"))?;
    let mut new = Vec::new();
    for piece in store.parts(kernel, *op, tile)? {
        new.push(packed(kernel, *op, piece, axis)?);
    }
    new.extend(names.place(kernel, *op, access, &shape)?.0);
    new.push(Builder::before(kernel, *op).constant_of(Literal::Int(1), Type::Scalar(Elem::I1))?);

    let mut carried = Vec::new();
    for value in new {
        let ty = kernel.value_type(value);
        let start = Builder::before(kernel, first).constant_of(Literal::Int(0), ty)?;
        let (levels, result) = loop_carried::carry(kernel, &steps, start, None)?;
        // Where the other branch is taken, nothing waits any more.
        hand_on(kernel, &levels, choice, *op, value, None)?;
        carried.push((levels, result));
    }
    let map = carry_map(kernel, &steps, choice, *op, store.map)?;
    // Pieces stored under a dot, and the rest in the end.
    let last = |in_the_end: bool| {
        let value = |(levels, result): &(Vec<Level>, Value)| if in_the_end { *result } else { innermost(levels).value };
        let mut values: Vec<Value> = carried.iter().map(value).collect();
        let there = values.pop()?;
        let at = BoxCoordinates(values.split_off(store.pieces as usize));
        let is_made = map.is_some();
        let map = map.as_ref().map_or(store.map, value);
        Some(DeferredResult { store: store.with(map), is_made, at, pieces: values, axis, there })
    };
    let within = last(false).ok_or_else(|| missing("a value"))?;

    let of = found.loops[0].of;
    store_under_dot(kernel, of, turns, out, &within, elem)?;
    // The pieces for which the loop has too few iterations follow right after it: the new results are converted later, and
    // then use the same registers.
    let (left, upper) = (kernel.next_op(of).ok_or_else(|| missing("an end"))?, view::ForRange::at(kernel, of).upper());
    store_pieces(kernel, left, out, &within, elem, (upper, Predicate::Le))?;
    kernel.erase(*op);
    let next = kernel.next_op(first).ok_or_else(|| missing("an end"))?;
    let after = last(true).ok_or_else(|| missing("a value"))?;
    store_all(kernel, next, out, &after, elem)
}

/// Stores a piece in each of the first iterations of a loop, while its dot is in flight.
fn store_under_dot(
    kernel: &mut Kernel,
    of: Op,
    turns: PathStep,
    out: Value,
    within: &DeferredResult,
    elem: Elem,
) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    let mma = kernel.ops(body).rfind(|op| matches!(kernel.kind(*op), OpKind::Mma {}));
    let mma = mma.ok_or_else(|| missing("a dot"))?;
    *kernel.kind_mut(mma) = OpKind::MmaAsync {};
    keep_acc(kernel, of, mma, turns)?;
    let acc = kernel.result(mma, 0);
    let wait = in_flight::wait(Builder::after(kernel, mma), &[acc])?;
    let index = kernel.block(body).args[0];
    store_pieces(kernel, wait, out, within, elem, (index, Predicate::Eq))
}

/// Stores each piece if there is something and its number fulfils a condition: `of` compared with it.
fn store_pieces(
    kernel: &mut Kernel,
    before: Op,
    out: Value,
    last: &DeferredResult,
    elem: Elem,
    (of, predicate): (Value, Predicate),
) -> Result<(), PassError> {
    for number in 0..last.store.pieces {
        let count = constant_like(kernel, before, of, number)?;
        let mut builder = Builder::before(kernel, before);
        let now = builder.cmpi(of, count, predicate)?;
        let condition = builder.andi(now, last.there)?;
        let inside = branch(kernel, before, condition)?;
        store_piece(kernel, inside, out, last, number, elem)?;
    }
    Ok(())
}

/// Stores all that waits.
fn store_all(kernel: &mut Kernel, before: Op, out: Value, last: &DeferredResult, elem: Elem) -> Result<(), PassError> {
    let inside = branch(kernel, before, last.there)?;
    for number in 0..last.store.pieces {
        store_piece(kernel, inside, out, last, number, elem)?;
    }
    Ok(())
}

fn innermost(levels: &[Level]) -> Level {
    levels[levels.len() - 1]
}

/// Yields a value at the end of the innermost block; if the store is in a branch, from there, and `other` or zero from
/// the other side.
fn hand_on(
    kernel: &mut Kernel,
    levels: &[Level],
    choice: Option<Op>,
    store: Op,
    mut value: Value,
    other: Option<Value>,
) -> Result<(), PassError> {
    if let Some(choice) = choice {
        let ty = kernel.value_type(value);
        let other = match other {
            Some(other) => other,
            None => Builder::before(kernel, choice).constant_of(Literal::Int(0), ty)?,
        };
        let steps = loop_carried::path_to(kernel, &[choice], store).ok_or_else(|| missing("a branch"))?;
        let (inside, result) = loop_carried::carry(kernel, &steps, other, None)?;
        inside[0].set(kernel, value);
        value = result;
    }
    innermost(levels).set(kernel, value);
    Ok(())
}

/// Carries the map of deferred results with them, if the kernel makes it: returns the map on each level, and after the
/// loops. A new map is made in the other slot.
fn carry_map(
    kernel: &mut Kernel,
    steps: &[PathStep],
    choice: Option<Op>,
    store: Op,
    map: Value,
) -> Result<Option<(Vec<Level>, Value)>, PassError> {
    let maker = kernel_tensor_maps::maker(kernel, map);
    let block = maker.and_then(|maker| kernel.op(maker).parent);
    let is_on_the_way = steps.iter().any(|(_, step)| Some(*step) == block)
        || choice.is_some_and(|choice| kernel.op(choice).blocks.iter().any(|inner| Some(*inner) == block));
    let (Some(maker), true) = (maker, is_on_the_way) else { return Ok(None) };
    let first = steps[0].0;
    let ty = kernel.value_type(map);
    let none = Builder::before(kernel, first).build(OpKind::NoMap {}, &[], &[], &[], &[], &[ty])?;
    let none = kernel.result(none, 0);
    let maps = loop_carried::carry(kernel, steps, none, None)?;
    let within = innermost(&maps.0).value;
    hand_on(kernel, &maps.0, choice, store, map, Some(within))?;
    kernel_tensor_maps::begin(kernel, maker);

    let start = Builder::before(kernel, first).constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
    let (levels, _) = loop_carried::carry(kernel, steps, start, Some("turn"))?;
    let other = innermost(&levels).value;
    let before = levels.iter().find(|level| Some(level.block) == block).map_or(other, |level| level.value);
    let mut builder = Builder::before(kernel, maker);
    let one = builder.constant_of(Literal::Int(1), Type::Scalar(Elem::I32))?;
    let turn = builder.xori(before, one)?;
    kernel.set_optional(maker, 1, turn);
    hand_on(kernel, &levels, choice, store, turn, Some(other))?;
    Ok(Some(maps))
}

/// An accumulator whose first dot overwrites the registers (`rings.rs`) is carried from iteration to iteration, so that
/// it is not cleared each time. A loop without iterations still yields zeros.
fn keep_acc(kernel: &mut Kernel, of: Op, mma: Op, turns: PathStep) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    let carried = kernel.operand(mma, 2);
    let Some(number) = kernel.block(body).args.iter().skip(1).position(|arg| *arg == carried) else { return Ok(()) };
    let zeros = constant_bits(kernel, kernel.variadic(of)[number]) == Some(0);
    if kernel.use_acc(mma).is_none() || !zeros || !regions::is_loop(kernel.kind(turns.0)) {
        return Ok(());
    }
    let acc = kernel.result(of, number);
    let ty = kernel.value_type(acc);
    let start = Builder::before(kernel, turns.0).constant_of(Literal::Int(0), ty)?;
    let (levels, _) = loop_carried::carry(kernel, &[turns], start, None)?;
    let level = levels[0];
    kernel.set_operand(of, 3 + number, level.value);
    let upper = view::ForRange::at(kernel, of).upper();
    let none = constant_like(kernel, of, upper, 0)?;
    let some = Builder::before(kernel, of).cmpi(none, upper, Predicate::Lt)?;
    let blocks = [kernel.new_block(), kernel.new_block()];
    let branch = Builder::after(kernel, of).build(OpKind::IfElse {}, &[some], &[], &[], &blocks, &[ty])?;
    let whole = kernel.result(branch, 0);
    kernel.replace_uses(acc, whole);
    Builder::at_end(kernel, blocks[0]).yield_values(&[acc])?;
    // After a wait LLVM does not know that they are zeros, and would select between them and the accumulator per
    // register.
    let mut builder = Builder::at_end(kernel, blocks[1]);
    let zeros = builder.constant_of(Literal::Int(0), ty)?;
    let wait = builder.build(OpKind::MmaWait { pending: 0 }, &[], &[], &[zeros], &[], &[ty])?;
    let zeros = kernel.result(wait, 0);
    Builder::at_end(kernel, blocks[1]).yield_values(&[zeros])?;
    level.set(kernel, whole);
    Ok(())
}

fn constant_like(kernel: &mut Kernel, before: Op, like: Value, number: u32) -> Result<Value, PassError> {
    let ty = kernel.value_type(like);
    Ok(Builder::before(kernel, before).constant_of(Literal::Int(number.into()), ty)?)
}

fn store_piece(
    kernel: &mut Kernel,
    before: Op,
    out: Value,
    last: &DeferredResult,
    number: u32,
    elem: Elem,
) -> Result<(), PassError> {
    let piece = unpacked(kernel, before, last.pieces[number as usize], elem, last.axis)?;
    if last.is_made && number == 0 {
        kernel_tensor_maps::await_map(kernel, before, last.store.map)?;
    }
    last.store.copy_out(kernel, before, out, piece, number, &last.at, true)
}

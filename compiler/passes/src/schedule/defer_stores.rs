//! Results that are stored while the next program is computed.
//!
//! ```text
//! for_range programs, (last, there = false) {
//!   for_range k {                                  a piece in each of the first iterations, under the product
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
//! What is carried are pairs of 16 bits in words, for a register holds no less. Stores are copies out of shared memory
//! (`tensor_maps.rs`).

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Predicate, Shape, Type, Value, constant_bits};
use rtc_layout::Layout;

use super::coordinates::{Names, Place};
use super::found::Found;
use super::roles::lost;
use super::tensor_maps::{StoreMap, stored_tile};
use crate::PassError;

/// Whether a store can wait for the next program: it stands beside the loop with the product, whose iterations count
/// from 0, and its elements have 16 bits and make pairs in a thread. Asked of the kernel as it was.
pub(super) fn can_wait(kernel: &Kernel, found: &Found) -> bool {
    let ([(store, access)], [of]) = (&found.stores[..], &found.loops[..]) else { return false };
    let (store, of) = (*store, of.of);
    // The map would be that of the next tensor.
    if access.is_made {
        return false;
    }
    let counts = constant_bits(kernel, kernel.operand(of, 0)) == Some(0)
        && constant_bits(kernel, kernel.operand(of, 2)) == Some(1);
    let body = kernel.op(of).blocks[0];
    let products: Vec<Op> =
        rtc_ir::walk_block(kernel, body).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
    let wide = |op: Op| kernel.value_type(kernel.result(op, 0)).elem().is_some_and(|elem| elem.bits() == 32);
    let beside = kernel.op(store).parent == kernel.op(of).parent && kernel.is_before(of, store);
    let narrow = kernel.value_type(kernel.operand(store, 1)).elem().is_some_and(|elem| elem.bits() == 16);
    let alone = matches!(products[..], [op] if wide(op) && kernel.op(op).parent == Some(body));
    let pairs = kernel.layout_of(stored_tile(kernel, store)).and_then(pair_axis).is_some();
    around(kernel, found).is_some() && counts && alone && beside && narrow && pairs
}

/// The loop of the source around that with the product, if it is right around it; `None` stands for the loop over programs,
/// the outer `None` for a branch.
fn around(kernel: &Kernel, found: &Found) -> Option<Option<Op>> {
    match found.loops[0].path[..] {
        [_] => Some(None),
        [.., around, _] => matches!(kernel.kind(around), OpKind::ForRange { .. }).then_some(Some(around)),
        [] => None,
    }
}

/// What is carried from one program to the next.
struct Last {
    pieces: Vec<Value>,
    /// Along which the elements of a word are neighbours.
    axis: usize,
    at: Place,
    /// Whether there is something.
    there: Value,
}

/// Lets a store wait. `programs` is the loop over programs of the role that computes, `out` the buffer. Where the source loops
/// over tiles by itself, it waits for the next turn of that loop.
pub(super) fn defer(
    kernel: &mut Kernel,
    found: &Found,
    store: &StoreMap,
    out: Value,
    names: &Names<'_>,
    programs: Op,
) -> Result<(), PassError> {
    let (op, access) = &found.stores[store.number];
    let turns = around(kernel, found).ok_or_else(|| lost("a loop"))?.unwrap_or(programs);
    let tile = stored_tile(kernel, *op);
    let shape = kernel.value_type(tile).shape().ok_or_else(|| lost("a tile"))?;
    let elem = kernel.value_type(tile).elem().ok_or_else(|| lost("a tile"))?;
    let axis = kernel.layout_of(tile).and_then(pair_axis).ok_or_else(|| lost("a pair"))?;
    let mut new = Vec::new();
    for piece in store.parts(kernel, *op, tile)? {
        new.push(packed(kernel, *op, piece, axis)?);
    }
    new.extend(names.place(kernel, *op, access, &shape)?.0);
    new.push(Builder::before(kernel, *op).constant_of(Literal::Int(1), Type::Scalar(Elem::I1))?);

    let end = kernel.terminator(kernel.op(turns).blocks[0]).ok_or_else(|| lost("an end"))?;
    let (mut within, mut after) = (Vec::new(), Vec::new());
    for value in new {
        let ty = kernel.value_type(value);
        let start = Builder::before(kernel, turns).constant_of(Literal::Int(0), ty)?;
        let (arg, result) = kernel.carry(turns, start).ok_or_else(|| lost("a loop"))?;
        kernel.set_operand(end, kernel.op(end).operands.len() - 1, value);
        within.push(arg);
        after.push(result);
    }
    let last = |mut values: Vec<Value>| {
        let there = values.pop()?;
        let at = Place(values.split_off(store.pieces as usize));
        Some(Last { at, pieces: values, axis, there })
    };
    let within = last(within).ok_or_else(|| lost("a value"))?;
    let after = last(after).ok_or_else(|| lost("a value"))?;

    // Under the product.
    let of = found.loops[0].of;
    let body = kernel.op(of).blocks[0];
    let product = kernel.ops(body).find(|op| matches!(kernel.kind(*op), OpKind::Mma {}));
    let product = product.ok_or_else(|| lost("a product"))?;
    *kernel.kind_mut(product) = OpKind::MmaAsync {};
    keep_sum(kernel, of, product, turns)?;
    let left = kernel.next_op(of).ok_or_else(|| lost("an end"))?;
    let sum = kernel.result(product, 0);
    let wait = Builder::after(kernel, product).build(OpKind::MmaWait { pending: 0 }, &[], &[], &[sum], &[], &[])?;
    kernel.replace_uses_except(sum, kernel.result(wait, 0), Some(wait));
    let index = kernel.block(body).args[0];
    for number in 0..store.pieces {
        let count = constant_like(kernel, wait, index, number)?;
        let mut builder = Builder::before(kernel, wait);
        let now = builder.cmpi(index, count, Predicate::Eq)?;
        let condition = builder.andi(now, within.there)?;
        let inside = branch(kernel, wait, condition)?;
        store_piece(kernel, inside, store, out, &within, number, elem)?;
    }
    // What is left: before the new results are converted, which then take the same registers.
    let upper = kernel.operand(of, 1);
    for number in 0..store.pieces {
        let count = constant_like(kernel, left, upper, number)?;
        let mut builder = Builder::before(kernel, left);
        let few = builder.cmpi(upper, count, Predicate::Le)?;
        let condition = builder.andi(few, within.there)?;
        let inside = branch(kernel, left, condition)?;
        store_piece(kernel, inside, store, out, &within, number, elem)?;
    }
    kernel.erase(*op);
    let next = kernel.next_op(turns).ok_or_else(|| lost("an end"))?;
    let inside = branch(kernel, next, after.there)?;
    for number in 0..store.pieces {
        store_piece(kernel, inside, store, out, &after, number, elem)?;
    }
    Ok(())
}

/// A sum whose first product overwrites what the registers held (`rings.rs`) goes from turn to turn, so that they are not
/// cleared in each. A loop without iterations still gives zeros.
fn keep_sum(kernel: &mut Kernel, of: Op, product: Op, turns: Op) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    let carried = kernel.operand(product, 2);
    let Some(number) = kernel.block(body).args.iter().skip(1).position(|arg| *arg == carried) else { return Ok(()) };
    if kernel.optional(product, 0).is_none() || constant_bits(kernel, kernel.variadic(of)[number]) != Some(0) {
        return Ok(());
    }
    let sum = kernel.result(of, number);
    let ty = kernel.value_type(sum);
    let start = Builder::before(kernel, turns).constant_of(Literal::Int(0), ty)?;
    let (before, _) = kernel.carry(turns, start).ok_or_else(|| lost("a loop"))?;
    kernel.set_operand(of, 3 + number, before);
    let upper = kernel.operand(of, 1);
    let none = constant_like(kernel, of, upper, 0)?;
    let some = Builder::before(kernel, of).cmpi(none, upper, Predicate::Lt)?;
    let blocks = [kernel.new_block(), kernel.new_block()];
    let branch = Builder::after(kernel, of).build(OpKind::IfElse {}, &[some], &[], &[], &blocks, &[ty])?;
    let whole = kernel.result(branch, 0);
    kernel.replace_uses(sum, whole);
    Builder::at_end(kernel, blocks[0]).yield_values(&[sum])?;
    // Behind a wait nobody sees that they are zeros, and chooses between them and the sum register by register.
    let mut builder = Builder::at_end(kernel, blocks[1]);
    let zeros = builder.constant_of(Literal::Int(0), ty)?;
    let wait = builder.build(OpKind::MmaWait { pending: 0 }, &[], &[], &[zeros], &[], &[ty])?;
    let zeros = kernel.result(wait, 0);
    Builder::at_end(kernel, blocks[1]).yield_values(&[zeros])?;
    let end = kernel.terminator(kernel.op(turns).blocks[0]).ok_or_else(|| lost("an end"))?;
    kernel.set_operand(end, kernel.op(end).operands.len() - 1, whole);
    Ok(())
}

fn constant_like(kernel: &mut Kernel, before: Op, like: Value, number: u32) -> Result<Value, PassError> {
    let ty = kernel.value_type(like);
    Ok(Builder::before(kernel, before).constant_of(Literal::Int(number.into()), ty)?)
}

/// A branch without values; gives the end of its first block.
fn branch(kernel: &mut Kernel, before: Op, condition: Value) -> Result<Op, PassError> {
    let blocks = [kernel.new_block(), kernel.new_block()];
    let ends = blocks.map(|block| Builder::at_end(kernel, block).yield_values(&[]));
    Builder::before(kernel, before).build(OpKind::IfElse {}, &[condition], &[], &[], &blocks, &[])?;
    let [first, second] = ends;
    second?;
    Ok(first?)
}

fn store_piece(
    kernel: &mut Kernel,
    before: Op,
    store: &StoreMap,
    out: Value,
    last: &Last,
    number: u32,
    elem: Elem,
) -> Result<(), PassError> {
    let piece = unpacked(kernel, before, last.pieces[number as usize], elem, last.axis)?;
    store.copy_out(kernel, before, out, piece, number, &last.at, true)
}

/// The axis along which a thread has neighbours of a tile: columns, which is how they are stored, or else rows.
fn pair_axis(layout: &Layout) -> Option<usize> {
    [1, 0].into_iter().find(|axis| apart(layout, *axis).is_some_and(|[_, last]| last.split().is_some()))
}

/// The layouts of a tile `[M, N]` as `[M, N / 2, 2]` or `[M / 2, 2, N]`, and of that with the 2 at the end.
fn apart(layout: &Layout, axis: usize) -> Option<[Layout; 2]> {
    let &[rows, columns] = layout.shape() else { return None };
    let apart = match axis {
        0 => layout.reshape(&[rows / 2, 2, columns]),
        _ => layout.reshape(&[rows, columns / 2, 2]),
    };
    let last = if axis == 0 { apart.transpose(&[0, 2, 1]) } else { apart.clone() };
    Some([apart, last])
}

fn of_layout(kernel: &mut Kernel, elem: Elem, layout: Layout) -> Option<Type> {
    let shape = Shape::new(layout.shape())?;
    let id = kernel.intern_layout(layout);
    Some(Type::tile(elem, shape).with_layout(Some(id)))
}

/// Neighbours of 16 bits as words.
fn packed(kernel: &mut Kernel, before: Op, tile: Value, axis: usize) -> Result<Value, PassError> {
    let none = || lost("a pair");
    let layout = kernel.layout_of(tile).ok_or_else(none)?.clone();
    let elem = kernel.value_type(tile).elem().ok_or_else(none)?;
    let [apart, last] = apart(&layout, axis).ok_or_else(none)?;
    let half = last.split().ok_or_else(none)?;
    let mut of = |layout| of_layout(kernel, elem, layout).ok_or_else(none);
    let [apart, last, half] = [of(apart)?, of(last)?, of(half)?];
    let mut builder = Builder::before(kernel, before);
    let mut pairs = builder.reshape_to(tile, apart, false)?;
    if axis == 0 {
        let trans = builder.build(OpKind::Trans { order: vec![0, 2, 1] }, &[pairs], &[], &[], &[], &[last])?;
        pairs = builder.kernel().result(trans, 0);
    }
    let split = builder.build(OpKind::Split {}, &[pairs], &[], &[], &[], &[half, half])?;
    let [low, high] = [0, 1].map(|number| builder.kernel().result(split, number));
    Ok(builder.pack_pair(low, high)?)
}

/// The reverse.
fn unpacked(kernel: &mut Kernel, before: Op, words: Value, elem: Elem, axis: usize) -> Result<Value, PassError> {
    let none = || lost("a pair");
    let last = kernel.layout_of(words).ok_or_else(none)?.join();
    let apart = if axis == 0 { last.transpose(&[0, 2, 1]) } else { last.clone() };
    let &[a, b, c] = apart.shape() else { return Err(none()) };
    let whole = apart.reshape(&if axis == 0 { [a * b, c] } else { [a, b * c] });
    let mut of = |layout| of_layout(kernel, elem, layout).ok_or_else(none);
    let [last, apart, whole] = [of(last)?, of(apart)?, of(whole)?];
    let mut builder = Builder::before(kernel, before);
    let (low, high) = (builder.unpack_pair(words, elem, false)?, builder.unpack_pair(words, elem, true)?);
    let both = builder.build(OpKind::Join {}, &[low, high], &[], &[], &[], &[last])?;
    let mut both = builder.kernel().result(both, 0);
    if axis == 0 {
        let trans = builder.build(OpKind::Trans { order: vec![0, 2, 1] }, &[both], &[], &[], &[], &[apart])?;
        both = builder.kernel().result(trans, 0);
    }
    Ok(builder.reshape_to(both, whole, false)?)
}

//! Versions of stores through pointers and strides that come from memory: one for those that happen to be multiples of
//! 16 bytes.
//!
//! ```text
//! store %tile_of(%p, %stride), %x    →   if_else (%p % 16 | %stride % 8) == 0 ^() {
//!                                          store %tile_of(hint %p {16}, hint %stride {8}), %x
//!                                        } ^() {
//!                                          store %tile_of(%p, %stride), %x
//!                                        }
//! ```
//!
//! A dot of a grouped matmul loads the addresses of its matrices from memory, without promises, so that each thread
//! stores single elements at addresses of their own. Those take so many registers that the loop before spills. For
//! arguments, the launch can give the promises; such stores are left alone.

use std::collections::HashSet;

use rtc_ir::analysis::axis_info;
use rtc_ir::{
    Builder, Elem, HintKind, Kernel, Literal, Op, OpKind, Phase, Position, Predicate, Type, Value, ValueMap, view,
};

use crate::access::vector_width::{pointee_bytes, vector_width};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "store-versioning", needs: Phase::Tile, leaves: Phase::Tile, run };

/// Bytes of the widest access of a thread.
const WIDEST: u64 = 16;
/// The fewest bytes of a thread that are worth a second version.
const LEAST: u64 = 2 * WIDEST;
/// Operations up to which is looked for where a scalar comes from.
const MOST_STEPS: usize = 64;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let is_store = |op: &Op| matches!(kernel.kind(*op), OpKind::Store { .. });
    let stores: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(is_store).collect();
    for store in stores {
        let Some(mut chain) = chain(kernel, store) else { continue };
        // Only stores that are sure to be wide are worth it.
        let Some(mut wide) = widened(kernel, store, &chain)? else { continue };
        // There is no condition on a mask along the rows.
        for number in (0..chain.open.len()).rev() {
            let asked = chain.open.remove(number);
            match widened(kernel, store, &chain)? {
                Some(other) => wide = other,
                None => chain.open.insert(number, asked),
            }
        }
        *kernel = wide;
    }
    Ok(())
}

/// The kernel with both versions of a store, if the first one is wide then.
fn widened(kernel: &Kernel, store: Op, chain: &Chain) -> Result<Option<Kernel>, PassError> {
    let mut trial = kernel.clone();
    let wide = split(&mut trial, store, chain)?;
    Ok((width(&trial, wide) >= WIDEST).then_some(trial))
}

/// The values that the addresses and the mask of a store are computed from.
struct Chain {
    /// The operations on tiles, in order.
    ops: Vec<Op>,
    /// The scalars that are broadcast to tiles and whose divisors are unknown, with the required divisor of each.
    open: Vec<(Value, u32)>,
}

/// The chain of a store that is too narrow, if some of its scalars come from memory.
fn chain(kernel: &Kernel, store: Op) -> Option<Chain> {
    let access = view::Store::at(kernel, store);
    let pointer = access.pointer();
    let shape = kernel.value_type(pointer).shape()?;
    let bytes = pointee_bytes(kernel, pointer);
    let of_thread = shape.numel() * bytes / (32 * u64::from(kernel.group_of(store).warps));
    if of_thread < LEAST || bytes >= WIDEST {
        return None;
    }
    let (mut ops, mut scalars, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for root in std::iter::once(pointer).chain(access.mask()) {
        collect(kernel, root, &mut ops, &mut scalars, &mut seen)?;
    }
    if !scalars.iter().any(|scalar| is_loaded(kernel, *scalar)) {
        return None;
    }
    let infos = axis_info(kernel);
    if width(kernel, store) >= WIDEST {
        return None;
    }
    let wanted = |value: Value| match kernel.value_type(value).elem()? {
        Elem::Ptr(_) => Some((value, WIDEST as u32)),
        Elem::Num(scalar) if scalar.is_int() && scalar.bits() >= 32 => Some((value, (WIDEST / bytes) as u32)),
        _ => None,
    };
    let is_open = |(value, factor): &(Value, u32)| infos.axis(*value, 0).divisibility < u64::from(*factor);
    let open = scalars.into_iter().filter_map(wanted).filter(is_open).collect();
    Some(Chain { ops, open })
}

/// Goes from a tile to the scalars that it is made of; `None` if something else is on the way.
fn collect(
    kernel: &Kernel,
    value: Value,
    ops: &mut Vec<Op>,
    scalars: &mut Vec<Value>,
    seen: &mut HashSet<Value>,
) -> Option<()> {
    if !seen.insert(value) {
        return Some(());
    }
    if kernel.value_type(value).shape().is_none() {
        scalars.push(value);
        return Some(());
    }
    let op = kernel.def_op(value)?;
    let data = kernel.op(op);
    if !kernel.only_computes(op) || data.results.len() > 1 {
        return None;
    }
    for operand in &data.operands {
        collect(kernel, *operand, ops, scalars, seen)?;
    }
    ops.push(op);
    Some(())
}

/// Whether a scalar depends on a load.
fn is_loaded(kernel: &Kernel, scalar: Value) -> bool {
    let (mut work, mut seen) = (vec![scalar], HashSet::new());
    while let Some(value) = work.pop() {
        let Some(op) = kernel.def_op(value).filter(|op| seen.insert(*op)) else { continue };
        if matches!(kernel.kind(op), OpKind::Load { .. }) {
            return true;
        }
        if kernel.op(op).blocks.is_empty() && seen.len() < MOST_STEPS {
            work.extend(&kernel.op(op).operands);
        }
    }
    false
}

/// The bytes that a thread may store at once.
fn width(kernel: &Kernel, store: Op) -> u64 {
    let access = view::Store::at(kernel, store);
    let (pointer, mask) = (access.pointer(), access.mask());
    let rank = kernel.value_type(pointer).shape().map_or(0, |shape| shape.rank());
    let infos = axis_info(kernel);
    let widest = (0..rank).map(|axis| vector_width(kernel, &infos, pointer, mask, axis)).max();
    widest.unwrap_or(1) * pointee_bytes(kernel, pointer)
}

/// Makes the two versions; the store of the first.
fn split(kernel: &mut Kernel, store: Op, chain: &Chain) -> Result<Op, PassError> {
    let mut fits: Option<Value> = None;
    for (value, factor) in &chain.open {
        let mut builder = Builder::before(kernel, store);
        let is_pointer = matches!(builder.kernel().value_type(*value).elem(), Some(Elem::Ptr(_)));
        let number = if is_pointer { builder.ptrtoint(*value)? } else { *value };
        let ty: Type = builder.kernel().value_type(number);
        let low = builder.constant_of(Literal::Int(i64::from(*factor) - 1), ty)?;
        let zero = builder.constant_of(Literal::Int(0), ty)?;
        let rest = builder.andi(number, low)?;
        let is_multiple = builder.cmpi(rest, zero, Predicate::Eq)?;
        fits = Some(match fits {
            Some(fits) => builder.andi(fits, is_multiple)?,
            None => is_multiple,
        });
    }
    let Some(fits) = fits else { return Ok(store) };
    let blocks = [kernel.new_block(), kernel.new_block()];
    for block in blocks {
        Builder::at_end(kernel, block).yield_values(&[])?;
    }
    Builder::before(kernel, store).build(OpKind::IfElse {}, &[fits], &[], &[], &blocks, &[])?;
    let missing = || PassError::Internal("a block without an end".into());
    let mut stores = Vec::new();
    for (block, is_aligned) in blocks.into_iter().zip([true, false]) {
        let end = kernel.terminator(block).ok_or_else(missing)?;
        let mut map = ValueMap::new();
        if is_aligned {
            for (value, factor) in &chain.open {
                let mut builder = Builder::before(kernel, end);
                map.insert(*value, builder.hint(*value, HintKind::MultipleOf, vec![*factor])?);
            }
        }
        for op in chain.ops.iter().chain([&store]) {
            let copy = kernel.clone_whole(*op, &mut map);
            kernel.move_op(copy, Position::Before(end));
            stores.push(copy);
        }
    }
    let wide = stores[chain.ops.len()];
    kernel.erase(store);
    Ok(wide)
}

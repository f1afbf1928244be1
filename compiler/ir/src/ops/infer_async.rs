//! Type rules of asynchronous operations, and of products with operands in shared memory.

use rtc_layout::SharedLayout;

use super::InferContext;
use super::infer::{Inferred, expect, one};
use super::infer_blocks::tensor_parts;
use crate::wgmma::{mma_elements, operand_shape};
use crate::{DescType, DotKind, Elem, OpKind, Scalar, SharedType, Type};

/// A tile or buffer `[M, K]`, a buffer `[K, N]` and a tile `[M, N]`, which is the result's type; `use_acc` is an `i1`.
pub(super) fn mma(cx: &InferContext<'_>) -> Inferred {
    let [lhs, rhs, acc, ..] = cx.operands else { return Err("needs three operands".into()) };
    for buffer in [lhs, rhs].into_iter().filter_map(|ty| ty.as_shared()) {
        expect(buffer.slots == 1, || format!("{} has {} slots; take one of them", Type::Shared(buffer), buffer.slots))?;
    }
    let shapes = [operand_shape(*lhs), rhs.as_shared().map(|b| b.shape), acc.shape()];
    let [Some(a), Some(b), Some(c)] = shapes else { return Err(format!("no product of {lhs} and {rhs} into {acc}")) };
    let fits = [a, b, c].iter().all(|s| s.rank() == 2 && s.iter().all(|d| d.is_power_of_two()))
        && a[1] == b[0]
        && c[..] == [a[0], b[1]];
    expect(fits, || format!("shapes {a}, {b}, {c} do not fit"))?;
    let scalars = [lhs, rhs, acc].map(|ty| ty.elem().and_then(Elem::num));
    let known = matches!(scalars, [Some(l), Some(r), Some(c)] if mma_elements(l, r, c));
    expect(known, || format!("no product of {lhs} and {rhs} into {acc}"))?;
    if let Some(flag) = cx.optional(0) {
        expect(flag == Type::Scalar(Elem::I1), || format!("`use_acc` is {flag}, not i1"))?;
    }
    let is_async = !matches!(cx.kind, OpKind::Mma {});
    expect(!is_async || acc.elem().is_some_and(|elem| elem.bits() == 32), || {
        format!("an accumulator in flight has elements of 32 bits, not {acc}")
    })?;
    one(*acc)
}

/// Buffers `[M, K]` and `[K, N]` and a tile `[M, N]`, which is the result's type, all of the same floats.
pub(super) fn dot_buffers(cx: &InferContext<'_>) -> Inferred {
    let [lhs, rhs, acc] = cx.operands else { return Err("needs three operands".into()) };
    let OpKind::DotBuffers { kind } = cx.kind else { return Err("is not dot_buffers".into()) };
    let (a, b) = (one_slot(*lhs)?, one_slot(*rhs)?);
    let elem = acc.elem().and_then(Elem::num);
    let allowed: &[Scalar] = match kind {
        DotKind::FmaShared => &[Scalar::F32, Scalar::F64],
        DotKind::MmaF64 => &[Scalar::F64],
        DotKind::Unset | DotKind::Fma | DotKind::MmaV2 | DotKind::Wgmma => &[],
    };
    let known = elem.is_some_and(|elem| allowed.contains(&elem)) && [a, b].iter().all(|ty| Some(ty.elem) == acc.elem());
    expect(known, || format!("no product of {lhs} and {rhs} into {acc} by {kind}"))?;
    let Some(c) = acc.shape() else { return Err(format!("the accumulator is {acc}, not a tile")) };
    let fits = [a.shape, b.shape, c].iter().all(|s| s.rank() == 2 && s.iter().all(|d| d.is_power_of_two()))
        && a.shape[1] == b.shape[0]
        && c[..] == [a.shape[0], b.shape[1]]
        && (*kind == DotKind::FmaShared || (c[0] >= 8 && c[1] >= 8 && a.shape[1] >= 4));
    expect(fits, || format!("shapes {}, {}, {c} do not fit", a.shape, b.shape))?;
    one(*acc)
}

/// A tile of pointers and a buffer of what they point to, of the same sizes; the mask has them, too; no result.
pub(super) fn copy_async(cx: &InferContext<'_>) -> Inferred {
    let [pointer, place, ..] = cx.operands else { return Err("needs two operands".into()) };
    let pointee = pointer.elem().and_then(Elem::pointee).ok_or_else(|| format!("needs pointers, not {pointer}"))?;
    let buffer = one_slot(*place)?;
    expect(buffer.elem == pointee.into() && Some(buffer.shape) == pointer.shape(), || {
        format!("{pointer} does not fit {place}")
    })?;
    if let Some(mask) = cx.optional(0) {
        expect(mask == pointer.with_elem(Elem::I1), || {
            format!("the mask is {mask}, not {}", pointer.with_elem(Elem::I1))
        })?;
    }
    Ok(Vec::new())
}

fn one_slot(ty: Type) -> Result<SharedType, String> {
    let buffer = ty.as_shared().ok_or_else(|| format!("needs a buffer, not {ty}"))?;
    expect(buffer.slots == 1, || format!("{ty} has {} slots; take one of them", buffer.slots))?;
    Ok(buffer)
}

fn one_barrier(ty: Type) -> Result<(), String> {
    expect(ty == Type::Barrier { slots: 1 }, || format!("needs one barrier, not {ty}"))
}

/// One barrier; no result.
pub(super) fn barrier_of(cx: &InferContext<'_>) -> Inferred {
    one_barrier(cx.operands[0])?;
    Ok(Vec::new())
}

/// One barrier, and perhaps an `i32` scalar; no result.
pub(super) fn barrier_expect(cx: &InferContext<'_>) -> Inferred {
    one_barrier(cx.operands[0])?;
    if let Some(fewer) = cx.optional(0) {
        expect(fewer == Type::Scalar(Elem::I32), || format!("`fewer` is {fewer}, not i32"))?;
    }
    Ok(Vec::new())
}

/// One barrier and an `i32` scalar; no result.
pub(super) fn barrier_wait(cx: &InferContext<'_>) -> Inferred {
    let [barrier, parity] = cx.operands else { return Err("needs two operands".into()) };
    one_barrier(*barrier)?;
    expect(*parity == Type::Scalar(Elem::I32), || format!("the parity is {parity}, not i32"))?;
    Ok(Vec::new())
}

/// The parts of the box of a tensor descriptor: a buffer with its layout, which need not have its outer dimensions of size 1,
/// and as many `i32` coordinates as dimensions.
fn check_box(cx: &InferContext<'_>) -> Result<DescType, String> {
    let desc = check_parts(cx)?;
    let buffer = one_slot(cx.operands[1])?;
    let is_one = desc.of_buffer(&buffer.shape).shape == desc.shape;
    expect(is_one, || format!("{} does not fit {}", cx.operands[1], Type::Desc(desc)))?;
    Ok(desc)
}

/// The descriptor, if the buffer consists of its boxes and there is a coordinate for each dimension.
fn check_parts(cx: &InferContext<'_>) -> Result<DescType, String> {
    let [Type::Desc(desc), place, ..] = cx.operands else {
        return Err(format!("needs a tensor descriptor, not {}", cx.operands[0]));
    };
    desc.check_box()?;
    let buffer = one_slot(*place)?;
    let inner = &desc.shape[desc.shape.rank().saturating_sub(buffer.shape.rank())..];
    let fits = buffer.elem == desc.elem.into()
        && buffer.shape.rank() == inner.len()
        && buffer.shape.iter().zip(inner).all(|(whole, part)| whole.is_multiple_of(*part));
    expect(fits, || format!("{place} does not fit {}", Type::Desc(*desc)))?;
    expect(desc.fills(&cx.kernel.slot_layout(buffer)), || {
        format!("the layout of {place} is not that of a box of {}", Type::Desc(*desc))
    })?;
    let at = cx.variadic();
    expect(at.len() == desc.shape.rank() && at.iter().all(|ty| *ty == Type::Scalar(Elem::I32)), || {
        format!("needs {} coordinates of type i32", desc.shape.rank())
    })?;
    Ok(*desc)
}

/// A scalar pointer, sizes (`i32`), strides (`i64`) but the last, perhaps a slot (`i32`); the stated tensor map.
pub(super) fn make_map(cx: &InferContext<'_>) -> Inferred {
    let [Type::Desc(desc)] = cx.given else { return Err("needs a tensor descriptor as its result".into()) };
    desc.check_box()?;
    tensor_parts(cx, desc)?;
    let OpKind::MakeMap { nan, tf32, .. } = cx.kind else { return Err("is not make_map".into()) };
    expect(!nan || desc.elem.is_float() && desc.elem.bits() >= 16, || format!("copies of {} give no NaN", desc.elem))?;
    expect(!tf32 || desc.elem == Scalar::F32, || format!("{} is not rounded to tf32", desc.elem))?;
    if let Some(turn) = cx.optional(1) {
        expect(turn == Type::Scalar(Elem::I32), || format!("`turn` is {turn}, not i32"))?;
    }
    one(cx.given[0])
}

/// A tensor map; no result.
pub(super) fn await_map(cx: &InferContext<'_>) -> Inferred {
    let [map] = cx.operands else { return Err("needs one operand".into()) };
    expect(matches!(map, Type::Desc(_)), || format!("{map} is no tensor map"))?;
    Ok(Vec::new())
}

/// The stated tensor map.
pub(super) fn no_map(cx: &InferContext<'_>) -> Inferred {
    let [Type::Desc(desc)] = cx.given else { return Err("needs a tensor descriptor as its result".into()) };
    desc.check_box()?;
    one(cx.given[0])
}

/// A tensor descriptor, a buffer of its box, one barrier, and an `i32` coordinate for each dimension; no result.
pub(super) fn copy_desc(cx: &InferContext<'_>) -> Inferred {
    check_box(cx)?;
    one_barrier(cx.operands[2])?;
    Ok(Vec::new())
}

/// A pointer, a row-major buffer of what it points to and one barrier; no result.
pub(super) fn copy_bulk(cx: &InferContext<'_>) -> Inferred {
    let [pointer, place, barrier] = cx.operands else { return Err("needs three operands".into()) };
    let pointee = match pointer {
        Type::Scalar(elem) => elem.pointee(),
        _ => None,
    };
    let buffer = one_slot(*place)?;
    expect(pointee.is_some_and(|pointee| buffer.elem == pointee.into()), || {
        format!("{pointer} does not fit {place}; needs one pointer to its elements")
    })?;
    expect(*cx.kernel.slot_layout(buffer) == SharedLayout::row_major(&buffer.shape), || {
        format!("the elements of {place} do not lie side by side")
    })?;
    let bytes = buffer.shape.numel() * u64::from(buffer.elem.bytes());
    expect(bytes.is_multiple_of(16), || format!("{place} has {bytes} bytes, no multiple of 16"))?;
    one_barrier(*barrier)?;
    Ok(Vec::new())
}

/// A tensor descriptor, a buffer of one or more of its boxes, and an `i32` coordinate for each dimension; no result.
pub(super) fn copy_desc_store(cx: &InferContext<'_>) -> Inferred {
    let desc = check_parts(cx)?;
    if let OpKind::CopyDescReduce { op } = cx.kind {
        let has = op.has_copies(desc.elem);
        expect(has, || format!("copies to {} have no `{op}`", Type::Desc(desc)))?;
    }
    Ok(Vec::new())
}

/// Tokens, and perhaps a buffer with one slot, which is the result.
pub(super) fn copy_await(cx: &InferContext<'_>) -> Inferred {
    let buffer = cx.optional(0).map(one_slot).transpose()?;
    let tokens = cx.variadic();
    expect(!tokens.is_empty(), || "waits for no group".into())?;
    if let Some(other) = tokens.iter().find(|ty| **ty != Type::Token) {
        return Err(format!("waits for groups of copies, not {other}"));
    }
    Ok(buffer.map(Type::Shared).into_iter().collect())
}

/// Tiles with elements of 32 bits give tiles of the same types.
pub(super) fn mma_wait(cx: &InferContext<'_>) -> Inferred {
    for ty in cx.variadic() {
        let is_sum = ty.as_tile().is_some_and(|tile| tile.elem.bits() == 32);
        expect(is_sum, || format!("needs accumulators with elements of 32 bits, not {ty}"))?;
    }
    Ok(cx.variadic().to_vec())
}

//! Type rules of the operations on shared memory.
//!
//! Types of views are stated, as the layout of a view may be one that the kernel does not have yet; the rule checks that it
//! is the right one. `Builder::shared_trans_of` and `Builder::shared_slice_of` state it.

use rtc_layout::SharedLayout;

use super::InferContext;
use super::infer::{Inferred, expect, one};
use crate::{Elem, OpKind, SharedType, Type, place_bytes};

/// The most arrivals that a barrier counts.
const MOST_ARRIVALS: u32 = (1 << 20) - 1;

fn given(cx: &InferContext<'_>) -> Result<Type, String> {
    let [ty] = cx.given else { return Err("needs one result type".into()) };
    Ok(*ty)
}

fn buffer(ty: Type) -> Result<SharedType, String> {
    ty.as_shared().ok_or_else(|| format!("needs a buffer, not {ty}"))
}

/// A buffer that holds tiles: where their elements lie.
fn layout(cx: &InferContext<'_>, ty: SharedType) -> Result<SharedLayout, String> {
    let powers = ty.shape.iter().all(|d| d.is_power_of_two()) && ty.shape.numel() <= crate::MAX_TILE_ELEMENTS;
    expect(powers, || format!("a buffer of {} elements holds no tile", ty.shape))?;
    let layout = cx.kernel.slot_layout(ty);
    expect(layout.shape() == &ty.shape[..], || {
        format!("the layout is for shape {:?}, not {}", layout.shape(), ty.shape)
    })?;
    Ok(layout.into_owned())
}

/// The stated buffer.
pub(super) fn alloc_shared(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AllocShared { align, .. } = cx.kind else { return Err("is not alloc_shared".into()) };
    expect(align.is_power_of_two(), || format!("the alignment {align} is no power of two"))?;
    one(Type::Shared(buffer(given(cx)?)?))
}

/// The stated barriers.
pub(super) fn alloc_barriers(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AllocBarriers { count, .. } = cx.kind else { return Err("is not alloc_barriers".into()) };
    expect((1..=MOST_ARRIVALS).contains(count), || format!("a barrier cannot expect {count} arrivals"))?;
    let ty = given(cx)?;
    expect(matches!(ty, Type::Barrier { .. }), || format!("gives barriers, not {ty}"))?;
    one(ty)
}

/// The type of the ring, with one slot; the index is an `i32` scalar.
pub(super) fn slot(cx: &InferContext<'_>) -> Inferred {
    let [ring, index] = cx.operands else { return Err("needs two operands".into()) };
    expect(*index == Type::Scalar(Elem::I32), || format!("the index is {index}, not i32"))?;
    match ring {
        Type::Shared(shared) => one(Type::Shared(SharedType { slots: 1, ..*shared })),
        Type::Barrier { .. } => one(Type::Barrier { slots: 1 }),
        other => Err(format!("needs buffers or barriers, not {other}")),
    }
}

/// The stated type is `ty` with the layout `layout`.
fn view(cx: &InferContext<'_>, layout: &SharedLayout, slots: u32) -> Inferred {
    let stated = buffer(given(cx)?)?;
    let source = buffer(cx.operands[0])?;
    let fits = &stated.shape[..] == layout.shape() && stated.elem == source.elem && stated.slots == slots;
    let same = fits && cx.kernel.slot_layout(stated).as_ref() == layout;
    expect(same, || format!("the view has the layout {layout}, with {slots} slots; its type is {}", cx.given[0]))?;
    one(cx.given[0])
}

/// The buffer with its sizes and its layout in the new order.
pub(super) fn shared_trans(cx: &InferContext<'_>) -> Inferred {
    let OpKind::SharedTrans { order } = cx.kind else { return Err("is not shared_trans".into()) };
    let source = buffer(cx.operands[0])?;
    let layout = layout(cx, source)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    expect(sorted.into_iter().eq(0..source.shape.rank() as u32), || {
        format!("{order:?} is no order of the axes of {}", source.shape)
    })?;
    view(cx, &layout.transpose(order), source.slots)
}

/// A part of a slot, with the layout that it has there; it must lie in one piece.
pub(super) fn shared_slice(cx: &InferContext<'_>) -> Inferred {
    let OpKind::SharedSlice { offsets, shape } = cx.kind else { return Err("is not shared_slice".into()) };
    let source = buffer(cx.operands[0])?;
    expect(source.slots == 1, || format!("{} has {} slots; take one of them first", cx.operands[0], source.slots))?;
    let Some((_, part)) = layout(cx, source)?.slice(offsets, shape) else {
        return Err(format!("the part {shape:?} at {offsets:?} of {} does not lie in one piece", source.shape));
    };
    view(cx, &part, 1)
}

/// The stated buffer, which the slot has room for.
pub(super) fn shared_view(cx: &InferContext<'_>) -> Inferred {
    let (stated, source) = (buffer(given(cx)?)?, buffer(cx.operands[0])?);
    expect(source.slots == 1, || format!("{} has {} slots; take one of them first", cx.operands[0], source.slots))?;
    let [room, size] = [source, stated].map(|ty| place_bytes(Type::Shared(ty)));
    expect(stated.elem == source.elem && stated.slots == 1 && size <= room, || {
        format!("{} has no room for {} with the same elements", cx.operands[0], cx.given[0])
    })?;
    layout(cx, stated)?;
    one(cx.given[0])
}

/// Whether a tile and a buffer hold the same elements.
fn same_tile(cx: &InferContext<'_>, tile: Type, place: Type) -> Result<(), String> {
    let place = buffer(place)?;
    expect(place.slots == 1, || format!("{} has {} slots; take one of them", Type::Shared(place), place.slots))?;
    layout(cx, place)?;
    let fits = tile.shape() == Some(place.shape) && tile.elem() == Some(place.elem);
    expect(fits, || format!("{tile} does not fit {}", Type::Shared(place)))
}

/// A tile and a buffer with one slot, of the same elements and sizes; no result.
pub(super) fn local_store(cx: &InferContext<'_>) -> Inferred {
    same_tile(cx, cx.operands[0], cx.operands[1])?;
    Ok(Vec::new())
}

/// The stated tile has the elements and sizes of the buffer, which has one slot.
pub(super) fn local_load(cx: &InferContext<'_>) -> Inferred {
    let result = given(cx)?;
    same_tile(cx, result, cx.operands[0])?;
    one(result)
}

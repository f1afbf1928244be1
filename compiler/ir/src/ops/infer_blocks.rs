//! Type rules of tensor descriptors and block pointers in phase `Tile`.

use super::InferContext;
use super::infer::{Inferred, checked_tile, expect, one};
use super::infer_atomic::check_rmw;
use crate::{BlockPtrType, DescType, Elem, OpKind, Padding, Scalar, Shape, Type};

fn desc(ty: Type) -> Result<DescType, String> {
    let Type::Desc(desc) = ty else { return Err(format!("needs a tensor descriptor, not {ty}")) };
    desc.check()?;
    Ok(desc)
}

fn block_pointer(ty: Type) -> Result<BlockPtrType, String> {
    let Type::BlockPtr(block) = ty else { return Err(format!("needs a block pointer, not {ty}")) };
    block.check()?;
    Ok(block)
}

fn stated(cx: &InferContext<'_>) -> Result<Type, String> {
    let [ty] = cx.given else { return Err("needs one result type".into()) };
    Ok(*ty)
}

/// The further operands: `rank` scalars of each of these types.
fn numbers(cx: &InferContext<'_>, rank: usize, groups: &[(&str, Elem)]) -> Result<(), String> {
    let found = cx.variadic();
    let wanted = groups.iter().flat_map(|(_, elem)| std::iter::repeat_n(Type::Scalar(*elem), rank));
    expect(found.iter().copied().eq(wanted), || {
        let groups: Vec<String> = groups.iter().map(|(what, elem)| format!("{rank} {what} of type {elem}")).collect();
        format!("needs {}", groups.join(", then "))
    })
}

fn scalar_pointer(ty: Type, pointee: Scalar) -> Result<(), String> {
    expect(ty == Type::Scalar(Elem::Ptr(pointee)), || format!("the base is {ty}, not ptr<{pointee}>"))
}

/// Checks what the tensor of a descriptor is made of: a scalar pointer, for each dimension a size (`i32`), for each but the
/// last a stride (`i64`).
pub(super) fn tensor_parts(cx: &InferContext<'_>, desc: &DescType) -> Result<(), String> {
    scalar_pointer(cx.operands[0], desc.elem)?;
    let rank = desc.shape.rank();
    let scalars = |count, elem| std::iter::repeat_n(Type::Scalar(elem), count);
    let wanted = scalars(rank, Elem::I32).chain(scalars(rank - 1, Elem::I64));
    expect(cx.variadic().iter().copied().eq(wanted), || {
        format!("needs {rank} sizes of type i32, then {} strides of type i64", rank - 1)
    })
}

/// A scalar pointer, for each dimension a size (`i32`), for each but the last a stride (`i64`); the stated descriptor.
pub(super) fn make_desc(cx: &InferContext<'_>) -> Inferred {
    let desc = desc(stated(cx)?)?;
    expect(desc.swizzle == 0, || format!("gives a descriptor without swizzle, not {}", cx.given[0]))?;
    tensor_parts(cx, &desc)?;
    if let Some(nan) = cx.optional(0) {
        expect(nan == Type::Scalar(Elem::I1), || format!("`nan` is {nan}, not i1"))?;
        expect(desc.elem.is_float(), || format!("{} has no NaN", desc.elem))?;
    }
    one(cx.given[0])
}

/// A tensor descriptor with that axis; an `i32`.
pub(super) fn desc_size(cx: &InferContext<'_>) -> Inferred {
    let OpKind::DescSize { axis } = cx.kind else { return Err("is not desc_size".into()) };
    let rank = desc(cx.operands[0])?.shape.rank();
    expect((*axis as usize) < rank, || format!("there is no axis {axis} of {rank}"))?;
    one(Type::Scalar(Elem::I32))
}

/// A tensor descriptor with that axis, which is not the last; an `i64`.
pub(super) fn desc_stride(cx: &InferContext<'_>) -> Inferred {
    let OpKind::DescStride { axis } = cx.kind else { return Err("is not desc_stride".into()) };
    let rank = desc(cx.operands[0])?.shape.rank();
    expect((*axis as usize) + 1 < rank, || format!("there is no stride of axis {axis} of {rank}"))?;
    one(Type::Scalar(Elem::I64))
}

/// A tensor descriptor and an `i32` coordinate for each dimension; a tile of the block's sizes.
pub(super) fn desc_load(cx: &InferContext<'_>) -> Inferred {
    let desc = desc(cx.operands[0])?;
    numbers(cx, desc.shape.rank(), &[("coordinates", Elem::I32)])?;
    one(Type::tile(desc.elem(), desc.shape))
}

/// A tensor descriptor, a tile of the block's sizes, and an `i32` coordinate for each dimension; no result.
pub(super) fn desc_store(cx: &InferContext<'_>) -> Inferred {
    let [first, value, ..] = cx.operands else { return Err("needs two operands".into()) };
    let desc = desc(*first)?;
    let tile = Type::tile(desc.elem(), desc.shape);
    expect(*value == tile, || format!("the value is {value}, not {tile}"))?;
    numbers(cx, desc.shape.rank(), &[("coordinates", Elem::I32)])?;
    if let OpKind::DescReduce { op } = cx.kind {
        check_rmw(*op, desc.elem)?;
    }
    Ok(Vec::new())
}

/// The tile that rows picked from a matrix make.
fn picked(cx: &InferContext<'_>) -> Result<Type, String> {
    let [first, rows, column, ..] = cx.operands else { return Err("needs three operands".into()) };
    let desc = desc(*first)?;
    let [1, columns] = desc.shape[..] else { return Err(format!("needs blocks of one row, not {first}")) };
    let count = rows.shape().filter(|s| s.rank() == 1 && rows.elem() == Some(Elem::I32));
    let count = count.ok_or_else(|| format!("the rows are {rows}, not a line of i32"))?[0];
    expect(*column == Type::Scalar(Elem::I32), || format!("the column is {column}, not i32"))?;
    Ok(checked_tile(desc.elem(), Shape::new(&[count, columns]))?[0])
}

/// A tensor descriptor with blocks of one row, a 1-D tile of `i32` rows and an `i32` column; a tile with those rows.
pub(super) fn desc_gather(cx: &InferContext<'_>) -> Inferred {
    one(picked(cx)?)
}

/// A tensor descriptor with blocks of one row, a 1-D tile of `i32` rows, an `i32` column and a tile with those rows; no
/// result.
pub(super) fn desc_scatter(cx: &InferContext<'_>) -> Inferred {
    let (tile, value) = (picked(cx)?, cx.operands[3]);
    expect(value == tile, || format!("the value is {value}, not {tile}"))?;
    Ok(Vec::new())
}

/// A scalar pointer, for each dimension a size (`i64`), a stride (`i64`) and an offset (`i32`); the stated block pointer.
pub(super) fn make_block_ptr(cx: &InferContext<'_>) -> Inferred {
    let OpKind::MakeBlockPtr { order } = cx.kind else { return Err("is not make_block_ptr".into()) };
    let block = block_pointer(stated(cx)?)?;
    let rank = block.shape.rank();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    expect(sorted.into_iter().eq(0..rank as u32), || format!("{order:?} is no order of {rank} dimensions"))?;
    scalar_pointer(cx.operands[0], block.elem)?;
    numbers(cx, rank, &[("sizes", Elem::I64), ("strides", Elem::I64), ("offsets", Elem::I32)])?;
    one(cx.given[0])
}

/// A block pointer and an `i32` for each dimension; the same type.
pub(super) fn advance(cx: &InferContext<'_>) -> Inferred {
    let block = block_pointer(cx.operands[0])?;
    numbers(cx, block.shape.rank(), &[("offsets", Elem::I32)])?;
    one(cx.operands[0])
}

/// The dimensions that are checked: each once.
fn check_dimensions(check: &[u32], rank: usize) -> Result<(), String> {
    let known = check.iter().enumerate().all(|(i, axis)| (*axis as usize) < rank && !check[..i].contains(axis));
    expect(known, || format!("{check:?} are not some of {rank} dimensions"))
}

/// A block pointer; a tile of the block's sizes.
pub(super) fn block_load(cx: &InferContext<'_>) -> Inferred {
    let OpKind::BlockLoad { check, padding, .. } = cx.kind else { return Err("is not block_load".into()) };
    let block = block_pointer(cx.operands[0])?;
    check_dimensions(check, block.shape.rank())?;
    expect(*padding != Padding::Nan || block.elem.is_float(), || format!("{} has no NaN", block.elem))?;
    one(Type::tile(block.elem(), block.shape))
}

/// A block pointer and a tile of the block's sizes; no result.
pub(super) fn block_store(cx: &InferContext<'_>) -> Inferred {
    let OpKind::BlockStore { check, .. } = cx.kind else { return Err("is not block_store".into()) };
    let [pointer, value] = cx.operands else { return Err("needs two operands".into()) };
    let block = block_pointer(*pointer)?;
    check_dimensions(check, block.shape.rank())?;
    let tile = Type::tile(block.elem(), block.shape);
    expect(*value == tile, || format!("the value is {value}, not {tile}"))?;
    Ok(Vec::new())
}

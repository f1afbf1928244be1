//! Type rules of the operations. A rule gives the result types; a tile result without layout leaves the layout free.

use rtc_abi::records::{Event, MAX_BLOCKS};

use super::InferContext;
use crate::{
    Elem, MAX_PACK, MAX_RANK, MAX_TILE_ELEMENTS, OpKind, Scalar, Shape, Type, assembly_registers, constraint_counts,
};

pub(super) type Inferred = Result<Vec<Type>, String>;

pub(super) fn one(ty: Type) -> Inferred {
    Ok(vec![ty])
}

pub(super) fn expect(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

pub(super) fn elem(ty: Type) -> Result<Elem, String> {
    ty.elem().filter(|_| !ty.is_place()).ok_or_else(|| format!("needs a scalar or a tile, not {ty}"))
}

fn tile(ty: Type) -> Result<Shape, String> {
    ty.shape().ok_or_else(|| format!("needs a tile, not {ty}"))
}

pub(super) fn checked_tile(elem: Elem, shape: Option<Shape>) -> Inferred {
    let shape = shape.ok_or_else(|| format!("the rank is above {MAX_RANK}"))?;
    expect(shape.iter().all(|d| d.is_power_of_two()), || format!("sizes of {shape} are not all powers of two"))?;
    expect(shape.numel() <= MAX_TILE_ELEMENTS, || format!("{shape} has more than {MAX_TILE_ELEMENTS} elements"))?;
    one(Type::tile(elem, shape))
}

/// All operands have one type, which is the result's.
pub(super) fn same_any(cx: &InferContext<'_>) -> Inferred {
    let first = cx.operands[0];
    elem(first)?;
    for other in &cx.operands[1..] {
        expect(*other == first, || format!("operands differ: {first} and {other}"))?;
    }
    one(first)
}

fn same_where(cx: &InferContext<'_>, what: &str, accept: impl Fn(Elem) -> bool) -> Inferred {
    let e = elem(cx.operands[0])?;
    expect(accept(e), || format!("needs {what}, not {e}"))?;
    same_any(cx)
}

/// Integers of one type give that type.
pub(super) fn same_int(cx: &InferContext<'_>) -> Inferred {
    same_where(cx, "integers", Elem::is_int)
}

pub(super) fn is_arithmetic_float(e: Elem) -> bool {
    e.num().is_some_and(|s| s.is_float() && !s.is_fp8())
}

/// Floats of one type, of 16 bits or more, give that type.
pub(super) fn same_float(cx: &InferContext<'_>) -> Inferred {
    same_where(cx, "floats of at least 16 bits", is_arithmetic_float)
}

/// Floats of one type give that type.
pub(super) fn same_float_any(cx: &InferContext<'_>) -> Inferred {
    same_where(cx, "floats", Elem::is_float)
}

/// `f32` or `f64` gives that type.
pub(super) fn same_wide_float(cx: &InferContext<'_>) -> Inferred {
    same_where(cx, "f32 or f64", |e| e == Elem::F32 || e == Elem::F64)
}

/// `f32` gives `f32`.
pub(super) fn same_f32(cx: &InferContext<'_>) -> Inferred {
    same_where(cx, "f32", |e| e == Elem::F32)
}

/// Integers or pointers of one type give `i1`.
pub(super) fn compare_int(cx: &InferContext<'_>) -> Inferred {
    one(same_where(cx, "integers or pointers", |e| e.is_int() || e.is_ptr())?[0].with_elem(Elem::I1))
}

/// Floats of one type, of 16 bits or more, give `i1`.
pub(super) fn compare_float(cx: &InferContext<'_>) -> Inferred {
    one(same_float(cx)?[0].with_elem(Elem::I1))
}

/// An `i1` and two operands of one type give that type.
pub(super) fn select(cx: &InferContext<'_>) -> Inferred {
    let [condition, lhs, rhs] = cx.operands else { return Err("needs three operands".into()) };
    expect(lhs == rhs, || format!("operands differ: {lhs} and {rhs}"))?;
    if let Type::Desc(_) = lhs {
        expect(*condition == Type::Scalar(Elem::I1), || format!("the condition is {condition}, not i1"))?;
        return one(*lhs);
    }
    elem(*lhs)?;
    expect(*condition == lhs.with_elem(Elem::I1), || {
        format!("the condition is {condition}, not {}", lhs.with_elem(Elem::I1))
    })?;
    one(*lhs)
}

fn cast_to(kind: &OpKind) -> Result<Elem, String> {
    match kind {
        OpKind::TruncI { to } | OpKind::ExtSI { to } | OpKind::ExtUI { to } | OpKind::CastF { to, .. } => Ok(*to),
        OpKind::FpToSI { to } | OpKind::FpToUI { to } | OpKind::SIToFp { to } | OpKind::UIToFp { to } => Ok(*to),
        OpKind::UnpackPair { to, .. } | OpKind::Bitcast { to } | OpKind::IntToPtr { to } => Ok(*to),
        other => Err(format!("{} is not a cast", other.spec().mnemonic)),
    }
}

fn cast(cx: &InferContext<'_>, accept: impl Fn(Elem, Elem) -> bool) -> Inferred {
    let (from, to) = (elem(cx.operands[0])?, cast_to(cx.kind)?);
    expect(accept(from, to), || format!("cannot cast {from} to {to}"))?;
    one(cx.operands[0].with_elem(to))
}

/// Integers give integers of the width that the cast is for.
pub(super) fn cast_int_int(cx: &InferContext<'_>) -> Inferred {
    let narrows = matches!(cx.kind, OpKind::TruncI { .. });
    cast(cx, |from, to| {
        from.is_int() && to.is_int() && if narrows { to.bits() < from.bits() } else { to.bits() > from.bits() }
    })
}

/// Floats give floats of another type.
pub(super) fn cast_float_float(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| from.is_float() && to.is_float() && from != to)
}

/// Numbers of one shape give numbers of that shape and the type `to`.
pub(super) fn extern_call(cx: &InferContext<'_>) -> Inferred {
    let OpKind::ExternCall { to, .. } = cx.kind else { return Err("is not a call".into()) };
    let Some((first, rest)) = cx.operands.split_first() else { return Err("needs an operand".into()) };
    elem(*first)?;
    let result = first.with_elem(*to);
    for other in rest {
        expect(other.with_elem(*to) == result, || format!("operands differ: {first} and {other}"))?;
    }
    one(result)
}

/// An `f64` gives an `f32`.
pub(super) fn narrow_rounded(cx: &InferContext<'_>) -> Inferred {
    let from = elem(cx.operands[0])?;
    expect(from == Elem::F64, || format!("needs f64, not {from}"))?;
    one(cx.operands[0].with_elem(Elem::F32))
}

/// Floats of 16 bits or more give integers other than `i1`.
pub(super) fn cast_float_int(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| is_arithmetic_float(from) && to.is_int() && to != Elem::I1)
}

/// Integers give floats of 16 bits or more.
pub(super) fn cast_int_float(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| from.is_int() && is_arithmetic_float(to))
}

/// Numbers give numbers and pointers give pointers of the same width.
pub(super) fn cast_bits(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| from.bits() == to.bits() && (from.is_ptr() == to.is_ptr()))
}

/// Two values of one type of 8 or 16 bits give an integer of twice as many.
pub(super) fn pair_bits(cx: &InferContext<'_>) -> Inferred {
    let [low, high] = cx.operands else { return Err("needs two operands".into()) };
    expect(low == high, || format!("operands differ: {low} and {high}"))?;
    let to = match elem(*low)?.num().map(Scalar::bits) {
        Some(8) => Elem::Num(Scalar::I16),
        Some(16) => Elem::I32,
        _ => return Err(format!("needs 8 or 16 bits, not {low}")),
    };
    one(low.with_elem(to))
}

/// An integer gives half of its bits.
pub(super) fn pair_half(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| from.is_int() && matches!(from.bits(), 16 | 32) && !to.is_ptr() && 2 * to.bits() == from.bits())
}

/// Pointers give `i64`.
pub(super) fn pointer_to_int(cx: &InferContext<'_>) -> Inferred {
    expect(elem(cx.operands[0])?.is_ptr(), || format!("needs pointers, not {}", cx.operands[0]))?;
    one(cx.operands[0].with_elem(Elem::I64))
}

/// `i64` gives pointers.
pub(super) fn int_to_pointer(cx: &InferContext<'_>) -> Inferred {
    cast(cx, |from, to| from == Elem::I64 && to.is_ptr())
}

/// Pointers and integers of one shape give the type of the pointers.
pub(super) fn add_pointer(cx: &InferContext<'_>) -> Inferred {
    let [pointer, offset] = cx.operands else { return Err("needs two operands".into()) };
    expect(elem(*pointer)?.is_ptr(), || format!("needs pointers, not {pointer}"))?;
    expect(elem(*offset)?.is_int(), || format!("needs an integer offset, not {offset}"))?;
    expect(offset.with_elem(Elem::I32) == pointer.with_elem(Elem::I32), || {
        format!("{pointer} and {offset} differ in shape")
    })?;
    one(*pointer)
}

/// The type is stated.
pub(super) fn given_one(cx: &InferContext<'_>) -> Inferred {
    expect(cx.given.len() == 1, || "needs one result type".into())?;
    one(cx.given[0])
}

/// The stated type is a number.
pub(super) fn special(cx: &InferContext<'_>) -> Inferred {
    let result = given_one(cx)?[0];
    expect(matches!(result, Type::Scalar(Elem::Num(_))), || format!("gives a number, not {result}"))?;
    one(result)
}

/// The operands are scalars or tiles; no result.
pub(super) fn print(cx: &InferContext<'_>) -> Inferred {
    cx.operands.iter().try_for_each(|ty| elem(*ty).map(drop))?;
    Ok(Vec::new())
}

/// The types are stated; the constraints name a register for each 32 or 64 bits of what one execution takes and gives.
pub(super) fn assembly(cx: &InferContext<'_>) -> Inferred {
    let OpKind::InlineAsm { constraints, pack, .. } = cx.kind else { return Err("is no assembly".into()) };
    expect((1..=MAX_PACK).contains(pack), || format!("packs {pack} elements, not 1 to {MAX_PACK}"))?;
    let registers = |types: &[Type]| -> Result<u32, String> {
        let each = |ty: &Type| elem(*ty).map(|e| e.bits().next_multiple_of(8));
        types.iter().map(|ty| each(ty).map(|bits| assembly_registers(bits, *pack))).sum()
    };
    let named = constraint_counts(&constraints.0);
    let needed = [registers(cx.given)? as usize, registers(cx.operands)? as usize];
    expect(named == needed, || {
        format!(
            "the constraints name {} outputs and {} inputs, not {} and {}",
            named[0], named[1], needed[0], needed[1]
        )
    })?;
    Ok(cx.given.to_vec())
}

/// An `i32` scalar.
pub(super) fn always_i32(_: &InferContext<'_>) -> Inferred {
    one(Elem::I32.into())
}

/// A token.
pub(super) fn token(_: &InferContext<'_>) -> Inferred {
    one(Type::Token)
}

/// No result.
pub(super) fn nothing(_: &InferContext<'_>) -> Inferred {
    Ok(Vec::new())
}

/// A 1-D tile of `i32` of as many elements as the range has.
pub(super) fn arange(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Arange { start, end } = cx.kind else { return Err("is not arange".into()) };
    let size = end.checked_sub(*start).and_then(|n| u32::try_from(n).ok()).ok_or("the range is empty or too long")?;
    checked_tile(Elem::I32, Shape::new(&[size]))
}

/// The stated tile has the element type of the scalar.
pub(super) fn splat(cx: &InferContext<'_>) -> Inferred {
    let result = given_one(cx)?[0];
    let Type::Scalar(e) = cx.operands[0] else { return Err(format!("needs a scalar, not {}", cx.operands[0])) };
    tile(result)?;
    expect(result.elem() == Some(e), || format!("the result {result} has other elements than {e}"))?;
    one(result.without_layout())
}

/// The tile with a size of 1 before the axis.
pub(super) fn expand_dims(cx: &InferContext<'_>) -> Inferred {
    let OpKind::ExpandDims { axis } = cx.kind else { return Err("is not expand_dims".into()) };
    let shape = tile(cx.operands[0])?;
    expect(*axis as usize <= shape.rank(), || format!("axis {axis} is outside of {shape}"))?;
    checked_tile(elem(cx.operands[0])?, shape.with(*axis as usize, 1))
}

/// The stated tile has the rank of the operand, and its sizes where they are not 1.
pub(super) fn broadcast(cx: &InferContext<'_>) -> Inferred {
    let result = given_one(cx)?[0];
    let (from, to) = (tile(cx.operands[0])?, tile(result)?);
    let fits = from.rank() == to.rank() && from.iter().zip(to.iter()).all(|(a, b)| a == b || *a == 1);
    expect(fits && result.elem() == cx.operands[0].elem(), || {
        format!("cannot broadcast {} to {result}", cx.operands[0])
    })?;
    one(result.without_layout())
}

/// The stated tile has as many elements of the same type.
pub(super) fn reshape(cx: &InferContext<'_>) -> Inferred {
    let result = given_one(cx)?[0];
    let same = tile(cx.operands[0])?.numel() == tile(result)?.numel() && result.elem() == cx.operands[0].elem();
    expect(same, || format!("cannot reshape {} to {result}", cx.operands[0]))?;
    one(result.without_layout())
}

/// The tile with its sizes in the new order.
pub(super) fn trans(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Trans { order } = cx.kind else { return Err("is not trans".into()) };
    let shape = tile(cx.operands[0])?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    expect(sorted.iter().copied().eq(0..shape.rank() as u32), || {
        format!("{order:?} is no order of the axes of {shape}")
    })?;
    let dims: Vec<u32> = order.iter().map(|i| shape[*i as usize]).collect();
    checked_tile(elem(cx.operands[0])?, Shape::new(&dims))
}

/// Two tiles of one type give that tile with another last size of 2.
pub(super) fn join(cx: &InferContext<'_>) -> Inferred {
    let ty = same_any(cx)?[0];
    let shape = tile(ty)?;
    checked_tile(elem(ty)?, shape.with(shape.rank(), 2))
}

/// A tile whose last size is 2 gives two without it.
pub(super) fn split(cx: &InferContext<'_>) -> Inferred {
    let shape = tile(cx.operands[0])?;
    expect(shape.rank() >= 2 && shape.last() == Some(&2), || {
        format!("the last size of {shape} is not 2, or it is the only one")
    })?;
    let half = Type::tile(elem(cx.operands[0])?, shape.without(shape.rank() - 1));
    Ok(vec![half, half])
}

/// Two 1-D tiles of one type give one of twice the size.
pub(super) fn cat(cx: &InferContext<'_>) -> Inferred {
    let ty = cx.operands[0].without_layout();
    expect(cx.operands[1].without_layout() == ty, || {
        format!("operands differ: {} and {}", cx.operands[0], cx.operands[1])
    })?;
    let shape = tile(ty)?;
    expect(shape.rank() == 1, || format!("needs 1-D tiles, not {shape}"))?;
    checked_tile(elem(ty)?, Shape::new(&[shape[0] * 2]))
}

/// A tile of one element gives a scalar.
pub(super) fn unsplat(cx: &InferContext<'_>) -> Inferred {
    expect(tile(cx.operands[0])?.numel() == 1, || format!("{} has more than one element", cx.operands[0]))?;
    one(elem(cx.operands[0])?.into())
}

/// The stated tile differs from the operand in layout only.
pub(super) fn convert_layout(cx: &InferContext<'_>) -> Inferred {
    let result = given_one(cx)?[0];
    tile(result)?;
    expect(result.without_layout() == cx.operands[0].without_layout(), || {
        format!("{} is not {result}", cx.operands[0])
    })?;
    one(result)
}

pub(super) fn pointee(ty: Type) -> Result<Type, String> {
    let s = elem(ty)?.pointee().ok_or_else(|| format!("needs pointers, not {ty}"))?;
    Ok(ty.with_elem(s.into()))
}

pub(super) fn check_mask(cx: &InferContext<'_>, pointer: Type) -> Result<(), String> {
    match cx.optional(0) {
        Some(mask) => expect(mask == pointer.with_elem(Elem::I1), || {
            format!("the mask is {mask}, not {}", pointer.with_elem(Elem::I1))
        }),
        None => Ok(()),
    }
}

/// Pointers give what they point to; mask and `other` have the same shape.
pub(super) fn load(cx: &InferContext<'_>) -> Inferred {
    let result = pointee(cx.operands[0])?;
    check_mask(cx, cx.operands[0])?;
    if let Some(other) = cx.optional(1) {
        expect(other == result, || format!("`other` is {other}, not {result}"))?;
        expect(cx.optional(0).is_some(), || "`other` needs a mask".into())?;
    }
    one(result)
}

/// The value is what the pointers point to; the mask has the same shape.
pub(super) fn store(cx: &InferContext<'_>) -> Inferred {
    let wanted = pointee(cx.operands[0])?;
    expect(cx.operands[1] == wanted, || format!("the value is {}, not {wanted}", cx.operands[1]))?;
    check_mask(cx, cx.operands[0])?;
    Ok(Vec::new())
}

/// `[.., M, K]` and `[.., K, N]` of rank 2 or 3 give the type of the accumulator `[.., M, N]`.
pub(super) fn dot(cx: &InferContext<'_>) -> Inferred {
    let [lhs, rhs, acc, ..] = cx.operands else { return Err("needs three operands".into()) };
    let (a, b, c) = (tile(*lhs)?, tile(*rhs)?, tile(*acc)?);
    let rank = a.rank();
    let fits = (2..=3).contains(&rank)
        && b.rank() == rank
        && a[rank - 1] == b[rank - 2]
        && a[..rank - 2] == b[..rank - 2]
        && c[..] == [&a[..rank - 1], &b[rank - 1..]].concat()[..];
    expect(fits, || format!("shapes {a}, {b}, {c} do not fit"))?;
    let scalars = [elem(*lhs)?.num(), elem(*rhs)?.num(), elem(*acc)?.num()];
    let known = matches!(scalars, [Some(l), Some(r), Some(c)] if crate::layout_rules::dot_elements(l, r, c));
    expect(known, || format!("no dot of {lhs} and {rhs} into {acc}"))?;
    one(*acc)
}

/// The nested block takes twice the elements and gives them once.
fn check_combine(cx: &InferContext<'_>) -> Result<(), String> {
    let tiles = cx.variadic();
    expect(!tiles.is_empty(), || "needs operands".into())?;
    let shape = tile(tiles[0])?;
    for ty in tiles {
        expect(tile(*ty)? == shape && ty.layout() == tiles[0].layout(), || {
            format!("operands differ: {} and {ty}", tiles[0])
        })?;
    }
    let Some(block) = cx.blocks.first() else { return Ok(()) };
    let wanted: Vec<Type> = tiles.iter().chain(tiles).filter_map(|t| t.elem()).map(Type::Scalar).collect();
    let found: Vec<Type> = cx.kernel.block(*block).args.iter().map(|v| cx.kernel.value_type(*v)).collect();
    expect(found == wanted, || "the arguments of the combine block do not fit the operands".into())
}

/// Tiles of one shape lose the axis; the block takes twice as many scalars and gives one set.
pub(super) fn reduce(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Reduce { axis } = cx.kind else { return Err("is not reduce".into()) };
    check_combine(cx)?;
    let shape = tile(cx.variadic()[0])?;
    expect((*axis as usize) < shape.rank(), || format!("axis {axis} is outside of {shape}"))?;
    let rest = shape.without(*axis as usize);
    cx.variadic()
        .iter()
        .map(|t| Ok(if rest.rank() == 0 { Type::Scalar(elem(*t)?) } else { Type::tile(elem(*t)?, rest) }))
        .collect()
}

/// Tiles of one shape keep it; the block takes twice as many scalars and gives one set.
pub(super) fn scan(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Scan { axis, .. } = cx.kind else { return Err("is not scan".into()) };
    check_combine(cx)?;
    let shape = tile(cx.variadic()[0])?;
    expect((*axis as usize) < shape.rank(), || format!("axis {axis} is outside of {shape}"))?;
    Ok(cx.variadic().to_vec())
}

/// Tiles of the shape of the operands, one for each value of the block.
pub(super) fn map_elements(cx: &InferContext<'_>) -> Inferred {
    let Some(first) = cx.variadic().first().copied() else { return Err("needs operands".into()) };
    let shape = tile(first)?;
    for ty in cx.variadic().iter().chain(cx.given) {
        expect(tile(*ty)? == shape, || format!("{first} and {ty} differ in shape"))?;
    }
    for ty in cx.variadic() {
        expect(ty.layout() == first.layout(), || format!("operands differ: {first} and {ty}"))?;
    }
    if let Some(found) = block_args(cx, 0) {
        let wanted: Vec<Type> = cx.variadic().iter().filter_map(|t| t.elem()).map(Type::Scalar).collect();
        expect(found == wanted, || "the arguments of the block do not fit the operands".into())?;
    }
    cx.given.iter().map(|ty| Ok(first.with_elem(elem(*ty)?))).collect()
}

/// The shape of the index, the elements of the source; sizes differ along the axis only.
pub(super) fn gather(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Gather { axis } = cx.kind else { return Err("is not gather".into()) };
    let (source, index) = (tile(cx.operands[0])?, tile(cx.operands[1])?);
    expect(elem(cx.operands[1])?.is_int(), || format!("needs integer indices, not {}", cx.operands[1]))?;
    let axis = *axis as usize;
    let fits = source.rank() == index.rank()
        && axis < source.rank()
        && (0..source.rank()).all(|i| i == axis || source[i] == index[i]);
    expect(fits, || format!("indices {index} do not fit {source} along axis {axis}"))?;
    one(cx.operands[1].with_elem(elem(cx.operands[0])?))
}

/// A 1-D tile of integers gives a tile of `i32` with one element per bin.
pub(super) fn histogram(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Histogram { bins } = cx.kind else { return Err("is not histogram".into()) };
    check_mask(cx, cx.operands[0])?;
    expect(tile(cx.operands[0])?.rank() == 1 && elem(cx.operands[0])?.is_int(), || {
        format!("needs a 1-D integer tile, not {}", cx.operands[0])
    })?;
    checked_tile(Elem::I32, Shape::new(&[*bins]))
}

/// A tile gives the same type.
pub(super) fn sort(cx: &InferContext<'_>) -> Inferred {
    tile(cx.operands[0])?;
    one(cx.operands[0])
}

fn block_args(cx: &InferContext<'_>, index: usize) -> Option<Vec<Type>> {
    let block = cx.blocks.get(index)?;
    Some(cx.kernel.block(*block).args.iter().map(|v| cx.kernel.value_type(*v)).collect())
}

/// Bounds and step are integers of one type; the results have the types of the carried values.
pub(super) fn for_range(cx: &InferContext<'_>) -> Inferred {
    let index = cx.operands[0];
    expect(matches!(index, Type::Scalar(e) if e.is_int()), || format!("needs integer bounds, not {index}"))?;
    expect(cx.operands[1..3].iter().all(|t| *t == index), || "bounds and step differ in type".into())?;
    let carried = cx.variadic().to_vec();
    if let Some(args) = block_args(cx, 0) {
        expect(args.first() == Some(&index) && args[1..] == carried[..], || {
            "block arguments do not fit the carried values".into()
        })?;
    }
    Ok(carried)
}

/// The results have the types that the second block takes.
pub(super) fn while_loop(cx: &InferContext<'_>) -> Inferred {
    let carried = cx.variadic().to_vec();
    if let Some(args) = block_args(cx, 0) {
        expect(args == carried, || "arguments of the first block do not fit the carried values".into())?;
    }
    Ok(block_args(cx, 1).unwrap_or(carried))
}

/// The condition is an `i1` scalar; the result types are stated.
pub(super) fn if_else(cx: &InferContext<'_>) -> Inferred {
    expect(cx.operands[0] == Type::Scalar(Elem::I1), || format!("the condition is {}, not i1", cx.operands[0]))?;
    Ok(cx.given.to_vec())
}

/// The first operand is an `i1` scalar; no result.
pub(super) fn condition(cx: &InferContext<'_>) -> Inferred {
    expect(cx.operands[0] == Type::Scalar(Elem::I1), || format!("the condition is {}, not i1", cx.operands[0]))?;
    Ok(Vec::new())
}

/// The operand is an `i1` scalar; no result.
pub(super) fn assume(cx: &InferContext<'_>) -> Inferred {
    condition(cx)
}

/// The operand is a `ptr<i64>`; the text is an event; there is at least one block; no result.
pub(super) fn record(cx: &InferContext<'_>) -> Inferred {
    let OpKind::Record { event, blocks } = cx.kind else { return Err("is no record".into()) };
    let buffer = cx.operands[0];
    expect(buffer == Type::Scalar(Elem::Ptr(Scalar::I64)), || format!("the buffer is {buffer}, not ptr<i64>"))?;
    event.0.parse::<Event>().map_err(|error| error.to_string())?;
    expect((1..=MAX_BLOCKS).contains(blocks), || format!("records {blocks} blocks, not 1 to {MAX_BLOCKS}"))?;
    Ok(Vec::new())
}

/// The operand is `i1`; the mask has the same shape; no result.
pub(super) fn assertion(cx: &InferContext<'_>) -> Inferred {
    expect(cx.operands[0].elem() == Some(Elem::I1), || format!("the condition is {}, not i1", cx.operands[0]))?;
    check_mask(cx, cx.operands[0])?;
    Ok(Vec::new())
}

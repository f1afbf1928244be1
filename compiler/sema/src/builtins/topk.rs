//! The largest elements of rows. Pieces with the requested number of elements are sorted two at a time in opposite
//! directions; the larger one at each position is among the largest of both, and these rise and then fall. So each step
//! keeps half of the elements, which only have to be merged.

use rtc_ir::{OpKind, Type};
use rtc_source::Code;

use super::{Args, reduce::sorted};
use crate::cx::Cx;
use crate::emitter::R;
use crate::spec::DType;
use crate::types::ElemTy;
use crate::values::{Tensor, Val};

/// The largest elements in descending order. Small integers and halves come back widened, as reductions widen them, if
/// anything is left out.
pub(super) fn topk<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = sorted(cx, args)?;
    let k = args.int(cx, "k")?;
    let descending = args.bool(cx, "descending")?;
    let n = *t.shape.last().unwrap_or(&1);
    if k < 1 || k > i128::from(n) {
        let message = format!("`topk` cannot take {k} of {n} elements");
        return cx.error(Code::OUT_OF_RANGE, args.arg("k").span, message, "");
    }
    let k = 1u32 << k.ilog2();
    if k == n {
        // Nothing is reduced, so that the type stays.
        let kind = OpKind::Sort { descending, signed: t.elem.is_signed(), bitonic: false };
        return Ok(Val::Tensor(cx.each(kind, &[t.value], t)?));
    }
    let pairs = (n / k).trailing_zeros();
    let k = i128::from(k);
    let shape = {
        let mut dims: Vec<i128> = t.shape.iter().map(|d| i128::from(*d)).collect();
        dims.pop();
        dims.push(k);
        cx.shape(&dims, args.span)?
    };
    let order = Order::of(t.elem);
    let mut keys = order.keys(cx, t)?;
    if !descending {
        // With all bits flipped, the least is the largest.
        keys = flip_all(cx, keys)?;
    }
    let mut pieces = i128::from(t.shape.numel()) / k;
    let flat = cx.shape(&[pieces, k], args.span)?;
    let mut keys = cx.reshape(keys, flat, false)?;
    let signed = keys.elem.is_signed();
    let kind = |bitonic| OpKind::Sort { descending: true, signed, bitonic };
    for step in 0..pairs {
        if k > 1 {
            let turned = every_second(cx, keys, args)?;
            keys = cx.each(OpKind::XorI {}, &[keys.value, turned.value], keys)?;
            keys = cx.each(kind(step > 0), &[keys.value], keys)?;
            keys = cx.each(OpKind::XorI {}, &[keys.value, turned.value], keys)?;
        }
        pieces /= 2;
        let two = cx.shape(&[pieces, 2, k], args.span)?;
        keys = cx.reshape(keys, two, false)?;
        keys = larger_of_two(cx, keys)?;
    }
    if k > 1 {
        keys = cx.each(kind(true), &[keys.value], keys)?;
    }
    let mut first = cx.reshape(keys, shape, false)?;
    if !descending {
        first = flip_all(cx, first)?;
    }
    Ok(Val::Tensor(order.values(cx, first, t.elem)?))
}

fn flip_all<'a>(cx: &mut Cx<'a>, keys: Tensor) -> R<Tensor> {
    let ones = cx.int_literal(-1, keys.elem, keys.shape)?;
    cx.each(OpKind::XorI {}, &[keys.value, ones.value], keys)
}

/// All bits set in the odd rows, none in the others: such integers sort in the other direction.
fn every_second<'a>(cx: &mut Cx<'a>, like: Tensor, args: &Args<'a>) -> R<Tensor> {
    let (rows, elem) = (like.shape[0], like.elem);
    let line = cx.shape(&[i128::from(rows)], args.span)?;
    let row = Tensor {
        value: cx.emit(OpKind::Arange { start: 0, end: i64::from(rows) }, &[])?,
        elem: ElemTy::I32,
        shape: line,
    };
    let one = cx.int_literal(1, ElemTy::I32, line)?;
    let zero = cx.int_literal(0, ElemTy::I32, line)?;
    let odd = cx.each(OpKind::AndI {}, &[row.value, one.value], row)?;
    let mask = cx.each(OpKind::SubI {}, &[zero.value, odd.value], row)?;
    let mask = cx.cast(mask, elem)?;
    let column = cx.insert_axis(mask, 1, args.span)?;
    cx.broadcast_to(column, like.shape)
}

/// The larger of the two elements along the middle dimension.
fn larger_of_two<'a>(cx: &mut Cx<'a>, t: Tensor) -> R<Tensor> {
    let elem = cx.ir_elem(t.elem)?;
    let block = cx.kernel.new_block();
    let [a, b] = [(); 2].map(|()| cx.kernel.add_arg(block, Type::Scalar(elem), None));
    let outer = std::mem::replace(&mut cx.block, block);
    let larger = cx.emit(if t.elem.is_signed() { OpKind::MaxSI {} } else { OpKind::MaxUI {} }, &[a, b]);
    let done = larger.and_then(|value| cx.build(OpKind::Yields {}, &[], &[], &[value], &[], &[]));
    cx.block = outer;
    done?;
    let op = cx.build(OpKind::Reduce { axis: 1 }, &[], &[], &[t.value], &[block], &[])?;
    Ok(Tensor { value: cx.kernel.result(op, 0), shape: t.shape.without(1), ..t })
}

/// How elements are compared: as integers of the same order.
#[derive(Clone, Copy)]
enum Order {
    /// As they are, after a cast to the type of the result.
    Integers(ElemTy),
    /// Floats of so many bits by those: all but the sign of negative ones are flipped.
    Floats(u32),
}

impl Order {
    fn of(elem: ElemTy) -> Order {
        match elem {
            elem if elem.is_float() => Order::Floats(elem.bits()),
            elem if elem.is_int() && elem.bits() < 32 => Order::Integers(ElemTy::I32),
            elem => Order::Integers(elem),
        }
    }

    fn keys<'a>(self, cx: &mut Cx<'a>, t: Tensor) -> R<Tensor> {
        match self {
            Order::Integers(elem) => cx.cast(t, elem),
            Order::Floats(bits) => {
                let elem = integer(bits);
                let to = cx.ir_elem(elem)?;
                let value = cx.emit(OpKind::Bitcast { to }, &[t.value])?;
                let wide = cx.cast(Tensor { value, elem, ..t }, integer(bits.max(32)))?;
                flip_negative(cx, wide, bits)
            }
        }
    }

    /// The elements of the keys; halves widened.
    fn values<'a>(self, cx: &mut Cx<'a>, keys: Tensor, elem: ElemTy) -> R<Tensor> {
        let Order::Floats(bits) = self else { return Ok(keys) };
        let flipped = flip_negative(cx, keys, bits)?;
        let narrow = cx.cast(flipped, integer(bits))?;
        let to = cx.ir_elem(elem)?;
        let value = cx.emit(OpKind::Bitcast { to }, &[narrow.value])?;
        let t = Tensor { value, elem, ..keys };
        if bits < 32 { cx.cast(t, ElemTy::F32) } else { Ok(t) }
    }
}

/// Flips all bits but the sign of negative numbers of `bits` bits, which are held sign-extended.
fn flip_negative<'a>(cx: &mut Cx<'a>, t: Tensor, bits: u32) -> R<Tensor> {
    let sign = cx.int_literal(i64::from(t.elem.bits() - 1), t.elem, t.shape)?;
    let rest = cx.int_literal((1i64 << (bits - 1)).wrapping_sub(1), t.elem, t.shape)?;
    let negative = cx.each(OpKind::ShrSI {}, &[t.value, sign.value], t)?;
    let flips = cx.each(OpKind::AndI {}, &[negative.value, rest.value], t)?;
    cx.each(OpKind::XorI {}, &[t.value, flips.value], t)
}

/// The signed integer of so many bits.
fn integer(bits: u32) -> ElemTy {
    ElemTy::Num(match bits {
        8 => DType::Int8,
        16 => DType::Int16,
        32 => DType::Int32,
        _ => DType::Int64,
    })
}

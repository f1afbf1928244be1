//! Tiles of 16-bit elements as words of two neighbours that one thread has, for a register holds no less.

use rtc_ir::{Builder, Elem, Kernel, Op, OpKind, Shape, Type, Value};
use rtc_layout::Layout;

use crate::PassError;
use crate::pass::missing;

/// The axis along which a thread has neighbours of a tile: columns, which is how they are stored, or else rows.
pub(crate) fn pair_axis(layout: &Layout) -> Option<usize> {
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
pub(crate) fn packed(kernel: &mut Kernel, before: Op, tile: Value, axis: usize) -> Result<Value, PassError> {
    let none = || missing("a pair");
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
pub(crate) fn unpacked(
    kernel: &mut Kernel,
    before: Op,
    words: Value,
    elem: Elem,
    axis: usize,
) -> Result<Value, PassError> {
    let none = || missing("a pair");
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

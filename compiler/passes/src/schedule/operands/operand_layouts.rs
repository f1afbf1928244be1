//! The layout of a staged operand in shared memory, chosen for its readers.

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, OpKind, Value};
use rtc_layout::{Layout, MatrixDescriptor, SharedLayout, swizzle_for};

use super::buffer_dots;
use super::mma_operands::in_registers;
use crate::matrix_unit;

/// Alignment of a buffer that `wgmma` does not read: ldmatrix and copies take 16 bytes.
const ALIGN: u32 = 128;

/// The alignment of a buffer that TMA fills, with the widest swizzle.
const BOX_ALIGN: u32 = 1024;

/// The axis along which a copy of `width` elements runs, then the others, the last one first.
pub(crate) fn order(layout: &Layout, width: u32) -> Option<Vec<u32>> {
    let axes = || (0..layout.rank()).rev();
    let first = axes().find(|axis| layout.contiguity(*axis) >= width.max(2)).or(axes().next())?;
    let others = axes().filter(|axis| *axis != first);
    (layout.contiguity(first) >= width).then(|| [first].into_iter().chain(others).map(|axis| axis as u32).collect())
}

/// The best layout of a value for its readers, and the alignment that it needs; `inner` is the dimension along which it
/// is copied if the layout does not determine it.
pub(crate) fn buffer_layout(
    kernel: &Kernel,
    value: Value,
    width: u32,
    inner: Option<usize>,
    direct: &HashSet<Op>,
) -> Option<(SharedLayout, u32)> {
    let own = kernel.layout_of(value)?;
    let bits = kernel.value_type(value).elem()?.bits();
    let order = match inner {
        Some(inner) => vec![inner as u32, 1 - inner as u32],
        None => order(own, width)?,
    };
    let mut readers = Readers::default();
    if own.rank() <= 2 {
        readers.find(kernel, value, false, direct);
    }
    if let Some(k_axis) = readers.dot {
        let swizzle = SharedLayout::nvmma_swizzle(own.shape()[order[0] as usize], bits);
        let layout = SharedLayout::nvmma(own.shape(), bits, swizzle, &order);
        if let Some(form) = MatrixDescriptor::of(&layout, bits, k_axis) {
            return Some((layout, form.align()));
        }
    }
    if inner.is_some() && readers.dot.is_none() {
        // As copies of boxes put it.
        let swizzle = SharedLayout::nvmma_swizzle(own.shape()[order[0] as usize], bits);
        return Some((SharedLayout::nvmma(own.shape(), bits, swizzle, &order), BOX_ALIGN));
    }
    let reader = readers.layouts.first().unwrap_or(own);
    let matrices = !readers.by_vectors;
    Some((swizzle_for(reader, kernel.value_type(value).elem()?.bytes() * 8, &order, width, matrices), ALIGN))
}

/// Who reads a value.
#[derive(Default)]
struct Readers {
    /// The axis that a `wgmma` dot sums over.
    dot: Option<usize>,
    /// Whether such a dot takes it from registers.
    in_registers: bool,
    /// The layouts that readers prefer.
    layouts: Vec<Layout>,
    /// Whether the first of them belongs to a dot that loads vectors.
    by_vectors: bool,
}

impl Readers {
    fn find(&mut self, kernel: &Kernel, value: Value, transposed: bool, direct: &HashSet<Op>) {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::ConvertLayout {} => {
                    let result = kernel.result(user, 0);
                    if feeds(kernel, result, direct) {
                        self.find(kernel, result, transposed, direct);
                    }
                    if self.dot.is_none()
                        && !self.by_vectors
                        && let Some(layout) = kernel.layout_of(result)
                    {
                        self.layouts.push(if transposed { layout.transpose(&[1, 0]) } else { layout.clone() });
                    }
                }
                OpKind::Trans { order } => {
                    self.find(kernel, kernel.result(user, 0), transposed ^ (order[..] == [1, 0]), direct)
                }
                OpKind::Dot { .. } if direct.contains(&user) => {
                    let index = u32::from(kernel.operand(user, 0) != value);
                    if let Some(way) = buffer_dots::reader(kernel, user, index) {
                        self.layouts.insert(0, if transposed { way.transpose(&[1, 0]) } else { way });
                        self.by_vectors = true;
                    }
                }
                kind if matrix_unit::is_async_dot(kind) => {
                    let axis = if kernel.operand(user, 1) == value { 0 } else { 1 };
                    let in_memory = axis == 0 || !in_registers(kernel, user);
                    self.in_registers |= !in_memory;
                    if in_memory {
                        self.dot = Some(if transposed { 1 - axis } else { axis });
                    }
                }
                kind if kind.is_unary() => self.find(kernel, kernel.result(user, 0), transposed, direct),
                _ => {}
            }
        }
    }
}

/// Whether a value, perhaps transposed or cast, is an operand of a dot that restricts its layout.
fn feeds(kernel: &Kernel, value: Value, direct: &HashSet<Op>) -> bool {
    kernel.users(value).into_iter().any(|user| match kernel.kind(user) {
        kind if matrix_unit::is_async_dot(kind) => true,
        OpKind::Trans { .. } => feeds(kernel, kernel.result(user, 0), direct),
        kind if kind.is_unary() => feeds(kernel, kernel.result(user, 0), direct),
        _ => direct.contains(&user),
    })
}

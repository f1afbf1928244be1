//! Tensor maps as parameters, and the TMA copies that replace stores.
//!
//! ```text
//! store %p, %x, mask = ..   →   copy_desc_wait, barrier      the copies before have read the buffer
//!                               local_store %x, %b
//!                               barrier
//!                               copy_desc_store %map, %b, (row, column)
//! ```
//!
//! A large tile goes through the buffer in pieces of columns, or of rows if no thread has columns of both halves, two
//! at a time if there is enough space. Atomic reductions whose results are unused become such copies, too
//! (`tma_reductions.rs`).

use rtc_abi::Expr;
use rtc_abi::metadata::Padding;
use rtc_ir::analysis::Poly;
use rtc_ir::{
    Builder, DescType, Elem, Hidden, Kernel, Literal, MapSource, Op, OpKind, RmwOp, Shape, SharedType, TFLOAT32, Type,
    Value,
};
use rtc_layout::{Layout, SharedLayout};

use super::argument_maps;
use super::buffer_boxes::{Boxes, SWIZZLED_ROWS, boxes};
use super::coordinates::{BoxCoordinates, Names};
use super::kernel_tensor_maps;
use super::tma_reductions;
use crate::PassError;
use crate::access::box_access::{BoxAccess, size_in_map};
use crate::access::host_values::expression;
use crate::access::negative_indices::host_lead;
use crate::pass::missing;

/// How a store becomes copies.
#[derive(Clone)]
pub(crate) struct StoreMap {
    pub map: Value,
    /// How the copies combine elements with those of the tensor.
    reduction: Option<RmwOp>,
    /// The shape of a piece.
    boxes: Boxes,
    /// How many pieces the tile goes through shared memory in, and the axis along which they follow each other.
    pub pieces: u32,
    pub axis: usize,
    /// That of a piece, with a slot for each of two.
    buffer: SharedType,
    /// Which store.
    pub number: usize,
}

/// The maps of those stores that can be copies through about `most` bytes of shared memory.
pub(crate) fn store_maps(
    kernel: &mut Kernel,
    stores: &[(Op, BoxAccess)],
    most: u32,
) -> Result<Vec<StoreMap>, PassError> {
    let mut maps = Vec::new();
    for (number, (store, access)) in stores.iter().enumerate() {
        let Some((buffer, pieces, axis)) = pieces(kernel, *store, most) else { continue };
        let layout = kernel.slot_layout(buffer).into_owned();
        let Some(boxes) = buffer.elem.num().and_then(|elem| boxes(&layout, elem)) else { continue };
        let reduction = tma_reductions::operation(kernel, *store);
        let data_type = reduction.and_then(|by| by.data_type(boxes.ty.elem));
        let form = MapForm { padding: Padding::Zero, data_type, rows: MapRows::All };
        let map = map_of(kernel, access, &boxes, form)?;
        maps.push(StoreMap { map, reduction, boxes, pieces, axis, buffer, number });
    }
    Ok(maps)
}

/// The buffers that results go through; those of the same type, one after the other, through the same.
pub(crate) fn buffers(stores: &[StoreMap], builder: &mut Builder<'_>) -> Result<Vec<Value>, PassError> {
    let mut made: Vec<(SharedType, Value)> = Vec::new();
    let mut buffers = Vec::new();
    for store in stores {
        let known = made.iter().find(|(ty, _)| *ty == store.buffer).map(|(_, buffer)| *buffer);
        let buffer = match known {
            Some(buffer) => buffer,
            None => builder.buffer(store.buffer, store.boxes.ty.align())?,
        };
        made.push((store.buffer, buffer));
        buffers.push(buffer);
    }
    Ok(buffers)
}

/// Copies from the buffers `outs` in place of `accesses`, with the maps `stores`.
pub(crate) fn copy_out(
    kernel: &mut Kernel,
    accesses: &[(Op, BoxAccess)],
    stores: &[StoreMap],
    outs: &[Value],
    names: &Names<'_>,
) -> Result<(), PassError> {
    for (store, out) in stores.iter().zip(outs) {
        let (op, access) = &accesses[store.number];
        let tile = stored_tile(kernel, *op);
        let shape = kernel.value_type(tile).shape().ok_or_else(|| missing("a tile"))?;
        let at = names.place(kernel, *op, access, &shape)?;
        let alone = stores.len() == 1;
        for (number, piece) in store.parts(kernel, *op, tile)?.into_iter().enumerate() {
            store.copy_out(kernel, *op, *out, piece, number as u32, &at, alone)?;
        }
        kernel.erase(*op);
    }
    Ok(())
}

/// The value of a store or an atomic operation, before it was converted to another layout.
pub(crate) fn stored_tile(kernel: &Kernel, store: Op) -> Value {
    let value = kernel.operand(store, 1);
    match kernel.def_op(value) {
        Some(op) if matches!(kernel.kind(op), OpKind::ConvertLayout {}) => kernel.operand(op, 0),
        _ => value,
    }
}

impl StoreMap {
    /// The same with another map.
    pub fn with(&self, map: Value) -> StoreMap {
        StoreMap { map, ..self.clone() }
    }

    /// Brings a piece of the tile at `at` into the buffer, and copies it out of there. The copies of the piece before may be
    /// on their way until the next one is written, if there are no other stores: `alone`.
    #[allow(clippy::too_many_arguments)]
    pub fn copy_out(
        &self,
        kernel: &mut Kernel,
        before: Op,
        out: Value,
        piece: Value,
        number: u32,
        at: &BoxCoordinates,
        alone: bool,
    ) -> Result<(), PassError> {
        let pending = if alone { self.buffer.slots - 1 } else { 0 };
        let mut builder = Builder::before(kernel, before);
        let slot = (number % self.buffer.slots).into();
        let slot = builder.constant_of(Literal::Int(slot), Type::Scalar(Elem::I32))?;
        let place = builder.slot(out, slot)?;
        builder.build(OpKind::CopyDescWait { pending, read: true }, &[], &[], &[], &[], &[])?;
        builder.barrier()?;
        builder.local_store(piece, place)?;
        builder.barrier()?;
        let mut start = [0; 2];
        start[self.axis] = number * self.buffer.shape[self.axis];
        let at = at.moved(kernel, before, start)?;
        let copy = match self.reduction {
            Some(op) => OpKind::CopyDescReduce { op },
            None => OpKind::CopyDescStore {},
        };
        Builder::before(kernel, before).build(copy, &[self.map, place], &[], &at, &[], &[])?;
        Ok(())
    }
}

/// What a map says beside the tensor and the boxes, as [`MapSource`] has it.
pub(super) struct MapForm {
    pub padding: Padding,
    pub data_type: Option<u32>,
    pub rows: MapRows,
}

/// The rows of a tensor map and its boxes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MapRows {
    /// Those of the tensor, and boxes as high as the tile.
    All,
    /// Boxes no higher than the tensor.
    Short,
    /// The rows that the last tile has, and boxes of as many.
    Last,
}

/// The tensor map of an access: the descriptor that is an argument, one that the kernel makes, or a hidden parameter.
pub(super) fn map_of(
    kernel: &mut Kernel,
    access: &BoxAccess,
    boxes: &Boxes,
    MapForm { padding, data_type, rows }: MapForm,
) -> Result<Value, PassError> {
    let none = || missing("an expression");
    let shape: Vec<u32> = access.outer.iter().map(|_| 1).chain(boxes.ty.shape.iter().copied()).collect();
    let ty = DescType { shape: Shape::new(&shape).ok_or_else(none)?, ..boxes.ty };
    if let Some(descriptor) = &access.descriptor {
        return argument_maps::map(kernel, descriptor, ty);
    }
    if access.is_made {
        return kernel_tensor_maps::make(kernel, access, boxes.ty, data_type == Some(TFLOAT32));
    }
    let base = kernel.params.iter().find(|param| param.value == access.base).ok_or_else(none)?.name.clone();
    let [outer, inner] = [1 - access.inner, access.inner].map(|axis| &access.axes[axis]);
    let batches = access.outer.iter().map(|outer| outer_stride(kernel, &outer.stride, boxes.ty));
    let steps = [expression(kernel, &outer.stride), Some(1.into())];
    let strides: Vec<Expr> = batches.chain(steps).collect::<Option<_>>().ok_or_else(none)?;
    let sizes = access.outer.iter().map(|outer| size_in_map(kernel, outer));
    let mut start = start(kernel, access).ok_or_else(none)?;
    let mut size = size_in_map(kernel, outer).ok_or_else(none)?;
    if rows == MapRows::Last {
        let (of_tile, stride) = (boxes.ty.shape[0], &strides[strides.len() - 2]);
        let before = format!("(max({size}, 1) - 1) // {of_tile} * {of_tile}");
        start = format!("{start} + ({stride}) * ({before})").parse().map_err(|_| none())?;
        size = format!("(max({size}, 1) - 1) % {of_tile} + 1").parse().map_err(|_| none())?;
    }
    let source = MapSource {
        start,
        shape: sizes.chain([Some(size), size_in_map(kernel, inner)]).collect::<Option<_>>().ok_or_else(none)?,
        strides,
        data_type,
        padding,
        shrinks: rows != MapRows::All,
        base: base.clone(),
    };
    let ty = Type::Desc(ty);
    let hidden = Hidden::TensorMap(Box::new(source));
    let same = |value: Value| kernel.value_type(value) == ty;
    if let Some(known) = kernel.params.iter().find(|p| p.hidden.as_ref() == Some(&hidden) && same(p.value)) {
        return Ok(known.value);
    }
    let taken = |name: &String| kernel.params.iter().any(|param| param.name == *name);
    let name = (0..).map(|n| format!("{base}.map{n}")).find(|name| !taken(name)).ok_or_else(none)?;
    Ok(kernel.add_hidden(name, ty, hidden))
}

/// The first element of the tensor, or that of the map if this begins before it.
fn start(kernel: &Kernel, access: &BoxAccess) -> Option<Expr> {
    let mut text = expression(kernel, &access.start)?.to_string();
    for axis in access.dimensions().filter(|axis| !axis.from_zero) {
        let (lead, stride) = (host_lead(kernel, &axis.stride)?, expression(kernel, &axis.stride)?);
        text = format!("{text} - ({lead}) * ({stride})");
    }
    text.parse().ok()
}

/// The stride of a dimension in which a box has a single index: 16 bytes instead of 0, which broadcast tensors have,
/// such as keys for all heads. The coordinate is 0 then.
fn outer_stride(kernel: &Kernel, stride: &Poly, ty: DescType) -> Option<Expr> {
    let text = expression(kernel, stride)?.to_string();
    if stride.value().is_some() {
        return text.parse().ok();
    }
    let (sign, least) = (format!("max(0 - 1, min({text}, 1))"), 16 / ty.elem.bytes());
    format!("{text} + {least} * (1 - {sign} * {sign})").parse().ok()
}

/// The buffer through which a tile goes to be copied out, in how many pieces along which axis, so that about `most` bytes are
/// enough.
fn pieces(kernel: &mut Kernel, store: Op, most: u32) -> Option<(SharedType, u32, usize)> {
    let tile = stored_tile(kernel, store);
    let layout = kernel.layout_of(tile)?.clone();
    let elem = kernel.value_type(tile).elem()?;
    let &[rows, columns] = layout.shape() else { return None };
    let bytes = elem.bytes();
    let size = rows * columns * bytes;
    let divided = |axis: usize| {
        let mut pieces = 1;
        let mut left = layout.clone();
        let long = |pieces: u32| if axis == 1 { columns / pieces * bytes > 128 } else { rows / pieces > SWIZZLED_ROWS };
        while size / pieces * pieces.min(2) > most && long(pieces) {
            let Some(half) = halved(&left, axis) else { break };
            left = half[2].clone();
            pieces *= 2;
        }
        (pieces, axis)
    };
    // Columns, unless there is too much in those that a thread has.
    let (pieces, axis) = match [divided(1), divided(0)] {
        [columns, rows] if size / columns.0 > most && rows.0 > columns.0 => rows,
        [columns, _] => columns,
    };
    let shape = if axis == 1 { [rows, columns / pieces] } else { [rows / pieces, columns] };
    let swizzle = if shape[0] < SWIZZLED_ROWS { 0 } else { SharedLayout::nvmma_swizzle(shape[1], elem.bits()) };
    let shared = SharedLayout::nvmma(&shape, elem.bits(), swizzle, &[1, 0]);
    let slots = if pieces > 1 && 2 * size / pieces <= most { 2 } else { 1 };
    Some((kernel.shared_type(elem, &shared, slots)?, pieces, axis))
}

/// The layouts of a tile `[2, M / 2, N]` or `[M, 2, N / 2]`, with the 2 at the end, and of the halves, on the way to the halves
/// of one of `[M, N]` along an axis; `None` unless each thread has its part of both halves.
fn halved(layout: &Layout, axis: usize) -> Option<[Layout; 3]> {
    let &[rows, columns] = layout.shape() else { return None };
    let apart = match axis {
        0 => layout.reshape(&[2, rows / 2, columns]),
        _ => layout.reshape(&[rows, 2, columns / 2]),
    };
    let last = apart.transpose(&to_the_end(axis));
    let half = last.split()?;
    Some([apart, last, half])
}

/// The order of axes that puts one of three at the end.
fn to_the_end(axis: usize) -> [u32; 3] {
    if axis == 0 { [1, 2, 0] } else { [0, 2, 1] }
}

impl StoreMap {
    /// The pieces of a tile, in order.
    pub fn parts(&self, kernel: &mut Kernel, before: Op, tile: Value) -> Result<Vec<Value>, PassError> {
        parts(kernel, before, tile, self.pieces, self.axis)
    }
}

/// The pieces of a tile along an axis, in order, of which each thread has its part.
pub(crate) fn parts(
    kernel: &mut Kernel,
    before: Op,
    tile: Value,
    pieces: u32,
    axis: usize,
) -> Result<Vec<Value>, PassError> {
    if pieces == 1 {
        return Ok(vec![tile]);
    }
    let layout = kernel.layout_of(tile).ok_or_else(|| missing("a layout"))?.clone();
    let elem = kernel.value_type(tile).elem().ok_or_else(|| missing("a tile"))?;
    let layouts = halved(&layout, axis).ok_or_else(|| missing("a half"))?;
    let types = layouts.map(|layout| {
        let shape = Shape::new(layout.shape());
        let id = kernel.intern_layout(layout);
        shape.map(|shape| Type::tile(elem, shape).with_layout(Some(id)))
    });
    let [Some(apart), Some(last), Some(half)] = types else { return Err(missing("a shape")) };
    let mut builder = Builder::before(kernel, before);
    let tile = builder.reshape_to(tile, apart, false)?;
    let order = to_the_end(axis).to_vec();
    let trans = builder.build(OpKind::Trans { order }, &[tile], &[], &[], &[], &[last])?;
    let tile = builder.kernel().result(trans, 0);
    let split = builder.build(OpKind::Split {}, &[tile], &[], &[], &[], &[half, half])?;
    let halves = [0, 1].map(|number| kernel.result(split, number));
    let mut out = Vec::new();
    for half in halves {
        out.extend(parts(kernel, before, half, pieces / 2, axis)?);
    }
    Ok(out)
}

//! Tensor maps as parameters, and the copies by them that take the place of loads and stores.
//!
//! ```text
//! store %p, %x, mask = ..   →   copy_desc_wait, barrier      the copies before have read the buffer
//!                               local_store %x, %b
//!                               fence_async, barrier
//!                               copy_desc_store %map, %b, (row, column)
//! ```
//!
//! A large tile goes through the buffer in pieces of columns, two at a time where there is room.

use rtc_abi::Expr;
use rtc_abi::metadata::Padding;
use rtc_ir::analysis::Poly;
use rtc_ir::{Builder, DescType, Elem, Hidden, Kernel, Literal, MapSource, Op, OpKind, Shape, SharedType, Type, Value};
use rtc_layout::{Layout, SharedLayout};

use super::boxes::{Access, Boxes, Fill, UNBOUNDED, boxes, boxes_of};
use super::coordinates::{Names, Place};
use super::descriptors;
use super::found::Found;
use super::host_values::expression;
use super::roles::{Form, lost};
use crate::PassError;

/// The tensor maps of a kernel.
pub(super) struct Maps {
    /// Of each loop those of its copies.
    pub copies: Vec<Vec<CopyMap>>,
    /// Those of operands that are copied before the loops.
    pub before: Vec<CopyMap>,
    /// The stores that are copies.
    pub stores: Vec<StoreMap>,
}

/// The map of a copy, and that with NaN beside the tensor where an argument chooses.
pub(super) type CopyMap = (Value, Option<Other>, Boxes);

/// An argument of the kernel, and the map to take where it is true.
pub(super) type Other = (Value, Value);

/// How a store becomes copies.
pub(super) struct StoreMap {
    map: Value,
    /// Of a piece.
    boxes: Boxes,
    /// How many pieces the tile goes through shared memory in.
    pub pieces: u32,
    /// That of a piece, with a slot for each of two.
    buffer: SharedType,
    /// Which store.
    pub number: usize,
}

impl Maps {
    /// Adds the parameters.
    pub fn make(kernel: &mut Kernel, found: &Found, form: &Form) -> Result<Maps, PassError> {
        let mut maps = Maps { copies: Vec::new(), before: Vec::new(), stores: Vec::new() };
        for of in &found.loops {
            let copies = of.copies.iter().map(|(copy, access)| copy_map(kernel, kernel.operand(*copy, 1), access));
            maps.copies.push(copies.collect::<Result<_, _>>()?);
        }
        for before in &found.before {
            maps.before.push(copy_map(kernel, before.buffer, &before.access)?);
        }
        let Some(most) = form.stored else { return Ok(maps) };
        for (number, (store, access)) in found.stores.iter().enumerate() {
            let Some((buffer, pieces)) = pieces(kernel, *store, most) else { continue };
            let layout = kernel.slot_layout(buffer).into_owned();
            if let Some(boxes) = buffer.elem.num().and_then(|elem| boxes(&layout, elem)) {
                maps.stores.push(StoreMap {
                    map: map_of(kernel, access, &boxes, Padding::Zero)?,
                    boxes,
                    pieces,
                    buffer,
                    number,
                });
            }
        }
        Ok(maps)
    }

    /// The buffers that results go through; those of the same type, one after the other, through the same.
    pub fn buffers(&self, builder: &mut Builder<'_>) -> Result<Vec<Value>, PassError> {
        let mut made: Vec<(SharedType, Value)> = Vec::new();
        let mut buffers = Vec::new();
        for store in &self.stores {
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

    /// Copies out of shared memory instead of stores.
    pub fn store(
        &self,
        kernel: &mut Kernel,
        found: &Found,
        outs: &[Value],
        names: &Names<'_>,
    ) -> Result<(), PassError> {
        for (store, out) in self.stores.iter().zip(outs) {
            let (op, access) = &found.stores[store.number];
            let converted = kernel.def_op(kernel.operand(*op, 1)).ok_or_else(|| lost("a tile"))?;
            let tile = kernel.operand(converted, 0);
            let shape = kernel.value_type(tile).shape().ok_or_else(|| lost("a tile"))?;
            let at = names.place(kernel, *op, access, &shape)?;
            let alone = self.stores.len() == 1;
            for (number, piece) in parts(kernel, *op, tile, store.pieces)?.into_iter().enumerate() {
                store.copy_out(kernel, *op, *out, piece, number as u32, &at, alone)?;
            }
            kernel.erase(*op);
        }
        Ok(())
    }
}

impl StoreMap {
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
        at: &Place,
        alone: bool,
    ) -> Result<(), PassError> {
        let pending = if alone { self.boxes.parts.len() as u32 * (self.buffer.slots - 1) } else { 0 };
        let mut builder = Builder::before(kernel, before);
        let slot = (number % self.buffer.slots).into();
        let slot = builder.constant_of(Literal::Int(slot), Type::Scalar(Elem::I32))?;
        let place = builder.slot(out, slot)?;
        builder.build(OpKind::CopyDescWait { pending, read: true }, &[], &[], &[], &[], &[])?;
        builder.barrier()?;
        builder.local_store(piece, place)?;
        builder.fence_async()?;
        builder.barrier()?;
        for part in &self.boxes.parts {
            let slice = part_of(kernel, before, place, *part, [self.boxes.ty.shape[0], self.boxes.ty.shape[1]])?;
            let start = [part[0], number * self.buffer.shape[1] + part[1]];
            let at = at.moved(kernel, before, start)?;
            let copy = OpKind::CopyDescStore {};
            Builder::before(kernel, before).build(copy, &[self.map, slice], &[], &at, &[], &[])?;
        }
        Ok(())
    }
}

/// The map of a copy, and that to take where an argument is true.
fn copy_map(kernel: &mut Kernel, buffer: Value, access: &Access) -> Result<CopyMap, PassError> {
    let boxes = boxes_of(kernel, buffer, access).ok_or_else(|| lost("a box"))?;
    let plain = if access.fill == Fill::Nan { Padding::Nan } else { Padding::Zero };
    let map = map_of(kernel, access, &boxes, plain)?;
    let other = match access.fill {
        Fill::Either(flag) => Some((flag, map_of(kernel, access, &boxes, Padding::Nan)?)),
        Fill::Zero | Fill::Nan => None,
    };
    Ok((map, other, boxes))
}

/// Copies into a buffer, which `barrier` is told of.
pub(super) fn copy_boxes(
    kernel: &mut Kernel,
    before: Op,
    map: Value,
    boxes: &Boxes,
    buffer: Value,
    barrier: Value,
    at: &Place,
) -> Result<(), PassError> {
    for part in &boxes.parts {
        let slice = part_of(kernel, before, buffer, *part, [boxes.ty.shape[0], boxes.ty.shape[1]])?;
        let at = at.moved(kernel, before, *part)?;
        let operands = [map, slice, barrier];
        Builder::before(kernel, before).build(OpKind::CopyDesc {}, &operands, &[], &at, &[], &[])?;
    }
    Ok(())
}

/// A part of a buffer; all of it as it is.
fn part_of(kernel: &mut Kernel, before: Op, buffer: Value, at: [u32; 2], shape: [u32; 2]) -> Result<Value, PassError> {
    let whole = kernel.value_type(buffer).as_shared().is_some_and(|ty| ty.shape[..] == shape);
    if whole { Ok(buffer) } else { Ok(Builder::before(kernel, before).shared_slice_of(buffer, &at, &shape)?) }
}

/// The parameter with the tensor map of an access: the descriptor that is an argument, else a hidden one.
fn map_of(kernel: &mut Kernel, access: &Access, boxes: &Boxes, padding: Padding) -> Result<Value, PassError> {
    if let Some(descriptor) = &access.descriptor {
        return descriptors::map(kernel, descriptor, boxes.ty);
    }
    let none = || lost("an expression");
    let base = kernel.params.iter().find(|param| param.value == access.base).ok_or_else(none)?.name.clone();
    let [outer, inner] = [1 - access.inner, access.inner].map(|axis| &access.axes[axis]);
    let batches = access.outer.iter().map(|outer| outer_stride(kernel, &outer.stride, boxes.ty));
    let rows = [expression(kernel, &outer.stride), Some(1.into())];
    let sizes = access.outer.iter().map(|_| Some(UNBOUNDED.into()));
    let source = MapSource {
        start: expression(kernel, &access.start).ok_or_else(none)?,
        shape: sizes.chain([outer.size(kernel), inner.size(kernel)]).collect::<Option<_>>().ok_or_else(none)?,
        strides: batches.chain(rows).collect::<Option<_>>().ok_or_else(none)?,
        data_type: None,
        padding,
        base: base.clone(),
    };
    let shape: Vec<u32> = access.outer.iter().map(|_| 1).chain(boxes.ty.shape.iter().copied()).collect();
    let ty = Type::Desc(DescType { shape: Shape::new(&shape).ok_or_else(none)?, ..boxes.ty });
    let hidden = Hidden::TensorMap(Box::new(source));
    let same = |value: Value| kernel.value_type(value) == ty;
    if let Some(known) = kernel.params.iter().find(|p| p.hidden.as_ref() == Some(&hidden) && same(p.value)) {
        return Ok(known.value);
    }
    let taken = |name: &String| kernel.params.iter().any(|param| param.name == *name);
    let name = (0..).map(|n| format!("{base}.map{n}")).find(|name| !taken(name)).ok_or_else(none)?;
    Ok(kernel.add_hidden(name, ty, hidden))
}

/// The stride of a dimension in which a box has one place: 16 bytes instead of 0, with which tensors are passed that have the
/// same for all places, such as keys for all heads. The coordinate is 0 then.
fn outer_stride(kernel: &Kernel, stride: &Poly, ty: DescType) -> Option<Expr> {
    let text = expression(kernel, stride)?.to_string();
    if stride.value().is_some() {
        return text.parse().ok();
    }
    let (sign, least) = (format!("max(0 - 1, min({text}, 1))"), 16 / ty.elem.bytes());
    format!("{text} + {least} * (1 - {sign} * {sign})").parse().ok()
}

/// The buffer through which a tile goes to be copied out, in how many pieces, so that about `most` bytes are enough.
fn pieces(kernel: &mut Kernel, store: Op, most: u32) -> Option<(SharedType, u32)> {
    let converted = kernel.def_op(kernel.operand(store, 1))?;
    let tile = kernel.operand(converted, 0);
    let layout = kernel.layout_of(tile)?.clone();
    let elem = kernel.value_type(tile).elem()?;
    let [rows, columns] = *layout.shape() else { return None };
    let bytes = elem.bytes();
    let mut pieces = 1;
    let mut left = layout;
    let size = |pieces: u32| rows * (columns / pieces) * bytes;
    while size(pieces) * pieces.min(2) > most && columns / pieces * bytes > 128 {
        let Some(half) = halved(&left) else { break };
        left = half[2].clone();
        pieces *= 2;
    }
    let width = columns / pieces;
    let swizzle = SharedLayout::nvmma_swizzle(width, elem.bits());
    let shared = SharedLayout::nvmma(&[rows, width], elem.bits(), swizzle, &[1, 0]);
    let slots = if pieces > 1 && 2 * size(pieces) <= most { 2 } else { 1 };
    Some((kernel.shared_type(elem, &shared, slots)?, pieces))
}

/// The layouts of a tile `[M, 2, N / 2]`, `[M, N / 2, 2]` and `[M, N / 2]` on the way to the halves of one of `[M, N]`; `None`
/// unless each thread has its part of both halves.
fn halved(layout: &Layout) -> Option<[Layout; 3]> {
    let [rows, columns] = *layout.shape() else { return None };
    let apart = layout.reshape(&[rows, 2, columns / 2]);
    let last = apart.transpose(&[0, 2, 1]);
    let half = last.split()?;
    Some([apart, last, half])
}

/// The pieces of a tile, from the left to the right.
pub(super) fn parts(kernel: &mut Kernel, before: Op, tile: Value, pieces: u32) -> Result<Vec<Value>, PassError> {
    if pieces == 1 {
        return Ok(vec![tile]);
    }
    let layout = kernel.layout_of(tile).ok_or_else(|| lost("a layout"))?.clone();
    let elem = kernel.value_type(tile).elem().ok_or_else(|| lost("a tile"))?;
    let layouts = halved(&layout).ok_or_else(|| lost("a half"))?;
    let types = layouts.map(|layout| {
        let shape = Shape::new(layout.shape());
        let id = kernel.intern_layout(layout);
        shape.map(|shape| Type::tile(elem, shape).with_layout(Some(id)))
    });
    let [Some(apart), Some(last), Some(half)] = types else { return Err(lost("a shape")) };
    let mut builder = Builder::before(kernel, before);
    let tile = builder.reshape_to(tile, apart, false)?;
    let trans = builder.build(OpKind::Trans { order: vec![0, 2, 1] }, &[tile], &[], &[], &[], &[last])?;
    let tile = builder.kernel().result(trans, 0);
    let split = builder.build(OpKind::Split {}, &[tile], &[], &[], &[], &[half, half])?;
    let halves = [0, 1].map(|number| kernel.result(split, number));
    let mut out = Vec::new();
    for half in halves {
        out.extend(parts(kernel, before, half, pieces / 2)?);
    }
    Ok(out)
}

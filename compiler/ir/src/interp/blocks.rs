//! Accesses to whole blocks of tensors, through descriptors and block pointers.

use std::rc::Rc;

use super::FindingKind;
use super::atomics::modify_global;
use super::machine::{Machine, Stop};
use super::value::Data;
use crate::ops::eval::{mask, sign_extend};
use crate::{DescType, Elem, Literal, Op, Padding, RmwOp, Scalar, Shape, Type, Value, view};

/// A tensor in global memory: what a descriptor or a block pointer holds.
#[derive(Clone, Debug)]
pub(crate) struct View {
    base: u64,
    sizes: Vec<i64>,
    /// In elements.
    strides: Vec<i64>,
    /// The offsets of a block pointer's block; none for a descriptor.
    offsets: Vec<i32>,
    /// A descriptor's elements outside of the tensor are NaN.
    nan: bool,
}

/// For each element of a block in row-major order its address, or `None` outside of the tensor.
type Addresses = Vec<Option<u64>>;

impl View {
    /// The addresses of the elements at all combinations of indices; some dimensions are checked.
    fn places(&self, elem: Scalar, indices: &[Vec<i64>], is_checked: impl Fn(usize) -> bool) -> Addresses {
        let mut places = vec![Some(self.base)];
        for (axis, indices) in indices.iter().enumerate() {
            let step = self.strides[axis].wrapping_mul(i64::from(elem.bytes()));
            let inside = |index: i64| !is_checked(axis) || (0..self.sizes[axis]).contains(&index);
            let moves: Vec<Option<i64>> =
                indices.iter().map(|index| inside(*index).then(|| index.wrapping_mul(step))).collect();
            let mut next = Vec::with_capacity(places.len() * moves.len());
            for place in places {
                next.extend(moves.iter().map(|by| Some(place?.wrapping_add_signed((*by)?))));
            }
            places = next;
        }
        places
    }
}

/// `start..start + size` along each dimension.
fn lines(starts: impl IntoIterator<Item = i64>, shape: &Shape) -> Vec<Vec<i64>> {
    let line = |(start, size): (i64, &u32)| (start..start + i64::from(*size)).collect();
    starts.into_iter().zip(shape.iter()).map(line).collect()
}

/// The bits of a NaN, or of 0.
fn filling(elem: Scalar, nan: bool) -> u64 {
    if nan { Literal::float(f64::NAN).bits(elem) } else { 0 }
}

impl Machine<'_> {
    /// Scalars as signed integers.
    fn integers(&self, values: &[Value]) -> Vec<i64> {
        let elem = |value: &Value| self.kernel.value_type(*value).elem().unwrap_or(Elem::I64);
        values.iter().map(|value| sign_extend(self.scalar(*value), elem(value))).collect()
    }

    /// `make_desc`.
    pub(crate) fn make_desc(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let mut sizes = self.integers(kernel.variadic(op));
        let mut strides = sizes.split_off(sizes.len().div_ceil(2));
        strides.push(1);
        let made = view::MakeDesc::at(kernel, op);
        let nan = made.nan().is_some_and(|v| self.scalar(v) & 1 != 0);
        let view = View { base: self.scalar(made.base()), sizes, strides, offsets: Vec::new(), nan };
        self.set_result(op, Data::View(Rc::new(view)));
        self.tick(1)
    }

    /// The properties and the type of a descriptor; `None` if the value is empty.
    fn described(&self, value: Value) -> Option<(Rc<View>, DescType)> {
        let Type::Desc(ty) = self.kernel.value_type(value) else { return None };
        let Data::View(view) = self.get(value) else { return None };
        Some((view, ty))
    }

    /// `desc_size`.
    pub(crate) fn desc_size(&mut self, op: Op, axis: usize) -> Result<(), Stop> {
        let described = self.described(view::DescSize::at(self.kernel, op).desc());
        let size = described.map_or(0, |(view, _)| view.sizes[axis]);
        self.set_result(op, Data::Scalar(mask(size as u64, Elem::I32)));
        self.tick(1)
    }

    /// `desc_stride`.
    pub(crate) fn desc_stride(&mut self, op: Op, axis: usize) -> Result<(), Stop> {
        let described = self.described(view::DescStride::at(self.kernel, op).desc());
        let stride = described.map_or(0, |(view, _)| view.strides[axis]);
        self.set_result(op, Data::Scalar(stride as u64));
        self.tick(1)
    }

    /// The view and the element type of a descriptor that an operation accesses, the type of the tile that it moves, and
    /// where its elements are.
    fn window(&self, op: Op) -> Option<(Rc<View>, Scalar, Type, Addresses)> {
        let kernel = self.kernel;
        let (view, ty) = self.described(kernel.desc(op)?)?;
        let gather = view::DescGather::of(kernel, op).map(|gather| (gather.rows(), gather.column()));
        let scatter = || view::DescScatter::of(kernel, op).map(|scatter| (scatter.rows(), scatter.column()));
        let (shape, indices) = match gather.or_else(scatter) {
            Some((numbers, column)) => {
                let (rows, column) = (self.get(numbers), self.integers(&[column])[0]);
                let count = kernel.value_type(numbers).shape()?[0];
                let rows = (0..count as usize).map(|i| sign_extend(rows.slot(i), Elem::I32)).collect();
                let columns = (column..column + i64::from(ty.shape[1])).collect();
                (Shape::new(&[count, ty.shape[1]])?, vec![rows, columns])
            }
            None => (ty.shape, lines(self.integers(kernel.variadic(op)), &ty.shape)),
        };
        let places = view.places(ty.elem, &indices, |_| true);
        Some((view, ty.elem, Type::tile(ty.elem(), shape), places))
    }

    /// `desc_load` and `desc_gather`.
    pub(crate) fn desc_load(&mut self, op: Op) -> Result<(), Stop> {
        let Some((view, elem, ty, places)) = self.window(op) else { return Ok(()) };
        let outside = filling(elem, view.nan);
        let slots = self.read_all(op, ty, elem, places.len(), |i| places[i], |_| outside)?;
        self.set_result(op, Data::many(slots));
        Ok(())
    }

    /// `desc_store`, `desc_scatter`, or `desc_reduce` with what it does.
    pub(crate) fn desc_store(&mut self, op: Op, value: Value, reduction: Option<RmwOp>) -> Result<(), Stop> {
        let Some((_, elem, ty, places)) = self.window(op) else { return Ok(()) };
        let values = self.get(value);
        let Some(rmw) = reduction else { return self.write_all(ty, elem, &values, |i| places[i]) };
        self.tick(places.len())?;
        for (slot, place) in places.into_iter().enumerate() {
            let Some(address) = place else { continue };
            let old = self.read(op, ty, slot, address, elem)?;
            self.write(ty, slot, address, elem, modify_global(rmw, elem, old, values.slot(slot)))?;
        }
        Ok(())
    }

    /// `make_block_ptr`.
    pub(crate) fn make_block_ptr(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let mut sizes = self.integers(kernel.variadic(op));
        let rank = sizes.len() / 3;
        let offsets = sizes.split_off(2 * rank).into_iter().map(|offset| offset as i32).collect();
        let strides = sizes.split_off(rank);
        let view =
            View { base: self.scalar(view::MakeBlockPtr::at(kernel, op).base()), sizes, strides, offsets, nan: false };
        self.set_result(op, Data::View(Rc::new(view)));
        self.tick(1)
    }

    /// `advance`. An offset that wraps becomes a wrong address.
    pub(crate) fn advance(&mut self, op: Op) -> Result<(), Stop> {
        let Data::View(view) = self.get(view::Advance::at(self.kernel, op).pointer()) else { return Ok(()) };
        let mut view = (*view).clone();
        for (offset, by) in view.offsets.iter_mut().zip(self.integers(self.kernel.variadic(op))) {
            let (moved, wraps) = offset.overflowing_add(by as i32);
            if wraps {
                self.find(op, FindingKind::AddressOverflow, Type::Scalar(Elem::I32), 0);
            }
            *offset = moved;
        }
        self.set_result(op, Data::View(Rc::new(view)));
        self.tick(1)
    }

    /// The element type of the block that a block pointer points to, its type, and where its elements are.
    fn block(&self, op: Op, check: &[u32]) -> Option<(Scalar, Type, Addresses)> {
        let pointer = self.kernel.pointer(op)?;
        let Type::BlockPtr(ty) = self.kernel.value_type(pointer) else { return None };
        let Data::View(view) = self.get(pointer) else { return None };
        let indices = lines(view.offsets.iter().map(|offset| i64::from(*offset)), &ty.shape);
        let places = view.places(ty.elem, &indices, |axis| check.contains(&(axis as u32)));
        Some((ty.elem, Type::tile(ty.elem(), ty.shape), places))
    }

    /// `block_load`.
    pub(crate) fn block_load(&mut self, op: Op, check: &[u32], padding: Padding) -> Result<(), Stop> {
        let Some((elem, ty, places)) = self.block(op, check) else { return Ok(()) };
        let outside = filling(elem, padding == Padding::Nan);
        let slots = self.read_all(op, ty, elem, places.len(), |i| places[i], |_| outside)?;
        self.set_result(op, Data::many(slots));
        Ok(())
    }

    /// The elements of a block that lie outside of the tensor.
    pub(super) fn outside_of_block(&self, op: Op, check: &[u32]) -> Vec<usize> {
        let places = self.block(op, check).map(|(_, _, places)| places).unwrap_or_default();
        places.iter().enumerate().filter(|(_, place)| place.is_none()).map(|(i, _)| i).collect()
    }

    /// `block_store`.
    pub(crate) fn block_store(&mut self, op: Op, check: &[u32]) -> Result<(), Stop> {
        let Some((elem, ty, places)) = self.block(op, check) else { return Ok(()) };
        let values = self.get(view::BlockStore::at(self.kernel, op).value());
        self.write_all(ty, elem, &values, |i| places[i])
    }
}

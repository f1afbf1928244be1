//! The same elements in another shape.

use rtc_ir::{OpKind, Shape};
use rtc_source::Span;

use crate::emitter::{Emitter, R};
use crate::types::{ir_type, scalar_shape};
use crate::values::Tensor;

impl Emitter<'_> {
    /// `t` with a dimension of size 1 before `axis`.
    pub(crate) fn insert_axis(&mut self, t: Tensor, axis: usize, span: Span) -> R<Tensor> {
        let mut dims: Vec<i128> = t.shape.iter().map(|d| i128::from(*d)).collect();
        dims.insert(axis.min(dims.len()), 1);
        let shape = self.shape(&dims, span)?;
        if t.shape.rank() == 0 {
            return self.broadcast_to(t, shape);
        }
        let value = self.emit(OpKind::ExpandDims { axis: axis as u32 }, &[t.value])?;
        Ok(Tensor { value, shape, ..t })
    }

    /// `t` with its dimensions in another order.
    pub(crate) fn permute(&mut self, t: Tensor, order: &[u32]) -> R<Tensor> {
        let dims: Vec<u32> = order.iter().map(|i| t.shape[*i as usize]).collect();
        let value = self.emit(OpKind::Trans { order: order.to_vec() }, &[t.value])?;
        Ok(Tensor { value, shape: Shape::new(&dims).unwrap_or(t.shape), ..t })
    }

    /// `t` in another shape of as many elements.
    pub(crate) fn reshape(&mut self, t: Tensor, shape: Shape, reorder: bool) -> R<Tensor> {
        if t.shape == shape {
            return Ok(t);
        }
        if shape.rank() == 0 {
            return self.to_scalar(t);
        }
        if t.shape.rank() == 0 {
            return self.broadcast_to(t, shape);
        }
        let ty = ir_type(self.ir_elem(t.elem)?, shape);
        let value = self.emit_typed(OpKind::Reshape { reorder }, &[t.value], ty)?;
        Ok(Tensor { value, shape, ..t })
    }

    /// The element of a block with one element.
    pub(crate) fn to_scalar(&mut self, t: Tensor) -> R<Tensor> {
        if t.shape.rank() == 0 {
            return Ok(t);
        }
        let value = self.emit(OpKind::Unsplat {}, &[t.value])?;
        Ok(Tensor { value, shape: scalar_shape(), ..t })
    }

    /// A line as one of `rank` dimensions, the others of size 1.
    pub(crate) fn along(&mut self, mut line: Tensor, axis: usize, rank: usize) -> R<Tensor> {
        let span = self.span;
        for at in 0..rank {
            if at != axis {
                line = self.insert_axis(line, at, span)?;
            }
        }
        Ok(line)
    }
}

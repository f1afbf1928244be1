//! Broadcasting: scalars are splatted, missing dimensions are added on the left, dimensions of size 1 are repeated.

use rtc_ir::{MAX_RANK, MAX_TILE_ELEMENTS, OpKind, Shape};
use rtc_source::{Code, Diagnostic, Span};

use crate::emitter::{Emitter, R};
use crate::types::ir_type;
use crate::values::Tensor;

/// The common shape, or the dimension (counted from the left of the longer shape) that differs.
pub(crate) fn common_shape(a: Shape, b: Shape) -> Result<Shape, usize> {
    let rank = a.rank().max(b.rank());
    let size = |s: Shape, i: usize| if i + s.rank() < rank { 1 } else { s[i + s.rank() - rank] };
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        dims.push(match (size(a, i), size(b, i)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return Err(i),
        });
    }
    Shape::new(&dims).ok_or(0)
}

impl<'a> Emitter<'a> {
    /// A shape from sizes, after checking what every block must satisfy.
    pub(crate) fn shape(&mut self, dims: &[i128], span: Span) -> R<Shape> {
        if dims.len() > MAX_RANK {
            return self.error(
                Code::BAD_SHAPE,
                span,
                format!("a block has at most {MAX_RANK} dimensions, not {}", dims.len()),
                "",
            );
        }
        let mut sizes = Vec::with_capacity(dims.len());
        for d in dims {
            match u32::try_from(*d) {
                Ok(size) if size.is_power_of_two() => sizes.push(size),
                _ => {
                    let help = match *d {
                        1.. => {
                            let power = crate::const_eval::next_power_of_2(*d);
                            format!("use {power} and mask the rest: `mask = tl.arange(0, {power}) < {d}`")
                        }
                        _ => "sizes are positive powers of two".into(),
                    };
                    return self.error(Code::BAD_SHAPE, span, format!("the size {d} is not a power of two"), &help);
                }
            }
        }
        let numel: u128 = sizes.iter().map(|d| u128::from(*d)).product();
        if numel > u128::from(MAX_TILE_ELEMENTS) {
            return self.error(
                Code::BAD_SHAPE,
                span,
                format!(
                    "a block of {sizes:?} has {numel} elements, more than the {MAX_TILE_ELEMENTS} that are allowed"
                ),
                "use smaller blocks and more programs, or a loop",
            );
        }
        Ok(Shape::new(&sizes).unwrap_or(crate::types::scalar_shape()))
    }

    /// `t` with dimensions added and repeated up to `shape`, which it must fit.
    pub(crate) fn broadcast_to(&mut self, t: Tensor, shape: Shape) -> R<Tensor> {
        if t.shape == shape {
            return Ok(t);
        }
        let elem = self.ir_elem(t.elem)?;
        let target = ir_type(elem, shape);
        if t.shape.rank() == 0 {
            // A constant stays a constant: the block is filled with it.
            if let Some(op) = self.kernel.def_op(t.value)
                && let OpKind::Constant { value } = self.kernel.kind(op)
            {
                let value = *value;
                return self.literal(value, t.elem, shape);
            }
            let value = self.emit_typed(OpKind::Splat {}, &[t.value], target)?;
            return Ok(Tensor { value, shape, ..t });
        }
        let mut value = t.value;
        for _ in t.shape.rank()..shape.rank() {
            value = self.emit(OpKind::ExpandDims { axis: 0 }, &[value])?;
        }
        if self.kernel.value_type(value) != target {
            value = self.emit_typed(OpKind::Broadcast {}, &[value], target)?;
        }
        Ok(Tensor { value, shape, ..t })
    }

    /// The common shape of two operands, or a diagnostic that shows both.
    pub(crate) fn common(&mut self, a: (Tensor, Span), b: (Tensor, Span), what: &str) -> R<Shape> {
        match common_shape(a.0.shape, b.0.shape) {
            Ok(shape) => Ok(shape),
            Err(dim) => {
                let (x, y) = (a.0.shape, b.0.shape);
                let rank = x.rank().max(y.rank());
                let size = |s: Shape| if dim + s.rank() < rank { 1 } else { s[dim + s.rank() - rank] };
                let mut d = Diagnostic::error(
                    Code::SHAPE_MISMATCH,
                    self.span,
                    format!("the shapes {x:?} and {y:?} do not fit together {what}"),
                )
                .label(a.1, format!("this is {}", a.0))
                .label(b.1, format!("this is {}", b.0))
                .note(format!(
                    "dimension {dim} has size {} on one side and {} on the other",
                    size(x),
                    size(y)
                ));
                if x.rank() == 1 && y.rank() == 1 {
                    d = d.help("add a dimension to combine each with each: `x[:, None]` and `y[None, :]`");
                } else if x.rank() != y.rank() {
                    let short = if x.rank() < y.rank() { x } else { y };
                    let index = if short.rank() == 1 { "`[:, None]` or `[None, :]`" } else { "`[None]`" };
                    d = d.help(format!("missing dimensions are added on the left; put them elsewhere with {index}"));
                } else {
                    d = d.help("a dimension fits if both sizes are equal or one of them is 1");
                }
                self.fail(d)
            }
        }
    }

    /// Both operands in their common shape.
    pub(crate) fn broadcast_pair(&mut self, a: (Tensor, Span), b: (Tensor, Span), what: &str) -> R<(Tensor, Tensor)> {
        let shape = self.common(a, b, what)?;
        Ok((self.broadcast_to(a.0, shape)?, self.broadcast_to(b.0, shape)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u32]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn shapes_meet_from_the_right() {
        assert_eq!(common_shape(shape(&[16]), shape(&[4, 1])), Ok(shape(&[4, 16])));
        assert_eq!(common_shape(shape(&[]), shape(&[4, 8])), Ok(shape(&[4, 8])));
        assert_eq!(common_shape(shape(&[2, 8]), shape(&[4, 8])), Err(0));
        assert_eq!(common_shape(shape(&[8]), shape(&[4, 4])), Err(1));
    }
}

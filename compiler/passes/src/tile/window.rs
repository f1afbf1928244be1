//! The elements of a block of a tensor: a tile of pointers, and a mask of the elements inside of the tensor.
//!
//! `base + sum (offset + arange) * stride` in 64 bits; an element is inside if `0 <= index < size`. Blocks of more than
//! two dimensions are accessed without their leading dimensions of size 1, so that optimizations of matrices apply to
//! them, too.

use rtc_ir::{
    Builder, CacheModifier, Elem, Eviction, Literal, OpKind, Predicate, Shape, Type, TypeError, Value, constant_bits,
};

type Built<T> = Result<T, TypeError>;

/// One dimension of a block.
pub(super) struct WindowAxis {
    /// The indices into the tensor, as a tile of `i64` whose other dimensions have the size 1.
    pub index: Value,
    /// From one index to the next, in elements; `None` for 1.
    pub stride: Option<Value>,
    /// The size of the tensor, where indices are checked.
    pub size: Option<Value>,
}

/// The elements of a block, without its leading dimensions of size 1.
pub(super) struct Window {
    pub pointer: Value,
    pub mask: Option<Value>,
    /// The shape of the block.
    shape: Shape,
}

/// How many leading dimensions of size 1 accesses to such blocks do without.
pub(super) fn left_out(shape: &Shape) -> usize {
    let ones = shape.iter().take_while(|size| **size == 1).count();
    ones.min(shape.rank().saturating_sub(MATRIX))
}

/// Fewer dimensions are left as they are.
const MATRIX: usize = 2;

/// A block as it is accessed.
pub(super) fn accessed(shape: Shape) -> Shape {
    Shape::new(&shape[left_out(&shape)..]).unwrap_or(shape)
}

/// How memory is accessed.
#[derive(Clone, Copy)]
pub(super) struct Caching {
    pub cache: CacheModifier,
    pub evict: Eviction,
    pub volatile: bool,
}

impl Caching {
    pub(super) const NONE: Caching = Caching { cache: CacheModifier::None, evict: Eviction::Normal, volatile: false };
}

/// The indices `offset .. offset + shape[axis]` along one dimension; a scalar where the dimension is left out.
pub(super) fn indices(b: &mut Builder<'_>, offset: Value, shape: Shape, axis: usize) -> Built<Value> {
    let size = shape[axis];
    let out = left_out(&shape);
    if axis < out {
        return widened(b, offset);
    }
    let steps = b.arange(0, size.into())?;
    let steps = b.extsi(steps, Elem::I64)?;
    let offset = widened(b, offset)?;
    let offset = filled(b, offset, steps)?;
    let line = b.addi(offset, steps)?;
    along(b, line, axis - out, shape.rank() - out)
}

/// The numbers of a line as indices along one of `rank` dimensions.
pub(super) fn picked(b: &mut Builder<'_>, line: Value, axis: usize, rank: usize) -> Built<Value> {
    let line = b.extsi(line, Elem::I64)?;
    along(b, line, axis, rank)
}

fn along(b: &mut Builder<'_>, mut line: Value, axis: usize, rank: usize) -> Built<Value> {
    for at in (0..rank).filter(|at| *at != axis) {
        line = b.expand_dims(line, at as u32)?;
    }
    Ok(line)
}

/// The elements of a block of that shape.
pub(super) fn window(b: &mut Builder<'_>, mut base: Value, axes: &[WindowAxis], whole: Shape) -> Built<Window> {
    let pointee = b.kernel().value_type(base);
    let (places, axes) = axes.split_at(left_out(&whole));
    let shape = accessed(whole);
    for place in places {
        let by = match place.stride {
            Some(stride) => {
                let factor = widened(b, stride)?;
                b.muli(place.index, factor)?
            }
            None => place.index,
        };
        base = b.addptr(base, by)?;
    }
    let mut pointer = b.splat_to(base, Type::tile(pointee.elem().unwrap_or(Elem::I64), shape))?;
    for axis in axes {
        let mut offset = axis.index;
        if let Some(stride) = axis.stride.filter(|stride| constant_bits(b.kernel(), *stride) != Some(1)) {
            let factor = widened(b, stride)?;
            let factor = filled(b, factor, offset)?;
            offset = b.muli(offset, factor)?;
        }
        let offset = broadcast(b, offset, shape)?;
        pointer = b.addptr(pointer, offset)?;
    }
    let mut mask = None;
    for (axis, size) in places.iter().filter_map(|place| Some((place, place.size?))) {
        let zero = b.constant_of(Literal::Int(0), Type::Scalar(Elem::I64))?;
        let size = widened(b, size)?;
        let low = b.cmpi(axis.index, zero, Predicate::Ge)?;
        let high = b.cmpi(axis.index, size, Predicate::Lt)?;
        let here = b.andi(low, high)?;
        mask = Some(match mask {
            Some(before) => b.andi(before, here)?,
            None => here,
        });
    }
    if let Some(here) = mask {
        mask = Some(b.splat_to(here, Type::tile(Elem::I1, shape))?);
    }
    for axis in axes {
        let Some(size) = axis.size else { continue };
        let ty = b.kernel().value_type(axis.index);
        let zero = b.constant_of(Literal::Int(0), ty)?;
        let size = widened(b, size)?;
        let size = filled(b, size, axis.index)?;
        let low = b.cmpi(axis.index, zero, Predicate::Ge)?;
        let high = b.cmpi(axis.index, size, Predicate::Lt)?;
        let here = b.andi(low, high)?;
        let here = broadcast(b, here, shape)?;
        mask = Some(match mask {
            Some(before) => b.andi(before, here)?,
            None => here,
        });
    }
    Ok(Window { pointer, mask, shape: whole })
}

impl Window {
    /// The shape in which the block is accessed.
    pub(super) fn accessed(&self) -> Shape {
        accessed(self.shape)
    }

    /// Reads the block; `other`, in the shape that is accessed, is given where something is said of elements outside.
    pub(super) fn load(&self, b: &mut Builder<'_>, other: Option<Value>, how: Caching) -> Built<Value> {
        let other = other.filter(|_| self.mask.is_some());
        let loaded = b.load(self.pointer, self.mask, other, how.cache, how.evict, how.volatile, false, None)?;
        self.reshaped(b, loaded, self.shape)
    }

    /// Writes the block; `descriptor` says that the source does so through a tensor descriptor.
    pub(super) fn store(&self, b: &mut Builder<'_>, value: Value, how: Caching, descriptor: bool) -> Built<()> {
        let value = self.reshaped(b, value, self.accessed())?;
        let kind = OpKind::Store { cache: how.cache, evict: how.evict, descriptor, vector: None };
        b.build(kind, &[self.pointer, value], &[self.mask], &[], &[], &[])?;
        Ok(())
    }

    /// A tile of the block in another shape.
    pub(super) fn reshaped(&self, b: &mut Builder<'_>, tile: Value, shape: Shape) -> Built<Value> {
        let ty = b.kernel().value_type(tile);
        if ty.shape() == Some(shape) {
            return Ok(tile);
        }
        b.reshape_to(tile, Type::tile(ty.elem().unwrap_or(Elem::I64), shape), false)
    }
}

/// The bits of a NaN or of 0 for elements outside, as a scalar or a tile.
pub(super) fn filling(b: &mut Builder<'_>, ty: Type, nan: bool) -> Built<Value> {
    let literal = match (ty.elem().is_some_and(Elem::is_float), nan) {
        (true, true) => Literal::float(f64::NAN),
        (true, false) => Literal::float(0.0),
        (false, _) => Literal::Int(0),
    };
    b.constant_of(literal, ty)
}

fn widened(b: &mut Builder<'_>, number: Value) -> Built<Value> {
    if b.kernel().value_type(number).elem() == Some(Elem::I64) { Ok(number) } else { b.extsi(number, Elem::I64) }
}

/// A tile like `like`, filled with a scalar. A constant stays one.
fn filled(b: &mut Builder<'_>, scalar: Value, like: Value) -> Built<Value> {
    let ty = b.kernel().value_type(like);
    let constant = b.kernel().def_op(scalar).and_then(|op| match b.kernel().kind(op) {
        OpKind::Constant { value } => Some(*value),
        _ => None,
    });
    match constant {
        Some(value) => b.constant_of(value, ty),
        None => b.splat_to(scalar, ty),
    }
}

fn broadcast(b: &mut Builder<'_>, tile: Value, shape: Shape) -> Built<Value> {
    let ty = b.kernel().value_type(tile);
    let wanted = Type::tile(ty.elem().unwrap_or(Elem::I64), shape);
    if ty == wanted { Ok(tile) } else { b.broadcast_to(tile, wanted) }
}

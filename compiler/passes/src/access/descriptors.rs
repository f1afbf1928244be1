//! Tensor descriptors that are arguments: the map of such a tensor is the argument itself.
//!
//! ```text
//! @k(%x.base, %x.shape.0, .., %x.strides.0, .., %x.padding)   →   @k(%x: desc<128x64xf16, 128>, %x.shape.0, ..)
//! ```
//!
//! The launch encodes the map from what the host describes, for the box and the swizzle of the parameter's type. A box of
//! another form takes a parameter of its own, `x.map.1`. The address stays a parameter only where the kernel still uses it.

use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Kernel, Shape, Value};

use super::box_access::{BoxAccess, BoxAxis, Fill};
use super::refusal::Refusal;

/// The suffix of a descriptor's address parameter.
pub(crate) const BASE: &str = ".base";

/// A descriptor among the arguments.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    /// Its name.
    pub(crate) name: String,
    /// The shape of its blocks.
    pub(crate) block: Shape,
}

/// The descriptor's name for its address parameter, and the rank of its tensor.
fn descriptor_of<'n>(kernel: &Kernel, name: &'n str) -> Option<(&'n str, usize)> {
    let descriptor = name.strip_suffix(BASE)?;
    let has = |part: &str| parameter(kernel, &format!("{descriptor}.{part}")).is_some();
    let rank = (0..).take_while(|axis| has(&format!("shape.{axis}")) && has(&format!("strides.{axis}"))).count();
    (rank >= 2 && has("padding")).then_some((descriptor, rank))
}

pub(crate) fn parameter(kernel: &Kernel, name: &str) -> Option<Value> {
    kernel.params.iter().find(|param| param.name == name && param.hidden.is_none()).map(|param| param.value)
}

/// The descriptor that an access goes through, if it is an argument. An access that uses a part of a descriptor or of a
/// tuple in another way is none of a box: what the host computes names whole arguments alone.
pub(crate) fn of_argument(
    kernel: &Kernel,
    access: &mut BoxAccess,
    block: Shape,
) -> Result<Option<Descriptor>, Refusal> {
    let is_part = |value: Value| kernel.params.iter().any(|param| param.value == value && param.name.contains('.'));
    let mentions = |poly: &Poly| poly.mentions(|symbol| matches!(symbol, Symbol::Scalar(value) if is_part(value)));
    if !is_part(access.base) {
        let of_axes = access.dimensions().flat_map(|axis| axis.sizes.iter().chain([&axis.stride]).chain(&axis.modulus));
        let parts = of_axes.chain([&access.start]).any(mentions);
        return if parts { Err(Refusal::SizeInTuple) } else { Ok(None) };
    }
    let base = kernel.params.iter().find(|param| param.value == access.base).map_or("", |param| &param.name);
    let (name, rank) = descriptor_of(kernel, base).ok_or(Refusal::BaseNotArgument)?;
    let is = |poly: &Poly, part: &str, axis: usize| {
        let part = parameter(kernel, &format!("{name}.{part}.{axis}"));
        part.is_some_and(|value| *poly == Poly::symbol(Symbol::Scalar(value)))
    };
    let ends = |sizes: &[Poly], axis: usize| matches!(sizes, [size] if is(size, "shape", axis));
    // The leading dimensions, in which a block has a single index.
    access.outer.sort_by_key(|outer| (0..rank).find(|axis| is(&outer.stride, "strides", *axis)).unwrap_or(rank));
    let [outer, inner] = [&access.axes[0], &access.axes[1]];
    let leading = access.outer.iter().enumerate();
    let whole = access.outer.len() + 2 == rank
        && leading.into_iter().all(|(axis, outer)| is(&outer.stride, "strides", axis) && ends(&outer.sizes, axis))
        && ends(&outer.sizes, rank - 2)
        && ends(&inner.sizes, rank - 1)
        && access.inner == 1
        && access.start.value() == Some(0)
        && is(&outer.stride, "strides", rank - 2)
        && outer.modulus.is_none()
        && inner.modulus.is_none();
    if !whole {
        return Err(Refusal::BaseNotArgument);
    }
    let sizes: Vec<u32> = access.outer.iter().map(|_| 1).chain(block.iter().copied()).collect();
    let block = Shape::new(&sizes).ok_or(Refusal::Rank)?;
    Ok(Some(Descriptor { name: name.to_owned(), block }))
}

/// The start and the single indices of an access, where those in leading dimensions of a descriptor are constants: they
/// are part of the start otherwise, or absent.
pub(crate) fn with_constants(kernel: &Kernel, base: Value, start: Poly, outer: Vec<BoxAxis>) -> (Poly, Vec<BoxAxis>) {
    let param = kernel.params.iter().find(|param| param.value == base);
    let Some((name, rank)) = param.and_then(|param| descriptor_of(kernel, &param.name)) else { return (start, outer) };
    let (mut start, mut outer) = (start, outer);
    for axis in 0..rank - 2 {
        let Some(stride) = parameter(kernel, &format!("{name}.strides.{axis}")).map(Symbol::Scalar) else { continue };
        let Some((index, rest)) = start.split(stride).filter(|(index, _)| index.value().is_some()) else { continue };
        let stride = Poly::symbol(stride);
        if outer.iter().all(|outer| outer.stride != stride) {
            outer.push(BoxAxis::single(index, stride));
            start = rest;
        }
    }
    (start, outer)
}

/// Which of these dimensions is that of the rows of the matrix, where `base` is the address of a descriptor.
pub(crate) fn row(kernel: &Kernel, base: Value, outer: &[BoxAxis]) -> Option<usize> {
    let param = kernel.params.iter().find(|param| param.value == base)?;
    let (name, rank) = descriptor_of(kernel, &param.name)?;
    let stride = Symbol::Scalar(parameter(kernel, &format!("{name}.strides.{}", rank - 2))?);
    outer.iter().position(|outer| outer.stride == Poly::symbol(stride))
}

/// Whether a load's padding outside of the tensor is that of copies by this descriptor's map.
pub(crate) fn fills_so(kernel: &Kernel, descriptor: &Descriptor, fill: Fill, is_float: bool) -> bool {
    match fill {
        Fill::Zero => !is_float,
        Fill::Nan => false,
        Fill::Either(flag) => parameter(kernel, &format!("{}.padding", descriptor.name)) == Some(flag),
    }
}

//! Lowers tensor descriptors to pointers and masks, for the passes that bring TMA back where it is applicable (`schedule/tma`).
//!
//! ```text
//! %d = make_desc %x, (%n) : desc<16xf32>   →   (nothing: loops and branches hand on %x and %n)
//! %v = desc_load %d, (%at) : tile<16xf32>  →   %v = load %pointers, mask = %inside, other = %zeros : tile<16xf32>
//! ```

use rtc_abi::Feature;
use rtc_ir::{
    Builder, DescType, Elem, HintKind, Kernel, Literal, MemScope, MemSemantic, Op, OpKind, Phase, Shape, Type,
    TypeError, Value, constant_bits, view,
};

use super::views::Views;
use super::window::{self, Caching, Window, WindowAxis};
use crate::access::host_values;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "lower-descriptors", needs: Phase::Tile, leaves: Phase::Tile, run };

/// Bases and strides are multiples of so many bytes.
const ALIGN: u32 = 16;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let ops = rtc_ir::walk(kernel);
    let is_desc = |value: &Value| matches!(kernel.value_type(*value), Type::Desc(_));
    if !ops.iter().any(|op| kernel.op(*op).operands.iter().chain(&kernel.op(*op).results).any(is_desc)) {
        return Ok(());
    }
    let says_nan = |op: &Op| view::MakeDesc::of(kernel, *op).is_some_and(|made| made.nan().is_some());
    let nan = ops.iter().any(says_nan);
    let types = move |ty: Type| match ty {
        Type::Desc(desc) => Some(part_types(desc, nan)),
        _ => None,
    };
    let views = Views::handed_on(kernel, &types);
    let mut lowering = Lowering { views, truth: [None; 2] };
    for op in ops {
        lowering.op(kernel, cx, op, nan)?;
    }
    lowering.views.finish(kernel, &types)
}

/// Base, sizes and strides of a descriptor. The hardware requires bases and strides that are multiples of 16 bytes, so
/// this is an assumption; the promises of arguments are in their signature.
fn parts(kernel: &mut Kernel, cx: &PassContext, op: Op) -> Result<Vec<Value>, PassError> {
    let base = view::MakeDesc::at(kernel, op).base();
    let mut parts = vec![base];
    parts.extend(kernel.variadic(op));
    let Some(elem) = kernel.value_type(base).elem().and_then(Elem::pointee) else { return Ok(parts) };
    let is_known = |part: &Value| host_values::divisor(kernel, *part).is_some();
    let is_argument = kernel.params.iter().any(|param| param.value == base);
    if !cx.target.has(Feature::Tma) || is_argument && parts[1..].iter().all(is_known) {
        return Ok(parts);
    }
    let rank = parts.len() / 2;
    let found: Vec<usize> = (rank + 1..parts.len()).filter(|number| !is_known(&parts[*number])).collect();
    for number in found.into_iter().chain([0]) {
        let multiple = if number == 0 { ALIGN } else { ALIGN / elem.bytes() };
        if multiple > 1 {
            parts[number] = Builder::before(kernel, op).hint(parts[number], HintKind::MultipleOf, vec![multiple])?;
        }
    }
    Ok(parts)
}

/// The types of a descriptor's parts. The padding is a part if a descriptor specifies NaN.
fn part_types(desc: DescType, nan: bool) -> Vec<Type> {
    let rank = desc.shape.rank();
    let mut types = vec![Type::Scalar(Elem::Ptr(desc.elem))];
    types.extend(std::iter::repeat_n(Type::Scalar(Elem::I32), rank));
    types.extend(std::iter::repeat_n(Type::Scalar(Elem::I64), rank - 1));
    types.extend((nan && desc.elem.is_float()).then_some(Type::Scalar(Elem::I1)));
    types
}

struct Lowering {
    views: Views,
    /// Constants at the start of the kernel, which all descriptors share: loops see that they carry the same value.
    truth: [Option<Value>; 2],
}

impl Lowering {
    fn op(&mut self, kernel: &mut Kernel, cx: &PassContext, op: Op, nan: bool) -> Result<(), PassError> {
        match *kernel.kind(op) {
            OpKind::MakeDesc {} => {
                let made = view::MakeDesc::at(kernel, op);
                let (base, fill) = (made.base(), made.nan());
                let mut parts = parts(kernel, cx, op)?;
                if nan && kernel.value_type(base).elem().and_then(Elem::pointee).is_some_and(|e| e.is_float()) {
                    parts.push(self.nan(kernel, fill)?);
                }
                self.views.make(kernel, op, parts);
            }
            OpKind::DescSize { axis } => {
                let size = self.views.parts(view::DescSize::at(kernel, op).desc())?[1 + axis as usize];
                kernel.replace_op(op, size);
            }
            OpKind::DescStride { axis } => {
                let desc = view::DescStride::at(kernel, op).desc();
                let rank = described(kernel, desc)?.shape.rank();
                let stride = self.views.parts(desc)?[1 + rank + axis as usize];
                kernel.replace_op(op, stride);
            }
            OpKind::DescLoad {} | OpKind::DescGather {} => {
                let (access, mut b) = self.access(kernel, op)?;
                let window = access.window(&mut b)?;
                let other = outside(&mut b, access.elem, window.accessed(), access.nan)?;
                let loaded = window.load(&mut b, Some(other), Caching::NONE)?;
                kernel.replace_op(op, loaded);
            }
            OpKind::DescStore {} | OpKind::DescScatter {} => {
                let last = kernel.kind(op).spec().operands.len() - 1;
                let value = kernel.operand(op, last);
                let (access, mut b) = self.access(kernel, op)?;
                access.window(&mut b)?.store(&mut b, value, Caching::NONE, true)?;
                kernel.erase(op);
            }
            OpKind::DescReduce { op: rmw } => {
                let value = view::DescReduce::at(kernel, op).value();
                let (access, mut b) = self.access(kernel, op)?;
                let window = access.window(&mut b)?;
                let value = window.reshaped(&mut b, value, window.accessed())?;
                let (sem, scope) = (MemSemantic::Relaxed, MemScope::Gpu);
                b.atomic_rmw(window.pointer, value, window.mask, None, rmw, sem, scope, None)?;
                kernel.erase(op);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether elements outside are NaN: as given, constants as the ones that all share.
    fn nan(&mut self, kernel: &mut Kernel, given: Option<Value>) -> Result<Value, TypeError> {
        let bit = match given.map(|value| (value, constant_bits(kernel, value))) {
            Some((value, None)) => return Ok(value),
            Some((_, Some(bits))) => bits & 1,
            None => 0,
        };
        if let Some(value) = self.truth[bit as usize] {
            return Ok(value);
        }
        let body = kernel.body();
        let value = Builder::at_start(kernel, body).constant_of(Literal::Int(bit as i64), Type::Scalar(Elem::I1))?;
        self.truth[bit as usize] = Some(value);
        Ok(value)
    }

    /// The target of an access, and a builder in its place.
    fn access<'k>(&self, kernel: &'k mut Kernel, op: Op) -> Result<(BlockAccess, Builder<'k>), PassError> {
        let missing = || PassError::Internal("an access to a block without a descriptor".into());
        let desc = kernel.desc(op).ok_or_else(missing)?;
        let ty = described(kernel, desc)?;
        let block = ty.shape;
        let rank = block.rank();
        let parts = self.views.parts(desc)?;
        let (sizes, rest) = parts[1..].split_at(rank);
        let (strides, nan) = rest.split_at(rank - 1);
        let gather = view::DescGather::of(kernel, op).map(|gather| (gather.rows(), gather.column()));
        let scatter = || view::DescScatter::of(kernel, op).map(|scatter| (scatter.rows(), scatter.column()));
        let (at, shape) = match gather.or_else(scatter) {
            Some((rows, column)) => {
                let count = kernel.value_type(rows).shape().map_or(1, |shape| shape[0]);
                (vec![rows, column], Shape::new(&[count, block[1]]).unwrap_or(block))
            }
            None => (kernel.variadic(op).to_vec(), block),
        };
        let access = BlockAccess {
            base: parts[0],
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            nan: nan.first().copied(),
            at,
            shape,
            elem: ty.elem(),
        };
        Ok((access, Builder::before(kernel, op)))
    }
}

/// An access to a block of a tensor.
struct BlockAccess {
    elem: Elem,
    base: Value,
    sizes: Vec<Value>,
    /// Without that of the last dimension.
    strides: Vec<Value>,
    nan: Option<Value>,
    /// Per dimension where the block starts, or a line of indices.
    at: Vec<Value>,
    shape: Shape,
}

impl BlockAccess {
    fn window(&self, b: &mut Builder<'_>) -> Result<Window, TypeError> {
        let mut axes = Vec::with_capacity(self.at.len());
        for (axis, at) in self.at.iter().enumerate() {
            let index = match b.kernel().value_type(*at) {
                Type::Tile(_) => window::picked(b, *at, axis, self.shape.rank())?,
                _ => window::indices(b, *at, self.shape, axis)?,
            };
            axes.push(WindowAxis { index, stride: self.strides.get(axis).copied(), size: Some(self.sizes[axis]) });
        }
        window::window(b, self.base, &axes, self.shape)
    }
}

/// The value outside of the tensor.
fn outside(b: &mut Builder<'_>, elem: Elem, shape: Shape, nan: Option<Value>) -> Result<Value, TypeError> {
    let tile = Type::tile(elem, shape);
    let Some(is_nan) = nan else { return window::filling(b, tile, false) };
    if let Some(bits) = constant_bits(b.kernel(), is_nan) {
        return window::filling(b, tile, bits & 1 != 0);
    }
    let [yes, no] = [window::filling(b, Type::Scalar(elem), true)?, window::filling(b, Type::Scalar(elem), false)?];
    let filling = b.select(is_nan, yes, no)?;
    b.splat_to(filling, tile)
}

/// The type of a descriptor.
fn described(kernel: &Kernel, value: Value) -> Result<DescType, PassError> {
    match kernel.value_type(value) {
        Type::Desc(desc) => Ok(desc),
        other => Err(PassError::Internal(format!("{other} is no tensor descriptor"))),
    }
}

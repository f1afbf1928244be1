//! Tensor maps that the kernel makes, from bases, sizes and strides that come from memory, such as those of a grouped
//! matmul:
//!
//! ```text
//! %p = load .. : ptr<f16>                  %p = load .. : ptr<f16>
//! for_range .. {                           (copying: wait until the ring is full; computing: until all is stored)
//!   load %p + .., mask = .. < %m     →     %map = make_map %p, (%m, %k, %stride) : desc<128x64xf16, 128>
//! }                                        for_range .. { copy_desc %map, .. }
//! ```
//!
//! A map is made right after the last of its values, outside of the loops with dots. Before it is made again, no copy
//! by the previous one may be in flight; so that nothing has to wait for that, there are two slots for it in turn
//! (`rings.rs`, `defer_stores.rs`). Copying a map to where TMA reads it takes as long as loads do: other maps are made,
//! and dots issued, before the wait for it.

use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Block, Builder, DescType, Elem, Kernel, Literal, Op, OpKind, Type, Value};

use super::coordinates::Names;
use crate::PassError;
use crate::access::box_access::{BoxAccess, Fill, UNBOUNDED};
use crate::access::promises::block_of;
use crate::pass::missing;

/// Makes the map of an access for boxes of that type, as soon as all is known that it is made of.
pub(crate) fn make(kernel: &mut Kernel, access: &BoxAccess, ty: DescType, tf32: bool) -> Result<Value, PassError> {
    let [outer, inner] = [1 - access.inner, access.inner].map(|axis| &access.axes[axis]);
    let polys = outer.sizes.iter().chain(&inner.sizes).chain([&outer.stride, &access.start]);
    let symbols = polys.flat_map(|poly| poly.terms()).flat_map(|term| &term.symbols);
    let values = symbols.filter_map(|symbol| match symbol {
        Symbol::Scalar(value) => Some(*value),
        _ => None,
    });
    let values: Vec<Value> = values.chain([access.base]).collect();
    let before = after_all(kernel, &values).ok_or_else(|| missing("a place for a map"))?;
    let mut builder = Builder::before(kernel, before);
    let none = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
    // No program index is needed.
    let names = Names { pids: [none; 3], grid: [none; 3], map: None };
    let mut base = access.base;
    let pointer = Elem::Ptr(ty.elem);
    if kernel.value_type(base) != Type::Scalar(pointer) {
        base = Builder::before(kernel, before).bitcast(base, pointer)?;
    }
    if access.start.value() != Some(0) {
        let start = names.sum_in(kernel, before, &access.start, Elem::I64)?;
        base = Builder::before(kernel, before).addptr(base, start)?;
    }
    let mut numbers = Vec::new();
    for axis in [outer, inner] {
        numbers.push(size(kernel, before, &names, &axis.sizes)?);
    }
    numbers.push(names.sum_in(kernel, before, &outer.stride, Elem::I64)?);
    let kind = OpKind::MakeMap { nan: access.fill == Fill::Nan, tf32, later: false };
    let made = Builder::before(kernel, before).build(kind, &[base], &[], &numbers, &[], &[Type::Desc(ty)])?;
    let map = kernel.result(made, 0);
    kernel.name_value(map, "map");
    Ok(map)
}

/// The least of some sizes.
fn size(kernel: &mut Kernel, before: Op, names: &Names<'_>, sizes: &[Poly]) -> Result<Value, PassError> {
    let mut least = None;
    for size in sizes {
        let size = names.sum_in(kernel, before, size, Elem::I32)?;
        least = Some(match least {
            Some(least) => Builder::before(kernel, before).minsi(least, size)?,
            None => size,
        });
    }
    match least {
        Some(least) => Ok(least),
        None => Ok(Builder::before(kernel, before).constant_of(Literal::Int(UNBOUNDED), Type::Scalar(Elem::I32))?),
    }
}

/// The first operation after all of these values, which are defined in one block.
fn after_all(kernel: &Kernel, values: &[Value]) -> Option<Op> {
    let depth = |block: Block| {
        let around = |block: &Block| kernel.block(*block).parent.and_then(|op| kernel.op(op).parent);
        std::iter::successors(Some(block), around).count()
    };
    let block = values.iter().map(|value| block_of(kernel, *value)).max_by_key(|block| depth(*block))?;
    let mut last: Option<Op> = None;
    for op in values.iter().filter_map(|value| kernel.def_op(*value)) {
        let here = kernel.op(op).parent == Some(block);
        if here && last.is_none_or(|last| kernel.is_before(last, op)) {
            last = Some(op);
        }
    }
    match last {
        Some(last) => kernel.next_op(last),
        None => kernel.first_op(block),
    }
}

/// Makes the operation that makes a map return before the map is visible.
pub(crate) fn begin(kernel: &mut Kernel, maker: Op) {
    if let OpKind::MakeMap { later, .. } = kernel.kind_mut(maker) {
        *later = true;
    }
}

/// Waits until a map is there.
pub(crate) fn await_map(kernel: &mut Kernel, before: Op, map: Value) -> Result<(), PassError> {
    Builder::before(kernel, before).build(OpKind::AwaitMap {}, &[map], &[], &[], &[], &[])?;
    Ok(())
}

/// The operation that makes a map, if the kernel does.
pub(crate) fn maker(kernel: &Kernel, map: Value) -> Option<Op> {
    kernel.def_op(map).filter(|op| matches!(kernel.kind(*op), OpKind::MakeMap { .. }))
}

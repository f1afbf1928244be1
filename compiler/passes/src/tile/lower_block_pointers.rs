//! Lowers block pointers to pointers and masks.
//!
//! ```text
//! %p = make_block_ptr %x, (%n, %s, %at) {order = [0]} : block_ptr<16xf32>
//! %v = block_load %p {check = [0]} : tile<16xf32>   →   %v = load %pointers, mask = %inside : tile<16xf32>
//! %q = advance %p, (%by) : block_ptr<16xf32>        →   %at_1 = addi %at, %by : i32
//! ```

use rtc_ir::{BlockPtrType, Builder, Elem, Kernel, Op, OpKind, Padding, Phase, Type, TypeError, Value, view};

use super::views::Views;
use super::window::{self, Caching, Window, WindowAxis};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "lower-block-pointers", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let ops = rtc_ir::walk(kernel);
    // Every block pointer was made by some operation.
    if !ops.iter().any(|op| matches!(kernel.kind(*op), OpKind::MakeBlockPtr { .. })) {
        return Ok(());
    }
    let types = |ty: Type| match ty {
        Type::BlockPtr(block) => Some(part_types(block)),
        _ => None,
    };
    let mut views = Views::handed_on(kernel, &types);
    for op in ops {
        lower(kernel, &mut views, op)?;
    }
    views.finish(kernel, &types)
}

/// The types of a block pointer's parts: base, sizes, strides, offsets.
fn part_types(block: BlockPtrType) -> Vec<Type> {
    let rank = block.shape.rank();
    let mut types = vec![Type::Scalar(Elem::Ptr(block.elem))];
    types.extend(std::iter::repeat_n(Type::Scalar(Elem::I64), 2 * rank));
    types.extend(std::iter::repeat_n(Type::Scalar(Elem::I32), rank));
    types
}

fn lower(kernel: &mut Kernel, views: &mut Views, op: Op) -> Result<(), PassError> {
    match kernel.kind(op).clone() {
        OpKind::MakeBlockPtr { .. } => {
            let parts = kernel.op(op).operands.to_vec();
            views.make(kernel, op, parts);
        }
        OpKind::Advance {} => {
            let mut parts = views.parts(view::Advance::at(kernel, op).pointer())?.to_vec();
            let moves = kernel.variadic(op).to_vec();
            let first = parts.len() - moves.len();
            let mut b = Builder::before(kernel, op);
            for (offset, by) in parts[first..].iter_mut().zip(moves) {
                *offset = b.addi(*offset, by)?;
            }
            views.make(kernel, op, parts);
        }
        OpKind::BlockLoad { check, padding, cache, evict, volatile } => {
            let pointer = view::BlockLoad::at(kernel, op).pointer();
            let parts = views.parts(pointer)?.to_vec();
            let block = pointed_to(kernel, pointer)?;
            let mut b = Builder::before(kernel, op);
            let window = window_of(&mut b, &parts, block, &check)?;
            let tile = Type::tile(block.elem(), window.accessed());
            let other = match padding {
                _ if check.is_empty() => None,
                Padding::Unspecified => None,
                Padding::Zero => Some(window::filling(&mut b, tile, false)?),
                Padding::Nan => Some(window::filling(&mut b, tile, true)?),
            };
            let loaded = window.load(&mut b, other, Caching { cache, evict, volatile })?;
            kernel.replace_op(op, loaded);
        }
        OpKind::BlockStore { check, cache, evict } => {
            let store = view::BlockStore::at(kernel, op);
            let (pointer, value) = (store.pointer(), store.value());
            let parts = views.parts(pointer)?.to_vec();
            let block = pointed_to(kernel, pointer)?;
            let mut b = Builder::before(kernel, op);
            let window = window_of(&mut b, &parts, block, &check)?;
            window.store(&mut b, value, Caching { cache, evict, volatile: false }, false)?;
            kernel.erase(op);
        }
        _ => {}
    }
    Ok(())
}

fn window_of(b: &mut Builder<'_>, parts: &[Value], block: BlockPtrType, check: &[u32]) -> Result<Window, TypeError> {
    let rank = block.shape.rank();
    let (sizes, rest) = parts[1..].split_at(rank);
    let (strides, offsets) = rest.split_at(rank);
    let mut axes = Vec::with_capacity(rank);
    for axis in 0..rank {
        let index = window::indices(b, offsets[axis], block.shape, axis)?;
        let size = check.contains(&(axis as u32)).then_some(sizes[axis]);
        axes.push(WindowAxis { index, stride: Some(strides[axis]), size });
    }
    window::window(b, parts[0], &axes, block.shape)
}

/// The type of a block pointer.
fn pointed_to(kernel: &Kernel, value: Value) -> Result<BlockPtrType, PassError> {
    match kernel.value_type(value) {
        Type::BlockPtr(block) => Ok(block),
        other => Err(PassError::Internal(format!("{other} is no block pointer"))),
    }
}

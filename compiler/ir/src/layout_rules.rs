//! The relations between the layouts of an operation's operands and results, from phase `Laid` on.
//!
//! Element-wise operations, loads, stores, scans and sorts have one layout throughout; the type rules see to that.
//! Shape operations move nothing between threads: there is a fixed map from the registers of the result to registers
//! of the operands, the same in every thread ([`register_sources`]). A reduction leaves `remove_dim` of its operand's
//! layout. A `dot` has the layouts of its machine form. Everything else (`convert_layout`, `gather`, `histogram`,
//! constants) is free.
//!
//! Passes use the natural choices: [`required_operand_layout`], [`result_layout_from_operand`].

use rtc_layout::{Coord, Layout};

use crate::effects::{Space, When};
use crate::{DotKind, Kernel, Op, OpKind, Scalar, Shape, Traits, Type, view};

/// The layout that operand `index` should have so that the results get `result` for nothing. `None` if the operation
/// does not tie the two.
pub fn required_operand_layout(kernel: &Kernel, op: Op, index: usize, result: &Layout) -> Option<Layout> {
    let data = kernel.op(op);
    let shape = kernel.value_type(*data.operands.get(index)?).shape()?;
    match &data.kind {
        OpKind::ExpandDims { axis } => Some(result.remove_dim(*axis as usize)),
        OpKind::Broadcast {} => Some(result.broadcast_operand(&shape)),
        OpKind::Reshape { .. } => Some(result.reshape(&shape)),
        OpKind::Trans { order } => Some(result.transpose(&inverse(order))),
        OpKind::Join {} => result.split(),
        OpKind::Split {} => Some(result.join()),
        OpKind::Scan { .. } | OpKind::Sort { .. } => Some(result.clone()),
        OpKind::Gather { .. } if index == 1 => Some(result.clone()),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE) => Some(result.clone()),
        _ => None,
    }
}

/// The layout of the results if operand `index` has layout `operand`. `None` if the operation does not relate the two,
/// or if there is no such layout.
pub fn result_layout_from_operand(kernel: &Kernel, op: Op, index: usize, operand: &Layout) -> Option<Layout> {
    let data = kernel.op(op);
    let shape = kernel.value_type(*data.results.first()?).shape();
    match &data.kind {
        OpKind::ExpandDims { axis } => Some(operand.insert_dim(*axis as usize)),
        OpKind::Broadcast {} => Some(operand.broadcast_result(&shape?)),
        OpKind::Reshape { .. } => Some(operand.reshape(&shape?)),
        OpKind::Trans { order } => Some(operand.transpose(order)),
        OpKind::Join {} => Some(operand.join()),
        OpKind::Split {} => operand.split(),
        OpKind::Reduce { axis } => shape.map(|_| operand.remove_dim(*axis as usize)),
        OpKind::Cat {} => Some(operand.concat(0)),
        OpKind::Scan { .. } | OpKind::Sort { .. } => Some(operand.clone()),
        OpKind::Gather { .. } if index == 1 => Some(operand.clone()),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE) => Some(operand.clone()),
        _ => None,
    }
}

/// For each register of result number `result` of a shape operation, the operand and its register that hold the same
/// element in the same thread, in every thread. `None` if data would have to cross threads, or if it is no shape
/// operation.
pub fn register_sources(kernel: &Kernel, op: Op, result: usize) -> Option<Vec<(usize, u32)>> {
    let data = kernel.op(op);
    let to = kernel.layout_of(*data.results.get(result)?)?;
    let from = kernel.layout_of(*data.operands.first()?)?;
    let only = |map: Option<Vec<u32>>| map.map(|m| m.into_iter().map(|r| (0, r)).collect());
    match &data.kind {
        OpKind::ExpandDims { axis } => only(to.register_map(from, |c| without(c, *axis as usize))),
        OpKind::Broadcast {} => only(to.register_map(from, |mut c| {
            for (entry, dim) in c.0.iter_mut().zip(from.shape()) {
                *entry &= dim - 1;
            }
            c
        })),
        OpKind::Trans { order } => only(to.register_map(from, |c| {
            let mut source = Coord::ZERO;
            for (i, axis) in order.iter().enumerate() {
                source[*axis as usize] = c[i];
            }
            source
        })),
        OpKind::Reshape { reorder } => {
            let row_major = to.register_map(from, |c| unflatten(flatten(c, to.shape()), from.shape()));
            let any = || {
                // Any permutation will do: each thread keeps what it has.
                let fits = *reorder
                    && to.registers() == from.registers()
                    && to.warps() == from.warps()
                    && to.copies().none()
                    && from.copies().none();
                fits.then(|| (0..to.registers()).collect())
            };
            only(row_major.or_else(any))
        }
        OpKind::Split {} => only(to.register_map(from, |mut c| {
            c[to.rank()] = result as u32;
            c
        })),
        OpKind::Join {} => {
            let axis = to.rank() - 1;
            from_two(kernel, op, to, |c| c[axis] as usize, |c| without(c, axis))
        }
        OpKind::Cat {} => {
            let half = from.shape()[0];
            from_two(kernel, op, to, |c| (c[0] / half) as usize, |c| [c[0] % half].into())
        }
        _ => None,
    }
}

/// Sources of an operation with two operands: `which` selects the operand, `map` the element in it. The operand must
/// not depend on the thread.
fn from_two(
    kernel: &Kernel,
    op: Op,
    to: &Layout,
    which: impl Fn(Coord) -> usize,
    map: impl Fn(Coord) -> Coord,
) -> Option<Vec<(usize, u32)>> {
    let bases = to.bases();
    if bases.lane.iter().chain(&bases.warp).any(|basis| which(*basis) != 0) {
        return None;
    }
    let data = kernel.op(op);
    let maps = [0, 1].map(|i| to.register_map(kernel.layout_of(data.operands[i])?, &map));
    let [Some(lhs), Some(rhs)] = maps else { return None };
    let pick = |r: u32| match which(to.coords(r, 0, 0)) {
        0 => (0, lhs[r as usize]),
        _ => (1, rhs[r as usize]),
    };
    Some((0..to.registers()).map(pick).collect())
}

/// Checks the layouts of an operation whose types are in order otherwise.
pub(crate) fn check(kernel: &Kernel, op: Op) -> Result<(), String> {
    let data = kernel.op(op);
    match &data.kind {
        OpKind::ExpandDims { .. }
        | OpKind::Broadcast {}
        | OpKind::Trans { .. }
        | OpKind::Reshape { .. }
        | OpKind::Split {}
        | OpKind::Join {}
        | OpKind::Cat {} => {
            for i in 0..data.results.len() {
                if register_sources(kernel, op, i).is_none() {
                    return Err("the layouts of operand and result would move data between threads".into());
                }
            }
            Ok(())
        }
        OpKind::Reduce { axis } => {
            let Some(operand) = data.operands.iter().find_map(|v| kernel.layout_of(*v)) else { return Ok(()) };
            let natural = operand.remove_dim(*axis as usize);
            for result in &data.results {
                if let Some(layout) = kernel.layout_of(*result)
                    && layout.register_map(&natural, |c| c).is_none()
                {
                    return Err("the layout of a result is not that of the operand without the axis".into());
                }
            }
            Ok(())
        }
        OpKind::Dot { kind, .. } => check_dot(kernel, op, *kind),
        OpKind::DotBuffers { kind } => match kernel.layout_of(view::DotBuffers::at(kernel, op).acc()) {
            Some(acc) if *kind == DotKind::MmaF64 && !is_mma_f64(acc) => {
                Err(format!("the layouts do not fit a product of kind {kind}"))
            }
            _ => Ok(()),
        },
        OpKind::Mma {} | OpKind::MmaAsync {} => crate::MmaForm::of(kernel, op).map(drop),
        OpKind::CopyAsync { vector } => check_copy(kernel, op, *vector),
        _ => check_bulk(kernel, op),
    }
}

/// Bulk copies: the buffer's alignment is 16 bytes, or that of its swizzle.
fn check_bulk(kernel: &Kernel, op: Op) -> Result<(), String> {
    let mut effects = kernel.effects(op);
    let Some((_, Some(buffer))) = effects.find(|(e, _)| e.space == Space::Shared && e.when == When::Async) else {
        return Ok(());
    };
    let needs = match kernel.desc(op).map(|desc| kernel.value_type(desc)) {
        Some(Type::Desc(desc)) => desc.align(),
        _ => 16,
    };
    let has = kernel.place_alignment(buffer);
    if has.is_multiple_of(needs) {
        return Ok(());
    }
    Err(format!("the buffer lies at a multiple of {has} bytes, not of {needs}"))
}

/// Copies by threads: each element in one register of a thread, and whole pieces of 4, 8 or 16 bytes side by side in the
/// buffer. Of several threads that have an element one copies it.
fn check_copy(kernel: &Kernel, op: Op, vector: u32) -> Result<(), String> {
    let copy = view::CopyAsync::at(kernel, op);
    let (Some(layout), Some(ty)) = (kernel.layout_of(copy.pointer()), kernel.value_type(copy.buffer()).as_shared())
    else {
        return Ok(());
    };
    if layout.copies().registers != 0 {
        return Err("several registers of a thread would copy the same element".into());
    }
    let bytes = vector.saturating_mul(ty.elem.bytes());
    if !matches!(bytes, 4 | 8 | 16) || vector > layout.registers() {
        return Err(format!("a copy of {bytes} bytes: not 4, 8 or 16, or more than a thread has"));
    }
    if !kernel.place_alignment(copy.buffer()).is_multiple_of(bytes) {
        return Err(format!("the buffer does not lie at a multiple of {bytes} bytes"));
    }
    let shared = kernel.slot_layout(ty);
    // Linear maps: it is enough to look at the bits of the places.
    let bases = layout.bases();
    let others = bases.register.iter().skip(vector.trailing_zeros() as usize).chain(&bases.lane).chain(&bases.warp);
    let side_by_side = (0..vector.trailing_zeros())
        .all(|bit| shared.offset(bases.register[bit as usize]) == Some(1 << bit))
        && others.into_iter().all(|basis| shared.offset(*basis).is_some_and(|at| at.is_multiple_of(vector)));
    if side_by_side { Ok(()) } else { Err(format!("{vector} registers do not lie side by side in the buffer")) }
}

fn check_dot(kernel: &Kernel, op: Op, kind: DotKind) -> Result<(), String> {
    let dot = view::Dot::at(kernel, op);
    let layouts = [dot.lhs(), dot.rhs(), dot.acc()].map(|value| kernel.layout_of(value));
    let [Some(lhs), Some(rhs), Some(acc)] = layouts else { return Ok(()) };
    let fits = match kind {
        // Before a kind is chosen there are no requirements.
        DotKind::Unset => true,
        // The operands are laid out again in shared memory.
        DotKind::FmaShared => true,
        DotKind::MmaF64 => is_mma_f64(acc),
        // `stage_operands` makes what `wgmma` needs of the operands.
        DotKind::Wgmma => crate::wgmma::AccumulatorForm::of(acc).is_some(),
        DotKind::Fma => {
            let k = lhs.shape()[lhs.rank() - 1];
            let holds = |index: u32, operand: &Layout| {
                Layout::fma_operand(acc, index, k).register_map(operand, |c| c).is_some()
            };
            holds(0, lhs) && holds(1, rhs)
        }
        DotKind::MmaV2 => {
            let bits = kernel.value_type(dot.lhs()).elem().map_or(0, |e| e.bits());
            if !matches!(bits, 8 | 16 | 32) {
                return Err(format!("mma_v2 does not take operands of {bits} bits"));
            }
            let k = lhs.shape()[lhs.rank() - 1];
            warp_grids(acc.rank(), acc.warps()).into_iter().any(|warps| {
                let plain = || {
                    *lhs == Layout::mma_operand(lhs.shape(), 0, bits, &warps)
                        && *rhs == Layout::mma_operand(rhs.shape(), 1, bits, &warps)
                };
                // In which order the steps are summed up is open, if it is the same one.
                let wide = |width: u32| {
                    *lhs == Layout::mma_operand_wide(lhs.shape(), 0, bits, width, &warps)
                        && *rhs == Layout::mma_operand_wide(rhs.shape(), 1, bits, width, &warps)
                };
                *acc == Layout::mma_v2(acc.shape(), &warps) && (plain() || Layout::mma_k_widths(k, bits).any(wide))
            })
        }
    };
    if fits { Ok(()) } else { Err(format!("the layouts do not fit a dot of kind {kind}")) }
}

/// Whether sums lie as `mma.sync` on `f64` leaves them.
fn is_mma_f64(acc: &Layout) -> bool {
    let forms = |warps: Vec<u32>| [Layout::mma_f64(acc.shape(), &warps), Layout::mma_v2(acc.shape(), &warps)];
    warp_grids(acc.rank(), acc.warps()).into_iter().flat_map(forms).any(|form| *acc == form)
}

/// The element types that a `dot` may have, in addition to its layouts.
pub(crate) fn dot_elements(lhs: Scalar, rhs: Scalar, acc: Scalar) -> bool {
    match lhs {
        Scalar::I8 => rhs == lhs && acc == Scalar::I32,
        Scalar::F16 => rhs == lhs && matches!(acc, Scalar::F16 | Scalar::F32),
        Scalar::BF16 | Scalar::F32 => rhs == lhs && acc == Scalar::F32,
        Scalar::F64 => rhs == lhs && acc == Scalar::F64,
        Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => rhs.is_fp8() && matches!(acc, Scalar::F16 | Scalar::F32),
        Scalar::I1 | Scalar::I16 | Scalar::I32 | Scalar::I64 => false,
    }
}

/// All ways to spread a power of two of warps over the axes.
fn warp_grids(rank: usize, warps: u32) -> Vec<Vec<u32>> {
    if rank == 0 {
        return if warps == 1 { vec![Vec::new()] } else { Vec::new() };
    }
    let mut out = Vec::new();
    for bits in 0..=warps.trailing_zeros() {
        for mut rest in warp_grids(rank - 1, warps >> bits) {
            rest.insert(0, 1 << bits);
            out.push(rest);
        }
    }
    out
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; order.len()];
    for (i, axis) in order.iter().enumerate() {
        inverse[*axis as usize] = i as u32;
    }
    inverse
}

/// A coordinate without the entry of one axis.
pub(crate) fn without(mut coord: Coord, axis: usize) -> Coord {
    coord.0[axis..].rotate_left(1);
    coord.0[rtc_layout::MAX_RANK - 1] = 0;
    coord
}

/// Row-major index of a coordinate.
pub(crate) fn flatten(coord: Coord, shape: &[u32]) -> u32 {
    shape.iter().enumerate().fold(0, |index, (axis, dim)| index * dim + coord[axis])
}

/// Coordinate of a row-major index.
pub(crate) fn unflatten(mut index: u32, shape: &[u32]) -> Coord {
    let mut coord = Coord::ZERO;
    for (axis, dim) in shape.iter().enumerate().rev() {
        coord[axis] = index % dim;
        index /= dim;
    }
    coord
}

/// The shape as the layout crate takes it; the layouts of a verified kernel agree with it.
pub(crate) fn has_shape(layout: &Layout, shape: &Shape) -> bool {
    layout.shape() == &shape[..]
}

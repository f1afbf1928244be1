//! The machine form of every `dot`: `wgmma` or else `mma.sync` where the target, the elements and the shape allow it, else
//! FMAs in each thread. Operands of those come from shared memory, but for the smallest dots and for
//! operands that it cannot hold.

use std::collections::HashSet;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{
    Builder, DotKind, Elem, Kernel, Op, OpKind, Precision, Rounding, Scalar, Shape, Value, view, widest_instruction,
};
use rtc_layout::{Layout, MOST_ROOM, MmaShape};

use super::computed_operand::{ComputedOperand, suits_registers};
use super::dot_users::computed_from_dot;
use super::fma_accumulator::fma_accumulator;
use super::k_width;
use crate::{PassContext, PassError, matrix_unit};

/// Layouts of one `dot`.
pub struct DotLayouts {
    /// The left operand, `[.., M, K]`; `None` if any layout will do.
    pub lhs: Option<Layout>,
    /// The right operand, `[.., K, N]`; `None` if any layout will do.
    pub rhs: Option<Layout>,
    /// The accumulator and the result.
    pub acc: Layout,
}

/// Chooses the kind of all dots and casts operands that the machine form does not take.
pub fn choose_kinds(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let all = dots(kernel);
    let by_wgmma: HashSet<Op> = if cx.structure.stages() && matrix_unit::has_async(cx.target) && !all.is_empty() {
        let infos = axis_info(kernel);
        all.iter().copied().filter(|op| suits_wgmma(kernel, cx, &infos, *op)).collect()
    } else {
        HashSet::new()
    };
    for op in all {
        let mut chosen = DotKind::Wgmma;
        if !by_wgmma.contains(&op) {
            // Byte floats are multiplied as halves, which hold them exactly.
            for index in 0..2 {
                let value = kernel.operand(op, index);
                if kernel.value_type(value).elem().and_then(Elem::num).is_some_and(Scalar::is_fp8) {
                    let half = Builder::before(kernel, op).castf(value, Elem::F16, Rounding::NearestEven)?;
                    kernel.set_operand(op, index, half);
                }
            }
            chosen = kind_of(kernel, cx, op);
        }
        if let OpKind::Dot { kind, .. } = kernel.kind_mut(op) {
            *kind = chosen;
        }
    }
    Ok(())
}

/// All dots in program order.
pub fn dots(kernel: &Kernel) -> Vec<Op> {
    rtc_ir::walk(kernel).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Dot { .. })).collect()
}

fn scalar_of(kernel: &Kernel, value: Value) -> Option<Scalar> {
    kernel.value_type(value).elem().and_then(Elem::num)
}

fn kind_of(kernel: &Kernel, cx: &PassContext, op: Op) -> DotKind {
    let OpKind::Dot { precision, .. } = kernel.kind(op) else { return DotKind::Unset };
    let dot = view::Dot::at(kernel, op);
    let (Some(lhs), Some(acc)) = (scalar_of(kernel, dot.lhs()), scalar_of(kernel, dot.acc())) else {
        return DotKind::Fma;
    };
    let supported = match (lhs, acc) {
        (Scalar::F16, Scalar::F32 | Scalar::F16) | (Scalar::BF16, Scalar::F32) | (Scalar::I8, Scalar::I32) => true,
        (Scalar::F32, Scalar::F32) => *precision == Precision::Tf32,
        _ => false,
    };
    let (Some(a), Some(c)) = (kernel.value_type(dot.lhs()).shape(), kernel.value_type(dot.acc()).shape()) else {
        return DotKind::Fma;
    };
    let rank = c.rank();
    let shape = MmaShape::for_bits(lhs.bits());
    let fits = c[rank - 2] >= shape.m && c[rank - 1] >= shape.n && a[rank - 1] >= shape.k;
    let on_tensor_cores = cx.target.capability >= 80 && supported;
    match fma_kind(kernel, cx, op) {
        _ if on_tensor_cores && fits => DotKind::MmaV2,
        // Of a fragment of fewer rows or columns the rest are copies.
        DotKind::FmaShared if on_tensor_cores && a[rank - 1] >= shape.k => DotKind::MmaV2,
        DotKind::FmaShared if cx.target.capability >= 80 && lhs == Scalar::F64 && fits => DotKind::MmaF64,
        kind => kind,
    }
}

/// Whether a dot becomes a `wgmma`.
///
/// Operands of 16 bits may be transposed in shared memory; others need K innermost, so K must be innermost in global
/// memory, or the operand must be computed. `wgmma` rounds accumulators of 8-bit floats early; if the source bounds the
/// number of imprecise additions (`max_num_imprecise_acc`), the operands are converted to halves.
fn suits_wgmma(kernel: &Kernel, cx: &PassContext, infos: &AxisInfos, op: Op) -> bool {
    let OpKind::Dot { precision, max_imprecise, .. } = kernel.kind(op) else { return false };
    let dot = view::Dot::at(kernel, op);
    let (lhs, rhs, acc) = (dot.lhs(), dot.rhs(), dot.acc());
    let supported = match (scalar_of(kernel, lhs), scalar_of(kernel, acc)) {
        (Some(Scalar::F16), Some(Scalar::F32 | Scalar::F16)) | (Some(Scalar::BF16), Some(Scalar::F32)) => true,
        (Some(Scalar::F32), Some(Scalar::F32)) => *precision == Precision::Tf32,
        (Some(Scalar::I8), Some(Scalar::I32)) => true,
        (Some(Scalar::F8E4 | Scalar::F8E5), Some(Scalar::F32)) => max_imprecise.is_none(),
        _ => false,
    };
    let halves = scalar_of(kernel, lhs).is_some_and(|scalar| scalar.bits() == 16);
    // A 32-bit operand A comes from registers otherwise, if copies load it.
    let transposed = || scalar_of(kernel, lhs) == Some(Scalar::F32) && from_registers(kernel, infos, lhs);
    let innermost = || (runs_along(kernel, infos, lhs, 1) || transposed()) && runs_along(kernel, infos, rhs, 0);
    supported && wgmma_warps(kernel, cx, op).is_some() && (halves || innermost())
}

/// Whether operand A is the transpose of a tile that is loaded with M innermost, as `transpose_dots` creates them.
fn from_registers(kernel: &Kernel, infos: &AxisInfos, lhs: Value) -> bool {
    let transposed = kernel.def_op(lhs).is_some_and(|op| matches!(kernel.kind(op), OpKind::Trans { .. }));
    transposed && !runs_along(kernel, infos, lhs, 1) && runs_along(kernel, infos, lhs, 0)
}

/// The value before one or more casts; `None` if the value is not cast.
pub fn cast_from(kernel: &Kernel, mut value: Value) -> Option<Value> {
    let mut source = None;
    while let Some(op) = kernel.def_op(value).filter(|op| kernel.kind(*op).is_unary()) {
        value = kernel.operand(op, 0);
        source = Some(value);
    }
    source
}

/// The value before the casts of an operand A that is the transpose of a loaded tile, as `transpose_dots` creates them.
fn cast_from_transposed(kernel: &Kernel, lhs: Value) -> Option<Value> {
    let source = cast_from(kernel, lhs)?;
    let transposed = view::Trans::defining(kernel, source)?;
    view::Load::defining(kernel, transposed.source()).map(|_| source)
}

/// Whether an operand, if it is loaded, lies in global memory with `axis` innermost.
pub fn runs_along(kernel: &Kernel, infos: &AxisInfos, operand: Value, axis: usize) -> bool {
    let (mut value, mut axis) = (operand, axis);
    while let Some(op) = kernel.def_op(value) {
        match kernel.kind(op) {
            OpKind::Trans { order } => axis = order[axis] as usize,
            OpKind::Hint { .. } => {}
            OpKind::Load { .. } => {
                let size = kernel.value_type(value).elem().map_or(1, |elem| u64::from(elem.bytes()));
                return infos.axis(view::Load::at(kernel, op).pointer(), axis).contiguity * size >= 16;
            }
            _ => break,
        }
        let Some(source) = kernel.forwarded(op) else { break };
        value = source;
    }
    true
}

/// The order of the rows of a dot whose operand A, with elements of `bits` bits, is computed in registers; `None` if it is
/// not.
fn computed_rows(kernel: &Kernel, op: Op, of: &ComputedOperand, bits: u32, warps: [u32; 2]) -> Option<Vec<u32>> {
    suits_registers(kernel, op, bits, warps).then_some(())?;
    let rows = kernel.value_type(view::Dot::at(kernel, op).lhs()).shape()?[0];
    let infos = axis_info(kernel);
    let in_rows = |(load, transposed): &(Op, bool)| {
        let along = |axis: usize| runs_along(kernel, &infos, kernel.result(*load, 0), axis ^ usize::from(*transposed));
        along(0) && !along(1)
    };
    let loaded = of.loads.iter().filter_map(|(load, _)| scalar_of(kernel, kernel.result(*load, 0)));
    let memory = loaded.map(Scalar::bits).max()?;
    let vectors = of.loads.iter().all(in_rows);
    Some(if vectors { Layout::rows_for_vectors(rows, warps[0], bits, memory) } else { plain_rows(rows) })
}

/// The rows as instructions count them.
fn plain_rows(rows: u32) -> Vec<u32> {
    (0..rows.trailing_zeros()).collect()
}

/// How the warps divide the accumulator of a dot whose sizes `wgmma` takes; `None` for others.
fn wgmma_warps(kernel: &Kernel, cx: &PassContext, op: Op) -> Option<[u32; 2]> {
    let [a, b, c] = kernel.dot_operands(op)?.map(|value| kernel.value_type(value));
    let (size, a, b, c) = (a.elem()?.bytes(), a.shape()?, b.shape()?, c.shape()?);
    let group = kernel.group_of(op);
    if c.rank() != 2 {
        return None;
    }
    // Both operands and room for those of another dot, or those of all dots beside it.
    let room = u64::from(cx.target.shared_bytes_max);
    let fits = (a.numel() + b.numel()) * u64::from(size) * 2 <= room || bytes_beside(kernel, op) <= room;
    let grouped = group.warps.is_multiple_of(4) && group.first.is_multiple_of(4);
    if !fits || !grouped || c[0] < 64 || a[1] < WGMMA_K_BYTES / size {
        return None;
    }
    let along_m = group.warps.min(c[0] / 16);
    let along_n = group.warps / along_m;
    (c[1] >= 8 * along_n).then_some([along_m, along_n])
}

/// The shared memory of the operands of a dot and of those in the same block: two slots for what is loaded there, one for
/// others, none for what is computed from a dot.
fn bytes_beside(kernel: &Kernel, op: Op) -> u64 {
    let block = kernel.op(op).parent;
    let beside = dots(kernel).into_iter().filter(|other| kernel.op(*other).parent == block);
    let operands = beside.flat_map(|other| {
        let dot = view::Dot::at(kernel, other);
        let lhs = (!computed_from_dot(kernel, dot.lhs())).then(|| dot.lhs());
        lhs.into_iter().chain([dot.rhs()])
    });
    let is_view = |kind: &OpKind| matches!(kind, OpKind::Trans { .. } | OpKind::Hint { .. });
    let sources: HashSet<Value> = operands.map(|operand| kernel.source_through(operand, is_view)).collect();
    let bytes = |value: Value| {
        let ty = kernel.value_type(value);
        let size = ty.shape().map_or(0, |shape| shape.numel()) * ty.elem().map_or(0, |elem| u64::from(elem.bytes()));
        let loaded = kernel
            .def_op(value)
            .is_some_and(|made| matches!(kernel.kind(made), OpKind::Load { .. }) && kernel.op(made).parent == block);
        if loaded { 2 * size } else { size }
    };
    sources.into_iter().map(bytes).sum()
}

/// Bytes of K that an instruction takes.
const WGMMA_K_BYTES: u32 = 32;

/// FMAs per thread up to which the operands of a dot stay in registers.
const FEW_FMAS: u64 = 64;

/// Where a dot by FMAs has its operands.
fn fma_kind(kernel: &Kernel, cx: &PassContext, op: Op) -> DotKind {
    let types = kernel.op(op).operands.iter().map(|value| kernel.value_type(*value));
    let (shapes, elems): (Vec<_>, Vec<_>) = types.filter_map(|ty| Some((ty.shape()?, ty.elem()?))).unzip();
    let ([a, b, c], Some(elem)) = (&shapes[..], elems.last()) else { return DotKind::Fma };
    let threads = 32 * u64::from(kernel.group_of(op).warps);
    let steps = a[a.rank() - 1];
    let few = (c.numel() / threads).max(1) * u64::from(steps) <= FEW_FMAS;
    let bytes = (a.numel() + b.numel()) * u64::from(elem.bytes()) + 2 * u64::from(steps * MOST_ROOM);
    if few || bytes > u64::from(cx.target.shared_bytes_max) { DotKind::Fma } else { DotKind::FmaShared }
}

/// The layouts of a dot whose kind is chosen, and whose operand A may be computed.
pub fn layouts(
    kernel: &Kernel,
    cx: &PassContext,
    op: Op,
    chained: bool,
    computed: Option<&ComputedOperand>,
) -> Option<DotLayouts> {
    let OpKind::Dot { kind, .. } = kernel.kind(op) else { return None };
    let lhs = view::Dot::at(kernel, op).lhs();
    let a = kernel.value_type(lhs).shape()?;
    let c = kernel.value_type(view::Dot::at(kernel, op).acc()).shape()?;
    let warps = kernel.group_of(op).warps;
    Some(match kind {
        DotKind::MmaV2 => {
            let bits = scalar_of(kernel, lhs)?.bits();
            let casts = [lhs, view::Dot::at(kernel, op).rhs()].map(|operand| k_width::is_cast(kernel, operand, bits));
            let warps = mma_warps(c, warps, chained, casts);
            let dot = k_width::DotOperands { kernel, op, bits, warps: &warps, chained };
            let [lhs, rhs] = dot.operands(cx);
            DotLayouts { lhs: Some(lhs), rhs: Some(rhs), acc: Layout::mma_v2(&c, &warps) }
        }
        DotKind::Wgmma => {
            let warps = wgmma_warps(kernel, cx, op)?;
            let sums = scalar_of(kernel, view::Dot::at(kernel, op).acc())?;
            let widest = widest_instruction(sums.bits(), kernel.register_limit());
            let acc = Layout::wgmma(&c, (c[1] / warps[1]).min(widest), warps);
            let bits = scalar_of(kernel, lhs)?.bits();
            let operand = || Layout::wgmma_operand(&a, bits, warps);
            let transposed = Some(lhs).filter(|_| bits == 16).and_then(|lhs| cast_from_transposed(kernel, lhs));
            match (bits, transposed) {
                // The result of another dot is in registers already and stays there.
                (16, _) if computed_from_dot(kernel, lhs) => DotLayouts { lhs: Some(operand()), rhs: None, acc },
                (_, Some(source)) => {
                    let memory = scalar_of(kernel, source)?.bits();
                    let in_rows = runs_along(kernel, &axis_info(kernel), source, 0);
                    let rows =
                        if in_rows { Layout::rows_for_vectors(a[0], warps[0], bits, memory) } else { plain_rows(a[0]) };
                    DotLayouts { lhs: Some(operand().with_rows(&rows)), rhs: None, acc: acc.with_rows(&rows) }
                }
                (32, _) if from_registers(kernel, &axis_info(kernel), lhs) => {
                    let rows = Layout::rows_for_vectors(a[0], warps[0], bits, bits);
                    DotLayouts { lhs: Some(operand().with_rows(&rows)), rhs: None, acc: acc.with_rows(&rows) }
                }
                _ => {
                    let rows = computed.and_then(|of| computed_rows(kernel, op, of, bits, warps));
                    match rows {
                        Some(rows) => {
                            DotLayouts { lhs: Some(operand().with_rows(&rows)), rhs: None, acc: acc.with_rows(&rows) }
                        }
                        None => DotLayouts { lhs: None, rhs: None, acc },
                    }
                }
            }
        }
        DotKind::MmaF64 => {
            let warps = mma_warps(c, warps, chained, [false; 2]);
            // From 16 rows on, pairs of eight rows lie in one thread: newer targets have an instruction for them.
            let tall = c[c.rank() - 2] >= 16;
            let acc = if tall { Layout::mma_v2(&c, &warps) } else { Layout::mma_f64(&c, &warps) };
            DotLayouts { lhs: None, rhs: None, acc }
        }
        DotKind::FmaShared => DotLayouts { lhs: None, rhs: None, acc: fma_accumulator(c, warps) },
        DotKind::Fma | DotKind::Unset => {
            let acc = fma_accumulator(c, warps);
            let k = a[a.rank() - 1];
            let operand = |index| Some(Layout::fma_operand(&acc, index, k));
            DotLayouts { lhs: operand(0), rhs: operand(1), acc }
        }
    })
}

/// How many times the work of an element that `ldmatrix` reads one is that is read and converted.
const CAST_WORK: u32 = 4;

/// How the warps divide the accumulator: near squares, or along M where one dot feeds another, so that a row of the
/// first result stays within a warp. Warps for which M has no rows divide N then: they would all multiply the same.
/// Warps beside each other read and convert the same elements of an operand, so they rather divide one that is cast.
pub fn mma_warps(c: Shape, warps: u32, chained: bool, casts: [bool; 2]) -> Vec<u32> {
    let rank = c.rank();
    let (m, n) = (c[rank - 2], c[rank - 1]);
    let mut out = vec![1; rank];
    let mut left = warps;
    for axis in 0..rank - 2 {
        out[axis] = left.min(c[axis]);
        left /= out[axis];
    }
    if chained {
        out[rank - 2] = left.min((m / 16).max(1));
        out[rank - 1] = (left / out[rank - 2]).min((n / 8).max(1));
        out[rank - 2] = left / out[rank - 1];
        return out;
    }
    let [of_lhs, of_rhs] = casts.map(|is_cast| if is_cast { CAST_WORK } else { 1 });
    while left > 1 {
        let (rows, columns) = (m / (16 * out[rank - 2]), n / (8 * out[rank - 1]));
        let along_m = columns <= 1 || (rows > 1 && of_lhs * 2 * rows >= of_rhs * columns);
        out[if along_m { rank - 2 } else { rank - 1 }] *= 2;
        left /= 2;
    }
    out
}

/// Whether the result of some dot reaches an operand of another without going through memory.
pub fn is_chained(kernel: &Kernel) -> bool {
    let all = dots(kernel);
    all.iter().any(|op| {
        let mut seen = HashSet::new();
        let dot = view::Dot::at(kernel, *op);
        [dot.lhs(), dot.rhs()].into_iter().any(|value| reaches_dot(kernel, value, &mut seen))
    })
}

fn reaches_dot(kernel: &Kernel, value: Value, seen: &mut HashSet<Value>) -> bool {
    if !seen.insert(value) {
        return false;
    }
    let Some(op) = kernel.def_op(value) else { return false };
    match kernel.kind(op) {
        OpKind::Dot { .. } => true,
        OpKind::Load { .. } => false,
        _ => kernel.op(op).operands.iter().any(|v| reaches_dot(kernel, *v, seen)),
    }
}

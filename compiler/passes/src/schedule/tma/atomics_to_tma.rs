//! Makes copies by TMA of atomic operations that combine tiles with boxes of tensors, in kernels whose warps do all the same.
//!
//! ```text
//! atomic_rmw %p, %x, mask = .. {op = fadd}   →   local_store %x, %b
//!                                                barrier
//!                                                copy_desc_reduce %map, %b, (row, column) {op = fadd}
//! ret                                        →   copy_desc_wait; ret
//! ```
//!
//! Which of them can be copies is in `tma_reductions.rs`, which has it for partitions, too. Where shared memory does not hold the
//! tiles, or TMA does not reach them, they stay as they are.

use rtc_abi::Feature;
use rtc_ir::analysis::Ranges;
use rtc_ir::{Builder, Kernel, Op, OpKind, Phase};

use super::argument_maps;
use super::coordinates::Names;
use super::tensor_maps::{buffers, copy_out, store_maps};
use super::tma_reductions;
use crate::access::box_access::BoxAccess;
use crate::access::box_analysis::BoxAnalysis;
use crate::pass::missing;
use crate::schedule::resources::{STORED_BYTES, fits_shared};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "atomics-to-tma", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if !cx.structure.stages() || !cx.target.has(Feature::Tma) || kernel.specialization().is_some() {
        return Ok(());
    }
    // Parameters of descriptors are exchanged for maps, and hidden ones come last: this pass has run already.
    if kernel.params.iter().any(|param| param.hidden.is_some()) {
        return Ok(());
    }
    let found = found(kernel);
    if found.is_empty() {
        return Ok(());
    }
    let mut made = kernel.clone();
    if !replace(&mut made, &found)? {
        return Ok(());
    }
    crate::tile::dce::run(&mut made, cx)?;
    argument_maps::drop_addresses(&mut made);
    if fits_shared(&made, cx, cx.target.shared_bytes_max)? {
        *kernel = made;
    }
    Ok(())
}

/// The atomic operations that can be copies by maps that the host makes.
fn found(kernel: &Kernel) -> Vec<(Op, BoxAccess)> {
    let all = rtc_ir::walk(kernel).into_iter();
    let atomics: Vec<Op> = all.filter(|op| matches!(kernel.kind(*op), OpKind::AtomicRmw { .. })).collect();
    if atomics.is_empty() {
        return Vec::new();
    }
    let ranges = Ranges::new(kernel);
    let mut known = BoxAnalysis::new(kernel, &ranges);
    let accesses = atomics.into_iter().filter_map(|op| Some((op, tma_reductions::access(&mut known, op).ok()?)));
    accesses.filter(|(_, access)| !access.is_made).collect()
}

/// Makes the copies; false if no buffer can be copied from.
fn replace(kernel: &mut Kernel, found: &[(Op, BoxAccess)]) -> Result<bool, PassError> {
    let maps = store_maps(kernel, found, STORED_BYTES * kernel.options.num_warps)?;
    if maps.is_empty() {
        return Ok(false);
    }
    let body = kernel.body();
    let mut builder = Builder::at_start(kernel, body);
    let outs = buffers(&maps, &mut builder)?;
    let mut grid = |kind: fn(u32) -> OpKind| -> Result<_, PassError> {
        let mut values = Vec::new();
        for axis in 0..3 {
            let op = builder.build(kind(axis), &[], &[], &[], &[], &[])?;
            values.push(builder.kernel().result(op, 0));
        }
        <[_; 3]>::try_from(values).map_err(|_| missing("an axis"))
    };
    let pids = grid(|axis| OpKind::ProgramId { axis })?;
    let grid = grid(|axis| OpKind::NumPrograms { axis })?;
    copy_out(kernel, found, &maps, &outs, &Names { pids, grid, map: None })?;
    drop_first_wait(kernel);
    let ret = kernel.terminator(body).ok_or_else(|| missing("an end"))?;
    let wait = OpKind::CopyDescWait { pending: 0, read: true };
    Builder::before(kernel, ret).build(wait, &[], &[], &[], &[], &[])?;
    Ok(true)
}

/// Removes the wait before all copies, and the barrier after it.
fn drop_first_wait(kernel: &mut Kernel) {
    let copies = |op: Op| {
        rtc_ir::walk_op(kernel, op).into_iter().any(|op| matches!(kernel.kind(op), OpKind::CopyDescReduce { .. }))
    };
    let Some(first) = kernel.ops(kernel.body()).find(|op| copies(*op)) else { return };
    let before = kernel.ops(kernel.body()).take_while(|op| *op != first);
    let wait = before.into_iter().find(|op| matches!(kernel.kind(*op), OpKind::CopyDescWait { .. }));
    let Some(wait) = wait else { return };
    let barrier = kernel.next_op(wait).filter(|op| matches!(kernel.kind(*op), OpKind::Barrier {}));
    for op in [Some(wait), barrier].into_iter().flatten() {
        kernel.erase(op);
    }
}

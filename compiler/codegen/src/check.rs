//! Operations that a target does not support, found before lowering.
//!
//! LLVM aborts in instruction selection when the chip lacks an instruction; here the same is reported with the
//! operation's span.

use rtc_abi::{Feature, MAX_THREADS, Target};
use rtc_ir::effects::Space;
use rtc_ir::{DotKind, Elem, Kernel, Op, OpKind, Scalar, walk};

use crate::error::{CodegenError, Result};

/// Checks every operation of the kernel, and its size, against the target.
pub(crate) fn check(kernel: &Kernel, target: &Target) -> Result<()> {
    if kernel.shared_bytes > target.shared_bytes_max {
        return Err(CodegenError::Resource {
            what: "shared memory".to_owned(),
            needed: kernel.shared_bytes,
            available: target.shared_bytes_max,
            target: target.name.to_owned(),
        });
    }
    if crate::lower::threads_per_block(kernel) > MAX_THREADS {
        return Err(CodegenError::Resource {
            what: "threads of a block".to_owned(),
            needed: crate::lower::threads_per_block(kernel),
            available: MAX_THREADS,
            target: target.name.to_owned(),
        });
    }
    if kernel.options.num_ctas > 1 && !target.has(Feature::Clusters) {
        return Err(unsupported("a cluster of blocks", target, None));
    }
    // LLVM ends on a symbol that PTX cannot spell.
    let spelt = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !kernel.name.chars().all(spelt) || kernel.name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
        let what = format!("the name `{}` of a kernel, which may have ASCII letters, digits and `_`,", kernel.name);
        return Err(unsupported(&what, target, None));
    }
    for op in walk(kernel) {
        if let Some(what) = missing(kernel, op, target) {
            return Err(unsupported(&what, target, kernel.loc(kernel.op(op).loc).span));
        }
    }
    Ok(())
}

fn unsupported(what: &str, target: &Target, span: Option<rtc_source::Span>) -> CodegenError {
    CodegenError::Unsupported { what: what.to_owned(), target: target.name.to_owned(), span }
}

/// The feature that an operation needs and the target lacks.
fn missing(kernel: &Kernel, op: Op, target: &Target) -> Option<String> {
    let data = kernel.op(op);
    let elem = |index: usize| data.operands.get(index).and_then(|value| kernel.value_type(*value).elem());
    match &data.kind {
        OpKind::Dot { kind: DotKind::MmaV2, .. } => {
            let is_fp8 = |index| elem(index).and_then(Elem::num).is_some_and(Scalar::is_fp8);
            (is_fp8(0) && !target.has(Feature::Fp8Mma)).then(|| "`mma.sync` on 8-bit floats".to_owned())
        }
        OpKind::Dot { kind: DotKind::MmaF64, .. } | OpKind::DotBuffers { kind: DotKind::MmaF64 } => {
            (target.capability < 80).then(|| "`mma.sync` on `f64`".to_owned())
        }
        OpKind::WarpSpecialize { registers: Some(_), .. } => {
            let lacks = kernel.registers_at_start().is_some() && !target.has(Feature::RegisterBudgets);
            lacks.then(|| "`setmaxnreg`, which sets the registers of each partition,".to_owned())
        }
        OpKind::CopyAsync { .. } | OpKind::CopyCommit {} | OpKind::CopyWait { .. } => {
            (!target.has(Feature::CpAsync)).then(|| "`cp.async`".to_owned())
        }
        OpKind::CopyDescStore {} | OpKind::CopyDescReduce { .. } | OpKind::CopyDescWait { .. } => {
            (!target.has(Feature::Tma)).then(|| "a copy by a tensor descriptor".to_owned())
        }
        OpKind::MakeMap { .. } => {
            (!target.has(Feature::RegisterBudgets)).then(|| "`tensormap.replace`, which makes tensor maps,".to_owned())
        }
        OpKind::Mma {} | OpKind::MmaAsync {} | OpKind::MmaWait { .. } => {
            (!target.has(Feature::Wgmma)).then(|| "`wgmma`".to_owned())
        }
        OpKind::FenceAsync {} => {
            (!target.has(Feature::Tma)).then(|| "a fence between threads and copies of tiles".to_owned())
        }
        OpKind::GridDependency { .. } => {
            (!target.has(Feature::DependentLaunch)).then(|| "programmatic dependent launch".to_owned())
        }
        // Copies that signal a barrier have it as an operand.
        _ => {
            let barrier = kernel.effects(op).any(|(effect, _)| effect.space == Space::Barrier);
            (barrier && !target.has(Feature::Tma)).then(|| "a barrier that counts bytes".to_owned())
        }
    }
}

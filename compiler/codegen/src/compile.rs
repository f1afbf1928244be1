//! The way of one kernel from tile IR to PTX.

use std::sync::Arc;

use rtc_abi::Target;
use rtc_ir::{Kernel, OpKind, Phase, Verified};
use rtc_source::SourceMap;

use melior::ir::operation::OperationLike;

use crate::{
    check,
    context::MlirContext,
    error::{CodegenError, Result},
    lower,
    translate::{self, Link, Want},
};

/// The output in addition to PTX.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodegenOptions {
    /// Keep the text of the thread-level MLIR.
    pub mlir: bool,
    /// Keep the text of the module in the LLVM dialect.
    pub llvm_dialect: bool,
    /// Keep the text of the optimized LLVM IR.
    pub llvm: bool,
    /// The library that `extern_call` takes its functions from.
    pub library: Option<Library>,
    /// Whether debuggers are given the variables of the kernel, in debug sections of the PTX.
    pub debug_info: bool,
    /// The most operations of a thread before they are optimized; a kernel with more is refused. `None`: any number.
    pub max_operations: Option<usize>,
}

/// A library of functions in LLVM's bitcode, such as NVIDIA's libdevice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The bitcode.
    pub bitcode: Arc<[u8]>,
    /// Whether its functions treat denormals of `f32` as zeros, if they query it (by `__nvvm_reflect`).
    pub flush_denormals: bool,
}

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The PTX text.
    pub ptx: String,
    /// The thread-level MLIR, if requested.
    pub mlir: Option<String>,
    /// The module in the LLVM dialect, if requested.
    pub llvm_dialect: Option<String>,
    /// The optimized LLVM IR, if requested.
    pub llvm: Option<String>,
}

/// Compiles a kernel of phase `Scheduled`.
pub fn compile(
    kernel: Verified<'_>,
    sources: &SourceMap,
    target: &'static Target,
    options: CodegenOptions,
) -> Result<Output> {
    let kernel = kernel.kernel();
    if kernel.phase != Phase::Scheduled {
        return Err(CodegenError::lowering(format!("a kernel of phase {:?}", kernel.phase)));
    }
    check::check(kernel, target)?;
    translate::guarded(|| generate(kernel, sources, target, options))
}

/// Tile IR to PTX, by MLIR and LLVM.
fn generate(kernel: &Kernel, sources: &SourceMap, target: &'static Target, options: CodegenOptions) -> Result<Output> {
    let cx = MlirContext::new();
    let mut module = lower::module(
        cx.get(),
        kernel,
        sources,
        target,
        options.max_operations.unwrap_or(usize::MAX),
        options.debug_info,
    )?;
    if !module.as_operation().verify() {
        return Err(CodegenError::Mlir { stage: "verification", diagnostics: cx.take_diagnostics() });
    }
    let mlir = options.mlir.then(|| module.as_operation().to_string());
    translate::to_llvm_dialect(&cx, &mut module)?;
    let llvm_dialect = options.llvm_dialect.then(|| module.as_operation().to_string());
    let llvm_module = translate::to_llvm(&cx, &module)?;
    let want = if options.llvm { Want::Both } else { Want::Ptx };
    let link = link(kernel, options.library)?;
    let emitted = translate::emit(llvm_module, target, want, link)?;
    Ok(Output { ptx: emitted.ptx, mlir, llvm_dialect, llvm: options.llvm.then_some(emitted.llvm) })
}

/// The library to link: none if the kernel calls nothing.
fn link(kernel: &Kernel, library: Option<Library>) -> Result<Option<Link>> {
    let calls = rtc_ir::walk(kernel).into_iter().any(|op| matches!(kernel.kind(op), OpKind::ExternCall { .. }));
    match library {
        _ if !calls => Ok(None),
        Some(library) => Ok(Some(Link { library, fuse: kernel.options.fp_fusion })),
        None => {
            Err(CodegenError::Library { message: "the kernel calls functions of bitcode, but none is given".into() })
        }
    }
}

#[cfg(test)]
mod tests;

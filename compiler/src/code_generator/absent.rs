//! No code generator.

use std::sync::Arc;

use rtc_abi::Target;
use rtc_ir::Verified;
use rtc_program::Failure;
use rtc_source::{Code, SourceMap};

/// The texts to keep, which nothing makes.
#[derive(Default)]
#[expect(dead_code, reason = "nothing reads them here")]
pub(crate) struct CodegenOptions {
    pub mlir: bool,
    pub llvm_dialect: bool,
    pub llvm: bool,
    pub library: Option<Library>,
    pub debug_info: bool,
    pub max_operations: Option<usize>,
}

/// A library of functions in bitcode.
#[expect(dead_code, reason = "nothing reads it here")]
pub(crate) struct Library {
    pub bitcode: Arc<[u8]>,
    pub flush_denormals: bool,
}

/// A compiled kernel.
pub(crate) struct Output {
    pub ptx: String,
    pub mlir: Option<String>,
    pub llvm_dialect: Option<String>,
    pub llvm: Option<String>,
}

/// The version of LLVM: none.
pub fn llvm_version() -> String {
    "none".to_owned()
}

/// Refuses all kernels.
pub(crate) fn compile(
    _: Verified<'_>,
    _: &SourceMap,
    _: &'static Target,
    _: CodegenOptions,
) -> Result<Output, Failure> {
    let message = "this build has no code generator: the feature `codegen` of the crate rtc-compiler is off";
    Err(Failure::request(Code::UNSUPPORTED_TARGET, message))
}

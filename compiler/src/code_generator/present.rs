//! The code generator and its errors as those of a compilation.

use rtc_abi::Target;
use rtc_codegen::CodegenError;
pub(crate) use rtc_codegen::{CodegenOptions, Library, Output};
use rtc_ir::Verified;
use rtc_program::Failure;
use rtc_source::{Code, Diagnostic, SourceMap};

/// PTX of a kernel of phase `Scheduled`.
pub(crate) fn compile(
    kernel: Verified<'_>,
    sources: &SourceMap,
    target: &'static Target,
    options: CodegenOptions,
) -> Result<Output, Failure> {
    rtc_codegen::compile(kernel, sources, target, options).map_err(|error| match error {
        CodegenError::Unsupported { span: Some(span), .. } => {
            Failure::Diagnostics(vec![Diagnostic::error(Code::UNSUPPORTED_TARGET, span, error.to_string())])
        }
        CodegenError::TooLong { span: Some(span), .. } => {
            Failure::Diagnostics(vec![Diagnostic::error(Code::OUT_OF_RESOURCES, span, error.to_string()).help(
                "use smaller blocks and loops over them, or more warps; the option `max_instructions` raises the limit",
            )])
        }
        CodegenError::TooLong { span: None, .. } => Failure::request(Code::OUT_OF_RESOURCES, error.to_string()),
        CodegenError::Unsupported { span: None, .. } => Failure::request(Code::UNSUPPORTED_TARGET, error.to_string()),
        CodegenError::Library { message } => Failure::request(Code::LIBDEVICE, message),
        CodegenError::Resource { .. } => Failure::request(Code::OUT_OF_RESOURCES, error.to_string()),
        CodegenError::Lowering { .. } | CodegenError::Mlir { .. } | CodegenError::Llvm { .. } => Failure::Internal {
            message: error.to_string(),
            stage: "codegen".into(),
            ir: Some(rtc_ir::text::print(kernel.kernel())),
        },
    })
}

//! The code generator, which links LLVM, or nothing in its place: without the feature `codegen` all stages up to `scheduled`
//! are there.

#[cfg(feature = "codegen")]
mod present;
#[cfg(feature = "codegen")]
pub(crate) use present::{CodegenOptions, Library, Output, compile};
#[cfg(feature = "codegen")]
pub use rtc_codegen::llvm_version;

#[cfg(not(feature = "codegen"))]
mod absent;
#[cfg(not(feature = "codegen"))]
pub use absent::llvm_version;
#[cfg(not(feature = "codegen"))]
pub(crate) use absent::{CodegenOptions, Library, Output, compile};

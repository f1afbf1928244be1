//! The input of a compilation: source files with their imports, the kernels in them, and requests for kernels.
//!
//! | file | content |
//! | --- | --- |
//! | `program.rs` | the files, parsed; `imports.rs`: the modules that they import |
//! | `kernels.rs`, `docs.rs`, `no_kernel.rs` | the kernels of a file, their comments, the reason if there is none |
//! | `signature.rs`, `spec.rs` | the requested specialization, as one line of text and as JSON |
//! | `tuning.rs` | the configurations that the decorators of a kernel list |
//! | `failure.rs` | the result of a request that cannot be carried out |
//!
//! No LLVM and no passes: editors use this crate, too.
#![warn(clippy::missing_errors_doc)]

mod docs;
mod failure;
mod imports;
mod kernels;
mod no_kernel;
mod program;
mod signature;
mod spec;
mod tuning;

pub use failure::Failure;
pub use imports::{file_candidates, imports};
pub use kernels::{KernelInfo, ParamInfo, PinnedType, candidates};
pub use program::{ImportedModule, Program, Source};
pub use signature::{Signature, SignatureError};
pub use spec::{OPTION_NAMES, RTC_OPTION_NAMES, Spec, const_from_json, const_to_json, set_option};

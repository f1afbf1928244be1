//! The compiler as a library: source text to PTX.
//!
//! Pure: no files, no environment, no clock, no GPU; the same input gives the same bytes. The stages of a kernel:
//!
//! ```text
//! Program::parse ──► Spec::specialize ──► compile ──► Artifact { ptx, metadata }
//!   files, read       kernel, arguments     sema, passes, codegen (stages.rs)
//! ```
//!
//! Without the default feature `codegen`, which needs LLVM, kernels are compiled as far as tile IR of phase `scheduled`.
//!
//! Errors are returned as a [`Failure`]: the user's mistakes as diagnostics with locations in the source, invalid
//! requests (an unknown kernel or target) as one sentence, and bugs of the compiler with their stage.
#![warn(clippy::missing_errors_doc)]

mod artifact;
mod code_generator;
mod decisions;
mod explain;
mod fingerprint;
mod fix;
mod memory;
mod packed;
mod plan_remarks;
mod spans;
mod stage;
mod stages;
mod tile_ir;
mod tuning;

pub use artifact::Artifact;
pub use code_generator::llvm_version;
pub use decisions::{Decisions, decisions};
pub use explain::explain;
pub use fingerprint::{BUILD_ID, COMPILER_VERSION, fingerprint, names_matter, source_hash, tile_fingerprint};
pub use fix::{Fix, fix};
pub use packed::{Packed, pack, packed_metadata, unpack};
pub use rtc_abi as abi;
pub use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions, Specialization};
pub use rtc_abi::tuning::{Choice, HostValue, Tuning};
pub use rtc_abi::{DType, Metadata, ValueType};
pub use rtc_passes::work;
pub use rtc_program::{
    Failure, KernelInfo, OPTION_NAMES, ParamInfo, PinnedType, Program, RTC_OPTION_NAMES, Signature, SignatureError,
    Source, Spec, const_from_json, const_to_json, file_candidates, set_option,
};
pub use rtc_sema::suggest;
pub use rtc_source as source;
pub use rtc_source::{Level, Levels};
pub use stage::Stage;
pub use stages::{
    Analysed, Compiled, DEFAULT_ARCH, Observer, Silent, analyse, compile, emit, pass_names, print_ast, target_names,
};
pub use tile_ir::TileKernel;
pub use tuning::estimate;

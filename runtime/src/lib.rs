//! Running compiled kernels: devices, memory, launches.
//!
//! A [`Device`] is an NVIDIA GPU, the PTX emulator or (with the features `jit` and `emulator`) the interpreter of the tile IR. Kernels
//! come as PTX and metadata, which `rtc build` or a build script with `rtc-build` made; with the feature `jit` they are
//! compiled here.
//!
//! Features: `cuda` and `emulator` (both by default) bring the devices, `jit` the compiler, and together with
//! `emulator` the interpreter. Only `jit` needs LLVM; `ndarray`, `dlpack`, `cudarc` and `float8` take and give what other libraries have; `nvtx` shows launches by name
//! in NVIDIA's profilers. Compilations, the cache, tuning and launches are spans of the crate `tracing`, with the targets
//! `rtc::compile`, `rtc::cache`, `rtc::tune` and `rtc::launch`. A program that ships for GPUs
//! alone takes `default-features = false, features = ["cuda"]` and carries no emulator; without a GPU it still builds and starts, since the CUDA driver is looked for when a CUDA device is opened.
//!
//! | type | is |
//! | --- | --- |
//! | [`Device`] | a GPU, an emulator or an interpreter, with its memory |
//! | [`Buffer`], [`Slice`], [`SliceMut`] | memory of a device, and parts of it that are borrowed |
//! | [`PinnedBuffer`] | page-locked memory of the host |
//! | [`Kernel`], [`Module`] | a loaded kernel, with or without the types of its arguments; several kernels |
//! | [`Grid`], [`Arg`], [`TensorDescriptor`] | what a launch takes |
//! | [`Stream`], [`Event`], [`Graph`] | the order of work, points in it, and work that is recorded |
//! | [`Error`], [`Finding`], [`Warning`] | what ends a call, what looks wrong in a launch, what is only told |
//!
//! ```
//! use rtc_runtime::Device;
//! let device = Device::auto();
//! let x = device.upload(&[1.0f32, 2.0])?;
//! assert_eq!(x.to_vec()?, [1.0, 2.0]);
//! # Ok::<(), rtc_runtime::Error>(())
//! ```
//!
//! Launches are safe functions: what is not proved to stay within the memory of its arguments is refused, and `unsafe`
//! functions launch it all the same. The page `docs/rust/launch-safety.md` states the contract.
//!
//! Invariants: `unsafe` is confined to the driver (`backend/cuda/`), to memory of other libraries (`interop.rs`, `dlpack.rs`,
//! `foreign.rs`) or without a buffer (`address.rs`, `jit/prepared.rs`), and to code and launches that a caller guarantees (`kernel.rs`, `kernel/`,
//! `module.rs`, `include.rs`, `typed.rs`, `jit.rs`, `jit/kernel.rs`, `jit/program.rs`), and to NVTX (`nvtx.rs`); a launch is checked against the
//! kernel's metadata, with all that its signature promised, before anything runs.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
compile_error!("rtc-runtime needs a device: enable the feature `cuda`, `emulator` or both");

mod address;
mod arg;
mod argument;
#[cfg(feature = "ndarray")]
mod array;
mod backend;
mod buffer;
mod descriptor;
mod device;
#[cfg(feature = "dlpack")]
pub mod dlpack;
mod element;
mod error;
mod extent;
mod finding;
mod foreign;
mod fp8;
mod graph;
mod grid;
mod include;
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "cudarc")]
pub mod interop;
#[cfg(feature = "emulator")]
mod interrupt;
#[cfg(feature = "jit")]
pub mod jit;
mod kernel;
mod line_info;
mod module;
#[cfg(feature = "nvtx")]
mod nvtx;
mod pinned;
mod place;
mod pointer;
pub mod prelude;
mod ptx_check;
mod quantile;
mod recording;
mod replica;
mod slice;
mod snapshot;
mod spans;
mod stream;
mod stream_alloc;
mod tensor_map;
mod transfer;
mod typed;
mod uses;
mod warning;

pub use address::DeviceAddress;
pub use arg::Arg;
#[cfg(feature = "jit")]
pub use arg::Constant;
pub use backend::{DeviceKind, KernelUsage};
pub use buffer::Buffer;
pub use descriptor::TensorDescriptor;
pub use device::{Device, MemoryInfo};
pub use element::{Element, Pod, from_bytes, to_bytes};
pub use error::{Error, Result};
pub use finding::Finding;
pub use fp8::{Fp8E4M3, Fp8E5M2};
pub use graph::Graph;
pub use grid::Grid;
pub use half;
pub use include::Variant;
#[cfg(feature = "emulator")]
pub use interrupt::Interrupt;
pub use kernel::{Configuration, DynArgs, Kernel};
pub use line_info::set_line_info;
pub use module::Module;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use pinned::PinnedBuffer;
pub use pointer::Pointer;
pub use rtc_abi as abi;
pub use rtc_abi::Metadata;
#[cfg(feature = "emulator")]
pub use rtc_emulator::{FaultKind, counters, sanitize, timeline};
pub use slice::{Slice, SliceMut};
pub use stream::{Event, Stream};
pub use typed::{ArgumentFor, Arguments, Parameter, Parameters, Read, Write};
pub use warning::{Warning, on_warning};

/// Whether this crate has the feature `jit`, with which kernels can be compiled while the program runs.
///
/// ```
/// // A program that must not compile while it runs.
/// # if false {
/// assert!(!rtc_runtime::HAS_JIT);
/// # }
/// ```
pub const HAS_JIT: bool = cfg!(feature = "jit");

/// Metadata for tests: one warp, nothing special.
#[cfg(test)]
pub(crate) fn test_metadata(symbol: &str, params: Vec<rtc_abi::Param>) -> Metadata {
    Metadata { params, ..Metadata::new(symbol, "sm_80", 83, 32, Vec::new()) }
}

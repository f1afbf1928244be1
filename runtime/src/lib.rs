//! Running compiled kernels: devices, memory, launches.
//!
//! A [`Device`] is an NVIDIA GPU, the PTX emulator or (with the feature `jit`) the interpreter of the tile IR. Kernels
//! come as PTX and metadata, which `rtc build` or a build script with `rtc-build` made; with the feature `jit` they are
//! compiled here. Without that feature the crate needs neither the compiler nor LLVM, and without a GPU it still builds
//! and runs: the CUDA driver is looked for when a CUDA device is opened.
//!
//! ```
//! use rtc_runtime::Device;
//! let device = Device::auto();
//! let x = device.upload(&[1.0f32, 2.0])?;
//! assert_eq!(x.to_vec()?, [1.0, 2.0]);
//! # Ok::<(), rtc_runtime::Error>(())
//! ```
//!
//! Invariants: `unsafe` stands only in `cuda.rs`, and in `address.rs`, which leaves memory without a buffer, and memory that
//! somebody else has a part of, to those who vouch for it; a launch is checked against the kernel's metadata, with all that its signature promised, before
//! anything runs; a launch allocates nothing.

mod address;
mod arg;
mod argument;
mod buffer;
mod compare;
mod cuda;
mod device;
mod element;
mod error;
mod fp8;
mod include;
#[cfg(feature = "jit")]
pub mod jit;
mod kernel;
mod launch_file;
mod ptx_check;
mod slice;
mod stream;
mod tensor_map;
mod tensors;

pub use address::DeviceAddress;
pub use arg::{Arg, Pointer};
pub use buffer::Buffer;
pub use compare::{Comparison, Tolerance, compare};
pub use device::{Device, DeviceKind};
pub use element::Element;
pub use error::{Error, Result};
pub use fp8::{Fp8E4M3, Fp8E5M2};
pub use include::Variant;
pub use kernel::{Grid, Kernel, KernelUsage};
pub use launch_file::{LaunchFile, Outcome};
pub use rtc_abi as abi;
pub use rtc_abi::Metadata;
pub use rtc_emulator::FaultKind;
pub use rtc_source::json_fields::FieldError;
pub use slice::{Slice, SliceMut};
pub use stream::{Event, Stream};
pub use tensor_map::TensorDescriptor;
pub use tensors::{Dtype, Tensor, Tensors};

/// Metadata for tests: one warp, nothing special.
#[cfg(test)]
pub(crate) fn test_metadata(symbol: &str, params: Vec<rtc_abi::Param>) -> Metadata {
    Metadata {
        kernel: symbol.into(),
        symbol: symbol.into(),
        arch: "sm_80".into(),
        ptx_version: 83,
        num_warps: 1,
        num_ctas: 1,
        threads_per_block: 32,
        shared_bytes: 0,
        global_scratch_bytes: 0,
        global_scratch_align: 1,
        cluster: [1, 1, 1],
        launch_pdl: false,
        launch_cooperative_grid: false,
        params,
        persistent: None,
        constexprs: serde_json::Map::new(),
        source_hash: String::new(),
        compiler_version: String::new(),
    }
}

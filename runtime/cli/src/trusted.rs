//! The guarantees that the user gives by running the command: for the named files, and for the launches that they
//! describe.
//!
//! The tool launches without checking lengths, as the sanitizer is to find kernels that leave their memory.
#![allow(unsafe_code)]

use rtc_compiler::{Observer, Program, Spec};
use rtc_runtime::abi::Metadata;
use rtc_runtime::{Device, Kernel, jit};
use rtc_tune::Tuner;

/// The kernel with launches that do not check lengths.
pub(crate) fn in_bounds(kernel: &Kernel) -> Kernel {
    // SAFETY: the user requested the launch, as they would start any other program.
    unsafe { kernel.assume_in_bounds() }
}

/// Loads what the compiler gave, or the cache.
pub(crate) fn load(
    device: &Device,
    compiled: rtc_compiler::Compiled,
    observer: &mut dyn Observer,
) -> Result<jit::CompiledKernel, jit::CompileError> {
    // SAFETY: the compiler made PTX and metadata together; the cache compares its entries with their checksums.
    unsafe { jit::load(device, compiled, observer) }
}

/// Loads PTX of any origin. The metadata states no extents.
pub(crate) fn load_ptx(
    device: &Device,
    ptx: &str,
    metadata: &Metadata,
    block: [u32; 3],
) -> rtc_runtime::Result<Kernel> {
    // SAFETY: the user named the file to run, as they would start any other program.
    unsafe { device.load_with_block_dim(ptx, metadata, block) }
}

/// A tuner whose launches do not check lengths.
pub(crate) fn tuner(program: &Program, spec: Spec) -> Tuner<'_> {
    // SAFETY: the user requested the launches, as they would start any other program.
    unsafe { Tuner::new(program, spec).assume_in_bounds() }
}

//! What most programs use: `use rtc_runtime::prelude::*;`.
//!
//! ```
//! use rtc_runtime::prelude::*;
//! let device = Device::auto();
//! let mut x: Buffer<f32> = device.zeros(4)?;
//! let arguments = args![&mut x, 4];
//! assert_eq!(arguments.len(), 2);
//! # Ok::<(), rtc_runtime::Error>(())
//! ```

pub use crate::{
    Arg, Buffer, Device, Element, Event, Fp8E4M3, Fp8E5M2, Graph, Grid, Kernel, Module, PinnedBuffer, Read, Slice,
    SliceMut, Stream, TensorDescriptor, Write, args, include_kernels,
};

//! Testing kernels: launches as files, tensors in safetensors files, comparison with reference values.
//!
//! A [`LaunchFile`] says how a kernel is launched, [`Tensors`] hold what goes in and what should come out, and [`compare`]
//! tells how far a result is from its reference.
//!
//! ```
//! use rtc_testing::{Dtype, Tensor, Tolerance, compare};
//! let one = Tensor::of(vec![2], &[1.0f32, 2.0])?;
//! let other = Tensor::of(vec![2], &[1.0f32, 2.0 + 2f32.powi(-22)])?;
//! let result = compare("y", &one, &other, Tolerance::Ulp(1))?;
//! assert_eq!((result.wrong, result.worst_ulp), (0, 1));
//! # Ok::<(), rtc_testing::Error>(())
//! ```

mod compare;
mod error;
mod launch_file;
mod storages;
mod tensors;

pub use compare::{Comparison, Tolerance, compare};
pub use error::{Error, Result};
pub use launch_file::{LaunchFile, Outcome};
pub use rtc_source::json_fields::FieldError;
pub use tensors::{Dtype, Tensor, Tensors};

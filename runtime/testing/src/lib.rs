//! Testing kernels: verification, timing and precision beside a reference; launches as files, tensors in safetensors files.
//!
//! A [`Case`] says what a launch is given, a [`Reference`] (a closure, or results that were recorded) what should come out:
//! [`verify`] compares, [`Bench`] times what is right, [`precision`] measures errors. They do in `cargo test` what the commands
//! `rtc verify`, `bench` and `precision` do for files of Python, on any device, the emulator for one.
//!
//! A [`LaunchFile`] says how a kernel is launched in a file, [`Tensors`] hold what goes in and what should come out, and
//! [`compare`] tells how far a result is from its reference.
//!
//! ```
//! use rtc_testing::{Case, Dtype, Tensor, Tolerance, compare, runtime::Device, serde_json::json};
//! let one = Tensor::of(vec![2], &[1.0f32, 2.0])?;
//! let other = Tensor::of(vec![2], &[1.0f32, 2.0 + 2f32.powi(-22)])?;
//! let result = compare("y", &one, &other, Tolerance::Ulp(1))?;
//! assert_eq!((result.wrong, result.worst_ulp), (0, 1));
//! // The crates whose types stand in the interface are here in the version that it takes.
//! let case = Case::new("two", [1]).value("factors", json!([1, 2]));
//! println!("{} on {}", case.name(), Device::emulator());
//! # Ok::<(), rtc_testing::Error>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod bench;
mod case;
mod compare;
mod error;
mod launch_file;
mod precision;
mod storages;
mod tensors;
mod verify;

pub use bench::{Bench, Rounds, Times};
pub use case::{Case, Golden, Reference};
pub use compare::{Comparison, Tolerance, compare};
pub use error::{Error, Result};
pub use launch_file::{LaunchFile, Outcome};
pub use precision::{ErrorLimits, ErrorStatistics, Precision, precision};
pub use rtc_runtime as runtime;
pub use rtc_source::json_fields::FieldError;
pub use serde_json;
pub use tensors::{Dtype, Tensor, Tensors, dtype_of};
pub use verify::{Verification, verify};

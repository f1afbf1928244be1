//! What can go wrong with files and launches from them.

use rtc_source::json_fields::FieldError;

/// Why a launch from a file or a comparison failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of a LAUNCH.json is wrong.
    #[error("launch file: {0}")]
    LaunchFile(#[from] FieldError),
    /// Tensors or a safetensors file that cannot be used.
    #[error("safetensors file: {0}")]
    Tensors(String),
    /// A case, its reference or a comparison that cannot be.
    #[error("{0}")]
    Case(String),
    /// The launch failed.
    #[error(transparent)]
    Runtime(#[from] rtc_runtime::Error),
}

/// The result of a call of this crate.
///
/// ```
/// use rtc_testing::{Tensor, Tensors};
/// fn ones(n: usize) -> rtc_testing::Result<Tensors> {
///     let mut all = Tensors::default();
///     all.insert("x", Tensor::of(vec![n], &vec![1.0f32; n])?);
///     Ok(all)
/// }
/// assert_eq!(ones(3)?.names(), ["x"]);
/// assert_eq!(ones(3)?.iter().next().map(|(name, tensor)| (name, tensor.shape.len())), Some(("x", 1)));
/// # Ok::<(), rtc_testing::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

//! What can go wrong.

use rtc_compiler::Failure;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The decorators or the kernel are at fault.
    #[error("{0}")]
    Compiler(Failure),
    /// The device refused, or a launch failed.
    #[error("{0}")]
    Runtime(Box<rtc_runtime::Error>),
    /// A launch of a configuration failed in a way that ends the tuning.
    #[error("with {choice}: {error}")]
    Launch {
        /// The configuration.
        choice: String,
        /// What the device says.
        error: Box<rtc_runtime::Error>,
    },
    /// The grid cannot be computed.
    #[error("the grid: {0}")]
    Grid(String),
    /// A tensor that the decorators name is no argument of the launch.
    #[error("`{list}` of `autotune` names `{name}`, which is no tensor of the launch")]
    UnknownTensor {
        /// Which list.
        list: &'static str,
        /// The name.
        name: String,
    },
    /// No configuration can run.
    #[error("no configuration of `{kernel}` can run: {reason}")]
    NothingRuns {
        /// The kernel.
        kernel: String,
        /// Why the first one cannot.
        reason: String,
    },
    /// The devices do not go together.
    #[error("{0}")]
    Devices(String),
    /// Files of shards are not of one tuning.
    #[error("{0}")]
    ShardMismatch(String),
    /// Shards of a tuning are missing.
    #[error("{0}")]
    ShardMissing(String),
    /// A file with results cannot be read.
    #[error("tuning results: {0}")]
    File(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::Compiler(failure)
    }
}

impl From<rtc_runtime::Error> for Error {
    fn from(error: rtc_runtime::Error) -> Error {
        Error::Runtime(Box::new(error))
    }
}

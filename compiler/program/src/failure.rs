//! Why a compilation gave nothing.

use rtc_source::{Code, Diagnostic};

/// Why a compilation gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The source is at fault; at least one diagnostic is an error.
    Diagnostics(Vec<Diagnostic>),
    /// The request is invalid: a kernel that does not exist, an unknown target, a signature that does not fit.
    Request {
        /// Stable code, as that of a diagnostic.
        code: Code,
        /// One plain sentence.
        message: String,
    },
    /// The compiler is at fault.
    Internal {
        /// The message.
        message: String,
        /// The stage or pass in which it happened.
        stage: String,
        /// The kernel at that point, if it can be shown.
        ir: Option<String>,
    },
}

impl Failure {
    /// The request is invalid.
    pub fn request(code: Code, message: impl Into<String>) -> Failure {
        Failure::Request { code, message: message.into() }
    }

    /// The compiler is at fault.
    pub fn internal(stage: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure::Internal { message: message.into(), stage: stage.into(), ir: None }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Diagnostics(list) => {
                for (i, diagnostic) in list.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "\n" };
                    write!(f, "{separator}error[{}]: {}", diagnostic.code, diagnostic.message)?;
                }
                Ok(())
            }
            Failure::Request { code, message } => write!(f, "error[{code}]: {message}"),
            Failure::Internal { message, stage, .. } => {
                write!(f, "error[internal]: {message} (in {stage}; this is a bug of rtc)")
            }
        }
    }
}

impl std::error::Error for Failure {}

//! Errors between tile IR and PTX, as data.
//!
//! A verified kernel that fails here is nearly always a bug of the compiler; the exception
//! ([`CodegenError::Unsupported`]) names the feature that the target lacks. Messages of MLIR and LLVM are captured and
//! carried along; nothing is printed and the process does not end.

/// Why no PTX was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodegenError {
    /// The kernel needs what the target does not have.
    #[error("{what} is not available on {target}")]
    Unsupported {
        /// The operation or feature.
        what: String,
        /// The target's name.
        target: String,
        /// Its location in the source.
        span: Option<rtc_source::Span>,
    },
    /// The kernel needs more of something than the target has.
    #[error("{what}: {needed} needed, {available} available on {target}")]
    Resource {
        /// The exceeded resource.
        what: String,
        /// How much the kernel needs.
        needed: u32,
        /// How much there is.
        available: u32,
        /// The target's name.
        target: String,
    },
    /// The library of bitcode cannot be used.
    #[error("{message}")]
    Library {
        /// One plain sentence.
        message: String,
    },
    /// The kernel takes more operations than are compiled.
    #[error(
        "the kernel is too large to compile: more than {operations} operations in each thread, {allowed} are allowed"
    )]
    TooLong {
        /// How many there were when lowering stopped.
        operations: usize,
        /// How many there may be.
        allowed: usize,
        /// Where the last of them come from.
        span: Option<rtc_source::Span>,
    },
    /// The kernel is not in the form that lowering accepts.
    #[error("cannot lower {what}")]
    Lowering {
        /// The op and the reason.
        what: String,
    },
    /// MLIR refused the module that lowering built.
    #[error("MLIR rejected the module during {stage}: {}", .diagnostics.join("; "))]
    Mlir {
        /// The step that failed: `verification`, `conversion` or `translation`.
        stage: &'static str,
        /// MLIR's own messages, first one first.
        diagnostics: Vec<String>,
    },
    /// LLVM refused the module or could not generate code for it.
    #[error("LLVM failed during {stage}: {message}")]
    Llvm {
        /// The step that failed.
        stage: &'static str,
        /// LLVM's own message.
        message: String,
    },
}

impl CodegenError {
    /// A shorthand for [`CodegenError::Lowering`].
    pub(crate) fn lowering(what: impl Into<String>) -> Self {
        CodegenError::Lowering { what: what.into() }
    }
}

/// The result of a code generation step.
pub type Result<T> = std::result::Result<T, CodegenError>;

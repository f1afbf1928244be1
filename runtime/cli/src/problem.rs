//! Why a command failed.

use rtc_compiler::Failure;
use rtc_runtime::{Error, FaultKind};
use rtc_source::{Code, Diagnostic, SourceMap};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The input is at fault, without a place in the source.
    Input { code: Code, message: String, place: Option<String> },
    /// The source is at fault.
    Diagnostics { sources: SourceMap, list: Vec<Diagnostic> },
    /// An error in the input; the text is the whole message.
    Rendered(String),
    /// The command line is at fault.
    Usage(String),
    /// A child process has reported its error and ended with this status. It is not reported again.
    Said(u8),
    /// The reader of standard output has stopped. It is not reported.
    NobodyReads,
    /// A bug of rtc.
    Bug { stage: String, message: String, ir: Option<String> },
}

impl Problem {
    /// The input is at fault.
    pub(crate) fn input(code: Code, message: impl Into<String>) -> Problem {
        Problem::Input { code, message: message.into(), place: None }
    }

    /// A file is at fault.
    pub(crate) fn file(code: Code, path: &std::path::Path, message: impl Into<String>) -> Problem {
        Problem::Input { code, message: message.into(), place: Some(crate::input::name_of(path)) }
    }

    /// Whether the kernel ran and gave something else than was expected.
    pub(crate) fn is_wrong_result(&self) -> bool {
        matches!(self, Problem::Input { code: Code::WRONG_RESULT, .. })
    }

    /// A bug of rtc.
    pub(crate) fn bug(stage: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::Bug { stage: stage.into(), message: message.into(), ir: None }
    }

    /// A failed compilation.
    pub(crate) fn compile(sources: &SourceMap, failure: Failure) -> Problem {
        match failure {
            Failure::Diagnostics(list) => Problem::Diagnostics { sources: sources.clone(), list },
            Failure::Request { code, message } => Problem::input(code, message),
            Failure::Internal { message, stage, ir } => Problem::Bug { stage, message, ir },
        }
    }

    /// The exit status that it means.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Problem::Input { .. } | Problem::Diagnostics { .. } | Problem::Rendered(_) => 1,
            Problem::Usage(_) => 2,
            Problem::Said(status) => *status,
            Problem::Bug { .. } => 3,
            // The status that shells report for a process killed by such a write.
            Problem::NobodyReads => 128 + 13,
        }
    }
}

impl From<rtc_testing::Error> for Problem {
    fn from(error: rtc_testing::Error) -> Problem {
        match error {
            rtc_testing::Error::Runtime(error) => error.into(),
            rtc_testing::Error::LaunchFile(_) => Problem::input(Code::LAUNCH_FILE, error.to_string()),
            rtc_testing::Error::Tensors(_) => Problem::input(Code::TENSORS, error.to_string()),
            other => Problem::input(Code::RUNTIME, other.to_string()),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let mut message = error.to_string();
        let (code, place) = match error {
            Error::NoDevice(_) => (Code::NO_DEVICE, None),
            Error::Cuda { .. } => (Code::CUDA, None),
            Error::OutOfResources { .. } => (Code::OUT_OF_RESOURCES, None),
            Error::Sanitizer(_) => (Code::SANITIZER, None),
            Error::Argument { .. } | Error::OutOfRange { .. } | Error::ArgumentCount { .. } => {
                (Code::LAUNCH_FILE, None)
            }
            Error::Interpreter { message: text, location } => {
                // The place has a line of its own.
                message = format!("interpreter: {text}");
                (Code::FAULT, Some(location).filter(|l| !l.is_empty()))
            }
            Error::Fault(fault) => {
                if matches!(fault.kind, FaultKind::Unsupported(_) | FaultKind::InvalidInstruction(_)) {
                    return Problem::bug("emulator", message);
                }
                (Code::FAULT, fault.location.map(|l| l.to_string()))
            }
            // The compiler made both PTX and metadata, so they cannot differ through any fault of the user's.
            Error::Ptx { .. } | Error::Metadata(_) => return Problem::bug("load", message),
            _ => (Code::RUNTIME, None),
        };
        Problem::Input { code, message, place }
    }
}

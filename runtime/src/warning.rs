//! What a program is told that is no error.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that may be wrong and does not keep a kernel from running.
///
/// ```
/// use rtc_runtime::Warning;
/// let warning = Warning { code: "assembler-defect", message: "the assembler is old".into() };
/// assert_eq!(warning.to_string(), "warning[assembler-defect]: the assembler is old");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What `rtc explain` takes.
    pub code: &'static str,
    /// What may be wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warning[{}]: {}", self.code, self.message)
    }
}

type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Has a function hear of warnings that belong to no call of its own, such as `assembler-defect`; each is given once in a process.
/// Without one they go to standard error. The function may be called on any thread that loads a kernel.
///
/// ```
/// rtc_runtime::on_warning(|warning| println!("{warning}"));
/// ```
pub fn on_warning(handler: impl Fn(&Warning) + Send + Sync + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(handler));
}

/// Passes a warning to the handler.
#[cfg(feature = "cuda")]
pub(crate) fn give(warning: &Warning) {
    // Not while the lock is held: the function may load kernels itself.
    let handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match handler {
        Some(handler) => handler(warning),
        None => eprintln!("{warning}"),
    }
}

//! The sanitizer: checks of a launch that cost time and are made only when asked for, and what all checks report.

mod checks;
mod faults;
mod report;

pub use crate::SourceLocation;
pub use checks::{Check, Checks};
pub use report::{Place, Related, Report};

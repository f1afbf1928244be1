//! The sanitizer: optional checks of a launch, which cost time, and the reports of all checks.

mod checks;
mod faults;
mod report;

pub use crate::SourceLocation;
pub use checks::{Check, Checks};
pub use report::{Place, Related, Report};

//! Spans of a compilation for subscribers of the crate `tracing`. Without a subscriber nothing is recorded; the clock is read by
//! subscribers alone.

use tracing::span::EnteredSpan;

/// The target of all spans of this crate.
const TARGET: &str = "rtc::compile";

/// The compilation of a kernel.
pub(crate) fn compile(kernel: &str, arch: &str) -> EnteredSpan {
    tracing::info_span!(target: TARGET, "compile", kernel, arch).entered()
}

/// A stage of it.
pub(crate) fn stage(name: &'static str) -> EnteredSpan {
    tracing::debug_span!(target: TARGET, "stage", name).entered()
}

/// A pass.
pub(crate) fn pass(name: &'static str) -> EnteredSpan {
    tracing::trace_span!(target: TARGET, "pass", name).entered()
}

//! Spans of loading and launching for subscribers of the crate `tracing`. Without a subscriber a span is one comparison.

use crate::Device;
use rtc_abi::Metadata;
use tracing::span::EnteredSpan;

/// The target of the spans of this crate.
const TARGET: &str = "rtc::launch";

/// Loading a kernel; on a GPU it is assembled there.
pub(crate) fn load(device: &Device, metadata: &Metadata) -> EnteredSpan {
    tracing::debug_span!(target: TARGET, "load", kernel = metadata.symbol, %device).entered()
}

/// Giving a launch to a device; on the CPU the kernel runs meanwhile.
#[inline]
pub(crate) fn launch(metadata: &Metadata, blocks: [u32; 3]) -> EnteredSpan {
    tracing::trace_span!(target: TARGET, "launch", kernel = metadata.symbol, ?blocks).entered()
}

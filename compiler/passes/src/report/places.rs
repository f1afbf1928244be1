//! The places of loops in the source, by which they are identified.

use rtc_ir::{Kernel, Op, regions};
use rtc_source::Span;

/// The places of the loops of a kernel, each once, in program order.
pub(super) fn spans(kernel: &Kernel) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for op in rtc_ir::walk(kernel) {
        match span_of(kernel, op) {
            Some(span) if regions::is_loop(kernel.kind(op)) && !spans.contains(&span) => spans.push(span),
            _ => {}
        }
    }
    spans
}

pub(super) fn span_of(kernel: &Kernel, op: Op) -> Option<Span> {
    kernel.loc(kernel.op(op).loc).span
}

/// The loops that come from the source loop at `span`.
pub(super) fn loops_at(kernel: &Kernel, span: Span) -> Vec<Op> {
    let is_there = |op: &Op| regions::is_loop(kernel.kind(*op)) && span_of(kernel, *op) == Some(span);
    rtc_ir::walk(kernel).into_iter().filter(is_there).collect()
}

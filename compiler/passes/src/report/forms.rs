//! The forms of a loop of the source in the finished kernel.

use rtc_ir::{Kernel, LoopHints, Op, OpKind, trip_count};
use rtc_source::Span;

use super::places::{loops_at, span_of};
use super::reads::{self, LoopKind};
use super::reasons::{self, Plain};
use super::sentences::{self, LoopForm};

/// The forms of a loop, each once, the best one first.
pub(super) fn forms(laid: &Kernel, scheduled: &Kernel, span: Span, plain: &Plain<'_>) -> Vec<LoopForm> {
    let loops = loops_at(scheduled, span);
    let (in_partitions, others): (Vec<Op>, Vec<Op>) =
        loops.into_iter().partition(|op| scheduled.group_of(*op).partition.is_some());
    let mut forms: Vec<LoopForm> = others.iter().map(|op| LoopForm::of(laid, scheduled, *op, plain)).collect();
    forms.extend(LoopForm::of_partitions(scheduled, &in_partitions));
    // The loop for the last iterations, with masks, is covered by the same remark.
    let factor = reasons::unrolled_iterations(scheduled, &others);
    if let (Some(factor), Some(first)) = (factor, forms.first_mut()) {
        first.said.push_str(&factor);
        forms.truncate(1);
    }
    forms.sort_by_key(|form| std::cmp::Reverse(form.way));
    let mut different: Vec<LoopForm> = Vec::new();
    for form in forms {
        if !different.iter().any(|other| (other.way, &other.said, &other.reads) == (form.way, &form.said, &form.reads))
        {
            different.push(form);
        }
    }
    if different.is_empty() {
        different.push(LoopForm::gone(reasons::why_gone(laid, span)));
    }
    if let [one] = &mut different[..] {
        one.when = None;
    }
    different
}

impl LoopForm {
    fn gone(said: &str) -> LoopForm {
        LoopForm { way: LoopKind::Gone, said: said.to_owned(), reads: Vec::new(), when: None }
    }

    /// That of a loop outside of partitions, as its hints say.
    fn of(laid: &Kernel, scheduled: &Kernel, op: Op, plain: &Plain<'_>) -> LoopForm {
        let hints = match scheduled.kind(op) {
            OpKind::ForRange { hints, .. } => *hints,
            _ => LoopHints::default(),
        };
        let reads = reads::of_loop(scheduled, &[op], &hints);
        let (way, said) = match (hints.slots, hints.ahead) {
            (Some(slots), Some(ahead)) => {
                let mut said = sentences::copies_ahead(scheduled, op, slots, ahead, hints.pending.unwrap_or(0));
                let before =
                    loops_at(laid, span_of(scheduled, op).unwrap_or_default()).into_iter().find(|of| *of == op);
                if let Some(left) = before.and_then(|of| reasons::left(laid, of, false)) {
                    said.push_str(&format!("; {left}"));
                }
                (LoopKind::Async, said)
            }
            (Some(_), None) if trip_count(scheduled, op) == Some(1) => {
                (LoopKind::Plain, reasons::ONE_ITERATION.to_owned())
            }
            (Some(_), None) => {
                let bytes = crate::schedule::pipeline::schedule_loop::ring_bytes(scheduled, op);
                (
                    LoopKind::Plain,
                    format!("shared memory has room for only one slot of {bytes} bytes; use smaller blocks"),
                )
            }
            (None, Some(ahead)) => {
                (LoopKind::Registers, format!("{} ahead, into registers", sentences::iterations(ahead)))
            }
            (None, None) => (LoopKind::Plain, plain.why(laid, scheduled, op)),
        };
        LoopForm { way, said, reads, when: reasons::when(scheduled, op) }
    }

    /// The form of the loops in partitions that come from one source loop.
    fn of_partitions(kernel: &Kernel, loops: &[Op]) -> Option<LoopForm> {
        loops.first()?;
        let reads = reads::of_loop(kernel, loops, &LoopHints::default());
        let by_tma = reads.iter().any(|read| read.way == LoopKind::Specialized);
        let has_loops = loops.iter().any(|op| reasons::has_loops(kernel, *op));
        let (way, said) = match (by_tma, has_loops) {
            (true, _) => (LoopKind::Specialized, sentences::division(kernel)),
            (false, true) => {
                let said = "it contains loops, which are decided separately; the warps are specialized, and copies for its next \
                            iteration overlap the end of this one";
                (LoopKind::Plain, said.to_owned())
            }
            (false, false) => {
                let said = reasons::without_dots(kernel, loops[loops.len() - 1]);
                (LoopKind::Plain, said.unwrap_or("only loops with dots are copied for by the producer warp").to_owned())
            }
        };
        Some(LoopForm { way, said, reads, when: None })
    }
}

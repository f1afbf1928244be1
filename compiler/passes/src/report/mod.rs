//! The decision about each loop of the source: whether its loads are issued ahead of time, how, or why not.
//!
//! ```text
//! for k in range(..):   the loop is pipelined: copies from `a_ptr` and `b_ptr` (`cp.async`, 16 bytes at a time) begin
//!     .. tl.dot ..      2 iterations ahead, 3 slots of 8192 bytes
//! ```
//!
//! A loop is identified by its location in the source, from the kernel that semantic analysis creates to the one after
//! `schedule_loop`, which contains the decisions. Passes may make several loops of one, or none; one remark covers them
//! all. Which promise or option would change a decision is found by trial (`suggestions.rs` has the candidates): the
//! driver runs the passes again and compares the [`Grade`]s.

pub mod outline;
mod reads;
mod reasons;
mod sentences;
mod suggestions;

use std::fmt;

use rtc_abi::{Feature, Structure};
use rtc_ir::{Kernel, LoopHints, Op, OpKind, Phase, regions, trip_count};
use rtc_source::{Code, Diagnostic, Span};

use crate::access::refusal::Refusal;
use crate::schedule::partition::candidate::Candidate;
use crate::schedule::partition::config;
use crate::schedule::partition::persistent;
use crate::schedule::partition::specialize_warps::{LEAST_SLOTS, is_specialized};
use crate::{PassContext, PassError};

use reads::Read;
use reasons::Plain;
pub use suggestions::{Attempt, Suggestion, helps};

/// The decision about one loop of the source.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The loop.
    pub span: Span,
    /// Its forms after the passes, the best first.
    forms: Vec<LoopForm>,
    /// Why the warps are not specialized, where they might be.
    together: Option<Together>,
    /// Changes worth trying.
    pub levers: Vec<Suggestion>,
}

/// Why the warps of a kernel with dots are not specialized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Together {
    /// The option that disables it.
    Option,
    /// The kernel has no such form.
    Refused(Refusal),
    /// No form fits.
    Resources,
}

impl fmt::Display for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Together::Option => f.write_str("disabled by `warp_specialize`, `launch_cooperative_grid` or `structure`"),
            Together::Refused(refusal) => write!(f, "{} [{}]", refusal.message(), refusal.code()),
            Together::Resources => f.write_str("there are not enough registers or shared memory"),
        }
    }
}

/// How good a decision is, for comparison with others about the same loop: the worst of its forms counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grade(LoopKind, usize, u32);

/// How what a loop loads gets there, the slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LoopKind {
    /// There is no such loop any more.
    Gone,
    /// Each iteration loads its own.
    Plain,
    /// Loads an iteration ahead into registers.
    Registers,
    /// Copies by all warps into shared memory.
    Async,
    /// Copies by TMA by a warp that does nothing else.
    Specialized,
}

/// One form of a loop in the finished kernel.
#[derive(Clone, Debug, PartialEq)]
struct LoopForm {
    way: LoopKind,
    /// The rest of the sentence: the reason why it is plain, or the prefetch distance.
    said: String,
    reads: Vec<Read>,
    /// In which launches it runs, where the kernel was written out twice.
    when: Option<String>,
}

/// The decisions about all loops of `source`, a kernel of any phase. `laid` is the input of `specialize_warps`,
/// `scheduled` the output of `schedule_loop`; without them no pass has seen the loops. `asked` is the structure of the
/// options, which may differ from that of the context: a kernel that does not fit into shared memory is compiled again
/// without copies.
pub fn decisions(
    source: &Kernel,
    passed: Option<(&Kernel, &Kernel)>,
    cx: &PassContext,
    asked: Structure,
) -> Result<Vec<Decision>, PassError> {
    let Some((laid, scheduled)) = passed else {
        let said = "the kernel was given in a phase after the scheduling passes, so it is unchanged";
        let form = LoopForm { way: LoopKind::Plain, said: said.to_owned(), reads: Vec::new(), when: None };
        let decide = |span| Decision { span, forms: vec![form.clone()], together: None, levers: Vec::new() };
        return Ok(spans(source).into_iter().map(decide).collect());
    };
    let is_whole = source.phase == Phase::Tile;
    let may_be = is_whole && cx.target.has(Feature::Wgmma) && cx.structure.stages() && !is_specialized(scheduled);
    let together = if may_be { Some(together(laid, cx)?) } else { None };
    let plain = Plain { cx, asked };
    let decide = |span: Span| {
        let forms = forms(laid, scheduled, span, &plain);
        let loops = loops_at(laid, span);
        let any = |has: fn(&Kernel, Op) -> bool| loops.iter().any(|of| has(laid, *of));
        let together = match (any(reasons::has_dots), any(reasons::has_wgmma)) {
            (_, true) => together,
            (true, false) if may_be => Some(Together::Refused(Refusal::NoWgmma)),
            _ => None,
        };
        let mut levers = suggestions::of_loop(laid, &loops, cx);
        // Layouts are for as many warps as there are.
        levers.retain(|lever| is_whole || !matches!(lever, Suggestion::Option("num_warps", _)));
        Decision { span, forms, together, levers }
    };
    Ok(spans(source).into_iter().map(decide).collect())
}

impl Decision {
    /// How good it is.
    pub fn grade(&self) -> Grade {
        let grade = |form: &LoopForm| {
            let ahead = form.reads.iter().filter(|read| read.way > LoopKind::Plain).count();
            Grade(form.way, ahead, form.reads.iter().map(Read::width).min().unwrap_or(reads::WIDEST))
        };
        self.forms.iter().map(grade).min().unwrap_or(Grade(LoopKind::Plain, 0, 0))
    }

    /// The remark that says it, with what would change it.
    pub fn remark(&self, help: Option<String>) -> Diagnostic {
        let remark = Diagnostic::remark(Code::COST, self.span, sentences::sentence(&self.forms));
        let remark = match &self.together {
            Some(reason) => remark.note(format!("the warps are not specialized: {reason}")),
            None => remark,
        };
        // A change that was tried is worth more than the general one.
        match (help, self.together) {
            (Some(help), _) => remark.help(help),
            (None, Some(Together::Refused(refusal))) => remark.help(format!("to specialize them, {}", refusal.help())),
            (None, _) => remark,
        }
    }

    /// The advantage of another decision about the same loop, as part of a sentence.
    pub fn change(&self, other: &Decision) -> String {
        sentences::change(&self.forms, &other.forms)
    }
}

/// The places of the loops of a kernel, each once, in program order.
fn spans(kernel: &Kernel) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for op in rtc_ir::walk(kernel) {
        match span_of(kernel, op) {
            Some(span) if regions::is_loop(kernel.kind(op)) && !spans.contains(&span) => spans.push(span),
            _ => {}
        }
    }
    spans
}

fn span_of(kernel: &Kernel, op: Op) -> Option<Span> {
    kernel.loc(kernel.op(op).loc).span
}

/// The loops that come from the source loop at `span`.
fn loops_at(kernel: &Kernel, span: Span) -> Vec<Op> {
    let is_there = |op: &Op| regions::is_loop(kernel.kind(*op)) && span_of(kernel, *op) == Some(span);
    rtc_ir::walk(kernel).into_iter().filter(is_there).collect()
}

/// The forms of a loop, each once, the best one first.
fn forms(laid: &Kernel, scheduled: &Kernel, span: Span, plain: &Plain<'_>) -> Vec<LoopForm> {
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

/// Why the warps of a kernel with a `wgmma` dot are not specialized.
fn together(laid: &Kernel, cx: &PassContext) -> Result<Together, PassError> {
    if !cx.specializes_warps() {
        return Ok(Together::Option);
    }
    Ok(match Candidate::of(laid, cx)? {
        Err(refusal) => Together::Refused(refusal),
        Ok(_) => Together::Resources,
    })
}

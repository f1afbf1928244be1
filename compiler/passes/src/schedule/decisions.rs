//! What was decided for each loop of the source: whether what it loads is begun ahead of time, how, and why not.
//!
//! ```text
//! for k in range(..):   the loop is pipelined: copies from `a_ptr` and `b_ptr` (`cp.async`, 16 bytes at a time) begin
//!     .. tl.dot ..      2 iterations ahead, 3 slots of 8192 bytes
//! ```
//!
//! A loop is known by its place in the source, from the kernel as the semantic analysis gives it to the one that
//! `schedule_loop` leaves, in which the decisions stand. Passes make several loops of one, or none; all of them are
//! told of in one sentence. Which promise or option would change a decision is found by trying (`suggestions.rs` says what
//! is tried): the driver runs the passes again and compares the [`Grade`]s.

mod reads;
mod reasons;
mod sentences;
mod suggestions;

use rtc_abi::{Feature, Structure};
use rtc_ir::{Kernel, LoopHints, Op, OpKind, Phase, regions, trip_count};
use rtc_source::{Code, Diagnostic, Span};

use super::candidate::{Candidate, NO_COPIES};
use super::partitions;
use super::persistent;
use super::specialize_warps::{LEAST_SLOTS, is_supported};
use crate::{PassContext, PassError};

use reads::Read;
use reasons::Plain;
pub use suggestions::{Attempt, Suggestion, helps};

/// The decision about one loop of the source.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The loop.
    pub span: Span,
    /// What there is of it after the passes, the best form first.
    forms: Vec<LoopForm>,
    /// Why the warps are not divided, where they might be.
    together: Option<String>,
    /// What is worth trying.
    pub levers: Vec<Suggestion>,
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
    Roles,
}

/// One form of a loop in the finished kernel.
#[derive(Clone, Debug, PartialEq)]
struct LoopForm {
    way: LoopKind,
    /// What it says beside what is read: why it is plain, or how far ahead.
    said: String,
    reads: Vec<Read>,
    /// In which launches it runs, where the kernel was written out twice.
    when: Option<String>,
}

/// The decisions about all loops of `source`, a kernel of any phase. `laid` is what `specialize_warps` is given, `scheduled`
/// what `schedule_loop` leaves; without them no pass has looked at the loops. `asked` is the structure that was asked
/// for, which need not be that of the context: what does not fit into shared memory is tried without copies.
pub fn decisions(
    source: &Kernel,
    passed: Option<(&Kernel, &Kernel)>,
    cx: &PassContext,
    asked: Structure,
) -> Result<Vec<Decision>, PassError> {
    let Some((laid, scheduled)) = passed else {
        let said = "the kernel is given past the passes that decide of it, and stays as it is";
        let form = LoopForm { way: LoopKind::Plain, said: said.to_owned(), reads: Vec::new(), when: None };
        let decide = |span| Decision { span, forms: vec![form.clone()], together: None, levers: Vec::new() };
        return Ok(spans(source).into_iter().map(decide).collect());
    };
    let is_whole = source.phase == Phase::Tile;
    let may_be =
        is_whole && cx.target.has(Feature::Wgmma) && cx.structure.stages() && scheduled.specialization().is_none();
    let together = if may_be { together(laid, cx)? } else { None };
    let plain = Plain { cx, asked };
    let decide = |span: Span| {
        let forms = forms(laid, scheduled, span, &plain);
        let loops = loops_at(laid, span);
        let any = |has: fn(&Kernel, Op) -> bool| loops.iter().any(|of| has(laid, *of));
        let together = match (any(reasons::has_dots), any(reasons::has_wgmma)) {
            (_, true) => together.clone(),
            (true, false) if may_be => Some(NO_WGMMA.to_owned()),
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
            Some(reason) => remark.note(format!("the warps are not divided into roles: {reason}")),
            None => remark,
        };
        match help {
            Some(help) => remark.help(help),
            None => remark,
        }
    }

    /// What another decision about the same loop does better, as part of a sentence.
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

/// The loops that stand for that of the source at `span`.
fn loops_at(kernel: &Kernel, span: Span) -> Vec<Op> {
    let is_there = |op: &Op| regions::is_loop(kernel.kind(*op)) && span_of(kernel, *op) == Some(span);
    rtc_ir::walk(kernel).into_iter().filter(is_there).collect()
}

/// What there is of a loop, each form once, the best one first.
fn forms(laid: &Kernel, scheduled: &Kernel, span: Span, plain: &Plain<'_>) -> Vec<LoopForm> {
    let loops = loops_at(scheduled, span);
    let (in_partitions, others): (Vec<Op>, Vec<Op>) =
        loops.into_iter().partition(|op| scheduled.group_of(*op).partition.is_some());
    let mut forms: Vec<LoopForm> = others.iter().map(|op| LoopForm::of(laid, scheduled, *op, plain)).collect();
    forms.extend(LoopForm::of_partitions(scheduled, &in_partitions));
    // What is split off for the last iterations, with masks, is told of with the others.
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

    /// That of a loop outside of roles, as its hints say.
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
                let bytes = super::schedule_loop::ring_bytes(scheduled, op);
                (
                    LoopKind::Plain,
                    format!("shared memory has room for one slot of {bytes} bytes; smaller blocks take less"),
                )
            }
            (None, Some(ahead)) => {
                (LoopKind::Registers, format!("{} ahead, into registers", sentences::iterations(ahead)))
            }
            (None, None) => (LoopKind::Plain, plain.why(laid, scheduled, op)),
        };
        LoopForm { way, said, reads, when: reasons::when(scheduled, op) }
    }

    /// That of the loops in roles which are one loop of the source.
    fn of_partitions(kernel: &Kernel, loops: &[Op]) -> Option<LoopForm> {
        loops.first()?;
        let reads = reads::of_loop(kernel, loops, &LoopHints::default());
        let by_tma = reads.iter().any(|read| read.way == LoopKind::Roles);
        let has_loops = loops.iter().any(|op| reasons::has_loops(kernel, *op));
        let (way, said) = match (by_tma, has_loops) {
            (true, _) => (LoopKind::Roles, sentences::division(kernel)),
            (false, true) => {
                let said = "it has loops in it, each of which is decided for itself; the warps are divided into roles, and \
                            copies for its next iteration go on while this one ends";
                (LoopKind::Plain, said.to_owned())
            }
            (false, false) => {
                let said = reasons::without_dots(kernel, loops[loops.len() - 1]);
                (LoopKind::Plain, said.unwrap_or("copies are for other loops with products alone").to_owned())
            }
        };
        Some(LoopForm { way, said, reads, when: None })
    }
}

/// Of loops with other products, on a target that has these.
const NO_WGMMA: &str = "no product of the loop is one by `wgmma`, which takes 64 rows or more, 32 bytes of K or more, operands of \
                        half of shared memory or less, and 4 warps";

/// Why the warps of a kernel with a product by `wgmma` are not divided, if that is more than each of its loops is told
/// of.
fn together(laid: &Kernel, cx: &PassContext) -> Result<Option<String>, PassError> {
    if !is_supported(cx) {
        return Ok(Some("`warp_specialize`, `launch_cooperative_grid` or `structure` forbids it".into()));
    }
    Ok(match Candidate::of(laid, cx)? {
        Err(NO_COPIES) => None,
        Err(reason) => Some(reason.into()),
        Ok(_) => Some("registers or shared memory do not suffice".into()),
    })
}

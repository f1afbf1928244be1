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

mod forms;
pub mod outline;
mod places;
mod reads;
mod reasons;
mod reductions;
mod sentences;
mod suggestions;

use std::fmt;

use rtc_abi::Structure;
use rtc_ir::{Kernel, Op, Phase};
use rtc_source::{Code, Diagnostic, Span};

use crate::access::refusal::Refusal;
use crate::schedule::partition::candidate::Candidate;
use crate::schedule::partition::specialize_warps::is_specialized;
use crate::{PassContext, PassError, matrix_unit};

use forms::forms;
use places::{loops_at, spans};
use reads::{LoopKind, Read};
use reasons::Plain;
pub use reductions::Reductions;
use sentences::LoopForm;
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
    let may_be = is_whole && matrix_unit::has_async(cx.target) && cx.structure.stages() && !is_specialized(scheduled);
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

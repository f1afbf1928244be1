//! Why a loop is not pipelined, in words.

use std::collections::HashSet;

use rtc_abi::{Feature, Structure};
use rtc_ir::{DotKind, Kernel, LoopHints, Op, OpKind, Value, constant_bits, regions, trip_count};
use rtc_source::Span;

use super::{loops_at, reads};
use crate::PassContext;
use crate::schedule::addresses::{addresses, is_unchanged, loads_of_dots, memory, small_step};
use crate::schedule::register_prefetch::{MOST_AHEAD, asked_for, is_dot};
use crate::schedule::stage_operands::{copied_width, stages};
use crate::tile::alignment_versioning::{self, Ask};

/// Whether a loop itself has products by `wgmma`.
pub(super) fn has_wgmma(kernel: &Kernel, of: Op) -> bool {
    let mut own = reads::own_ops(kernel, of).into_iter();
    own.any(|op| matches!(kernel.kind(op), OpKind::Dot { kind: DotKind::Wgmma, .. }))
}

/// Whether a loop itself has products.
pub(super) fn has_dots(kernel: &Kernel, of: Op) -> bool {
    reads::own_ops(kernel, of).into_iter().any(|op| is_dot(kernel.kind(op)))
}

/// Whether a loop has loops in it.
pub(super) fn has_loops(kernel: &Kernel, of: Op) -> bool {
    reads::own_ops(kernel, of).into_iter().any(|op| regions::is_loop(kernel.kind(op)))
}

/// Why nothing can be begun ahead in a loop without products of what it loads; `None` if it has such.
pub(super) fn without_dots(kernel: &Kernel, of: Op) -> Option<&'static str> {
    let own = reads::own_ops(kernel, of);
    let loads = own
        .iter()
        .any(|op| matches!(kernel.kind(*op), OpKind::Load { .. } | OpKind::CopyAsync { .. } | OpKind::CopyDesc { .. }));
    if !loads {
        return Some(
            match own.iter().any(|op| matches!(kernel.kind(*op), OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. })) {
                true => "it has no load in it, and what it reads with atomics cannot be read early",
                false => "it has no load in it",
            },
        );
    }
    if has_dots(kernel, of) {
        return None;
    }
    Some(match asked_for(kernel, of) {
        None => {
            "it has no product (`tl.dot`) in it, and what such a loop loads is begun ahead only where \
             `tl.range(.., num_stages=..)` asks for it"
        }
        Some(_) if small_step(kernel, of).is_none() => "its step is not a small constant",
        Some(loads) if loads.is_empty() => "it may store to what it loads, or something in it orders memory accesses",
        Some(_) => "it loads more than threads have registers for, or in too small pieces",
    })
}

/// Why a loop has nothing to begin ahead, however many stages it has.
pub(super) const ONE_ITERATION: &str = "it has only one iteration";

/// What a loop that is not pipelined is judged by.
pub(super) struct Plain<'c> {
    pub cx: &'c PassContext,
    /// The structure that was asked for.
    pub asked: Structure,
}

impl Plain<'_> {
    /// Why a loop stays as it is, all of whose warps do the same.
    pub fn why(&self, laid: &Kernel, scheduled: &Kernel, of: Op) -> String {
        if let OpKind::WhileLoop {} = scheduled.kind(of) {
            let said = "whether a `while` loop has another iteration is known at its end alone";
            return match has_loops(scheduled, of) {
                true => format!("{said}; the loops in it are decided for themselves"),
                false => said.into(),
            };
        }
        if has_loops(scheduled, of) {
            return "it has loops in it, each of which is decided for itself".into();
        }
        if let Some(reason) = without_dots(scheduled, of) {
            return self.of_asked(scheduled, of).unwrap_or_else(|| reason.into());
        }
        let span = scheduled.loc(scheduled.op(of).loc).span;
        let candidates = span.map(|span| loops_at(laid, span)).unwrap_or_default();
        let before = candidates.iter().copied().find(|op| *op == of).or(candidates.first().copied());
        match before {
            Some(of) => self.of_dots(laid, of),
            None => "the passes have made another loop of it".into(),
        }
    }

    /// Why nothing is begun ahead in a loop without products that loads and asks for stages of its own; `None` if it does
    /// not ask.
    fn of_asked(&self, kernel: &Kernel, of: Op) -> Option<String> {
        let OpKind::ForRange { hints: LoopHints { num_stages: Some(_), .. }, .. } = kernel.kind(of) else {
            return None;
        };
        let own = reads::own_ops(kernel, of);
        let loads: Vec<Op> = own.into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Load { .. })).collect();
        loads.first()?;
        if !self.cx.structure.stages() {
            return Some(match self.asked.stages() {
                false => PLAIN.into(),
                true => {
                    "shared memory has no room for what products of other loops take, and without copies nothing is \
                         begun ahead"
                        .into()
                }
            });
        }
        if let Some(reason) = self.of_loop(kernel, of) {
            return Some(reason);
        }
        if trip_count(kernel, of).is_some_and(|trips| trips <= 1) {
            return Some(ONE_ITERATION.into());
        }
        let in_branch = |load: &Op| kernel.op(*load).parent != kernel.op(of).blocks.first().copied();
        let said = loads.iter().map(|load| match in_branch(load) {
            true => Some("the load is in a branch".to_owned()),
            false => why_not_early(kernel, of, *load, &[kernel.result(*load, 0)]),
        });
        let said: Option<Vec<String>> = said.collect();
        Some(match said.map(|reasons| (reasons, loads)) {
            Some((reasons, loads)) => loads_for(kernel, loads.into_iter().zip(reasons), "begin no earlier"),
            None => format!("what it loads takes more than {MOST_AHEAD} registers of a thread"),
        })
    }

    /// Why nothing can be begun ahead in a loop, whatever it loads.
    fn of_loop(&self, laid: &Kernel, of: Op) -> Option<String> {
        if !self.cx.target.has(Feature::CpAsync) {
            return Some(format!("{} has no `cp.async`", self.cx.target.name));
        }
        let stages = stages(laid, of);
        if stages < 2 {
            return Some(format!("`num_stages` is {stages}"));
        }
        if small_step(laid, of).is_none() {
            let step = laid.params.iter().find(|param| param.value == laid.operand(of, 2));
            return Some(match step {
                Some(param) => format!("its step `{}` is no constant", param.name),
                None => "its step is no positive constant".into(),
            });
        }
        None
    }

    /// Why what products of a loop take is not begun ahead.
    fn of_dots(&self, laid: &Kernel, of: Op) -> String {
        let loads = loads_of_dots(laid, of);
        let is_dot = |op: &Op| matches!(laid.kind(*op), OpKind::Dot { .. });
        if !reads::own_ops(laid, of).iter().any(is_dot) {
            return "its products are given in the form of the machine, and stay as they are".into();
        }
        if loads.is_empty() {
            return "its products take nothing that it loads itself in each iteration".into();
        }
        if !self.cx.structure.stages() {
            return match self.asked.stages() {
                false => PLAIN.into(),
                true => "shared memory has no room for what its products take; smaller blocks take less".into(),
            };
        }
        if let Some(reason) = self.of_loop(laid, of) {
            return reason;
        }
        left(laid, of, true).unwrap_or_else(|| "shared memory has no layout for what its products take".into())
    }
}

/// What the structure is called in which nothing is begun ahead.
const PLAIN: &str = "`structure` is `plain`";

/// Of which arguments nothing is copied ahead for the products of a loop, and why; of `all` loads, or of those alone
/// that cannot be copies by themselves.
pub(super) fn left(laid: &Kernel, of: Op, all: bool) -> Option<String> {
    let loads = loads_of_dots(laid, of);
    let taken = indices(laid, of, &loads);
    let reason = |load: Op| match why_no_copy(laid, of, load) {
        Some(reason) => Some(reason),
        None if taken.contains(&load) => Some("addresses follow from it".to_owned()),
        None if all => Some("the products of the loop cannot read it from a buffer".to_owned()),
        None => None,
    };
    let said = loads_for(laid, loads.into_iter().filter_map(|load| Some((load, reason(load)?))), "are no copies");
    (!said.is_empty()).then_some(said)
}

/// `loads from a and b are no copies, as ..; loads from c ..`: loads with a reason each, and what that is the reason for.
fn loads_for(kernel: &Kernel, loads: impl Iterator<Item = (Op, String)>, what: &str) -> String {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for (load, reason) in loads {
        let name = reads::name(kernel, kernel.operand(load, 0));
        match said.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => said.push((reason, vec![name])),
        }
    }
    let said = said
        .into_iter()
        .map(|(reason, names)| format!("loads from {} {what}, as {reason}", super::sentences::listed(&names)));
    said.collect::<Vec<String>>().join("; ")
}

/// The loads that addresses of others follow from.
fn indices(laid: &Kernel, of: Op, loads: &[Op]) -> HashSet<Op> {
    let others = loads.iter().filter_map(|load| addresses(laid, of, &roots(laid, *load)));
    others.flat_map(|part| part.ops).collect()
}

fn roots(kernel: &Kernel, load: Op) -> Vec<Value> {
    kernel.op(load).operands.iter().take(2).copied().collect()
}

/// Why a load is no copy; the conditions are those of `stage_operands`.
fn why_no_copy(kernel: &Kernel, of: Op, load: Op) -> Option<String> {
    let OpKind::Load { vector, .. } = kernel.kind(load) else { return None };
    let result = kernel.result(load, 0);
    let Some(elem) = kernel.value_type(result).elem().filter(|elem| !elem.is_ptr()) else {
        return Some("it gives pointers".into());
    };
    if let Some(reason) = why_not_early(kernel, of, load, &roots(kernel, load)) {
        return Some(reason);
    }
    let is_zero = |other| constant_bits(kernel, other) == Some(0);
    if !kernel.optional(load, 1).is_none_or(is_zero) {
        return Some("it gives other numbers than 0 where its mask is false".into());
    }
    if copied_width(kernel, load).is_some() {
        return None;
    }
    let bytes = vector.unwrap_or(1) * elem.bytes();
    Some(match bytes {
        ..4 => format!("{bytes} bytes at a time are too few for `cp.async`, which takes 4 or more"),
        _ => "the tile is no matrix, or smaller than the threads of the warps".into(),
    })
}

/// Why a load is not begun in an iteration before, with what `roots` follow from.
fn why_not_early(kernel: &Kernel, of: Op, load: Op, roots: &[Value]) -> Option<String> {
    if let OpKind::Load { volatile: true, .. } = kernel.kind(load) {
        return Some("the load is volatile".into());
    }
    let Some(part) = addresses(kernel, of, roots) else {
        return Some("its address follows from what the iteration before computes".into());
    };
    let read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
    let mut pointers = read.map(|op| kernel.operand(*op, 0)).chain([kernel.operand(load, 0)]);
    let pointer = pointers.find(|pointer| !is_unchanged(kernel, of, *pointer))?;
    Some(match writes(kernel, of, pointer) {
        true => "the loop writes through the same argument".into(),
        false => "the loop has accesses before which it must not be moved, such as atomics".into(),
    })
}

/// Whether a loop stores through the argument that a pointer leads to.
fn writes(kernel: &Kernel, of: Op, pointer: Value) -> bool {
    let read = memory(kernel, pointer);
    let all = kernel.op(of).blocks.iter().flat_map(|block| rtc_ir::walk_block(kernel, *block));
    let mut stores = all.filter(|op| matches!(kernel.kind(*op), OpKind::Store { .. }));
    read.is_some() && stores.any(|op| memory(kernel, kernel.operand(op, 0)) == read)
}

/// What became of a loop of which the passes have left nothing.
pub(super) fn why_gone(laid: &Kernel, span: Span) -> &'static str {
    let within = |op: &Op| {
        let place = laid.loc(laid.op(*op).loc).span;
        place.is_some_and(|place| place.file == span.file && span.start < place.start && place.end <= span.end)
    };
    match rtc_ir::walk(laid).iter().any(within) {
        true => "written out, one iteration after the other",
        false => "gone: nothing that it computes is used, or it has no iterations",
    }
}

/// Where iterations of a loop of the source are taken several at a time, or without their masks, in a loop before the
/// one with the rest.
pub(super) fn unrolled_iterations(kernel: &Kernel, loops: &[Op]) -> Option<String> {
    let [first, rest] = loops else { return None };
    let counted = |of: &Op| matches!(kernel.kind(*of), OpKind::ForRange { .. });
    loops.iter().all(counted).then_some(())?;
    let side_by_side = kernel.op(*first).parent == kernel.op(*rest).parent;
    let steps = [*first, *rest].map(|of| small_step(kernel, of));
    let ([Some(wide), Some(step)], true) = (steps, side_by_side) else { return None };
    (wide % step == 0).then_some(())?;
    Some(match wide / step {
        1 => "; iterations in which its masks hold everywhere are taken without them".to_owned(),
        times => format!("; {times} iterations at a time are taken as one, as long as there are so many"),
    })
}

/// In which launches a loop runs, where the kernel was written out twice.
pub(super) fn when(kernel: &Kernel, of: Op) -> Option<String> {
    let mut block = kernel.op(of).parent?;
    loop {
        let around = kernel.block(block).parent?;
        if let (Some(asked), OpKind::IfElse {}) = (alignment_versioning::asked_of(kernel, around), kernel.kind(around))
        {
            let names: Vec<String> = asked.names.iter().map(|name| format!("`{name}`")).collect();
            let names = super::sentences::listed(&names);
            let is_one = asked.names.len() == 1;
            let holds = match (asked.what, is_one) {
                (Ask::Multiple(factor), true) => format!("{names} is a multiple of {factor}"),
                (Ask::Multiple(factor), false) => format!("{names} are multiples of {factor}"),
                (Ask::One, true) => format!("{names} is 1"),
                (Ask::One, false) => format!("{names} are 1"),
            };
            return Some(match kernel.op(around).blocks.first() == Some(&block) {
                true => format!("where {holds}"),
                false => "elsewhere".to_owned(),
            });
        }
        block = kernel.op(around).parent?;
    }
}

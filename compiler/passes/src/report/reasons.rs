//! Why a loop is not pipelined, in words.

use std::collections::HashSet;

use rtc_abi::{Feature, Structure};
use rtc_ir::{Kernel, LoopHints, Op, OpKind, Value, constant_bits, regions, trip_count};
use rtc_source::Span;

use super::places::loops_at;
use super::reads;
use crate::PassContext;
use crate::access::addresses::{addresses, is_unchanged, loads_of_dots, memory, small_step};
use crate::matrix_unit;
use crate::schedule::operands::staged::copied_width;
use crate::schedule::pipeline::expand_loop::roots;
use crate::schedule::pipeline::register_prefetch::{MOST_AHEAD, asked_for};
use crate::schedule::pipeline::stages::stages;
use crate::tile::alignment_versioning::{self, Ask};

/// Whether a loop itself has `wgmma` dots.
pub(super) fn has_wgmma(kernel: &Kernel, of: Op) -> bool {
    let mut own = reads::own_ops(kernel, of).into_iter();
    own.any(|op| matrix_unit::is_async_dot(kernel.kind(op)))
}

/// Whether a loop itself has dots.
pub(super) fn has_dots(kernel: &Kernel, of: Op) -> bool {
    reads::own_ops(kernel, of).into_iter().any(|op| matrix_unit::is_dot(kernel.kind(op)))
}

/// Whether a loop has loops in it.
pub(super) fn has_loops(kernel: &Kernel, of: Op) -> bool {
    reads::own_ops(kernel, of).into_iter().any(|op| regions::is_loop(kernel.kind(op)))
}

/// Why nothing can be issued ahead in a loop without dots of what it loads; `None` if it has such.
pub(super) fn without_dots(kernel: &Kernel, of: Op) -> Option<&'static str> {
    let own = reads::own_ops(kernel, of);
    let loads = own
        .iter()
        .any(|op| matches!(kernel.kind(*op), OpKind::Load { .. } | OpKind::CopyAsync { .. } | OpKind::CopyDesc { .. }));
    if !loads {
        return Some(
            match own.iter().any(|op| matches!(kernel.kind(*op), OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. })) {
                true => "it has no load, and atomic reads cannot be issued early",
                false => "it has no load",
            },
        );
    }
    if has_dots(kernel, of) {
        return None;
    }
    Some(match asked_for(kernel, of) {
        None => {
            "it has no `tl.dot`, and loads of such a loop are prefetched only if \
             `tl.range(.., num_stages=..)` asks for it"
        }
        Some(_) if small_step(kernel, of).is_none() => "its step is not a small constant",
        Some(loads) if loads.is_empty() => {
            "it may store to memory that it loads, or it contains an operation that orders memory accesses"
        }
        Some(_) => "its loads need too many registers, or are too narrow",
    })
}

/// Why a loop has nothing to begin ahead, however many stages it has.
pub(super) const ONE_ITERATION: &str = "it has only one iteration";

/// The context for explaining why a loop is not pipelined.
pub(super) struct Plain<'c> {
    pub cx: &'c PassContext,
    /// The structure of the options.
    pub asked: Structure,
}

impl Plain<'_> {
    /// Why a loop stays as it is, all of whose warps do the same.
    pub fn why(&self, laid: &Kernel, scheduled: &Kernel, of: Op) -> String {
        if let OpKind::WhileLoop {} = scheduled.kind(of) {
            let said = "whether a `while` loop continues is known only at the end of an iteration";
            return match has_loops(scheduled, of) {
                true => format!("{said}; the loops in it are decided separately"),
                false => said.into(),
            };
        }
        if has_loops(scheduled, of) {
            return "it contains loops, which are decided separately".into();
        }
        if let Some(reason) = without_dots(scheduled, of) {
            return self.of_asked(scheduled, of).unwrap_or_else(|| reason.into());
        }
        let span = scheduled.loc(scheduled.op(of).loc).span;
        let candidates = span.map(|span| loops_at(laid, span)).unwrap_or_default();
        let before = candidates.iter().copied().find(|op| *op == of).or(candidates.first().copied());
        match before {
            Some(of) => self.of_dots(laid, of),
            None => "an earlier pass replaced it by another loop".into(),
        }
    }

    /// Why loads of a loop without dots that requests stages of its own are not prefetched; `None` if it does not
    /// request any.
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
                true => "shared memory has no room for the operands of other loops' dots, so no loop is pipelined \
                         by copies"
                    .into(),
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
            Some((reasons, loads)) => loads_for(kernel, loads.into_iter().zip(reasons), "are not prefetched"),
            None => format!("the loaded tile takes more than {MOST_AHEAD} registers per thread"),
        })
    }

    /// Why nothing can be issued ahead in a loop, regardless of its loads.
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
                Some(param) => format!("its step `{}` is not a constant", param.name),
                None => "its step is not a positive constant".into(),
            });
        }
        None
    }

    /// Why the operands of a loop's dots are not copied ahead.
    fn of_dots(&self, laid: &Kernel, of: Op) -> String {
        let loads = loads_of_dots(laid, of);
        let is_dot = |op: &Op| matches!(laid.kind(*op), OpKind::Dot { .. });
        if !reads::own_ops(laid, of).iter().any(is_dot) {
            return "its dots are MMAs already and stay unchanged".into();
        }
        if loads.is_empty() {
            return "its dots use nothing that it loads in each iteration".into();
        }
        if !self.cx.structure.stages() {
            return match self.asked.stages() {
                false => PLAIN.into(),
                true => "shared memory has no room for the operands of its dots; use smaller blocks".into(),
            };
        }
        if let Some(reason) = self.of_loop(laid, of) {
            return reason;
        }
        left(laid, of, true).unwrap_or_else(|| "there is no shared-memory layout for the operands of its dots".into())
    }
}

/// The structure in which nothing is issued ahead.
const PLAIN: &str = "`structure` is `plain`";

/// The arguments whose loads are not copied ahead for the dots of a loop, and why; of `all` loads, or only of those
/// that can never be copies.
pub(super) fn left(laid: &Kernel, of: Op, all: bool) -> Option<String> {
    let loads = loads_of_dots(laid, of);
    let taken = indices(laid, of, &loads);
    let reason = |load: Op| match why_no_copy(laid, of, load) {
        Some(reason) => Some(reason),
        None if taken.contains(&load) => Some("other addresses depend on it".to_owned()),
        None if all => Some("the dots of the loop cannot read it from shared memory".to_owned()),
        None => None,
    };
    let said = loads_for(
        laid,
        loads.into_iter().filter_map(|load| Some((load, reason(load)?))),
        "are not asynchronous copies",
    );
    (!said.is_empty()).then_some(said)
}

/// `loads from a and b are not asynchronous copies because ..; loads from c ..`: loads with a reason each, and what that is the reason for.
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
        .map(|(reason, names)| format!("loads from {} {what} because {reason}", super::sentences::listed(&names)));
    said.collect::<Vec<String>>().join("; ")
}

/// The loads that addresses of others follow from.
fn indices(laid: &Kernel, of: Op, loads: &[Op]) -> HashSet<Op> {
    let others = loads.iter().filter_map(|load| addresses(laid, of, &roots(laid, &[*load])));
    others.flat_map(|part| part.ops).collect()
}

/// Why a load is no copy; the conditions are those of `stage_operands`.
fn why_no_copy(kernel: &Kernel, of: Op, load: Op) -> Option<String> {
    let OpKind::Load { vector, .. } = kernel.kind(load) else { return None };
    let result = kernel.result(load, 0);
    let Some(elem) = kernel.value_type(result).elem().filter(|elem| !elem.is_ptr()) else {
        return Some("it loads pointers".into());
    };
    if let Some(reason) = why_not_early(kernel, of, load, &roots(kernel, &[load])) {
        return Some(reason);
    }
    let is_zero = |other| constant_bits(kernel, other) == Some(0);
    if !kernel.optional(load, 1).is_none_or(is_zero) {
        return Some("its `other` is not 0".into());
    }
    if copied_width(kernel, load).is_some() {
        return None;
    }
    let bytes = vector.unwrap_or(1) * elem.bytes();
    Some(match bytes {
        ..4 => format!("{bytes} bytes at a time are too few for `cp.async`, which needs at least 4"),
        _ => "the tile is not 2-D, or has fewer elements than there are threads".into(),
    })
}

/// Why a load is not begun in an iteration before, with what `roots` follow from.
fn why_not_early(kernel: &Kernel, of: Op, load: Op, roots: &[Value]) -> Option<String> {
    if let OpKind::Load { volatile: true, .. } = kernel.kind(load) {
        return Some("the load is volatile".into());
    }
    let Some(part) = addresses(kernel, of, roots) else {
        return Some("its address depends on the previous iteration".into());
    };
    let read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
    let mut pointers = read.map(|op| kernel.operand(*op, 0)).chain([kernel.operand(load, 0)]);
    let pointer = pointers.find(|pointer| !is_unchanged(kernel, of, *pointer))?;
    Some(match writes(kernel, of, pointer) {
        true => "the loop also writes through this argument".into(),
        false => "it must not be moved before other accesses of the loop, such as atomics".into(),
    })
}

/// Whether a loop stores through the argument that a pointer leads to.
fn writes(kernel: &Kernel, of: Op, pointer: Value) -> bool {
    let read = memory(kernel, pointer);
    let mut stores =
        rtc_ir::walk_nested(kernel, of).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Store { .. }));
    read.is_some() && stores.any(|op| memory(kernel, kernel.operand(op, 0)) == read)
}

/// Why the passes have left nothing of a loop.
pub(super) fn why_gone(laid: &Kernel, span: Span) -> &'static str {
    let within = |op: &Op| {
        let place = laid.loc(laid.op(*op).loc).span;
        place.is_some_and(|place| place.file == span.file && span.start < place.start && place.end <= span.end)
    };
    match rtc_ir::walk(laid).iter().any(within) {
        true => "fully unrolled",
        false => "removed: its results are unused, or it has no iterations",
    }
}

/// Where iterations of a loop of the source are taken several at a time, or without their masks, in loops before the one
/// with the rest.
pub(super) fn unrolled_iterations(kernel: &Kernel, loops: &[Op]) -> Option<String> {
    let [first, .., rest] = loops else { return None };
    let counted = |of: &Op| matches!(kernel.kind(*of), OpKind::ForRange { .. });
    loops.iter().all(counted).then_some(())?;
    let side_by_side = loops.iter().all(|of| kernel.op(*of).parent == kernel.op(*first).parent);
    let steps = [*first, *rest].map(|of| small_step(kernel, of));
    let ([Some(wide), Some(step)], true) = (steps, side_by_side) else { return None };
    (wide % step == 0).then_some(())?;
    Some(match wide / step {
        1 => "; iterations whose masks are all true run without masks".to_owned(),
        times => format!("; unrolled by {times}"),
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

//! `missing-mask`: an access without a mask that can pass a bound.
//!
//! Two signs: another access compares the same offsets with a bound in its mask, and this one has none; or the access
//! follows a loop whose bound is not a multiple of its step, so that the last block exceeds it. Offsets after `%` are
//! other offsets. If only one of the accesses is in a branch, there is no warning: the condition may imply the bound.

use std::collections::{HashMap, HashSet};

use rtc_ir::analysis::{Part, conjunction};
use rtc_ir::{Kernel, Literal, Loc, Op, OpKind, Predicate, Value, ValueDef, linear_sources, regions, view, walk};
use rtc_source::{Code, Diagnostic, Span};

use super::{About, REACH, text};

/// Further accesses of a kernel repeat those before, by unrolling.
const MAX_ACCESSES: usize = 1024;

pub(super) fn check(about: &About<'_>) -> Vec<(Diagnostic, Loc)> {
    let (kernel, accesses) = (about.kernel, &about.sites.accesses);
    if accesses.values().all(|a| a.mask.is_some()) {
        return Vec::new();
    }
    let ordered: Vec<Op> = walk(kernel).into_iter().filter(|op| accesses.contains_key(op)).take(MAX_ACCESSES).collect();
    let mut bounded: HashMap<Value, MaskBound> = HashMap::new();
    for op in &ordered {
        let Some(mask) = kernel.mask(*op) else { continue };
        for comparison in comparisons(kernel, mask) {
            bounded.entry(comparison.offsets).or_insert(MaskBound { comparison: comparison.op, access: *op });
        }
    }
    let mut found = Vec::new();
    for op in ordered.into_iter().filter(|op| kernel.mask(*op).is_none()) {
        let Some(pointer) = kernel.pointer(op) else { continue };
        let parts = parts(kernel, pointer);
        let other = parts.iter().find_map(|v| bounded.get(v)).filter(|b| same_branches(kernel, op, b.access));
        let diagnostic = match other {
            Some(bound) => masked_elsewhere(about, op, bound),
            None => past_the_loop(about, op, &parts),
        };
        found.extend(diagnostic.map(|d| (d, kernel.op(op).loc)));
    }
    found
}

/// A comparison of offsets in the mask of an access.
struct MaskBound {
    comparison: Op,
    access: Op,
}

struct Comparison {
    offsets: Value,
    op: Op,
}

/// The comparisons `offsets < bound` of a mask; the bound is the same in all iterations of a loop.
fn comparisons(kernel: &Kernel, mask: Value) -> Vec<Comparison> {
    let comparison = |part: Part| {
        let op = kernel.def_op(part.value)?;
        let OpKind::CmpI { predicate } = kernel.kind(op) else { return None };
        let sides = view::CmpI::at(kernel, op);
        let [l, r] = [sides.lhs(), sides.rhs()].map(|side| kernel.source(side));
        let (offsets, bound) = match predicate {
            Predicate::Lt | Predicate::Le | Predicate::Ult | Predicate::Ule => (l, r),
            Predicate::Gt | Predicate::Ge | Predicate::Ugt | Predicate::Uge => (r, l),
            Predicate::Eq | Predicate::Ne => return None,
        };
        (has_arange(kernel, offsets) && is_fixed(kernel, bound)).then_some(Comparison { offsets, op })
    };
    conjunction(kernel, mask).into_iter().filter_map(comparison).collect()
}

fn has_arange(kernel: &Kernel, value: Value) -> bool {
    linear(kernel, value).into_iter().any(|v| arange_size(kernel, v).is_some())
}

/// How many numbers an `arange` counts.
fn arange_size(kernel: &Kernel, value: Value) -> Option<i64> {
    match kernel.def_op(value).map(|op| kernel.kind(op)) {
        Some(OpKind::Arange { start, end }) => Some(end - start),
        _ => None,
    }
}

/// Whether a scalar is made of arguments and constants alone.
fn is_fixed(kernel: &Kernel, value: Value) -> bool {
    let (mut seen, mut work) = (HashSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        if seen.len() > REACH {
            return false;
        }
        match kernel.value(value).def {
            ValueDef::Arg(block, _) if block != kernel.body() => return false,
            ValueDef::Arg(..) => {}
            ValueDef::Result(op, _) => match kernel.kind(op) {
                OpKind::Arange { .. }
                | OpKind::Load { .. }
                | OpKind::DescLoad {}
                | OpKind::DescGather {}
                | OpKind::BlockLoad { .. } => return false,
                kind if !regions::flow(kind).is_empty() => return false,
                _ => work.extend(&kernel.op(op).operands),
            },
        }
    }
    true
}

/// All values that a value is a linear function of, itself included.
fn linear(kernel: &Kernel, value: Value) -> HashSet<Value> {
    let (mut seen, mut work) = (HashSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if seen.len() < REACH && seen.insert(value) {
            work.extend(linear_sources(kernel, value));
        }
    }
    seen
}

/// The values that a block of addresses is a sum of.
fn parts(kernel: &Kernel, pointer: Value) -> HashSet<Value> {
    let (mut seen, mut work) = (HashSet::new(), vec![pointer]);
    while let Some(value) = work.pop() {
        if seen.len() >= REACH || !seen.insert(value) {
            continue;
        }
        match kernel.def_op(value).map(|op| kernel.op(op)) {
            Some(data) if matches!(data.kind, OpKind::AddPtr {}) => work.extend(&data.operands),
            _ => work.extend(linear_sources(kernel, value)),
        }
    }
    seen
}

/// Whether an operation runs some of its blocks under a condition.
fn is_branch(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    !regions::flow(kind).is_empty() && !regions::is_loop(kind)
}

/// Whether no branch holds one of the two accesses and not the other.
fn same_branches(kernel: &Kernel, a: Op, b: Op) -> bool {
    let branches = |mut op: Op| {
        let mut out = Vec::new();
        while let Some(block) = kernel.op(op).parent {
            let Some(parent) = kernel.block(block).parent else { break };
            if is_branch(kernel, parent) {
                out.push(block);
            }
            op = parent;
        }
        out
    };
    branches(a) == branches(b)
}

fn masked_elsewhere(about: &About<'_>, op: Op, bound: &MaskBound) -> Option<Diagnostic> {
    let kernel = about.kernel;
    let access = about.sites.accesses.get(&op)?;
    let place = |op: Op| kernel.loc(kernel.op(op).loc).span;
    let comparison = place(bound.comparison)?;
    let condition = text(about, comparison).unwrap_or("the comparison");
    let what = if access.store { "store" } else { "load" };
    let mut d = Diagnostic::warning(
        Code::MISSING_MASK,
        place(op)?,
        format!("this `{what}` has no mask, but the same offsets are masked elsewhere"),
    )
    .primary(pointer_text(about, op))
    .label(comparison, "the bound of these offsets");
    if let Some(other) = place(bound.access).filter(|p| *p != comparison) {
        d = d.label(other, "masked here");
    }
    let rest = if access.store { "" } else { ", other=0.0" };
    d = d.help(format!("pass `mask={condition}{rest}`, or show that all offsets are inside"));
    // The call's last character, before which an argument goes.
    let span = d.span();
    if about.source_text(span).is_some_and(|call| call.ends_with(')')) && text(about, comparison).is_some() {
        let at = span.end - 1;
        d = d.edit(Span { start: at, end: at, ..span }, format!(", mask={condition}{rest}"));
    }
    Some(d)
}

fn pointer_text(about: &About<'_>, op: Op) -> String {
    let pointer = about.sites.accesses.get(&op).and_then(|a| a.pointer.ty.as_ref());
    pointer.map_or(String::new(), |t| format!("accesses all of {t}"))
}

/// An access along a loop `range(lower, upper, step)` in blocks of `step`, where the last block is not whole.
fn past_the_loop(about: &About<'_>, op: Op, parts: &HashSet<Value>) -> Option<Diagnostic> {
    let kernel = about.kernel;
    let literal = |v: Value| match kernel.def_op(kernel.source(v)).map(|op| kernel.kind(op)) {
        Some(OpKind::Constant { value: Literal::Int(i) }) => Some(*i),
        _ => None,
    };
    let mut inner = op;
    while let Some(parent) = kernel.op(inner).parent.and_then(|b| kernel.block(b).parent) {
        inner = parent;
        let data = kernel.op(parent);
        if is_branch(kernel, parent) {
            return None;
        }
        let OpKind::ForRange { .. } = data.kind else { continue };
        let index = kernel.block(data.blocks[0]).args[0];
        if !parts.contains(&index) {
            continue;
        }
        let range = view::ForRange::at(kernel, parent);
        let [lower, upper, step] = [range.lower(), range.upper(), range.step()].map(literal);
        let step = step.filter(|s| *s > 1)?;
        let whole = match (lower?, upper) {
            (lower, Some(upper)) => (upper - lower) % step == 0,
            (lower, None) => lower % step == 0 && divides(kernel, range.upper(), step)?,
        };
        let along = parts.iter().any(|v| arange_size(kernel, *v) == Some(step));
        if whole || !along {
            continue;
        }
        let access = about.sites.accesses.get(&op)?;
        let what = if access.store { "store" } else { "load" };
        let span = kernel.loc(kernel.op(op).loc).span?;
        let bound = match upper {
            Some(upper) => format!("{upper} is not a multiple of {step}"),
            None => format!("the bound is not known to be a multiple of {step}"),
        };
        let mut d = Diagnostic::warning(
            Code::MISSING_MASK,
            span,
            format!("this `{what}` has no mask, and the last round of the loop passes the bound"),
        )
        .primary(pointer_text(about, op));
        if let Some(place) = kernel.loc(data.loc).span {
            d = d.label(place, bound);
        }
        let rest = if access.store { "" } else { ", other=0.0" };
        return Some(d.help(format!("compare the offsets with the bound of the loop: `mask=offsets < bound{rest}`")));
    }
    None
}

/// Whether an argument is known to be a multiple; nothing is said of other values.
fn divides(kernel: &Kernel, value: Value, step: i64) -> Option<bool> {
    let param = kernel.params.iter().find(|p| p.value == kernel.source(value))?;
    Some(i64::from(param.divisible_by) % step == 0)
}

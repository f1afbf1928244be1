//! Warnings about kernels that are right for small inputs only: each looks at the finished tile IR, where it is known what
//! flows where, and at the places that were noted while it was built.
//!
//! | file | codes |
//! | --- | --- |
//! | `index.rs`, `ranges.rs` | `index-overflow`, `index-may-overflow`: products in 32 bits that become addresses |
//! | `masks.rs`, `lanes.rs` | `missing-mask`, `missing-other`: accesses past a bound, lanes that nobody loaded |
//! | `accumulator.rs` | `half-accumulator`: sums of products in 16 bits |
//!
//! `narrowing-store` needs the types only and is found by `store` itself. All are reported whatever their level; the levels
//! are applied by whoever shows them (`rtc_source::Levels`). Code of the standard library is not looked at.

mod accumulator;
mod index;
mod lanes;
mod masks;
mod ranges;

use std::collections::{HashMap, HashSet};

use rtc_ir::{Kernel, Loc, Op, OpKind, Value};
use rtc_source::{Diagnostic, Span};

use crate::emitter::Emitter;
use crate::values::{Arg, Tensor, Val};

/// How many values a search goes through before it gives up: kernels of many unrolled steps have long chains.
const REACH: usize = 512;
/// The deepest nesting of loops in which a search goes round more than once.
const NESTING: u32 = 3;

/// An operand as the user wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub span: Span,
    /// Its type, unless it is a constant.
    pub ty: Option<Tensor>,
}

impl Side {
    pub(crate) fn of(arg: &Arg<'_>) -> Side {
        let ty = match &arg.val {
            Val::Tensor(t) => Some(*t),
            _ => None,
        };
        Side { span: arg.span, ty }
    }
}

/// An access as the user wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub pointer: Side,
    pub mask: Option<Span>,
    pub store: bool,
}

/// Places of operations, noted while they are built: only user code is in it.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub products: HashMap<Op, [Side; 2]>,
    pub accesses: HashMap<Op, Access>,
}

/// Looks at the finished kernel.
pub(crate) fn check(cx: &mut Emitter<'_>) {
    let mut found = index::check(cx);
    found.extend(masks::check(cx));
    found.extend(lanes::check(cx));
    found.extend(accumulator::check(cx));
    let mut seen = HashSet::new();
    for (diagnostic, loc) in found {
        // Unrolled and inlined code repeats; one report for each place is enough.
        if seen.insert((diagnostic.code, diagnostic.span())) {
            let diagnostic = with_calls(cx, diagnostic, loc);
            cx.report(diagnostic);
        }
    }
}

/// Labels the calls through which the code was inlined.
fn with_calls(cx: &Emitter<'_>, mut diagnostic: Diagnostic, loc: Loc) -> Diagnostic {
    let mut next = cx.kernel.loc(loc).caller;
    while let Some(caller) = next {
        let data = cx.kernel.loc(caller);
        if let Some(span) = data.span
            && diagnostic.labels.iter().all(|l| l.span != span)
        {
            let name = cx.source_text(span).and_then(|text| text.split('(').next()).unwrap_or_default().trim();
            diagnostic = diagnostic.label(span, format!("in this call of `{name}`"));
        }
        next = data.caller;
    }
    diagnostic
}

/// The source text of a place, on one line; nothing for what is too long to repeat.
fn text<'a>(cx: &Emitter<'a>, span: Span) -> Option<&'a str> {
    cx.source_text(span).filter(|text| !text.is_empty() && text.len() <= 60 && !text.contains('\n'))
}

/// The value under what only gives it another shape.
fn unshaped(kernel: &Kernel, mut value: Value) -> Value {
    while let Some(op) = kernel.def_op(value) {
        match kernel.kind(op) {
            OpKind::Splat {} | OpKind::ExpandDims { .. } | OpKind::Broadcast {} | OpKind::Hint { .. } => {
                value = kernel.operand(op, 0);
            }
            _ => break,
        }
    }
    value
}

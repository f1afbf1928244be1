//! Facts about the expressions of a kernel, for editors: their types, shapes and values, and the definitions that they
//! refer to.
//!
//! A place can be evaluated several times: in an unrolled loop, or in a function that several calls inline. Then it has
//! several values, of which the first few are kept.

use std::collections::HashMap;

use rtc_ir::{Kernel, Shape, Type};
use rtc_source::Span;

use crate::const_eval::Const;
use crate::library::is_library;
use crate::types::ElemTy;
use crate::values::{FunctionKind, Val};

/// The number of different values of one place that are kept.
const MAX_VALUES: usize = 4;

/// An expression, or a name at its assignment or as a parameter, with the values that it had.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The place.
    pub span: Span,
    /// Its different values, in the order of evaluation; at most four.
    pub values: Vec<FactValue>,
    /// Whether there were more.
    pub more: bool,
    /// The definition that it refers to.
    pub refers: Option<Refers>,
}

/// A value as an editor shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum FactValue {
    /// A run-time value: its element type in the language (`uint32`), the sizes of its block (none for a scalar), and its
    /// type in the tile IR (`tile<128x64xf16>`).
    Tensor {
        /// Element type.
        dtype: String,
        /// Sizes.
        shape: Vec<u32>,
        /// Type in the tile IR.
        ty: String,
    },
    /// A constant, as `static_print` shows it; strings have quotes.
    Constant(String),
    /// Anything else, described: `the module \`tl\``.
    Other(String),
}

/// The definition that an expression refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refers {
    /// The name in the definition of a function or class of a file.
    Definition(Span),
    /// A function of the language: its namespace as in [`Entry::namespace`](crate::reference::Entry), and its name.
    Entry(&'static str, String),
}

/// A value in the form in which it is compared.
#[derive(Clone, PartialEq)]
enum Seen {
    Tensor(ElemTy, Shape, Type),
    Constant(Const),
    Other(String),
}

#[derive(Default)]
struct Record {
    values: Vec<Seen>,
    more: bool,
    refers: Option<Refers>,
}

/// The facts of one kernel while it is analysed.
#[derive(Default)]
pub(crate) struct Facts {
    /// Whether an argument of the kernel is unknown, so that parts of it were passed over.
    pub unknown: bool,
    places: HashMap<Span, Record>,
}

impl Facts {
    /// Notes the value of a place in a file of the user.
    pub(crate) fn note(&mut self, kernel: &Kernel, span: Span, val: &Val<'_>) {
        if is_library(span.file) || span.start == span.end || matches!(val, Val::Error) {
            return;
        }
        let record = self.places.entry(span).or_default();
        if record.refers.is_none() {
            record.refers = refers(val);
        }
        let seen = match val {
            Val::Tensor(t) => Seen::Tensor(t.elem, t.shape, kernel.value_type(t.value)),
            Val::Const(c) => Seen::Constant(c.clone()),
            other => Seen::Other(other.describe()),
        };
        if record.values.contains(&seen) {
            return;
        }
        if record.values.len() < MAX_VALUES {
            record.values.push(seen);
        } else {
            record.more = true;
        }
    }

    /// All facts, in the order of their places.
    pub(crate) fn finish(self) -> Vec<Fact> {
        let facts = self.places.into_iter().map(|(span, record)| Fact {
            span,
            values: record.values.into_iter().map(shown).collect(),
            more: record.more,
            refers: record.refers,
        });
        let mut facts: Vec<Fact> = facts.collect();
        facts.sort_by_key(|fact| fact.span);
        facts
    }
}

fn shown(seen: Seen) -> FactValue {
    match seen {
        Seen::Tensor(elem, shape, ty) => {
            FactValue::Tensor { dtype: elem.to_string(), shape: shape.iter().copied().collect(), ty: ty.to_string() }
        }
        Seen::Constant(Const::Str(text)) => FactValue::Constant(format!("{text:?}")),
        Seen::Constant(value) => FactValue::Constant(value.to_string()),
        Seen::Other(text) => FactValue::Other(text),
    }
}

fn refers(val: &Val<'_>) -> Option<Refers> {
    match val {
        // A wrapper of the standard library is documented like a built-in function.
        Val::Function(f) if is_library(f.def.name.span.file) => {
            (f.kind != FunctionKind::Host).then(|| Refers::Entry("tl", f.def.name.text.to_string()))
        }
        Val::Function(f) => Some(Refers::Definition(f.def.name.span)),
        Val::Class(class, _) => Some(Refers::Definition(class.name.span)),
        Val::Builtin(b) => Some(Refers::Entry(b.namespace.name(), b.name.to_owned())),
        Val::Method(m) => refers(&m.1),
        _ => None,
    }
}

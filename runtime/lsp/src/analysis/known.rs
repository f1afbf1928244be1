//! Facts in the form in which they are kept and shown.

use std::rc::Rc;

use rtc_sema::{Fact, FactValue, Refers};
use rtc_source::Span;

use super::items::Moves;

/// A fact about a place.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) span: Span,
    pub(crate) values: Rc<Vec<Value>>,
    /// Whether there are more values.
    pub(crate) more: bool,
    pub(crate) refers: Option<Rc<Refers>>,
    /// Whether types and sizes are assumed.
    pub(crate) assumed: bool,
}

/// A value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A run-time value: the type in the language, `fp16[128, 64]`, and in the tile IR, `tile<128x64xf16>`.
    Tensor { language: String, ir: String },
    /// A constant.
    Constant(String),
    /// A description.
    Other(String),
}

impl Known {
    /// Keeps a fact; `sizes` are the names of assumed sizes.
    pub(crate) fn new(fact: Fact, assumed: bool, sizes: &[(String, u32)]) -> Known {
        let values = fact.values.into_iter().map(|value| match value {
            FactValue::Tensor { dtype, shape, ty } if shape.is_empty() => Value::Tensor { language: dtype, ir: ty },
            FactValue::Tensor { dtype, shape, ty } => {
                let named = |size: &u32| match sizes.iter().find(|(_, s)| s == size) {
                    Some((name, _)) => name.clone(),
                    None => size.to_string(),
                };
                let dims: Vec<String> = shape.iter().map(named).collect();
                let ir = match ty.strip_prefix("tile<").filter(|_| !sizes.is_empty()) {
                    Some(rest) => {
                        let element = rest.splitn(shape.len() + 1, 'x').last().unwrap_or_default();
                        format!("tile<{}x{element}", dims.join("x"))
                    }
                    None => ty,
                };
                Value::Tensor { language: format!("{dtype}[{}]", dims.join(", ")), ir }
            }
            FactValue::Constant(text) => Value::Constant(text),
            FactValue::Other(text) => Value::Other(text),
        });
        Known {
            span: fact.span,
            values: Rc::new(values.collect()),
            more: fact.more,
            refers: fact.refers.map(Rc::new),
            assumed,
        }
    }

    /// The same with the place of a definition that it refers to moved.
    pub(crate) fn moved(&self, moves: &Moves) -> Option<Known> {
        let refers = match self.refers.as_deref() {
            Some(Refers::Definition(span)) => Some(Rc::new(Refers::Definition(moves.span(*span)?))),
            _ => self.refers.clone(),
        };
        Some(Known { refers, ..self.clone() })
    }
}

/// The facts of several kernels. A place with facts of several kernels has the values of all chosen specializations, or if
/// there are none, of all assumed ones. `units` has the chosen ones first.
pub(crate) fn merge<'k>(units: impl Iterator<Item = &'k [Known]>) -> Vec<Known> {
    let mut all: Vec<&Known> = units.flatten().collect();
    // Stable: facts of one place stay in the order of the units.
    all.sort_by_key(|fact| (fact.span.start, std::cmp::Reverse(fact.span.end)));
    let mut merged: Vec<Known> = Vec::with_capacity(all.len());
    for fact in all {
        match merged.last_mut().filter(|last| last.span == fact.span) {
            Some(known) if known.assumed == fact.assumed => {
                if known.values != fact.values {
                    let new = fact.values.iter().filter(|v| !known.values.contains(v)).cloned();
                    let all: Vec<Value> = known.values.iter().cloned().chain(new).collect();
                    known.more |= fact.more;
                    known.values = Rc::new(all);
                }
            }
            Some(_) => {}
            None => merged.push(fact.clone()),
        }
    }
    merged
}

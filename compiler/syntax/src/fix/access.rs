//! Loads and stores through block pointers.

use std::collections::HashSet;

use rtc_source::Span;

use super::Edit;
use super::calls::{LOAD, Refused, Result, STORE, bind, dimensions, given, member, needed, refuse};
use super::names::Names;
use super::pointer::{Group, word};
use crate::ast::{Arg, Expr, ExprKind};

/// The longest line that is not broken.
const LINE: usize = 110;

/// A load or store.
pub(super) struct PointerAccess<'a> {
    pub span: Span,
    /// The location of the variable.
    pub pointer: Span,
    variable: &'a str,
    function: &'static str,
    args: Result<Vec<(&'static str, &'a Arg)>>,
}

/// A call as access through one of the variables.
pub(super) fn access<'a>(
    call: &'a Expr,
    func: &'a Expr,
    args: &'a [Arg],
    variables: &HashSet<&str>,
) -> Option<PointerAccess<'a>> {
    let (module, name) = member(func)?;
    let (function, parameters) = match name {
        "load" => ("load", LOAD),
        "store" => ("store", STORE),
        _ => return None,
    };
    // `p.store(value)`.
    if let Some(variable) = module.as_name().filter(|v| function == "store" && variables.contains(&***v)) {
        let args = bind(args, &parameters[1..]);
        return Some(PointerAccess { span: call.span, pointer: module.span, variable, function, args });
    }
    let named = args.iter().find(|a| a.name.as_ref().is_some_and(|n| &*n.text == "pointer"));
    let pointer = named.or(args.first().filter(|a| a.name.is_none()))?;
    let variable = pointer.value.as_name().filter(|v| variables.contains(&***v))?;
    let args = bind(args, parameters);
    Some(PointerAccess { span: call.span, pointer: pointer.value.span, variable, function, args })
}

impl<'a> PointerAccess<'a> {
    fn bound(&self) -> Result<&[(&'static str, &'a Arg)]> {
        self.args.as_deref().map_err(Refused::clone)
    }

    /// The dimensions whose bounds are checked.
    pub fn checked(&self, rank: usize) -> Result<Vec<usize>> {
        dimensions(given(self.bound()?, "boundary_check"), rank)
    }

    /// The edits do not touch the stored value, which may contain other accesses.
    pub fn edits(&self, names: &Names<'_>, group: &Group) -> Result<Vec<Edit>> {
        let bound = self.bound()?;
        let without = ["mask", "other"].iter().find_map(|name| given(bound, name));
        if let Some(arg) = without.filter(|arg| !matches!(arg.value.kind, ExprKind::None)) {
            return refuse(arg.span, "block pointers take neither `mask` nor `other`");
        }
        if !names.comments(self.span).is_empty() {
            return refuse(self.span, "there is a comment in this call, which would be lost");
        }
        let value = match self.function {
            "store" => Some(needed(bound, "value", self.span)?.value.span),
            _ => None,
        };
        let further = self.further(names, group, bound)?;
        let head = format!("{}.{}(", group.module, self.function);
        let first = group.addresses(self.variable);
        let stored = value.map_or("", |span| names.source(span));
        let width: usize = further.iter().map(|arg| arg.len() + 2).sum();
        let column = names.column(self.span.start);
        let is_long = column + head.len() + first.len() + stored.len() + width + 3 > LINE;
        let indentation = names.line_indentation(self.span.start);
        let (open, between, close) = match is_long {
            true => (format!("\n{indentation}    "), format!(",\n{indentation}    "), format!(",\n{indentation})")),
            false => (String::new(), ", ".to_owned(), ")".to_owned()),
        };
        let before = format!("{head}{open}{first}");
        let after = further.iter().map(|arg| format!("{between}{arg}")).collect::<String>() + &close;
        let part = |start: u32, end: u32| Span { file: self.span.file, start, end };
        Ok(match value {
            None => vec![Edit { span: self.span, text: before + &after }],
            Some(value) => vec![
                Edit { span: part(self.span.start, value.start), text: before + &between },
                Edit { span: part(value.end, self.span.end), text: after },
            ],
        })
    }

    /// The arguments behind pointer and value.
    fn further(&self, names: &Names<'_>, group: &Group, bound: &[(&'static str, &'a Arg)]) -> Result<Vec<String>> {
        let mut args = Vec::new();
        let padding = match given(bound, "padding_option") {
            Some(arg) => match word(&arg.value) {
                Some("zero") => Some("other=0"),
                Some("nan") => Some("other=float(\"nan\")"),
                Some("") => None,
                _ => return refuse(arg.span, "`padding_option` is not written out"),
            },
            None => None,
        };
        if let Some(mask) = group.mask(self.variable, &self.checked(group.rank)?) {
            args.push(format!("mask={mask}"));
            args.extend(padding.map(str::to_owned));
        }
        for name in ["cache_modifier", "eviction_policy", "volatile"] {
            args.extend(given(bound, name).map(|arg| format!("{name}={}", names.source(arg.value.span))));
        }
        Ok(args)
    }
}

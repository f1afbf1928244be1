//! The block pointers of one function.

use std::collections::{BTreeMap, HashSet};

use rtc_source::Span;

use super::access::{Access, access};
use super::calls::{ADVANCE, MAKE, Refused, Result, bind, elements, is_block_pointer_call, member, needed, refuse};
use super::names::Names;
use super::pointer::{Group, Made};
use super::{Edit, Fixed, Left};
use crate::ast::{Expr, ExprKind, FunctionDef, Stmt, StmtKind, walk_expressions};

/// A statement that binds a block pointer.
pub(super) struct Binding<'a> {
    pub stmt: Span,
    pub target: &'a str,
    pub what: What<'a>,
}

/// What it is bound to.
pub(super) enum What<'a> {
    /// `make_block_ptr(..)`.
    Made(Made<'a>),
    /// `advance(from, offsets)`, or `from` itself, which is moved by nothing.
    From { from: &'a str, by: Vec<&'a Expr> },
}

/// The statements of a block and of all blocks in it, but for those of functions and classes.
pub(super) fn flat(body: &[Stmt]) -> Vec<&Stmt> {
    let mut all = Vec::new();
    for stmt in body {
        all.push(stmt);
        match &stmt.kind {
            StmtKind::If { body, orelse, .. }
            | StmtKind::For { body, orelse, .. }
            | StmtKind::While { body, orelse, .. } => {
                all.extend(flat(body));
                all.extend(flat(orelse));
            }
            StmtKind::With { body, .. } => all.extend(flat(body)),
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                all.extend(flat(body));
                handlers.iter().for_each(|handler| all.extend(flat(&handler.body)));
                all.extend(flat(orelse));
                all.extend(flat(finalbody));
            }
            _ => {}
        }
    }
    all
}

/// Rewrites what can be, and says of the rest why it cannot.
pub(super) fn rewrite(text: &str, function: &FunctionDef, fixed: &mut Fixed) {
    let mut names = Names::of(text, function);
    let (bindings, refused) = bindings(function);
    let mut calls = Vec::new();
    walk_expressions(&function.body, &mut |e| {
        if let ExprKind::Call { func, args } = &e.kind {
            calls.push((e, &**func, &args[..]));
        }
    });
    let pointers: HashSet<&str> = bindings.iter().map(|b| b.target).collect();
    let all: Vec<Access> = calls.iter().filter_map(|(e, func, args)| access(e, func, args, &pointers)).collect();
    for group in groups(&bindings) {
        let own: Vec<&Binding> = bindings.iter().filter(|b| group.contains(b.target)).collect();
        let accesses: Vec<Access> = calls.iter().filter_map(|(e, func, args)| access(e, func, args, &group)).collect();
        match edits(&mut names, function, &group, &own, (&accesses, &all), &refused) {
            Ok(edits) => fixed.edits.extend(edits),
            Err(why) => {
                let calls = calls.iter().filter(|(e, func, args)| {
                    let bound = own.iter().any(|b| b.stmt.start <= e.span.start && e.span.end <= b.stmt.end);
                    let accessed = accesses.iter().any(|a| a.span == e.span);
                    (bound || accessed) && (accessed || is_block_pointer_call(func, args))
                });
                let left = calls.map(|(e, ..)| Left { span: e.span, at: why.at, reason: why.reason.clone() });
                fixed.left.extend(left);
            }
        }
    }
    for (target, why) in refused {
        let known = fixed.left.iter().any(|left| left.span == why.span);
        if !known && !bindings.iter().any(|b| b.target == target) {
            fixed.left.push(Left { span: why.span, at: why.why.at, reason: why.why.reason });
        }
    }
    let parameters: HashSet<&str> = function.params.iter().map(|p| &*p.name.text).collect();
    for (e, func, args) in calls {
        let inside = |outer: Span| outer.start <= e.span.start && e.span.end <= outer.end;
        // The edits of a store begin and end where it does.
        let known = fixed.edits.iter().any(|edit| inside(edit.span) || edit.span.start == e.span.start)
            || fixed.left.iter().any(|l| l.span == e.span);
        if known || !is_block_pointer_call(func, args) {
            continue;
        }
        let makes = member(func).is_some_and(|(_, name)| name == "make_block_ptr");
        let first = match &func.kind {
            _ if makes => None,
            ExprKind::Attribute { value, attr } if &*attr.text == "advance" && args.len() == 1 => value.as_name(),
            _ => args.first().and_then(|a| a.value.as_name()),
        };
        let reason = match first {
            Some(name) if parameters.contains(&**name) => format!("the block pointer `{name}` is a parameter"),
            Some(name) => format!("`{name}` is bound to no block pointer that could be followed"),
            None => "the block pointer is not assigned to a variable by a statement of its own".to_owned(),
        };
        fixed.left.push(Left { span: e.span, at: e.span, reason });
    }
}

/// A binding that was not understood.
struct Unclear {
    span: Span,
    why: Refused,
}

/// The statements that bind block pointers to names, and those that look so but were not understood.
fn bindings(function: &FunctionDef) -> (Vec<Binding<'_>>, Vec<(&str, Unclear)>) {
    let mut known = Vec::new();
    let mut refused = Vec::new();
    for stmt in flat(&function.body) {
        let StmtKind::Assign { targets, value } = &stmt.kind else { continue };
        let [Expr { kind: ExprKind::Name(target), .. }] = &targets[..] else { continue };
        let target: &str = target;
        match binding(value) {
            Ok(Some(what)) => known.push(Binding { stmt: stmt.span, target, what }),
            Ok(None) => {}
            Err(why) => refused.push((target, Unclear { span: value.span, why })),
        }
    }
    // Copies of other things than block pointers are not of interest.
    let (made, edges) = (known_made(&known), edges(&known));
    known.retain(|b| match &b.what {
        What::Made(_) => true,
        What::From { from, .. } => is_rooted(from, &made, &edges),
    });
    (known, refused)
}

fn known_made<'a>(known: &[Binding<'a>]) -> HashSet<&'a str> {
    known.iter().filter(|b| matches!(b.what, What::Made(_))).map(|b| b.target).collect()
}

fn edges<'a>(known: &[Binding<'a>]) -> Vec<(&'a str, &'a str)> {
    let edge = |b: &Binding<'a>| match &b.what {
        What::From { from, .. } => Some((b.target, *from)),
        What::Made(_) => None,
    };
    known.iter().filter_map(edge).collect()
}

/// Whether a name comes from a block pointer that was made.
fn is_rooted(name: &str, made: &HashSet<&str>, edges: &[(&str, &str)]) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![name];
    while let Some(name) = work.pop() {
        if made.contains(name) {
            return true;
        }
        if seen.insert(name) {
            work.extend(edges.iter().filter(|(to, _)| *to == name).map(|(_, from)| *from));
        }
    }
    false
}

/// What a value is, if it is a block pointer or may be one.
fn binding(value: &Expr) -> Result<Option<What<'_>>> {
    if let Some(from) = value.as_name() {
        return Ok(Some(What::From { from, by: Vec::new() }));
    }
    let ExprKind::Call { func, args } = &value.kind else { return Ok(None) };
    let Some((module, name)) = member(func) else { return Ok(None) };
    match name {
        "make_block_ptr" => Made::read(value, module, &bind(args, MAKE)?).map(|made| Some(What::Made(made))),
        "advance" if args.len() == 1 => {
            let Some(from) = module.as_name() else { return Ok(None) };
            let bound = bind(args, &ADVANCE[1..])?;
            let by = elements(needed(&bound, "offsets", value.span)?, "`offsets`")?;
            Ok(Some(What::From { from, by: by.iter().collect() }))
        }
        "advance" => {
            let bound = bind(args, ADVANCE)?;
            let base = needed(&bound, "base", value.span)?;
            let by = elements(needed(&bound, "offsets", value.span)?, "`offsets`")?;
            match base.value.as_name() {
                Some(from) => Ok(Some(What::From { from, by: by.iter().collect() })),
                None => refuse(base.span, "the block pointer is not held in a variable"),
            }
        }
        _ => Ok(None),
    }
}

/// Names that are bound to each other, in the order of the source.
fn groups<'a>(bindings: &[Binding<'a>]) -> Vec<HashSet<&'a str>> {
    let mut number: BTreeMap<&str, usize> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for b in bindings {
        if !number.contains_key(b.target) {
            number.insert(b.target, order.len());
            order.push(b.target);
        }
    }
    for (to, from) in edges(bindings) {
        let (Some(a), Some(b)) = (number.get(to).copied(), number.get(from).copied()) else { continue };
        number.values_mut().filter(|n| **n == a.max(b)).for_each(|n| *n = a.min(b));
    }
    let mut groups: Vec<(usize, HashSet<&str>)> = Vec::new();
    for name in order {
        let of = number[name];
        match groups.iter_mut().find(|(n, _)| *n == of) {
            Some((_, group)) => {
                group.insert(name);
            }
            None => groups.push((of, HashSet::from([name]))),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The edits for the variables of a group.
fn edits(
    names: &mut Names<'_>,
    function: &FunctionDef,
    variables: &HashSet<&str>,
    bindings: &[&Binding<'_>],
    (accesses, all): (&[Access<'_>], &[Access<'_>]),
    refused: &[(&str, Unclear)],
) -> Result<Vec<Edit>> {
    if let Some((_, unclear)) = refused.iter().find(|(target, _)| variables.contains(target)) {
        return Err(unclear.why.clone());
    }
    if let Some(param) = function.params.iter().find(|p| variables.contains(&*p.name.text)) {
        return refuse(param.span, format!("`{}` is also a parameter", param.name.text));
    }
    all_uses_known(function, variables, bindings, accesses)?;
    let mut checked: HashSet<usize> = HashSet::new();
    let group = Group::new(names, variables, bindings, |rank| {
        for access in accesses {
            checked.extend(access.checked(rank)?);
        }
        Ok(checked)
    })?;
    let mut edits = Vec::new();
    for binding in bindings {
        let within = |access: &&Access| binding.stmt.start <= access.span.start && access.span.end <= binding.stmt.end;
        if let Some(access) = all.iter().find(within) {
            return refuse(access.span, "memory is read through a block pointer within this statement");
        }
        let lines = group.bind(names, binding)?;
        let (separator, comments) = match names.indentation(binding.stmt.start) {
            Some(indentation) => (format!("\n{indentation}"), names.comments(binding.stmt)),
            None if names.comments(binding.stmt).is_empty() => ("; ".to_owned(), Vec::new()),
            None => return refuse(binding.stmt, "there are comments in this statement, which begins within a line"),
        };
        let parts: Vec<&str> = comments.into_iter().chain(lines.iter().map(String::as_str)).collect();
        edits.push(Edit { span: binding.stmt, text: parts.join(&separator) });
    }
    for access in accesses {
        edits.extend(access.edits(names, &group)?);
    }
    Ok(edits)
}

/// Refuses a use of one of the variables that is none of those that are rewritten.
fn all_uses_known(
    function: &FunctionDef,
    variables: &HashSet<&str>,
    bindings: &[&Binding<'_>],
    accesses: &[Access<'_>],
) -> Result<()> {
    let mut unknown: Option<&Expr> = None;
    let inner: Vec<Span> = flat(&function.body)
        .into_iter()
        .filter(|stmt| matches!(stmt.kind, StmtKind::FunctionDef(_) | StmtKind::ClassDef(_)))
        .map(|stmt| stmt.span)
        .collect();
    walk_expressions(&function.body, &mut |e| {
        let ExprKind::Name(name) = &e.kind else { return };
        if unknown.is_some() || !variables.contains(&**name) {
            return;
        }
        let inside = |outer: &Span| outer.start <= e.span.start && e.span.end <= outer.end;
        let is_known = bindings.iter().any(|b| inside(&b.stmt)) || accesses.iter().any(|a| a.pointer == e.span);
        if !is_known || inner.iter().any(inside) {
            unknown = Some(e);
        }
    });
    match unknown {
        Some(e) => {
            refuse(e.span, "the block pointer is used here in another way than by `load`, `store` and `advance`")
        }
        None => Ok(()),
    }
}

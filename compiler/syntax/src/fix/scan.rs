//! The uses of block pointers in a function: their bindings to names.

use std::collections::HashSet;

use rtc_source::Span;

use super::calls::{ADVANCE, MAKE, Refused, Result, bind, elements, member, needed, refuse};
use super::handed::Results;
use super::pointer::MakeBlockPtr;
use crate::ast::{Arg, Expr, ExprKind, FunctionDef, Stmt, StmtKind, walk_expressions};

/// A call.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub whole: &'a Expr,
    pub func: &'a Expr,
    pub args: &'a [Arg],
}

impl Call<'_> {
    /// The function, if that is a name.
    pub fn name(&self) -> Option<&str> {
        self.func.as_name().map(|name| &**name)
    }
}

/// A name that a statement binds to a block pointer.
pub(super) struct Binding<'a> {
    pub stmt: Span,
    pub target: &'a str,
    /// The location of the name.
    pub at: Span,
    pub what: What<'a>,
}

/// The bound value.
pub(super) enum What<'a> {
    /// `make_block_ptr(..)`.
    MakeBlockPtr(MakeBlockPtr<'a>),
    /// `advance(from, offsets)`, or `from` itself, which is moved by nothing.
    From { from: &'a str, by: Vec<&'a Expr> },
    /// A result of a function of the file: all of it, or the one at a place.
    Given { call: Call<'a>, place: Option<usize> },
}

/// A binding that was not understood.
pub(super) struct Unclear {
    pub span: Span,
    pub why: Refused,
}

/// A function.
pub(super) struct Scan<'a> {
    pub function: &'a FunctionDef,
    pub calls: Vec<Call<'a>>,
    /// The values that it returns.
    pub returned: Vec<&'a Expr>,
    pub bindings: Vec<Binding<'a>>,
    pub refused: Vec<(&'a str, Unclear)>,
    /// The parameters to which calls in the file hand block pointers.
    pub params: HashSet<&'a str>,
}

impl<'a> Scan<'a> {
    pub fn of(function: &'a FunctionDef) -> Scan<'a> {
        let mut calls = Vec::new();
        walk_expressions(&function.body, &mut |e| {
            if let ExprKind::Call { func, args } = &e.kind {
                calls.push(Call { whole: e, func, args });
            }
        });
        let value = |stmt: &'a Stmt| if let StmtKind::Return(value) = &stmt.kind { value.as_ref() } else { None };
        let returned = flat(&function.body).into_iter().filter_map(value).collect();
        let (bindings, refused, params) = Default::default();
        Scan { function, calls, returned, bindings, refused, params }
    }

    /// The names of block pointers.
    pub fn pointers(&self) -> HashSet<&'a str> {
        self.bindings.iter().map(|b| b.target).chain(self.params.iter().copied()).collect()
    }

    /// Finds the statements that bind block pointers to names, and those that look so but are not understood.
    pub fn bind(&mut self, results: &Results<'_>) {
        let (mut known, mut refused) = (Vec::new(), Vec::new());
        for stmt in flat(&self.function.body) {
            let StmtKind::Assign { targets, value } = &stmt.kind else { continue };
            let [target] = &targets[..] else { continue };
            if let ExprKind::Call { func, args } = &value.kind
                && let Some(places) = func.as_name().and_then(|name| results.get(&**name))
            {
                let call = Call { whole: value, func, args };
                let items: &[Expr] = match &target.kind {
                    ExprKind::Tuple(items) | ExprKind::List(items) => items,
                    _ => &[],
                };
                for place in places {
                    let item = place.map_or(Some(target), |place| items.get(place));
                    if let Some((item, name)) = item.and_then(|item| Some((item, item.as_name()?))) {
                        let what = What::Given { call, place: *place };
                        known.push(Binding { stmt: stmt.span, target: name, at: item.span, what });
                    }
                }
                continue;
            }
            let Some(name) = target.as_name() else { continue };
            match binding(value) {
                Ok(Some(what)) => known.push(Binding { stmt: stmt.span, target: name, at: target.span, what }),
                Ok(None) => {}
                Err(why) => refused.push((&**name, Unclear { span: value.span, why })),
            }
        }
        // Copies of other things than block pointers are not of interest.
        let mut rooted = self.params.clone();
        rooted.extend(known.iter().filter(|b| !matches!(b.what, What::From { .. })).map(|b| b.target));
        let edges = edges(&known);
        known.retain(|b| match &b.what {
            What::From { from, .. } => is_rooted(from, &rooted, &edges),
            _ => true,
        });
        (self.bindings, self.refused) = (known, refused);
    }
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

/// Which names are bound to which others.
pub(super) fn edges<'a>(known: &[Binding<'a>]) -> Vec<(&'a str, &'a str)> {
    let edge = |b: &Binding<'a>| match &b.what {
        What::From { from, .. } => Some((b.target, *from)),
        _ => None,
    };
    known.iter().filter_map(edge).collect()
}

/// Whether a name comes from one of those.
fn is_rooted(name: &str, rooted: &HashSet<&str>, edges: &[(&str, &str)]) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![name];
    while let Some(name) = work.pop() {
        if rooted.contains(name) {
            return true;
        }
        if seen.insert(name) {
            work.extend(edges.iter().filter(|(to, _)| *to == name).map(|(_, from)| *from));
        }
    }
    false
}

/// The kind of a value, if it is or may be a block pointer.
fn binding(value: &Expr) -> Result<Option<What<'_>>> {
    if let Some(from) = value.as_name() {
        return Ok(Some(What::From { from, by: Vec::new() }));
    }
    let ExprKind::Call { func, args } = &value.kind else { return Ok(None) };
    let Some((module, name)) = member(func) else { return Ok(None) };
    match name {
        "make_block_ptr" => {
            MakeBlockPtr::read(value, module, &bind(args, MAKE)?).map(|made| Some(What::MakeBlockPtr(made)))
        }
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

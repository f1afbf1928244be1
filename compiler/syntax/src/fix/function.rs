//! The block pointers of a file, function by function.

use std::collections::{BTreeMap, HashSet};

use rtc_source::Span;

use super::access::{PointerAccess, access};
use super::calls::{Result, is_block_pointer_call, member, refuse};
use super::handed::{File, PassedPointer, items};
use super::names::Names;
use super::pointer::{Group, MakeBlockPtr, Shape};
use super::scan::{Binding, Call, Scan, What};
use super::uses::all_uses_known;
use super::{Edit, Fixed, Left};
use crate::ast::{FunctionDef, Module};

/// Rewrites what can be, and says of the rest why it cannot. `top`: those of the functions that calls can name.
pub(super) fn rewrite(
    text: &str,
    module: &Module,
    functions: &[&FunctionDef],
    top: &[&FunctionDef],
    fixed: &mut Fixed,
) {
    let file = File::of(module, functions, top);
    let mut names: Vec<Names> = functions.iter().map(|function| Names::of(text, function)).collect();
    let all: Vec<Vec<PointerAccess>> = file.scans.iter().map(|scan| accesses(scan, &scan.pointers())).collect();
    for group in file.groups() {
        match edits(&file, &mut names, &group, &all) {
            Ok(edits) => fixed.edits.extend(edits),
            Err(why) => {
                let left = group.iter().flat_map(|(f, variables)| uses(&file.scans[*f], variables));
                fixed.left.extend(left.map(|span| Left { span, at: why.at, reason: why.reason.clone() }));
            }
        }
    }
    for scan in &file.scans {
        rest(scan, fixed);
    }
}

/// Loads and stores through variables.
fn accesses<'a>(scan: &Scan<'a>, variables: &HashSet<&str>) -> Vec<PointerAccess<'a>> {
    scan.calls.iter().filter_map(|c| access(c.whole, c.func, c.args, variables)).collect()
}

/// The calls of a function that need the block pointers of a group.
fn uses(scan: &Scan<'_>, variables: &HashSet<&str>) -> Vec<Span> {
    let accesses = accesses(scan, variables);
    let of = |call: &&Call<'_>| {
        let span = call.whole.span;
        let accessed = accesses.iter().any(|a| a.span == span);
        let own = scan.bindings.iter().filter(|b| variables.contains(b.target));
        let bound = own.map(|b| b.stmt).any(|stmt| stmt.start <= span.start && span.end <= stmt.end);
        accessed || bound && is_block_pointer_call(call.func, call.args)
    };
    scan.calls.iter().filter(of).map(|call| call.whole.span).collect()
}

/// Reports for the calls that belong to no group why they stay.
fn rest(scan: &Scan<'_>, fixed: &mut Fixed) {
    for (target, unclear) in &scan.refused {
        let known = fixed.left.iter().any(|left| left.span == unclear.span);
        if !known && !scan.bindings.iter().any(|b| b.target == *target) {
            let (at, reason) = (unclear.why.at, unclear.why.reason.clone());
            fixed.left.push(Left { span: unclear.span, at, reason });
        }
    }
    let pointers = scan.pointers();
    let parameters: HashSet<&str> = scan.function.params.iter().map(|p| &*p.name.text).collect();
    for Call { whole: e, func, args } in &scan.calls {
        let inside = |outer: Span| outer.start <= e.span.start && e.span.end <= outer.end;
        // The edits of a store begin and end where it does.
        let known = fixed.edits.iter().any(|edit| inside(edit.span) || edit.span.start == e.span.start)
            || fixed.left.iter().any(|l| l.span == e.span);
        if known || !is_block_pointer_call(func, args) {
            continue;
        }
        let makes = member(func).is_some_and(|(_, name)| name == "make_block_ptr");
        let first = match member(func) {
            _ if makes => None,
            Some((module, "advance")) if args.len() == 1 => module.as_name(),
            _ => args.first().and_then(|a| a.value.as_name()),
        };
        let reason = match first {
            Some(name) if parameters.contains(&**name) => format!(
                "the block pointer `{name}` is a parameter, and no call in this file gives it one from a variable; take its \
                 base, shape, strides and offsets as parameters, and compute addresses and mask here"
            ),
            Some(name) if pointers.contains(&**name) => {
                "what `advance` gives is not assigned to a variable by a statement of its own".to_owned()
            }
            Some(name) => format!("`{name}` is bound to no block pointer that could be followed"),
            None => "the block pointer is not assigned to a variable by a statement of its own".to_owned(),
        };
        fixed.left.push(Left { span: e.span, at: e.span, reason });
    }
}

/// The edits for the variables of a group.
fn edits(
    file: &File<'_>,
    names: &mut [Names<'_>],
    group: &BTreeMap<usize, HashSet<&str>>,
    all: &[Vec<PointerAccess<'_>>],
) -> Result<Vec<Edit>> {
    let own = |f: usize| file.scans[f].bindings.iter().filter(move |b| group[&f].contains(b.target));
    let mut handed: BTreeMap<usize, Vec<PassedPointer<'_>>> = BTreeMap::new();
    for (f, variables) in group {
        let scan = &file.scans[*f];
        if let Some((_, unclear)) = scan.refused.iter().find(|(target, _)| variables.contains(target)) {
            return Err(unclear.why.clone());
        }
        check_params(file, *f, variables)?;
        let of: Vec<PassedPointer<'_>> =
            file.handed(*f).into_iter().filter(|h| variables.contains(h.variable)).collect();
        all_uses_known(scan, variables, &accesses(scan, variables), &of)?;
        handed.insert(*f, of);
    }
    let made: Vec<&MakeBlockPtr> = group.keys().flat_map(|f| own(*f)).filter_map(|b| made(b)).collect();
    let Some(first) = group.keys().next() else { return Ok(Vec::new()) };
    let mut shape = Shape::of(&names[*first], &made, group.len() > 1)?;
    for (f, variables) in group {
        for access in accesses(&file.scans[*f], variables) {
            shape.checked.extend(access.checked(shape.rank)?);
        }
    }
    let mut made_of: BTreeMap<usize, Group> = BTreeMap::new();
    for (f, variables) in group {
        let bindings: Vec<&Binding> = own(*f).collect();
        let mut is_given = file.scans[*f].params.iter().any(|param| variables.contains(param));
        for binding in &bindings {
            if let What::Given { call, place } = &binding.what {
                is_given |= file.moved(call, *place)?.is_none();
            }
        }
        let module = module_of(file, &names[*f], *f, group, &made);
        made_of.insert(*f, Group::new(&mut names[*f], variables, &bindings, (&shape, module), is_given));
    }
    let mut edits = Vec::new();
    for (f, variables) in group {
        let (scan, parts, names) = (&file.scans[*f], &made_of[f], &names[*f]);
        let inside = |stmt: Span, span: Span| stmt.start <= span.start && span.end <= stmt.end;
        for binding in own(*f) {
            if let What::Given { call, place } = &binding.what {
                edits.extend(given(file, names, parts, binding, (call, *place))?);
                continue;
            }
            if let Some(access) = all[*f].iter().find(|access| inside(binding.stmt, access.span)) {
                return refuse(access.span, "memory is read through a block pointer within this statement");
            }
            if let Some(handed) = file.handed(*f).iter().find(|handed| inside(binding.stmt, handed.arg.span)) {
                return refuse(handed.arg.span, "a block pointer is handed to a function within this statement");
            }
            edits.push(bound(names, parts, binding)?);
        }
        for access in accesses(scan, variables) {
            edits.extend(access.edits(names, parts)?);
        }
        for PassedPointer { variable, arg, to, param } in &handed[f] {
            let given = parts.parts(variable, true);
            let text = match arg.name {
                None => given,
                Some(_) => {
                    let names = made_of[to].parts(param, true);
                    names.iter().zip(given).map(|(name, value)| format!("{name}={value}")).collect()
                }
            };
            edits.push(Edit { span: arg.span, text: text.join(", ") });
        }
        for param in scan.function.params.iter().filter(|p| variables.contains(&*p.name.text)) {
            edits.push(Edit { span: param.span, text: parts.parts(&param.name.text, true).join(", ") });
        }
        for (place, item) in scan.returned.iter().flat_map(|value| items(value)) {
            if let Some(name) = item.as_name().filter(|name| variables.contains(&***name)) {
                let all = file.origin(*f, place)? == super::handed::Origin::MakeBlockPtr;
                edits.push(Edit { span: item.span, text: parts.parts(name, all).join(", ") });
            }
        }
    }
    Ok(edits)
}

fn made<'b, 'a>(binding: &'b Binding<'a>) -> Option<&'b MakeBlockPtr<'a>> {
    if let What::MakeBlockPtr(made) = &binding.what { Some(made) } else { None }
}

/// The name of the language's module in a function: that of its own calls, or of others of the group.
fn module_of(
    file: &File<'_>,
    names: &Names<'_>,
    f: usize,
    group: &BTreeMap<usize, HashSet<&str>>,
    made: &[&MakeBlockPtr<'_>],
) -> String {
    let pointers = file.scans[f].pointers();
    let of_call = file.scans[f].calls.iter().find_map(|call| {
        let (module, name) = member(call.func)?;
        let is_pointer = module.as_name().is_some_and(|name| pointers.contains(&**name));
        (!is_pointer && matches!(name, "load" | "store" | "advance" | "make_block_ptr")).then_some(module.span)
    });
    let span = of_call.or(made.first().filter(|_| group.len() > 1).map(|made| made.module.span));
    span.map_or("tl", |span| names.source(span)).to_owned()
}

/// Refuses parameters that are bound again to another tensor, and functions that are not known to be called with block pointers.
fn check_params(file: &File<'_>, f: usize, variables: &HashSet<&str>) -> Result<()> {
    let scan = &file.scans[f];
    let mut given = Vec::new();
    for param in scan.function.params.iter().filter(|p| variables.contains(&*p.name.text)) {
        let name: &str = &param.name.text;
        let is_own = |b: &&Binding<'_>| match &b.what {
            What::From { from, .. } => *from == name,
            What::MakeBlockPtr(_) => false,
            What::Given { call, place } => matches!(file.moved(call, *place), Ok(Some(moved)) if moved == name),
        };
        let others = scan.bindings.iter().filter(|b| b.target == name);
        if !scan.params.contains(name) || !others.clone().all(|b| is_own(&b)) {
            return refuse(param.span, format!("`{name}` is also a parameter"));
        }
        given.push(name);
    }
    let places = file.places(f, variables);
    if given.is_empty() && places.is_empty() {
        return Ok(());
    }
    file.check_calls(f, &given, &places)
}

/// The edit of a statement that makes or moves a block pointer.
fn bound(names: &Names<'_>, parts: &Group, binding: &Binding<'_>) -> Result<Edit> {
    let lines = parts.bind(names, binding)?;
    let (separator, comments) = match names.indentation(binding.stmt.start) {
        Some(indentation) => (format!("\n{indentation}"), names.comments(binding.stmt)),
        None if names.comments(binding.stmt).is_empty() => ("; ".to_owned(), Vec::new()),
        None => return refuse(binding.stmt, "there are comments in this statement, which begins within a line"),
    };
    let text: Vec<&str> = comments.into_iter().chain(lines.iter().map(String::as_str)).collect();
    Ok(Edit { span: binding.stmt, text: text.join(&separator) })
}

/// The edits of a statement that binds the result of a function.
fn given<'a>(
    file: &File<'a>,
    names: &Names<'_>,
    parts: &Group,
    binding: &Binding<'_>,
    (call, place): (&Call<'a>, Option<usize>),
) -> Result<Vec<Edit>> {
    let moved = file.moved(call, place)?;
    let text = parts.parts(binding.target, moved.is_none()).join(", ");
    let mut edits = vec![Edit { span: binding.at, text }];
    if let Some(from) = moved.filter(|from| *from != binding.target) {
        let separator = names.indentation(binding.stmt.start).map_or("; ".to_owned(), |i| format!("\n{i}"));
        let lines = parts.same_tensor(binding.target, from);
        let text: String = lines.iter().map(|line| format!("{separator}{line}")).collect();
        edits.push(Edit { span: Span { start: binding.stmt.end, ..binding.stmt }, text });
    }
    Ok(edits)
}

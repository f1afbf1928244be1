//! The kernels among the functions of a file.
//!
//! Any `@triton.jit` function can be asked for by name. Where none is named, a kernel is one that no other function calls or
//! takes as an argument, and that has an effect: a function that stores nothing, such as an activation that is passed to
//! a kernel, is not one, as long as another is there.

use crate::docs;
use rtc_abi::{DType, ValueType};
use rtc_source::Span;
use rtc_syntax::ast::{Expr, ExprKind, FunctionDef, Module, Stmt, StmtKind, walk_expressions};
use std::collections::HashSet;

/// A jit function of the main file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// The comments above it and its docstring.
    pub doc: String,
    /// Its parameters, in order.
    pub params: Vec<ParamInfo>,
    /// Whether another jit function of the file refers to it, or it is an argument of a launch.
    pub is_called: bool,
    /// Whether it stores or prints, itself or by what it calls.
    pub has_effects: bool,
    /// The keyword of its decorator that lists parameters, if its value is not written out and so is not known here.
    pub unread: Option<String>,
}

/// A parameter of a jit function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// The comment on it.
    pub doc: String,
    /// Annotated as `tl.constexpr`.
    pub is_constexpr: bool,
    /// It has a default.
    pub has_default: bool,
    /// The type in its annotation.
    pub pinned: Option<PinnedType>,
    /// Its value may become part of the kernel: 1 as a constant, and whether it is a multiple of 16.
    pub specialize: bool,
    /// Whether it is a multiple of 16 may become part of the kernel, if `specialize` allows it, too.
    pub specialize_alignment: bool,
}

/// The type of a run-time argument in an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinnedType {
    /// Exactly this type.
    Type(ValueType),
    /// A read-only pointer, to the element type of the argument.
    ConstPointer,
}

/// The jit functions at the top level of a file, in order.
pub(crate) fn kernels(module: &Module, text: &str) -> Vec<KernelInfo> {
    let (spans, functions): (Vec<Span>, Vec<&FunctionDef>) = jit_functions(&module.body).unzip();
    let effects = with_effects(&functions, &imported(&module.body));
    let passed = passed_to_launches(&module.body);
    let refers = |function: &FunctionDef, name: &str| {
        let defaults = function.params.iter().filter_map(|p| p.default.as_ref());
        let mut found = defaults.into_iter().any(|default| default.as_name().is_some_and(|n| **n == *name));
        walk_expressions(&function.body, &mut |e| found |= e.as_name().is_some_and(|n| **n == *name));
        found
    };
    let info = |(function, span): (&&FunctionDef, &Span)| {
        let exempt = |keyword| exempt(function, keyword);
        let (values, alignments) = (exempt("do_not_specialize"), exempt("do_not_specialize_on_alignment"));
        let unread = [&values, &alignments].into_iter().find_map(|list| list.as_ref().err().cloned());
        let is_in = |list: &Result<Vec<usize>, String>, index| list.as_ref().is_ok_and(|list| list.contains(&index));
        let params = function.params.iter().enumerate().map(|(index, param)| ParamInfo {
            name: param.name.text.to_string(),
            doc: docs::of_param(text, param.span),
            is_constexpr: param.annotation.as_ref().is_some_and(is_constexpr),
            has_default: param.default.is_some(),
            pinned: param.annotation.as_ref().and_then(pinned),
            specialize: !is_in(&values, index),
            specialize_alignment: !is_in(&alignments, index),
        });
        let name = &*function.name.text;
        let others = functions.iter().filter(|other| other.name.text != function.name.text);
        KernelInfo {
            name: name.to_owned(),
            doc: docs::of_function(text, *span, function),
            params: params.collect(),
            is_called: passed.contains(name) || others.into_iter().any(|other| refers(other, name)),
            has_effects: effects.contains(name),
            unread,
        }
    };
    functions.iter().zip(&spans).map(info).collect()
}

/// The candidates when a request gives no name.
pub fn candidates(kernels: &[KernelInfo]) -> Vec<&KernelInfo> {
    let choose = |wanted: fn(&KernelInfo) -> bool| kernels.iter().filter(|k| wanted(k)).collect::<Vec<_>>();
    let choices = [choose(|k| !k.is_called && k.has_effects), choose(|k| !k.is_called), choose(|_| true)];
    choices.into_iter().find(|c| !c.is_empty()).unwrap_or_default()
}

/// Top-level functions with a `jit` decorator, in any spelling and with any other decorators.
fn jit_functions(body: &[Stmt]) -> impl Iterator<Item = (Span, &FunctionDef)> {
    body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::FunctionDef(function) if function.decorators.iter().any(is_jit) => Some((stmt.span, function)),
        _ => None,
    })
}

fn is_jit(decorator: &Expr) -> bool {
    let name = match &decorator.kind {
        ExprKind::Call { func, .. } => func.dotted_name(),
        _ => decorator.dotted_name(),
    };
    name.is_some_and(|name| name == "jit" || name.ends_with(".jit"))
}

/// The parameters that a keyword of the `jit` decorator lists, by name or number; the keyword if they are not literal.
fn exempt(function: &FunctionDef, keyword: &str) -> Result<Vec<usize>, String> {
    let calls = function.decorators.iter().filter(|decorator| is_jit(decorator)).filter_map(|d| match &d.kind {
        ExprKind::Call { args, .. } => Some(args),
        _ => None,
    });
    let Some(list) = calls.flatten().find(|arg| arg.name.as_ref().is_some_and(|name| &*name.text == keyword)) else {
        return Ok(Vec::new());
    };
    let unread = || keyword.to_owned();
    let items = match &list.value.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) | ExprKind::Set(items) => items.as_slice(),
        ExprKind::Str(_) => std::slice::from_ref(&list.value),
        ExprKind::None => &[],
        _ => return Err(unread()),
    };
    let place = |item: &Expr| match &item.kind {
        // A name that no parameter has exempts nothing.
        ExprKind::Str(name) => Ok(function.params.iter().position(|param| param.name.text == *name)),
        ExprKind::Int(index) => Ok(usize::try_from(*index).ok()),
        _ => Err(unread()),
    };
    Ok(items.iter().map(place).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The type that an annotation pins: a dtype's name, as a name or a text; others, such as `torch.Tensor`, pin nothing.
fn pinned(annotation: &Expr) -> Option<PinnedType> {
    let text = match &annotation.kind {
        ExprKind::Str(text) => text.to_string(),
        _ => annotation.dotted_name()?,
    };
    let text = ["triton.language.", "tl."].into_iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text);
    match text {
        "const" => Some(PinnedType::ConstPointer),
        "int" => Some(PinnedType::Type(ValueType::Scalar(DType::Int32))),
        "float" => Some(PinnedType::Type(ValueType::Scalar(DType::Fp32))),
        "bool" => Some(PinnedType::Type(ValueType::Scalar(DType::UInt1))),
        _ => ValueType::parse(text).map(PinnedType::Type),
    }
}

fn is_constexpr(annotation: &Expr) -> bool {
    match &annotation.kind {
        ExprKind::Str(text) => text.contains("constexpr"),
        _ => annotation.dotted_name().is_some_and(|name| name.contains("constexpr")),
    }
}

/// The names that files other than Triton's own bring in: the behaviour of such functions is not known here.
fn imported(body: &[Stmt]) -> HashSet<&str> {
    let known = |module: &str| ["triton", "math"].contains(&module.split('.').next().unwrap_or(module));
    let mut names = HashSet::new();
    for stmt in body {
        match &stmt.kind {
            StmtKind::Import { names: list } => {
                for alias in list.iter().filter(|a| !known(&a.name.text)) {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    names.insert(name.text.split('.').next().unwrap_or(&name.text));
                }
            }
            StmtKind::ImportFrom { module, level, names: list }
                if *level > 0 || !module.as_ref().is_some_and(|m| known(&m.text)) =>
            {
                names.extend(list.iter().map(|alias| &*alias.asname.as_ref().unwrap_or(&alias.name).text));
            }
            StmtKind::If { body, orelse, .. } => {
                names.extend(imported(body));
                names.extend(imported(orelse));
            }
            StmtKind::Try { body, handlers, .. } => {
                names.extend(imported(body));
                handlers.iter().for_each(|h| names.extend(imported(&h.body)));
            }
            _ => {}
        }
    }
    names
}

/// The functions that have an effect, by their names.
fn with_effects<'m>(functions: &[&'m FunctionDef], imported: &HashSet<&str>) -> HashSet<&'m str> {
    let mut found: HashSet<&str> = HashSet::new();
    // A function gets its effects from others, so that this goes on until nothing is found any more.
    loop {
        let before = found.len();
        for function in functions {
            let mut effect = false;
            walk_expressions(&function.body, &mut |e| {
                if let ExprKind::Call { func, .. } = &e.kind {
                    effect |= has_effect(func, &found, imported);
                }
            });
            if effect {
                found.insert(&function.name.text);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a call of `callee` has side effects, judging by the name.
fn has_effect(callee: &Expr, found: &HashSet<&str>, imported: &HashSet<&str>) -> bool {
    let named = |name: &str| {
        let stores = name == "store" || name.ends_with("_store") || name.starts_with("atomic_") || name == "scatter";
        stores || matches!(name, "device_print" | "print")
    };
    match &callee.kind {
        ExprKind::Name(name) => named(name) || found.contains(&**name) || imported.contains(&**name),
        ExprKind::Attribute { value, attr } => {
            let text = value.dotted_name();
            let root = text.as_deref().map(|t| t.split('.').next().unwrap_or(t));
            named(&attr.text) || root.is_some_and(|root| imported.contains(root))
        }
        _ => false,
    }
}

/// The names that host code passes to a launch, `kernel[grid](x, ACTIVATION=name)`, or makes constants of.
fn passed_to_launches(body: &[Stmt]) -> HashSet<&str> {
    let mut names = HashSet::new();
    walk_expressions(body, &mut |e| {
        if let ExprKind::Call { func, args } = &e.kind
            && (matches!(func.kind, ExprKind::Subscript { .. }) || is_constexpr(func))
        {
            names.extend(args.iter().filter_map(|arg| arg.value.as_name()).map(|name| &**name));
        }
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str) -> Vec<String> {
        let (module, diagnostics) = rtc_syntax::parse(rtc_source::FileId(0), text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        candidates(&kernels(&module, text)).into_iter().map(|k| k.name.clone()).collect()
    }

    const ACTIVATION: &str = "@triton.jit\ndef leaky_relu(x):\n    return tl.where(x >= 0, x, 0.01 * x)\n\n";
    const KERNEL: &str = "@triton.jit\ndef matmul_kernel(x, ACT: tl.constexpr):\n    tl.store(x, ACT(tl.load(x)))\n\n";

    #[test]
    fn a_function_without_effects_is_no_kernel_beside_one() {
        assert_eq!(chosen(&format!("{ACTIVATION}{KERNEL}")), ["matmul_kernel"]);
        assert_eq!(chosen(ACTIVATION), ["leaky_relu"]);
        let calls = "@triton.jit\ndef put(p, v):\n    tl.atomic_add(p, v)\n\n@triton.jit\ndef top(p):\n    put(p, 1)\n";
        assert_eq!(chosen(&format!("{ACTIVATION}{calls}")), ["top"]);
        let method = "@triton.jit\ndef k(d):\n    d.store([0], d.load([0]))\n";
        assert_eq!(chosen(&format!("{method}{ACTIVATION}")), ["k"]);
    }

    #[test]
    fn what_a_launch_is_given_is_no_kernel() {
        let epilogue = "@triton.jit\ndef epilogue(p, v):\n    tl.store(p, v)\n\n";
        let launch = "def host(x):\n    matmul_kernel[(1,)](x, ACT=epilogue)\n";
        assert_eq!(chosen(&format!("{epilogue}{KERNEL}{launch}")), ["matmul_kernel"]);
        let global = "STORE = tl.constexpr(epilogue)\n";
        assert_eq!(chosen(&format!("{epilogue}{KERNEL}{global}")), ["matmul_kernel"]);
        let default = "@triton.jit\ndef k(x, F: tl.constexpr = epilogue):\n    F(x, 1)\n    tl.store(x, 2)\n";
        assert_eq!(chosen(&format!("{epilogue}{default}")), ["k"]);
        assert_eq!(chosen(&format!("{epilogue}{KERNEL}")), ["epilogue", "matmul_kernel"]);
    }

    #[test]
    fn what_another_file_does_is_not_known() {
        let text = "from helpers import put\nimport triton.language as tl\n@triton.jit\ndef k(p):\n    put(p, tl.exp(1.0))\n\n";
        assert_eq!(chosen(&format!("{text}{KERNEL}")), ["k", "matmul_kernel"]);
        assert_eq!(chosen(&format!("import helpers.a\n{}", text.replace("put(", "helpers.a.put("))), ["k"]);
    }
}

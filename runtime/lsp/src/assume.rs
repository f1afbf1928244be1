//! An assumed specialization, for kernels of which none is chosen: types by the use of the parameters, and a size of its
//! own for each constexpr, so that shapes can be shown with the names of constexprs. Other parameters stay unknown.

use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue, Specialization};
use rtc_abi::{DType, ValueType};
use rtc_syntax::ast::{Arg, Expr, ExprKind, FunctionDef, Operator, Param, Stmt, StmtKind, walk_expressions};
use std::collections::HashSet;

use crate::specialize::{Choice, Origin, default_target, options};

/// Assumed sizes, in the order in which they are given out: few programs write these numbers themselves, and the product of
/// any three fits into a tile.
const SIZES: [u32; 8] = [128, 64, 32, 256, 16, 8, 512, 4];

/// The functions whose first argument is a pointer.
const POINTER_FUNCTIONS: [&str; 13] = [
    "load",
    "store",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_cas",
    "atomic_xchg",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "advance",
];

/// An assumed specialization of a function; `functions` are those it may call.
pub(crate) fn assume(function: &FunctionDef, functions: &[&FunctionDef]) -> Choice {
    let pointers = pointers(function, functions, 3);
    let sizes = sizes(function);
    let mut assumed = Vec::new();
    let mut args = Vec::new();
    for param in &function.params {
        let name = &*param.name.text;
        let kind = if is_constexpr(param) {
            if param.default.is_some() || !(sizes.contains(name) || is_size_by_name(name)) {
                continue;
            }
            let Some(size) = SIZES.get(assumed.len()) else { continue };
            assumed.push((name.to_owned(), *size));
            ArgKind::Constexpr(ConstValue::Int((*size).into()))
        } else if let Some(ty) = annotated(param) {
            ArgKind::Value { ty, divisible_by: None }
        } else if pointers.contains(name) {
            let ty = ValueType::Pointer { pointee: DType::Fp32, is_const: false };
            ArgKind::Value { ty, divisible_by: Some(16) }
        } else if param.default.is_some() || !is_scalar(function, name) {
            continue;
        } else {
            let float = ["eps", "scale", "alpha", "beta", "prob", "lr"].iter().any(|word| name.contains(word));
            ArgKind::Value { ty: ValueType::Scalar(if float { DType::Fp32 } else { DType::Int32 }), divisible_by: None }
        };
        args.push(ArgSpec { name: name.to_owned(), kind });
    }
    let spec = Specialization { kernel: function.name.text.to_string(), args, options: options() };
    Choice { spec, target: default_target(), origin: Origin::Assumed, sizes: assumed }
}

pub(crate) fn is_constexpr(param: &Param) -> bool {
    param.annotation.as_ref().is_some_and(|annotation| match &annotation.kind {
        ExprKind::Str(text) => text.contains("constexpr"),
        _ => annotation.dotted_name().is_some_and(|name| name.ends_with("constexpr")),
    })
}

/// The type in an annotation.
fn annotated(param: &Param) -> Option<ValueType> {
    let annotation = param.annotation.as_ref()?;
    let text = match &annotation.kind {
        ExprKind::Str(text) => text.to_string(),
        _ => annotation.dotted_name()?,
    };
    ValueType::parse(text.rsplit('.').next().unwrap_or(&text))
}

/// Names of pointers: those in the addresses of loads and stores, and those from which such addresses are computed.
fn pointers<'a>(function: &'a FunctionDef, functions: &[&'a FunctionDef], depth: u32) -> HashSet<&'a str> {
    let mut found: HashSet<&str> = HashSet::new();
    walk_expressions(&function.body, &mut |expr| {
        let ExprKind::Call { func, args } = &expr.kind else { return };
        match &func.kind {
            ExprKind::Attribute { value, attr }
                if value.as_name().is_some_and(|module| matches!(&**module, "tl" | "language"))
                    && POINTER_FUNCTIONS.contains(&&*attr.text) =>
            {
                // Of a block pointer the type is not known.
                let is_block_pointer = |arg: &Arg| arg.name.as_ref().is_some_and(|n| &*n.text == "boundary_check");
                if !args.iter().any(is_block_pointer) {
                    args.first().into_iter().for_each(|arg| base(&arg.value, &mut found));
                }
            }
            ExprKind::Name(name) if depth > 0 => {
                let Some(callee) = functions.iter().find(|f| f.name.text == *name) else { return };
                let inner = pointers(callee, functions, depth - 1);
                for (index, arg) in args.iter().enumerate() {
                    let param = match &arg.name {
                        Some(name) => callee.params.iter().find(|p| p.name.text == name.text),
                        None => callee.params.get(index),
                    };
                    if param.is_some_and(|p| inner.contains(&*p.name.text)) {
                        base(&arg.value, &mut found);
                    }
                }
            }
            _ => {}
        }
    });
    // From variables to the values that they are assigned.
    for _ in 0..8 {
        let before = found.len();
        assignments(&function.body, &mut |target, value| {
            if found.contains(target) {
                base(value, &mut found);
            }
        });
        if found.len() == before {
            break;
        }
    }
    found
}

/// The leftmost name of a sum.
fn base<'a>(expr: &'a Expr, found: &mut HashSet<&'a str>) {
    match &expr.kind {
        ExprKind::Name(name) => {
            found.insert(name);
        }
        ExprKind::BinOp { left, op: Operator::Add | Operator::Sub, .. } => base(left, found),
        ExprKind::Subscript { value, .. } => base(value, found),
        ExprKind::Call { func, args } => match &func.kind {
            // `tl.multiple_of(p, 16)`, `p.to(...)`.
            ExprKind::Attribute { value, attr } if &*attr.text == "to" => base(value, found),
            _ => args.first().into_iter().for_each(|arg| base(&arg.value, found)),
        },
        _ => {}
    }
}

fn assignments<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a str, &'a Expr)) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                targets.iter().filter_map(Expr::as_name).for_each(|name| visit(name, value));
            }
            StmtKind::For { body, orelse, .. }
            | StmtKind::If { body, orelse, .. }
            | StmtKind::While { body, orelse, .. } => {
                assignments(body, visit);
                assignments(orelse, visit);
            }
            _ => {}
        }
    }
}

/// Whether a parameter is computed with, and so is a number.
fn is_scalar(function: &FunctionDef, name: &str) -> bool {
    let mut found = false;
    let mut other = false;
    let is_it = |expr: &Expr| expr.as_name().is_some_and(|n| **n == *name);
    walk_expressions(&function.body, &mut |expr| match &expr.kind {
        ExprKind::BinOp { left, right, .. } => found |= is_it(left) || is_it(right),
        ExprKind::Compare { left, ops } => found |= is_it(left) || ops.iter().any(|(_, right)| is_it(right)),
        ExprKind::Attribute { value, .. } | ExprKind::Subscript { value, .. } => other |= is_it(value),
        ExprKind::Call { func, args } => {
            let callee = func.dotted_name().unwrap_or_default();
            let counts =
                matches!(&*callee, "range" | "tl.range" | "tl.cdiv" | "tl.static_range" | "min" | "tl.minimum");
            found |= counts && args.iter().any(|arg| is_it(&arg.value));
        }
        _ => {}
    });
    found && !other
}

/// Constexprs that are sizes of blocks: of ranges, of `zeros` and `full`, steps of loops.
fn sizes(function: &FunctionDef) -> HashSet<String> {
    let mut found = HashSet::new();
    walk_expressions(&function.body, &mut |expr| {
        let ExprKind::Call { func, args } = &expr.kind else { return };
        let callee = func.dotted_name().unwrap_or_default();
        let relevant = match callee.rsplit('.').next() {
            Some("arange") => args.get(1..2),
            Some("zeros" | "full" | "broadcast_to" | "reshape") => args.get(..),
            Some("range") => args.get(2..3),
            Some("static_range" | "make_block_ptr" | "make_tensor_descriptor") => args.get(..),
            _ => None,
        };
        for arg in relevant.unwrap_or_default() {
            let items = match &arg.value.kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => items.as_slice(),
                _ => std::slice::from_ref(&arg.value),
            };
            found.extend(items.iter().filter_map(Expr::as_name).map(ToString::to_string));
        }
    });
    found
}

fn is_size_by_name(name: &str) -> bool {
    ["BLOCK", "TILE", "SIZE", "DIM", "HEAD", "GROUP", "STAGES"].iter().any(|word| name.to_uppercase().contains(word))
}

//! Why a file has no kernel: what it has instead.

use rtc_syntax::ast::{Expr, ExprKind, FunctionDef, Module, Stmt, StmtKind};

/// Words that only CUDA C++ has.
const CUDA: &[&str] = &["__global__", "__device__", "#include", "<<<"];

/// One sentence about a file without kernels: the closest candidate, and its line.
pub(crate) fn why_no_kernel(text: &str, module: &Module) -> String {
    let line_of = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
    if text.trim().is_empty() {
        return "the file is empty; a kernel is a Python function with the decorator `@triton.jit`".into();
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = CUDA.iter().find(|word| line.contains(**word)) {
            return format!(
                "the file has no `@triton.jit` function; `{word}` on line {} is CUDA C++, and kernels are written in Python",
                number + 1
            );
        }
    }
    if let Some((inner, outer)) = inner_kernel(&module.body, None) {
        return format!(
            "the file has no `@triton.jit` function outside of others; `{}` on line {} stands in {outer}, so move it to the top of \
             the file",
            inner.name.text,
            line_of(inner.name.span.start as usize)
        );
    }
    let functions = module.functions();
    for function in &functions {
        for decorator in &function.decorators {
            let name = match &decorator.kind {
                ExprKind::Call { func, .. } => func.dotted_name(),
                _ => decorator.dotted_name(),
            };
            let Some(name) = name else { continue };
            let last = name.rsplit('.').next().unwrap_or(&name);
            if rtc_sema::suggest(last, ["jit"]).is_some() || last.eq_ignore_ascii_case("jit") {
                return format!(
                    "the file has no `@triton.jit` function; did you mean `@triton.jit` for `@{name}` on line {}?",
                    line_of(decorator.span.start as usize)
                );
            }
        }
    }
    let uses_language = |function: &FunctionDef| {
        let (start, end) = (function.name.span.start as usize, function.body.last().map_or(0, |s| s.span.end as usize));
        text.get(start..end).is_some_and(|body| body.contains("tl."))
    };
    match functions.iter().find(|f| uses_language(f)).or(functions.first()) {
        Some(function) => format!(
            "the file has no `@triton.jit` function; write `@triton.jit` above `def {}` on line {}",
            function.name.text,
            line_of(function.name.span.start as usize)
        ),
        None => "the file has no `@triton.jit` function, and no other function".into(),
    }
}

/// The first function with the decorator that is a part of a class or of another function, and what it is a part of.
fn inner_kernel<'a>(body: &'a [Stmt], outer: Option<&str>) -> Option<(&'a FunctionDef, String)> {
    body.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::FunctionDef(function) => match outer {
            Some(outer) if function.decorators.iter().any(is_jit) => Some((function, outer.to_owned())),
            _ => inner_kernel(&function.body, Some(&format!("the function `{}`", function.name.text))),
        },
        StmtKind::ClassDef(class) => inner_kernel(&class.body, Some(&format!("the class `{}`", class.name.text))),
        StmtKind::If { body, orelse, .. } => inner_kernel(body, outer).or_else(|| inner_kernel(orelse, outer)),
        _ => None,
    })
}

fn is_jit(decorator: &Expr) -> bool {
    let callee = if let ExprKind::Call { func, .. } = &decorator.kind { &**func } else { decorator };
    callee.dotted_name().is_some_and(|name| name.rsplit('.').next() == Some("jit"))
}

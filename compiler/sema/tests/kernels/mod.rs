//! Common code of the tests of this crate: from kernel texts to findings.
//!
//! Comments in a kernel file specify the compilation: `# signature: *fp32:16, i32, 1024` binds the parameters of the
//! function `kernel` in order, `# target: 80` selects another target than `sm_90a`, `# warn: all` and `# deny: CODE`
//! set levels of warnings.

#![allow(dead_code, reason = "every test uses its part")]

use rtc_sema::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions, Specialization, ValueType};
use rtc_sema::{Analysis, ModuleAst, TargetInfo, compile_kernel};
use rtc_source::{Diagnostics, Level, Levels, Severity, SourceMap, render};
use rtc_syntax::ast::{Module, StmtKind};

/// All numbers: names in signatures, names as printed; the order of the promotion tables.
pub const TYPES: [(&str, &str); 13] = [
    ("u1", "int1"),
    ("i8", "int8"),
    ("u8", "uint8"),
    ("i16", "int16"),
    ("u16", "uint16"),
    ("i32", "int32"),
    ("u32", "uint32"),
    ("i64", "int64"),
    ("u64", "uint64"),
    ("fp16", "fp16"),
    ("bf16", "bf16"),
    ("fp32", "fp32"),
    ("fp64", "fp64"),
];

/// Findings as the user sees them, and the output of `static_print`.
pub struct Outcome {
    pub rendered: Vec<String>,
    pub prints: Vec<String>,
    pub accepted: bool,
}

/// Compiles the function `kernel` of a text as its comments say.
pub fn compile_file(name: &str, text: &str) -> Outcome {
    let signature = directive(text, "signature").unwrap_or_default();
    let capability = directive(text, "target").map_or(90, |t| t.parse().expect("a number"));
    let mut levels = Levels::default();
    for (what, level) in [("warn", Level::Warn), ("deny", Level::Deny)] {
        for code in directive(text, what).unwrap_or_default().split_whitespace() {
            levels.set(code, level).expect("a code of warnings");
        }
    }
    compile_at(&levels, name, text, &signature, capability)
}

/// Compiles the function `kernel` of a text.
pub fn compile(name: &str, text: &str, signature: &str, capability: u32) -> Outcome {
    compile_at(&Levels::default(), name, text, signature, capability)
}

fn compile_at(levels: &Levels, name: &str, text: &str, signature: &str, capability: u32) -> Outcome {
    let (sources, result) = analyse(name, text, "kernel", |params| bind(params, signature), capability);
    let (findings, prints, accepted) = match result {
        Ok(analysis) => {
            let lints = rtc_lints::check(&analysis.kernel, &analysis.sites, &sources);
            (levels.apply(analysis.warnings.into_iter().chain(lints).collect()), analysis.prints, true)
        }
        Err(findings) => (levels.apply(findings), Vec::new(), false),
    };
    let accepted = accepted && findings.iter().all(|d| d.severity != Severity::Error);
    Outcome { rendered: findings.iter().map(|d| render(&sources, d, false)).collect(), prints, accepted }
}

/// Parses and compiles a text; syntax errors are errors.
pub fn analyse(
    name: &str,
    text: &str,
    kernel: &str,
    args: impl FnOnce(&[String]) -> Vec<ArgSpec>,
    capability: u32,
) -> (SourceMap, Result<Analysis, Diagnostics>) {
    let mut sources = SourceMap::new();
    let file = sources.add(name, text);
    let (ast, syntax) = rtc_syntax::parse(file, text);
    if !syntax.is_empty() {
        return (sources, Err(syntax));
    }
    let spec = Specialization {
        kernel: kernel.into(),
        args: args(&parameters(&ast, kernel)),
        options: LaunchOptions::default(),
    };
    let modules = [ModuleAst { name: "kernels", ast: &ast }];
    // `# libdevice: external` means a library that the user provides.
    let external_libdevice = directive(text, "libdevice").is_some();
    let target = rtc_abi::Target::of_capability(capability).expect("a known capability");
    let result = compile_kernel(&sources, &modules, &spec, TargetInfo { target, external_libdevice });
    (sources, result)
}

fn directive(text: &str, name: &str) -> Option<String> {
    let start = format!("# {name}:");
    text.lines().find_map(|line| line.strip_prefix(&start)).map(|rest| rest.trim().to_string())
}

fn parameters(module: &Module, kernel: &str) -> Vec<String> {
    let def = module.body.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::FunctionDef(def) if &*def.name.text == kernel => Some(def),
        _ => None,
    });
    def.map(|def| def.params.iter().map(|p| p.name.text.to_string()).collect()).unwrap_or_default()
}

fn bind(params: &[String], signature: &str) -> Vec<ArgSpec> {
    let entries = signature.split(',').map(str::trim).filter(|e| !e.is_empty());
    params.iter().zip(entries).map(|(name, text)| ArgSpec { name: name.clone(), kind: entry(text) }).collect()
}

fn entry(text: &str) -> ArgKind {
    let value = match text {
        "True" | "False" => ConstValue::Bool(text == "True"),
        "None" => ConstValue::None,
        _ => {
            if let Ok(i) = text.parse() {
                ConstValue::Int(i)
            } else if let Ok(x) = text.parse() {
                ConstValue::Float(x)
            } else if let Some(dtype) = text.strip_prefix("tl.") {
                ConstValue::DType(ValueType::parse(dtype).expect("a dtype"))
            } else if let Some(rest) = text.strip_prefix('"') {
                ConstValue::Str(rest.trim_end_matches('"').into())
            } else {
                let (ty, divisible_by) = match text.split_once(':') {
                    Some((ty, n)) => (ty, Some(n.parse().expect("a number"))),
                    None => (text, None),
                };
                let ty = ValueType::parse(ty).unwrap_or_else(|| panic!("`{text}` is no type"));
                return ArgKind::Value { ty, divisible_by };
            }
        }
    };
    ArgKind::Constexpr(value)
}

//! The stub of `triton.language` for editors and type checkers: `rtc/language/__init__.pyi`.

use std::fmt::Write as _;

use rtc_sema::reference::{Doc, Entry, EntryKind, entries};

/// Where it lies.
pub const PATH: &str = "runtime/python/python/rtc/language/__init__.pyi";

const HEAD: &str = "\
# Made by the tests of rtc-sema; change the docstrings there, not this file.

from typing import Any

from . import core as core, extra as extra, math as math, random as random, standard as standard
from . import target_info as target_info
from .core import (
    PropagateNan as PropagateNan,
    block_type as block_type,
    const as const,
    constexpr as constexpr,
    dtype as dtype,
    pointer_type as pointer_type,
    range as range,
    static_range as static_range,
    str_to_ty as str_to_ty,
    tensor as tensor,
    tensor_descriptor as tensor_descriptor,
)
from .extra import libdevice as libdevice

TRITON_MAX_TENSOR_NUMEL: int
";

/// Types of elements, which are values for Python.
const TYPES: &[&str] = &[
    "void",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "bfloat16",
    "float32",
    "float64",
];

/// Functions of kernels whose names the head imports: for Python they are classes, or functions of the host.
const IMPORTED: &[&str] = &[
    "range",
    "static_range",
    "constexpr",
    "dtype",
    "pointer_type",
    "block_type",
    "str_to_ty",
    "tensor",
    "tensor_descriptor",
];

/// The text of the stub.
pub fn text() -> String {
    let mut out = HEAD.to_owned();
    for name in TYPES {
        writeln!(out, "{name}: dtype").expect("writes to memory");
    }
    out.push_str("pi32_t: pointer_type\n");
    let list = entries();
    for entry in list.iter().filter(|e| e.namespace == "tl" && e.kind == EntryKind::Function) {
        if !IMPORTED.contains(&&*entry.name) && is_name(&entry.name) {
            function(&mut out, entry);
        }
    }
    out
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn function(out: &mut String, entry: &Entry) {
    let params: Vec<String> = entry.params.iter().map(|param| parameter(param)).collect();
    write!(out, "\ndef {}({}) -> Any:\n    \"\"\"", entry.name, params.join(", ")).expect("writes to memory");
    let lines = documentation(&entry.doc);
    out.push_str(&lines.join("\n"));
    out.push_str(if lines.len() > 1 { "\n    \"\"\"\n" } else { "\"\"\"\n" });
}

/// `name: tl.constexpr = default` with the type of any value.
fn parameter(param: &str) -> String {
    let (head, default) = match param.split_once('=') {
        Some((head, default)) => (head.trim(), Some(default.trim())),
        None => (param.trim(), None),
    };
    let name = head.split(':').next().unwrap_or(head).trim();
    match (name, default) {
        ("*" | "/", _) => name.to_owned(),
        (_, Some(default)) if default.starts_with("tl.") => format!("{name}: Any = ..."),
        (_, Some(default)) => format!("{name}: Any = {default}"),
        (_, None) => format!("{name}: Any"),
    }
}

/// The lines of a docstring; the first begins behind the quotes.
fn documentation(doc: &Doc) -> Vec<String> {
    let mut lines = vec![escaped(&doc.summary)];
    for text in &doc.text {
        lines.extend([String::new(), format!("    {}", escaped(text))]);
    }
    if !doc.params.is_empty() || !doc.returns.is_empty() {
        lines.push(String::new());
    }
    lines.extend(doc.params.iter().map(|(name, text)| format!("    {name}: {}", escaped(text))));
    if !doc.returns.is_empty() {
        lines.push(format!("    returns: {}", escaped(&doc.returns)));
    }
    for example in &doc.examples {
        lines.push(String::new());
        lines.extend(example.iter().map(|line| format!("    >>> {}", escaped(line))));
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"")
}

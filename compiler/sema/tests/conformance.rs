//! The types of expressions, cell by cell: tables of expressions in `tests/filetests/conformance/`, and the promotion of
//! every pair of types by the operators.

mod kernels;

use std::fmt::Write as _;
use std::path::Path;

use kernels::{Outcome, TYPES, compile};

/// The variables of every expression of the tables.
const SETUP: &str = "@triton.jit
def kernel(x, y, n, m, stride, B: tl.constexpr = 16):
    o = tl.arange(0, 16)
    a = tl.load(x + o)
    h = o.to(tl.float16)
    b = a.to(tl.bfloat16)
    i8 = o.to(tl.int8)
    u8 = o.to(tl.uint8)
    u32 = o.to(tl.uint32)
    c1 = o < 3
    z = a[:, None] + a[None, :]
    f = tl.zeros((16, 16), tl.float16)
";

/// The output of `static_print` for the last statement; `error` if the kernel is refused.
fn shown(statements: &str) -> String {
    let mut text = String::from(SETUP);
    let (before, last) = statements.rsplit_once("; ").unwrap_or(("", statements));
    before.split("; ").filter(|s| !s.is_empty()).for_each(|s| writeln!(text, "    {s}").expect("writes to memory"));
    writeln!(text, "    tl.static_print({last})").expect("writes to memory");
    outcome(compile("kernel.rt", &text, "*fp32, *fp16, i32, fp32, 1", 90))
}

fn outcome(outcome: Outcome) -> String {
    match outcome.prints.first() {
        // A scalar shows as `fp32[]`; the tables say `fp32`.
        Some(line) => line.replace("[]", ""),
        None => {
            let internal = outcome.rendered.iter().find(|r| r.starts_with("error[internal]"));
            internal.cloned().unwrap_or("error".into())
        }
    }
}

fn table(name: &str) -> Vec<(String, String, Option<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/conformance").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let rows = lines.map(|line| {
        let (expression, rest) = line.rsplit_once(" -> ").unwrap_or_else(|| panic!("no ` -> ` in `{line}`"));
        let (expected, reason) = match rest.split_once(" | ") {
            Some((expected, reason)) => (expected, Some(reason.to_string())),
            None => (rest, None),
        };
        (expression.to_string(), expected.to_string(), reason)
    });
    rows.collect()
}

fn check(cells: impl IntoIterator<Item = (String, String, String)>, at_least: usize) {
    let (mut wrong, mut count) = (String::new(), 0);
    for (cell, expected, actual) in cells {
        count += 1;
        if actual != expected {
            writeln!(wrong, "{cell}: expected {expected}, got {actual}").expect("writes to memory");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= at_least, "only {count} cells");
}

#[test]
fn expressions() {
    let cells = table("expressions.txt").into_iter().map(|(expression, expected, _)| {
        let actual = shown(&expression);
        (expression, expected, actual)
    });
    check(cells, 140);
}

#[test]
fn extensions() {
    let cells = table("extensions.txt").into_iter().map(|(expression, expected, reason)| {
        assert!(reason.is_some(), "`{expression}` is accepted without a reason");
        let actual = shown(&expression);
        (expression, expected, actual)
    });
    check(cells, 10);
}

/// The upper half of the table of `+`, row by row, from the diagonal on.
const SUMS: [&str; 13] = [
    "u1 i8 u8 i16 u16 i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "i8 u8 i16 u16 i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "u8 i16 u16 i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "i16 u16 i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "u16 i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "i32 u32 i64 u64 fp16 fp32 fp32 fp64",
    "u32 i64 u64 fp16 fp32 fp32 fp64",
    "i64 u64 fp16 fp32 fp32 fp64",
    "u64 fp16 fp32 fp32 fp64",
    "fp16 fp16 fp32 fp64",
    "bf16 fp32 fp64",
    "fp32 fp64",
    "fp64",
];

fn printed(name: &str) -> &'static str {
    TYPES.iter().find(|(n, _)| *n == name).expect("a type of the table").1
}

/// The name of the common type of two types, by the table.
fn sum_of(a: usize, b: usize) -> &'static str {
    let (row, column) = (a.min(b), a.max(b));
    SUMS[row].split(' ').nth(column - row).expect("the rows have all columns")
}

fn is_float(i: usize) -> bool {
    TYPES[i].0.contains('f')
}

fn is_signed(i: usize) -> bool {
    TYPES[i].0.starts_with('i')
}

/// The type of `EXPR` of `a` and `b`.
fn binary(expr: &str, a: &str, b: &str) -> String {
    let text = format!("@triton.jit\ndef kernel(a, b):\n    tl.static_print({expr})\n");
    outcome(compile("kernel.rt", &text, &format!("{a}, {b}"), 90))
}

#[test]
fn promotion_of_run_time_operands() {
    let mut cells = Vec::new();
    for (i, (a, _)) in TYPES.iter().enumerate() {
        for (j, (b, _)) in TYPES.iter().enumerate() {
            let common = sum_of(i, j);
            let both_ints = !is_float(i) && !is_float(j);
            let mixed = both_ints && is_signed(i) != is_signed(j);
            let divided = match common {
                _ if mixed => "error",
                "fp16" | "bf16" => "fp32",
                other => printed(other),
            };
            let quotient = if both_ints && !mixed { "fp32" } else { divided };
            let floor = if both_ints { divided } else { "error" };
            let bits = if both_ints { printed(common) } else { "error" };
            for (op, expected) in [
                ("+", printed(common)),
                ("-", printed(common)),
                ("*", printed(common)),
                ("/", quotient),
                ("//", floor),
                ("%", divided),
                ("&", bits),
                ("<<", bits),
                ("<", "int1"),
                ("==", "int1"),
            ] {
                let actual = binary(&format!("a {op} b"), a, b);
                cells.push((format!("{a} {op} {b}"), expected.to_string(), actual));
            }
            let picked = binary("tl.where(a == b, a, b)", a, b);
            cells.push((format!("where {a} {b}"), printed(common).to_string(), picked));
        }
    }
    check(cells, 13 * 13 * 11);
}

#[test]
fn promotion_of_bytes_of_floats() {
    let mut cells = Vec::new();
    for fp8 in ["fp8e5", "fp8e4nv"] {
        for (i, (other, _)) in TYPES.iter().enumerate() {
            let expected = match *other {
                _ if !is_float(i) => "error",
                "fp16" => "fp16",
                "fp64" => "fp64",
                _ => "fp32",
            };
            for (expr, a, b) in
                [("a + b", fp8, *other), ("a * b", *other, fp8), ("tl.where(a == b, a, b)", fp8, *other)]
            {
                // There is no conversion from a byte to fp64.
                if expected == "fp64" {
                    continue;
                }
                cells.push((format!("{expr} of {a} and {b}"), expected.to_string(), binary(expr, a, b)));
            }
        }
        for op in ["+", "-", "*", "/", "<", "=="] {
            cells.push((format!("{fp8} {op} {fp8}"), "error".into(), binary(&format!("a {op} b"), fp8, fp8)));
        }
    }
    check(cells, 80);
}

#[test]
fn promotion_of_constants() {
    let mut cells = Vec::new();
    for (i, (name, shown)) in TYPES.iter().enumerate() {
        let float = is_float(i);
        let (bool_, int) = if *name == "u1" { ("int1", "int32") } else { (*shown, *shown) };
        let half = matches!(*name, "fp16" | "bf16");
        let divided = if half { "fp32" } else { shown };
        let float_const = if float { shown } else { "fp32" };
        let wide_const = if float { shown } else { "fp64" };
        for (expr, expected) in [
            ("a + True", bool_),
            ("a + 1", int),
            ("1 + a", int),
            ("a - 1", int),
            ("3 * a", int),
            ("a + 0.5", float_const),
            ("0.5 * a", float_const),
            ("a * 1e300", wide_const),
            ("tl.where(True, a, 0.0)", float_const),
            ("a < 1", "int1"),
            ("a == 0.5", "int1"),
            ("a / 2.0", if float { divided } else { "fp32" }),
            ("2.0 / a", if float { divided } else { "fp32" }),
            ("a % 2.0", if float { divided } else { "fp32" }),
            ("a // 2.0", "error"),
            ("a & 1.0", "error"),
        ] {
            cells.push((format!("{expr} of {name}"), expected.to_string(), binary(expr, name, "i32")));
        }
        if !float && *name != "u1" {
            let bits: u32 = name[1..].parse().expect("a width");
            let top = if is_signed(i) { (1i128 << (bits - 1)) - 1 } else { (1i128 << bits) - 1 };
            let low = if is_signed(i) { -top - 1 } else { 0 };
            for (constant, fits) in [(top, true), (top + 1, false), (low, true), (low - 1, false)] {
                let expected = if fits { *shown } else { "error" };
                let expr = format!("a + {constant}");
                let actual = binary(&expr, name, "i32");
                cells.push((format!("{expr} of {name}"), expected.to_string(), actual));
            }
        }
    }
    check(cells, 13 * 16);
}

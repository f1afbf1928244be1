//! Tests of the parser on whole files, damaged files and deep nesting.

use super::*;
use crate::ast::{Expr, ExprKind};
use crate::lexer::lex;
use std::time::{Duration, Instant};

const KERNEL: &str = r#"import triton
import triton.language as tl
from math import pi

@triton.autotune(configs=[triton.Config({"BLOCK": 1 << i}, num_warps=w) for i in range(7, 10) for w in (4, 8)], key=["n"])
@triton.jit
def softmax(out_ptr, in_ptr, stride, n, BLOCK: tl.constexpr, *, ACT: "tl.constexpr" = None):
    """Row-wise softmax: é 漢字."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)[None, :]
    x = tl.load(in_ptr + row * stride + cols, mask=cols < n, other=-float("inf"))
    x -= tl.max(x, axis=1, keep_dims=True)
    for i in tl.static_range(0, 0x10, 2):
        if ACT is not None and (i < 3 or not n >= 1_000):
            x = ACT(x) if i else x * 2.5e-3
        elif i == 4: pass
        else:
            tl.static_assert(BLOCK > 0, f"bad {BLOCK!r:>{i}} {{}} \n")
    z = {"a": [1, 2], **{}}; w = lambda q, *r: (q, r)
    tl.store(out_ptr + row * stride + cols, tl.exp(x) / \
        tl.sum(tl.exp(x), 1), mask=cols < n)

try:
    with open('f') as f, open(r'\g'): x: int = yield_()
except (OSError, ValueError) as error:
    raise SystemExit(1) from error
"#;

fn read(text: &str) -> (Module, Diagnostics) {
    parse(FileId(0), text)
}

/// The next value of a small generator (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Cuts, doubles, swaps and inserts pieces of a text.
fn mutate(text: &str, state: &mut u64) -> String {
    const INSERTIONS: &[&str] = &[
        "(", ")", "[", "]", "{", "}", "\"", "'", "\"\"\"", "f\"", "f'''{", "{", ":", ":=", "=", "!", "\\", "\\\n",
        "\n", "\r", "\t", " ", "    ", "\x0C", "@", "@jit\n", "def ", "class ", "lambda ", "if ", " else ", "for ",
        " in ", "*", "**", ",", ";", ".", "0x", "1e", "1j", "é", "\u{feff}", "\0", "$", "#", "async ", "not ",
        "\nreturn", "\\N{",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random(state) % 6 {
        let at = random(state) as usize % (chars.len() + 1);
        let end = (at + random(state) as usize % 30).min(chars.len());
        match random(state) % 5 {
            0 => drop(chars.drain(at..end)),
            1 => {
                let piece: Vec<char> = chars[at..end].to_vec();
                chars.splice(at..at, piece);
            }
            2 if at < end => chars.swap(at, end - 1),
            3 => chars.truncate(end.max(1)),
            _ => {
                let piece = INSERTIONS[random(state) as usize % INSERTIONS.len()];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn mutated_kernels_never_panic() {
    let start = Instant::now();
    for seed in 0..3000u64 {
        let mut state = seed;
        let text = mutate(KERNEL, &mut state);
        let outcome = std::panic::catch_unwind(|| {
            let (module, diagnostics) = read(&text);
            check_spans(&module, &diagnostics, &text);
            crate::print(&module).len()
        });
        assert!(outcome.is_ok(), "seed {seed}:\n{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Every span of a statement and of a diagnostic lies inside the text, between characters.
fn check_spans(module: &Module, diagnostics: &[Diagnostic], text: &str) {
    let inside = |span: Span| text.get(span.start as usize..span.end as usize).is_some();
    module.body.iter().for_each(|stmt| assert!(inside(stmt.span), "{:?}", stmt.span));
    for label in diagnostics.iter().flat_map(|d| &d.labels) {
        assert!(inside(label.span), "{:?}", label.span);
    }
}

#[test]
fn indentation_is_balanced_and_tokens_are_in_order() {
    for seed in 0..1000u64 {
        let mut state = !seed;
        let text = mutate(KERNEL, &mut state);
        let lexed = lex(FileId(0), &text);
        let mut depth = 0i32;
        let mut end = 0;
        for token in &lexed.tokens {
            match token.token {
                Token::Indent => depth += 1,
                Token::Dedent => depth -= 1,
                Token::Error(number) => assert!((number as usize) < lexed.errors.len()),
                _ => {}
            }
            assert!(depth >= 0, "seed {seed}");
            if !matches!(token.token, Token::Error(_)) {
                assert!(token.start >= end || token.start == token.end, "seed {seed}: {token:?} before {end}");
                end = end.max(token.start);
            }
        }
        assert_eq!(depth, 0, "seed {seed}");
    }
}

#[test]
fn the_sample_is_read_whole() {
    let (module, diagnostics) = read(KERNEL);
    assert_eq!(diagnostics, []);
    assert!(module.body.iter().all(|stmt| !matches!(stmt.kind, StmtKind::Unreadable { .. })));
    assert_eq!(module.functions().len(), 1);
    assert!(module.functions()[0].is_jit());
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    let cases = [
        "(".repeat(deep) + &")".repeat(deep),
        "(".repeat(deep),
        "-".repeat(deep) + "1",
        "not ".repeat(deep) + "x",
        "x".to_owned() + &" + x".repeat(deep),
        "x".to_owned() + &" ** x".repeat(deep),
        "x".to_owned() + &".a".repeat(deep),
        "x".to_owned() + &"()".repeat(deep),
        "x".to_owned() + &"[0]".repeat(deep),
        "lambda a, b: ".repeat(deep) + "x",
        "x".to_owned() + &" if y else z".repeat(deep),
        "[".repeat(deep) + "1" + &",]".repeat(deep),
        "await ".repeat(deep) + "x",
        "f\"{".repeat(deep),
        "f\"{x:".to_owned() + &"{x:".repeat(deep),
        "x = ".to_owned() + &"{1:".repeat(deep),
    ];
    for text in cases {
        let source = format!("@triton.jit\ndef f(x):\n    {text}\n");
        let (_, diagnostics) = read(&source);
        assert_eq!(diagnostics.len(), 1, "{}", &text[..40]);
        // As host code it is skipped, and the following code is still read.
        let (module, diagnostics) = read(&format!("{text}\n\nimport a\n"));
        assert!(diagnostics.is_empty());
        assert!(matches!(module.body[0].kind, StmtKind::Unreadable { .. }), "{}", &text[..40]);
        assert!(matches!(module.body.last().map(|s| &s.kind), Some(StmtKind::Import { .. })), "{}", &text[..40]);
    }
}

#[test]
fn deep_blocks_are_refused() {
    let blocks: String = (0..1000).map(|depth| " ".repeat(depth) + "if x:\n").collect();
    let (module, _) = read(&(blocks + &" ".repeat(1000) + "pass\nx = 1\n"));
    assert!(matches!(module.body[0].kind, StmtKind::Unreadable { .. }));
    assert!(matches!(module.body.last().map(|s| &s.kind), Some(StmtKind::Assign { .. })));
    let chain = "if x: pass\n".to_owned() + &"elif x: pass\n".repeat(100_000);
    let (module, _) = read(&chain);
    assert!(matches!(module.body[0].kind, StmtKind::Unreadable { .. }));
}

#[test]
fn wide_code_is_not_deep() {
    let list: String = (0..50_000).map(|i| format!("-{i} + 1, ")).collect();
    let strings = "\"a\" ".repeat(10_000);
    let conditions = format!("y = a < b{}\n", " and a.x < 2".repeat(90));
    let (module, diagnostics) = read(&format!("x = [{list}]\ny = {strings}\n{conditions}"));
    assert!(diagnostics.is_empty());
    assert!(module.body.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign { .. })));
}

/// The text under each expression of the first statement, outermost first.
fn spans_of(text: &str) -> Vec<&str> {
    fn visit<'a>(expr: &Expr, text: &'a str, out: &mut Vec<&'a str>) {
        out.push(&text[expr.span.start as usize..expr.span.end as usize]);
        match &expr.kind {
            ExprKind::BinOp { left, right, .. } => [left, right].into_iter().for_each(|e| visit(e, text, out)),
            ExprKind::UnaryOp { operand, .. } => visit(operand, text, out),
            ExprKind::Call { func, args } => {
                visit(func, text, out);
                for arg in args {
                    out.push(&text[arg.span.start as usize..arg.span.end as usize]);
                    visit(&arg.value, text, out);
                }
            }
            ExprKind::Attribute { value, attr } => {
                visit(value, text, out);
                out.push(&text[attr.span.start as usize..attr.span.end as usize]);
            }
            ExprKind::Subscript { value, index } => [value, index].into_iter().for_each(|e| visit(e, text, out)),
            ExprKind::Tuple(items) => items.iter().for_each(|e| visit(e, text, out)),
            ExprKind::Compare { left, ops } => {
                visit(left, text, out);
                ops.iter().for_each(|(_, e)| visit(e, text, out));
            }
            _ => {}
        }
    }
    let (module, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let StmtKind::Expr(expr) = &module.body[0].kind else { panic!("not an expression") };
    let mut out = Vec::new();
    visit(expr, text, &mut out);
    out
}

#[test]
fn spans_cover_exactly_the_node() {
    assert_eq!(spans_of("  # c\na + (b * c)  # d\n"), ["a + (b * c", "a", "b * c", "b", "c"]);
    assert_eq!(
        spans_of("tl.load(x , mask = m<n)[ :, None]"),
        [
            "tl.load(x , mask = m<n)[ :, None]",
            "tl.load(x , mask = m<n)",
            "tl.load",
            "tl",
            "load",
            "x",
            "x",
            "mask = m<n",
            "m<n",
            "m",
            "n",
            ":, None",
            ":",
            "None"
        ]
    );
    assert_eq!(spans_of("(a, (b), (c, d))"), ["(a, (b), (c, d))", "a", "b", "(c, d)", "c", "d"]);
    assert_eq!(spans_of("- é . x"), ["- é . x", "é . x", "é", "x"]);
}

#[test]
fn statement_spans_end_with_their_last_line() {
    let text = "@jit\ndef f(x):\n    if x:\n        a = 1 # c\n\n    else:\n        b = 2;\n\n\n# end\nx\n";
    let (module, _) = read(text);
    let span = module.body[0].span;
    assert_eq!(&text[span.start as usize..span.end as usize], text.split(";").next().unwrap_or_default());
    let last = &module.body[1];
    assert_eq!(&text[last.span.start as usize..last.span.end as usize], "x");
}

#[test]
fn an_error_keeps_its_neighbours() {
    let text =
        "a = 1\ndef f(:\n    x x\n    y\nb = 2\n@triton.jit\ndef k(x):\n    x = = 1\n@triton.jit\ndef l(x): pass\n";
    let (module, diagnostics) = read(text);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(crate::print(&module).lines().filter(|line| line.starts_with("unreadable")).count(), 2);
    assert_eq!(module.functions().len(), 1);
}

#[test]
fn empty_files() {
    for text in ["", "\n", "\r\n\r\n", "# c", "   \n\t\n", "\u{feff}", "\u{feff}\n", "\\\n"] {
        let (module, diagnostics) = read(text);
        assert!(module.body.is_empty() && diagnostics.is_empty(), "{text:?}");
    }
}

//! The logic without the protocol: diagnostics, hover and definitions of kernels.

use std::collections::HashMap;

use lsp_types::{HoverContents, Position, Uri};
use rtc_lsp::{Files, Session};

/// Files in memory.
struct Memory(HashMap<&'static str, &'static str>);

impl Files for Memory {
    fn read(&self, name: &str) -> Option<String> {
        self.0.get(name).map(ToString::to_string)
    }
}

fn uri(name: &str) -> Option<Uri> {
    format!("file://{name}").parse().ok()
}

fn session(files: &[(&'static str, &'static str)]) -> Session {
    Session::new(Box::new(Memory(files.iter().copied().collect())))
}

/// The position of a marker `^` in the line below the one that it points into.
fn position(text: &str, needle: &str) -> Position {
    let at = text.find(needle).unwrap_or_else(|| panic!("no `{needle}`"));
    rtc_lsp::Lines::new(text).position(text, at)
}

fn hover(session: &mut Session, name: &str, text: &str, needle: &str) -> String {
    match session.hover(name, position(text, needle)).map(|hover| hover.contents) {
        Some(HoverContents::Markup(markup)) => markup.value,
        other => panic!("{needle}: {other:?}"),
    }
}

/// Line, column, code and message of each diagnostic.
fn diagnostics(session: &mut Session, name: &str) -> Vec<String> {
    let found = session.diagnostics(name, &uri);
    found
        .into_iter()
        .map(|d| {
            let code = match d.code {
                Some(lsp_types::NumberOrString::String(code)) => code,
                other => panic!("{other:?}"),
            };
            let start = d.range.start;
            format!(
                "{}:{} {code} {}",
                start.line + 1,
                start.character + 1,
                d.message.lines().next().unwrap_or_default()
            )
        })
        .collect()
}

const MATMUL: &str = "\
import triton
import triton.language as tl
from helpers import scaled

# rtc: matmul(*fp16:16, *fp16:16, *fp32:16, i32:32, M=128, N=64, K=32)
@triton.jit
def matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + i + inner[None, :])
        right = tl.load(b + (i + inner[:, None]) * N + cols[None, :])
        acc += tl.dot(left, right)
    half = acc.to(tl.float16)
    tl.store(c + rows[:, None] * N + cols[None, :], scaled(acc, 2))
";

const HELPERS: &str = "\
import triton

@triton.jit
def scaled(x, factor):
    \"\"\"`x`, scaled.\"\"\"
    return x * factor
";

fn matmul() -> Session {
    let mut session = session(&[("/k/helpers.py", HELPERS)]);
    session.open("/k/matmul.py", MATMUL);
    session
}

#[test]
fn hover_shows_types_of_the_chosen_specialization() {
    let mut session = matmul();
    assert_eq!(diagnostics(&mut session, "/k/matmul.py"), [""; 0]);
    let mut at = |needle| hover(&mut session, "/k/matmul.py", MATMUL, needle);
    let half = at("half =");
    assert!(half.contains("half: tile<128x64xf16>") && half.contains("fp16[128, 64]"), "{half}");
    assert!(half.contains("line 5"), "{half}");
    assert!(at("acc +=").contains("acc: tile<128x64xf32>"));
    assert!(at("left, right").contains("left: tile<128x32xf16>"));
    assert!(at("K)\n").contains("K = 32"), "{}", at("K)\n"));
    assert!(at("a, b, c, k").contains("a: ptr<f16>"), "{}", at("a, b, c, k"));
    assert!(at("load(a").contains("tl.load(pointer"), "{}", at("load(a"));
    assert!(at("to(tl").contains(".to("), "{}", at("to(tl"));
    let helper = at("scaled(acc");
    assert!(helper.contains("def scaled(x, factor)") && helper.contains("`x`, scaled."), "{helper}");
}

#[test]
fn definitions_are_found_in_the_file_and_in_imports() {
    let mut session = matmul();
    let mut at = |needle: &str| {
        let places = session.definition("/k/matmul.py", position(MATMUL, needle));
        places.into_iter().map(|(name, r)| (name, r.start.line + 1, r.start.character + 1)).collect::<Vec<_>>()
    };
    assert_eq!(at("scaled(acc"), [("/k/helpers.py".to_owned(), 4, 5)]);
    assert_eq!(at("scaled\n"), [("/k/helpers.py".to_owned(), 4, 5)], "the import");
    assert_eq!(at("left, right"), [("/k/matmul.py".to_owned(), 11, 9)]);
    assert_eq!(at("acc.to"), [("/k/matmul.py".to_owned(), 9, 5)]);
    assert_eq!(at("N + cols"), [("/k/matmul.py".to_owned(), 7, 41)], "a parameter");
}

#[test]
fn several_mistakes_are_reported_at_their_columns() {
    let text = MATMUL
        .replace("tl.dot(left, right)", "tl.dot(left, left)")
        .replace("tl.zeros(", "tl.zeroes(")
        .replace("half = ", "half = '🚀' if 1 else unknown; x = acc2 + ");
    let mut session = session(&[("/k/helpers.py", HELPERS)]);
    session.open("/k/matmul.py", &text);
    let found = diagnostics(&mut session, "/k/matmul.py");
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_syntax_error_hides_only_its_own_kernel() {
    let text = format!(
        "{MATMUL}\n@triton.jit\ndef broken(x:\n    y = x +\n\n@triton.jit\ndef other(x):\n    return undefined_name\n"
    );
    let mut session = session(&[("/k/helpers.py", HELPERS)]);
    session.open("/k/matmul.py", &text);
    let found = diagnostics(&mut session, "/k/matmul.py");
    insta::assert_snapshot!(found.join("\n"));
    assert!(hover(&mut session, "/k/matmul.py", &text, "half =").contains("tile<128x64xf16>"));
}

#[test]
fn host_code_has_no_diagnostics() {
    let text = "import torch\nx = undefined + 1\ndef host():\n    return tl.nothing(y)\nmatch x:\n    case 1: pass\n";
    let mut session = session(&[]);
    session.open("/k/host.py", text);
    assert_eq!(diagnostics(&mut session, "/k/host.py"), [""; 0]);
}

#[test]
fn without_a_chosen_specialization_shapes_have_the_names_of_constexprs() {
    let text = MATMUL.replace("# rtc:", "# not");
    let mut session = session(&[("/k/helpers.py", HELPERS)]);
    session.open("/k/matmul.py", &text);
    assert_eq!(diagnostics(&mut session, "/k/matmul.py"), [""; 0]);
    let half = hover(&mut session, "/k/matmul.py", &text, "half =");
    assert!(half.contains("half: tile<MxNxf16>") && half.contains("assumed"), "{half}");
    // An error that depends on the sizes is none without them; a wrong name always is one.
    let wrong = text.replace("tl.dot(left, right)", "tl.dot(left, left) + nothing");
    session.open("/k/matmul.py", &wrong);
    assert_eq!(diagnostics(&mut session, "/k/matmul.py"), [""; 0]);
    let wrong = text.replace("tl.dot(left, right)", "tl.dot(left, right) + nothing");
    session.open("/k/matmul.py", &wrong);
    assert_eq!(diagnostics(&mut session, "/k/matmul.py"), ["13:38 undefined-name the name `nothing` is not defined"]);
}

#[test]
fn a_launch_file_chooses_the_specialization() {
    let launch =
        r#"{"spec": {"kernel": "copy", "args": [{"name": "x", "type": "*bf16"}, {"name": "B", "constexpr": 256}]}}"#;
    let text = "@triton.jit\ndef copy(x, B: tl.constexpr):\n    v = tl.load(x + tl.arange(0, B))\n    tl.store(x, v)\n";
    let mut session = session(&[("/k/launch.json", launch)]);
    session.open("/k/copy.rt", text);
    let value = hover(&mut session, "/k/copy.rt", text, "v = tl");
    assert!(value.contains("v: tile<256xbf16>") && value.contains("`launch.json`"), "{value}");
    assert_eq!(diagnostics(&mut session, "/k/copy.rt").len(), 1, "the shapes do not fit");
}

#[test]
fn wrong_comments_are_reported() {
    let text = "# rtc: coppy(*fp32)\n# rtc: copy(*fp33)\n# rtc: copy(*fp32) num_warps=3\n# rtc: copy\n\
                @triton.jit\ndef copy(x):\n    pass\n";
    let mut session = session(&[]);
    session.open("/k/copy.rt", text);
    insta::assert_snapshot!(diagnostics(&mut session, "/k/copy.rt").join("\n"));
}

#[test]
fn only_changed_kernels_are_analysed_again() {
    let kernel = |name: &str, body: &str| format!("@triton.jit\ndef {name}(x):\n    {body}\n\n");
    let text = |first: &str| {
        [kernel("helper", "return x + 1"), kernel("a", first), kernel("b", "y = helper(tl.load(x))\n    z = nothing")]
            .concat()
    };
    let mut session = session(&[]);
    let run = |session: &mut Session, text: &str| {
        let before = session.analysed();
        session.open("/k/m.rt", text);
        let found = diagnostics(session, "/k/m.rt");
        (session.analysed() - before, found)
    };
    let at = |line| vec![format!("{line}:9 undefined-name the name `nothing` is not defined")];
    assert_eq!(run(&mut session, &text("pass")), (2, at(12)));
    // `a` is longer: `b` has moved, and its diagnostic with it.
    assert_eq!(run(&mut session, &text("y = 1\n    z = 2")), (1, at(13)));
    assert_eq!(run(&mut session, &text("y = 1\n    z = 2")), (0, at(13)));
    // A comment between them changes neither.
    assert_eq!(run(&mut session, &format!("# first\n{}", text("y = 1\n    z = 2"))), (0, at(14)));
    // The function that `b` calls is another one; `a` does not call it.
    assert_eq!(run(&mut session, &text("y = 1\n    z = 2").replace("x + 1", "x + 2")), (1, at(13)));
    // A global may be used by all.
    assert_eq!(run(&mut session, &format!("N = 1\n{}", text("y = 1\n    z = 2"))).0, 2);
}

#[test]
fn the_first_configuration_gives_constexprs_their_values() {
    let text = "CONFIGS = [triton.Config({'B': b}, num_warps=2) for b in (64, 128)]\n\
                @triton.autotune(configs=CONFIGS, key=['n'])\n@triton.jit\ndef fill(x, n, B: tl.constexpr):\n    \
                at = tl.arange(0, B)\n    tl.store(x + at, 1.0, mask=at < n)\n";
    let mut session = session(&[]);
    session.open("/k/fill.py", text);
    let at = hover(&mut session, "/k/fill.py", text, "at = tl");
    assert!(at.contains("at: tile<64xi32>"), "{at}");
    let text = text.replace("(64, 128)", "(32, 128)");
    session.open("/k/fill.py", &text);
    let at = hover(&mut session, "/k/fill.py", &text, "at = tl");
    assert!(at.contains("at: tile<32xi32>"), "{at}");
}

#[test]
fn the_python_package_has_the_language() {
    let text = "import rtc, rtc.language as tl\n\n@rtc.jit\ndef k(x, B: tl.constexpr):\n    v = tl.load(x + tl.arange(0, B))\n    tl.\n";
    let mut session = session(&[]);
    session.open("/k/k.py", &text.replace("    tl.\n", ""));
    assert_eq!(diagnostics(&mut session, "/k/k.py"), [""; 0]);
    assert!(hover(&mut session, "/k/k.py", text, "v = tl").contains("v: tile<Bxf32>"));
    session.open("/k/k.py", text);
    let items = session.completion("/k/k.py", Position { line: 5, character: 7 });
    assert!(items.iter().any(|item| item.label == "load"), "{items:?}");
}

#[test]
fn the_last_definition_of_a_name_counts() {
    let text =
        "@triton.jit\ndef k(x):\n    tl.store(x, first)\n\n@triton.jit\ndef k(y, n):\n    tl.store(y + n, last)\n";
    let mut session = session(&[]);
    session.open("/k/k.py", text);
    assert_eq!(diagnostics(&mut session, "/k/k.py"), ["7:21 undefined-name the name `last` is not defined"]);
}

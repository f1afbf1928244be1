//! No input ends the server: every request on files that are cut off or changed at random.

use std::path::{Path, PathBuf};

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};
use rtc_lsp::{Lines, Session};

fn uri(name: &str) -> Option<Uri> {
    format!("file://{name}").parse().ok()
}

/// The kernel files of the examples.
fn kernels() -> Vec<(PathBuf, String)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(examples).expect("examples") {
        for file in std::fs::read_dir(folder.expect("readable").path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|e| e == "rt") {
                found.push((file.path(), std::fs::read_to_string(file.path()).expect("text")));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    found
}

/// Asks everything about a place.
fn ask(session: &mut Session, name: &str, at: Position) {
    let range = Range { start: at, end: Position { line: at.line + 3, character: 0 } };
    session.diagnostics(name, &uri);
    session.hover(name, at);
    session.definition(name, at);
    session.references(name, at);
    session.completion(name, at);
    session.signature_help(name, at);
    session.inlay_hints(name, range);
    session.code_actions(name, range, &uri);
    session.prepare_rename(name, at);
    let _ = session.rename(name, at, "renamed");
    session.symbols(name);
    session.semantic_tokens(name);
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

#[test]
fn prefixes_of_kernels() {
    for (path, text) in kernels() {
        let mut session = Session::new(Box::new(()));
        for end in (0..text.len()).step_by(50).filter(|end| text.is_char_boundary(*end)) {
            let prefix = &text[..end];
            session.open("/k.rt", prefix);
            ask(&mut session, "/k.rt", Lines::new(prefix).position(prefix, end));
        }
        assert!(session.analysed() > 0, "{}", path.display());
    }
}

#[test]
fn random_edits() {
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        ":",
        "\n",
        "\r\n",
        "    ",
        "🚀",
        "µ",
        "\"",
        "'''",
        "#",
        "@",
        "tl.",
        "x",
        "0",
        "=",
        ",",
        "\t",
        "def f(",
        "# rtc: ",
        "\u{feff}",
        "\0",
        "f'{",
        "lambda x: ",
        "if ",
        "static_range(",
        "\\",
        "*",
    ];
    let mut numbers = Numbers(7);
    for (_, text) in kernels() {
        let mut session = Session::new(Box::new(()));
        session.open("/k.rt", &text);
        for _ in 0..60 {
            let point = |numbers: &mut Numbers| Position {
                line: numbers.below(60) as u32,
                character: numbers.below(80) as u32,
            };
            let start = point(&mut numbers);
            let length = if numbers.below(3) == 0 { numbers.below(20) as u32 } else { 0 };
            let end = Position { line: start.line, character: start.character + length };
            let change = TextDocumentContentChangeEvent {
                range: Some(Range { start, end }),
                range_length: None,
                text: pieces[numbers.below(pieces.len())].to_owned(),
            };
            session.change("/k.rt", &[change]);
            ask(&mut session, "/k.rt", point(&mut numbers));
        }
    }
}

#[test]
fn nests_and_long_files() {
    let texts = [
        format!("@triton.jit\ndef f(x):\n    y = {}x{}\n", "(".repeat(5000), ")".repeat(5000)),
        format!("@triton.jit\ndef f(x):\n    y = {}x\n", "-".repeat(100_000)),
        format!("@triton.jit\ndef f(x):\n    y = x{}\n", ".a".repeat(100_000)),
        "@triton.jit\ndef f(x):\n    return f(x)\n".to_owned(),
        "# rtc: f(i32)\n@triton.jit\ndef f(x):\n    for i in tl.static_range(1000000000):\n        x += 1\n".to_owned(),
        "from . import *\nfrom .. import k\nimport k\nimport k.k.k as j\n@k.jit\ndef k(k=k):\n    return k.k(k=k)\n"
            .to_owned(),
    ];
    let run = move || {
        for text in texts {
            let mut session = Session::new(Box::new(()));
            session.open("/k.py", &text);
            ask(&mut session, "/k.py", Position { line: 2, character: 8 });
        }
    };
    // As much stack as the server has.
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(run).expect("a thread");
    thread.join().expect("no panic");
}

//! Answers on a file of 2,000 lines come within 50 ms, in a release build (`cargo test --release -p rtc-lsp --test speed`); in a
//! debug build the limit is ten times that.

use std::collections::BTreeMap;
use std::time::Duration;

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};
use rtc_lsp::Session;

fn uri(name: &str) -> Option<Uri> {
    format!("file://{name}").parse().ok()
}

/// About 2,000 lines: 85 kernels with loops, dots and masks, a third of them with chosen types, and a helper for every four.
fn text() -> String {
    let mut text = String::from("import triton\nimport triton.language as tl\n\nWIDTH = 4\n\n");
    for index in 0..85 {
        if index % 4 == 0 {
            text.push_str(&format!(
                "\n@triton.jit\ndef scaled_{}(value, factor):\n    return value * factor + WIDTH\n\n",
                index / 4
            ));
        }
        if index % 3 == 0 {
            text.push_str(&format!(
                "\n# rtc: matmul_{index}(*fp16:16, *fp16:16, *fp32:16, i32, i32, i32:32, M=128, N=64, K=32)"
            ));
        }
        text.push_str(&format!(
            "
@triton.jit
def matmul_{index}(a, b, c, rows, cols, inner, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    pid = tl.program_id(0)
    blocks = tl.cdiv(cols, N)
    first, second = pid // blocks, pid % blocks
    at_rows = first * M + tl.arange(0, M)
    at_cols = second * N + tl.arange(0, N)
    at_inner = tl.arange(0, K)
    left = a + at_rows[:, None] * inner + at_inner[None, :]
    right = b + at_inner[:, None] * cols + at_cols[None, :]
    sums = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, inner, K):
        x = tl.load(left, mask=at_rows[:, None] < rows, other=0.0)
        y = tl.load(right, mask=at_cols[None, :] < cols, other=0.0)
        sums += tl.dot(x, y)
        left += K
        right += K * cols
    result = scaled_{}(sums, 0.5)
    inside = (at_rows[:, None] < rows) & (at_cols[None, :] < cols)
    tl.store(c + at_rows[:, None] * cols + at_cols[None, :], result, mask=inside)

",
            index / 4
        ));
    }
    text
}

/// The time that this thread has been on a processor: other programs on the machine do not count.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    Duration::from_nanos(text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"))
}

#[test]
fn answers_on_2000_lines() {
    let text = text();
    let lines = text.lines().count();
    assert!((1900..2300).contains(&lines), "{lines}");
    let mut session = Session::new(Box::new(()));
    let start = on_processor();
    session.open("/large.py", &text);
    let found = session.diagnostics("/large.py", &uri);
    let opened = on_processor() - start;
    assert_eq!(found, Vec::new());
    let kernels = session.analysed();

    // Keys in a kernel in the middle: each edit, then everything that an editor asks for.
    let line = text.lines().position(|l| l.contains("def matmul_40(")).expect("the kernel") as u32 + 12;
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for character in 0..20 {
        let at = Position { line, character: 8 };
        let change = TextDocumentContentChangeEvent {
            range: Some(Range { start: at, end: at }),
            range_length: None,
            text: if character == 0 { "pass; ".into() } else { format!("v{character} = {character}; ") },
        };
        let mut timed = |name, work: &mut dyn FnMut(&mut Session)| {
            let start = on_processor();
            work(&mut session);
            times.entry(name).or_default().push(on_processor() - start);
        };
        timed("diagnostics after a key", &mut |s| {
            s.change("/large.py", std::slice::from_ref(&change));
            s.diagnostics("/large.py", &uri);
        });
        let all = Range { start: Position::default(), end: Position { line: u32::MAX, character: 0 } };
        timed("hover", &mut |s| drop(s.hover("/large.py", at)));
        timed("hints", &mut |s| drop(s.inlay_hints("/large.py", all)));
        timed("completion", &mut |s| drop(s.completion("/large.py", at)));
        timed("definition", &mut |s| drop(s.definition("/large.py", at)));
        timed("tokens", &mut |s| drop(s.semantic_tokens("/large.py")));
        timed("symbols", &mut |s| drop(s.symbols("/large.py")));
        timed("actions", &mut |s| drop(s.code_actions("/large.py", Range { start: at, end: at }, &uri)));
    }
    println!("{lines} lines, {kernels} kernels: opened in {opened:.1?}");
    assert_eq!(session.analysed() - kernels, 20, "each key changes one kernel");
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
    for (name, mut times) in times {
        times.sort();
        let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{name}: {median:.1?}, at most {slowest:.1?}");
        assert!(slowest < limit, "{name} took {slowest:?}");
    }
}

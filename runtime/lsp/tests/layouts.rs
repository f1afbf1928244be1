//! Layouts on hover: those of the passes, for the specialization that is chosen.
#![allow(clippy::unwrap_used)]

use lsp_types::HoverContents;
use rtc_lsp::{Lines, Session};
use std::time::Instant;

const TEXT: &str = "\
import triton
import triton.language as tl

# rtc: matmul(*fp16:16, *fp16:16, *fp32:16, i32) num_warps=4 arch=sm_90a
@triton.jit
def matmul(a, b, c, k):
    m = tl.arange(0, 64)
    n = tl.arange(0, 128)
    kk = tl.arange(0, 32)
    acc = tl.zeros((64, 128), tl.float32)
    for i in range(0, k, 32):
        left = tl.load(a + m[:, None] * k + (i + kk)[None, :])
        right = tl.load(b + (i + kk)[:, None] * 128 + n[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * 128 + n[None, :], acc)
";

fn hover(session: &mut Session, text: &str, needle: &str) -> String {
    let at = Lines::new(text).position(text, text.find(needle).unwrap_or_else(|| panic!("no `{needle}`")));
    match session.hover("/m.py", at).unwrap_or_else(|| panic!("nothing at `{needle}`")).contents {
        HoverContents::Markup(markup) => markup.value,
        other => panic!("{other:?}"),
    }
}

fn session(text: &str) -> Session {
    let mut session = Session::new(Box::new(()));
    session.open("/m.py", text);
    session
}

#[test]
fn the_accumulator_has_the_layout_of_its_instruction() {
    insta::assert_snapshot!(hover(&mut session(TEXT), TEXT, "acc = tl.dot"));
}

#[test]
fn a_use_of_a_value_shows_its_layout() {
    let mut session = session(TEXT);
    let found = hover(&mut session, TEXT, "left, right");
    assert!(found.contains("layout for `sm_90a`") && found.contains("blocked(shape [64, 32]"), "{found}");
    // Scalars and functions have none.
    for needle in ["k, 32", "dot(left"] {
        assert!(!hover(&mut session, TEXT, needle).contains("layout for"), "{needle}");
    }
}

#[test]
fn the_layout_follows_the_specialization() {
    let eight = TEXT.replace("num_warps=4 arch=sm_90a", "num_warps=8 arch=sm_80");
    let found = hover(&mut session(&eight), &eight, "acc = tl.dot");
    assert!(found.contains("layout for `sm_80`") && found.contains("mma_v2"), "{found}");
}

#[test]
fn assumed_sizes_have_layouts_too() {
    let text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, B: tl.constexpr):\n    \
                at = tl.arange(0, B)\n    v = tl.load(x + at)\n    tl.store(x + at, v + 1)\n";
    let found = hover(&mut session(text), text, "v = ");
    assert!(found.contains("tile<Bxf32>") && found.contains("blocked(shape [128]"), "{found}");
}

#[test]
fn a_kernel_is_laid_out_once_for_each_version() {
    let mut session = session(TEXT);
    let began = Instant::now();
    hover(&mut session, TEXT, "acc = tl.dot");
    println!("first layout: {:?}", began.elapsed());
    assert_eq!(session.laid(), 1);
    hover(&mut session, TEXT, "left = ");
    assert_eq!(session.laid(), 1, "the same text");
    // A change outside of the kernel moves it.
    let moved = format!("# A comment.\n{TEXT}");
    session.open("/m.py", &moved);
    assert!(hover(&mut session, &moved, "acc = tl.dot").contains("layout for `sm_90a`"));
    assert_eq!(session.laid(), 1);
    let changed = TEXT.replace("(64, 128), tl", "(64, 64), tl").replace("arange(0, 128)", "arange(0, 64)");
    session.open("/m.py", &changed);
    let found = hover(&mut session, &changed, "acc = tl.dot");
    assert!(found.contains("shape [64, 64]"), "{found}");
    assert!(session.laid() > 1);
}

#[test]
fn a_wrong_kernel_has_no_layouts() {
    for (from, to) in
        [("(64, 128), tl", "(64, 12), tl"), ("tl.dot(left", "tl.dot(lost"), ("range(0, k, 32)", "range(0, k")]
    {
        let wrong = TEXT.replace(from, to);
        let at = Lines::new(&wrong).position(&wrong, wrong.find("left = ").unwrap());
        let found = session(&wrong).hover("/m.py", at).map(|hover| format!("{:?}", hover.contents));
        assert!(!found.is_some_and(|found| found.contains("layout for")), "{to}");
    }
}

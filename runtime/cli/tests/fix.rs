//! `rtc fix`: the shown changes, the written files, and the uses that are left alone.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef copy(x, z, n, B: tl.constexpr):\n    \
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\n    \
    q = tl.make_block_ptr(z, (n,), (1,), (0,), (B,), (0,))\n    \
    tl.store(q, tl.load(p, boundary_check=(0,)), boundary_check=(0,))   #  kept\n";

const HANDED: &str =
    "import triton.language as tl\n\n@triton.jit\ndef inner(p):\n    return tl.load(p, boundary_check=(0,))\n";

fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fix");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

fn fix(options: &[&str], path: &Path) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rtc")).arg("fix").args(options).arg(path).output().expect("rtc starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn changes_are_shown_and_not_made() {
    let path = file("shown.py", SOURCE);
    let (code, out, err) = fix(&[], &path);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("-    p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\n"), "{out}");
    assert!(out.contains("+    p_i0 = tl.arange(0, B).to(tl.int64)\n"), "{out}");
    let (code, out, err) = fix(&["--check"], &path);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("1 file would be rewritten, 0 uses of block pointers left"), "{err}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), SOURCE);
}

#[test]
fn changes_are_made_and_are_final() {
    let path = file("written.py", SOURCE);
    assert_eq!(fix(&["--write"], &path), (Some(0), String::new(), String::new()));
    let text = std::fs::read_to_string(&path).expect("it is there");
    let head = SOURCE.find("    p = ").expect("it is in the source");
    assert!(
        text.starts_with(&SOURCE[..head]) && text.ends_with("   #  kept\n") && !text.contains("block_ptr"),
        "{text}"
    );
    assert_eq!(fix(&["--check", "--diff"], &path), (Some(0), String::new(), String::new()));
}

#[test]
fn what_is_left_is_reported_with_its_reason() {
    let path = file("left.py", HANDED);
    let (code, out, err) = fix(&["--write"], &path);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("left.py:5:12") && err.contains("the block pointer `p` is a parameter"), "{err}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), HANDED);
    assert_eq!(fix(&["--check"], &path).0, Some(1));
    let (_, _, err) = fix(&["--message-format", "json"], &path);
    assert!(err.lines().all(|line| line.starts_with('{')), "{err}");
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let (code, _, err) = fix(&[], Path::new("no/such/file.py"));
    assert_eq!(code, Some(1));
    assert!(err.contains("error[io]") && err.contains("no/such/file.py"), "{err}");
}

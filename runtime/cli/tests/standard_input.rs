//! Sources from standard input.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors};
use std::io::Write as _;
use std::process::{Output, Stdio};

fn given(scratch: &Scratch, text: &str, args: &[&str]) -> Output {
    let mut command = scratch.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn source(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.0.join("k.rt")).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

#[test]
fn kernels_are_built_and_run() {
    let scratch = Scratch::new("stdin");
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300)).write("helpers.rt", "N = 128\n");
    let text = source(&scratch);
    for file in ["-", "/dev/stdin"] {
        let built = given(&scratch, &text, &["build", file, "--signature", SIGNATURE, "-o", "out"]);
        assert!(built.status.success(), "{}", said(&built));
        assert!(String::from_utf8_lossy(&built.stdout).trim().ends_with("copy_kernel.ptx"));
        assert!(std::fs::read_to_string(scratch.0.join("out/copy_kernel.ptx")).unwrap().contains("<stdin>"));
    }
    // Its imports are found in the directory where the command runs.
    let imports = format!("from helpers import N\n{text}");
    let run = given(&scratch, &imports, &["run", "-", "--launch", "launch.json", "--device", "emulator"]);
    assert!(run.status.success(), "{}", said(&run));
    assert!(String::from_utf8_lossy(&run.stdout).contains("copy_kernel (<stdin>)"), "{run:?}");
    let module = given(&scratch, &text, &["build", "-", "--signature", SIGNATURE, "--rust", "-o", "rust"]);
    assert!(module.status.success() && scratch.0.join("rust/stdin.rs").exists(), "{}", said(&module));
}

#[test]
fn messages_name_it() {
    let scratch = Scratch::new("stdin_messages");
    scratch.write("in.safetensors", tensors(300));
    let wrong = source(&scratch).replace("mask=mask)", "mask=maks)");
    let built = given(&scratch, &wrong, &["build", "-", "--signature", SIGNATURE]);
    assert_eq!(built.status.code(), Some(1));
    assert!(said(&built).contains("--> <stdin>:5:"), "{}", said(&built));
    let empty = given(&scratch, "", &["build", "-", "--signature", SIGNATURE]);
    assert_eq!(empty.status.code(), Some(1));
    let both = given(&scratch, LAUNCH, &["run", "-", "--launch", "-"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(said(&both).contains("two files are to be read from standard input"), "{}", said(&both));
}

#[test]
fn fix_shows_changes() {
    let scratch = Scratch::new("stdin_fix");
    let text =
        "@triton.jit\ndef f(x, n):\n    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))\n    tl.store(p, 0)\n";
    let shown = given(&scratch, text, &["fix", "-"]);
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("+    p_i0 ="), "{shown:?}");
    let refused = given(&scratch, text, &["fix", "--write", "-"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("standard input cannot be changed"), "{}", said(&refused));
}

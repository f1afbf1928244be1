//! The remarks of `-v` about the loops of a kernel and its resources.
#![allow(clippy::unwrap_used)]

mod scratch;

use rtc_test_needs::{Need, missing};
use scratch::{Scratch, safetensors};

/// A product in a loop, and a loop that stores.
const KERNEL: &str = "\
@triton.jit
def k(a_ptr, b_ptr, n):
    r = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    s = tl.zeros((32, 32), tl.float32)
    for i in range(n):
        s = tl.dot(tl.load(a_ptr + r + i * 16), tl.load(a_ptr + r), s)
    for i in range(n):
        tl.store(b_ptr + r + i * 1024, s)
";

const LAUNCH: &str = r#"{
 "spec": {"args": [{"name": "a_ptr", "type": "*fp16"}, {"name": "b_ptr", "type": "*fp32", "divisible_by": 16},
                   {"name": "n", "type": "i32"}]},
 "grid": [1, 1, 1], "args": {"a_ptr": {"tensor": "a"}, "b_ptr": {"tensor": "b"}, "n": 1},
 "tensors": "in.safetensors"
}"#;

const PROMISE: &str = "`a_ptr` is not promised to be a multiple of 16 bytes: with `*fp16:16` for `a_ptr` instead, copies from \
                       `a_ptr` (`cp.async`, 16 bytes at a time) are issued ahead of time";

/// The lines on stderr about decisions.
fn said(scratch: &Scratch, args: &[&str], ptxas: &str) -> Vec<String> {
    let output = scratch.command(args).env("RTC_PTXAS", ptxas).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let lines = text.lines().filter(|line| line.contains("cost") || line.contains("help"));
    lines.map(str::to_owned).collect()
}

/// A program that says its version as NVIDIA's assembler does, and assembles nothing.
fn refusing_assembler(scratch: &Scratch) -> String {
    use std::os::unix::fs::PermissionsExt;
    let text = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'release 13.0, V13.0.88' && exit 0\necho 'ptxas fatal' >&2; exit 1\n";
    scratch.write("ptxas", text);
    let path = scratch.0.join("ptxas");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_string_lossy().into_owned()
}

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("k.rt", KERNEL).write("launch.json", LAUNCH);
    let header = r#"{"a":{"dtype":"F16","shape":[1024],"data_offsets":[0,2048]},"b":{"dtype":"F32","shape":[1024],"data_offsets":[2048,6144]}}"#;
    scratch.write("in.safetensors", safetensors(header, &[0; 6144]));
    scratch
}

#[test]
fn build_says_of_each_loop_what_was_decided_and_what_would_change_it() {
    let scratch = scratch("decided-build");
    let build = |signature: &str, rest: &[&str]| {
        said(
            &scratch,
            &[&["build", "k.rt", "-o", "out", "--signature", signature][..], rest].concat(),
            "/nowhere/ptxas",
        )
    };
    let loops = |lines: &[String]| lines.iter().filter(|line| line.contains("the loop is ")).count();
    // Compiled and found in the cache, the same is said; without -v nothing is.
    let first = build("*fp16, *fp32:16, i32", &["-v"]);
    assert_eq!(loops(&first), 2, "{first:#?}");
    assert!(first.iter().any(|line| line.trim_start() == format!("= help: {PROMISE}")), "{first:#?}");
    assert_eq!(build("*fp16, *fp32:16, i32", &["-v"]), first);
    assert_eq!(build("*fp16, *fp32:16, i32", &[]), [""; 0]);
    // With the change that the help suggests.
    let promised = build("*fp16:16, *fp32:16, i32", &["-v"]);
    assert!(
        promised.iter().any(|line| line.contains("copies from `a_ptr` (`cp.async`, 16 bytes at a time) are issued 2"))
    );
    assert!(promised.iter().all(|line| !line.contains("help")), "{promised:#?}");
    // As JSON.
    let json = build("*fp16, *fp32:16, i32", &["-v", "--message-format", "json"]);
    assert_eq!(loops(&json), 2);
    assert!(json.iter().any(|line| line.contains(&format!("\"help\":\"{PROMISE}\""))), "{json:#?}");
    // The lines without a code say how long the stages took.
    let coded = |line: &&String| line.starts_with('{') && !line.contains("\"code\":null");
    assert!(json.iter().filter(coded).all(|line| line.contains("\"code\":\"cost\"")), "{json:#?}");
}

#[test]
fn run_says_the_same() {
    let scratch = scratch("decided-run");
    let args = ["run", "k.rt", "--launch", "launch.json", "--device", "emulator", "--arch", "sm_80", "-v"];
    let lines = said(&scratch, &args, "/nowhere/ptxas");
    assert_eq!(lines.iter().filter(|line| line.contains("the loop is ")).count(), 2, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(PROMISE)), "{lines:#?}");
    assert!(lines.last().unwrap().contains(" per SM, limited by "), "{lines:#?}");
}

#[test]
fn resources_come_from_the_assembler_or_an_estimate() {
    let scratch = scratch("decided-whole");
    let args = ["build", "k.rt", "-o", "out", "--signature", "*fp16:16, *fp32:16, i32", "--arch", "sm_90a", "-v"];
    let whole = |ptxas: &str| said(&scratch, &args, ptxas).into_iter().find(|line| line.contains(" per SM, ")).unwrap();
    let estimate = whole("/nowhere/ptxas");
    assert!(estimate.contains("(an estimate: no `ptxas` found); 128 threads and "), "{estimate}");
    assert!(estimate.contains(" per SM, limited by "), "{estimate}");
    let failed = whole(&refusing_assembler(&scratch));
    assert!(failed.contains("(an estimate: `") && failed.contains("refuses kernel `"), "{failed}");
    let Some(assembler) = rtc_build::Assembler::find() else { return missing(Need::Ptxas) };
    let measured = whole(&assembler.path().to_string_lossy());
    let number = measured.split_once("for sm_90a: ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u32>().ok());
    assert!(number.is_some_and(|registers| (16..=255).contains(&registers)), "{measured}");
    assert!(measured.contains("(ptxas ") && measured.contains("none spilled"), "{measured}");
}

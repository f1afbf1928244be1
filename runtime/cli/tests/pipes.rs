//! Standard output whose reader is gone, or that cannot be written: the command ends without a panic, and its files are written.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors};

const TUNED: &str = "\
@triton.autotune(configs=[triton.Config({'BLOCK': b}) for b in (64, 128)], key=['n'])
@triton.jit
def fill(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_print('i', i)
    tl.store(y_ptr + i, 1.0, mask=i < n)
";
const TUNE_LAUNCH: &str = r#"{"spec": {"args": [{"name": "y_ptr", "type": "*fp32", "divisible_by": 16}, {"name": "n", "type": "i32"}]},
 "grid": ["cdiv(n, BLOCK)"], "args": {"y_ptr": {"tensor": "y"}, "n": 300}, "tensors": "in.safetensors"}"#;

/// All commands that print, with a file that each leaves behind.
const COMMANDS: &[(&[&str], Option<&str>)] = &[
    (&["explain"], None),
    (&["explain", "tl.dot"], None),
    (&["explain", "shape-mismatch"], None),
    (&["build", "k.rt", "--signature", SIGNATURE, "-o", "out"], Some("out/copy_kernel.json")),
    (&["build", "k.rt", "--signature", SIGNATURE, "-o", "c", "--emit", "c"], Some("c/k.h")),
    (&["emit", "k.rt", "--signature", SIGNATURE, "--stage", "tile"], None),
    (&["run", "k.rt", "--launch", "l.json", "--device", "emulator", "-o", "run.safetensors"], Some("run.safetensors")),
    (&["run", "t.rt", "--launch", "t.json", "--device", "emulator", "-o", "t.safetensors"], Some("t.safetensors")),
    (&["tune", "t.rt", "--launch", "t.json", "--device", "emulator", "-o", "tuned.json"], Some("tuned.json")),
    (&["cache", "list"], None),
    (&["cache", "verify"], None),
    (&["cache", "clear"], None),
];

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch
        .write("l.json", LAUNCH)
        .write("in.safetensors", tensors(300))
        .write("t.rt", TUNED)
        .write("t.json", TUNE_LAUNCH);
    scratch
}

/// A pipe whose read end is closed.
fn closed_pipe() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

#[test]
fn nobody_reads() {
    let scratch = scratch("closed-pipe");
    for (args, file) in COMMANDS {
        let output = scratch.command(args).stdout(closed_pipe()).output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(141), ""),
            "{args:?}"
        );
        if let Some(file) = file {
            assert!(scratch.0.join(file).exists(), "{args:?} did not write {file}");
        }
    }
}

#[test]
fn nobody_reads_what_went_wrong() {
    let scratch = scratch("closed-pipe-errors");
    let status = scratch.command(&["build", "none.rt"]).stderr(closed_pipe()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_said() {
    let scratch = scratch("full");
    for (args, _) in COMMANDS.iter().filter(|(args, _)| args[0] != "run" || args[1] != "t.rt") {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = scratch.command(args).stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(text.starts_with("error[io]: cannot write to standard output: "), "{args:?}: {text}");
    }
}

//! Warnings: their levels, their form, and a wrapped address as compiler, interpreter and emulator report it.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{Scratch, safetensors};

/// Row 4 of a matrix with rows of 2^30 elements: the index is 2^32, which is 0 in 32 bits, so nothing faults.
const ROWS: &str = "\
@triton.jit
def rows_kernel(x_ptr, y_ptr, stride, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) + FIRST
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + cols, x, mask=cols < n)
";
const ROWS_SIGNATURE: &str = "*fp32:16, *fp16:16, i32, i32, 4, 64";

fn rows(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("rows.rt", ROWS);
    scratch
}

/// The first lines of all that is said on stderr.
fn said(scratch: &Scratch, options: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = scratch.rtc(&[&["build", "rows.rt", "--signature", ROWS_SIGNATURE][..], options].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    let first = text.lines().filter(|l| l.starts_with("warning[") || l.starts_with("error["));
    (output.status.code(), first.map(|l| l.split(": ").next().unwrap_or_default().to_owned()).collect())
}

#[test]
fn levels_come_from_the_command_line() {
    let scratch = rows("levels");
    for (options, status, expected) in [
        (&[][..], 0, &[][..]),
        (&["--warn", "index-may-overflow"], 0, &["warning[index-may-overflow]"]),
        (&["--warn", "all"], 0, &["warning[narrowing-store]", "warning[index-may-overflow]"]),
        (&["--warn", "all", "--allow", "narrowing-store"], 0, &["warning[index-may-overflow]"]),
        (&["--deny", "warnings"], 0, &[]),
        (&["--deny", "index-may-overflow"], 1, &["error[index-may-overflow]"]),
        (
            &["--warn", "index-may-overflow,narrowing-store", "--deny", "warnings"],
            1,
            &["error[narrowing-store]", "error[index-may-overflow]"],
        ),
        (&["--deny", "all", "--allow", "warnings"], 1, &["error[narrowing-store]", "error[index-may-overflow]"]),
        (&["--warn", "index-overflows"], 2, &["error[usage]"]),
        (&["--deny", "shape-mismatch"], 2, &["error[usage]"]),
    ] {
        let (code, first) = said(&scratch, options);
        assert_eq!((code, &first[..]), (Some(status), &expected.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..]));
        assert_eq!(scratch.0.join("rows_kernel.ptx").exists(), status == 0, "{options:?}");
        let _ = std::fs::remove_file(scratch.0.join("rows_kernel.ptx"));
    }
}

#[test]
fn warnings_as_json() {
    let scratch = rows("json-warnings");
    let output =
        scratch.rtc(&["build", "rows.rt", "--signature", ROWS_SIGNATURE, "--warn", "all", "--message-format", "json"]);
    assert!(output.status.success());
    let lines = String::from_utf8(output.stderr).unwrap();
    let found: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&str> = found.iter().map(|json| json["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["narrowing-store", "index-may-overflow"]);
    let index = &found[1];
    assert_eq!(index["severity"], "warning");
    assert_eq!(index["help"], "widen a factor before multiplying: `row.to(tl.int64) * stride`");
    assert_eq!(index["labels"][0]["line"], 5, "{index}");
}

/// Every executor reports the overflow that the lint predicted, with the line of the multiplication.
#[test]
fn a_wrapped_address_is_reported_by_all() {
    let scratch = rows("wrapped");
    let (_, foretold) = said(&scratch, &["--warn", "index-may-overflow"]);
    assert_eq!(foretold, ["warning[index-may-overflow]"]);
    let header = r#"{"x":{"dtype":"F32","shape":[64],"data_offsets":[0,256]},"y":{"dtype":"F16","shape":[64],"data_offsets":[256,384]}}"#;
    scratch.write("in.safetensors", safetensors(header, &[0; 384]));
    let launch = |stride: u32| {
        format!(
            r#"{{"spec": {{"args": [{{"name": "x_ptr", "type": "*fp32"}}, {{"name": "y_ptr", "type": "*fp16"}},
 {{"name": "stride", "type": "i32"}}, {{"name": "n", "type": "i32"}}, {{"name": "FIRST", "constexpr": 4}},
 {{"name": "BLOCK", "constexpr": 64}}]}}, "grid": [1], "args": {{"x_ptr": {{"tensor": "x"}},
 "y_ptr": {{"tensor": "y"}}, "stride": {stride}, "n": 64}}, "tensors": "in.safetensors"}}"#
        )
    };
    for device in ["interpreter", "emulator"] {
        for (stride, wraps) in [(1 << 30, true), (0, false)] {
            scratch.write("l.json", launch(stride));
            let output = scratch.rtc(&["run", "rows.rt", "--launch", "l.json", "--device", device]);
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{device}: {text}");
            let found =
                text.lines().filter(|l| l.starts_with("warning[finding]: ") && l.contains("rows.rt:5:")).count();
            assert_eq!((found, text.is_empty()), (usize::from(wraps), !wraps), "{device}, stride {stride}: {text}");
        }
        // One row on, the address is outside: the fault and its reason.
        scratch.write("l.json", launch((1 << 30) + 1024));
        let text = scratch.fails(1, &["run", "rows.rt", "--launch", "l.json", "--device", device]);
        assert!(text.contains("warning[finding]: ") && text.contains("error[fault]: "), "{device}: {text}");
    }
}

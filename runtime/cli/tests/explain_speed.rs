//! `rtc explain-speed` as a user meets it: launches that are counted in the emulator, and mistakes.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, Scratch, safetensors, tensors};
use serde_json::{Value, json};

/// A launch of a kernel on fp32 tensors of so many elements, all but the first of which are zero.
fn launch(scratch: &Scratch, args: &Value, grid: &Value, values: &Value, tensors: &[(&str, usize)], options: &Value) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let mut given = values.as_object().unwrap().clone();
    for (name, elements) in tensors {
        let start = data.len();
        data.resize(start + elements * 4, 0);
        header
            .insert((*name).into(), json!({"dtype": "F32", "shape": [elements], "data_offsets": [start, data.len()]}));
        given.insert((*name).into(), json!({"tensor": name}));
    }
    let launch =
        json!({"spec": {"args": args, "options": options}, "grid": grid, "args": given, "tensors": "t.safetensors"});
    scratch.write("l.json", launch.to_string());
    scratch.write("t.safetensors", safetensors(&Value::Object(header).to_string(), &data));
}

fn explained(scratch: &Scratch, rest: &[&str]) -> Value {
    let output = scratch.rtc(&[&["explain-speed", "s.rt", "--launch", "l.json", "--json"][..], rest].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

fn changes(of: &Value) -> Vec<Value> {
    std::iter::once(&of["change"]).chain(of["others"].as_array().unwrap()).filter(|c| !c.is_null()).cloned().collect()
}

/// Rows that are read along a column: neighbouring lanes are a whole row apart.
const COLUMNS: &str = "\
@triton.jit
def columns(x, y, rows, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at % rows * 1024 + at // rows)
    tl.store(y + at, v)
";

#[test]
fn an_access_that_is_not_coalesced_is_named_with_its_line() {
    let scratch = Scratch::new("explain-columns");
    scratch.write("s.rt", COLUMNS);
    let args = json!([{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32", "divisible_by": 16},
                      {"name": "rows", "type": "i32"}, {"name": "BLOCK", "constexpr": 1024}]);
    let n = 1 << 20;
    let tensors = [("x", n), ("y", n)];
    launch(&scratch, &args, &json!(["cdiv(rows * 1024, BLOCK)", 1, 1]), &json!({"rows": 1024}), &tensors, &json!({}));
    let found = explained(&scratch, &["--counters", "always"]);
    assert_eq!((&found["counted"], &found["bound"]), (&json!(true), &json!("l2")), "{found:#}");
    let all = changes(&found);
    let line = all.iter().find(|change| change["line"] == 4).unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!((&line["subject"], &line["basis"]), (&json!("source"), &json!("model")), "{found:#}");
    assert!(line["what"].as_str().unwrap().contains("32.0 sectors per request, 12 % of their bytes used"), "{found:#}");
    assert!(line["gain"].as_f64().unwrap() > 1.5, "{found:#}");
    // The change that would help most comes first.
    let gains: Vec<f64> = all.iter().filter_map(|change| change["gain"].as_f64()).collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{found:#}");
    // The store is coalesced.
    assert!(all.iter().all(|change| change["line"] != 5), "{found:#}");
}

/// A row for each program: half a block would leave out half of the row.
const ROWS: &str = "\
@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    v = tl.load(x + i) + 1.0
    tl.store(y + i, v / tl.sum(v))
";

#[test]
fn a_change_that_writes_other_results_is_not_proposed() {
    let scratch = Scratch::new("explain-rows");
    scratch.write("s.rt", ROWS);
    let args = json!([{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32", "divisible_by": 16},
                      {"name": "n", "type": "i32", "divisible_by": 16}, {"name": "BLOCK", "constexpr": 2048}]);
    let tensors = [("x", 1 << 21), ("y", 1 << 21)];
    launch(&scratch, &args, &json!([1024, 1, 1]), &json!({"n": 2048}), &tensors, &json!({"num_warps": 1}));
    let found = explained(&scratch, &["--counters", "always"]);
    assert!(changes(&found).iter().all(|change| change["subject"] != "block"), "{found:#}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("fail or write other results"), "{found:#}");
    // What is proposed instead was launched, and wrote the same.
    assert_eq!(found["change"]["basis"], "counters", "{found:#}");
    assert!(found["change"]["what"].as_str().unwrap().starts_with("num_warps="), "{found:#}");
}

#[test]
fn a_measured_time_and_the_text() {
    let scratch = Scratch::new("explain-text");
    scratch.write("l.json", LAUNCH).write("in.safetensors", tensors(300));
    let output = scratch.rtc(&["explain-speed", "k.rt", "--launch", "l.json", "--measured-us", "8"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("copy_kernel for sm_90a, grid 3 x 1 x 1"), "{text}");
    assert!(text.contains("8.00 us measured") && text.contains("work counted in the emulator"), "{text}");
    assert!(text.contains("bound by   the launch itself"), "{text}");
    let output =
        scratch.rtc(&["explain-speed", "k.rt", "--launch", "l.json", "--counters", "never", "--arch", "sm_80"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("for sm_80") && text.contains("work estimated from the code") && text.contains("108 SMs"),
        "{text}"
    );
}

#[test]
fn mistakes() {
    let scratch = Scratch::new("explain-mistakes");
    scratch.write("l.json", LAUNCH).write("in.safetensors", tensors(300)).write("k.tir", "").write("bad.json", "{}");
    let fails = |status, rest: &[&str]| scratch.fails(status, &[&["explain-speed"][..], rest].concat());
    insta::assert_snapshot!(fails(2, &["k.tir", "--launch", "l.json"]), @r"
    error[usage]: explain-speed takes a source: it compiles the kernel with other configurations, which a .ptx or a .tir file does not have
     = note: For help, try `--help`.
    ");
    insta::assert_snapshot!(fails(2, &["k.rt", "--launch", "l.json", "--device", "emulator"]), @r"
    error[usage]: --device times the launch on a GPU, and the emulator has no clock; leave it out
     = note: For help, try `--help`.
    ");
    insta::assert_snapshot!(fails(1, &["k.rt", "--launch", "bad.json"]), @r"
    error[launch-file]: `spec`: missing
     --> bad.json
    ");
    insta::assert_snapshot!(fails(1, &["k.rt", "--launch", "nowhere.json"]), @r"
    error[io]: cannot read the file: No such file or directory (os error 2)
     --> nowhere.json
    ");
    assert!(fails(2, &["k.rt", "--launch", "l.json", "--measured-us=-3"]).contains("not a number of microseconds"));
    assert!(fails(2, &["k.rt", "--launch", "l.json", "--measured-us", "0"]).contains("not a number of microseconds"));
    assert!(fails(1, &["k.rt", "--launch", "l.json", "--kernel", "other"]).contains("other"));
    assert!(fails(1, &["k.rt", "--launch", "l.json", "--arch", "sm_1"]).contains("sm_1"));
}

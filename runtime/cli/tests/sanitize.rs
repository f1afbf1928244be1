//! `rtc run --sanitize` as a user meets it.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, Scratch, tensors};

/// Reads one element too many, and all programs add to one place.
const WRONG: &str = "\
@triton.jit
def wrong(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.multiple_of(n, 16)
    v = tl.load(x_ptr + offsets, mask=offsets <= n, other=0.0)
    old = tl.load(y_ptr)
    tl.debug_barrier()
    tl.store(y_ptr, old + tl.sum(v))
";

#[test]
fn what_is_found_is_shown_with_its_source() {
    let scratch = Scratch::new("sanitize");
    scratch.write("in.safetensors", tensors(300)).write("l.json", LAUNCH).write("wrong.rt", WRONG);
    let output = scratch.rtc(&["run", "k.rt", "--launch", "l.json", "--sanitize", "all"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("sanitizer  nothing found (memory, init, race, sync, promise)"), "{text}");

    let text = scratch.fails(1, &["run", "wrong.rt", "--launch", "l.json", "--sanitize", "all"]);
    // The compilation is not tested here.
    let lines: Vec<&str> = text.lines().map(|line| line.split(", PTX line").next().unwrap()).collect();
    insta::assert_snapshot!(lines.join("\n"));
    let text = scratch.fails(1, &["run", "wrong.rt", "--launch", "l.json", "--sanitize", "memory,init"]);
    assert!(text.contains("error[out-of-bounds]") && !text.contains("race") && !text.contains("promise"), "{text}");
}

#[test]
fn as_json_there_is_an_object_for_each_finding() {
    let scratch = Scratch::new("sanitize-json");
    scratch.write("in.safetensors", tensors(300)).write("l.json", LAUNCH).write("wrong.rt", WRONG);
    let args = ["run", "wrong.rt", "--launch", "l.json", "--sanitize", "race", "--message-format", "json"];
    let text = scratch.fails(1, &args);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = &lines[0];
    assert_eq!(first["code"], "global-race");
    assert_eq!(first["labels"][0]["line"], 6);
    assert_eq!(first["sanitizer"]["check"], "race");
    assert_eq!(first["sanitizer"]["at"]["block"], serde_json::json!([1, 0, 0]));
    assert_eq!(first["sanitizer"]["at"]["line"], 6);
    assert_eq!(first["sanitizer"]["other"]["line"], 8);
    assert_eq!(first["sanitizer"]["other"]["block"], serde_json::json!([0, 0, 0]));
    assert_eq!(lines.last().unwrap()["code"], "sanitizer");
}

#[test]
fn rows_and_undefined_tensors_of_a_launch() {
    let scratch = Scratch::new("sanitize-shape");
    let launch = LAUNCH
        .replace(r#""x_ptr": {"tensor": "x"}"#, r#""x_ptr": {"tensor": "x", "shape": [3, 90], "strides": [100, 1]}"#);
    scratch.write("in.safetensors", tensors(300)).write("l.json", &launch);
    let text = scratch.fails(1, &["run", "k.rt", "--launch", "l.json", "--sanitize", "memory"]);
    assert!(text.starts_with("error[row-overrun]"), "{text}");
    assert!(text.contains("is in `x`, but 0 bytes past the end of row 0"), "{text}");
    let launch = LAUNCH.replace(r#"{"tensor": "x"}"#, r#"{"tensor": "x", "undefined": true}"#);
    scratch.write("l.json", launch);
    let text = scratch.fails(1, &["run", "k.rt", "--launch", "l.json", "--sanitize", "init"]);
    assert!(text.starts_with("error[uninitialized-global]"), "{text}");
    // Some bytes of it: the second warp's, and none.
    for (ranges, expected) in [("[[0, 0], [512, 516]]", Some("512 bytes into `x`")), ("[[1200, 9000], [4, 4]]", None)] {
        let place = format!(r#"{{"tensor": "x", "undefined": {ranges}}}"#);
        scratch.write("l.json", LAUNCH.replace(r#"{"tensor": "x"}"#, &place));
        let args = ["run", "k.rt", "--launch", "l.json", "--sanitize", "init"];
        match expected {
            Some(words) => assert!(scratch.fails(1, &args).contains(words), "{ranges}"),
            None => assert_eq!(scratch.rtc(&args).status.code(), Some(0), "{ranges}"),
        }
    }
    for (wrong, words) in [("[[1]]", "`args.x_ptr.undefined[0]`"), ("3", "`args.x_ptr.undefined`")] {
        let place = format!(r#"{{"tensor": "x", "undefined": {wrong}}}"#);
        scratch.write("l.json", LAUNCH.replace(r#"{"tensor": "x"}"#, &place));
        let text = scratch.fails(1, &["run", "k.rt", "--launch", "l.json", "--sanitize", "init"]);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn counters_are_the_same_in_every_run() {
    let scratch = Scratch::new("counters");
    scratch.write("in.safetensors", tensors(300)).write("l.json", LAUNCH);
    let text = |_: u32| {
        let output = scratch.rtc(&["run", "k.rt", "--launch", "l.json", "--counters"]);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        text[text.find("global memory").unwrap()..text.find("time  ").unwrap()].to_owned()
    };
    let first = text(1);
    assert_eq!(first, text(2));
    insta::assert_snapshot!(first);
}

/// Adds up the elements behind a mask, which is zero only here.
const LEANING: &str = "\
@triton.jit
def leaning(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + offsets, mask=offsets < n - 200)
    tl.store(y_ptr, tl.sum(v))
";

#[test]
fn what_the_language_leaves_open_is_found_if_it_is_asked_for() {
    let scratch = Scratch::new("sanitize-open");
    scratch.write("in.safetensors", tensors(300)).write("l.json", LAUNCH).write("leaning.rt", LEANING);
    let run = ["run", "leaning.rt", "--launch", "l.json", "--sanitize"];
    let output = scratch.rtc(&[&run[..], &["all"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = scratch.fails(1, &[&run[..], &["open"]].concat());
    insta::assert_snapshot!(text);
    let output = scratch.rtc(&["run", "k.rt", "--launch", "l.json", "--sanitize", "all,open"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("sanitizer  nothing found (memory, init, race, sync, promise, open)"), "{text}");
}

#[test]
fn it_runs_on_the_emulator_only() {
    let scratch = Scratch::new("sanitize-device");
    scratch.write("in.safetensors", tensors(300)).write("l.json", LAUNCH);
    let args = ["run", "k.rt", "--launch", "l.json", "--sanitize", "race"];
    assert!(scratch.fails(2, &[&args[..], &["--device", "interpreter"]].concat()).contains("run on the emulator"));
    assert!(scratch.fails(2, &[&args[..5], &["races"]].concat()).contains("checks are memory, init, race"));
}

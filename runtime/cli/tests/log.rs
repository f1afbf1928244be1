//! `RTC_LOG`: spans of compilation, cache and launch on standard error.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, Scratch, tensors};

/// What a run writes to standard error.
fn log(scratch: &Scratch, wanted: &str) -> String {
    let mut command = scratch.command(&["run", "k.rt", "--launch", "l.json", "--device", "emulator"]);
    let output = command.env("RTC_LOG", wanted).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("kernel "));
    String::from_utf8(output.stderr).unwrap()
}

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("l.json", LAUNCH).write("in.safetensors", tensors(300));
    scratch
}

#[test]
fn each_part_has_its_spans() {
    let scratch = scratch("log");
    let text = log(&scratch, "trace");
    for part in [
        "compile{kernel=\"copy_kernel\" arch=\"sm_90a\"}: rtc::compile: close time.busy=",
        ":stage{name=\"sema\"}: rtc::compile: close",
        ":pass{name=\"licm\"}: rtc::compile: close",
        "get{kind=\"kernel\" key=",
        " found=false}: rtc::cache: close",
        "put{kind=\"kernel\"",
        "load{kernel=\"copy_kernel\" device=emulator}: rtc::launch: close",
        "launch{kernel=\"copy_kernel\" blocks=[3, 1, 1]}: rtc::launch: close",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // The second time the kernel is in the cache.
    let text = log(&scratch, "rtc::cache=debug,rtc::compile=trace");
    assert!(text.contains(" found=true}") && !text.contains("compile{") && !text.contains("launch{"), "{text}");
}

#[test]
fn nothing_is_logged_unless_it_is_asked_for() {
    let scratch = scratch("no-log");
    assert_eq!(log(&scratch, ""), "");
    assert_eq!(log(&scratch, "off"), "");
    assert_eq!(log(&scratch, "rtc::tune=trace"), "");
    let mut command = scratch.command(&["explain"]);
    let output = command.env("RTC_LOG", "rtc::cache=loud").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error[usage]: RTC_LOG is `rtc::cache=loud`: "), "{text}");
}

//! `rtc devices` on this machine, and where there is no driver.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::Scratch;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn json(scratch: &Scratch, hidden: bool) -> Value {
    let mut command = scratch.command(&["devices", "--json"]);
    if hidden {
        // A driver that is there sees no GPU then.
        command.env("CUDA_VISIBLE_DEVICES", "");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn the_answer_has_one_form_with_and_without_gpus() {
    let scratch = Scratch::new("devices");
    let (all, cpu) = (json(&scratch, false), json(&scratch, true));
    assert_eq!(keys(&all), ["driver", "default", "devices"]);
    assert_eq!((keys(&all), keys(&all["driver"])), (keys(&cpu), keys(&cpu["driver"])));
    assert_eq!(cpu["default"], "emulator");
    let names: Vec<&Value> = cpu["devices"].as_array().unwrap().iter().map(|device| &device["device"]).collect();
    assert_eq!(names, ["emulator", "interpreter"]);
    let emulator = &cpu["devices"][0];
    for device in all["devices"].as_array().unwrap() {
        assert_eq!(keys(device), keys(emulator));
        let is_gpu = device["device"].as_str().unwrap().starts_with("cuda:");
        assert_eq!(device["memory_bytes"].is_u64() || device["error"].is_string(), is_gpu, "{device}");
    }
    assert_eq!((&emulator["arch"], &emulator["compute_capability"]), (&"sm_90a".into(), &"9.0".into()));
    assert!(emulator["sms"].as_u64().unwrap() > 0 && emulator["memory_bytes"].is_null(), "{emulator}");
    // Whichever it is, `--device` takes the name.
    let driver = &all["driver"];
    assert!(driver["cuda"].is_string() != driver["error"].is_string(), "{driver}");
}

#[test]
fn a_table_with_a_line_for_each_device() {
    let scratch = Scratch::new("devices-text");
    let text = String::from_utf8(scratch.rtc(&["devices"]).stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("device "), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("emulator ") && line.contains(" sm_90a ")), "{text}");
    assert!(lines.last().unwrap().starts_with("driver: "), "{text}");
    let json = scratch.rtc(&["devices", "--message-format", "json"]);
    assert!(serde_json::from_slice::<Value>(&json.stdout).is_ok());
}

/// With the driver of the runtime's tests, which has one GPU and no memory to run kernels.
#[test]
fn a_gpu_and_one_that_cannot_be_used() {
    let scratch = Scratch::new("devices-stub");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/driver/stub.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(scratch.0.join("libcuda.so.1")).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
    let with = |fault: &str, args: &[&str]| -> String {
        let mut command = scratch.command(args);
        let output = command.env("LD_LIBRARY_PATH", &scratch.0).env("RTC_STUB", fault).output().unwrap();
        // The driver prints how often it was called whenever it is unloaded.
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.starts_with("driver: 0 launches")).map(|line| format!("{line}\n")).collect()
    };
    let list: Value = serde_json::from_str(&with("", &["devices", "--json"])).unwrap();
    assert_eq!((&list["default"], &list["driver"]["cuda"]), (&"cuda:0".into(), &"12.4".into()));
    let gpu = &list["devices"][0];
    assert_eq!((&gpu["name"], &gpu["arch"], &gpu["sms"]), (&"stub".into(), &"sm_90a".into(), &132.into()));
    assert_eq!((&gpu["memory_bytes"], &gpu["free_bytes"]), (&1_048_576.into(), &4096.into()));
    assert!(gpu["uuid"].as_str().unwrap().starts_with("GPU-ab"), "{gpu}");
    assert_eq!(list["devices"].as_array().unwrap().len(), 3);
    assert!(with("", &["devices"]).contains("for CUDA 12.4\n"));
    let old: Value = serde_json::from_str(&with("old", &["devices", "--json"])).unwrap();
    assert!(old["driver"]["error"].as_str().unwrap().contains("too old"), "{old}");
    assert_eq!((keys(&old["driver"]), &old["default"]), (keys(&list["driver"]), &"emulator".into()));
}

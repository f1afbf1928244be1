//! `--instrument`: the warps of a launch record their events, and the launch computes the same.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors, tutorial};
use serde_json::Value;

fn json(scratch: &Scratch, args: &[&str]) -> Value {
    let output = scratch.rtc(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn file(scratch: &Scratch, name: &str) -> Vec<u8> {
    std::fs::read(scratch.0.join(name)).unwrap()
}

/// Each event of a trace with this name: process, iteration.
fn bars(trace: &[u8], name: &str) -> Vec<(u64, Option<u64>)> {
    let trace: Value = serde_json::from_slice(trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = events.iter().filter(|event| event["name"] == name && event.get("args").is_some());
    named.map(|event| (event["pid"].as_u64().unwrap(), event["args"]["iteration"].as_u64())).collect()
}

/// By `cp.async` and `mma.sync`, and by producer warps, TMA and `wgmma`: a block does 8 iterations.
#[test]
fn a_launch_records_and_computes_the_same() {
    let scratch = Scratch::new("instrument-run");
    let (source, _) = tutorial(&scratch);
    for arch in ["sm_80", "sm_90a"] {
        let run = ["run", &source, "--launch", "matmul.json", "--arch", arch, "--device", "emulator", "--json"];
        json(&scratch, &[&run[..], &["-o", "plain.safetensors"]].concat());
        let traced = ["-o", "traced.safetensors", "--instrument", "trace.json", "--instrument-blocks", "2"];
        let result = json(&scratch, &[&run[..], &traced].concat());
        assert_eq!(file(&scratch, "plain.safetensors"), file(&scratch, "traced.safetensors"), "{arch}");
        let timeline = &result["timeline"];
        assert_eq!((&timeline["blocks"], &timeline["lost"]), (&2.into(), &0.into()), "{arch}: {timeline}");
        let trace = file(&scratch, "trace.json");
        let dots = bars(&trace, "mma");
        for block in 0..2 {
            for iteration in 0..8 {
                assert!(dots.contains(&(block, Some(iteration))) || arch == "sm_80", "{arch}: {block}, {iteration}");
            }
        }
        assert!(!bars(&trace, "copy").is_empty() && !bars(&trace, "wait").is_empty(), "{arch}");
        assert!(!dots.is_empty() && !dots.iter().any(|(block, _)| *block > 1), "{arch}");
    }
}

/// The timeline of the page is the record; copies are ahead of the waits for them.
#[test]
fn the_page_shows_the_record() {
    let scratch = Scratch::new("instrument-page");
    let (source, lines) = tutorial(&scratch);
    let explore = ["explore", &source, "--launch", "matmul.json", "--arch", "sm_90a", "--no-sanitize", "--json"];
    let data = json(&scratch, &[&explore[..], &["--instrument", "--device", "emulator"]].concat());
    let timeline = &data["launch"]["timeline"];
    assert_eq!(timeline["recording"]["device"], "emulator");
    assert_eq!((&timeline["recording"]["blocks"], &timeline["recording"]["lost"]), (&4.into(), &0.into()));
    let rings = timeline["rings"].as_array().unwrap();
    let line = |ring: &Value| data["places"][ring["place"].as_u64().unwrap() as usize][1].as_u64().unwrap();
    assert_eq!(rings.iter().map(line).collect::<Vec<_>>(), lines);
    for ring in rings {
        assert!(ring["stages"].as_u64().unwrap() > 3 && ring["ahead"][1].as_u64().unwrap() >= 2, "{ring}");
    }
    // A bar is at the line of PTX where its event is recorded.
    for bar in timeline["bars"].as_array().unwrap() {
        let text = data["ptx"][bar["ptx_line"].as_u64().unwrap() as usize - 1]["t"].as_str().unwrap();
        assert!(text.contains("%clock64; // record "), "{text}");
    }
}

/// Events beyond the memory for records are counted, and the others are kept.
#[test]
fn lost_events_are_counted() {
    let scratch = Scratch::new("instrument-lost");
    scratch.write(
        "k.rt",
        "@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n    offsets = tl.arange(0, BLOCK)\n    \
         for i in range(n):\n        tl.store(y_ptr + offsets + i % 2, tl.load(x_ptr + offsets + i))\n",
    );
    scratch.write("launch.json", LAUNCH.replace("300", "2000").replace("[3, 1, 1]", "[1, 1, 1]"));
    scratch.write("in.safetensors", tensors(2200));
    let run =
        ["run", "k.rt", "--launch", "launch.json", "--device", "emulator", "--json", "--instrument", "trace.json"];
    let timeline = json(&scratch, &run)["timeline"].clone();
    // An iteration has four events, two that are taken at a time one more; 4093 are kept of each of four warps.
    let (events, lost) = (timeline["events"].as_u64().unwrap(), timeline["lost"].as_u64().unwrap());
    assert!(events >= 4 * 9_000 && lost == events - 4 * 4093, "{timeline}");
    assert!(bars(&file(&scratch, "trace.json"), "store").len() > 4 * 800);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let scratch = Scratch::new("instrument-refused");
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    let run = ["run", "k.rt", "--launch", "launch.json", "--instrument", "trace.json"];
    let refused = scratch.fails(2, &[&run[..], &["--device", "interpreter"]].concat());
    assert!(refused.contains("the interpreter has no time to record"), "{refused}");
    let refused = scratch.fails(2, &[&run[..], &["--instrument-blocks", "257"]].concat());
    assert!(refused.contains("257 is not in 1..=256"), "{refused}");
    let refused = scratch.fails(2, &["explore", "k.rt", "--signature", SIGNATURE, "--instrument"]);
    assert!(refused.contains("--instrument needs a launch"), "{refused}");
    scratch.write("k.ptx", ".version 8.0\n");
    let refused = scratch.fails(2, &["run", "k.ptx", "--launch", "launch.json", "--instrument", "trace.json"]);
    assert!(refused.contains("--instrument needs a source or a .tir file"), "{refused}");
    assert!(!scratch.0.join("trace.json").exists());
}

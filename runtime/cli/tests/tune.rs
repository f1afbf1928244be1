//! `rtc tune` without a GPU, and what `rtc run` makes of a kernel with configurations.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{Scratch, tensors};
use serde_json::Value;

const TUNED: &str = "\
@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 128) for w in (2, 4)] + [triton.Config({'BLOCK': 100})], key=['n'])
@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0})
@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y_ptr + i, tl.load(x_ptr + i))
    else:
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
";
const LAUNCH: &str = r#"{"spec": {"args": [{"name": "x_ptr", "type": "*fp32", "divisible_by": 16},
 {"name": "y_ptr", "type": "*fp32", "divisible_by": 16}, {"name": "n", "type": "i32"}]}, "grid": ["cdiv(n, BLOCK)"],
 "args": {"x_ptr": {"tensor": "x"}, "y_ptr": {"tensor": "y"}, "n": 300}, "tensors": "in.safetensors"}"#;

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("t.rt", TUNED).write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    scratch
}

fn says(scratch: &Scratch, args: &[&str]) -> (String, String) {
    let output = scratch.rtc(args);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

#[test]
fn the_cost_model_decides_and_says_so() {
    let scratch = scratch("tune");
    let tune = ["tune", "t.rt", "--launch", "launch.json", "--device", "emulator", "-o", "t.json", "--plot", "t.svg"];
    let (out, err) = says(&scratch, &tune);
    assert!(out.contains("by the cost model; nothing was timed") && out.contains("\n* BLOCK="), "{out}");
    // Configurations that cannot run come last, with the reason.
    let refused = out.lines().rfind(|line| line.contains("num_warps=")).unwrap();
    assert!(refused.contains("BLOCK=100") && refused.contains("not a power of two"), "{out}");
    assert_eq!(err, "");
    let tuned = std::fs::read_to_string(scratch.0.join("t.json")).unwrap();
    assert!(tuned.contains(r#""kernel": "copy""#) && tuned.contains(r#""EVEN": false"#), "{tuned}");
    assert!(std::fs::read_to_string(scratch.0.join("t.svg")).unwrap().starts_with("<svg"));
    // A file keeps what it has.
    says(&scratch, &tune);
    assert_eq!(std::fs::read_to_string(scratch.0.join("t.json")).unwrap(), tuned);
}

#[test]
fn the_configurations_as_json() {
    let scratch = scratch("tune-json");
    let (out, err) = says(&scratch, &["tune", "t.rt", "--launch", "launch.json", "--device", "emulator", "--json"]);
    assert_eq!(err, "");
    let json: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((&json["kernel"], &json["decided_by"], &json["timed"]), (&"copy".into(), &"model".into(), &0.into()));
    let candidates = json["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &candidates[0]["config"]), (5, &json["winner"]));
    // The order is that of the model, and the one that cannot run is the last.
    let (refused, able) = candidates.split_last().unwrap();
    let ms: Vec<f64> = able.iter().map(|candidate| candidate["model_ms"].as_f64().unwrap()).collect();
    assert!(ms.is_sorted() && ms[0] > 0.0, "{ms:?}");
    assert_eq!(refused["config"]["values"]["BLOCK"], 100);
    assert!(refused["dropped"].as_str().unwrap().contains("power of two") && refused["model_ms"].is_null());
    for (place, candidate) in able.iter().enumerate() {
        assert_eq!((&candidate["model_place"], &candidate["timed"]), (&(place + 1).into(), &false.into()));
        assert!(candidate["ms"].is_null() && candidate["runs"] == 0 && candidate["spill_bytes"].is_null());
        assert!(candidate["registers"].as_u64().unwrap() > 0 && candidate["waves"].as_f64().unwrap() > 0.0);
        let block = candidate["config"]["values"]["BLOCK"].as_u64().unwrap();
        assert_eq!(candidate["grid"], serde_json::json!([300_u64.div_ceil(block), 1, 1]));
        assert_eq!(candidate["shared_bytes"], 0);
    }
    // Nothing was timed, so that the lead is that of the model, and whether it is clear is not known.
    let uncertainty = &json["uncertainty"];
    assert!(uncertainty["next_ratio"].as_f64().unwrap() >= 1.0 && uncertainty["next"] != json["winner"]);
    assert!(uncertainty["spread"].is_null() && uncertainty["is_clear"].is_null(), "{uncertainty}");
    let (same, _) = says(
        &scratch,
        &["tune", "t.rt", "--launch", "launch.json", "--device", "emulator", "--message-format", "json"],
    );
    assert_eq!(serde_json::from_str::<Value>(&same).unwrap()["winner"], json["winner"]);
}

#[test]
fn a_run_takes_a_configuration_and_its_grid() {
    let scratch = scratch("tuned-run");
    for device in ["emulator", "interpreter"] {
        let (out, _) =
            says(&scratch, &["run", "t.rt", "--launch", "launch.json", "--device", device, "-o", "out.safetensors"]);
        assert!(out.contains("(the first of the cost model; `rtc tune` times them)"), "{out}");
        let bytes = std::fs::read(scratch.0.join("out.safetensors")).unwrap();
        let values: Vec<f32> =
            bytes[bytes.len() - 2400..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert!((0..300).all(|i| values[i] == i as f32 * 0.5 && values[300 + i] == values[i]), "{values:?}");
    }
}

#[test]
fn mistakes_have_a_place() {
    let scratch = scratch("tune-mistakes");
    scratch.write("t.rt", TUNED.replace("{'BLOCK': b}", "{'BLOK': b}"));
    let text = scratch.fails(1, &["tune", "t.rt", "--launch", "launch.json", "--device", "emulator"]);
    assert!(
        text.contains("error[wrong-arguments]: `copy` has no parameter `BLOK`") && text.contains("t.rt:1:"),
        "{text}"
    );
    scratch.write("t.rt", TUNED).write("launch.json", LAUNCH.replace("cdiv(n, BLOCK)", "cdiv(m, BLOCK)"));
    let text = scratch.fails(1, &["tune", "t.rt", "--launch", "launch.json", "--device", "emulator"]);
    assert!(text.contains("`m` is not an integer argument"), "{text}");
    let text = scratch.fails(2, &["tune", "t.rt", "--launch", "launch.json", "--budget", "soon"]);
    assert!(text.contains("not a number of seconds"), "{text}");
    let text = scratch.fails(2, &["tune", "t.rt", "--launch", "launch.json", "--devices", "0,x"]);
    assert!(text.contains("neither `all` nor numbers of GPUs"), "{text}");
    let text = scratch.fails(2, &["tune", "t.rt", "--launch", "launch.json", "--devices", "0", "--device", "emulator"]);
    assert!(text.contains("cannot be used with"), "{text}");
}

/// The time of each configuration and the winner, of an entry of a `tuned.json`.
fn results(scratch: &Scratch, name: &str) -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(scratch.0.join(name)).unwrap();
    let tuned = rtc_tune::Tuned::parse(&text).unwrap();
    let [entry] = &tuned.entries[..] else { panic!("one entry: {text}") };
    let mut all: Vec<_> =
        entry.records.iter().map(|r| (r.setting.choice().unwrap().to_string(), r.milliseconds)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let winner = entry.records.iter().find(|record| record.setting == entry.winner).unwrap();
    // Of two that are as fast either may win.
    all.push(("winner".into(), winner.milliseconds));
    all
}

#[test]
fn shards_merge_to_what_one_tuning_finds() {
    let scratch = scratch("tune-shards");
    let tune = |more: &[&str]| {
        let common = ["tune", "t.rt", "--launch", "launch.json", "--clock", "counters"];
        says(&scratch, &[&common[..], more].concat())
    };
    let (out, _) = tune(&["-o", "whole.json", "--no-cache"]);
    assert!(out.contains("timed 4 of 5 configurations"), "{out}");
    for index in 1..=3 {
        let (out, _) = tune(&["--shard", &format!("{index}/3"), "-o", &format!("{index}.json")]);
        assert!(out.contains("decided    timed "), "{out}");
    }
    // All files are there.
    let merge = ["tune", "-o", "merged.json", "--merge", "3.json", "1.json", "2.json"];
    let (out, err) = says(&scratch, &merge);
    assert_eq!(results(&scratch, "merged.json"), results(&scratch, "whole.json"));
    assert!(out.contains("decided    4 configurations of 3 files") && out.contains("\n* BLOCK="), "{out}");
    assert!(!err.contains("error"), "{err}");
    // The cache has the winner, so that nothing is timed again.
    let (out, _) = tune(&[]);
    assert!(out.contains("stored by a tuning before"), "{out}");
    // A shard that runs again finds its times.
    let (out, _) = tune(&["--shard", "2/3", "-o", "again.json"]);
    assert!(out.contains("stored by a tuning before"), "{out}");
    let read = |name: &str| std::fs::read_to_string(scratch.0.join(name)).unwrap();
    assert_eq!(read("again.json"), read("2.json"));
    let (out, _) = says(&scratch, &["tune", "t.rt", "--launch", "launch.json", "--compile-only"]);
    assert_eq!(out, "compiled   4 configurations for sm_90a\n");
}

#[test]
fn files_that_do_not_merge_have_codes() {
    let scratch = scratch("tune-merge-mistakes");
    let tune = |file: &str, shard: &str, output: &str| {
        let common = ["tune", file, "--launch", "launch.json", "--clock", "counters", "--shard", shard, "-o", output];
        says(&scratch, &common);
    };
    scratch.write("u.rt", TUNED.replace("def copy", "def move"));
    tune("t.rt", "1/2", "1.json");
    tune("t.rt", "2/2", "2.json");
    tune("u.rt", "2/2", "other.json");
    let text = scratch.fails(1, &["tune", "--merge", "1.json"]);
    assert!(text.contains("error[shard-missing]: of copy on emulator (sm_90a) the shards 2/2 are missing"), "{text}");
    let text = scratch.fails(1, &["tune", "--merge", "1.json", "other.json"]);
    assert!(text.contains("error[shard-mismatch]: 1.json and other.json are of different tunings"), "{text}");
    let whole = std::fs::read_to_string(scratch.0.join("2.json")).unwrap();
    scratch.write("2.json", &whole[..whole.len() / 2]);
    let text = scratch.fails(1, &["tune", "--merge", "1.json", "2.json"]);
    assert!(text.contains("error[tuned-file]: tuning results: ") && text.contains("2.json"), "{text}");
    // A part that was timed twice, with another time.
    let at = whole.find("\"milliseconds\": ").unwrap() + "\"milliseconds\": ".len();
    let slower = format!("{}9{}", &whole[..at], &whole[at..]);
    scratch.write("2.json", &whole).write("slower.json", slower);
    let (_, err) = says(&scratch, &["tune", "--merge", "1.json", "2.json", "slower.json"]);
    assert!(err.contains("warning[shard-conflict]: `BLOCK="), "{err}");
    // The command line.
    for (arguments, expected) in [
        (&["--shard", "3/2", "-o", "x.json"][..], "`3/2` is no shard"),
        (&["--shard", "1/2"], "--output"),
        (&["--shard", "1/2", "-o", "x.json"], "has no clock: use a GPU or --clock counters"),
        (&["--clock", "counters", "--device", "interpreter"], "--clock counters is for the emulator"),
    ] {
        let common = ["tune", "t.rt", "--launch", "launch.json"];
        let device: &[&str] = if expected.contains("has no clock") { &["--device", "emulator"] } else { &[] };
        let text = scratch.fails(2, &[&common[..], device, arguments].concat());
        assert!(text.contains(expected), "{text}");
    }
    let text = scratch.fails(2, &["tune", "--shard", "1/2", "-o", "x.json"]);
    assert!(text.contains("FILE") && text.contains("--launch"), "{text}");
}

/// The page on shards: its commands, and its script as a batch system starts it.
#[test]
fn the_page_on_many_machines_is_right() {
    let scratch = scratch("tune-page");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tools/tune-many.md")).unwrap();
    let block = |after: &str| {
        let rest = page.split_once(after).unwrap().1;
        rest.split_once("```").unwrap().1.split_once('\n').unwrap().1.split("```").next().unwrap()
    };
    for name in ["softmax_tuned.py", "softmax_launch.json", "tune.sbatch"] {
        scratch.write(name, block(&format!("<!-- file: {name} -->")));
    }
    std::fs::create_dir_all(scratch.0.join("examples/softmax")).unwrap();
    let tensors = std::fs::read(root.join("examples/softmax/inputs.safetensors")).unwrap();
    scratch.write("examples/softmax/inputs.safetensors", tensors);
    let lines: Vec<&str> = block("on every machine.").lines().collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        says(&scratch, &line.split_whitespace().skip(1).collect::<Vec<_>>());
    }
    let expected = results(&scratch, "tuned.json");
    assert_eq!(expected.len(), 5);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_rtc"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for index in 1..=4 {
        let mut command = std::process::Command::new("bash");
        command.args(["tune.sbatch", "--clock", "counters"]).current_dir(&scratch.0).env("PATH", &path);
        command.env("RTC_CACHE_DIR", scratch.0.join("cache-of-the-script"));
        command.envs([("SLURM_ARRAY_TASK_ID", index.to_string()), ("SLURM_ARRAY_TASK_COUNT", "4".into())]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let files = ["shard-1.json", "shard-2.json", "shard-3.json", "shard-4.json"];
    says(&scratch, &[&["tune", "-o", "array.json", "--merge"][..], &files].concat());
    assert_eq!(results(&scratch, "array.json"), expected);
}

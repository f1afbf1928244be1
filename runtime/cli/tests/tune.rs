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

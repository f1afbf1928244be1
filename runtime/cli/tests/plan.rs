//! Plans for the schedule of a kernel that are given by a file: results stay, schedules change.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{Scratch, safetensors};
use serde_json::json;

/// A matrix multiplication of `SIZE` by `SIZE`, in 4 programs of 4 iterations.
const KERNEL: &str = "\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, N, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * N + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
";
const SIZE: usize = 128;
const SIGNATURE: &str = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 32";
/// One slot, as many as wished for, two barriers in an iteration, and more slots than memory holds.
const PLANS: [&str; 4] =
    ["ring=1 slots=1", "ring=3 slots=3", "slots=2 ahead=2  # a second barrier\nring=2", "ring=16\nslots=16\nahead=16"];

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let pointer = |name: &str, ty: &str| json!({"name": name, "type": ty, "divisible_by": 16});
    let constant = |name: &str, value: u32| json!({"name": name, "constexpr": value});
    let pointers =
        [pointer("a_ptr", "*fp16"), pointer("b_ptr", "*fp16"), pointer("c_ptr", "*fp32"), pointer("N", "i32")];
    let arguments = [&pointers[..], &[constant("BLOCK", 64), constant("BLOCK_K", 32)]].concat();
    let launch = json!({
        "spec": {"args": arguments},
        "grid": [2, 2, 1],
        "args": {"a_ptr": {"tensor": "a"}, "b_ptr": {"tensor": "b"}, "c_ptr": {"tensor": "c"}, "N": SIZE},
        "tensors": "in.safetensors",
    });
    let count = SIZE * SIZE;
    let header = json!({
        "a": {"dtype": "F16", "shape": [SIZE, SIZE], "data_offsets": [0, 2 * count]},
        "b": {"dtype": "F16", "shape": [SIZE, SIZE], "data_offsets": [2 * count, 4 * count]},
        "c": {"dtype": "F32", "shape": [SIZE, SIZE], "data_offsets": [4 * count, 8 * count]},
    });
    // 1, 1.5 and so on, which add up exactly.
    let halves = |step: usize| (0..count).flat_map(move |i| (0x3C00 + 0x100 * (i * step % 7 % 5) as u16).to_le_bytes());
    let data: Vec<u8> = halves(3).chain(halves(5)).chain(vec![0; 4 * count]).collect();
    scratch.write("matmul.rt", KERNEL).write("launch.json", launch.to_string());
    scratch.write("in.safetensors", safetensors(&header.to_string(), &data));
    for (at, plan) in PLANS.iter().enumerate() {
        scratch.write(&format!("{at}.plan"), plan);
    }
    scratch
}

#[test]
fn results_are_the_same_under_every_plan() {
    let scratch = scratch("plan_run");
    let run = |device: &str, arch: &str, rest: &[&str]| {
        let arguments = ["run", "matmul.rt", "--launch", "launch.json", "--device", device, "--arch", arch];
        let output = scratch.rtc(&[&arguments, rest].concat());
        assert!(output.status.success(), "{arch} {rest:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("interpreter", "sm_90a", &["-o", "golden.safetensors"]);
    for arch in ["sm_80", "sm_90a"] {
        for at in 0..PLANS.len() {
            let plan = format!("{at}.plan");
            let check = ["--plan", &plan, "--check", "golden.safetensors", "--tolerance", "0"];
            run("interpreter", arch, &check);
            run("emulator", arch, &check);
        }
    }
}

#[test]
fn a_plan_changes_the_schedule() {
    let scratch = scratch("plan_emit");
    for arch in ["sm_80", "sm_90a"] {
        let emit = |rest: &[&str]| {
            let stage = ["emit", "matmul.rt", "--signature", SIGNATURE, "--arch", arch, "--stage", "plan"];
            String::from_utf8(scratch.rtc(&[&stage, rest].concat()).stdout).unwrap()
        };
        let plans: Vec<String> = (0..PLANS.len()).map(|at| emit(&["--plan", &format!("{at}.plan")])).collect();
        for (at, plan) in plans.iter().enumerate() {
            assert!(plan.contains("dot"), "{plan}");
            assert!(plans[..at].iter().all(|other| other != plan), "{arch}, {at}: {plan}");
        }
        // The option is the same.
        assert_eq!(emit(&["--option", "plan=ring=1 slots=1"]), plans[0]);
    }
    // So does a file of tile IR.
    let tile = scratch.rtc(&["emit", "matmul.rt", "--signature", SIGNATURE, "--stage", "tile"]);
    scratch.write("matmul.tir", &tile.stdout);
    let emit = |rest: &[&str]| scratch.rtc(&[&["emit", "matmul.tir", "--arch", "sm_90a"], rest].concat()).stdout;
    assert_ne!(emit(&["--plan", "0.plan"]), emit(&[]));
}

#[test]
fn decisions_that_are_not_applicable_are_reported() {
    let scratch = scratch("plan_remarks");
    let build = |plan: &str, arch: &str| {
        scratch.write("a.plan", plan);
        let rest = ["--arch", arch, "--plan", "a.plan", "-o", "out", "-v"];
        let large = SIGNATURE.replace("64, 32", "128, 64");
        let output = scratch.rtc(&[&["build", "matmul.rt", "--signature", &large], &rest[..]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text}");
        let remarks = text.lines().filter_map(|line| line.split_once("[plan]: "));
        remarks.map(|(_, remark)| remark.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(build("ring=2 slots=2", "sm_90a"), ["`slots=2` of the plan has no effect on this kernel"]);
    assert_eq!(
        build("ring=16", "sm_90a"),
        ["`ring=16` of the plan is lowered to 3, the most that this kernel can use"]
    );
    let lowered = "`slots=16` of the plan is lowered to 5, the most that this kernel can use";
    assert_eq!(build("slots=16 rows=yes", "sm_80"), [lowered, "`rows=yes` of the plan has no effect on this kernel"]);
    assert_eq!(build("slots=2", "sm_80"), [""; 0]);
}

#[test]
fn a_file_that_is_not_a_plan_is_refused_with_its_place() {
    let scratch = scratch("plan_wrong");
    for (text, place, message) in [
        ("ring=4\nslots=0", "a.plan:2:1", "`slots` takes a number from 1 to 16, not `0`"),
        ("slots=2 slots=3", "a.plan:1:9", "`slots` is given twice"),
        ("rows", "a.plan:1:1", "`rows` is not of the form NAME=VALUE"),
        ("ring=2 depth=3 # stages", "a.plan:1:8", "a plan has no `depth`; ring, slots, ahead are numbers"),
    ] {
        scratch.write("a.plan", text);
        for command in [
            &["run", "matmul.rt", "--launch", "launch.json"][..],
            &["build", "matmul.rt", "--signature", SIGNATURE],
            &["emit", "matmul.rt", "--signature", SIGNATURE],
        ] {
            let said = scratch.fails(1, &[command, &["--plan", "a.plan"]].concat());
            assert!(said.contains(&format!("error[plan]: {message}")) && said.contains(place), "{said}");
        }
    }
    scratch.write("spec.json", r#"{"args": [], "options": {"plan": "ring=17"}}"#);
    let said = scratch.fails(1, &["build", "matmul.rt", "--spec", "spec.json"]);
    assert!(said.contains("`options.plan`: `ring` takes a number from 1 to 16, not `17`"), "{said}");
}

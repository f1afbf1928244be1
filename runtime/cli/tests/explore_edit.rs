//! The server of `rtc explore --serve --edit`: which requests it answers, what a run may do, and what is written.
#![allow(clippy::unwrap_used)]

mod editing;
mod scratch;

use editing::Editing;
use scratch::{LAUNCH, Scratch, tensors};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The body of a run with the inputs that the server proposes.
fn run_of(editing: &Editing, text: &str, specialization: Option<&str>) -> Value {
    let found = editing.ask("inputs", &json!({"text": text, "specialization": specialization}));
    assert_eq!(found["error"], Value::Null, "{found}");
    let values = found["values"].as_array().unwrap();
    let values: serde_json::Map<String, Value> =
        values.iter().map(|value| (value["name"].as_str().unwrap().to_owned(), value.clone())).collect();
    json!({"text": text, "specialization": found["specialization"], "grid": found["grid"], "values": values})
}

fn source(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.0.join("k.rt")).unwrap()
}

#[test]
fn only_the_page_itself_is_answered() {
    let scratch = Scratch::new("edit-guard");
    let editing = Editing::start(&scratch, &["k.rt"]);
    let Editing { host, token, .. } = &editing;
    let get = |path: &str, host: &str| editing.raw(&format!("GET {path} HTTP/1.1\r\nHost: {host}"), "").0;
    assert_eq!(get(&format!("/?token={token}"), host), 200);
    assert_eq!(get("/", host), 403, "no token");
    assert_eq!(get(&format!("/?token={}", "0".repeat(32)), host), 403, "another token");
    assert_eq!(get(&format!("/?token={token}"), "attacker.example"), 403, "a name that resolves to this machine");
    assert_eq!(get("/result", host), 403);
    assert_eq!((get("/editor.js", host), get("/licences", host)), (200, 200));
    assert_eq!(get(&format!("/../../etc/passwd?token={token}"), host), 404);
    let body = json!({"text": "x = 1\n"}).to_string();
    for path in ["lsp", "inputs", "run", "save"] {
        let post = |more: &str| editing.raw(&format!("POST /{path} HTTP/1.1\r\nHost: {host}{more}"), &body).0;
        assert_eq!(post(""), 403, "{path} without a token");
        let foreign = format!("\r\nX-Rtc-Token: {token}\r\nOrigin: http://attacker.example");
        assert_eq!(post(&foreign), 403, "{path} from another page");
        let sandboxed = format!("\r\nX-Rtc-Token: {token}\r\nOrigin: null");
        assert_eq!(post(&sandboxed), 403, "{path} from a page without an origin");
    }
    let method = editing.raw(&format!("DELETE /save HTTP/1.1\r\nHost: {host}\r\nX-Rtc-Token: {token}"), "");
    assert_eq!(method.0, 405);
    assert!(source(&scratch).contains("copy_kernel"), "nothing was written");
}

#[test]
fn wrong_requests_are_answered_and_the_next_one_too() {
    let scratch = Scratch::new("edit-wrong");
    let editing = Editing::start(&scratch, &["k.rt"]);
    for path in ["lsp", "inputs", "save"] {
        for wrong in ["", "{", "[1, 2]", "\"text\"", "null", r#"{"text": 3}"#, &"[".repeat(100_000)] {
            let (status, text) = editing.post(path, wrong);
            assert!((400..500).contains(&status), "{path} {status}: {text}");
        }
    }
    assert_eq!(editing.post("inputs", &"x".repeat(9 << 20)).0, 413);
    let text = source(&scratch);
    let run = run_of(&editing, &text, None);
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut run = run.clone();
        change(&mut run);
        editing.ask("run", &run)["error"].as_str().unwrap_or_else(|| panic!("an error: {run}")).to_owned()
    };
    assert!(broken(&|run| run["text"] = Value::Null).contains("`text`"));
    let error = broken(&|run| run["text"] = text.replace("tl.arange(", "tl.arange((").into());
    assert!(error.contains("error[syntax]") && error.contains("k.rt:"), "{error}");
    assert!(broken(&|run| run["text"] = text.replace("x_ptr + offsets", "z_ptr + offsets").into()).contains("z_ptr"));
    assert!(broken(&|run| run["specialization"] = "other(i32)".into()).contains("other"));
    assert!(broken(&|run| run["grid"] = "1, 2, 3, 4".into()).contains("grid"));
    assert!(broken(&|run| run["grid"] = "n +".into()).contains("grid[0]"));
    assert!(broken(&|run| run["values"]["n"]["value"] = "many".into()).contains("`many`"));
    assert!(broken(&|run| run["values"]["x_ptr"]["elements"] = "-1".into()).contains("`-1`"));
    assert!(broken(&|run| run["values"]["x_ptr"]["elements"] = "999999999999".into()).contains("256 MiB"));
    assert!(broken(&|run| run["values"]["x_ptr"]["fill"] = "noise".into()).contains("content"));
    assert_eq!(editing.ask("run", &run)["kernel"], "copy_kernel");
}

#[test]
fn a_run_has_counts_findings_and_results() {
    let scratch = Scratch::new("edit-run");
    let editing = Editing::start(&scratch, &["k.rt"]);
    let text = source(&scratch);
    let mut run = run_of(&editing, &text, Some("copy_kernel(*fp32:16, *fp16:16, i32, 128) arch=sm_80"));
    run["values"]["n"]["value"] = "300".into();
    run["grid"] = "cdiv(n, BLOCK), 1".into();
    run["values"]["x_ptr"]["fill"] = "counting".into();
    let page = editing.ask("run", &run);
    let launch = &page["launch"];
    assert_eq!((&page["arch"], &launch["grid"]), (&json!("sm_80"), &json!([3, 1, 1])));
    assert!(
        !launch["heat"].as_array().unwrap().is_empty() && launch["findings"] == json!([]),
        "{}",
        launch["findings"]
    );
    let output = &launch["outputs"][0];
    assert_eq!((&output["name"], &output["dtype"], &output["shape"]), (&json!("y_ptr"), &json!("f16"), &json!([300])));
    assert_eq!(output["first"], json!(["0", "1", "2", "3", "4", "5", "6", "7"]));
    // Fewer elements than the kernel touches.
    run["values"]["x_ptr"]["elements"] = "200".into();
    let findings = &editing.ask("run", &run)["launch"]["findings"];
    assert!(findings[0]["code"].as_str().unwrap().contains("out-of-bounds"), "{findings}");
}

/// The interpreter gives the same results and finds the same mistakes, and has no counts.
#[test]
fn the_interpreter_runs_in_place_of_the_emulator() {
    let scratch = Scratch::new("edit-interpreter");
    let editing = Editing::start(&scratch, &["k.rt"]);
    let text = source(&scratch);
    let mut run = run_of(&editing, &text, Some("copy_kernel(*fp32:16, *fp16:16, i32, 128) arch=sm_80"));
    run["values"]["n"]["value"] = "300".into();
    run["grid"] = "3".into();
    run["values"]["x_ptr"]["fill"] = "counting".into();
    let emulated = editing.ask("run", &run)["launch"].clone();
    run["executor"] = "interpreter".into();
    let launch = editing.ask("run", &run)["launch"].clone();
    assert_eq!((&emulated["executor"], &launch["executor"]), (&json!("emulator"), &json!("interpreter")));
    assert_eq!((&launch["outputs"], &launch["grid"]), (&emulated["outputs"], &emulated["grid"]));
    assert_eq!((&launch["heat"], &launch["findings"], &launch["fault"]), (&json!([]), &json!([]), &Value::Null));
    run["values"]["x_ptr"]["elements"] = "200".into();
    let answer = editing.ask("run", &run);
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("k.rt:5")), "{answer}");
    run["executor"] = "gpu".into();
    let error = editing.ask("run", &run)["error"].clone();
    assert!(error.as_str().unwrap().contains("`executor` is `emulator` or `interpreter`"), "{error}");
}

#[test]
fn a_launch_file_runs_with_the_text_of_the_editor() {
    let scratch = Scratch::new("edit-launch");
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    let editing = Editing::start(&scratch, &["k.rt", "--launch", "launch.json"]);
    let text =
        source(&scratch).replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr + offsets, mask=mask) + 1.0");
    let page = editing.ask("run", &json!({"text": text, "launch": true}));
    assert_eq!(page["launch"]["outputs"][0]["first"][1], "1.5", "{}", page["error"]);
    assert_eq!(page["launch"]["grid"], json!([3, 1, 1]));
    // The launch beside the file also gives the values of inputs.
    let found = editing.ask("inputs", &json!({"text": text}));
    assert_eq!((&found["grid"], &found["values"][2]["value"]), (&json!("3, 1, 1"), &json!("300")), "{found}");
}

const ENDLESS: &str = "@triton.jit\ndef endless(x_ptr, n):\n    i = 0\n    while i < n:\n        i += tl.load(x_ptr)\n    tl.store(x_ptr, i)\n";

#[test]
fn the_time_of_a_run_is_limited_and_typing_goes_on() {
    let scratch = Scratch::new("edit-limit");
    scratch.write("endless.rt", ENDLESS);
    let editing = Editing::start(&scratch, &["endless.rt", "--time-limit", "2"]);
    let mut run = run_of(&editing, ENDLESS, Some("endless(*i32, i32)"));
    run["values"]["x_ptr"]["fill"] = "zeros".into();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| editing.ask("run", &run));
        std::thread::sleep(Duration::from_millis(300));
        editing.ask("inputs", &json!({"text": ENDLESS}));
        assert!(began.elapsed() < Duration::from_secs(2), "the editor does not wait for runs");
        let error = running.join().unwrap()["error"].clone();
        assert!(error.as_str().unwrap().contains("--time-limit"), "{error}");
    });
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_later_run_ends_the_one_before() {
    let scratch = Scratch::new("edit-later");
    scratch.write("endless.rt", ENDLESS);
    let editing = Editing::start(&scratch, &["endless.rt", "--time-limit", "60"]);
    let mut run = run_of(&editing, ENDLESS, Some("endless(*i32, i32)"));
    run["values"]["x_ptr"]["fill"] = "zeros".into();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| editing.ask("run", &run));
        std::thread::sleep(Duration::from_millis(500));
        let mut other = run.clone();
        other["values"]["x_ptr"]["fill"] = "ones".into();
        assert!(editing.ask("run", &other)["error"].is_null());
        assert!(running.join().unwrap()["error"].as_str().unwrap().contains("later run"));
    });
    assert!(began.elapsed() < Duration::from_secs(50));
}

#[test]
fn only_saving_writes_and_only_the_file() {
    let scratch = Scratch::new("edit-save");
    let text = source(&scratch);
    let editing = Editing::start(&scratch, &["k.rt"]);
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let changed = format!("{text}# changed\n");
    assert!(editing.ask("run", &run_of(&editing, &changed, None))["error"].is_null());
    assert_eq!((files(), source(&scratch)), (before.clone(), text.clone()), "a run writes nothing");
    editing.ask("save", &json!({"text": changed}));
    assert_eq!((files(), source(&scratch)), (before, changed));
    // Another program has written the file.
    scratch.write("k.rt", "# other\n");
    assert_eq!(editing.post("save", &json!({"text": text}).to_string()).0, 409);
    assert_eq!(source(&scratch), "# other\n");
}

#[test]
fn wrong_command_lines_are_refused() {
    let scratch = Scratch::new("edit-usage");
    scratch.write("k.ptx", "");
    for (args, message) in [
        (&["k.rt", "--edit"][..], "--serve"),
        (&["-", "--serve", "--edit"], "--edit needs a source file"),
        (&["k.ptx", "--serve", "--edit"], "--edit needs a source file"),
        (&["k.rt", "--serve", "--edit", "--signature", "i32"], "--kernel"),
        (&["k.rt", "--serve", "--time-limit", "3"], "--edit"),
    ] {
        let error = scratch.fails(2, &[&["explore"], args].concat());
        assert!(error.contains(message), "{args:?}: {error}");
    }
    let error = scratch.fails(1, &["explore", "none.rt", "--serve", "--edit"]);
    assert!(error.contains("none.rt"), "{error}");
}

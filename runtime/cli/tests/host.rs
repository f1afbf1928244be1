//! `rtc verify`, `bench` and `precision`: finding Python, and replaying recorded results without it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rtc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtc"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")).env_remove("VIRTUAL_ENV");
    command
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("rtc starts");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned())
}

/// A folder of this test with a program called `python3` in it.
fn with_python(name: &str, script: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(folder.join("bin")).expect("a folder can be made");
    for program in ["bin/python3", "bin/python"] {
        let path = folder.join(program);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file can be written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it can be made to run");
    }
    folder
}

#[test]
fn recorded_results_are_replayed() {
    for device in ["emulator", "interpreter"] {
        let (code, out, err) = run(&mut rtc(&["verify", "--golden", "recorded", "--device", device]));
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("check      o: 1000 elements"), "{out}");
        assert!(out.contains("golden     1 of 1 launches have expected results; all are right"), "{out}");
    }
}

#[test]
fn replays_are_told_as_json() {
    for words in [
        &["verify", "--golden", "recorded", "--json"][..],
        &["--message-format=json", "verify", "--golden", "recorded"],
    ] {
        let (code, out, err) = run(rtc(words).args(["--device", "emulator"]));
        assert_eq!(code, Some(0), "{err}");
        let found: serde_json::Value = serde_json::from_str(&out).expect("one object");
        assert_eq!((&found["correct"], &found["launches"]), (&true.into(), &1.into()), "{out}");
        let launch = &found["replayed"][0];
        assert_eq!(
            (&launch["launch"], &launch["correct"]),
            (&"recorded/launch_0/LAUNCH.json".into(), &true.into()),
            "{out}"
        );
        assert_eq!(launch["check"][0]["elements"], 1000, "{out}");
    }
    let (code, out, _) = run(&mut rtc(&["verify", "--golden", "nowhere", "--json"]));
    let found: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((code, &found["error"]["code"]), (Some(1), &"golden".into()), "{out}");
}

#[test]
fn a_wrong_result_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong_golden/launch_0");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/launch_0");
    for name in ["LAUNCH.json", "expected.safetensors", "inputs.safetensors", "rtc_m0.py"] {
        std::fs::copy(recorded.join(name), folder.join(name)).expect("a file can be copied");
    }
    let source = std::fs::read_to_string(recorded.join("rtc_m0.py")).expect("it can be read");
    std::fs::write(folder.join("rtc_m0.py"), source.replace("0.5 * v", "0.75 * v")).expect("it can be written");
    let place = folder.parent().expect("it has one").display().to_string();
    let (code, _, err) = run(&mut rtc(&["verify", "--golden", &place, "--device", "emulator"]));
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("error[wrong-result]") && err.contains("`o` in"), "{err}");
    let (code, out, err) = run(&mut rtc(&["verify", "--golden", &place, "--device", "emulator", "--json"]));
    assert_eq!(code, Some(1), "{err}");
    let found: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((&found["correct"], &found["replayed"][0]["correct"]), (&false.into(), &false.into()), "{out}");
    assert!(found["replayed"][0]["check"][0]["wrong"].as_u64() > Some(0), "{out}");
}

#[test]
fn a_folder_without_recordings() {
    let (code, _, err) = run(&mut rtc(&["verify", "--golden", "snapshots"]));
    assert_eq!(code, Some(1));
    assert!(err.contains("no folder in it has a LAUNCH.json"), "{err}");
    let (code, _, err) = run(&mut rtc(&["verify", "--golden", "nowhere"]));
    assert!(code == Some(1) && err.contains("error[golden]"), "{err}");
}

#[test]
fn without_python() {
    for command in ["verify", "bench", "precision"] {
        let (code, _, err) = run(rtc(&[command, "x.py"]).env("PATH", "/nowhere"));
        assert_eq!(code, Some(1));
        assert!(err.contains("error[no-python]") && err.contains("--python"), "{err}");
        let (code, _, err) = run(&mut rtc(&[command, "--python", "/nowhere/python", "x.py"]));
        assert_eq!(code, Some(1));
        assert!(err.contains("/nowhere/python cannot be started"), "{err}");
        assert_eq!(run(&mut rtc(&[command])).0, Some(2));
    }
}

#[test]
fn a_python_without_the_package() {
    let folder = with_python("bare", "echo \"ModuleNotFoundError: No module named 'rtc'\" >&2; exit 1");
    let (code, _, err) = run(rtc(&["bench", "x.py"]).env("PATH", folder.join("bin")));
    assert_eq!(code, Some(1));
    assert!(err.contains("error[no-package]") && err.contains("pip install rtc-triton"), "{err}");
}

#[test]
fn words_and_status_are_handed_on() {
    let folder = with_python("echoing", "[ \"$1\" = -c ] && exit 0\necho \"$@\"; exit 7");
    let (code, out, err) = run(rtc(&["precision", "x.py", "--dtype", "float16"]).env("PATH", folder.join("bin")));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(7), "-m rtc precision x.py --dtype float16\n", ""));
    let python = folder.join("bin/python");
    // After the file, too, where the package's own options are.
    for named in [vec!["--python", python.to_str().unwrap()], vec![&*format!("--python={}", python.display())]] {
        let (code, out, _) = run(rtc(&["bench", "x.py", "--rtol", "1"]).args(&named).arg("--json"));
        assert_eq!((code, out.as_str()), (Some(7), "-m rtc bench x.py --rtol 1 --json\n"));
    }
    let (code, _, err) = run(&mut rtc(&["bench", "x.py", "--python"]));
    assert!(code == Some(2) && err.contains("a value is required for `--python <PYTHON>`"), "{err}");
    // The active environment comes before the PATH.
    let (code, out, _) =
        run(rtc(&["verify", "x.py", "--rtol", "1e-3"]).env("VIRTUAL_ENV", &folder).env("PATH", "/bin:/usr/bin"));
    assert_eq!((code, out.as_str()), (Some(7), "-m rtc verify x.py --rtol 1e-3\n"));
}

#[test]
fn advice_is_explained() {
    for (topic, part) in
        [("routing", "cuBLAS"), ("tf32", "input_precision"), ("symptoms", "a mask is missing"), ("grid", "the comma")]
    {
        let (code, out, err) = run(&mut rtc(&["explain", topic]));
        assert!(code == Some(0) && out.starts_with(topic) && out.contains(part), "{topic}: {out}{err}");
    }
}

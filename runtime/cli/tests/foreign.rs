//! `rtc run FILE.ptx`: PTX of other compilers runs on the emulator with right results, and the sanitizer finds nothing. The
//! cases and where they come from: `tests/foreign/make.py`.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/foreign")
}

fn rtc(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtc")).args(args).current_dir(folder()).output().unwrap()
}

#[test]
fn ptx_of_triton_and_nvcc_gives_the_right_results_and_no_findings() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(".launch.json")?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    let mut wrong = Vec::new();
    for name in names {
        let [ptx, launch, expect] = ["ptx", "launch.json", "expect.safetensors"].map(|end| format!("{name}.{end}"));
        let run = |checks: &str| {
            let check = ["--check", &expect, "--tolerance", "1e-6", "--sanitize", checks];
            rtc(&[&["run", &ptx, "--launch", &launch], &check[..]].concat())
        };
        let mut output = run("all");
        // Triton's reductions between warps shuffle a register that the lanes without a warp have not loaded.
        if name == "triton_rows" {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(text.matches("error[uninitialized-register]").count(), 2, "{text}");
            assert!(text.contains("error[sanitizer]: 2 findings"), "{text}");
            output = run("memory,race,sync");
        }
        if !output.status.success() {
            wrong.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_launch_lacks_is_said() {
    let scratch = Scratch::new("foreign");
    for file in ["triton_add.ptx", "triton_add.safetensors"] {
        let text = std::fs::read(folder().join(file)).unwrap();
        scratch.write(file, text);
    }
    let launch = std::fs::read_to_string(folder().join("triton_add.launch.json")).unwrap();
    for (from, to, said) in [
        ("\"profile_scratch\": 0", "\"profile_scratch\": 1.5", "`args.profile_scratch`: the parameter is `.u64`"),
        (",\n    \"profile_scratch\": 0", "", "takes 6 arguments in its order, not 5"),
        ("\"spec\": {", "\"spec\": {\n    \"kernel\": \"other\",", "there is no entry `other`, but `add`"),
        ("\"spec\": {", "\"spec\": {\n    \"block\": 64,", "`add` asks for blocks of 128 threads"),
    ] {
        assert!(launch.contains(from), "{launch}");
        scratch.write("l.json", launch.replace(from, to));
        let text = scratch.fails(1, &["run", "triton_add.ptx", "--launch", "l.json", "--device", "emulator"]);
        assert!(text.contains(said), "{text}");
    }
    scratch.write("l.json", &launch);
    let text = scratch.fails(2, &["run", "triton_add.ptx", "--launch", "l.json", "--device", "interpreter"]);
    assert!(text.contains("the interpreter runs tile IR"), "{text}");
}

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
    assert!(names.len() >= 14, "{names:?}");
    let mut wrong = Vec::new();
    for name in names {
        let [ptx, launch, expect] = ["ptx", "launch.json", "expect.safetensors"].map(|end| format!("{name}.{end}"));
        let run = |checks: &str| {
            let check = ["--check", &expect, "--tolerance", "1e-6", "--sanitize", checks];
            rtc(&[&["run", &ptx, "--launch", &launch], &check[..]].concat())
        };
        let mut output = run("all");
        // Triton's reductions between warps shuffle a register that the lanes without a warp have not loaded; and where it
        // copies by maps of the host, no fence shows the barriers to the copies after they were initialised.
        let known = match name.as_str() {
            "triton_rows" => Some(("uninitialized-register", 2, "memory,race,sync")),
            "triton_matmul_host_tma" => Some(("mbarrier-init-not-visible", 4, "memory,init,race")),
            "triton_reshaped_max" => continue,
            _ => None,
        };
        if let Some((code, count, others)) = known {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(text.matches(&format!("error[{code}]")).count(), count, "{text}");
            assert!(text.contains(&format!("error[sanitizer]: {count} finding")), "{text}");
            output = run(others);
        }
        if !output.status.success() {
            wrong.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Triton 3.6 lets the four lowest lanes' bits be those of a row of 64 of this reshaped tile; they are bits 0, 1, 2 and 4.
#[test]
fn a_reduction_that_another_compiler_gets_wrong_is_found_in_its_ptx() {
    let name = "triton_reshaped_max";
    let [ptx, launch, expect] = ["ptx", "launch.json", "expect.safetensors"].map(|end| format!("{name}.{end}"));
    let sanitized: &[&str] = &["--sanitize", "all"];
    for (more, found) in [
        (sanitized, ["[same-place]: two lanes write different values", "[uninitialized-shared]"].as_slice()),
        (&["--check", &expect], &["[wrong-result]"]),
    ] {
        let output = rtc(&[&["run", &ptx, "--launch", &launch], more].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(found.iter().all(|found| text.contains(found)), "{text}");
    }
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
    for file in ["nvcc_transpose.ptx", "nvcc_transpose.safetensors"] {
        scratch.write(file, std::fs::read(folder().join(file)).unwrap());
    }
    let shaped = std::fs::read_to_string(folder().join("nvcc_transpose.launch.json")).unwrap();
    for (from, to, said) in [
        ("[\n      16,\n      8\n    ]", "[]", "`spec.block`: expected 1 to 3 sizes"),
        ("[\n      16,\n      8\n    ]", "[64, 32]", "2048 is not in 1..=1024"),
        (
            "{\n      \"tensor\": \"x\"\n    }",
            "{\"descriptor\": {\"tensor\": \"x\", \"shape\": [24, 40], \"strides\": [40, 1],
          \"block_shape\": [8, 8]}}",
            "`args.x`: the parameter is `.u64`",
        ),
    ] {
        assert!(shaped.contains(from), "{shaped}");
        scratch.write("l.json", shaped.replace(from, to));
        let text = scratch.fails(1, &["run", "nvcc_transpose.ptx", "--launch", "l.json", "--device", "emulator"]);
        assert!(text.contains(said), "{text}");
    }
    for file in ["triton_matmul_host_tma.ptx", "triton_matmul_host_tma.safetensors"] {
        scratch.write(file, std::fs::read(folder().join(file)).unwrap());
    }
    let mapped = std::fs::read_to_string(folder().join("triton_matmul_host_tma.launch.json")).unwrap();
    for (from, to, said) in [
        ("\"swizzle\": 64", "\"swizzle\": 63", "expected 0, 32, 64 or 128"),
        ("\"swizzle\": 64", "\"swizzle\": 32", "box"),
        ("\"tensor\": \"a\"", "\"tensor\": \"z\"", "there is no tensor of that name"),
    ] {
        assert!(mapped.contains(from), "{mapped}");
        scratch.write("l.json", mapped.replace(from, to));
        let text =
            scratch.fails(1, &["run", "triton_matmul_host_tma.ptx", "--launch", "l.json", "--device", "emulator"]);
        assert!(text.contains(said), "{text}");
    }
    scratch.write("l.json", &launch);
    let text = scratch.fails(2, &["run", "triton_add.ptx", "--launch", "l.json", "--device", "interpreter"]);
    assert!(text.contains("the interpreter runs tile IR"), "{text}");
}

//! Commands that compile and run kernels: files, stages, results.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors};

#[test]
fn build_writes_ptx_and_metadata() {
    let scratch = Scratch::new("build");
    let output = scratch.rtc(&["build", "k.rt", "--signature", SIGNATURE, "-o", "out/deep"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "out/deep/copy_kernel.ptx\n");
    let ptx = std::fs::read_to_string(scratch.0.join("out/deep/copy_kernel.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80") && ptx.contains(".entry copy_kernel("), "{ptx}");
    let metadata = std::fs::read_to_string(scratch.0.join("out/deep/copy_kernel.json")).unwrap();
    let metadata = rtc_runtime::Metadata::from_json(&metadata).unwrap();
    let params: Vec<_> =
        metadata.params.iter().map(|p| format!("{}: {} at {}, {}", p.name, p.ty, p.offset, p.divisible_by)).collect();
    assert_eq!(params, ["x_ptr: *fp32 at 0, 16", "y_ptr: *fp32 at 8, 16", "n: i32 at 16, 1"]);
    assert_eq!(metadata.constexprs["BLOCK"], 128);
    assert_eq!((metadata.num_warps, metadata.threads_per_block), (4, 128));
    let names: Vec<_> = std::fs::read_dir(scratch.0.join("out/deep")).unwrap().collect();
    assert_eq!(names.len(), 2, "no temporary files stay: {names:?}");
}

#[test]
#[cfg(unix)]
fn output_goes_through_a_link_to_what_it_names() {
    let scratch = Scratch::new("link");
    let (file, link) = (scratch.0.join("tile.txt"), scratch.0.join("link.txt"));
    std::fs::write(&file, "before").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let arguments = ["emit", "k.rt", "--stage", "tile", "--signature", SIGNATURE, "-o", "link.txt"];
    assert!(scratch.rtc(&arguments).status.success());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    assert!(std::fs::read_to_string(&file).unwrap().contains("kernel @copy_kernel"));
}

#[test]
fn modules_in_rust_and_c() {
    let scratch = Scratch::new("modules");
    let build = |more: &[&str]| {
        let given = ["build", "k.rt", "--signature", SIGNATURE, "--arch", "sm_80,sm_90a", "-o", "out"];
        let output = scratch.rtc(&[&given, more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let read = |name: &str| std::fs::read_to_string(scratch.0.join("out").join(name)).unwrap();
    assert_eq!(build(&["--rust"]), "out/k.rs\n");
    let module = read("k.rs");
    for arch in ["sm_80", "sm_90a"] {
        assert!(module.contains(&format!("include_str!(\"k.copy_kernel.{arch}.ptx\")")), "{module}");
        assert!(read(&format!("k.copy_kernel.{arch}.ptx")).contains(&format!(".target {arch}")));
    }
    assert!(module.contains("pub fn launch<'a") && !module.contains("launch_unchecked"), "{module}");
    assert_eq!(build(&["--emit", "c"]), "out/k.h\nout/k.c\n");
    assert!(read("k.h").contains("CUresult copy_kernel_launch(const copy_kernel_t *kernel, CUstream stream,"));
    assert!(read("k.c").contains("static const char copy_kernel_0_sm_90a[] ="));
    scratch.write("t.tir", "kernel @k() warps 1 phase tile {\n  ret\n}\n");
    let text = scratch.fails(1, &["build", "t.tir", "--rust"]);
    assert!(text.contains("a file of tile IR has no module"), "{text}");
    scratch.fails(2, &["build", "k.rt", "--signature", SIGNATURE, "--rust", "--emit", "c"]);
}

#[test]
fn several_targets_and_instances_have_names_of_their_own() {
    let scratch = Scratch::new("names");
    let other = SIGNATURE.replace("128", "256");
    let output = scratch.rtc(&[
        "build",
        "k.rt",
        "--signature",
        SIGNATURE,
        "--signature",
        &other,
        "--arch",
        "sm_80,sm_90a",
        "--num-warps",
        "8",
        "-v",
    ]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let expected = ["1.sm_80", "1.sm_90a", "2.sm_80", "2.sm_90a"].map(|n| format!("./copy_kernel.{n}.ptx"));
    assert_eq!(stdout.lines().collect::<Vec<_>>(), expected);
    assert_eq!(stderr.lines().filter(|line| line.contains("sema") && line.contains("codegen")).count(), 4, "{stderr}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let scratch = Scratch::new("same");
    for directory in ["a", "b"] {
        let args = ["build", "k.rt", "--signature", SIGNATURE, "-o", directory, "--no-cache"];
        assert!(scratch.rtc(&args).status.success());
    }
    for file in ["copy_kernel.ptx", "copy_kernel.json"] {
        let read = |directory: &str| std::fs::read(scratch.0.join(directory).join(file)).unwrap();
        assert_eq!(read("a"), read("b"), "{file}");
    }
}

#[test]
fn every_stage_is_printed() {
    let scratch = Scratch::new("emit");
    for (stage, part) in [
        ("ast", "copy_kernel"),
        ("tile", "load"),
        ("accesses", "// no box [not-matrix]"),
        ("tile-opt", "load"),
        ("laid", "phase laid"),
        ("scheduled", "phase scheduled"),
        ("mlir", "llvm.func"),
        ("llvm-dialect", "llvm.func"),
        ("llvm", "define"),
        ("ptx", ".entry"),
    ] {
        let output = scratch.rtc(&["emit", "k.rt", "--signature", SIGNATURE, "--stage", stage]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{stage}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(part), "{stage}:\n{text}");
    }
    let output = scratch.rtc(&["emit", "k.rt", "--signature", SIGNATURE, "--print-after-all"]);
    assert!(String::from_utf8_lossy(&output.stdout).matches("// after ").count() > 5);
}

#[test]
fn run_copies_on_the_emulator_and_the_interpreter() {
    for device in ["emulator", "interpreter"] {
        let scratch = Scratch::new(&format!("run-{device}"));
        let data = tensors(300);
        scratch.write("l.json", LAUNCH).write("in.safetensors", &data);
        let mut golden = data.clone();
        let at = data.len() - 2400;
        golden.copy_within(at..at + 1200, at + 1200);
        scratch.write("golden.safetensors", &golden);
        let base = ["run", "k.rt", "--launch", "l.json", "--device", device, "-o", "out.safetensors"];
        let output = scratch.rtc(&[&base[..], &["--check", "golden.safetensors", "--tolerance", "0"]].concat());
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{stdout}{stderr}");
        for part in ["copy_kernel", device, "grid 3 x 1 x 1", "out.safetensors", "y: 300 elements, all equal"] {
            assert!(stdout.contains(part), "{part}:\n{stdout}");
        }
        let read = |bytes: &[u8]| rtc_testing::Tensors::from_bytes(bytes).unwrap();
        assert_eq!(read(&std::fs::read(scratch.0.join("out.safetensors")).unwrap()), read(&golden));
        // A wrong reference is found.
        golden[at + 1200] ^= 1;
        scratch.write("golden.safetensors", &golden);
        let text = scratch.fails(1, &[&base[..], &["--check", "golden.safetensors", "--tolerance", "0"]].concat());
        assert!(text.contains("error[wrong-result]: the results differ from the reference: `y` in 1 of 300"), "{text}");
    }
}

#[test]
fn launches_that_do_not_fit_the_kernel() {
    let scratch = Scratch::new("misfit");
    let mut all = String::new();
    for (from, to) in [
        (r#""n": 300"#, r#""n": 3000000000"#),
        (r#""n": 300"#, r#""n": 1.5"#),
        (r#""n": 300"#, r#""n": {"tensor": "x"}"#),
        (r#""n": 300"#, r#""m": 300"#),
        (r#", "n": 300"#, ""),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "z"}"#),
        (r#"{"tensor": "x"}"#, "5"),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 4}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 1216}"#),
        (r#"{"tensor": "x"}"#, r#"{"float": "nan"}"#),
        (
            r#""type": "*fp32", "divisible_by": 16},
 {"name": "y_ptr""#,
            r#""type": "*fp16", "divisible_by": 16},
 {"name": "y_ptr""#,
        ),
    ] {
        assert!(LAUNCH.contains(from), "{from}");
        scratch.write("l.json", LAUNCH.replacen(from, to, 1)).write("in.safetensors", tensors(300));
        let text = scratch.fails(1, &["run", "k.rt", "--launch", "l.json", "--device", "interpreter"]);
        all += &format!("{to}\n    {}\n", text.lines().next().unwrap_or_default());
    }
    insta::assert_snapshot!(all);
}

//! Runs the tests of the Python package with the module that was just built, in a Python that has numpy.
//!
//! `$RTC_TEST_PYTHON` names another Python. Without numpy the tests are skipped.

use rtc_test_needs::{Need, missing};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Python with numpy: the one that was asked for, that of `scripts/setup`, or the one on the PATH.
fn python() -> Option<PathBuf> {
    python_with("numpy")
}

/// A Python that has packages, as an `import` names them.
fn python_with(packages: &str) -> Option<PathBuf> {
    let asked = std::env::var_os("RTC_TEST_PYTHON").map(PathBuf::from);
    let own = root().join("../../.tools/python/bin/python3");
    let has_all = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", &format!("import {packages}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    asked.into_iter().chain([own, PathBuf::from("python3")]).find(has_all)
}

/// The extension module that cargo built beside this test.
fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let folder = test.parent().expect("a test lies in a folder");
    let found = [folder.join("librtc_python.so"), folder.join("../librtc_python.so")];
    found.into_iter().find(|path| path.exists()).expect("cargo built the extension module")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("the package is there") {
        let entry = entry.expect("the package can be read").path();
        let target = to.join(entry.file_name().expect("files have names"));
        match entry.extension().and_then(|ending| ending.to_str()) {
            _ if entry.is_dir() && !entry.ends_with("__pycache__") => copy(&entry, &target),
            Some("py" | "pyi") => drop(std::fs::copy(&entry, &target).expect("a file can be copied")),
            _ => {}
        }
    }
}

/// The package with its module, as an installation has it.
fn staged(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    copy(&root().join("python/rtc"), &folder.join("rtc"));
    let module = std::fs::canonicalize(module()).expect("the module is there");
    std::os::unix::fs::symlink(module, folder.join("rtc/_rtc.abi3.so")).expect("a link can be made");
    folder
}

/// Runs the unittest module `cases/NAME.py`.
fn run(name: &str) {
    run_with(name, &[]);
}

fn case(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-B", "-m", "unittest", "-v", name])
        .current_dir(root().join("tests/cases"))
        .env("RTC_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
        .env_remove("RTC_DEVICE");
    command
}

fn assert_ran(command: &mut Command) {
    let output = command.output().expect("Python starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    assert!(text.contains("Ran ") && !text.contains("Ran 0 tests"), "no test ran: {text}");
}

fn run_with(name: &str, environment: &[(&str, &Path)]) {
    let Some(python) = python() else {
        return missing(Need::Python);
    };
    let cases = root().join("tests/cases");
    let path = std::env::join_paths([&staged(name), &cases]).expect("paths without separators");
    assert_ran(case(&python, name).env("PYTHONPATH", path).envs(environment.iter().copied()));
}

#[test]
fn language() {
    run("language");
}

#[test]
fn launches() {
    run("launches");
}

/// Arrays of other libraries.
#[test]
fn protocols() {
    run("protocols");
}

/// How long memory of other libraries lives, and what is written to it.
#[test]
fn foreign() {
    run("foreign");
}

/// Memory of other libraries on two GPUs, without PyTorch.
#[test]
fn foreign_gpus() {
    with_stubs("foreign_gpus");
}

/// Kernels that never end.
#[test]
fn endless() {
    run("endless");
}

/// Floats that numpy lacks.
#[test]
fn narrow() {
    run("narrow");
}

/// With a driver that does nothing and a PyTorch that has nothing but what launches ask it for.
#[test]
fn recent() {
    with_stubs("recent");
}

#[test]
fn tuned() {
    with_stubs("tuned");
}

#[test]
fn options() {
    with_stubs("options");
}

fn with_stubs(name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stubs_of_{name}"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    for (source, library) in
        [("driver.c", "libcuda.so.1"), ("torch.c", "libtorch_cpu.so"), ("torch.c", "libtorch_cuda.so")]
    {
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-w", &format!("-Wl,-soname,{library}"), "-o"])
            .args([folder.join(library), root().join("tests/stub").join(source)])
            .status();
        assert!(made.expect("cc starts").success(), "{source} cannot be compiled");
    }
    run_with(name, &[("LD_LIBRARY_PATH", &folder), ("RTC_STUBS", &folder), ("STUB_DEVICES", Path::new("2"))]);
}

#[test]
fn interface() {
    run("interface");
}

#[test]
fn ahead() {
    run("ahead");
}

#[test]
fn advice() {
    run("advice");
}

#[test]
fn sanitizer() {
    run("sanitizer");
}

/// Timelines of the launches of a program.
#[test]
fn instrumented() {
    run("instrumented");
}

#[test]
fn autotuning() {
    run("autotuning");
}

#[test]
fn as_triton() {
    run("as_triton");
}

/// The programs in the pages on Python.
#[test]
fn documentation() {
    run("documentation");
}

/// Programs that `make bench-gpu` runs as they are.
#[test]
fn measured() {
    run("measured");
}

/// What `make bench-gpu` times, and its page.
#[test]
fn bench_suite() {
    run("bench_suite");
}

/// The assembler that a launch on a GPU needs, and its stream.
#[test]
fn assembled() {
    with_stubs("assembled");
}

/// What commands say that reach their time limit.
#[test]
fn time_limits() {
    run("time_limits");
}

#[test]
fn commands() {
    run("commands");
}

/// A wheel in a fresh environment with numpy, where nothing else is installed and nothing is found by `PYTHONPATH`.
#[test]
fn installed() {
    let Some(python) = python() else {
        return missing(Need::Python);
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wheel");
    let made = Command::new(python)
        .arg(root().join("tests/wheel.py"))
        .args([&staged("of_the_wheel"), &folder, Path::new(env!("CARGO_PKG_VERSION"))])
        .output()
        .expect("Python starts");
    let (out, text) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(made.status.success(), "{text}");
    assert_ran(case(Path::new(out.trim()), "installed").env_remove("PYTHONPATH"));
}

/// Tuning on a cluster of two nodes, one of which dies.
#[test]
fn cluster() {
    let Some(python) = python_with("numpy, ray") else {
        return missing(Need::Ray);
    };
    let cases = root().join("tests/cases");
    let path = std::env::join_paths([&staged("cluster"), &cases]).expect("paths without separators");
    assert_ran(case(&python, "cluster").env("PYTHONPATH", path));
}

/// Results that launches wrote.
#[test]
fn written() {
    run("written");
}

/// Kernels that are wrong and look right.
#[test]
fn cheating() {
    run("cheating");
}

/// `rtc mcp`.
#[test]
fn agents() {
    run("agents");
}

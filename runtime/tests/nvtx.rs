//! The feature `nvtx`: launches are ranges, by a library of NVTX that writes down its calls.
#![cfg(all(feature = "nvtx", feature = "emulator", unix))]
#![allow(clippy::unwrap_used, unsafe_code)]

use rtc_runtime::{Device, args};
use std::process::Command;

/// Names of ranges and their depth, on standard output.
const LIBRARY: &str = r#"
#include <stdio.h>
static _Thread_local int depth;
int nvtxRangePushA(const char *name) { printf("nvtx: push %s\n", name), fflush(stdout); return depth++; }
int nvtxRangePop(void) { printf("nvtx: pop\n"), fflush(stdout); return --depth; }
"#;

/// Not a test by itself: launches a kernel twice where the test below asks for it.
#[test]
fn two_launches() {
    if std::env::var_os("RTC_CASE").is_none() {
        return;
    }
    let device = Device::emulator();
    // SAFETY: the files were made together.
    let scale =
        unsafe { device.load_json(include_str!("kernels/scale.ptx"), include_str!("kernels/scale.json")).unwrap() };
    let (x, mut y) = (device.zeros::<f32>(256).unwrap(), device.zeros::<f32>(256).unwrap());
    for _ in 0..2 {
        scale.launch(device.default_stream(), 8, &args![&x, &mut y, 2.0f32, 256]).unwrap();
    }
    // Refused before anything is launched.
    assert!(scale.launch(device.default_stream(), 8, &args![&x, &mut y, 2.0f32, 300]).is_err());
}

fn ranges(folder: &std::path::Path) -> Vec<String> {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "two_launches", "--nocapture", "--test-threads=1"]).env("RTC_CASE", "nvtx");
    let output = process.env("LD_LIBRARY_PATH", folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| Some(line.split_once("nvtx: ")?.1.to_owned())).collect()
}

#[test]
fn a_launch_is_a_range() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("nvtx.c"), LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder.path()).args(["-shared", "-fPIC", "-o", "libnvtx3interop.so.1", "nvtx.c"]);
    assert!(compiler.status().expect("a C compiler").success());
    assert_eq!(ranges(folder.path()), ["push scale", "pop", "push scale", "pop"]);
}

#[test]
fn without_the_library_launches_run_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    // A file that is no library.
    for name in ["libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1", "libnvToolsExt.so"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert!(ranges(folder.path()).is_empty());
}

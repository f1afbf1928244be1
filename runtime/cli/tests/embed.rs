//! A build script without the compiler: rtc-build calls the executable.
#![allow(clippy::unwrap_used)]

mod scratch;

use rtc_build::{Config, Instance};
use scratch::{SIGNATURE, Scratch};
use std::path::Path;

/// All files of a directory, by name.
fn files(directory: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap())
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    files
}

#[test]
fn the_executable_makes_what_the_linked_compiler_makes() {
    let scratch = Scratch::new("embed");
    let at = |name: &str| scratch.0.join(name);
    let config = Config::new()
        .arch(["sm_80", "sm_90a"])
        .kernel("copy_kernel", SIGNATURE)
        .instance(Instance::new("copy_kernel", SIGNATURE).named("copy_wide").num_warps(8))
        .deny("warnings");
    config.clone().out_dir(at("linked")).compile(&[at("k.rt")]).unwrap();
    let executable = config.executable(env!("CARGO_BIN_EXE_rtc"));
    executable.clone().out_dir(at("called")).compile(&[at("k.rt")]).unwrap();
    let linked = files(&at("linked"));
    assert_eq!(linked.len(), 9, "a module, and PTX and metadata of two kernels for two targets");
    assert_eq!(files(&at("called")), linked);

    // Mistakes come back with their pictures.
    scratch.write("bad.rt", "@triton.jit\ndef copy_kernel(x_ptr):\n    tl.store(x_ptr, unknown)\n");
    let bad = executable.out_dir(at("bad"));
    let text = bad.clone().compile(&[at("bad.rt")]).unwrap_err().to_string();
    assert!(text.contains("copy_kernel"), "{text}");
    let mut other = Config::new().kernel("copy_kernel", "*fp32").out_dir(at("bad"));
    let said = other.compile(&[at("bad.rt")]).unwrap_err().to_string();
    assert!(said.starts_with("error[undefined-name]") && said.contains("bad.rt:3"), "{said}");
    other = other.executable(env!("CARGO_BIN_EXE_rtc"));
    assert_eq!(other.compile(&[at("bad.rt")]).unwrap_err().to_string(), said);
    assert!(bad.compile(&[at("missing.rt")]).unwrap_err().to_string().starts_with("cannot read"));
}

#[test]
fn a_request_that_cannot_be_read_is_the_callers_mistake() {
    let scratch = Scratch::new("embed-request");
    let text = scratch.fails(1, &["embed"]);
    assert!(text.starts_with("this is no request of a build script"), "{text}");
}

#[test]
fn products_go_into_c_sources_without_warp_specialization() {
    let scratch = Scratch::new("c-product");
    scratch.write("mm.rt", PRODUCT);
    let signature = "*fp16:16, *fp16:16, *fp32:16, i32:16";
    let arguments = ["build", "mm.rt", "--signature", signature, "--arch", "sm_90a", "-o", "out"];
    assert!(scratch.rtc(&arguments).status.success());
    let metadata = std::fs::read_to_string(scratch.0.join("out/mm.json")).unwrap();
    assert!(metadata.contains("tensor_map"), "the PTX by itself takes tensor maps");
    let output = scratch.rtc(&[&arguments[..], &["--emit", "c"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const PRODUCT: &str = "\
@triton.jit
def mm(a, b, c, K):
    m = tl.arange(0, 64)
    k = tl.arange(0, 32)
    acc = tl.zeros((64, 64), tl.float32)
    for i in range(0, K, 32):
        x = tl.load(a + m[:, None] * K + (i + k)[None, :])
        y = tl.load(b + (i + k)[:, None] * 64 + m[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * 64 + m[None, :], acc)
";

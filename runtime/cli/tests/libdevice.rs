//! `--libdevice`: NVIDIA's library of functions in place of the standard library.
//!
//! The library itself is not part of this project: `RTC_LIBDEVICE` names it, or it lies where the CUDA toolkit or
//! `scripts/setup` puts it. Without it the tests that need it are skipped.

#![allow(clippy::unwrap_used)]

mod scratch;

use std::path::{Path, PathBuf};

use rtc_test_needs::{Need, missing};
use scratch::{LAUNCH, SIGNATURE, Scratch, tensors};

const SOURCE: &str = "\
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    y = libdevice.sin(x) + libdevice.erf(x) + libdevice.pow(x, libdevice.tanh(x))
    y = tl.where(libdevice.isnan(x), 0.0, y) + libdevice.fma_rd(x, x, 1.0) + libdevice.j0(x)
    tl.store(y_ptr + i, y, mask=i < n)
";

/// NVIDIA's library, if it is there.
fn library() -> Option<PathBuf> {
    let named = std::env::var_os("RTC_LIBDEVICE").map(PathBuf::from);
    let toolkit = std::env::var_os("CUDA_HOME").map_or(PathBuf::from("/usr/local/cuda"), PathBuf::from);
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/libdevice.10.bc");
    let places = named.map_or(vec![toolkit.join("nvvm/libdevice/libdevice.10.bc"), installed], |named| vec![named]);
    let found = places.into_iter().find(|path| path.is_file());
    if found.is_none() {
        missing(Need::Libdevice);
    }
    found
}

#[test]
fn a_file_that_is_no_bitcode_is_refused() {
    let scratch = Scratch::new("libdevice-bad");
    scratch.write("s.rt", SOURCE).write("text.bc", "text").write("half.bc", b"BC\xC0\xDE and then nothing");
    let build = |file: &str| scratch.fails(1, &["build", "s.rt", "--signature", SIGNATURE, "--libdevice", file]);
    assert_eq!(build("text.bc"), "error[libdevice]: the file is not LLVM bitcode\n --> text.bc");
    assert!(build("half.bc").starts_with("error[libdevice]: the library is not bitcode that LLVM reads"));
    assert!(build("missing.bc").starts_with("error[io]: cannot read the file"));
    assert!(!scratch.0.join("kernel.ptx").exists());
}

#[test]
fn calls_stand_in_the_tile_ir() {
    let Some(library) = library() else { return };
    let scratch = Scratch::new("libdevice-tile");
    scratch.write("s.rt", SOURCE);
    let library = library.to_string_lossy().into_owned();
    let emit = |stage: &str| {
        let output =
            scratch.rtc(&["emit", "s.rt", "--signature", SIGNATURE, "--libdevice", &library, "--stage", stage]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tile = emit("tile");
    for symbol in ["__nv_sinf", "__nv_powf", "__nv_isnanf", "__nv_fmaf_rd", "__nv_j0f"] {
        assert!(tile.contains(&format!("symbol = \"{symbol}\"")), "{tile}");
    }
    let ptx = emit("ptx");
    assert!(!ptx.contains("__nv_") && !ptx.contains("reflect") && !ptx.contains(".extern .func"), "{ptx}");
}

#[test]
fn results_are_those_of_the_standard_library_but_for_the_last_bits() {
    let Some(library) = library() else { return };
    let scratch = Scratch::new("libdevice-run");
    scratch.write("s.rt", SOURCE).write("l.json", LAUNCH).write("in.safetensors", tensors(300));
    let library = library.to_string_lossy().into_owned();
    let run = |rest: &[&str]| {
        let output = scratch.rtc(&[&["run", "s.rt", "--launch", "l.json", "--device", "emulator"][..], rest].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["-o", "own.safetensors"]);
    run(&["--libdevice", &library, "--check", "own.safetensors", "--tolerance", "1e-5"]);
}

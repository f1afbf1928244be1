//! Modules of families of kernels: their text, and what cannot be declared.
#![allow(clippy::unwrap_used)]

use rtc_build::{Config, Instance};
use std::path::{Path, PathBuf};

const KERNELS: &str = "\
# Scales a row by rows of a table.
@triton.jit
def scale_kernel(
    x_ptr,  # n elements
    table_ptr, out_ptr, n, by, stride,
    BLOCK: tl.constexpr, MODE: tl.constexpr,
):
    \"\"\"With MODE as a string.\"\"\"
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * stride, mask=mask)
    y = x * by if MODE == \"times\" else x + by
    tl.store(out_ptr + offsets, y, mask=mask)

@triton.jit
def pick_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + index, mask=mask), mask=mask)
";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("scale.rt"), KERNELS).unwrap();
        Scratch(folder)
    }

    fn compile(&self, config: Config) -> Result<String, String> {
        let out = self.0.join("out");
        config.out_dir(&out).compile(&[self.0.join("scale.rt")]).map_err(|e| e.to_string())?;
        Ok(std::fs::read_to_string(out.join("scale.rs")).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scale() -> Instance {
    Instance::new("scale_kernel", "*{T}, *fp32, *{T}, i32, fp32, i32, BLOCK=128")
}

#[test]
fn a_family_and_a_kernel_that_is_not_safe() {
    let scratch = Scratch::new("family");
    let family = scale()
        .types("T", ["fp32", "fp16"])
        .values("MODE", ["\"times\"", "\"plus\""])
        .specialize("x_ptr:16, out_ptr:16, n:16, stride:1")
        .configure("n >= 4096 && stride == 1", "BLOCK=512, num_warps=8, stride:1");
    let text = scratch
        .compile(
            Config::new()
                .arch(["sm_80", "sm_90a"])
                .instance(family)
                .kernel("pick_kernel", "*fp32, *i32, *fp32, i32, 64"),
        )
        .unwrap();
    insta::assert_snapshot!("family", text);
    let files = std::fs::read_dir(scratch.0.join("out")).unwrap().count();
    assert_eq!(files, 1 + 2 * 2 * (4 * 3 + 1), "a module, and PTX and metadata of each variant");
}

#[test]
fn truth_values_and_numbers_are_const_generics() {
    let scratch = Scratch::new("generics");
    let text = scratch
        .compile(
            Config::new()
                .deny_jit()
                .instance(Instance::new("pick_kernel", "*fp32, *i32, *fp32, i32").values("BLOCK", ["64", "128"])),
        )
        .unwrap();
    assert!(text.contains("pub fn pick_kernel<const BLOCK: i64>(device: &::rtc_runtime::Device)"), "{text}");
    assert!(
        text.contains("assert!(matches!(BLOCK, 64 | 128), \"`pick_kernel` is compiled for BLOCK = 64, 128\")"),
        "{text}"
    );
    assert!(text.contains("assert!(!::rtc_runtime::HAS_JIT"), "{text}");
}

#[test]
fn what_cannot_be_declared_says_why() {
    let scratch = Scratch::new("declared");
    let said = |instance: Instance| scratch.compile(Config::new().instance(instance)).unwrap_err();
    let plain = || Instance::new("pick_kernel", "*fp32, *i32, *fp32, i32, BLOCK=64");
    for (instance, expected) in [
        (scale().types("T", ["fp32", "fp33"]).values("MODE", ["1"]), "`fp33` is no element type"),
        (plain().types("T", ["fp32"]), "`{T}` does not stand in the signature"),
        (plain().values("BLOCK", ["128"]), "`BLOCK` has a value in the signature and others in `values`"),
        (plain().values("n", ["i32"]), "`n=i32` is a type, not a value"),
        (plain().values("m", ["1"]), "the kernel has no parameter `m`"),
        (plain().specialize("x_ptr:0"), "`x_ptr:0` has no factor above 0"),
        (plain().specialize("BLOCK=128"), "`BLOCK=128` is a value, which only `configure` gives"),
        (plain().specialize("BLOCK:16"), "promises what only integers and pointers can keep"),
        (plain().specialize("y:16"), "`y:16` names no argument of the signature"),
        (plain().configure("n / 2 > 1", "num_warps=8"), "has more than sums and products"),
        (plain().configure("m > 1", "num_warps=8"), "names `m`, which is no integer argument"),
        (plain().configure("n", "num_warps=8"), "has no comparison"),
        (plain().configure("n > 1", "num_warps=none"), "is no number above 0"),
    ] {
        let text = said(instance);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

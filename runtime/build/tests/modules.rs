//! Modules of families of kernels: their text, and what cannot be declared.
#![allow(clippy::unwrap_used)]

use rtc_build::{Config, Instance};
use rtc_test_needs::{Need, missing};
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

const TUNED: &str = r#"{"version": 1, "entries": [
{"kernel": "scale_kernel", "device": "NVIDIA H200", "arch": "sm_90a",
 "signature": "x_ptr=*fp16:16, table_ptr=*fp32, out_ptr=*fp16:16, n=i32:16, by=fp32, stride=1, MODE=\"times\" {\"num_warps\":4}",
 "key": {"n": 4096, "x_ptr": "fp16"}, "winner": {"values": {"BLOCK": 512}, "options": {"num_warps": 8, "num_stages": 3}}},
{"kernel": "scale_kernel", "device": "NVIDIA H100", "arch": "sm_90a",
 "signature": "x_ptr=*fp16:16, table_ptr=*fp32, out_ptr=*fp16:16, n=i32:16, by=fp32, stride=1, MODE=\"times\" {\"num_warps\":4}",
 "key": {"n": 4096, "x_ptr": "fp16"}, "winner": {"values": {"BLOCK": 64}, "options": {"num_warps": 1}}},
{"kernel": "scale_kernel", "device": "NVIDIA A100", "arch": "sm_80",
 "signature": "x_ptr=*fp32, table_ptr=*fp32, out_ptr=*fp32, n=i32, by=fp32, stride=i32, MODE=\"plus\" {\"num_warps\":4}",
 "key": {"n": 77, "x_ptr": "fp32"}, "winner": {"values": {"BLOCK": 256}, "options": {"num_warps": 2}}}]}"#;

#[test]
fn winners_of_a_tuning_are_taken_by_their_keys() {
    let scratch = Scratch::new("tuned");
    let file = scratch.0.join("tuned.json");
    std::fs::write(&file, TUNED).unwrap();
    let family = Instance::new("scale_kernel", "*{T}, *fp32, *{T}, i32, fp32, i32")
        .types("T", ["fp32", "fp16"])
        .values("MODE", ["\"times\"", "\"plus\""])
        .tuned(&file);
    let text = scratch.compile(Config::new().arch(["sm_80", "sm_90a"]).instance(family.clone())).unwrap();
    // Of fp16 and `times` one for sm_90a, of fp32 and `plus` one for sm_80; every case has the general form.
    assert!(text.contains("&[Some(\"sm_90a\"), None],") && text.contains("&[Some(\"sm_80\"), None],"), "{text}");
    let guard = "_ if self.tuned[0] && i128::from(x_ptr.address()) % 16 == 0 && i128::from(out_ptr.address()) % 16 == 0 \
                 && i128::from(n) % 16 == 0 && stride == 1 && i128::from(n) == 4096 => 0,";
    assert!(text.contains(guard), "{text}");
    assert!(text.contains("_ if self.tuned[0] && i128::from(n) == 77 => 0,"), "{text}");
    assert!(
        text.contains("grid(ScaleKernelConfig { block: 512, num_warps: 8 })") && !text.contains("block: 64"),
        "{text}"
    );
    let files = std::fs::read_dir(scratch.0.join("out")).unwrap().count();
    assert_eq!(files, 1 + 2 * (4 * 2 + 2), "a module, PTX and metadata of four general forms and of two winners");
    // What the signature says is the general form.
    let block = Instance::new("scale_kernel", "*fp16, *fp32, *fp16, i32, fp32, i32, MODE=\"times\", BLOCK=32");
    let text = scratch.compile(Config::new().arch(["sm_90a"]).instance(block.tuned(&file))).unwrap();
    assert!(text.contains("{ block: 512, num_warps: 8 }") && text.contains("{ block: 32, num_warps: 4 }"), "{text}");
    for (content, expected) in [
        ("{}", "is no file of `rtc tune`"),
        (&TUNED.replace("scale_kernel", "other")[..], "there are no results for the kernel `scale_kernel` in it"),
        (&TUNED.replace("\"version\": 1", "\"version\": 9")[..], "version 9 cannot be read"),
        (&TUNED.replace("\"n\": 4096", "\"n\": 1.5")[..], "the key has n = 1.5"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = scratch.compile(Config::new().arch(["sm_90a"]).instance(family.clone())).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn kernels_are_assembled_where_that_is_asked_for() {
    let scratch = Scratch::new("cubin");
    let config =
        || Config::new().arch(["sm_80", "sm_90a"]).cubins().kernel("pick_kernel", "*fp32, *i32, *fp32, i32, 64");
    let error = scratch.compile(config().ptxas("/nowhere/ptxas")).unwrap_err();
    assert!(error.contains("cannot run the assembler `/nowhere/ptxas`") && error.contains("RTC_PTXAS"), "{error}");
    let assembler = std::env::var("RTC_PTXAS").unwrap_or_else(|_| "ptxas".into());
    if std::process::Command::new(&assembler).arg("--version").output().is_err() {
        return missing(Need::Ptxas);
    }
    let text = scratch.compile(config().ptxas(assembler)).unwrap();
    for arch in ["sm_80", "sm_90a"] {
        let name = format!("scale.pick_kernel.{arch}.cubin");
        assert!(text.contains(&format!("Some(include_bytes!({name:?})),")), "{text}");
        assert!(std::fs::read(scratch.0.join("out").join(name)).unwrap().starts_with(b"\x7fELF"));
    }
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

//! How products by `mma.sync` read operands that are cast: which accesses to memory, and how wide.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rtc_compiler::{Program, Signature, Silent, Source, Spec, compile};

/// Few rows, so that no target has a larger instruction; K is innermost in both operands, as `A @ B.T` has it.
const SOURCE: &str = r"
@triton.jit
def k(a_ptr, b_ptr, s_ptr, z_ptr, c_ptr, K, sn, N: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr):
    m = tl.arange(0, 16)
    n = tl.program_id(0) * N + tl.arange(0, N)
    sums = tl.zeros((16, N), tl.float32)
    for i in range(0, K, BK):
        k = i + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + n[None, :] * K + k[:, None])
        if FORM == 'scaled':
            group = n[None, :] * sn + k[:, None] // 128
            scale = tl.load(s_ptr + group).to(tl.float32)
            zero = tl.load(z_ptr + group).to(tl.float32)
            b = ((b.to(tl.float32) - zero) * scale).to(a.dtype)
        elif FORM == 'cast':
            b = b.to(a.dtype)
        elif FORM == 'widened':
            a = a.to(tl.float32)
            b = b.to(tl.float32)
        sums = tl.dot(a, b, sums)
    tl.store(c_ptr + m[:, None] * sn + n[None, :], sums)
";

/// The instructions that load, or copy into shared memory, with how often the PTX has each.
fn loads(signature: &str, arch: &str) -> String {
    let program = Program::parse(&[Source::new("k.rt", SOURCE)]);
    let names = ["a_ptr", "b_ptr", "s_ptr", "z_ptr", "c_ptr", "K", "sn", "N", "BK", "FORM"];
    let args = Signature::parse(signature).unwrap().bind(&names).unwrap();
    let spec = Spec { kernel: Some("k".into()), args, ..Spec::default() };
    let specialization = spec.specialize(&program).unwrap();
    let compiled = compile(&program, &specialization, arch, String::new(), &mut Silent).unwrap();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let words = compiled.artifact.ptx.split_whitespace();
    let kinds = ["ld.global", "ld.shared", "cp.async.c", "ldmatrix", "mma.sync"];
    for word in words.filter(|word| kinds.iter().any(|kind| word.starts_with(kind) && !word.contains("commit"))) {
        *counts.entry(word).or_default() += 1;
    }
    counts.iter().map(|(word, count)| format!("    {count:3} {word}\n")).collect()
}

#[test]
fn operands_that_are_cast_are_copied_and_read_in_wide_pieces() {
    let mut text = String::new();
    for (name, a, b, constants) in [
        ("bytes, cast to halves", "*fp16:16", "*i8:16", "64, 64, 'cast'"),
        ("bytes with scales and zero points", "*bf16:16", "*u8:16", "64, 32, 'scaled'"),
        ("floats of a byte on both sides", "*fp8e5:16", "*fp8e5:16", "128, 128, 'plain'"),
        ("halves, widened for tf32", "*bf16:16", "*bf16:16", "64, 64, 'widened'"),
        ("halves as they are", "*fp16:16", "*fp16:16", "64, 64, 'plain'"),
    ] {
        for arch in ["sm_80", "sm_90a"] {
            let signature = format!("{a}, {b}, *bf16:16, *u8:16, *fp32:16, i32:16, i32:16, {constants}");
            writeln!(text, "{name}, {arch}:\n{}", loads(&signature, arch)).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

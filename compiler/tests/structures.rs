//! The structures that a kernel with products in loops can be asked for.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use rtc_compiler::{Program, Signature, Silent, Source, Spec, compile};

const SOURCE: &str = r"
@triton.jit
def k(a_ptr, b_ptr, c_ptr, K, sa, sb, sc):
    r = tl.program_id(0) * 64 + tl.arange(0, 64)
    n = tl.arange(0, 64)
    s = tl.zeros((64, 64), tl.float32)
    for i in range(0, K, 64):
        k = i + tl.arange(0, 64)
        a = tl.load(a_ptr + r[:, None] * sa + k[None, :], mask=k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + k[:, None] * sb + n[None, :], mask=k[:, None] < K, other=0.0)
        s = tl.dot(a, b, s)
    tl.store(c_ptr + r[:, None] * sc + n[None, :], s.to(tl.float16))
";

/// What of the kernel's PTX tells a structure, and what `-v` says of it.
#[test]
fn each_structure_is_told_by_its_instructions() {
    let words = ["cp.async.bulk.tensor", "cp.async.cg", "setmaxnreg", "wgmma.mma_async"];
    let program = Program::parse(&[Source::new("k.rt", SOURCE)]);
    let signature = Signature::parse("*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16").unwrap();
    let args = signature.bind(&["a_ptr", "b_ptr", "c_ptr", "K", "sa", "sb", "sc"]).unwrap();
    let mut text = String::new();
    for (structure, arch) in [
        ("auto", "sm_90a"),
        ("plain", "sm_90a"),
        ("pipelined", "sm_90a"),
        ("roles", "sm_90a"),
        ("roles-1", "sm_90a"),
        ("roles-1-deferred", "sm_90a"),
        ("roles-1-direct", "sm_90a"),
        ("roles-2-copied", "sm_90a"),
        // There is no room for three.
        ("roles-3", "sm_90a"),
        ("roles", "sm_80"),
        ("plain", "sm_80"),
    ] {
        let mut spec = Spec { kernel: Some("k".into()), args: args.clone(), ..Spec::default() };
        spec.options.structure = structure.parse().unwrap();
        let specialization = spec.specialize(&program).unwrap();
        let compiled = compile(&program, &specialization, arch, String::new(), &mut Silent).unwrap();
        let ptx = compiled.artifact.ptx;
        let found: Vec<&str> = words.into_iter().filter(|word| ptx.contains(word)).collect();
        writeln!(text, "{structure}, {arch}: {}", found.join(", ")).unwrap();
        compiled.warnings.iter().for_each(|said| writeln!(text, "    {}", said.message).unwrap());
    }
    insta::assert_snapshot!(text);
}

//! The structures that a kernel with products in loops can be asked for.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use rtc_compiler::{Program, Signature, Silent, Source, Spec, compile, decisions};

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
        for said in decisions(&program, &specialization, arch).unwrap().loops {
            writeln!(text, "    {}", said.message).unwrap();
            said.notes.iter().for_each(|note| writeln!(text, "    {note}").unwrap());
        }
    }
    insta::assert_snapshot!(text);
}

/// Why loads of tiles of any stride are no copies by the machine: what the signature would have to promise.
#[test]
fn a_stride_without_a_promise_is_named() {
    let source = SOURCE.replace("k[None, :] < K", "n[None, :] < K - i").replace("k[:, None] < K", "n[:, None] < K - i");
    assert_ne!(source, SOURCE);
    let program = Program::parse(&[Source::new("k.rt", &source)]);
    let said = |strides: &str| {
        let signature = Signature::parse(&format!("*fp16:16, *fp16:16, *fp16:16, i32, {strides}, i32:16")).unwrap();
        let args = signature.bind(&["a_ptr", "b_ptr", "c_ptr", "K", "sa", "sb", "sc"]).unwrap();
        let spec = Spec { kernel: Some("k".into()), args, ..Spec::default() };
        let specialization = spec.specialize(&program).unwrap();
        let decided = decisions(&program, &specialization, "sm_90a").unwrap().loops;
        decided.into_iter().flat_map(|said| [vec![said.message], said.notes].concat()).collect::<Vec<_>>().join("\n")
    };
    let words = "are not divided into roles: a stride is not promised to be a multiple of 16 bytes";
    assert!(said("i32, i32").contains(words), "{}", said("i32, i32"));
    assert!(said("i32:16, i32").contains(words), "{}", said("i32:16, i32"));
    assert!(said("i32:16, i32:16").contains("are divided into roles"), "{}", said("i32:16, i32:16"));
}

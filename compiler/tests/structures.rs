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

/// The part of the kernel's PTX that identifies a structure, and the remark of `-v`.
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
        ("specialized", "sm_90a"),
        ("specialized-1", "sm_90a"),
        ("specialized-1-deferred", "sm_90a"),
        ("specialized-1-direct", "sm_90a"),
        ("specialized-2-copied", "sm_90a"),
        // There is no room for three.
        ("specialized-3", "sm_90a"),
        ("specialized", "sm_80"),
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

/// Why loads of tiles of any stride are not asynchronous copies by the machine: what the signature would have to promise.
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
    let words = "are not specialized: a stride is not promised to be a multiple of 16 bytes";
    assert!(said("i32, i32").contains(words), "{}", said("i32, i32"));
    assert!(said("i32:16, i32").contains(words), "{}", said("i32:16, i32"));
    assert!(said("i32:16, i32:16").contains("are specialized"), "{}", said("i32:16, i32:16"));
}

const ATTENTION: &str = r"
@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, first, N, scale):
    k_desc = tl.make_tensor_descriptor(k_ptr, [N, 128], [128, 1], [64, 128])
    v_desc = tl.make_tensor_descriptor(v_ptr, [N, 128], [128, 1], [64, 128])
    row = first + tl.program_id(0) * 128
    most = tl.full([128], float('-inf'), tl.float32)
    total = tl.zeros([128], tl.float32)
    acc = tl.zeros([128, 128], tl.float32)
    rows = row + tl.arange(0, 128)
    inside = (rows < N)[:, None]
    places = rows[:, None] * 128 + tl.arange(0, 128)[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0)
    for at in tl.range(0, N, 64, warp_specialize=True):
        scores = tl.dot(q, k_desc.load([at, 0]).T) * scale
        new = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        alpha = tl.exp2(most - new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v_desc.load([at, 0]), acc * alpha[:, None])
        most = new
    tl.store(o_ptr + places, (acc / total[:, None]).to(tl.float16), mask=inside)
";

/// Products of two iterations that overlap keep their operands in shared memory for longer: the rings leave room for that.
#[test]
fn rings_leave_room_for_operands_of_overlapped_products() {
    let program = Program::parse(&[Source::new("attend.rt", ATTENTION)]);
    let signature = Signature::parse("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, fp32").unwrap();
    let args = signature.bind(&["q_ptr", "k_ptr", "v_ptr", "o_ptr", "first", "N", "scale"]).unwrap();
    let mut spec = Spec { kernel: Some("attend".into()), args, ..Spec::default() };
    spec.options.num_warps = 8;
    let specialization = spec.specialize(&program).unwrap();
    let compiled = compile(&program, &specialization, "sm_90a", String::new(), &mut Silent).unwrap();
    let ptx = compiled.artifact.ptx;
    assert!(ptx.contains("setmaxnreg") && ptx.contains("cp.async.bulk.tensor"), "the warps are not divided");
}

/// A store through a descriptor that the kernel makes is a TMA copy where its row may be negative, as one through a
/// descriptor among the arguments is; a store through pointers is not, whose mask may be there for such rows.
#[test]
fn stores_through_descriptors_are_copies() {
    let kernel = |tensor: &str, store: &str| {
        format!(
            r"
@triton.jit
def k(a, b, c, M, first, K):
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [128, 64])
    db = tl.make_tensor_descriptor(b, [K, 128], [128, 1], [64, 128])
    {tensor}
    row = first + tl.program_id(0) * 128
    acc = tl.zeros((128, 128), tl.float32)
    for i in range(0, K, 64):
        acc = tl.dot(da.load([row, i]), db.load([i, 0]), acc)
    {store}
"
        )
    };
    let descriptor = kernel(
        "dc = tl.make_tensor_descriptor(c, [M, 128], [128, 1], [128, 128])",
        "dc.store([row, 0], acc.to(tl.float16))",
    );
    let pointers = kernel(
        "rows = first + tl.program_id(0) * 128 + tl.arange(0, 128)[:, None]",
        "tl.store(c + rows * 128 + tl.arange(0, 128)[None, :], acc.to(tl.float16), mask=(rows >= 0) & (rows < M))",
    );
    let copies = [descriptor, pointers].map(|source| {
        let program = Program::parse(&[Source::new("k.rt", source)]);
        let signature = Signature::parse("*fp16:16, *fp16:16, *fp16:16, i32, i32, i32:16").unwrap();
        let args = signature.bind(&["a", "b", "c", "M", "first", "K"]).unwrap();
        let spec = Spec { kernel: Some("k".into()), args, ..Spec::default() };
        let specialization = spec.specialize(&program).unwrap();
        let ptx = compile(&program, &specialization, "sm_90a", String::new(), &mut Silent).unwrap().artifact.ptx;
        ptx.contains("cp.async.bulk.tensor.2d.global.shared")
    });
    assert_eq!(copies, [true, false]);
}

//! What bounds a launch, and the change that would help, without a launch: the kernels are bound by one thing each.

use rtc_compiler::{DType, HostValue, Program, Signature, Source, Spec};
use rtc_tune::GridFn;
use rtc_tune::speed::{Basis, Bound, Change, Explainer, Explanation, Subject};
use std::time::Duration;

/// An explainer of the only kernel of a text. Tensors have so many elements.
fn explained(
    text: &str,
    signature: &str,
    grid: [&str; 3],
    integers: &[(&str, i64)],
    tensors: &[(&str, DType, u64)],
    change: impl FnOnce(&mut Spec),
) -> Explanation {
    let program = Program::parse(&[Source::new("k.rt", text)]);
    let kernel = program.kernel(None).expect("there is one");
    let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
    let args = Signature::parse(signature).and_then(|s| s.bind(&names)).expect("it fits");
    let mut spec = Spec { args, ..Spec::default() };
    change(&mut spec);
    let sizes = grid.map(|size| size.parse().expect("a size"));
    let mut explainer = Explainer::new(&program, spec, "sm_90a").grid(GridFn::new(sizes));
    for (name, value) in integers {
        explainer = explainer.argument(name, HostValue::Value((*value).into()));
    }
    for (name, dtype, elements) in tensors {
        let tensor = HostValue::Tensor { dtype: *dtype, shape: Some(vec![*elements]) };
        explainer = explainer.argument(name, tensor).is_multiple_of_16(name);
    }
    explainer.explain(None, &mut |_| None).expect("it compiles")
}

fn change(of: &Explanation) -> &Change {
    of.change.as_ref().unwrap_or_else(|| panic!("{of}"))
}

/// The share of the time that a part is busy.
fn share(of: &Explanation, part: Bound) -> f64 {
    let limit = of.limits.iter().find(|limit| limit.part == part).expect("every part has a limit");
    limit.milliseconds / of.milliseconds()
}

const COPY: &str = "@triton.jit\ndef copy(x, y, n, BLOCK: tl.constexpr):\n    \
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n";

#[test]
fn a_copy_is_bound_by_device_memory() {
    let n = 1 << 26;
    let tensors = [("x", DType::Fp32, n), ("y", DType::Fp32, n)];
    let of = |signature| explained(COPY, signature, ["cdiv(n, BLOCK)", "1", "1"], &[("n", n as i64)], &tensors, |_| {});
    let copy = of("*fp32:16, *fp32:16, i32:16, 1024");
    assert_eq!(copy.bound, Bound::Memory, "{copy}");
    assert!(share(&copy, Bound::Memory) > 0.8, "{copy}");
    // The limit is that of the bytes of both tensors.
    let least = (8 * n) as f64 / copy.machine.memory_bytes_per_second * 1e3;
    assert!((copy.limits[0].milliseconds / least - 1.0).abs() < 0.01, "{copy}");
    // Next to the limit no change gains much.
    assert!(copy.change.as_ref().and_then(|change| change.gain).is_none_or(|gain| gain < 1.2), "{copy}");
}

#[test]
fn a_measured_time_takes_the_place_of_the_predicted_one() {
    let program = Program::parse(&[Source::new("k.rt", COPY)]);
    let args = Signature::parse("*fp32:16, *fp32:16, i32:16, 1024").and_then(|s| s.bind(&["x", "y", "n", "BLOCK"]));
    let spec = Spec { args: args.expect("it fits"), ..Spec::default() };
    let explainer = Explainer::new(&program, spec, "sm_90a")
        .grid(GridFn::new(["cdiv(n, BLOCK)".parse().expect("a size"), 1.into(), 1.into()]))
        .argument("n", HostValue::Value((1 << 26).into()));
    let explain = |explainer: Explainer<'_>| explainer.explain(None, &mut |_| None).expect("it compiles");
    let model = explain(explainer.clone());
    let twice = explain(explainer.measured(Duration::from_secs_f64(2e-3 * model.prediction.milliseconds)));
    assert!((twice.nearness() * 2.0 - model.nearness()).abs() < 1e-4, "{twice}");
    assert!(twice.to_string().contains("measured"), "{twice}");
}

const MATMUL: &str = "@triton.jit\ndef mm(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):\n    \
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)\n    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)\n    \
    k = tl.arange(0, BLOCK_K)\n    pa = a + m[:, None] * K + k[None, :]\n    pb = b + k[:, None] * N + n[None, :]\n    \
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n    for i in range(0, tl.cdiv(K, BLOCK_K)):\n        \
    acc += tl.dot(tl.load(pa), tl.load(pb))\n        pa += BLOCK_K\n        pb += BLOCK_K * N\n    \
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16))\n";

fn matmul(blocks: &str, warps: u32, integers: &str) -> Explanation {
    let n = 4096;
    let tensors = ["a", "b", "c"].map(|name| (name, DType::Fp16, 4096 * 4096));
    let signature = format!("*fp16:16, *fp16:16, *fp16:16, {integers}, {blocks}");
    let grid = ["cdiv(M, BLOCK_M)", "cdiv(N, BLOCK_N)", "1"];
    let integers = [("M", n), ("N", n), ("K", n)];
    explained(MATMUL, &signature, grid, &integers, &tensors, |spec| spec.options.num_warps = warps)
}

#[test]
fn a_matmul_with_small_blocks_needs_larger_ones() {
    let small = matmul("32, 32, 32", 4, "i32:16, i32:16, i32:16");
    // Each block reads its operands again: far from the tensor cores.
    assert!(share(&small, Bound::Mma) < 0.4, "{small}");
    assert_ne!(small.bound, Bound::Mma, "{small}");
    let larger = change(&small);
    assert_eq!((larger.subject, larger.basis), (Subject::Block, Basis::Model), "{small}");
    assert!(
        larger.what.contains("BLOCK_M=64 instead of 32") || larger.what.contains("BLOCK_M=128 instead of 32"),
        "{small}"
    );
    assert!(larger.gain.is_some_and(|gain| gain > 1.5), "{small}");
    // The model predicts for the changed kernel what the change announces.
    let large = matmul("128, 256, 64", 8, "i32:16, i32:16, i32:16");
    assert_eq!(large.bound, Bound::Mma, "{large}");
    assert!(large.prediction.milliseconds < small.prediction.milliseconds / 1.5, "{large}");
}

#[test]
fn a_promise_that_the_launch_keeps_is_proposed() {
    // Bytes one by one take many instructions.
    let n = 1 << 28;
    let tensors = [("x", DType::Int8, n), ("y", DType::Int8, n)];
    let of = |signature| explained(COPY, signature, ["cdiv(n, BLOCK)", "1", "1"], &[("n", n as i64)], &tensors, |_| {});
    let (without, with) = (of("*i8, *i8, i32, 4096"), of("*i8:16, *i8:16, i32:16, 4096"));
    assert!(share(&without, Bound::Issue) > 1.5 * share(&with, Bound::Issue), "{without}\n{with}");
    let all = change(&without);
    assert_eq!(all.subject, Subject::Promise, "{without}");
    assert!(all.what.contains("`x` is a multiple of 16 (*i8:16), `y` is a multiple of 16 (*i8:16)"), "{without}");
    let after = all.milliseconds.expect("it is evaluated");
    assert!((after / with.prediction.milliseconds - 1.0).abs() < 0.01, "{after} {with}");
    // What is promised already is not proposed.
    assert!(with.change.iter().chain(&with.others).all(|change| change.subject != Subject::Promise), "{with}");
}

#[test]
fn a_kernel_that_spills_is_bound_by_registers() {
    let text = "@triton.jit\ndef k(x, y, z, n, BLOCK: tl.constexpr):\n    \
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    a = tl.load(x + i)\n    b = tl.load(y + i)\n    \
        s = tl.sum(a * b)\n    tl.store(z + i, a * s + b)\n";
    let n = 1 << 26;
    let tensors = ["x", "y", "z"].map(|name| (name, DType::Fp32, n));
    let of = |warps| {
        let grid = ["cdiv(n, BLOCK)", "1", "1"];
        let signature = "*fp32:16, *fp32:16, *fp32:16, i32:16, 16384";
        explained(text, signature, grid, &[("n", n as i64)], &tensors, |spec| spec.options.num_warps = warps)
    };
    // 512 elements of each tile per thread.
    let spilling = of(1);
    assert_eq!(spilling.bound, Bound::Registers, "{spilling}");
    let more = change(&spilling);
    assert!(more.gain.is_some_and(|gain| gain > 1.3), "{spilling}");
    assert!(more.what.contains("num_warps=4") || more.what.contains("BLOCK="), "{spilling}");
    assert_ne!(of(16).bound, Bound::Registers, "{}", of(16));
}

#[test]
fn maxnreg_that_is_too_small_spills_and_is_removed() {
    let of = |most| {
        let tensors = ["a", "b", "c"].map(|name| (name, DType::Fp16, 4096 * 4096));
        let signature = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 128, 128, 64";
        let integers = [("M", 4096), ("N", 4096), ("K", 4096)];
        explained(MATMUL, signature, ["cdiv(M, BLOCK_M)", "cdiv(N, BLOCK_N)", "1"], &integers, &tensors, |spec| {
            spec.options.maxnreg = most;
            spec.options.warp_specialize = false;
        })
    };
    let spilling = of(Some(64));
    assert_eq!(spilling.bound, Bound::Registers, "{spilling}");
    let all: Vec<&Change> = spilling.change.iter().chain(&spilling.others).collect();
    let removed = all.iter().find(|change| change.what == "no maxnreg instead of maxnreg=64");
    assert!(removed.and_then(|change| change.gain).is_some_and(|gain| gain > 1.1), "{spilling}");
    assert_ne!(of(None).bound, Bound::Registers);
}

#[test]
fn too_few_warps_per_sm_and_too_few_blocks_are_told_apart() {
    // A chain of loads, each of which needs the one before it, while a tile waits in registers.
    let text = "@triton.jit\ndef k(x, w, y, n, steps, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    \
        tile = tl.load(w + i[:, None] * BLOCK + i[None, :])\n    at = tl.program_id(0) * BLOCK + i\n    \
        for _ in range(steps):\n        at = tl.load(x + at)\n    \
        tl.store(y + tl.program_id(0) * BLOCK + i, tl.sum(tile * at[:, None].to(tl.float32), axis=1))\n";
    let of = |n: i64| {
        let tensors = [("x", DType::Int32, 1 << 20), ("w", DType::Fp32, 1 << 14), ("y", DType::Fp32, 1 << 20)];
        let signature = "*i32:16, *fp32:16, *fp32:16, i32:16, i32:16, 128";
        let integers = [("n", n), ("steps", 256)];
        explained(text, signature, ["cdiv(n, BLOCK)", "1", "1"], &integers, &tensors, |_| {})
    };
    let few = of(64 * 128);
    assert_eq!(few.bound, Bound::Latency, "{few}");
    assert!(few.sentence().contains("64 blocks on 132 SMs"), "{few}");
    let many = of(1 << 20);
    assert_eq!(many.bound, Bound::Occupancy, "{many}");
    assert_eq!(many.limited_by, ["registers"], "{many}");
    assert!(many.sentence().contains("limited by registers"), "{many}");
    // A smaller tile leaves registers for more blocks.
    let smaller = change(&many);
    assert!(smaller.what.starts_with("BLOCK=") && smaller.gain.is_some_and(|gain| gain > 1.2), "{many}");
}

#[test]
fn a_small_launch_is_bound_by_itself() {
    let tensors = [("x", DType::Fp32, 4096), ("y", DType::Fp32, 4096)];
    let small = explained(
        COPY,
        "*fp32:16, *fp32:16, i32:16, 1024",
        ["cdiv(n, BLOCK)", "1", "1"],
        &[("n", 4096)],
        &tensors,
        |_| {},
    );
    assert_eq!(small.bound, Bound::Launch, "{small}");
}

#[test]
fn a_size_that_the_grid_does_not_depend_on_is_left_alone_without_a_launch() {
    // A block holds a row: half a block would be half the work.
    let text = "@triton.jit\ndef rows(x, y, n, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    \
        at = tl.program_id(0) * n + i\n    v = tl.load(x + at, mask=i < n, other=0.0)\n    \
        tl.store(y + at, v / tl.sum(v), mask=i < n)\n";
    let n = 4096 * 65_536;
    let tensors = [("x", DType::Fp32, n), ("y", DType::Fp32, n)];
    let signature = "*fp32:16, *fp32:16, i32:16, 4096";
    let rows = explained(text, signature, ["65536", "1", "1"], &[("n", 4096)], &tensors, |_| {});
    assert!(rows.change.iter().chain(&rows.others).all(|change| change.subject != Subject::Block), "{rows}");
    assert!(rows.notes.iter().any(|note| note.contains("the grid does not depend on them")), "{rows}");
}

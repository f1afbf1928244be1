//! The host time of a launch: checks, packing and the call, on a driver that does nothing (`scripts/bench` provides
//! it).
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "macros of criterion")]

use criterion::{Criterion, criterion_group, criterion_main};
use rtc_benches::{bare::Bare, empty_kernel};
use rtc_runtime::{Buffer, Device, Kernel, Read, Variant, Write, args};
use std::hint::black_box;

fn loaded(device: &Device, pointers: usize, integers: usize) -> Kernel {
    let (ptx, metadata) = empty_kernel(pointers, integers);
    // SAFETY: the metadata is that of the kernel, which accesses nothing.
    unsafe { device.load_json(&ptx, &metadata) }.expect("the kernel is right")
}

fn launches(criterion: &mut Criterion) {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("launch: no driver, run scripts/bench: {error}"),
    };
    let stream = device.default_stream();
    let buffers: Vec<Buffer<f32>> = (0..8).map(|_| device.alloc(64).expect("memory")).collect();
    let mut out: Buffer<f32> = device.alloc(64).expect("memory");
    let mut group = criterion.benchmark_group("launch");

    let (ptx, _) = empty_kernel(8, 8);
    let mut bare = Bare::load(&ptx, 16).expect("the kernel is right");
    group.bench_function("bare call", |b| b.iter(|| bare.launch()));

    let four = loaded(&device, 2, 2);
    group.bench_function("4 arguments", |b| {
        let x = &buffers[0];
        b.iter(|| four.launch(stream, 1, &args![x, &mut out, black_box(64), 1]).expect("a launch"))
    });

    let sixteen = loaded(&device, 8, 8);
    group.bench_function("16 arguments", |b| {
        let [x0, x1, x2, x3, x4, x5, x6, _] = &buffers[..] else { return };
        b.iter(|| {
            let n = black_box(64);
            let arguments = args![x0, x1, x2, x3, x4, x5, x6, &mut out, n, n, n, n, n, n, n, n];
            // SAFETY: the kernel accesses nothing.
            unsafe { sixteen.launch_unchecked(stream, 1, &arguments) }.expect("a launch")
        })
    });

    group.bench_function("16 arguments, lengths proved", |b| {
        let [x0, x1, x2, x3, x4, x5, x6, _] = &buffers[..] else { return };
        b.iter(|| {
            let n = black_box(64);
            let arguments = args![x0, x1, x2, x3, x4, x5, x6, &mut out, n, n, n, n, n, n, n, n];
            sixteen.launch(stream, 1, &arguments).expect("a launch")
        })
    });

    type In = Read<f32>;
    type Sixteen = (In, In, In, In, In, In, In, Write<f32>, i32, i32, i32, i32, i32, i32, i32, i32);
    let typed: Kernel<Sixteen> = sixteen.typed().expect("the types of the kernel");
    group.bench_function("16 arguments, typed handle", |b| {
        let [x0, x1, x2, x3, x4, x5, x6, _] = &buffers[..] else { return };
        b.iter(|| {
            let n = black_box(64);
            let arguments = (x0, x1, x2, x3, x4, x5, x6, &mut out, n, n, n, n, n, n, n, n);
            typed.launch(stream, 1, arguments).expect("a launch")
        })
    });

    // A warm launch allocates nothing.
    let [x0, x1, x2, x3, x4, x5, x6, _] = &buffers[..] else { return };
    let counted = allocation_counter::measure(|| {
        let arguments = args![x0, x1, x2, x3, x4, x5, x6, &mut out, 1, 2, 3, 4, 5, 6, 7, 8];
        sixteen.launch(stream, 1, &arguments).expect("a launch");
    });
    assert_eq!(counted.count_total, 0, "a launch allocates");

    let graph = stream
        .capture(|s| (0..10).try_for_each(|_| four.launch(s, 1, &args![&buffers[0], &mut out, 64, 1])))
        .expect("a graph");
    group.bench_function("graph of 10", |b| b.iter(|| graph.launch(stream).expect("a launch")));
    group.finish();
}

fn loads(criterion: &mut Criterion) {
    let Ok(device) = Device::cuda(0) else { return };
    let (ptx, metadata) = empty_kernel(8, 8);
    // A kernel of usual length.
    let ptx: &'static str =
        ptx.replace("    ret;", &format!("{}    ret;", "    mov.u32 %r1, %tid.x;\n".repeat(2000))).leak();
    let metadata: &'static str = metadata.leak();
    // SAFETY: the metadata is that of the kernel.
    let variants = [unsafe { Variant::new("sm_80", ptx, metadata, None) }];
    criterion.bench_function("load an embedded kernel", |b| {
        b.iter(|| device.load_variant("empty", black_box(&variants)).expect("a kernel"))
    });
}

criterion_group!(benches, launches, loads);
criterion_main!(benches);

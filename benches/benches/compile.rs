//! The time of compilation, stage by stage, of a cache hit, and of the autotuner.
#![allow(unsafe_code)]
#![allow(missing_docs, reason = "macros of criterion")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rtc_benches::kernels::{KERNELS, Kernel};
use rtc_compiler::{HostValue, Program, Silent, Source, Spec, Stage, emit};
use rtc_runtime::jit::cache::{Cache, CacheConfig, Origin};
use rtc_runtime::jit::compile_cached;
use rtc_runtime::{Device, args};
use rtc_tune::{GridFn, Tuner};
use std::hint::black_box;
use std::time::Duration;

/// The stages, each with all that comes before it: the table shows the sums.
const STAGES: [(&str, Stage); 7] = [
    ("1 tile", Stage::Tile),
    ("2 tile-opt", Stage::TileOpt),
    ("3 laid", Stage::Laid),
    ("4 scheduled", Stage::Scheduled),
    ("5 mlir", Stage::Mlir),
    ("6 llvm", Stage::Llvm),
    ("7 ptx", Stage::Ptx),
];

fn stages(criterion: &mut Criterion) {
    for kernel in KERNELS {
        let mut group = criterion.benchmark_group(format!("compile {}", kernel.name));
        group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
        group.bench_function("0 parse", |b| b.iter(|| black_box(kernel.program())));
        let program = kernel.program();
        let spec = kernel.spec().specialize(&program).expect("it fits");
        for (name, stage) in STAGES {
            group.bench_function(name, |b| {
                b.iter(|| emit(&program, &spec, "sm_90a", stage, &mut Silent).expect("it compiles"))
            });
        }
        group.finish();
    }
}

/// From empty memory to a loaded kernel, on a device that loads immediately: the cost of a second process.
fn hits(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(CacheConfig::new(folder.path())).expect("a cache");
    let device = Device::cuda(0).unwrap_or_else(|_| Device::emulator());
    let mut group = criterion.benchmark_group("cache hit");
    for kernel in KERNELS {
        let fetch = |program: &Program| {
            let spec = kernel.spec().specialize(program).expect("it fits");
            compile_cached(&cache, program, &spec, "sm_90a", &mut Silent).expect("it compiles")
        };
        fetch(&kernel.program());
        group.bench_function(format!("{} to PTX", kernel.name), |b| {
            b.iter(|| {
                let cached = fetch(&kernel.program());
                assert_eq!(cached.origin, Origin::Cache);
                cached
            })
        });
        group.bench_function(format!("{} to a loaded kernel", kernel.name), |b| {
            b.iter(|| {
                let artifact = fetch(&kernel.program()).compiled.artifact;
                // SAFETY: the compiler made both together.
                unsafe { device.load(&artifact.ptx, &artifact.metadata) }.expect("it loads")
            })
        });
    }
    group.finish();
}

/// The cost of the autotuner in addition to the runs themselves.
fn tuning(criterion: &mut Criterion) {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::emulator());
    let text = Kernel::tuned_add();
    let program = Program::parse(&[Source::new("add.rt", text)]);
    let spec = || Spec { args: Kernel::add_args(), ..Spec::default() };
    let n = 4096i64;
    let tensor = || HostValue::Tensor { dtype: rtc_compiler::DType::Fp32, shape: Some(vec![n as u64]) };
    let grid = || GridFn::new(["cdiv(n, BLOCK)".parse().expect("an expression"), 1.into(), 1.into()]);
    let tuner = || {
        let tuner = Tuner::new(&program, spec()).integer("n", n).grid(grid()).allow_untimed_devices();
        ["x", "y", "out"].into_iter().fold(tuner, |tuner, name| tuner.argument(name, tensor()))
    };
    let (x, y) = (device.zeros::<f32>(4096).expect("memory"), device.zeros::<f32>(4096).expect("memory"));
    let mut group = criterion.benchmark_group("autotuner");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    group.bench_function("cost model, 12 configurations", |b| b.iter(|| tuner().predict("sm_90a").expect("a report")));
    group.bench_function("12 configurations from nothing", |b| {
        b.iter_batched(
            || device.zeros::<f32>(4096).expect("memory"),
            |mut out| tuner().tune(&device, &args![&x, &y, &mut out, n]).expect("a report"),
            BatchSize::PerIteration,
        )
    });
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(CacheConfig::new(folder.path())).expect("a cache");
    let mut out = device.zeros::<f32>(4096).expect("memory");
    tuner().cache(&cache).tune(&device, &args![&x, &y, &mut out, n]).expect("a report");
    group.bench_function("stored winner", |b| {
        b.iter(|| tuner().cache(&cache).choose(&device, &device.arch().to_string()).expect("a report"))
    });
    group.finish();
}

criterion_group!(benches, stages, hits, tuning);
criterion_main!(benches);

//! Tuning on the emulator: its times say nothing, but every step runs, and tensors must be as before.
#![allow(unsafe_code)]

use rtc_abi::DType;
use rtc_cache::{Cache, CacheConfig};
use rtc_compiler::{ArgKind, ArgSpec, HostValue, Program, Signature, Source, Spec};
use rtc_runtime::{Device, TensorDescriptor, args};
use rtc_tune::{Decision, Error, GridFn, Tuned, Tuner, TuningReport};
use std::time::Duration;

/// Adds to `total` and changes `x` in place: what a run leaves behind is seen.
const SUMS: &str = "
@triton.autotune(configs=[CONFIGS], key=['n'], reset_to_zero=['total'])
@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0})
@triton.jit
def sums(x, total, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        v = tl.load(x + i)
    else:
        v = tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(total, tl.sum(v))
    tl.store(x + i, v + 1.0, mask=i < n)
";

const N: usize = 1000;

fn program_of(configs: &str) -> Program {
    let program = Program::parse(&[Source::new("sums.rt", SUMS.replace("CONFIGS", configs))]);
    assert!(!program.has_errors(), "{:?}", program.diagnostics());
    program
}

fn tuner(program: &Program) -> Tuner<'_> {
    let args = Signature::parse("*fp32:16, *fp32:16, i32").and_then(|s| s.bind(&["x", "total", "n"]));
    let spec = Spec { args: args.expect("it fits"), ..Spec::default() };
    let tensor = |len| HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![len]) };
    let grid = ["cdiv(n, BLOCK)", "1", "1"].map(|size| size.parse().expect("an expression"));
    Tuner::new(program, spec)
        .argument("x", tensor(N as u64))
        .argument("total", tensor(1))
        .integer("n", N as i64)
        .grid(GridFn::new(grid))
        .allow_untimed_devices()
}

fn tune(tuner: &Tuner<'_>) -> Result<TuningReport, Error> {
    let device = Device::emulator();
    let values: Vec<f32> = (0..N).map(|i| i as f32 * 0.25).collect();
    let (mut x, mut total) = (device.upload(&values)?, device.upload(&[7.0f32])?);
    let report = tuner.tune(&device, &args![&mut x, &mut total, N]);
    assert_eq!(x.to_vec()?, values, "`x` is not as before");
    assert_eq!(total.to_vec()?, [7.0], "`total` is not as before");
    report
}

const FOUR: &str = "triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 256) for w in (1, 2)";

#[test]
fn tensors_are_as_before_and_all_configurations_are_timed() {
    let program = program_of(FOUR);
    let report = tune(&tuner(&program)).unwrap();
    assert_eq!(report.decision, Decision::Timed);
    assert_eq!(report.candidates.len(), 4);
    assert!(report.candidates.iter().all(|c| !c.times.milliseconds.is_empty()), "{report}");
    let winner = report.winner().unwrap();
    assert_eq!(winner.milliseconds(), report.ranked().first().and_then(|i| report.milliseconds(*i)));
    let picture = report.to_svg();
    assert!(picture.contains("BLOCK=256") && picture.contains("prefers-color-scheme: dark"), "{picture}");
    let text = report.to_string();
    assert!(text.lines().nth(1).unwrap().starts_with('*') && text.contains("EVEN=False"), "{text}");
}

#[test]
fn two_devices_share_the_configurations() {
    let program = program_of(FOUR);
    let devices = [Device::emulator(), Device::emulator()];
    let values: Vec<f32> = (0..N).map(|i| i as f32 * 0.25).collect();
    let (mut x, mut total) = (devices[0].upload(&values).unwrap(), devices[0].upload(&[7.0f32]).unwrap());
    let tune = |devices: &[Device], tuner: &Tuner<'_>, x: &mut _, total: &mut _| {
        tuner.tune_on(devices, &args![x as &mut rtc_runtime::Buffer<f32>, total as &mut rtc_runtime::Buffer<f32>, N])
    };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(folder.path())).unwrap();
    let report = tune(&devices, &tuner(&program).cache(&cache), &mut x, &mut total).unwrap();
    assert_eq!((report.decision, report.devices), (Decision::Timed, 2));
    assert!(report.candidates.iter().all(|c| !c.times.milliseconds.is_empty()), "{report}");
    assert_eq!((x.to_vec().unwrap(), total.to_vec().unwrap()), (values, vec![7.0]));
    assert_eq!(report.entry().records.len(), 4);
    // What several devices found is there for one.
    let again = tune(&devices[..1], &tuner(&program).cache(&cache), &mut x, &mut total).unwrap();
    assert_eq!((again.decision, again.devices), (Decision::Stored, 1));
    assert_eq!(again.winner().unwrap().choice, report.winner().unwrap().choice);
    // What a configuration of the space computes is compared with what a written one on another device does.
    let wide = program_of("triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 128}, num_warps=2)");
    let wide = tune(&devices, &tuner(&wide).widen_search(), &mut x, &mut total).unwrap();
    assert!(
        wide.candidates.iter().filter(|c| !c.is_written && !c.times.milliseconds.is_empty()).count() >= 10,
        "{wide}"
    );
    // More devices than configurations; the same device twice; none.
    let one = program_of("triton.Config({'BLOCK': 64})");
    assert_eq!(tune(&devices, &tuner(&one), &mut x, &mut total).unwrap().devices, 1);
    let twice = [devices[0].clone(), devices[0].clone()];
    let error = tune(&twice, &tuner(&program), &mut x, &mut total).unwrap_err();
    assert_eq!(error.to_string(), "emulator is named twice");
    assert!(tune(&[], &tuner(&program), &mut x, &mut total).is_err());
}

#[test]
fn warm_up_and_duration_are_those_of_the_source() {
    let text = SUMS.replace("CONFIGS", FOUR).replace("key=['n'],", "key=['n'], warmup=1, rep=1e-6,");
    let program = Program::parse(&[Source::new("sums.rt", text)]);
    let report = tune(&tuner(&program)).unwrap();
    let runs: Vec<usize> = report.candidates.iter().map(|c| c.times.milliseconds.len()).collect();
    assert_eq!(runs, [1; 4], "{report}");
}

#[test]
fn results_are_kept_per_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(folder.path())).unwrap();
    let program = program_of(FOUR);
    let first = tune(&tuner(&program).cache(&cache)).unwrap();
    assert_eq!(first.decision, Decision::Timed);
    // Another process starts with the winner.
    let second = tune(&tuner(&program).cache(&cache)).unwrap();
    assert_eq!(second.decision, Decision::Stored);
    assert!(second.candidates.iter().all(|c| c.times.milliseconds.is_empty()));
    assert_eq!(second.winner().unwrap().choice, first.winner().unwrap().choice);
    assert_eq!(tuner(&program).cache(&cache).choose(&Device::emulator(), "sm_90a").unwrap().decision, Decision::Stored);
    // Other arguments are another key.
    let other = tuner(&program).cache(&cache).integer("n", 64);
    assert_eq!(other.choose(&Device::emulator(), "sm_90a").unwrap().decision, Decision::Model);
    // One configuration more: the others keep their times, and three of them run beside it.
    let more = program_of(&FOUR.replace("for w in (1, 2)", "for w in (1, 2, 4) if w < 4 or b == 64"));
    let added = tune(&tuner(&more).cache(&cache)).unwrap();
    assert_eq!(added.decision, Decision::Timed);
    let (timed, stored): (Vec<_>, Vec<_>) = added.candidates.iter().partition(|c| !c.times.milliseconds.is_empty());
    assert_eq!((timed.len(), stored.len()), (4, 1), "{added}");
    assert!(stored[0].stored_milliseconds.is_some());
    // Another kernel of the same name is timed again.
    let text = SUMS.replace("CONFIGS", FOUR).replace("v + 1.0", "v + 2.0");
    let changed = Program::parse(&[Source::new("sums.rt", text)]);
    assert_eq!(tuner(&changed).cache(&cache).choose(&Device::emulator(), "sm_90a").unwrap().decision, Decision::Model);
    let fresh = tune(&tuner(&program).cache(&cache).ignore_cached_times()).unwrap();
    assert_eq!(fresh.decision, Decision::Timed);
    let mut tuned = Tuned::default();
    tuned.add(&first.entry());
    tuned.add(&fresh.entry());
    assert_eq!((tuned.entries.len(), tuned.entries[0].records.len()), (1, 4));
}

#[test]
fn what_cannot_run_is_dropped_and_said() {
    let program = program_of("triton.Config({'BLOCK': b}) for b in (64, 100, 2097152)");
    let report = tune(&tuner(&program)).unwrap();
    assert_eq!(report.winner().unwrap().choice.value("BLOCK").map(ToString::to_string), Some("64".into()));
    let dropped: Vec<&str> = report.candidates.iter().filter_map(|c| c.dropped.as_deref()).collect();
    assert_eq!(dropped.len(), 2);
    assert!(dropped.iter().all(|why| why.starts_with("does not compile: ")), "{dropped:?}");
    assert!(report.to_string().contains("BLOCK=100"));
}

#[test]
fn a_budget_ends_the_tuning_with_a_winner_or_says_so() {
    let program = program_of(FOUR);
    let report = tune(&tuner(&program).budget(Duration::from_nanos(1))).unwrap();
    assert!(report.is_cut && report.winner().is_some());
    assert_eq!(report.decision, Decision::Model);
}

#[test]
fn the_wider_space_keeps_only_what_computes_the_same() {
    let program = program_of("triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 128}, num_warps=2)");
    let report = tune(&tuner(&program).widen_search()).unwrap();
    let wide = report.candidates.iter().filter(|c| !c.is_written).count();
    assert!(wide >= 10, "{wide}");
    assert!(report.candidates.iter().any(|c| !c.is_written && !c.times.milliseconds.is_empty()));
}

#[test]
fn a_tensor_that_is_no_argument_is_an_error() {
    let text = SUMS.replace("CONFIGS", FOUR).replace("['total']", "['totals']");
    let program = Program::parse(&[Source::new("sums.rt", text)]);
    let error = tune(&tuner(&program)).unwrap_err();
    assert!(error.to_string().contains("`reset_to_zero` of `autotune` names `totals`"), "{error}");
}

#[test]
fn without_a_gpu_the_cost_model_decides() {
    let program = program_of(FOUR);
    let args = Signature::parse("*fp32:16, *fp32:16, i32").and_then(|s| s.bind(&["x", "total", "n"])).unwrap();
    let spec = Spec { args, ..Spec::default() };
    let tuner = Tuner::new(&program, spec).integer("n", N as i64);
    let device = Device::emulator();
    let report = tuner.tune(&device, &[]).unwrap();
    assert_eq!(report.decision, Decision::Model);
    assert!(report.notes.iter().any(|note| note.contains("nothing was timed")), "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("the grid is the same")), "{:?}", report.notes);
    assert!(report.winner().is_some_and(|c| c.prediction.is_some_and(|p| p.milliseconds > 0.0)));
}

/// A hook sets the block that a descriptor moves, so that each configuration passes other parts of it.
const BLOCKS: &str = "
def blocks(nargs):
    nargs['src'].block_shape = [1, nargs['B']]

@triton.autotune(configs=[triton.Config({'B': b}, num_warps=1, pre_hook=blocks) for b in (16, 64)], key=['n'])
@triton.jit
def double(src, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B
    v = tl.reshape(src.load([1, at]), [B])
    i = at + tl.arange(0, B)
    tl.store(out + i, v * 2.0, mask=i < n)
";

#[test]
fn hooks_set_the_blocks_of_descriptors() {
    let program = Program::parse(&[Source::new("double.rt", BLOCKS)]);
    assert!(!program.has_errors(), "{:?}", program.diagnostics());
    let pointer = Signature::parse("*fp32:16, i32").and_then(|s| s.bind(&["out", "n"])).unwrap();
    let kind = ArgKind::Descriptor { element: DType::Fp32, block_shape: vec![1, 1] };
    let args = [vec![ArgSpec { name: "src".into(), kind }], pointer].concat();
    let spec = Spec { args, ..Spec::default() };
    let described = HostValue::Descriptor { dtype: DType::Fp32, shape: Some(vec![2, 256]), block_shape: vec![1, 1] };
    let tuner = Tuner::new(&program, spec)
        .argument("src", described)
        .argument("out", HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![256]) })
        .integer("n", 256)
        .grid(GridFn::new(["cdiv(n, B)".parse().unwrap(), 1.into(), 1.into()]))
        .allow_untimed_devices();
    // SAFETY: a descriptor that is passed in parts is accessed within its shape, and `out` has `n` elements.
    let tuner = unsafe { tuner.assume_in_bounds() };
    let devices = [Device::emulator(), Device::emulator()];
    let values: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let (src, mut out) = (devices[0].upload(&values).unwrap(), devices[0].zeros::<f32>(256).unwrap());
    let descriptor = TensorDescriptor::new(&src, &[2, 256], &[256, 1]);
    for devices in [&devices[..1], &devices] {
        let report = tuner.tune_on(devices, &args![&descriptor, &mut out, 256]).unwrap();
        assert!(report.candidates.iter().all(|c| !c.times.milliseconds.is_empty()), "{report}");
        assert_eq!(report.candidates[1].choice.blocks, [("src".to_owned(), vec![1, 64])]);
        let names: Vec<String> = report.arguments().unwrap().params.iter().map(|p| p.name.clone()).collect();
        assert_eq!(names, ["src", "out", "n"]);
    }
    assert_eq!(out.to_vec().unwrap(), [0.0; 256], "`out` is not as before");
    // A wider space keeps the sizes that the hook was given.
    let report = tuner.widen_search().predict("sm_90a").unwrap();
    assert!(report.candidates.len() > 2 && report.candidates.iter().all(|c| !c.choice.blocks.is_empty()));
}

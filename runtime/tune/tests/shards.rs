//! Tuning in parts, on the emulator with its counters for a clock.
#![allow(unsafe_code)]

use rtc_abi::DType;
use rtc_cache::{Cache, CacheConfig};
use rtc_compiler::{HostValue, Program, Signature, Source, Spec};
use rtc_runtime::{Device, args};
use rtc_tune::{Decision, Entry, Error, GridFn, Merged, ShardFile, Tuned, Tuner, TuningReport};
use std::collections::BTreeSet;

const TEXT: &str = "
@triton.autotune(configs=[CONFIGS], key=['n'])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2.0 * tl.load(x + i, mask=i < n), mask=i < n)
";
/// Eight that run and one that does not compile.
const NINE: &str =
    "triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 128, 256, 512, 100) for w in (1, 4) if b != 100 or w == 4";
const N: usize = 3000;

fn program_of(configs: &str) -> Program {
    let program = Program::parse(&[Source::new("double.rt", TEXT.replace("CONFIGS", configs))]);
    assert!(!program.has_errors(), "{:?}", program.diagnostics());
    program
}

fn tuner(program: &Program) -> Tuner<'_> {
    let args = Signature::parse("*fp32:16, *fp32:16, i32").and_then(|s| s.bind(&["x", "y", "n"]));
    let spec = Spec { args: args.expect("it fits"), ..Spec::default() };
    let tensor = HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![N as u64]) };
    let grid = ["cdiv(n, BLOCK)", "1", "1"].map(|size| size.parse().expect("an expression"));
    let tuner = Tuner::new(program, spec)
        .argument("x", tensor.clone())
        .argument("y", tensor)
        .integer("n", N as i64)
        .grid(GridFn::new(grid))
        .time_by_counters();
    // SAFETY: both tensors have `n` elements.
    unsafe { tuner.assume_in_bounds() }
}

fn tune(tuner: &Tuner<'_>) -> Result<TuningReport, Error> {
    let device = Device::emulator().with_counters()?;
    let (x, mut y) = (device.zeros::<f32>(N)?, device.zeros::<f32>(N)?);
    tuner.tune(&device, &args![&x, &mut y, N])
}

fn shard(program: &Program, shard: &str) -> ShardFile {
    let report = tune(&tuner(program).shard(shard.parse().expect("a shard"))).expect("it is tuned");
    let file = ShardFile::of(&report).expect("it is of a shard");
    assert_eq!(ShardFile::parse(&file.to_text()).expect("what was written can be read"), file);
    file
}

/// The time of the winner: of two that are as fast either may win.
fn fastest(entry: &Entry) -> f64 {
    let winner = entry.records.iter().find(|record| record.setting == entry.winner).expect("it has a time");
    assert!(entry.records.iter().all(|record| record.milliseconds >= winner.milliseconds));
    winner.milliseconds
}

/// All shards of so many, named by their numbers.
fn shards(program: &Program, count: u32) -> Vec<(String, ShardFile)> {
    let one = |index| (format!("{index}.json"), shard(program, &format!("{index}/{count}")));
    (1..=count).map(one).collect()
}

#[test]
fn the_shards_together_find_what_one_tuning_does() {
    let program = program_of(NINE);
    let whole = tune(&tuner(&program)).unwrap();
    assert_eq!(whole.decision, Decision::Timed);
    let expected = whole.entry();
    assert_eq!(expected.records.len(), 8, "{whole}");
    let times: BTreeSet<u64> = expected.records.iter().map(|r| r.milliseconds.to_bits()).collect();
    assert!(times.len() > 3, "the clock tells too little: {whole}");
    // Of more shards than configurations some are empty.
    for count in [1, 2, 4, 12] {
        let files = shards(&program, count);
        let sizes: usize = files.iter().map(|(_, file)| file.entry.records.len() + file.dropped.len()).sum();
        assert_eq!(sizes, 9);
        let merged = Merged::of(&files).unwrap();
        let [found] = &merged.tuned.entries[..] else { panic!("one GPU, one entry: {merged:?}") };
        assert_eq!(fastest(found), fastest(&expected), "of {count} shards");
        let sorted = |entry: &Entry| {
            let mut all: Vec<_> = entry.records.iter().map(|r| (format!("{:?}", r.setting), r.milliseconds)).collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        };
        assert_eq!(sorted(found), sorted(&expected));
        assert!(merged.conflicts.is_empty(), "{:?}", merged.conflicts);
    }
}

#[test]
fn configurations_beyond_the_source_are_compared_in_each_shard() {
    let program = program_of("triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 128}, num_warps=2)");
    let files = |index: u32| {
        let tuner = tuner(&program).widen_search().shard(format!("{index}/3").parse().unwrap());
        ShardFile::of(&tune(&tuner).unwrap()).unwrap()
    };
    // The third has no configuration of the source.
    let files: Vec<_> = (1..=3).map(|index| (format!("{index}.json"), files(index))).collect();
    assert!(files.iter().all(|(_, file)| file.entry.records.len() >= 4));
    let whole = tune(&tuner(&program).widen_search()).unwrap().entry();
    let merged = Merged::of(&files).unwrap();
    assert_eq!(merged.tuned.entries[0].records.len(), whole.records.len());
    assert_eq!(fastest(&merged.tuned.entries[0]), fastest(&whole));
}

#[test]
fn missing_shards_are_named() {
    let mut files = shards(&program_of(NINE), 4);
    files.remove(2);
    files.remove(0);
    let error = Merged::of(&files).unwrap_err();
    assert!(matches!(error, Error::ShardMissing(_)));
    assert_eq!(error.to_string(), "of double on emulator (sm_90a) the shards 1/4, 3/4 are missing");
    assert!(matches!(Merged::of(&[]), Err(Error::ShardMissing(_))));
}

#[test]
fn shards_of_different_tunings_are_refused() {
    let program = program_of(NINE);
    let whole = shards(&program, 2);
    let refused = |change: &dyn Fn(&mut ShardFile), expected: &str| {
        let mut files = whole.clone();
        change(&mut files[1].1);
        let error = Merged::of(&files).unwrap_err();
        assert!(matches!(error, Error::ShardMismatch(_)) && error.to_string().contains(expected), "{error}");
    };
    refused(&|file| file.entry.kernel = "triple".into(), "their kernel is `double` and `triple`");
    refused(&|file| file.compiler = "0.0.1 x".into(), "their compiler is `");
    refused(&|file| drop(file.entry.key.insert("n".into(), 7.into())), "\"n\":3000}` and `{");
    refused(&|file| file.entry.signature.push('x'), "their signature is `");
    // Another list of configurations, and another kernel of the same name.
    let other = program_of(&NINE.replace("512", "1024"));
    refused(
        &|file| *file = shard(&other, "2/2"),
        "the configurations or the code of the kernel are not the same in 1.json and 2.json",
    );
    let text = TEXT.replace("CONFIGS", NINE).replace("2.0 *", "3.0 *");
    let changed = Program::parse(&[Source::new("double.rt", text)]);
    refused(&|file| *file = shard(&changed, "2/2"), "the configurations or the code of the kernel");
    refused(&|file| *file = shard(&program, "2/3"), "1.json is shard 1/2 and 2.json is shard 2/3");
    // A configuration that is in two of them.
    let first = whole[0].1.entry.records[0].clone();
    refused(&|file| file.entry.records[0] = first.clone(), "have different configurations `BLOCK=64");
}

#[test]
fn gpus_are_kept_apart() {
    let program = program_of(NINE);
    let mut files = shards(&program, 2);
    let others = files.clone().into_iter().map(|(name, mut file)| {
        file.entry.device = "NVIDIA H200".into();
        // There the slowest is the fastest.
        file.entry.records.iter_mut().for_each(|record| record.milliseconds = 1.0 / record.milliseconds);
        (format!("h200/{name}"), file)
    });
    files.extend(others);
    let merged = Merged::of(&files).unwrap();
    let [one, other] = &merged.tuned.entries[..] else { panic!("two GPUs, two entries") };
    assert_eq!((one.device.as_str(), other.device.as_str()), ("emulator", "NVIDIA H200"));
    assert_eq!((one.records.len(), other.records.len()), (8, 8));
    assert_ne!(one.winner, other.winner);
    // What one of them lacks the other does not give.
    files.pop();
    let error = Merged::of(&files).unwrap_err().to_string();
    assert_eq!(error, "of double on NVIDIA H200 (sm_90a) the shards 2/2 are missing");
    // In one file they stay apart, too.
    let mut tuned = Tuned::default();
    tuned.merge(&merged.tuned);
    assert_eq!(tuned.entries.len(), 2);
}

#[test]
fn times_that_contradict_each_other_are_reported() {
    let mut files = shards(&program_of(NINE), 2);
    let (name, mut again) = ("again.json".to_owned(), files[0].1.clone());
    files.push((name.clone(), again.clone()));
    assert!(Merged::of(&files).unwrap().conflicts.is_empty());
    again.entry.records[0].milliseconds *= 3.0;
    again.entry.records[0].runs = 30;
    let setting = again.entry.records[0].setting.clone();
    let expected = again.entry.records[0].milliseconds;
    files[2] = (name, again);
    let merged = Merged::of(&files).unwrap();
    let [conflict] = &merged.conflicts[..] else { panic!("{:?}", merged.conflicts) };
    assert!(conflict.contains("ms in 1.json and ") && conflict.contains("in again.json"), "{conflict}");
    let record = merged.tuned.entries[0].records.iter().find(|record| record.setting == setting).unwrap();
    assert_eq!((record.milliseconds, record.runs), (expected, 30));
    // What the budget left is noted.
    files.pop();
    files[1].1.entry.records.pop();
    let notes = Merged::of(&files).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("the budget left 1 configurations without a time")), "{notes:?}");
}

#[test]
fn damaged_files_are_refused() {
    let file = shard(&program_of(NINE), "1/2");
    let text = file.to_text();
    for (from, to, expected) in [
        ("\"rtc-tune-shard\"", "\"rtc-tune\"", "`rtc-tune` is not the format"),
        ("\"version\": 1", "\"version\": 2", "version 2 cannot be read"),
        ("\"shard\": 1", "\"shard\": 3", "there is no shard 3 of 2"),
        ("\"of\": 2", "\"of\": 9", "configurations, shard 1/9 has 1"),
        ("\"milliseconds\": ", "\"milliseconds\": -", "is no time"),
        ("\"BLOCK\": 256", "\"BLOCK\": 64", "it has a configuration twice"),
        ("\"entry\"", "\"entries\"", "missing field `entry`"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let error = ShardFile::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    for cut in (0..text.len() - 2).step_by(7) {
        assert!(matches!(ShardFile::parse(&text[..cut]), Err(Error::File(_))), "{}", &text[..cut]);
    }
}

#[test]
fn times_of_a_shard_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(folder.path())).unwrap();
    let program = program_of(NINE);
    let of = |text: &str| tune(&tuner(&program).cache(&cache).shard(text.parse().unwrap())).unwrap();
    let first = of("1/2");
    assert_eq!(first.decision, Decision::Timed);
    // The same shard, as when a machine died behind it; then other shards, which find some of their times.
    let again = of("1/2");
    assert_eq!((again.decision, again.entry().records), (Decision::Stored, first.entry().records));
    let third = of("2/4");
    assert_eq!(third.decision, Decision::Timed, "{third}");
    assert_eq!(of("3/4").decision, Decision::Stored);
    // A shard decides nothing for launches; all together do.
    let device = Device::emulator().with_counters().unwrap();
    let choose = || tuner(&program).cache(&cache).choose(&device, "sm_90a").unwrap();
    assert_eq!(choose().decision, Decision::Model);
    let files = [("1.json".to_owned(), ShardFile::of(&again).unwrap()), ("2.json".to_owned(), shard(&program, "2/2"))];
    let merged = Merged::of(&files).unwrap();
    assert!(merged.keep(&cache).is_empty());
    let chosen = choose();
    assert_eq!(chosen.decision, Decision::Stored);
    assert_eq!(chosen.entry().winner, merged.tuned.entries[0].winner);
}

#[test]
fn a_device_that_does_not_count_is_no_clock() {
    let program = program_of(NINE);
    let device = Device::emulator();
    let (x, mut y) = (device.zeros::<f32>(N).unwrap(), device.zeros::<f32>(N).unwrap());
    let error = tuner(&program).tune(&device, &args![&x, &mut y, N]).unwrap_err();
    assert!(error.to_string().contains("`Device::with_counters` gives one that does"), "{error}");
}

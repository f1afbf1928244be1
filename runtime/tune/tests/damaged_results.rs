//! Damaged results of tuning, in the cache and as files: what cannot be read is said and tuned again; nothing of it becomes the
//! choice but a configuration of the source.

#[path = "../../testing/tests/damage/mod.rs"]
mod damage;

use rtc_abi::DType;
use rtc_cache::{Cache, CacheConfig, Key, KeyBuilder};
use rtc_compiler::{HostValue, Program, Signature, Source, Spec};
use rtc_runtime::{Device, args};
use rtc_tune::{Decision, Entry, GridFn, Tuned, Tuner};
use std::fs;

const SOURCE: &str = "\
@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 256) for w in (1, 2)], key=['n'])
@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)
";

/// Where the cache has the results for what `entry` is about.
fn key_of(entry: &Entry) -> Key {
    let arguments = serde_json::to_string(&entry.key).expect("it is JSON");
    KeyBuilder::new("tuning/1")
        .text("kernel", &entry.kernel)
        .text("device", &entry.device)
        .text("arch", &entry.arch)
        .text("signature", &entry.signature)
        .text("key", &arguments)
        .finish()
}

#[test]
fn results() {
    let program = Program::parse(&[Source::new("fill.rt", SOURCE)]);
    let args = Signature::parse("*fp32:16, i32").and_then(|s| s.bind(&["x", "n"])).expect("it fits");
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(CacheConfig::new(folder.path())).expect("a cache");
    let tuner = Tuner::new(&program, Spec { args, ..Spec::default() })
        .argument("x", HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![1000]) })
        .integer("n", 1000)
        .grid(GridFn::new(["cdiv(n, BLOCK)", "1", "1"].map(|size| size.parse().expect("an expression"))))
        .allow_untimed_devices()
        .cache(&cache);
    let device = Device::emulator();
    let mut x = device.zeros::<f32>(1000).expect("memory");
    let mut tune = || tuner.tune(&device, &args![&mut x, 1000]).expect("a right kernel");
    let first = tune();
    assert_eq!((first.decision, tune().decision), (Decision::Timed, Decision::Stored));
    let settings: Vec<_> = first.candidates.iter().map(|c| c.choice.clone()).collect();
    let key = key_of(&first.entry());
    let path = cache.path("tuning", &key);
    let (file, content) =
        (fs::read(&path).expect("an entry"), cache.get("tuning", &key).ok().flatten().expect("results"));
    let arch = device.arch().to_string();
    let mut random = damage::random();
    let choose = || {
        let report = tuner.choose(&device, &arch).expect("the cost model chooses at the least");
        let winner = report.winner().expect("a choice").choice.clone();
        assert!(settings.contains(&winner), "{winner:?} is not in the source");
        assert_eq!(report.candidates.len(), settings.len(), "{report}");
        (report.decision == Decision::Stored, !report.notes.is_empty())
    };

    // The file is damaged: it is refused, or it is as it was.
    for _ in 0..damage::rounds(100) {
        fs::write(&path, random.damage(&file)).expect("a file can be written");
        choose();
    }

    // The content is, and its checksum is right.
    let (mut stored, mut noted) = (0, 0);
    for _ in 0..damage::rounds(300) {
        cache.put("tuning", &key, &random.damage(&content)).expect("room");
        let (is_stored, is_noted) = choose();
        stored += usize::from(is_stored);
        noted += usize::from(is_noted);
    }
    assert!(stored > 0 && noted > 0, "{stored} {noted}");

    // Tuning still returns results, and the next run finds them.
    for damaged in [&b""[..], b"x", &[0xff; 64], &content[..content.len() - 1], b"{\"kernel\": 3}"] {
        cache.put("tuning", &key, damaged).expect("room");
        assert!(choose().1, "nothing is said of results that cannot be read");
        assert_eq!((tune().decision, tune().decision), (Decision::Timed, Decision::Stored));
    }

    // A winner without a time is none.
    let text = String::from_utf8(content).expect("it is JSON");
    let (head, records) = text.split_once("\"records\"").expect("it has records");
    let (before, winner) = head.split_once("\"winner\"").expect("it has a winner");
    for other in ["128", "100000000000000000000", "-1", "0", "[]", "null", "true", "1099511627776"] {
        let winner = winner.replace("\"BLOCK\":64", &format!("\"BLOCK\":{other}"));
        let winner = winner.replace("\"BLOCK\":256", &format!("\"BLOCK\":{other}"));
        let damaged = format!("{before}\"winner\"{winner}\"records\"{records}");
        assert_ne!(damaged, text);
        cache.put("tuning", &key, damaged.as_bytes()).expect("room");
        choose();
    }
}

#[test]
fn files() {
    let setting =
        "{\"values\": {\"BLOCK\": 64, \"F\": null}, \"options\": {\"num_warps\": 4}, \"blocks\": {\"d\": [64, 16]}";
    let text = format!(
        "{{\"version\": 1, \"entries\": [{{\"kernel\": \"k\", \"device\": \"d\", \"arch\": \"sm_90a\", \"signature\": \"x=*fp32:16\", \
         \"key\": {{\"n\": 4096}}, \"winner\": {setting}}}, \"records\": [{setting}, \"milliseconds\": 0.5, \"runs\": 3, \
         \"code\": \"5e\"}}]}}]}}"
    );
    let whole = Tuned::parse(&text).expect("it is right");
    let read = damage::read_damaged(text.as_bytes(), &|damaged| {
        let Ok(found) = Tuned::parse(&String::from_utf8_lossy(damaged)) else { return false };
        for entry in &found.entries {
            let _ = entry.winner.choice();
        }
        let mut merged = whole.clone();
        merged.merge(&found);
        assert_eq!(Tuned::parse(&found.to_text()).expect("what was written can be read"), found);
        true
    });
    assert!(read > 100, "{read}");
}

//! The limit of a cache, and what `list`, `verify` and `clear` do.
#![allow(clippy::unwrap_used)]

use rtc_cache::{Cache, CacheConfig, Error, Key, KeyBuilder};
use std::fs;
use std::time::{Duration, SystemTime};

fn key(number: u32) -> Key {
    KeyBuilder::new("test").number("number", number).finish()
}

/// Makes it look as if the entry was last used so many hours ago.
fn age(cache: &Cache, number: u32, hours: u64) {
    let file = fs::File::options().write(true).open(cache.path("kernel", &key(number))).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
}

fn has(cache: &Cache, number: u32) -> bool {
    cache.path("kernel", &key(number)).exists()
}

fn used(cache: &Cache) -> u64 {
    cache.list().unwrap().iter().map(|entry| entry.bytes).sum()
}

#[test]
fn what_was_not_used_longest_goes_first() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path()).with_limit(100_000)).unwrap();
    for number in 0..9 {
        cache.put("kernel", &key(number), &[0; 10_000]).unwrap();
        age(&cache, number, 100 - u64::from(number));
    }
    // The oldest is used once more.
    assert!(cache.get("kernel", &key(0)).unwrap().is_some());
    cache.put("kernel", &key(9), &[0; 10_000]).unwrap();
    // 100,840 bytes are too many; at most 90,000 stay.
    let kept: Vec<u32> = (0..10).filter(|n| has(&cache, *n)).collect();
    assert_eq!(kept, [0, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn the_limit_holds_whatever_the_record_says() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path()).with_limit(50_000)).unwrap();
    let usage = directory.path().join("rtc-cache-1/usage");
    for number in 0..40 {
        match number % 4 {
            0 => drop(fs::remove_file(&usage)),
            1 => fs::write(&usage, b"odd").unwrap(),
            2 => fs::write(&usage, i64::MIN.to_le_bytes()).unwrap(),
            _ => fs::write(&usage, i64::MAX.to_le_bytes()).unwrap(),
        }
        cache.put("kernel", &key(number), &[0; 3_000]).unwrap();
        assert!(used(&cache) <= 50_000 && has(&cache, number), "{number}");
    }
    // Enough puts that the record is made again.
    for number in 0..3_000 {
        cache.put("kernel", &key(number), &[0; 100]).unwrap();
    }
    assert!(used(&cache) <= 50_000);
    assert!(fs::metadata(&usage).unwrap().len() <= 8 * 1025);
}

#[test]
fn an_entry_above_the_limit_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path()).with_limit(1_000)).unwrap();
    cache.put("kernel", &key(1), &[0; 500]).unwrap();
    assert!(matches!(cache.put("kernel", &key(2), &[0; 1_000]), Err(Error::TooLarge { bytes: 1_084, limit: 1_000 })));
    assert!(has(&cache, 1));
}

#[test]
fn verify_removes_what_is_wrong_and_what_dead_writers_left() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path())).unwrap();
    for number in 0..4 {
        cache.put("kernel", &key(number), &[1; 100]).unwrap();
    }
    cache.put("tuning", &key(0), b"x").unwrap();
    fs::write(cache.path("kernel", &key(1)), "").unwrap();
    let temporary = directory.path().join("rtc-cache-1/tmp");
    for (name, hours) in [("old", 2), ("new", 0)] {
        let file = fs::File::create(temporary.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
    }
    let found = cache.verify().unwrap();
    assert_eq!((found.good, found.bytes, found.temporaries), (4, 3 * 184 + 85, 1));
    assert!(matches!(&found.problems[..], [Error::Corrupt { reason: "it is cut off", removed: true, .. }]));
    assert!(!temporary.join("old").exists() && temporary.join("new").exists());
    assert_eq!(cache.verify().unwrap().problems.len(), 0);
}

#[test]
fn entries_are_listed_and_cleared_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path())).unwrap();
    assert_eq!(cache.list().unwrap(), []);
    assert_eq!(cache.clear().unwrap(), Default::default());
    cache.put("tuning", &key(1), b"x").unwrap();
    cache.put("kernel", &key(2), b"xy").unwrap();
    // Neither has the name of an entry.
    fs::write(cache.path("kernel", &key(2)).with_file_name("readme"), "").unwrap();
    fs::create_dir_all(directory.path().join("rtc-cache-0/old")).unwrap();
    for foreign in ["rtc-cache-x", "rtc-cache-01", "src"] {
        fs::create_dir(directory.path().join(foreign)).unwrap();
    }
    let listed: Vec<_> = cache.list().unwrap().into_iter().map(|e| (e.kind, e.key, e.bytes)).collect();
    assert_eq!(listed, [("kernel".into(), key(2), 86), ("tuning".into(), key(1), 85)]);
    let cleared = cache.clear().unwrap();
    assert_eq!((cleared.entries, cleared.bytes), (2, 171));
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["CACHEDIR.TAG", "rtc-cache-01", "rtc-cache-x", "src"]);
    assert_eq!(cache.get("kernel", &key(2)).unwrap(), None);
}

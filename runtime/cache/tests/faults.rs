//! Provoked faults of a cache: writers that are killed, damaged files, several processes, a full disk, a read-only
//! directory.
#![allow(clippy::unwrap_used)]

mod stage;

use rtc_cache::{Cache, CacheConfig, Error, Key, KeyBuilder, Origin};
use stage::{ReadOnly, Role, SmallDisk};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);

fn open(directory: &Path) -> Cache {
    Cache::open(CacheConfig::new(directory)).unwrap()
}

fn key(number: usize) -> Key {
    KeyBuilder::new("test").number("number", number as u32).finish()
}

/// Content with a redundancy that shows whether it is complete: a version, repeated.
fn content(version: u64, bytes: usize) -> Vec<u8> {
    version.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fn is_whole(bytes: &[u8]) -> bool {
    bytes.chunks(8).all(|chunk| chunk == &bytes[..chunk.len()])
}

#[test]
fn killed_writers_leave_nothing_wrong() {
    const KEYS: usize = 4;
    const BYTES: usize = 4 << 20;
    let directory = tempfile::tempdir().unwrap();
    if let Some(directory) = Role::Writer.is_mine() {
        let cache = open(&directory);
        for version in 0.. {
            cache.put("kernel", &key(version % KEYS), &content(version as u64, BYTES)).unwrap();
        }
    }
    let cache = open(directory.path());
    let (mut found, mut left) = (0, 0);
    for round in 0..50 {
        let mut child = Role::Writer.start("killed_writers_leave_nothing_wrong", directory.path());
        let start = Instant::now();
        while cache.get("kernel", &key(0)).unwrap().is_none() {
            assert!(start.elapsed() < WAIT, "the writer does not write");
            std::thread::sleep(Duration::from_millis(1));
        }
        let temporary = cache.directory().join("rtc-cache-1/tmp");
        let is_writing = || fs::read_dir(&temporary).unwrap().next().is_some();
        match round % 2 {
            0 => std::thread::sleep(Duration::from_micros(1700 * (round % 17))),
            _ => while start.elapsed() < WAIT && !is_writing() {},
        }
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        for number in 0..KEYS {
            if let Some(bytes) = cache.get("kernel", &key(number)).unwrap() {
                assert!(bytes.len() == BYTES && is_whole(&bytes), "round {round}, key {number}");
                found += 1;
            }
        }
        // The file that the killed process was writing.
        for file in fs::read_dir(&temporary).unwrap() {
            left += 1;
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let verified = cache.verify().unwrap();
        assert!(verified.problems.is_empty(), "{verified:?}");
        assert!(cache.remove("kernel", &key(0)).unwrap());
    }
    assert!(found >= 50, "{found} entries in 50 rounds");
    assert!(left > 0, "no writer was killed while it was writing");
    eprintln!("50 writers killed: {left} while writing, {found} entries read, all whole");
}

/// The kinds of damage to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip { byte: usize, bit: usize },
    Cut(usize),
    Append,
    Zero,
}

impl Damage {
    fn apply(self, file: &mut Vec<u8>) {
        match self {
            Damage::Flip { byte, bit } => file[byte] ^= 1 << bit,
            Damage::Cut(length) => file.truncate(length),
            Damage::Append => file.push(0),
            Damage::Zero => file.fill(0),
        }
    }
}

#[test]
fn damaged_entries_are_reported_and_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path());
    let good = content(1, 10_000);
    let flips = (0..64).map(|n| Damage::Flip { byte: n * 157 % 10_084, bit: n % 8 });
    let cuts = [0, 1, 83, 84, 5_000, 10_083].map(Damage::Cut);
    let damages: Vec<Damage> = flips.chain(cuts).chain([Damage::Append, Damage::Zero]).collect();
    for damage in damages {
        cache.put("kernel", &key(1), &good).unwrap();
        let path = cache.path("kernel", &key(1));
        let mut file = fs::read(&path).unwrap();
        damage.apply(&mut file);
        fs::write(&path, file).unwrap();
        let made = cache.get_or_make("kernel", &key(1), WAIT, |b| Some(b.to_vec()), || Ok::<_, ()>((vec![7], vec![7])));
        let made = made.unwrap();
        assert_eq!((made.value, made.origin), (vec![7], Origin::Made), "{damage:?}");
        assert!(matches!(&made.problems[..], [Error::Corrupt { removed: true, .. }]), "{:?}", made.problems);
        let text = made.problems[0].to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("it was removed and will be rebuilt"), "{text}");
        assert_eq!(cache.get("kernel", &key(1)).unwrap(), Some(vec![7]));
    }
}

/// A file in the place of another, and content that no longer can be read.
#[test]
fn entries_in_the_wrong_place_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path());
    cache.put("kernel", &key(1), b"one").unwrap();
    cache.put("kernel", &key(2), b"two").unwrap();
    fs::copy(cache.path("kernel", &key(1)), cache.path("kernel", &key(2))).unwrap();
    let error = cache.get("kernel", &key(2)).unwrap_err().to_string();
    assert!(error.contains("it holds the entry of another key"), "{error}");
    let made = cache.get_or_make("kernel", &key(1), WAIT, |_| None::<u8>, || Ok::<_, ()>((1, vec![1]))).unwrap();
    assert!(made.problems[0].to_string().contains("its content cannot be read"), "{:?}", made.problems);
    assert_eq!(cache.get("kernel", &key(1)).unwrap(), Some(vec![1]));
    assert!(matches!(cache.get("../up", &key(1)), Err(Error::Kind(_))));
}

#[test]
fn of_several_processes_one_makes_an_entry() {
    const KEYS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let log = |directory: &Path| directory.join("log");
    if let Some(directory) = Role::Maker.is_mine() {
        let cache = open(&directory);
        for number in 0..KEYS {
            let make = || {
                stage::append(&log(&directory), b"x");
                std::thread::sleep(Duration::from_millis(10));
                Ok::<_, ()>((content(number as u64, 50_000), content(number as u64, 50_000)))
            };
            let made = cache.get_or_make("kernel", &key(number), WAIT, |bytes| Some(bytes.to_vec()), make).unwrap();
            assert_eq!(made.value, content(number as u64, 50_000));
            assert!(made.problems.is_empty(), "{:?}", made.problems);
        }
        return;
    }
    let children: Vec<_> =
        (0..4).map(|_| Role::Maker.start("of_several_processes_one_makes_an_entry", directory.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fs::read(log(directory.path())).unwrap().len(), KEYS, "so many times something was made");
    assert_eq!(open(directory.path()).verify().unwrap().good, KEYS);
}

/// A lock that is never released does not block others forever.
#[test]
fn who_waits_too_long_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path());
    let held = cache.lock(&key(1), WAIT).unwrap();
    let wait = Duration::from_millis(50);
    let made = cache.get_or_make("kernel", &key(1), wait, |_| Some(0), || Ok::<_, ()>((1, vec![1]))).unwrap();
    assert_eq!((made.value, made.origin), (1, Origin::Made));
    drop(held);
    let lock = cache.lock(&key(1), Duration::ZERO).unwrap();
    assert!(!lock.was_awaited());
}

#[test]
fn readers_see_whole_entries_while_others_replace_them() {
    const BYTES: usize = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    if let Some(directory) = Role::Writer.is_mine() {
        let cache = open(&directory);
        for version in 0.. {
            cache.put("kernel", &key(0), &content(version, BYTES)).unwrap();
        }
    }
    let name = "readers_see_whole_entries_while_others_replace_them";
    let mut writers = [0, 1].map(|_| Role::Writer.start(name, directory.path()));
    let cache = open(directory.path());
    let (start, mut versions) = (Instant::now(), std::collections::HashSet::new());
    while start.elapsed() < WAIT && (start.elapsed() < Duration::from_secs(1) || versions.len() < 3) {
        if let Some(bytes) = cache.get("kernel", &key(0)).unwrap() {
            assert!(bytes.len() == BYTES && is_whole(&bytes));
            versions.insert(bytes[..8].to_vec());
        }
    }
    for writer in &mut writers {
        writer.kill().unwrap();
        writer.wait().unwrap();
    }
    assert!(versions.len() >= 3, "only {} versions were seen", versions.len());
}

#[test]
fn a_full_disk_costs_only_the_cache() {
    let Some(disk) = SmallDisk::mount("256k") else { return };
    let cache = open(disk.path());
    let (mut written, mut refused) = (0, 0);
    for number in 0..20 {
        let value = content(number, 30_000);
        let make = || Ok::<_, ()>((value.clone(), value.clone()));
        let made = cache.get_or_make("kernel", &key(number as usize), WAIT, |b| Some(b.to_vec()), make).unwrap();
        assert_eq!(made.value, value);
        match &made.problems[..] {
            [] => written += 1,
            [problem] => {
                let text = problem.to_string();
                assert!(text.contains("No space left on device") && text.contains("RTC_CACHE_DIR"), "{text}");
                refused += 1;
            }
            several => panic!("{several:?}"),
        }
    }
    assert!(written >= 4 && refused >= 4, "{written} written, {refused} refused");
    // Existing files are good, and failed writes left nothing behind.
    let verified = cache.verify().unwrap();
    assert_eq!((verified.good, verified.problems.len()), (written, 0), "{verified:?}");
    assert_eq!(fs::read_dir(disk.path().join("rtc-cache-1/tmp")).unwrap().count(), 0);
    // With a limit that fits the disk it goes on working.
    let cache = Cache::open(CacheConfig::new(disk.path()).with_limit(150_000)).unwrap();
    cache.clear().unwrap();
    for number in 0..20 {
        cache.put("kernel", &key(number), &content(1, 30_000)).unwrap();
        assert!(cache.get("kernel", &key(number)).unwrap().is_some());
    }
}

/// The same without the right to mount anything: no file may grow beyond a limit.
#[cfg(unix)]
#[test]
fn a_write_that_is_cut_short_leaves_no_entry() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(directory) = Role::Limited.is_mine() {
        let cache = open(&directory);
        cache.put("kernel", &key(1), &content(1, 2_000)).unwrap();
        let error = cache.put("kernel", &key(2), &content(2, 100_000)).unwrap_err();
        assert!(error.to_string().contains("File too large"), "{error}");
        assert_eq!(cache.get("kernel", &key(2)).unwrap(), None);
        assert!(cache.get("kernel", &key(1)).unwrap().is_some());
        return;
    }
    let mut child = Role::Limited.start("a_write_that_is_cut_short_leaves_no_entry", directory.path());
    assert!(child.wait().unwrap().success());
    let verified = open(directory.path()).verify().unwrap();
    assert_eq!((verified.good, verified.problems.len()), (1, 0));
}

#[test]
fn a_directory_that_may_only_be_read_is_read() {
    let Some(directory) = ReadOnly::prepare(|directory| {
        let cache = open(directory);
        cache.put("kernel", &key(1), b"one").unwrap();
        cache.put("kernel", &key(2), b"two").unwrap();
        let path = cache.path("kernel", &key(2));
        let mut file = fs::read(&path).unwrap();
        *file.last_mut().unwrap() ^= 1;
        fs::write(path, file).unwrap();
    }) else {
        return;
    };
    let cache = open(directory.path());
    assert_eq!(cache.get("kernel", &key(1)).unwrap().as_deref(), Some(&b"one"[..]));
    let make = || Ok::<_, ()>((3, vec![3]));
    let made = cache.get_or_make("kernel", &key(3), WAIT, |_| Some(0), make).unwrap();
    assert_eq!((made.value, made.origin), (3, Origin::Made));
    assert!(matches!(&made.problems[..], [problem] if problem.is_read_only()), "{:?}", made.problems);
    let made = cache.get_or_make("kernel", &key(2), WAIT, |_| Some(0), make).unwrap();
    assert_eq!((made.value, made.origin), (3, Origin::Made));
    let text = made.problems[0].to_string();
    assert!(text.contains("it was not used; delete it"), "{text}");
    assert!(made.problems[1].is_read_only());
    // One that is not there and cannot be made.
    let error = Cache::open(CacheConfig::new(directory.path().join("new"))).unwrap_err();
    assert!(error.is_read_only() && error.to_string().contains("RTC_CACHE_DIR"), "{error}");
}

#[test]
fn what_is_no_directory_is_no_cache() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Cache::open(CacheConfig::new(&path)).unwrap_err().to_string();
        assert!(error.starts_with("cannot make the cache directory"), "{error}");
    }
}

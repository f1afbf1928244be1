//! Caches of several machines over one store: a directory, and a Redis server that the test starts.
#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used)]

use rtc_cache::{Cache, CacheConfig, Error, Fetched, Key, KeyBuilder, Origin};
use rtc_test_needs::{Need, missing};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WAIT: Duration = Duration::from_secs(10);

/// A machine: a directory of its own before the store.
fn machine(uri: &str) -> (TempDir, Cache) {
    let directory = tempfile::tempdir().unwrap();
    let config = CacheConfig::new(directory.path()).with_remote(uri).with_remote_timeout(Duration::from_secs(5));
    let cache = Cache::open(config).unwrap();
    (directory, cache)
}

fn key(name: &str) -> Key {
    KeyBuilder::new("test/1").text("name", name).finish()
}

/// The result of a compilation.
fn fetch(cache: &Cache, key: &Key) -> Fetched<Vec<u8>> {
    let made = || Ok::<_, ()>((b"made".to_vec(), b"made".to_vec()));
    cache.get_or_make("kernel", key, WAIT, |bytes| Some(bytes.to_vec()), made).unwrap()
}

fn folder() -> (TempDir, String) {
    let store = tempfile::tempdir().unwrap();
    let uri = format!("fs://{}", store.path().display());
    (store, uri)
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for item in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match item.path() {
            path if path.is_dir() => out.extend(files(&path)),
            path => out.push(path),
        }
    }
    out
}

#[test]
fn what_one_machine_made_another_has() {
    let (_store, uri) = folder();
    let ((_a, first), (b, second)) = (machine(&uri), machine(&uri));
    assert_eq!(fetch(&first, &key("k")).origin, Origin::Made);
    let found = fetch(&second, &key("k"));
    assert_eq!((found.origin, found.value, found.problems.len()), (Origin::Cache, b"made".to_vec(), 0));
    // It is on the disk of the second machine now: the store may go.
    let alone = Cache::open(CacheConfig::new(b.path())).unwrap();
    assert_eq!(alone.get("kernel", &key("k")).unwrap().as_deref(), Some(&b"made"[..]));
    // Removed entries are removed for all.
    assert!(first.remove("kernel", &key("k")).unwrap());
    let (_c, third) = machine(&uri);
    assert_eq!(third.get("kernel", &key("k")).unwrap(), None);
}

#[test]
fn what_arrives_damaged_is_reported_and_made_anew() {
    let (store, uri) = folder();
    let (_a, first) = machine(&uri);
    fetch(&first, &key("k"));
    let file = files(store.path()).pop().unwrap();
    let good = std::fs::read(&file).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() - 1] ^= 1;
    for (bytes, reason) in
        [(good[..good.len() - 1].to_vec(), "cut off"), (flipped, "checksum"), (Vec::new(), "cut off")]
    {
        std::fs::write(&file, bytes).unwrap();
        let (_b, second) = machine(&uri);
        let found = fetch(&second, &key("k"));
        assert_eq!(found.origin, Origin::Made);
        let text = found.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains(reason) && text.contains("was not used"), "{text}");
        assert_eq!(std::fs::read(&file).unwrap(), good);
    }
    // An entry under the name of another.
    let other = file.parent().unwrap().parent().unwrap();
    let name = key("l").to_string();
    std::fs::create_dir_all(other.join(&name[..2])).unwrap();
    std::fs::write(other.join(&name[..2]).join(&name[2..]), &good).unwrap();
    let (_c, third) = machine(&uri);
    assert!(matches!(third.get("kernel", &key("l")), Err(Error::RemoteCorrupt { .. })));
}

/// A server that is killed when the test ends.
struct Redis(Child, u16);

impl Redis {
    /// Nothing where there is no such program.
    fn start(folder: &std::path::Path) -> Option<Redis> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
        command.arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            missing(Need::Redis);
            return None;
        };
        let redis = Redis(child, port);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < WAIT, "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_shares_entries_until_it_dies() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Redis::start(folder.path()) else { return };
    let uri = format!("redis://127.0.0.1:{}/0/rtc", redis.1);
    let ((_a, first), (_b, second)) = (machine(&uri), machine(&uri));
    assert_eq!(fetch(&first, &key("k")).origin, Origin::Made);
    assert_eq!(fetch(&second, &key("k")).origin, Origin::Cache);
    // A kernel of a megabyte, by several threads at once.
    let large: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    first.put("kernel", &key("large"), &large).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (_, cache) = machine(&uri);
            let large = &large;
            scope.spawn(move || assert_eq!(cache.get("kernel", &key("large")).unwrap().as_ref(), Some(large)));
        }
    });
    // The server dies: the next request reports it, and later ones do not.
    drop(redis);
    let start = Instant::now();
    let found = fetch(&second, &key("m"));
    assert_eq!((found.origin, found.problems.len()), (Origin::Made, 1));
    assert!(found.problems[0].to_string().contains("is not used for now"), "{}", found.problems[0]);
    assert!(fetch(&second, &key("n")).problems.is_empty());
    assert_eq!(fetch(&second, &key("m")).origin, Origin::Cache);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

/// A server that takes connections and never answers.
#[test]
fn a_server_that_hangs_costs_one_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || (&stream).read_to_end(&mut Vec::new()));
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let config = CacheConfig::new(directory.path()).with_remote(format!("redis://user:secret@127.0.0.1:{port}"));
    let cache = Cache::open(config.with_remote_timeout(Duration::from_millis(200))).unwrap();
    let start = Instant::now();
    let found = fetch(&cache, &key("k"));
    assert_eq!((found.origin, found.problems.len()), (Origin::Made, 1));
    let text = found.problems[0].to_string();
    assert!(text.contains("no answer within 200ms") && !text.contains("secret"), "{text}");
    for other in ["l", "m", "n"] {
        assert!(fetch(&cache, &key(other)).problems.is_empty());
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn it_can_be_asked_from_an_asynchronous_program() {
    let (_store, uri) = folder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_a, cache) = machine(&uri);
        cache.put("kernel", &key("k"), b"x").unwrap();
        drop(cache);
        let (_b, other) = machine(&uri);
        assert_eq!(other.get("kernel", &key("k")).unwrap().as_deref(), Some(&b"x"[..]));
    });
}

//! Reading and writing entries.

use crate::remote::Remote;
use crate::{CacheConfig, Error, Key, Lock, Result, entry, limit, lock};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A use within so short a time of the latest is not noted.
const TOUCH_AFTER: Duration = Duration::from_secs(600);

/// A tag that tells backup programs to skip the directory (<https://bford.info/cachedir/>).
const TAG: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# This file marks a directory of caches, made by rtc.\n";

/// A cache in a directory. Cheap to open: all but the directory itself is made when the first entry is written.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) limit: u64,
    /// Behind the directory.
    remote: Option<Arc<Remote>>,
}

/// The target of the spans of this crate.
const TARGET: &str = "rtc::cache";

/// The result of [`Cache::get_or_make`].
/// ```
/// # let directory = tempfile::tempdir()?;
/// use rtc_cache::{Cache, CacheConfig, Fetched, KeyBuilder, Origin};
/// use std::time::Duration;
/// let cache = Cache::open(CacheConfig::new(directory.path()))?;
/// assert_eq!(cache.directory(), directory.path());
/// let key = KeyBuilder::new("squares/1").number("of", 12).finish();
/// let square = || {
///     let decode = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok()?.parse::<u32>().ok();
///     cache.get_or_make("squares", &key, Duration::from_secs(1), decode, || Ok::<_, String>((144, b"144".to_vec())))
/// };
/// let Fetched { value, origin, .. } = square()?;
/// assert_eq!((value, origin), (144, Origin::Made));
/// assert_eq!(square()?.origin, Origin::Cache);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fetched<T> {
    /// The wanted thing.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
    /// Problems of the cache on the way; to be shown, they do not affect the result.
    pub problems: Vec<Error>,
}

/// Where a thing came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was in the cache.
    Cache,
    /// Another thread or process was making it; it was waited for.
    Awaited,
    /// It was made.
    Made,
}

impl Cache {
    /// A cache as `config` says. Fails only if the directory is there and is no directory, or cannot be made.
    pub fn open(config: CacheConfig) -> Result<Cache> {
        let CacheConfig { directory, limit, remote, remote_timeout } = config;
        if !directory.is_dir() {
            fs::create_dir_all(&directory).map_err(Error::io("make the cache directory", &directory))?;
        }
        let root = directory.join(root_name(entry::FORMAT));
        let remote = remote.map(|uri| Arc::new(Remote::new(uri, remote_timeout)));
        Ok(Cache { directory, root, limit, remote })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of an entry, whether it is there or not.
    pub fn path(&self, kind: &str, key: &Key) -> PathBuf {
        let key = key.to_string();
        self.entries().join(kind).join(&key[..2]).join(&key[2..])
    }

    pub(crate) fn entries(&self) -> PathBuf {
        self.root.join("entries")
    }

    /// The content of an entry; `None` if there is no such entry.
    ///
    /// A damaged file is removed and returns [`Error::Corrupt`]. An entry that is not on disk is looked up in the store
    /// that machines share, if there is one, and then written to disk.
    pub fn get(&self, kind: &str, key: &Key) -> Result<Option<Vec<u8>>> {
        let span = tracing::debug_span!(target: TARGET, "get", kind, %key, found = tracing::field::Empty).entered();
        let got = self.get_checked(kind, key);
        if let Ok(content) = &got {
            span.record("found", content.is_some());
        }
        got
    }

    fn get_checked(&self, kind: &str, key: &Key) -> Result<Option<Vec<u8>>> {
        check_kind(kind)?;
        let path = self.path(kind, key);
        let Some((mut bytes, file)) = self.read(&path)? else { return self.fetch(kind, key, &path) };
        if let Err(reason) = entry::check(kind, key, &bytes) {
            let removed = self.remove_file(&path, bytes.len() as u64);
            return Err(Error::Corrupt { path, reason, removed });
        }
        touch(&file);
        bytes.drain(..entry::HEADER);
        Ok(Some(bytes))
    }

    /// An entry of the shared store, which is kept on disk.
    fn fetch(&self, kind: &str, key: &Key, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(remote) = &self.remote else { return Ok(None) };
        let Some(mut file) = remote.get(kind, key)? else { return Ok(None) };
        // A full or read-only disk does not prevent the use of a downloaded entry.
        if file.len() as u64 <= self.limit && self.write(path, &[&file]).is_ok() {
            limit::written(self, path, file.len() as u64);
        }
        file.drain(..entry::HEADER);
        Ok(Some(file))
    }

    pub(crate) fn read(&self, path: &Path) -> Result<Option<(Vec<u8>, File)>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(Error::io("read cache entry", path)(error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io("read cache entry", path))?;
        Ok(Some((bytes, file)))
    }

    /// Writes an entry, in the place of one of this key that may be there, to disk and to the shared store. If the cache on
    /// disk gets larger than its limit, those entries go that were not used for the longest time.
    pub fn put(&self, kind: &str, key: &Key, content: &[u8]) -> Result<()> {
        let _span = tracing::debug_span!(target: TARGET, "put", kind, %key, bytes = content.len()).entered();
        check_kind(kind)?;
        let bytes = (entry::HEADER + content.len()) as u64;
        if bytes > self.limit {
            return Err(Error::TooLarge { bytes, limit: self.limit });
        }
        let path = self.path(kind, key);
        let header = entry::header(kind, key, content);
        let written = self.write(&path, &[&header, content]);
        if written.is_ok() {
            limit::written(self, &path, bytes);
        }
        let shared = self.remote.as_ref().map_or(Ok(()), |remote| remote.put(kind, key, [&header, content].concat()));
        written.and(shared)
    }

    /// Writes a file whole or not at all.
    pub(crate) fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<()> {
        match self.try_write(path, parts) {
            // Another process is clearing the cache, and its directories are gone.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => self.try_write(path, parts),
            result => result,
        }
    }

    fn try_write(&self, path: &Path, parts: &[&[u8]]) -> Result<()> {
        let temporary = self.root.join("tmp");
        for directory in [&temporary, path.parent().unwrap_or(path)] {
            if !directory.is_dir() {
                fs::create_dir_all(directory).map_err(Error::io("make the cache directory", directory))?;
            }
        }
        self.tag();
        let failed = |error| Error::io("write cache entry", path)(error);
        let mut file = temporary_file(&temporary).map_err(failed)?;
        for part in parts {
            file.write_all(part).map_err(failed)?;
        }
        // Dropped on failure, it removes itself.
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn tag(&self) {
        let path = self.directory.join("CACHEDIR.TAG");
        if !path.exists() {
            // Without it the cache is as good; a backup is larger.
            let _ = fs::write(path, TAG);
        }
    }

    /// Removes an entry, also from the shared store; gives whether there was one on disk.
    pub fn remove(&self, kind: &str, key: &Key) -> Result<bool> {
        check_kind(kind)?;
        let path = self.path(kind, key);
        let shared = self.remote.as_ref().map_or(Ok(()), |remote| remote.remove(kind, key));
        let bytes = fs::metadata(&path).map_or(0, |data| data.len());
        let was_there = match fs::remove_file(&path) {
            Ok(()) => {
                limit::removed(self, bytes);
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(Error::io("remove cache entry", &path)(error)),
        };
        shared.map(|()| was_there)
    }

    /// Removes a file; gives whether it is gone.
    pub(crate) fn remove_file(&self, path: &Path, bytes: u64) -> bool {
        match fs::remove_file(path) {
            Ok(()) => {
                limit::removed(self, bytes);
                true
            }
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Waits until no other thread or process makes the entry of this key; `None` after `wait`, or if files cannot be
    /// locked. The holder of the lock checks the cache again before it starts.
    pub fn lock(&self, key: &Key, wait: Duration) -> Option<Lock> {
        lock::acquire(&self.root.join("locks"), key, wait)
    }

    /// The entry as `decode` reads it, or otherwise the result of `make`, which is then written. Of several callers
    /// that need the same entry at the same time one makes it and the others wait for it, at most `wait`.
    ///
    /// Failures of the cache are in [`Fetched::problems`]; only `make` can fail.
    pub fn get_or_make<T, E>(
        &self,
        kind: &str,
        key: &Key,
        wait: Duration,
        decode: impl Fn(&[u8]) -> Option<T>,
        make: impl FnOnce() -> std::result::Result<(T, Vec<u8>), E>,
    ) -> std::result::Result<Fetched<T>, E> {
        let mut problems = Vec::new();
        let mut look = |origin| match self.get(kind, key) {
            Ok(Some(bytes)) => match decode(&bytes) {
                Some(value) => Some(Fetched { value, origin, problems: Vec::new() }),
                None => {
                    let path = self.path(kind, key);
                    let removed = self.remove_file(&path, bytes.len() as u64);
                    problems.push(Error::Corrupt { path, reason: "its content cannot be read", removed });
                    None
                }
            },
            Ok(None) => None,
            Err(error) => {
                problems.push(error);
                None
            }
        };
        let mut found = look(Origin::Cache);
        let mut lock = None;
        if found.is_none() {
            lock = self.lock(key, wait);
            if lock.as_ref().is_some_and(Lock::was_awaited) {
                found = look(Origin::Awaited);
            }
        }
        if let Some(found) = found {
            return Ok(Fetched { problems, ..found });
        }
        let (value, bytes) = make()?;
        if let Err(error) = self.put(kind, key, &bytes) {
            problems.push(error);
        }
        drop(lock);
        Ok(Fetched { value, origin: Origin::Made, problems })
    }
}

/// The directory of a format within that of the cache.
pub(crate) fn root_name(format: u32) -> String {
    format!("rtc-cache-{format}")
}

/// A temporary file with the rights that a plain file would have: others may share the cache.
fn temporary_file(directory: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.prefix("").tempfile_in(directory)
}

/// Notes that an entry was used, for the limit.
fn touch(file: &File) {
    let now = SystemTime::now();
    let recent = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age < TOUCH_AFTER);
    if !file.metadata().and_then(|data| data.modified()).is_ok_and(recent) {
        // Refused for files of others and in a read-only cache, whose owner decides what goes.
        let _ = file.set_modified(now);
    }
}

fn check_kind(kind: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match !kind.is_empty() && kind.len() <= 32 && kind.bytes().all(good) {
        true => Ok(()),
        false => Err(Error::Kind(kind.to_owned())),
    }
}

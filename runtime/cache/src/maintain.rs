//! Looking through a cache: listing, verifying, clearing.

use crate::store::root_name;
use crate::{Cache, Error, Key, Result, entry};
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A temporary file that is older belongs to a writer that died.
const STALE: Duration = Duration::from_secs(3600);

/// One entry.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use rtc_cache::{Cache, CacheConfig, Cleared, EntryInfo, KeyBuilder, CacheVerification};
/// let cache = Cache::open(CacheConfig::new(directory.path()))?;
/// let key = KeyBuilder::new("k/1").finish();
/// cache.put("tuning", &key, b"num_warps=8")?;
/// let all: Vec<EntryInfo> = cache.list()?;
/// assert_eq!((all[0].kind.as_str(), all[0].key), ("tuning", key));
/// assert_eq!(cache.peek(&all[0])?, b"num_warps=8");
/// let CacheVerification { good, problems, .. } = cache.verify()?;
/// assert!(good == 1 && problems.is_empty());
/// assert!(cache.remove("tuning", &key)?);
/// let Cleared { entries, .. } = cache.clear()?;
/// assert_eq!(entries, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Its kind.
    pub kind: String,
    /// Its key.
    pub key: Key,
    /// Its file.
    pub path: PathBuf,
    /// Length of the file.
    pub bytes: u64,
    /// When it was written or last used, to ten minutes.
    pub last_used: SystemTime,
}

/// The result of [`Cache::verify`].
#[derive(Debug, Default)]
pub struct CacheVerification {
    /// Entries that are as they were written.
    pub good: usize,
    /// Bytes of their files.
    pub bytes: u64,
    /// Those that are not, or cannot be read.
    pub problems: Vec<Error>,
    /// Temporary files of writers that died, which were removed.
    pub temporaries: usize,
}

/// The result of [`Cache::clear`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Entries of the present format.
    pub entries: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

impl Cache {
    /// All entries, by kind and key.
    pub fn list(&self) -> Result<Vec<EntryInfo>> {
        let mut entries = scan(self)?;
        entries.sort_by(|a, b| (&a.kind, a.key).cmp(&(&b.kind, b.key)));
        Ok(entries)
    }

    /// The content of an entry that was listed, without counting as a use of it and without removing it if it is corrupt.
    pub fn peek(&self, entry: &EntryInfo) -> Result<Vec<u8>> {
        let EntryInfo { kind, key, path, .. } = entry;
        let file = fs::read(path).map_err(Error::io("read cache entry", path))?;
        match entry::check(kind, key, &file) {
            Ok(()) => Ok(file[entry::HEADER..].to_vec()),
            Err(reason) => Err(Error::Corrupt { path: path.clone(), reason, removed: false }),
        }
    }

    /// Reads all entries and removes those that are corrupt, and what dead writers left.
    pub fn verify(&self) -> Result<CacheVerification> {
        let mut found =
            CacheVerification { temporaries: remove_stale_temporaries(self), ..CacheVerification::default() };
        for EntryInfo { kind, key, path, .. } in self.list()? {
            match self.read(&path) {
                Ok(Some((file, _))) => match entry::check(&kind, &key, &file) {
                    Ok(()) => {
                        found.good += 1;
                        found.bytes += file.len() as u64;
                    }
                    Err(reason) => {
                        let removed = self.remove_file(&path, file.len() as u64);
                        found.problems.push(Error::Corrupt { path, reason, removed });
                    }
                },
                // Another process removed it meanwhile.
                Ok(None) => {}
                Err(error) => found.problems.push(error),
            }
        }
        Ok(found)
    }

    /// Removes everything, of all formats, and nothing that is not a cache's: other files in the directory stay.
    pub fn clear(&self) -> Result<Cleared> {
        let entries = scan(self)?;
        let cleared = Cleared { entries: entries.len(), bytes: entries.iter().map(|entry| entry.bytes).sum::<u64>() };
        for item in items(self.directory())? {
            let name = item.file_name();
            let format = name.to_str().and_then(|name| name.strip_prefix("rtc-cache-")).and_then(|n| n.parse().ok());
            if format.is_some_and(|format| root_name(format) == name.to_string_lossy()) {
                remove_tree(&item.path())?;
            }
        }
        Ok(cleared)
    }
}

/// Writers may add to it meanwhile; what they add may stay.
fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

/// All files that have the name of an entry, in no order.
pub(crate) fn scan(cache: &Cache) -> Result<Vec<EntryInfo>> {
    let mut entries = Vec::new();
    for kind in items(&cache.entries())? {
        for shard in items(&kind.path())? {
            for file in items(&shard.path())? {
                entries.extend(info(&kind, &shard, &file));
            }
        }
    }
    Ok(entries)
}

fn info(kind: &DirEntry, shard: &DirEntry, file: &DirEntry) -> Option<EntryInfo> {
    let key = format!("{}{}", shard.file_name().to_str()?, file.file_name().to_str()?).parse().ok()?;
    // One that is gone was removed meanwhile.
    let data = file.metadata().ok().filter(|data| data.is_file())?;
    Some(EntryInfo {
        kind: kind.file_name().to_str()?.to_owned(),
        key,
        path: file.path(),
        bytes: data.len(),
        last_used: data.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    })
}

/// The content of a directory; empty if there is none.
fn items(directory: &Path) -> Result<Vec<DirEntry>> {
    let read = fs::read_dir(directory).and_then(|items| items.collect::<std::io::Result<Vec<_>>>());
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        read => read.map_err(Error::io("list the cache directory", directory)),
    }
}

/// Removes temporary files of dead writers; returns their number.
pub(crate) fn remove_stale_temporaries(cache: &Cache) -> usize {
    let now = SystemTime::now();
    let is_stale = |item: &DirEntry| {
        let modified = item.metadata().and_then(|data| data.modified());
        modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > STALE))
    };
    let all = items(&cache.root.join("tmp")).unwrap_or_default();
    all.iter().filter(|item| is_stale(item) && fs::remove_file(item.path()).is_ok()).count()
}

//! Locks, so that of several processes that miss the same entry only one makes it.
//!
//! They save work and are not needed for correctness: entries are right without them. So a process that waits too long,
//! or cannot lock at all, continues. The system frees the lock of a process that dies. Keys share 4096 files, which are
//! never removed: a file that is removed while others wait for it locks nothing.

use crate::Key;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// The right to make an entry, until it is dropped.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use rtc_cache::{Cache, CacheConfig, KeyBuilder, Lock};
/// use std::time::Duration;
/// let cache = Cache::open(CacheConfig::new(directory.path()))?;
/// let key = KeyBuilder::new("k/1").finish();
/// let lock: Option<Lock> = cache.lock(&key, Duration::from_secs(1));
/// assert!(lock.is_some_and(|lock| !lock.was_awaited()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lock {
    /// Closing it unlocks it.
    _file: File,
    awaited: bool,
}

impl Lock {
    /// Whether another process held it first, which may have made the entry.
    pub fn was_awaited(&self) -> bool {
        self.awaited
    }
}

pub(crate) fn acquire(directory: &Path, key: &Key, wait: Duration) -> Option<Lock> {
    let path = directory.join(&key.to_string()[..3]);
    let open = || OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = open().or_else(|_| fs::create_dir_all(directory).and_then(|()| open())).ok()?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    let mut awaited = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(Lock { _file: file, awaited }),
            Err(TryLockError::WouldBlock) => awaited = true,
            Err(TryLockError::Error(_)) => return None,
        }
        let left = wait.checked_sub(start.elapsed())?;
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

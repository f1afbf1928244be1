//! Errors of a cache. None of them prevents a kernel from being compiled and launched.

use std::io;
use std::path::{Path, PathBuf};

/// Why a cache, or an entry of it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The platform names no directory for caches.
    #[error("there is no home directory to keep a cache in; set RTC_CACHE_DIR to a directory")]
    NoDirectory,
    /// `RTC_CACHE_LIMIT` is not a size.
    #[error("RTC_CACHE_LIMIT is `{0}`, which is not a size such as 500M or 2G")]
    Limit(String),
    /// `RTC_CACHE_REMOTE_TIMEOUT` is no time.
    #[error("RTC_CACHE_REMOTE_TIMEOUT is `{0}`, which is not a number of milliseconds")]
    Timeout(String),
    /// The store that machines share failed or did not answer. The cache on disk goes on.
    #[error("the shared cache {store} is not used for now: {message}")]
    Remote {
        /// Its address.
        store: String,
        /// The message.
        message: String,
    },
    /// An entry of the shared store is damaged. It was not used.
    #[error("entry {name} of the shared cache {store} is corrupt ({reason}); it was not used and will be rewritten")]
    RemoteCorrupt {
        /// Its address.
        store: String,
        /// The name of the entry.
        name: String,
        /// The damage.
        reason: &'static str,
    },
    /// A kind that cannot be the name of a directory.
    #[error("`{0}` is not a kind of cache entries: those consist of a-z, 0-9 and `-`")]
    Kind(String),
    /// An entry is damaged. It was not used.
    #[error("cache entry {} is corrupt ({reason}); {}", path.display(), remedy(*removed))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: &'static str,
        /// Whether it has been removed.
        removed: bool,
    },
    /// An entry is longer than the whole cache may be.
    #[error("an entry of {bytes} bytes is not cached: the limit of the whole cache is {limit} bytes (RTC_CACHE_LIMIT)")]
    TooLarge {
        /// Length of the entry.
        bytes: u64,
        /// Limit of the cache.
        limit: u64,
    },
    /// The file system refuses.
    #[error("cannot {action} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The message of the system.
        source: io::Error,
    },
}

/// The result of a call of the cache.
///
/// ```
/// fn limit() -> rtc_cache::Result<u64> {
///     Ok(rtc_cache::CacheConfig::new("kernels").limit)
/// }
/// assert_eq!(limit()?, 2 << 30);
/// # Ok::<(), rtc_cache::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    /// Whether the cache may be read and only writing is refused, as for one that others fill.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use rtc_cache::{Cache, CacheConfig, KeyBuilder};
    /// let cache = Cache::open(CacheConfig::new(directory.path()))?;
    /// match cache.put("tuning", &KeyBuilder::new("k/1").finish(), b"num_warps=8") {
    ///     Err(error) if error.is_read_only() => println!("others fill it"),
    ///     other => other?,
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_read_only(&self) -> bool {
        matches!(self, Error::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
    }
}

fn remedy(removed: bool) -> &'static str {
    match removed {
        true => "it was removed and will be rebuilt",
        false => "it was not used; delete it, or run `rtc cache verify` with the right to write there",
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; `rtc cache clear` makes room, RTC_CACHE_DIR names another directory, RTC_CACHE_LIMIT a smaller size"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; RTC_CACHE_DIR names another directory"
        }
        _ => "",
    }
}

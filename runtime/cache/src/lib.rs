//! A cache on disk for compiled kernels and tuning results, shared by processes and, if the directory is, by machines.
//!
//! ```
//! use rtc_cache::{Cache, CacheConfig, KeyBuilder};
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let cache = Cache::open(CacheConfig::new(directory))?;
//! let key = KeyBuilder::new("tuning/1").text("device", "H200").number("rows", 4096).finish();
//! assert_eq!(cache.get("tuning", &key)?, None);
//! cache.put("tuning", &key, b"num_warps=8")?;
//! assert_eq!(cache.get("tuning", &key)?.as_deref(), Some(&b"num_warps=8"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An entry is one file, named by its key; there is no index that could disagree with the files. A file is created by a
//! rename, as a whole, and has a checksum over kind, key and content, which every reader checks: a writer that is
//! killed leaves at most a temporary file, and a file changed by a faulty disk or by hand is reported and never
//! returned. Writers of one key replace each other's files as a whole. The cache may lose an entry, for example the
//! latest in a power failure (nothing is synced), but never returns a wrong one. It trusts everyone who may write to
//! its directory.
//!
//! ```text
//! DIR/CACHEDIR.TAG                    tells backup programs to leave DIR out
//! DIR/rtc-cache-1/entries/KIND/ab/cd..  entries (entry.rs), under the first and the other digits of their keys
//! DIR/rtc-cache-1/tmp/                files that are being written
//! DIR/rtc-cache-1/locks/              what parallel compilations of one key wait for (lock.rs)
//! DIR/rtc-cache-1/usage               how many bytes there are, about (limit.rs)
//! ```
//!
//! With the feature `remote` the directory is backed by a store that machines share ([`CacheConfig::with_remote`],
//! `RTC_CACHE_REMOTE`): entries that are not on disk are looked up there, and new ones are written to both. Downloaded
//! entries are checked like files; a store that fails or is slow costs one time-out and one warning.
//!
//! The parts are from `tempfile` (temporary file and rename), `sha2`, `directories`, `opendal` and the file locks of
//! the standard library. Why not `cacache`: its index is a second file for each entry, in which a damaged line silently
//! reads as a miss, and a size limit, recency and `verify` would have had to be built around it. `foyer` keeps a file
//! per process, `moka` nothing on disk.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod entry;
mod error;
mod key;
mod limit;
mod lock;
mod maintain;
mod remote;
mod store;

pub use config::{CacheConfig, DEFAULT_LIMIT};
pub use error::{Error, Result};
pub use key::{Key, KeyBuilder};
pub use lock::Lock;
pub use maintain::{CacheVerification, Cleared, EntryInfo};
pub use store::{Cache, Fetched, Origin};

//! Keeping the cache within its limit.
//!
//! The total number of bytes is kept in a file to which every writer appends the size that it added, 8 bytes in one
//! write, so that writers never wait for each other. The total may be somewhat off, for example after a crash. So
//! before entries are evicted, and every 1024 records, the entries are counted, and the file is replaced by the right
//! number.

use crate::maintain::{self, EntryInfo};
use crate::{Cache, Result};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Records after which entries are counted.
const RECORDS: usize = 1024;

/// An entry was written.
pub(crate) fn written(cache: &Cache, path: &Path, bytes: u64) {
    // Whatever fails here, the entry is written; the next writer counts again.
    if append(cache, bytes as i64).is_none_or(|used| used > cache.limit) {
        let _ = shrink(cache, path);
    }
}

/// An entry was removed.
pub(crate) fn removed(cache: &Cache, bytes: u64) {
    let _ = append(cache, -(bytes as i64));
}

/// Appends a record; gives the sum, or none if the entries must be counted.
fn append(cache: &Cache, bytes: i64) -> Option<u64> {
    let path = cache.root.join("usage");
    let mut file = OpenOptions::new().append(true).open(&path).ok()?;
    file.write_all(&bytes.to_le_bytes()).ok()?;
    let records = fs::read(&path).ok()?;
    let (records, rest) = records.as_chunks::<8>();
    if !rest.is_empty() || records.len() > RECORDS {
        return None;
    }
    let sum = records.iter().map(|record| i128::from(i64::from_le_bytes(*record))).sum::<i128>();
    u64::try_from(sum).ok()
}

/// Counts the entries, and removes those that were not used for the longest time if they are too many: down to nine
/// tenths of the limit, so that not every writer has to. `kept`, the latest, stays.
fn shrink(cache: &Cache, kept: &Path) -> Result<()> {
    let mut entries = maintain::scan(cache)?;
    maintain::remove_stale_temporaries(cache);
    let mut used = entries.iter().map(|entry| entry.bytes).sum::<u64>();
    if used > cache.limit {
        entries.sort_by_key(|entry| entry.last_used);
        for EntryInfo { path, bytes, .. } in &entries {
            if used <= cache.limit / 10 * 9 {
                break;
            }
            if path != kept && fs::remove_file(path).is_ok() {
                used -= bytes;
            }
        }
    }
    cache.write(&cache.root.join("usage"), &[&used.to_le_bytes()])
}

//! The times of single configurations in the cache, each under a name of its own: processes on several machines that share a store
//! add to it at the same time, and one that dies loses only what it has not yet timed.

use crate::candidate::Candidate;
use crate::store::key_of;
use crate::tuned::{Entry, Record, Setting};
use rtc_cache::{Cache, KeyBuilder};

/// The kind of entries in the cache.
const KIND: &str = "tuning-record";

pub(crate) struct Records<'c> {
    cache: &'c Cache,
    base: KeyBuilder,
}

impl<'c> Records<'c> {
    /// Those of the kernel, device and key that `entry` is about.
    pub(crate) fn of(cache: &'c Cache, entry: &Entry) -> Records<'c> {
        Records { cache, base: key_of("tuning-record/1", entry) }
    }

    fn key(&self, setting: &Setting, code: &str, grid: [u32; 3]) -> rtc_cache::Key {
        let setting = serde_json::to_string(setting).unwrap_or_default();
        self.base.clone().text("setting", &setting).text("code", code).text("grid", &format!("{grid:?}")).finish()
    }

    /// The record of a configuration that compiles to this code and is launched on this grid. What cannot be read is timed again.
    pub(crate) fn get(&self, setting: &Setting, code: &str, grid: [u32; 3]) -> Option<Record> {
        let bytes = self.cache.get(KIND, &self.key(setting, code, grid)).ok()??;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        (record.setting == *setting && record.code == code).then_some(record)
    }

    /// Keeps all times; says what went wrong first.
    pub(crate) fn put_all(&self, entry: &Entry, candidates: &[Candidate]) -> Option<String> {
        let of = |record: &Record| candidates.iter().find(|c| Setting::of(&c.choice) == record.setting);
        entry.records.iter().find_map(|record| self.put(record, of(record)?.grid))
    }

    fn put(&self, record: &Record, grid: [u32; 3]) -> Option<String> {
        let bytes = serde_json::to_vec(record).unwrap_or_default();
        let kept = self.cache.put(KIND, &self.key(&record.setting, &record.code, grid), &bytes);
        kept.err().map(|error| format!("a result is not kept: {error}"))
    }
}

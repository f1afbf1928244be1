//! Results in the cache: one entry per device, kernel and key.

use crate::tuned::Entry;
use rtc_cache::{Cache, Key, KeyBuilder};

/// The kind of entries in the cache.
const KIND: &str = "tuning";

/// What identifies the kernel, device and key that `entry` is about.
pub(crate) fn key_of(format: &str, entry: &Entry) -> KeyBuilder {
    let arguments = serde_json::to_string(&entry.key).unwrap_or_default();
    KeyBuilder::new(format)
        .text("kernel", &entry.kernel)
        .text("device", &entry.device)
        .text("arch", &entry.arch)
        .text("signature", &entry.signature)
        .text("key", &arguments)
}

/// Where results are kept.
pub(crate) struct Store<'c> {
    cache: &'c Cache,
    key: Key,
}

impl<'c> Store<'c> {
    /// The place of the results for what `entry` is about.
    pub(crate) fn of(cache: &'c Cache, entry: &Entry) -> Store<'c> {
        Store { cache, key: key_of("tuning/1", entry).finish() }
    }

    /// What was found before; nothing where the entry cannot be read. What is damaged is reported by the cache and tuned again.
    pub(crate) fn get(&self) -> (Option<Entry>, Option<String>) {
        match self.cache.get(KIND, &self.key) {
            Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
                Ok(entry) => (Some(entry), None),
                Err(error) => (None, Some(format!("stored tuning results cannot be read: {error}"))),
            },
            Ok(None) => (None, None),
            Err(error) => (None, Some(error.to_string())),
        }
    }

    /// Keeps results, merged with what another process may have put there; says what went wrong.
    pub(crate) fn put(&self, entry: &Entry) -> Option<String> {
        let mut all = entry.clone();
        if let (Some(before), _) = self.get() {
            all.merge(&before);
            // The latest race had all of them at the same time.
            all.winner = entry.winner.clone();
        }
        let bytes = serde_json::to_vec(&all).unwrap_or_default();
        self.cache.put(KIND, &self.key, &bytes).err().map(|error| format!("results are not kept: {error}"))
    }
}

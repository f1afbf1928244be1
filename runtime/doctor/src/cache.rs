//! The cache of compiled kernels on disk, and the store that machines share behind it.

use crate::Check;
use rtc_cache::{Cache, CacheConfig, Error, KeyBuilder};

/// Writes, reads and removes an entry.
pub(crate) fn checks() -> Vec<Check> {
    let config = match CacheConfig::from_env() {
        Ok(config) => config,
        Err(error) => {
            let remedy = "correct or unset RTC_CACHE_DIR, RTC_CACHE_LIMIT and RTC_CACHE_REMOTE_TIMEOUT";
            return vec![Check::warning("cache", error.to_string(), remedy)];
        }
    };
    let remote = config.remote.clone();
    let on_disk = CacheConfig { remote: None, ..config.clone() };
    let mut checks = vec![of_disk(on_disk)];
    if let Some(uri) = remote {
        checks.push(of_store(&uri, config));
    }
    checks
}

fn of_disk(config: CacheConfig) -> Check {
    let (directory, limit) = (config.directory.display().to_string(), config.limit);
    let remedy = "every kernel is compiled again in each process; make the directory writable, or set RTC_CACHE_DIR to one that is";
    let cache = match Cache::open(config) {
        Ok(cache) => cache,
        Err(error) => return Check::warning("cache", error.to_string(), remedy),
    };
    if let Err(error) = round_trip(&cache) {
        return Check::warning("cache", error.to_string(), remedy);
    }
    let entries = match cache.list() {
        Ok(entries) => entries,
        Err(error) => return Check::warning("cache", error.to_string(), remedy),
    };
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let text = format!(
        "{directory} is writable and has {} entries, {} of at most {}",
        entries.len(),
        mebibytes(bytes),
        mebibytes(limit)
    );
    Check::ok("cache", text)
}

fn of_store(uri: &str, config: CacheConfig) -> Check {
    // An empty directory, so that the answer comes from the store.
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            let remedy = "set TMPDIR to a folder that can be written to";
            return Check::warning("shared store", format!("no temporary folder: {error}"), remedy);
        }
    };
    let directory = folder.path().to_path_buf();
    match Cache::open(CacheConfig { directory, ..config }).and_then(|cache| round_trip(&cache)) {
        Ok(()) => Check::ok("shared store", format!("{uri} can be read and written")),
        Err(error) => {
            let remedy = "kernels are compiled or loaded from disk without it; correct RTC_CACHE_REMOTE, or unset it";
            Check::warning("shared store", format!("{uri}: {error}"), remedy)
        }
    }
}

/// Whether a cache gives back what it was given.
fn round_trip(cache: &Cache) -> Result<(), Error> {
    let key = KeyBuilder::new("doctor/1").number("process", std::process::id()).finish();
    cache.put("doctor", &key, b"rtc doctor")?;
    cache.get("doctor", &key)?;
    cache.remove("doctor", &key)?;
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_cache_that_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = of_disk(CacheConfig::new(folder.path()));
        assert_eq!(good.status, Status::Ok, "{good:?}");
        assert!(good.text.contains("has 0 entries"), "the entry of the check is removed: {}", good.text);
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("writable");
        let bad = of_disk(CacheConfig::new(&file));
        assert_eq!(bad.status, Status::Warning, "{bad:?}");
        assert!(bad.text.contains("file") && bad.remedy.is_some(), "{bad:?}");
    }

    #[test]
    fn a_store_that_cannot_be_reached_is_reported() {
        let config = CacheConfig::new("unused").with_remote("nothing://here");
        let bad = of_store("nothing://here", config);
        assert_eq!(bad.status, Status::Warning, "{bad:?}");
    }
}

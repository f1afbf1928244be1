//! Where a cache lies and how large it may become.

use crate::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// How many bytes a cache may have where nothing else is said: 2 GiB, some 20,000 kernels.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// Where a cache lies and how large it may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The directory; made if it is not there.
    pub directory: PathBuf,
    /// About how many bytes the entries may have together; those not used for the longest time go first.
    pub limit: u64,
}

impl CacheConfig {
    /// A cache in this directory, of the default limit.
    pub fn new(directory: impl Into<PathBuf>) -> CacheConfig {
        CacheConfig { directory: directory.into(), limit: DEFAULT_LIMIT }
    }

    /// Sets the limit in bytes.
    pub fn with_limit(mut self, bytes: u64) -> CacheConfig {
        self.limit = bytes;
        self
    }

    /// As the environment says: `RTC_CACHE_DIR`, or else the platform's directory for caches (`~/.cache/rtc` on Linux,
    /// with `XDG_CACHE_HOME` in the place of `~/.cache`); `RTC_CACHE_LIMIT`, such as `500M` or `2G`.
    pub fn from_env() -> Result<CacheConfig> {
        CacheConfig::from_variables(|name| std::env::var_os(name))
    }

    /// Whether `RTC_CACHE_DIR` names the directory, so that somebody wants a cache just there.
    pub fn is_named_by_env() -> bool {
        std::env::var_os("RTC_CACHE_DIR").is_some_and(|value| !value.is_empty())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<CacheConfig> {
        let named = |name| variable(name).filter(|value| !value.is_empty());
        let directory = match named("RTC_CACHE_DIR") {
            Some(directory) => directory.into(),
            None => match directories::ProjectDirs::from("", "", "rtc") {
                Some(project) => project.cache_dir().to_owned(),
                None => return Err(Error::NoDirectory),
            },
        };
        let limit = match named("RTC_CACHE_LIMIT") {
            Some(text) => {
                let text = text.to_string_lossy();
                size(&text).ok_or_else(|| Error::Limit(text.clone().into_owned()))?
            }
            None => DEFAULT_LIMIT,
        };
        Ok(CacheConfig { directory, limit })
    }
}

/// A number of bytes: `4096`, `500M`, `2G`.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides() {
        let config = |pairs: &[(&str, &str)]| {
            CacheConfig::from_variables(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
        };
        let named = config(&[("RTC_CACHE_DIR", "/x/y"), ("RTC_CACHE_LIMIT", "3 k")]).unwrap();
        assert_eq!(named, CacheConfig::new("/x/y").with_limit(3 << 10));
        let error = config(&[("RTC_CACHE_DIR", "/x"), ("RTC_CACHE_LIMIT", "much")]).unwrap_err();
        assert_eq!(error.to_string(), "RTC_CACHE_LIMIT is `much`, which is not a size such as 500M or 2G");
        assert_eq!(config(&[("RTC_CACHE_DIR", "")]).ok(), config(&[]).ok());
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("500M"), Some(500 << 20));
        assert_eq!(size(" 2g "), Some(2 << 30));
        for bad in ["", "M", "-1", "1.5G", "1GB", "99999999999T"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}

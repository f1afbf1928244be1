//! Where a cache lies and how large it may become.

use crate::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How many bytes a cache may have where nothing else is said: 2 GiB, some 20,000 kernels.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// How long an answer of a shared store is waited for where nothing else is said.
const DEFAULT_REMOTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a cache lies and how large it may become.
///
/// ```
/// use rtc_cache::{CacheConfig, DEFAULT_LIMIT};
/// use std::time::Duration;
/// let config = CacheConfig::new("/tmp/kernels");
/// assert_eq!(config.limit, DEFAULT_LIMIT);
/// let shared = config.with_limit(1 << 20).with_remote("fs:///srv/rtc").with_remote_timeout(Duration::from_millis(500));
/// assert_eq!(shared.remote.as_deref(), Some("fs:///srv/rtc"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The directory; made if it is not there.
    pub directory: PathBuf,
    /// About how many bytes the entries may have together; those not used for the longest time go first.
    pub limit: u64,
    /// The address of a store that machines share, which needs the feature `remote`.
    pub remote: Option<String>,
    /// How long an answer of that store is waited for.
    pub remote_timeout: Duration,
}

impl CacheConfig {
    /// A cache in this directory, of the default limit.
    pub fn new(directory: impl Into<PathBuf>) -> CacheConfig {
        CacheConfig {
            directory: directory.into(),
            limit: DEFAULT_LIMIT,
            remote: None,
            remote_timeout: DEFAULT_REMOTE_TIMEOUT,
        }
    }

    /// Sets the address of a store that machines share: `fs:///srv/rtc`, `redis://host:6379/0/rtc`, and with the
    /// feature `remote-http` `s3://bucket/rtc?region=eu-west-1`, `webdav://host/rtc` (by HTTPS). Needs the feature
    /// `remote`; without it the first use reports that it is missing, and the cache is on disk only.
    pub fn with_remote(mut self, uri: impl Into<String>) -> CacheConfig {
        self.remote = Some(uri.into());
        self
    }

    /// Sets how long an answer of that store is waited for.
    pub fn with_remote_timeout(mut self, timeout: Duration) -> CacheConfig {
        self.remote_timeout = timeout;
        self
    }

    /// Sets the limit in bytes.
    pub fn with_limit(mut self, bytes: u64) -> CacheConfig {
        self.limit = bytes;
        self
    }

    /// As the environment says: `RTC_CACHE_DIR`, or else the platform's directory for caches (`~/.cache/rtc` on Linux,
    /// with `XDG_CACHE_HOME` in the place of `~/.cache`); `RTC_CACHE_LIMIT`, such as `500M` or `2G`; `RTC_CACHE_REMOTE`, the
    /// address of a store that machines share, and `RTC_CACHE_REMOTE_TIMEOUT`, milliseconds.
    ///
    /// ```
    /// use rtc_cache::CacheConfig;
    /// let config = CacheConfig::from_env()?;
    /// if CacheConfig::is_named_by_env() {
    ///     assert_eq!(Some(config.directory.as_os_str()), std::env::var_os("RTC_CACHE_DIR").as_deref());
    /// }
    /// # Ok::<(), rtc_cache::Error>(())
    /// ```
    pub fn from_env() -> Result<CacheConfig> {
        CacheConfig::from_variables(|name| std::env::var_os(name))
    }

    /// Whether `RTC_CACHE_DIR` names the directory, so that the user expects a cache there.
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
        let remote = named("RTC_CACHE_REMOTE").map(|uri| uri.to_string_lossy().into_owned());
        let remote_timeout = match named("RTC_CACHE_REMOTE_TIMEOUT") {
            Some(text) => {
                let text = text.to_string_lossy();
                let milliseconds = text.trim().parse::<u64>().ok().filter(|ms| *ms > 0);
                Duration::from_millis(milliseconds.ok_or_else(|| Error::Timeout(text.clone().into_owned()))?)
            }
            None => DEFAULT_REMOTE_TIMEOUT,
        };
        Ok(CacheConfig { directory, limit, remote, remote_timeout })
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
        let shared = [("RTC_CACHE_DIR", "/x"), ("RTC_CACHE_REMOTE", "fs:///s"), ("RTC_CACHE_REMOTE_TIMEOUT", "50")];
        let expected = CacheConfig::new("/x").with_remote("fs:///s").with_remote_timeout(Duration::from_millis(50));
        assert_eq!(config(&shared).unwrap(), expected);
        let error = config(&[("RTC_CACHE_DIR", "/x"), ("RTC_CACHE_REMOTE_TIMEOUT", "2s")]).unwrap_err();
        assert_eq!(error.to_string(), "RTC_CACHE_REMOTE_TIMEOUT is `2s`, which is not a number of milliseconds");
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

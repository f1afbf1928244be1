//! A store that machines share, behind the cache on disk.
//!
//! It holds the same files under the same names as the directory: downloaded entries are checked as if they came from
//! disk. A store that fails or does not answer in time is not used for a while, so that it costs one time-out and one
//! warning. Without the feature `remote` there is only the message that it is missing.

use crate::{Error, Key, Result, entry};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a store that failed is left alone.
const PAUSE: Duration = Duration::from_secs(60);

/// A shared store; connected at the first request.
pub(crate) struct Remote {
    uri: String,
    timeout: Duration,
    store: OnceLock<std::result::Result<store::Store, String>>,
    /// When it failed the last time.
    failed: Mutex<Option<Instant>>,
}

impl Remote {
    pub(crate) fn new(uri: String, timeout: Duration) -> Remote {
        Remote { uri, timeout, store: OnceLock::new(), failed: Mutex::default() }
    }

    /// The file of an entry, checked; none where it is not there or the store is left alone.
    pub(crate) fn get(&self, kind: &str, key: &Key) -> Result<Option<Vec<u8>>> {
        let name = name(kind, key);
        let Some(bytes) = self.ask(|store, timeout| store.read(&name, timeout))?.flatten() else { return Ok(None) };
        match entry::check(kind, key, &bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(reason) => Err(Error::RemoteCorrupt { store: self.to_string(), name, reason }),
        }
    }

    /// Writes the file of an entry.
    pub(crate) fn put(&self, kind: &str, key: &Key, file: Vec<u8>) -> Result<()> {
        let name = name(kind, key);
        self.ask(|store, timeout| store.write(&name, file, timeout)).map(|_| ())
    }

    /// Removes an entry, where the store can.
    pub(crate) fn remove(&self, kind: &str, key: &Key) -> Result<()> {
        let name = name(kind, key);
        self.ask(|store, timeout| store.delete(&name, timeout)).map(|_| ())
    }

    /// The answer of the store; `None` while it is not used.
    fn ask<T>(
        &self,
        question: impl FnOnce(&store::Store, Duration) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        let last = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if last().is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(None);
        }
        let store = self.store.get_or_init(|| store::Store::connect(&self.uri));
        let answer = store.as_ref().map_err(String::clone).and_then(|store| question(store, self.timeout));
        answer.map(Some).or_else(|message| {
            // Of several threads that wait for it at the same time one reports.
            let mut last = last();
            let is_known = last.is_some_and(|at| at.elapsed() < PAUSE);
            *last = Some(Instant::now());
            if is_known { Ok(None) } else { Err(Error::Remote { store: self.to_string(), message }) }
        })
    }
}

/// The name of an entry in the store: that of its file below the directory of the cache.
fn name(kind: &str, key: &Key) -> String {
    let key = key.to_string();
    format!("{}/{kind}/{}/{}", crate::store::root_name(entry::FORMAT), &key[..2], &key[2..])
}

/// Its address without what may be a password.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.uri.split_once("://").unwrap_or(("", &self.uri));
        let rest = rest.split('?').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or_default();
        match scheme {
            "" => write!(f, "{host}{path}"),
            _ => write!(f, "{scheme}://{host}{path}"),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({self})")
    }
}

/// The store by OpenDAL, on a thread of its own: callers wait for an answer or for the time-out, whether or not they
/// run on another asynchronous runtime.
#[cfg(feature = "remote")]
mod store {
    use opendal::{ErrorKind, Operator};
    use std::future::Future;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    type Answer<T> = std::result::Result<T, String>;

    pub(super) struct Store {
        operator: Operator,
        /// Taken when it is dropped.
        runtime: Option<Runtime>,
    }

    impl Store {
        pub(super) fn connect(uri: &str) -> Answer<Store> {
            let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("rtc-cache").enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            // Some services look for a runtime while they are made.
            let operator = {
                let _entered = runtime.enter();
                Operator::from_uri(uri).map_err(|error| error.to_string())?
            };
            Ok(Store { operator, runtime: Some(runtime) })
        }

        pub(super) fn read(&self, name: &str, timeout: Duration) -> Answer<Option<Vec<u8>>> {
            let (operator, name) = (self.operator.clone(), name.to_owned());
            self.wait(timeout, async move {
                match operator.read(&name).await {
                    Ok(bytes) => Ok(Some(bytes.to_vec())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            })
        }

        pub(super) fn write(&self, name: &str, file: Vec<u8>, timeout: Duration) -> Answer<()> {
            let (operator, name) = (self.operator.clone(), name.to_owned());
            self.wait(timeout, async move { operator.write(&name, file).await.map(|_| ()) })
        }

        pub(super) fn delete(&self, name: &str, timeout: Duration) -> Answer<()> {
            let (operator, name) = (self.operator.clone(), name.to_owned());
            self.wait(timeout, async move { operator.delete(&name).await })
        }

        fn wait<T: Send + 'static>(
            &self,
            timeout: Duration,
            work: impl Future<Output = opendal::Result<T>> + Send + 'static,
        ) -> Answer<T> {
            let Some(runtime) = &self.runtime else { return Err("it was closed".into()) };
            let (sender, receiver) = channel();
            let task = runtime.spawn(async move {
                // The caller may have given up.
                let _ = sender.send(work.await);
            });
            match receiver.recv_timeout(timeout) {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(RecvTimeoutError::Timeout) => {
                    task.abort();
                    Err(format!("no answer within {timeout:?} (RTC_CACHE_REMOTE_TIMEOUT)"))
                }
                Err(RecvTimeoutError::Disconnected) => Err("the request was dropped".into()),
            }
        }
    }

    impl Drop for Store {
        fn drop(&mut self) {
            // To wait for it is forbidden on threads of other runtimes.
            if let Some(runtime) = self.runtime.take() {
                runtime.shutdown_background();
            }
        }
    }
}

/// The placeholder for the store in a program that was built without it.
#[cfg(not(feature = "remote"))]
mod store {
    use std::time::Duration;

    /// There is none.
    pub(super) enum Store {}

    impl Store {
        pub(super) fn connect(_uri: &str) -> Result<Store, String> {
            Err("this program was built without the feature `remote` of rtc-cache".into())
        }

        pub(super) fn read(&self, _name: &str, _timeout: Duration) -> Result<Option<Vec<u8>>, String> {
            match *self {}
        }

        pub(super) fn write(&self, _name: &str, _file: Vec<u8>, _timeout: Duration) -> Result<(), String> {
            match *self {}
        }

        pub(super) fn delete(&self, _name: &str, _timeout: Duration) -> Result<(), String> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (uri, shown) in [
            ("redis://user:secret@host:6379/1/a?password=secret", "redis://host:6379/1/a"),
            ("fs:///srv/rtc", "fs:///srv/rtc"),
            ("s3://bucket?secret_access_key=x", "s3://bucket"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(Remote::new(uri.into(), Duration::ZERO).to_string(), shown);
        }
    }

    /// The first call reports the error, the others continue without it.
    #[test]
    fn a_store_that_fails_is_told_of_once() {
        let remote = Remote::new("no-such-service://x".into(), Duration::from_secs(1));
        let key = crate::KeyBuilder::new("k").finish();
        let error = remote.get("kernel", &key).unwrap_err();
        assert!(error.to_string().starts_with("the shared cache no-such-service://x is not used for now: "), "{error}");
        assert_eq!(remote.get("kernel", &key).unwrap(), None);
        assert!(remote.put("kernel", &key, vec![1]).is_ok() && remote.remove("kernel", &key).is_ok());
    }
}

//! The way to GPUs: what the CUDA driver has. Without the feature `cuda` there are none.

use super::Backend;
use crate::Result;
use std::sync::Arc;

#[cfg(feature = "cuda")]
pub(crate) use super::cuda::{ordinal_of, supported_version, visible_count};

/// The GPU of that number.
#[cfg(feature = "cuda")]
pub(crate) fn open(ordinal: usize) -> Result<Arc<dyn Backend>> {
    Ok(super::cuda::Context::open(ordinal)?)
}

#[cfg(not(feature = "cuda"))]
pub(crate) use absent::{open, ordinal_of, supported_version, visible_count};

#[cfg(not(feature = "cuda"))]
mod absent {
    use super::{Arc, Backend, Result};
    use crate::Error;

    fn absent<T>() -> Result<T> {
        Err(Error::NoDevice("this program was built without the feature `cuda` of rtc-runtime".into()))
    }

    pub(crate) fn open(_: usize) -> Result<Arc<dyn Backend>> {
        absent()
    }

    pub(crate) fn visible_count() -> Result<usize> {
        Ok(0)
    }

    pub(crate) fn supported_version() -> Result<(u32, u32)> {
        absent()
    }

    pub(crate) fn ordinal_of(_: u64) -> Result<usize> {
        absent()
    }
}

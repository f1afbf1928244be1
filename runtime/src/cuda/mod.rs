//! The CUDA driver: contexts, memory, modules, streams, events, launches.
//!
//! `unsafe` stands here because every call is one of the driver's C functions. The driver library is loaded when the first
//! CUDA device is opened, so a program that contains this module builds and runs where there is no CUDA; [`Context::open`]
//! then gives an error. Without the feature `cuda`, `cuda_absent.rs` stands in its place.
//!
//! Invariants: handles are made by the driver and freed exactly once, in `Drop`; every handle keeps its context alive;
//! each function makes the context current first, so any thread may call it.
#![allow(unsafe_code)]

mod module;
mod pinned;
mod stream;
mod tensor_map;

pub(crate) use module::{Launch, Module};
pub(crate) use pinned::Pinned;
pub(crate) use stream::{Event, Graph, Stream};
pub(crate) use tensor_map::encode_tensor_map;

use crate::{Error, Result};
use cudarc::driver::{result, sys};
use std::ffi::{CStr, c_int, c_uint};
use std::sync::Arc;

/// The primary context of one device.
#[derive(Debug)]
pub(crate) struct Context {
    ordinal: usize,
    device: sys::CUdevice,
    raw: sys::CUcontext,
    name: String,
    capability: u32,
    shared_limit: u32,
    multiprocessors: u32,
}

// SAFETY: contexts of the driver may be used from any thread, as long as they are made current there; `bind` does that.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the device of that number.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Context>> {
        let count = device_count()?;
        if ordinal >= count {
            return Err(Error::NoDevice(format!("there is no CUDA device {ordinal}; the driver sees {count}")));
        }
        let device = check("cuDeviceGet", result::device::get(ordinal as c_int))?;
        let name = check("cuDeviceGetName", result::device::get_name(device))?;
        use sys::CUdevice_attribute_enum as Attribute;
        let attribute = |attribute| {
            // SAFETY: `device` comes from the driver.
            check("cuDeviceGetAttribute", unsafe { result::device::get_attribute(device, attribute) })
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // SAFETY: `device` comes from the driver; released in `Drop`.
        let raw = check("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let capability = (major * 10 + minor) as u32;
        Ok(Arc::new(Context { ordinal, device, raw, name, capability, shared_limit: shared as u32, multiprocessors }))
    }

    /// Number of the device.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The device's name as its maker gives it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether that is the driver's handle of this context.
    pub(crate) fn is_context(&self, raw: sys::CUcontext) -> bool {
        self.raw == raw
    }

    /// Compute capability times ten.
    pub(crate) fn capability(&self) -> u32 {
        self.capability
    }

    /// The most shared memory that a block may ask for.
    pub(crate) fn shared_limit(&self) -> u32 {
        self.shared_limit
    }

    /// Multiprocessors.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    fn bind(&self) -> Result<()> {
        // SAFETY: `raw` is retained for the life of `self`.
        check("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.raw) })
    }

    /// Allocates device memory.
    pub(crate) fn alloc(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        // SAFETY: a plain allocation; the caller frees it with `free`.
        match check("cuMemAlloc", unsafe { result::malloc_sync(bytes.max(1)) }) {
            Err(Error::Cuda { call, code, name, text, .. }) => {
                let free = result::mem_get_info().map(|(free, _)| free).unwrap_or(0);
                let detail = format!("; needed {bytes} bytes, available {free}");
                Err(Error::Cuda { call, code, name, text, detail })
            }
            other => other,
        }
    }

    /// Frees device memory, after all work that uses it.
    pub(crate) fn free(&self, address: u64) {
        // An error here was caused by earlier work and is reported by the next call that can report it.
        if self.bind().is_ok() {
            // SAFETY: `address` comes from `alloc` and its buffer is being dropped.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    /// Copies to the device.
    pub(crate) fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller checked that the range lies within the buffer.
        check("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(address, data) })
    }

    /// Fills device memory with zeros.
    pub(crate) fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller gives a range of a buffer.
        check("cuMemsetD8", unsafe { result::memset_d8_sync(address, 0, bytes) })
    }

    /// Copies from the device.
    pub(crate) fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller checked that the range lies within the buffer.
        check("cuMemcpyDtoH", unsafe { result::memcpy_dtoh_sync(data, address) })
    }

    /// Waits for all work of the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        check("cuCtxSynchronize", result::ctx::synchronize())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// How many CUDA devices there are; an error where there is no driver.
pub(crate) fn device_count() -> Result<usize> {
    // SAFETY: only tries to open the library. Without this probe the first call of the driver would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDevice("no CUDA driver was found (libcuda.so.1 cannot be loaded)".into()));
    }
    check("cuInit", result::init())?;
    Ok(check("cuDeviceGetCount", result::device::get_count())? as usize)
}

#[inline]
fn check<T>(call: &'static str, status: std::result::Result<T, result::DriverError>) -> Result<T> {
    status.map_err(|error| failed(call, error))
}

#[cold]
fn failed(call: &'static str, error: result::DriverError) -> Error {
    let text = |t: std::result::Result<&CStr, result::DriverError>| match t {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => "unknown error".to_owned(),
    };
    let code = error.0 as c_uint;
    Error::Cuda { call, code, name: text(error.error_name()), text: text(error.error_string()), detail: String::new() }
}

fn with_log(error: Error, log: String) -> Error {
    match error {
        Error::Cuda { call, code, name, text, .. } if !log.is_empty() => {
            Error::Cuda { call, code, name, text, detail: format!("\n{log}") }
        }
        other => other,
    }
}

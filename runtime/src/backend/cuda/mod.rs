//! The CUDA driver: contexts, memory, modules, streams, events, launches.
//!
//! `unsafe` stands here because every call is one of the driver's C functions. The driver library is loaded when the first
//! CUDA device is opened, so a program that contains this module builds and runs where there is no CUDA; [`Context::open`]
//! then gives an error.
//!
//! Invariants: handles are made by the driver and freed exactly once, in `Drop`; every handle keeps its context alive;
//! each function makes the context current first, so any thread may call it.
#![allow(unsafe_code)]

mod ahead;
#[cfg(feature = "jit")]
pub(crate) mod assemble;
mod assembled;
mod few_blocks;
mod load;
mod module;
mod occupancy;
mod pinned;
mod scratch;
mod stream;
mod tensor_map;

use module::Module;
use pinned::Pinned;
use rtc_abi::SmLimits;
pub(crate) use stream::Stream;

use super::{Backend, BackendStream, Code, DeviceKind, Form, Image, MAP_BYTES, MapError, PinnedMemory, Place};
use crate::{Error, Result};
use cudarc::driver::{result, sys};
use rtc_abi::Arch;
use std::ffi::{CStr, c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// The primary context of one device.
#[derive(Debug)]
pub(crate) struct Context {
    ordinal: usize,
    device: sys::CUdevice,
    raw: sys::CUcontext,
    name: String,
    capability: u32,
    /// Whether launches may overlap, also in graphs.
    overlaps: bool,
    driver_version: (u32, u32),
    /// Whether the driver has a pool of memory for it.
    has_pool: bool,
    shared_limit: u32,
    sm_count: u32,
    /// What one of them holds.
    sm_limits: SmLimits,
    /// That of the default stream.
    scratch: scratch::Scratch,
    /// Streams besides the default one that were made here and live.
    streams: AtomicUsize,
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
        let sm_count = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let has_pool = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let sm_limits = SmLimits {
            threads: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)? as u32,
            blocks: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)? as u32,
            shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)? as u32,
            reserved_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)? as u32,
        };
        // SAFETY: `device` comes from the driver; released in `Drop`.
        let raw = check("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let capability = (major * 10 + minor) as u32;
        let driver = driver_version();
        let overlaps = capability >= 90 && driver >= OVERLAP_DRIVER;
        let (shared_limit, scratch) = (shared as u32, scratch::Scratch::default());
        Ok(Arc::new(Context {
            ordinal,
            device,
            raw,
            name,
            capability,
            overlaps,
            driver_version: parts(driver),
            has_pool,
            shared_limit,
            sm_count,
            sm_limits,
            scratch,
            streams: AtomicUsize::new(0),
        }))
    }

    /// Whether that is the driver's handle of this context.
    #[cfg(feature = "cudarc")]
    pub(crate) fn is_context(&self, raw: sys::CUcontext) -> bool {
        self.raw == raw
    }

    /// Whether launches may begin before the work before them has ended: devices before 9.0 cannot, nor graphs of old drivers.
    fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// What an SM holds.
    fn sm_limits(&self) -> SmLimits {
        self.sm_limits
    }

    /// The version of CUDA that the driver has, and with it the assembler in it.
    fn driver_version(&self) -> (u32, u32) {
        self.driver_version
    }

    /// Compute capability times ten.
    fn capability(&self) -> u32 {
        self.capability
    }

    /// The most shared memory that a block may ask for.
    fn shared_limit(&self) -> u32 {
        self.shared_limit
    }

    fn bind(&self) -> Result<()> {
        // SAFETY: `raw` is retained for the life of `self`.
        check("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.raw) })
    }
}

impl Backend for Context {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cuda(self.ordinal)
    }

    fn name(&self) -> String {
        format!("cuda:{} ({})", self.ordinal, self.name)
    }

    fn model(&self) -> String {
        self.name.clone()
    }

    fn compute_capability(&self) -> (u32, u32) {
        (self.capability / 10, self.capability % 10)
    }

    fn arch(&self) -> Arch {
        // Targets of capability 9.0 and above have an architecture-specific feature set.
        Arch { capability: self.capability, is_specific: self.capability >= 90 }
    }

    fn memory_info(&self) -> Result<(u64, u64)> {
        self.bind()?;
        let (free, total) = check("cuMemGetInfo", result::mem_get_info())?;
        Ok((free as u64, total as u64))
    }

    fn uuid(&self) -> Result<[u8; 16]> {
        let uuid = check("cuDeviceGetUuid", result::device::get_uuid(self.device))?;
        Ok(uuid.bytes.map(|byte| byte as u8))
    }

    fn sm_count(&self) -> u32 {
        self.sm_count
    }

    fn alloc(&self, bytes: usize, _name: &str) -> Result<u64> {
        self.bind()?;
        // SAFETY: a plain allocation; the caller frees it with `free`.
        let address = check("cuMemAlloc", unsafe { result::malloc_sync(bytes.max(1)) });
        address.map_err(|error| without_memory(error, bytes))
    }

    fn free(&self, address: u64) {
        // An error here was caused by earlier work and is reported by the next call that can report it.
        if self.bind().is_ok() {
            // SAFETY: `address` comes from `alloc` and its buffer is being dropped.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller checked that the range lies within the buffer.
        check("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(address, data) })
    }

    fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller gives a range of a buffer.
        check("cuMemsetD8", unsafe { result::memset_d8_sync(address, 0, bytes) })
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller gives ranges of buffers.
        check("cuMemcpyDtoD", unsafe { result::memcpy_dtod_sync(to, from, bytes) })
    }

    fn copy_from(&self, to: u64, other: &dyn Backend, from: u64, bytes: usize) -> Result<()> {
        let any: &dyn std::any::Any = other;
        let Some(other) = any.downcast_ref::<Context>() else {
            let mut data = vec![0; bytes];
            other.read(from, &mut data)?;
            return self.write(to, &data);
        };
        other.synchronize()?;
        self.bind()?;
        // SAFETY: the caller gives ranges of buffers of the two devices.
        let copied = unsafe { sys::cuMemcpyPeer(to, self.raw, from, other.raw, bytes) }.result();
        check("cuMemcpyPeer", copied)?;
        // SAFETY: as of any stream; the driver does not wait for a copy between devices.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(std::ptr::null_mut()) })
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller checked that the range lies within the buffer.
        check("cuMemcpyDtoH", unsafe { result::memcpy_dtoh_sync(data, address) })
    }

    fn synchronize(&self) -> Result<()> {
        self.bind()?;
        check("cuCtxSynchronize", result::ctx::synchronize())
    }

    fn set_pool_release_threshold(&self, bytes: u64) -> Result<()> {
        if !self.has_pool {
            return Ok(());
        }
        // SAFETY: the device is one of the driver.
        let pool = check("cuDeviceGetMemPool", unsafe { result::device::get_mem_pool(self.device) })?;
        let (attribute, mut bytes) = (sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes);
        // SAFETY: the pool is live, and the attribute is a `cuuint64_t`, which the driver reads.
        let status = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut bytes).cast()) };
        check("cuMemPoolSetAttribute", status.result())
    }

    fn pinned(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>> {
        Ok(Box::new(Pinned::alloc(&self, bytes)?))
    }

    fn load(self: Arc<Self>, image: &Image<'_>) -> Result<Arc<dyn Code>> {
        Ok(Arc::new(load::load(&self, image)?))
    }

    fn encode_tensor_map(&self, form: &Form, place: &Place) -> std::result::Result<[u8; MAP_BYTES], MapError> {
        tensor_map::encode(self, form, place).map_err(MapError::Failed)
    }

    fn default_stream(self: Arc<Self>) -> Box<dyn BackendStream> {
        Box::new(Stream::default_of(&self))
    }

    fn stream(self: Arc<Self>, priority: u8) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(Stream::create(&self, priority.into())?))
    }

    fn capturing(self: Arc<Self>) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(Stream::capturing(&self)?))
    }

    fn adopt_stream(self: Arc<Self>, handle: u64) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(Stream::adopt(&self, handle)))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.drop_scratch();
        // SAFETY: retained once in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// How many CUDA devices there are; an error where there is no driver.
fn device_count() -> Result<usize> {
    if !is_driver_there() {
        return Err(Error::NoDevice("no CUDA driver was found (libcuda.so.1 cannot be loaded)".into()));
    }
    check("cuInit", result::init())?;
    let version = driver_version();
    if version < OLDEST_DRIVER {
        return Err(Error::NoDevice(format!(
            "the CUDA driver is too old: it is one for CUDA {}, and CUDA {} is needed; update the driver",
            shown(version),
            shown(OLDEST_DRIVER)
        )));
    }
    Ok(check("cuDeviceGetCount", result::device::get_count())? as usize)
}

/// The same, but 0 where there is no driver, and where it sees no GPU.
pub(crate) fn visible_count() -> Result<usize> {
    /// The driver starts only where it sees a GPU.
    const NO_GPU: c_uint = 100;
    if !is_driver_there() {
        return Ok(0);
    }
    match device_count() {
        Err(Error::Cuda { code: NO_GPU, .. }) => Ok(0),
        count => count,
    }
}

/// The version of CUDA that the driver has, as major and minor.
pub(crate) fn supported_version() -> Result<(u32, u32)> {
    // No driver, and one that is too old, are errors of this call.
    device_count()?;
    Ok(parts(driver_version()))
}

/// Whether the library of the driver can be loaded. Without this probe the first call of cudarc would panic, where it loads the
/// library itself; cudarc's own probe is missing where another crate has it linked.
fn is_driver_there() -> bool {
    let names: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
    // SAFETY: the driver's library may be loaded and unloaded at any time.
    names.iter().any(|name| unsafe { libloading::Library::new(*name) }.is_ok())
}

/// The first with tensor maps, clusters and PTX 8.0; of older ones not all functions are there that are called.
const OLDEST_DRIVER: c_int = 12000;

/// The first whose graphs keep launches that overlap.
const OVERLAP_DRIVER: c_int = 12030;

/// The version of CUDA that the driver has, such as 12080; 0 if it does not say.
fn driver_version() -> c_int {
    let mut version = 0;
    // SAFETY: the number is written only.
    match unsafe { sys::cuDriverGetVersion(&mut version) } {
        sys::CUresult::CUDA_SUCCESS => version,
        _ => 0,
    }
}

/// Major and minor of a version.
fn parts(version: c_int) -> (u32, u32) {
    let version = version.unsigned_abs();
    (version / 1000, version % 1000 / 10)
}

fn shown(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The number of the GPU on which memory lies.
pub(crate) fn ordinal_of(address: u64) -> Result<usize> {
    device_count()?;
    let mut ordinal: std::ffi::c_int = 0;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: the attribute is an `int`, which the driver writes; it only looks the address up.
    let status = unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address) };
    check("cuPointerGetAttribute", status.result())?;
    usize::try_from(ordinal).map_err(|_| Error::NoDevice(format!("the memory at {address:#x} lies on no GPU")))
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
    let detail = remedy(code).map_or_else(String::new, |remedy| format!("; {remedy}"));
    Error::Cuda { call, code, name: text(error.error_name()), text: text(error.error_string()), detail }
}

/// The error of an allocation, with the bytes that it needed and those that are free.
#[cold]
fn without_memory(error: Error, bytes: usize) -> Error {
    let Error::Cuda { call, code, name, text, detail } = error else { return error };
    let free = result::mem_get_info().map(|(free, _)| free).unwrap_or(0);
    let detail = format!("; needed {bytes} bytes, available {free}{detail}");
    Error::Cuda { call, code, name, text, detail }
}

/// What helps against an error of the driver that has one usual cause.
fn remedy(code: c_uint) -> Option<&'static str> {
    if crate::error::is_sticky(code) {
        return Some(
            "a kernel or the GPU failed, and this process has lost all memory and work on it: every later call fails in the \
             same way until the process is started again. To find the place, launch the same on `Device::emulator()`, or run \
             the program under compute-sanitizer",
        );
    }
    Some(match code {
        2 => "free buffers, or use smaller ones",
        100 => "no GPU is visible: look at `nvidia-smi` and CUDA_VISIBLE_DEVICES",
        101 => "there is no GPU of that number: look at `nvidia-smi` and CUDA_VISIBLE_DEVICES",
        802 => "the GPUs of this host are not set up yet: start the fabric manager (nvidia-fabricmanager)",
        803 => "the driver library is not that of the running kernel module: reinstall the driver, or reboot",
        _ => return None,
    })
}

fn with_log(error: Error, log: String) -> Error {
    match error {
        Error::Cuda { call, code, name, text, detail } if !log.is_empty() => {
            Error::Cuda { call, code, name, text, detail: format!("{detail}\n{log}") }
        }
        other => other,
    }
}

//! The CUDA driver: contexts, memory, modules, streams, events, launches.
//!
//! The only file of this crate with `unsafe`: every call here is one of the driver's C functions. The driver library is
//! loaded when the first CUDA device is opened, so a program that contains this file builds and runs where there is no
//! CUDA; [`Context::open`] then gives an error.
//!
//! Invariants: handles are made by the driver and freed exactly once, in `Drop`; every handle keeps its context alive;
//! each function makes the context current first, so any thread may call it.
#![allow(unsafe_code)]

use crate::tensor_map::{Form, MAP_BYTES, MAX_RANK, Place};
use crate::{Error, Result};
use cudarc::driver::{result, sys};
use rtc_emulator::tensor_map::ElementType;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
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

/// A loaded kernel.
#[derive(Debug)]
pub(crate) struct Module {
    context: Arc<Context>,
    raw: sys::CUmodule,
    function: sys::CUfunction,
    /// Registers per thread.
    pub(crate) registers: u32,
    /// Bytes of local memory per thread: spilled registers and arrays.
    pub(crate) local_bytes: u32,
    /// Threads per block that fit the registers.
    pub(crate) max_threads: u32,
    /// Shared memory that the code declares by itself.
    pub(crate) static_shared: u32,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; they are not changed after loading.
unsafe impl Sync for Module {}

impl Module {
    /// Has the driver compile PTX and finds the kernel `symbol` in it.
    pub(crate) fn load(context: &Arc<Context>, ptx: &str, symbol: &str) -> Result<Module> {
        context.bind()?;
        let failed = |message: &str| Error::Ptx { kernel: symbol.to_owned(), message: message.to_owned() };
        let image = CString::new(ptx).map_err(|_| failed("the text contains a NUL byte"))?;
        let entry = CString::new(symbol).map_err(|_| failed("the symbol contains a NUL byte"))?;
        let mut log = vec![0u8; 16 * 1024];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image ends with NUL; both option arrays have two elements; the log outlives the call.
        let status = unsafe {
            sys::cuModuleLoadDataEx(&mut raw, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        if let Err(error) = check("cuModuleLoadDataEx", status.result()) {
            let text = CStr::from_bytes_until_nul(&log).map(|t| t.to_string_lossy().trim().to_owned());
            return Err(with_log(error, text.unwrap_or_default()));
        }
        // SAFETY: `raw` was just loaded.
        let function = check("cuModuleGetFunction", unsafe { result::module::get_function(raw, entry) });
        let function = match function {
            Ok(function) => function,
            Err(error) => {
                // SAFETY: `raw` was just loaded and nothing refers to it.
                let _ = unsafe { result::module::unload(raw) };
                return Err(with_log(error, format!("looking for `{symbol}`")));
            }
        };
        let mut module = Module {
            context: context.clone(),
            raw,
            function,
            registers: 0,
            local_bytes: 0,
            max_threads: 0,
            static_shared: 0,
        };
        use sys::CUfunction_attribute_enum as Attribute;
        module.registers = module.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        module.local_bytes = module.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?;
        module.max_threads = module.attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        module.static_shared = module.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(module)
    }

    fn attribute(&self, attribute: sys::CUfunction_attribute) -> Result<u32> {
        // SAFETY: the function belongs to the loaded module.
        let value = unsafe { result::function::get_function_attribute(self.function, attribute) };
        Ok(check("cuFuncGetAttribute", value)? as u32)
    }

    /// Allows launches with that much dynamic shared memory, and clusters beyond the portable size.
    pub(crate) fn prepare(&self, shared_bytes: u32, cluster: [u32; 3]) -> Result<()> {
        self.context.bind()?;
        use sys::CUfunction_attribute_enum as Attribute;
        let set = |attribute, value| {
            // SAFETY: the function belongs to the loaded module.
            let status = unsafe { result::function::set_function_attribute(self.function, attribute, value) };
            check("cuFuncSetAttribute", status)
        };
        if shared_bytes > 0 {
            set(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes as c_int)?;
        }
        if cluster.iter().product::<u32>() > 8 {
            set(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        }
        Ok(())
    }

    /// Launches; `grid` counts blocks. The driver copies `params` before it returns.
    pub(crate) fn launch(&self, stream: &Stream, launch: &Launch<'_>) -> Result<()> {
        self.context.bind()?;
        let mut size = launch.params.len();
        // Each parameter by itself: the driver knows where it goes.
        let (mut few, mut many) = ([std::ptr::null_mut(); STACK_POINTERS], Vec::new());
        let pointers = match few.get_mut(..launch.places.len()) {
            Some(pointers) => pointers,
            None => {
                many.resize(launch.places.len(), std::ptr::null_mut());
                many.as_mut_slice()
            }
        };
        for (pointer, place) in pointers.iter_mut().zip(launch.places) {
            *pointer = launch.params[*place as usize..].as_ptr().cast_mut().cast::<c_void>();
        }
        let list = if pointers.is_empty() { std::ptr::null_mut() } else { pointers.as_mut_ptr() };
        // The list of CU_LAUNCH_PARAM_BUFFER_POINTER (1), its value, CU_LAUNCH_PARAM_BUFFER_SIZE (2), its value, end (0).
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(1),
            launch.params.as_ptr().cast_mut().cast(),
            std::ptr::without_provenance_mut(2),
            std::ptr::from_mut(&mut size).cast(),
            std::ptr::null_mut(),
        ];
        let extra = if size == 0 || !list.is_null() { std::ptr::null_mut() } else { extra.as_mut_ptr() };
        let [gx, gy, gz] = launch.grid;
        let mut attributes = Attributes::default();
        attributes.ask_for(launch, self.context.capability());
        if attributes.count == 0 {
            // SAFETY: the parameters were laid out by the kernel's metadata, which was checked against its PTX; `list` has
            // a pointer for each of them.
            let status = unsafe {
                sys::cuLaunchKernel(
                    self.function,
                    gx,
                    gy,
                    gz,
                    launch.threads,
                    1,
                    1,
                    launch.shared_bytes,
                    stream.raw,
                    list,
                    extra,
                )
            };
            return check("cuLaunchKernel", status.result());
        }
        let config = sys::CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: launch.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared_bytes,
            hStream: stream.raw,
            attrs: attributes.list.as_mut_ptr(),
            numAttrs: attributes.count as c_uint,
        };
        // SAFETY: as above; `config` and `attributes` live until the call returns.
        let status = unsafe { sys::cuLaunchKernelEx(&config, self.function, list, extra) };
        check("cuLaunchKernelEx", status.result())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded in `load`; the driver waits for running kernels of the module.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

/// The attributes of a launch; most have none.
struct Attributes {
    list: [sys::CUlaunchAttribute; 3],
    count: usize,
}

impl Default for Attributes {
    fn default() -> Attributes {
        let none = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { cooperative: 0 },
        };
        Attributes { list: [none; 3], count: 0 }
    }
}

impl Attributes {
    fn push(&mut self, id: sys::CUlaunchAttributeID, value: sys::CUlaunchAttributeValue) {
        self.list[self.count] = sys::CUlaunchAttribute { id, pad: [0; 4], value };
        self.count += 1;
    }

    fn ask_for(&mut self, launch: &Launch<'_>, capability: u32) {
        use sys::CUlaunchAttributeID as Id;
        use sys::CUlaunchAttributeValue as Value;
        if launch.cluster != [1, 1, 1] {
            let [x, y, z] = launch.cluster;
            let size = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            self.push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, Value { clusterDim: size });
        }
        if launch.cooperative {
            self.push(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Value { cooperative: 1 });
        }
        // It is a leave to overlap; devices before 9.0 cannot.
        if launch.overlap && capability >= 90 {
            let id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            self.push(id, Value { programmaticStreamSerializationAllowed: 1 });
        }
    }
}

/// Has the driver encode a tensor map.
pub(crate) fn encode_tensor_map(form: &Form, place: &Place) -> Result<[u8; MAP_BYTES]> {
    use sys::CUtensorMapFloatOOBfill_enum as Oob;
    use sys::CUtensorMapL2promotion_enum as Promotion;
    use sys::CUtensorMapSwizzle_enum as Swizzle;
    use sys::{CUtensorMapDataType_enum as Type, CUtensorMapInterleave_enum as Interleave};
    let ty = match form.element {
        ElementType::U8 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        ElementType::U16 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        ElementType::U32 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        ElementType::S32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        ElementType::U64 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        ElementType::S64 => Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        ElementType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        ElementType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        ElementType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        ElementType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        ElementType::F32Ftz => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
        ElementType::Tf32 => Type::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        ElementType::Tf32Ftz => Type::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
    };
    let swizzle = match form.swizzle {
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    };
    let promotion = match form.l2_promotion {
        64 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        128 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        256 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        _ => Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
    };
    let fill = match place.nan {
        true => Oob::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
        false => Oob::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    };
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the map is written only; each array has an entry for every dimension, the strides one less, from the
    // second on. The address is not accessed.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            ty,
            form.rank as u32,
            std::ptr::with_exposed_provenance_mut(place.address as usize),
            place.dims.as_ptr(),
            place.strides[1..].as_ptr(),
            form.box_dims.as_ptr(),
            [1; MAX_RANK].as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            promotion,
            fill,
        )
    };
    check("cuTensorMapEncodeTiled", status.result())?;
    let mut bytes = [0; MAP_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(map.opaque) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}

/// What one launch needs, in the driver's terms.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads per block.
    pub(crate) threads: u32,
    /// Blocks per cluster.
    pub(crate) cluster: [u32; 3],
    /// Dynamic shared memory.
    pub(crate) shared_bytes: u32,
    /// Whether it may begin before the work before it on the stream has ended.
    pub(crate) overlap: bool,
    /// Whether all blocks must be on the device at once.
    pub(crate) cooperative: bool,
    /// The parameter buffer.
    pub(crate) params: &'a [u8],
    /// Where each parameter lies in it, if the device wants them elsewhere; empty if the buffer is passed as it is.
    pub(crate) places: &'a [u32],
}

/// Kernels with more parameters than this have their list of pointers on the heap.
const STACK_POINTERS: usize = 64;

/// An order of work on the device.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    raw: sys::CUstream,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The default stream, which waits for all others.
    pub(crate) fn default_of(context: &Arc<Context>) -> Stream {
        Stream { context: context.clone(), raw: std::ptr::null_mut() }
    }

    /// A stream of its own; it still waits for copies on the default stream.
    pub(crate) fn create(context: &Arc<Context>) -> Result<Stream> {
        context.bind()?;
        let raw = check("cuStreamCreate", result::stream::create(result::stream::StreamKind::Default))?;
        Ok(Stream { context: context.clone(), raw })
    }

    /// Waits for all work on the stream; reports what went wrong in it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is live, or null for the default stream.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.raw) })
    }

    /// Memory that lives on the stream until `free_async`.
    pub(crate) fn alloc_async(&self, bytes: usize) -> Result<u64> {
        self.context.bind()?;
        // SAFETY: freed by `free_async` on the same stream.
        check("cuMemAllocAsync", unsafe { result::malloc_async(self.raw, bytes) })
    }

    /// Frees memory of `alloc_async` once the stream gets there.
    pub(crate) fn free_async(&self, address: u64) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the address comes from `alloc_async` on this stream.
        check("cuMemFreeAsync", unsafe { result::free_async(address, self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.raw.is_null() && self.context.bind().is_ok() {
            // SAFETY: created in `create`; the driver finishes pending work first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// A point on a stream, with its time.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Marks the present end of the stream.
    pub(crate) fn record(stream: &Stream) -> Result<Event> {
        stream.context.bind()?;
        let raw = check("cuEventCreate", result::event::create(sys::CUevent_flags_enum::CU_EVENT_DEFAULT))?;
        let event = Event { context: stream.context.clone(), raw };
        // SAFETY: event and stream are live handles of one context.
        check("cuEventRecord", unsafe { result::event::record(event.raw, stream.raw) })?;
        Ok(event)
    }

    /// Milliseconds from `start` to this event; waits until it is reached.
    pub(crate) fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        self.context.bind()?;
        // SAFETY: both events are live and recorded.
        unsafe {
            check("cuEventSynchronize", result::event::synchronize(self.raw))?;
            check("cuEventElapsedTime", result::event::elapsed(start.raw, self.raw))
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created in `record`.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

fn check<T>(call: &'static str, status: std::result::Result<T, result::DriverError>) -> Result<T> {
    status.map_err(|error| {
        let text = |t: std::result::Result<&CStr, result::DriverError>| match t {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => "unknown error".to_owned(),
        };
        let code = error.0 as c_uint;
        Error::Cuda {
            call,
            code,
            name: text(error.error_name()),
            text: text(error.error_string()),
            detail: String::new(),
        }
    })
}

fn with_log(error: Error, log: String) -> Error {
    match error {
        Error::Cuda { call, code, name, text, .. } if !log.is_empty() => {
            Error::Cuda { call, code, name, text, detail: format!("\n{log}") }
        }
        other => other,
    }
}

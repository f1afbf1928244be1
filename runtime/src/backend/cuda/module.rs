//! Loaded kernels and their launch.
#![allow(unsafe_code)]

use super::super::{BackendStream, Code, KernelUsage, Launch, Scratch, downcast};
use super::few_blocks::FewBlocks;
use super::{Context, Stream, check, with_log};
use crate::{Error, Result, line_info};
use cudarc::driver::{result, sys};
use rtc_abi::Metadata;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock};
use zerocopy::IntoBytes;

/// A loaded kernel.
#[derive(Debug)]
pub(super) struct Module {
    context: Arc<Context>,
    raw: sys::CUmodule,
    function: sys::CUfunction,
    /// Registers per thread.
    pub(super) registers: u32,
    /// Bytes of local memory per thread: spilled registers and arrays.
    pub(super) local_bytes: u32,
    /// Threads per block that fit the registers.
    pub(super) max_threads: u32,
    /// Shared memory that the code declares by itself.
    pub(super) static_shared: u32,
    /// It came as machine code.
    pub(super) is_assembled: bool,
    /// The dynamic shared memory and the cluster that it is prepared for.
    pub(super) prepared: OnceLock<(u32, [u32; 3])>,
    /// The version with more registers for launches of few blocks.
    pub(super) few_blocks: Option<Box<FewBlocks>>,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; they are not changed after loading.
unsafe impl Sync for Module {}

impl Module {
    /// Has the driver compile PTX and finds the kernel `symbol` in it; with what the assembler remarks.
    pub(super) fn load_with_remarks(context: &Arc<Context>, ptx: &str, symbol: &str) -> Result<(Module, String)> {
        context.bind()?;
        let failed = |message: &str| Error::Ptx { kernel: symbol.to_owned(), message: message.to_owned() };
        let image = CString::new(ptx).map_err(|_| failed("the text contains a NUL byte"))?;
        let (mut log, mut remarks) = (vec![0u8; 16 * 1024], vec![0u8; 16 * 1024]);
        use sys::CUjit_option as Jit;
        let mut options = [
            Jit::CU_JIT_ERROR_LOG_BUFFER,
            Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            Jit::CU_JIT_INFO_LOG_BUFFER,
            Jit::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            Jit::CU_JIT_GENERATE_LINE_INFO,
            Jit::CU_JIT_GENERATE_DEBUG_INFO,
        ];
        let is_debugged = ptx.contains("\n\t.section\t.debug_info");
        let number = |number: usize| std::ptr::without_provenance_mut::<c_void>(number);
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            number(log.len()),
            remarks.as_mut_ptr().cast::<c_void>(),
            number(remarks.len()),
            number(line_info::is_on().into()),
            number(is_debugged.into()),
        ];
        // The last two are left out unless one of them is on.
        let given = if line_info::is_on() || is_debugged { options.len() } else { options.len() - 2 };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image ends with NUL; each option has its value; the logs outlive the call.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &mut raw,
                image.as_ptr().cast(),
                given as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if let Err(error) = check("cuModuleLoadDataEx", status.result()) {
            let mut text = text_of(&log);
            let hint = refused(status, ptx, symbol, context);
            if !hint.is_empty() {
                text = format!("{hint}\n{text}").trim_end().to_owned();
            }
            return Err(with_log(error, text));
        }
        Ok((Module::of(context, raw, symbol, false)?, text_of(&remarks)))
    }

    /// Loads machine code for devices of this capability.
    pub(super) fn load_cubin(context: &Arc<Context>, cubin: &[u8], symbol: &str) -> Result<Module> {
        context.bind()?;
        // The driver finds the end of the image by its headers, which stand at multiples of 8.
        let mut image = vec![0u64; cubin.len().div_ceil(8)];
        let bytes = image.as_mut_slice().as_mut_bytes();
        bytes[..cubin.len()].copy_from_slice(cubin);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image is an ELF file, and outlives the call.
        let status = unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) };
        check("cuModuleLoadData", status.result())?;
        Module::of(context, raw, symbol, true)
    }

    /// The kernel of a module that was just loaded.
    fn of(context: &Arc<Context>, raw: sys::CUmodule, symbol: &str, is_assembled: bool) -> Result<Module> {
        let failed = |message: &str| Error::Ptx { kernel: symbol.to_owned(), message: message.to_owned() };
        let entry = CString::new(symbol).map_err(|_| failed("the symbol contains a NUL byte"))?;
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
            is_assembled,
            prepared: OnceLock::new(),
            few_blocks: None,
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
    pub(super) fn prepare(&self, shared_bytes: u32, cluster: [u32; 3]) -> Result<()> {
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
        let _ = self.prepared.set((shared_bytes, cluster));
        self.few_blocks.as_ref().and_then(|few| few.get()).map_or(Ok(()), |few| few.prepare(shared_bytes, cluster))
    }

    /// Gives the driver the launch. It copies `params` before it returns.
    fn submit(&self, stream: &Stream, launch: &Launch<'_>) -> Result<()> {
        self.context.bind()?;
        if let Some(few) = &self.few_blocks {
            let blocks = launch.grid.map(u64::from).iter().product();
            if let Some(version) = few.for_launch(&self.context, blocks, stream, self) {
                return version.submit(stream, launch);
            }
        }
        if launch.places.is_empty() {
            return self.launch_whole(stream, launch);
        }
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
        // SAFETY: there is a pointer for each parameter of the kernel, into the buffer laid out by its metadata, which was
        // checked against its PTX.
        unsafe { self.call(stream, launch, pointers.as_mut_ptr(), std::ptr::null_mut()) }
    }

    /// Gives the driver the parameter buffer as it is.
    fn launch_whole(&self, stream: &Stream, launch: &Launch<'_>) -> Result<()> {
        let mut size = launch.params.len();
        // The list of CU_LAUNCH_PARAM_BUFFER_POINTER (1), its value, CU_LAUNCH_PARAM_BUFFER_SIZE (2), its value, end (0).
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(1),
            launch.params.as_ptr().cast_mut().cast(),
            std::ptr::without_provenance_mut(2),
            std::ptr::from_mut(&mut size).cast(),
            std::ptr::null_mut(),
        ];
        let extra = if launch.params.is_empty() { std::ptr::null_mut() } else { extra.as_mut_ptr() };
        // SAFETY: the buffer was laid out by the kernel's metadata, which was checked against its PTX; the list ends with 0.
        unsafe { self.call(stream, launch, std::ptr::null_mut(), extra) }
    }

    /// # Safety
    ///
    /// One of `list` and `extra` gives all parameters of the kernel, if it has any.
    #[inline(always)]
    unsafe fn call(
        &self,
        stream: &Stream,
        launch: &Launch<'_>,
        list: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<()> {
        let [gx, gy, gz] = launch.grid;
        let metadata = launch.metadata;
        if !has_attributes(metadata, self.context.overlaps()) {
            // SAFETY: the caller guarantees the parameters; the handles are live.
            let status = unsafe {
                sys::cuLaunchKernel(
                    self.function,
                    gx,
                    gy,
                    gz,
                    launch.block[0],
                    launch.block[1],
                    launch.block[2],
                    metadata.shared_bytes,
                    stream.raw,
                    list,
                    extra,
                )
            };
            return check("cuLaunchKernel", status.result());
        }
        let mut attributes = Attributes::default();
        attributes.ask_for(metadata, self.context.overlaps());
        let config = sys::CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: metadata.shared_bytes,
            hStream: stream.raw,
            attrs: attributes.list.as_mut_ptr(),
            numAttrs: attributes.count as c_uint,
        };
        // SAFETY: as above; `config` and `attributes` live until the call returns.
        let status = unsafe { sys::cuLaunchKernelEx(&config, self.function, list, extra) };
        check("cuLaunchKernelEx", status.result())
    }
}

impl Code for Module {
    fn launch(&self, stream: &dyn BackendStream, launch: Launch<'_>) -> Result<()> {
        let stream = downcast::<Stream>(stream)?;
        let (metadata, is_recorded) = (launch.metadata, launch.is_recorded);
        let submit =
            |launch: &Launch<'_>| self.submit(stream, launch).map_err(|error| error.launching(&metadata.kernel));
        let Some(Scratch { at, bytes }) = launch.scratch else { return submit(&launch) };
        let mut with_scratch = |address: u64| {
            launch.params[at..at + 8].copy_from_slice(&address.to_le_bytes());
            submit(&launch)
        };
        // It may run beside the work before it, or whenever a graph is launched.
        if is_recorded || metadata.launch_pdl {
            let address = stream.alloc_async(bytes)?;
            let launched = with_scratch(address);
            stream.free_async(address)?;
            launched
        } else {
            stream.with_scratch(bytes, with_scratch)
        }
    }

    fn usage(&self) -> Option<KernelUsage> {
        let Module { registers, local_bytes, max_threads, .. } = *self;
        Some(KernelUsage { registers, local_bytes, max_threads })
    }

    fn is_cubin(&self) -> bool {
        self.is_assembled
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

/// What the driver wrote.
fn text_of(log: &[u8]) -> String {
    CStr::from_bytes_until_nul(log).map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

/// Why the driver refuses PTX, in words; empty where its log says it.
fn refused(status: sys::CUresult, ptx: &str, symbol: &str, context: &Context) -> String {
    use sys::CUresult as Status;
    let word = |key: &str| ptx.lines().find_map(|line| line.trim().strip_prefix(key)).map_or("?", str::trim);
    let driver = super::shown(super::driver_version());
    match status {
        Status::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => format!(
            "kernel `{symbol}` is PTX {}, which this driver, one for CUDA {driver}, does not know yet: update the driver",
            word(".version")
        ),
        Status::CUDA_ERROR_NO_BINARY_FOR_GPU => format!(
            "kernel `{symbol}` was compiled for {}, {} has capability {}.{}: compile it for that target, too",
            word(".target"),
            context.name,
            context.capability / 10,
            context.capability % 10
        ),
        Status::CUDA_ERROR_INVALID_PTX => format!(
            "the PTX of kernel `{symbol}` is damaged, or not what this driver, one for CUDA {driver}, takes for {}: compile it \
             again, or update the driver",
            word(".target")
        ),
        Status::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "the driver's compiler (libnvidia-ptxjitcompiler) is missing: install the driver in full".to_owned()
        }
        Status::CUDA_ERROR_JIT_COMPILATION_DISABLED => {
            "compiling PTX is switched off: unset CUDA_DISABLE_PTX_JIT".to_owned()
        }
        _ => String::new(),
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

    fn ask_for(&mut self, metadata: &Metadata, able: bool) {
        use sys::CUlaunchAttributeID as Id;
        use sys::CUlaunchAttributeValue as Value;
        if metadata.cluster != [1, 1, 1] {
            let [x, y, z] = metadata.cluster;
            let size = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            self.push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, Value { clusterDim: size });
        }
        if metadata.launch_cooperative_grid {
            self.push(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Value { cooperative: 1 });
        }
        if metadata.launch_pdl && able {
            let id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            self.push(id, Value { programmaticStreamSerializationAllowed: 1 });
        }
    }
}

/// Overlap with the work before is allowed, not required: a device that is not able to runs the launch after it.
fn has_attributes(metadata: &Metadata, able: bool) -> bool {
    metadata.cluster != [1, 1, 1] || metadata.launch_cooperative_grid || (metadata.launch_pdl && able)
}

/// Kernels with more parameters than this have their list of pointers on the heap.
const STACK_POINTERS: usize = 64;

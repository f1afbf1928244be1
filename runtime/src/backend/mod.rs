//! Kinds of devices behind one interface: NVIDIA GPUs (`cuda`), the PTX emulator and the interpreter of the tile IR.
//!
//! The rest of the runtime reaches memory, code, streams, events and graphs through the traits of this file. Each kind of
//! device implements them in a folder of its own, which a feature switches on or off as a whole; `host` has what the two
//! kinds on the CPU share.
//!
//! Objects of one kind are passed to each other as trait objects, for example an event to a stream, and are told by
//! [`downcast`]. Callers compare devices first, so a mismatch there is an error that users do not see.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod driver;
#[cfg(feature = "emulator")]
pub(crate) mod emulator;
#[cfg(feature = "emulator")]
pub(crate) mod host;
#[cfg(all(feature = "emulator", feature = "jit"))]
pub(crate) mod interpreter;
mod kind;
pub(crate) mod machine_code;
mod tensor_map;

pub use kind::DeviceKind;
pub(crate) use machine_code::MachineCode;
pub(crate) use tensor_map::{ElementType, Form, MAP_BYTES, MAX_RANK, MapError, Place, check_tensor_map};

use crate::{Error, Finding, Result};
use rtc_abi::{Arch, Metadata};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// A device: its memory, and what it makes of code and of streams. Callers check ranges of memory.
pub(crate) trait Backend: Any + Debug + Send + Sync {
    /// Which kind of device it is.
    fn kind(&self) -> DeviceKind;

    /// Its name in messages.
    fn name(&self) -> String;

    /// Its model, as the maker names it.
    fn model(&self) -> String;

    /// The compute capability, as major and minor.
    fn compute_capability(&self) -> (u32, u32);

    /// The target that kernels for it are compiled for.
    fn arch(&self) -> Arch;

    /// Bytes of its memory: free ones, and all.
    fn memory_info(&self) -> Result<(u64, u64)> {
        Err(Error::NoDevice(format!(
            "{} has no memory of its own: its buffers are memory of this process",
            self.name()
        )))
    }

    /// The number by which the driver and tools name it on all machines.
    fn uuid(&self) -> Result<[u8; 16]> {
        Err(Error::NoDevice(format!("{} is no GPU, only GPUs have a UUID", self.name())))
    }

    /// The number of SMs.
    fn sm_count(&self) -> u32;

    /// Waits for all work; reports what went wrong in it.
    fn synchronize(&self) -> Result<()>;

    /// Allocates memory; messages of the emulator and the interpreter use the name.
    fn alloc(&self, bytes: usize, name: &str) -> Result<u64>;

    /// Frees memory of [`Backend::alloc`], after all work that uses it.
    fn free(&self, address: u64);

    /// Copies to the host, after all work on the default stream.
    fn read(&self, address: u64, data: &mut [u8]) -> Result<()>;

    /// Copies from the host, after all work on the default stream.
    fn write(&self, address: u64, data: &[u8]) -> Result<()>;

    /// Writes zeros, after all work on the default stream.
    fn zero(&self, address: u64, bytes: usize) -> Result<()>;

    /// Copies within the device, after all work on the default stream. The call may return before.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;

    /// Copies from another device, after all work on the default streams of both.
    fn copy_from(&self, to: u64, other: &dyn Backend, from: u64, bytes: usize) -> Result<()> {
        let mut data = vec![0; bytes];
        other.read(from, &mut data)?;
        self.write(to, &data)
    }

    /// Has the pool of [`BackendStream::alloc`] keep so many bytes that are free when the host waits; no effect where there is
    /// no pool.
    fn set_pool_release_threshold(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Tells the sanitizer of a tensor in memory: sizes, strides in elements, and the bytes of an element. False where that
    /// has no effect.
    fn set_shape(&self, _start: u64, _sizes: &[u64], _strides: &[i64], _element: u64) -> bool {
        false
    }

    /// Page-locked memory of the host, filled with zeros.
    fn pinned(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>>;

    /// Loads PTX.
    fn load(self: Arc<Self>, image: &Image<'_>) -> Result<Arc<dyn Code>>;

    /// A tensor map over memory of the device.
    fn encode_tensor_map(&self, form: &Form, place: &Place) -> std::result::Result<[u8; MAP_BYTES], MapError>;

    /// The default stream.
    fn default_stream(self: Arc<Self>) -> Box<dyn BackendStream>;

    /// A further stream; blocks of one with a higher priority start first, and 0 is the lowest.
    fn stream(self: Arc<Self>, priority: u8) -> Result<Box<dyn BackendStream>>;

    /// A stream whose work is recorded, until [`BackendStream::end_capture`].
    fn capturing(self: Arc<Self>) -> Result<Box<dyn BackendStream>>;

    /// A stream of another library, by its handle.
    fn adopt_stream(self: Arc<Self>, _handle: u64) -> Result<Box<dyn BackendStream>> {
        Err(Error::NoDevice(format!("{} has no streams of a driver", self.name())))
    }

    /// What its launches are checked for and whether they are counted; nothing on a GPU.
    #[cfg(feature = "emulator")]
    fn sanitize(&self) -> Option<host::Sanitize> {
        None
    }

    /// A device of the same kind with empty memory, whose launches are checked like that; nothing on a GPU.
    #[cfg(feature = "emulator")]
    fn sanitized(&self, _sanitize: host::Sanitize) -> Option<Arc<dyn Backend>> {
        None
    }
}

/// An order of work on a device.
pub(crate) trait BackendStream: Any + Debug + Send + Sync {
    /// The handle of the driver; `None` where there is no driver.
    fn raw(&self) -> Option<u64> {
        None
    }

    /// Waits for all its work; reports what went wrong in it.
    fn synchronize(&self) -> Result<()>;

    /// Marks the present end of the stream.
    fn record(&self) -> Result<Box<dyn BackendEvent>>;

    /// Marks the present end of the stream without its time, which costs less.
    fn mark(&self) -> Result<Box<dyn BackendEvent>> {
        self.record()
    }

    /// Memory of the driver's pool, for work that comes after this on the stream; `None` where there is no pool, or where the
    /// handle may not live until the memory is freed.
    fn alloc(&self, _bytes: usize) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Gives memory of [`BackendStream::alloc`] back to the pool once the stream gets there.
    fn free(&self, _address: u64) {}

    /// Whether it is a stream of another library, which the driver may not put in order with the default stream.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Whether its handle lives as long as this value, so that memory may be freed on it at any time.
    fn keeps_handle(&self) -> bool {
        true
    }

    /// Whether it is one of the streams of the device that the driver does not order.
    fn is_counted(&self) -> bool {
        false
    }

    /// Whether there are several of these, so that events must put their work in order.
    fn needs_events(&self) -> bool {
        false
    }

    /// Has all work that is given later wait until `event` is complete.
    fn wait(&self, event: &dyn BackendEvent) -> Result<()>;

    /// Copies within the device.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;

    /// Writes zeros.
    fn zero(&self, address: u64, bytes: usize) -> Result<()>;

    /// Copies from the host; the data can be reused when the call returns.
    fn write(&self, address: u64, data: &[u8]) -> Result<()>;

    /// Copies to the host, and waits for the copy.
    fn read(&self, address: u64, data: &mut [u8]) -> Result<()>;

    /// Copies all of the page-locked memory to the device; the memory keeps track of the copy.
    fn upload(&self, from: &dyn PinnedMemory, to: u64) -> Result<()>;

    /// Fills all of the page-locked memory from the device; the memory keeps track of the copy.
    fn download(&self, from: u64, to: &mut dyn PinnedMemory) -> Result<()>;

    /// Ends the recording and makes a graph of it.
    fn end_capture(&self) -> Result<Box<dyn BackendGraph>>;
}

/// A point of a stream, with its time.
pub(crate) trait BackendEvent: Any + Debug + Send + Sync {
    /// Waits until it is complete; reports what went wrong before it.
    fn synchronize(&self) -> Result<()>;

    /// Whether it is complete; does not wait.
    fn is_complete(&self) -> Result<bool>;

    /// The time from `start` to this event; waits until it is complete.
    fn elapsed_since(&self, start: &dyn BackendEvent) -> Result<Duration>;
}

/// Recorded work.
pub(crate) trait BackendGraph: Any + Debug + Send + Sync {
    /// Runs all of it once the stream gets there.
    fn launch(&self, stream: &dyn BackendStream) -> Result<()>;
}

/// Page-locked memory of the host, aligned for every element type.
pub(crate) trait PinnedMemory: Any + Debug + Send + Sync {
    /// Its bytes, once no copy writes them.
    fn bytes(&self) -> Result<&[u8]>;

    /// Its bytes, once no copy reads or writes them.
    fn bytes_mut(&mut self) -> Result<&mut [u8]>;
}

/// A kernel that is loaded on a device.
pub(crate) trait Code: Any + Debug + Send + Sync {
    /// Launches on a stream of its device.
    fn launch(&self, stream: &dyn BackendStream, launch: Launch<'_>) -> Result<()>;

    /// What the driver's compiler made of it; `None` where there is no such compiler.
    fn usage(&self) -> Option<KernelUsage> {
        None
    }

    /// Whether it was loaded as machine code, not as PTX.
    fn is_cubin(&self) -> bool {
        false
    }

    /// The findings of the launches since the last call.
    fn take_findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// The counters of the last launch.
    #[cfg(feature = "emulator")]
    fn take_counters(&self) -> Option<rtc_emulator::counters::Counters> {
        None
    }

    /// The events of the last launch.
    #[cfg(feature = "emulator")]
    fn take_trace(&self) -> Option<rtc_emulator::timeline::Trace> {
        None
    }
}

/// Code that is to be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image<'a> {
    pub(crate) ptx: &'a str,
    /// Machine code that was made of the PTX.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) cubin: Option<&'a [u8]>,
    /// The same for the driver to use in place of its own assembler.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) ahead: Option<&'a MachineCode>,
    pub(crate) metadata: &'a Metadata,
    /// Threads per block along each axis.
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))]
    pub(crate) block: [u32; 3],
}

/// One launch. A GPU takes its block here, devices on the CPU at load.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) struct Launch<'a> {
    pub(crate) metadata: &'a Metadata,
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads per block along each axis.
    pub(crate) block: [u32; 3],
    /// The parameter buffer.
    pub(crate) params: &'a mut [u8],
    /// Where each parameter lies in it, if the device aligns them otherwise; empty if the buffer is passed as it is.
    pub(crate) places: &'a [u32],
    pub(crate) scratch: Option<Scratch>,
    /// Whether the stream records its work.
    pub(crate) is_recorded: bool,
}

/// Memory that a launch needs for its own time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch {
    /// Where its address goes in the parameter buffer.
    pub(crate) at: usize,
    pub(crate) bytes: usize,
}

/// What the device's compiler made of a kernel.
///
/// ```
/// use rtc_runtime::Device;
/// # let (ptx, json) = (include_str!("../../tests/kernels/scale.ptx"), include_str!("../../tests/kernels/scale.json"));
/// let device = Device::auto();
/// // SAFETY: the files were made together.
/// if let Some::<rtc_runtime::KernelUsage>(usage) = unsafe { device.load_json(ptx, json)? }.usage() {
///     println!("{} registers, {} bytes spilled", usage.registers, usage.local_bytes);
/// }
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelUsage {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of local memory per thread; above 0 usually means spilled registers.
    pub local_bytes: u32,
    /// Threads per block that fit the registers.
    pub max_threads: u32,
}

/// An object of a device as that of its kind.
#[inline]
pub(crate) fn downcast<T: Any>(object: &dyn Any) -> Result<&T> {
    object.downcast_ref().ok_or_else(foreign)
}

#[cold]
pub(crate) fn foreign() -> Error {
    Error::NoDevice("streams, events and memory of another kind of device cannot be used here".into())
}

/// The error for a kernel that a device does not run.
pub(crate) fn wrong_device(device: String, metadata: &Metadata, message: String) -> Error {
    Error::WrongDevice { kernel: metadata.kernel.clone(), device, message }
}

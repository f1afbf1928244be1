//! Devices on the CPU: what the emulator and the interpreter have in common. A launch runs to its end before the call
//! returns, so streams and events have no work to wait for.

mod stream;
mod tensor_map;

pub(crate) use stream::HostStream;
pub(crate) use tensor_map::check_tensor_map;

use super::{
    Backend, BackendStream, Code, DeviceKind, Form, Image, Launch, MAP_BYTES, MapError, PinnedMemory, Place, Scratch,
    downcast,
};
use crate::{Error, Finding, Result};
use rtc_abi::{Arch, Metadata};
use rtc_emulator::counters::Counters;
use rtc_emulator::sanitize::Checks;
use rtc_emulator::timeline::Trace;
use rtc_emulator::{AccessError, Memory};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the devices on the CPU say they have: few, so that persistent kernels take several rounds there, too.
const SM_COUNT: u32 = 2;

/// A kind of device on the CPU.
pub(crate) trait Executor: Debug + Send + Sync + 'static {
    const KIND: DeviceKind;
    const NAME: &'static str;
    /// Whether the sanitizer takes note of shapes.
    const KNOWS_SHAPES: bool;

    /// Loads PTX.
    fn load(image: &Image<'_>) -> Result<Arc<dyn Code>>;
}

/// A kernel that runs on the CPU.
pub(crate) trait HostCode: Debug + Send + Sync + 'static {
    /// Runs all blocks of the grid; `scratch` says where the address of so many bytes of memory goes. Gives what the kernel
    /// printed.
    fn run(
        &self,
        memory: &HostMemory,
        metadata: &Metadata,
        grid: [u32; 3],
        params: &mut [u8],
        scratch: Option<Scratch>,
    ) -> Result<String>;

    /// The findings of the launches since the last call.
    fn take_findings(&self) -> Vec<Finding>;

    /// The counters of the last launch.
    fn take_counters(&self) -> Option<Counters> {
        None
    }

    /// The events of the last launch.
    fn take_trace(&self) -> Option<Trace> {
        None
    }
}

/// What the sanitizer is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sanitize {
    pub(crate) checks: Checks,
    pub(crate) budget: Option<u64>,
    pub(crate) counts: bool,
    pub(crate) records: bool,
}

/// Memory of a device on the CPU.
#[derive(Debug)]
pub(crate) struct HostMemory {
    memory: Mutex<Memory>,
    pub(crate) sanitize: Sanitize,
}

impl HostMemory {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        // A panic during a launch leaves bytes in the memory, never a broken structure.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        data.copy_from_slice(self.lock().read(address, data.len()).map_err(refused)?);
        Ok(())
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.lock().write(address, data).map_err(refused)
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let mut data = vec![0; bytes];
        self.read(from, &mut data)?;
        self.write(to, &data)
    }
}

fn refused(error: AccessError) -> Error {
    Error::BufferAccess(error.to_string())
}

/// A device on the CPU.
#[derive(Debug)]
pub(crate) struct HostDevice<E> {
    memory: Arc<HostMemory>,
    executor: PhantomData<E>,
}

impl<E: Executor> HostDevice<E> {
    /// A device with empty memory, whose launches are checked like that.
    pub(crate) fn create(sanitize: Sanitize) -> Arc<dyn Backend> {
        let mut memory = Memory::new();
        if !sanitize.checks.is_empty() {
            memory.track();
        }
        let memory = Arc::new(HostMemory { memory: Mutex::new(memory), sanitize });
        Arc::new(HostDevice::<E> { memory, executor: PhantomData })
    }
}

impl<E: Executor> Backend for HostDevice<E> {
    fn kind(&self) -> DeviceKind {
        E::KIND
    }

    fn name(&self) -> String {
        E::NAME.into()
    }

    fn model(&self) -> String {
        E::NAME.into()
    }

    fn compute_capability(&self) -> (u32, u32) {
        (9, 0)
    }

    fn arch(&self) -> Arch {
        Arch { capability: 90, is_specific: true }
    }

    fn sm_count(&self) -> u32 {
        SM_COUNT
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn alloc(&self, bytes: usize, name: &str) -> Result<u64> {
        Ok(self.memory.lock().alloc(bytes, 256, name))
    }

    fn free(&self, address: u64) {
        self.memory.lock().free(address);
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        self.memory.read(address, data)
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.memory.write(address, data)
    }

    fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.memory.write(address, &vec![0; bytes])
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.memory.copy(to, from, bytes)
    }

    fn set_shape(&self, start: u64, sizes: &[u64], strides: &[i64], element: u64) -> bool {
        let is_checked = E::KNOWS_SHAPES && !self.memory.sanitize.checks.is_empty();
        is_checked && self.memory.lock().set_shape(start, sizes, strides, element)
    }

    fn pinned(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>> {
        Ok(Box::new(stream::HostPinned::new(bytes)))
    }

    fn load(self: Arc<Self>, image: &Image<'_>) -> Result<Arc<dyn Code>> {
        E::load(image)
    }

    fn encode_tensor_map(&self, form: &Form, place: &Place) -> std::result::Result<[u8; MAP_BYTES], MapError> {
        tensor_map::encode(form, place).map_err(MapError::Refused)
    }

    fn default_stream(self: Arc<Self>) -> Box<dyn BackendStream> {
        Box::new(HostStream::new(&self.memory))
    }

    fn stream(self: Arc<Self>, _priority: u8) -> Result<Box<dyn BackendStream>> {
        Ok(self.default_stream())
    }

    fn capturing(self: Arc<Self>) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(HostStream::capturing(&self.memory)))
    }

    fn sanitize(&self) -> Option<Sanitize> {
        Some(self.memory.sanitize)
    }

    fn sanitized(&self, sanitize: Sanitize) -> Option<Arc<dyn Backend>> {
        Some(HostDevice::<E>::create(sanitize))
    }
}

/// A loaded kernel; a recording has another handle of it.
#[derive(Debug)]
pub(crate) struct HostKernel<C>(Arc<C>);

impl<C: HostCode> HostKernel<C> {
    pub(crate) fn create(code: C) -> Arc<dyn Code> {
        Arc::new(HostKernel(Arc::new(code)))
    }
}

impl<C: HostCode> Code for HostKernel<C> {
    fn launch(&self, stream: &dyn BackendStream, launch: Launch<'_>) -> Result<()> {
        let stream = downcast::<HostStream>(stream)?;
        let Launch { metadata, grid, params, scratch, is_recorded, .. } = launch;
        if !is_recorded {
            print_output(&self.0.run(stream.memory(), metadata, grid, params, scratch)?);
            return Ok(());
        }
        let (code, metadata, params) = (self.0.clone(), metadata.clone(), params.to_vec());
        stream.submit(move |memory| {
            print_output(&code.run(memory, &metadata, grid, &mut params.clone(), scratch)?);
            Ok(())
        })
    }

    fn take_findings(&self) -> Vec<Finding> {
        self.0.take_findings()
    }

    fn take_counters(&self) -> Option<Counters> {
        self.0.take_counters()
    }

    fn take_trace(&self) -> Option<Trace> {
        self.0.take_trace()
    }
}

/// What `device_print` wrote goes where a GPU's driver writes it: standard output. Where that is closed it is lost, as the
/// driver's would be.
fn print_output(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}

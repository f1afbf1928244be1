//! Devices: where kernels run.
//!
//! A [`Device`] is a CUDA GPU, the PTX emulator or the interpreter of the tile IR; the rest of the runtime is the same
//! code for all three. On the emulator and the interpreter a launch runs to its end before the call returns.

#[cfg(all(feature = "emulator", feature = "jit"))]
use crate::backend::interpreter;
use crate::backend::{Backend, DeviceKind, driver};
#[cfg(feature = "emulator")]
use crate::backend::{emulator, host::Sanitize};
use crate::{Error, Result, Stream};
use rtc_abi::Arch;
use std::fmt;
use std::sync::Arc;

/// A place where kernels run. Cloning gives another handle of the same device.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::auto(); // a GPU if there is one, else the emulator
/// let handle = device.clone();
/// assert!(handle.is_same(&device) && !Device::emulator().is_same(&device));
/// let buffer = handle.zeros::<f32>(100)?;
/// assert!(buffer.device().is_same(&device));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device(Arc<Inner>);

/// Memory of a GPU, in bytes; see [`Device::memory_info`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can be allocated now; other processes may take them.
    pub free: u64,
    /// All bytes.
    pub total: u64,
}

/// What the handles of a device share.
#[derive(Debug)]
struct Inner {
    backend: Arc<dyn Backend>,
    id: usize,
    default_stream: Stream,
    /// Why `Device::auto` found no GPU.
    fallback: Option<Error>,
}

/// A number that tells devices apart: that of a GPU, whose handles share its primary context, else where its memory is.
pub(crate) fn id_of(backend: &Arc<dyn Backend>) -> usize {
    match backend.kind() {
        DeviceKind::Cuda(ordinal) => ordinal,
        _ => Arc::as_ptr(backend).addr(),
    }
}

impl Device {
    /// A handle of the device.
    pub(crate) fn of(backend: Arc<dyn Backend>) -> Device {
        Device::with_fallback(backend, None)
    }

    fn with_fallback(backend: Arc<dyn Backend>, fallback: Option<Error>) -> Device {
        let (id, default_stream) = (id_of(&backend), Stream::of(&backend, backend.clone().default_stream()));
        Device(Arc::new(Inner { backend, id, default_stream, fallback }))
    }

    /// The device that `kind` names.
    ///
    /// # Errors
    ///
    /// As for [`Device::cuda`]; [`Error::NoDevice`] for a kind that this crate was built without.
    pub fn open(kind: DeviceKind) -> Result<Device> {
        match kind {
            #[cfg(feature = "emulator")]
            DeviceKind::Auto => Ok(Device::auto()),
            #[cfg(not(feature = "emulator"))]
            DeviceKind::Auto => Device::cuda(0),
            DeviceKind::Cuda(ordinal) => Device::cuda(ordinal),
            #[cfg(feature = "emulator")]
            DeviceKind::Emulator => Ok(Device::emulator()),
            #[cfg(not(feature = "emulator"))]
            DeviceKind::Emulator => {
                Err(Error::NoDevice("the emulator needs the feature `emulator` of rtc-runtime".into()))
            }
            DeviceKind::Interpreter => Device::interpreter(),
        }
    }

    /// The GPU of that number.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where there is no driver of CUDA 12.0 or later or no such GPU, [`Error::Cuda`] if the driver
    /// fails.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        driver::open(ordinal).map(Device::of)
    }

    /// How many GPUs there are; 0 where there is no driver or it sees none.
    ///
    /// ```
    /// match rtc_runtime::Device::cuda_count() {
    ///     Ok(count) => println!("{count} GPUs"),
    ///     Err(error) => println!("there may be GPUs, but: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the driver is older than CUDA 12.0, [`Error::Cuda`] if it cannot be used, for example because
    /// it is not that of the running kernel module.
    pub fn cuda_count() -> Result<usize> {
        driver::visible_count()
    }

    /// The version of CUDA that the driver has, as major and minor. Its
    /// assembler, which makes machine code of PTX at load, has the same version.
    ///
    /// ```
    /// use rtc_runtime::{Device, Error};
    /// match Device::cuda_driver() {
    ///     Ok((major, minor)) => assert!(major >= 12, "{major}.{minor}"),
    ///     Err(Error::NoDevice(reason)) => println!("{reason}"),
    ///     Err(error) => panic!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where there is no driver of CUDA 12.0 or later, [`Error::Cuda`] if it does not start.
    pub fn cuda_driver() -> Result<(u32, u32)> {
        driver::supported_version()
    }

    /// The number of the GPU on which memory lies, of whichever library.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// if let Ok(device) = Device::cuda(0) {
    ///     let x = device.zeros::<f32>(4)?;
    ///     assert_eq!(Device::cuda_ordinal_of(x.address())?, 0);
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where there is no driver of CUDA 12.0 or later, [`Error::Cuda`] if it does not know the address.
    pub fn cuda_ordinal_of(address: u64) -> Result<usize> {
        driver::ordinal_of(address)
    }

    /// A new emulated device with empty memory. It executes PTX.
    #[cfg(feature = "emulator")]
    pub fn emulator() -> Device {
        Device::of(emulator::create())
    }

    /// The same kind of device, new and with empty memory, whose launches are checked: what a kernel does wrong is
    /// [`Error::Sanitizer`], which says where in the source and who wrote last. Slower, by how much depends on the checks.
    /// The emulator makes all checks but `promise` and `open`, the interpreter makes those two.
    ///
    /// ```
    /// use rtc_runtime::{Device, Error, args, sanitize::Checks};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::emulator().with_sanitizer(Checks::ALL)?;
    /// // SAFETY: the files were made together.
    /// let kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let (x, mut y) = (device.alloc::<f32>(3)?, device.zeros::<f32>(3)?);
    /// let Err(Error::Sanitizer(found)) = kernel.launch(device.default_stream(), 1, &args![&x, &mut y, 2.0f32, 3]) else {
    ///     panic!("x is uninitialized");
    /// };
    /// assert_eq!(found[0].code, "uninitialized-global");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] for a GPU.
    #[cfg(feature = "emulator")]
    pub fn with_sanitizer(&self, checks: rtc_emulator::sanitize::Checks) -> Result<Device> {
        self.sanitize_within(checks, None)
    }

    /// Like [`Device::with_sanitizer`], where a block that executes more than `budget` instructions, counted once per warp, has an
    /// endless loop. [`Device::with_sanitizer`] allows a block as many as other launches on the emulator: what the environment variable
    /// `RTC_STEPS` says, or a thousand million.
    ///
    /// ```
    /// use rtc_runtime::{Device, sanitize::Checks};
    /// let device = Device::emulator().sanitize_within(Checks::ALL, Some(1_000_000))?;
    /// assert!(!device.is_cuda());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::with_sanitizer`].
    #[cfg(feature = "emulator")]
    pub fn sanitize_within(&self, checks: rtc_emulator::sanitize::Checks, budget: Option<u64>) -> Result<Device> {
        self.sanitized(|sanitize| Sanitize { checks, budget, ..sanitize })
            .ok_or_else(|| Error::NoDevice(format!("the sanitizer runs on the emulator, not on {self}")))
    }

    /// A new device of the same kind with other settings of the sanitizer; nothing for a GPU.
    #[cfg(feature = "emulator")]
    fn sanitized(&self, change: impl FnOnce(Sanitize) -> Sanitize) -> Option<Device> {
        let backend = self.backend();
        backend.sanitized(change(backend.sanitize()?)).map(Device::of)
    }

    /// The same kind of device, new and with empty memory, that counts what launches ask of the machine:
    /// [`Kernel::take_counters`](crate::Kernel::take_counters). The numbers are the same in every run. Only the
    /// emulator counts.
    ///
    /// ```
    /// use rtc_runtime::{Device, Kernel, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::emulator().with_counters()?;
    /// // SAFETY: the files were made together.
    /// let kernel: Kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let (x, mut y) = (device.zeros::<f32>(256)?, device.zeros::<f32>(256)?);
    /// kernel.launch(device.default_stream(), 8, &args![&x, &mut y, 2.0f32, 256])?;
    /// let counters = kernel.take_counters().expect("they were asked for");
    /// assert_eq!((counters.loads.sectors, counters.loads.bytes), (32, 1024));
    /// println!("{counters}");
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] for a GPU and for the interpreter.
    #[cfg(feature = "emulator")]
    pub fn with_counters(&self) -> Result<Device> {
        let counting = || self.sanitized(|sanitize| Sanitize { counts: true, ..sanitize });
        let device = if self.kind() == DeviceKind::Emulator { counting() } else { None };
        device.ok_or_else(|| Error::NoDevice(format!("counters are those of the emulator, not of {self}")))
    }

    /// The same kind of device, new and with empty memory, that records the events of the first cluster of each launch,
    /// for a timeline: [`Kernel::take_trace`](crate::Kernel::take_trace). Only the emulator records.
    ///
    /// ```
    /// use rtc_runtime::timeline::{BarKind, Model};
    /// use rtc_runtime::{Device, Kernel, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::emulator().with_trace()?;
    /// // SAFETY: the files were made together.
    /// let kernel: Kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let (x, mut y) = (device.zeros::<f32>(256)?, device.zeros::<f32>(256)?);
    /// kernel.launch(device.default_stream(), 8, &args![&x, &mut y, 2.0f32, 256])?;
    /// let timeline = kernel.take_trace().expect("it was asked for").replay(&Model::SM_90);
    /// assert!(timeline.bars.iter().any(|bar| bar.kind == BarKind::Load));
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] for a GPU and for the interpreter.
    #[cfg(feature = "emulator")]
    pub fn with_trace(&self) -> Result<Device> {
        let recording = || self.sanitized(|sanitize| Sanitize { records: true, ..sanitize });
        let device = if self.kind() == DeviceKind::Emulator { recording() } else { None };
        device.ok_or_else(|| Error::NoDevice(format!("timelines are those of the emulator, not of {self}")))
    }

    /// A new interpreting device with empty memory. It executes the tile IR, so it needs the compiler: features `jit` and
    /// `emulator`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where this crate was built without these features.
    pub fn interpreter() -> Result<Device> {
        #[cfg(all(feature = "emulator", feature = "jit"))]
        return Ok(Device::of(interpreter::create()));
        #[cfg(not(all(feature = "emulator", feature = "jit")))]
        Err(Error::NoDevice("the interpreter needs the features `jit` and `emulator` of rtc-runtime".into()))
    }

    /// The first GPU, or the emulator where there is none; [`Device::cuda_error`] then says why.
    #[cfg(feature = "emulator")]
    pub fn auto() -> Device {
        Device::cuda(0).unwrap_or_else(|error| Device::with_fallback(emulator::create(), Some(error)))
    }

    /// Why `Device::auto` gave the emulator instead of a GPU; `None` for devices that were asked for.
    ///
    /// ```
    /// let device = rtc_runtime::Device::auto();
    /// if let Some(reason) = device.cuda_error() {
    ///     eprintln!("running on the {device}: {reason}");
    /// }
    /// assert_eq!(device.cuda_error().is_some(), !device.is_cuda());
    /// ```
    pub fn cuda_error(&self) -> Option<&Error> {
        self.0.fallback.as_ref()
    }

    /// How many SMs it has, which run blocks at the same time.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// for device in (0..Device::cuda_count()?).map(Device::cuda) {
    ///     println!("{} SMs", device?.sm_count());
    /// }
    /// if let Ok(device) = Device::interpreter() {
    ///     assert!(device.is_interpreter()); // with the features `jit` and `emulator`
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn sm_count(&self) -> u32 {
        self.backend().sm_count()
    }

    /// Which kind of device it is; of a GPU with its number.
    ///
    /// ```
    /// use rtc_runtime::{Device, DeviceKind};
    /// assert_eq!(Device::emulator().kind(), DeviceKind::Emulator);
    /// ```
    pub fn kind(&self) -> DeviceKind {
        self.backend().kind()
    }

    /// Whether it is a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.kind(), DeviceKind::Cuda(_))
    }

    /// Whether it executes tile IR instead of PTX.
    pub fn is_interpreter(&self) -> bool {
        self.kind() == DeviceKind::Interpreter
    }

    /// Its model, such as `NVIDIA H100 80GB HBM3`; `emulator` and `interpreter` on the CPU. [`Display`](fmt::Display) gives the
    /// number of a GPU as well.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// let device = Device::auto();
    /// println!("{} has compute capability {:?}", device.name(), device.compute_capability());
    /// assert_eq!(Device::emulator().name(), "emulator");
    /// ```
    pub fn name(&self) -> String {
        self.backend().model()
    }

    /// The compute capability, as major and minor; that of an H100, (9, 0), on the CPU.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.backend().compute_capability()
    }

    /// How much memory the GPU has and how much of it is free now.
    ///
    /// ```
    /// use rtc_runtime::{Device, Error, MemoryInfo};
    /// match Device::auto().memory_info() {
    ///     Ok(MemoryInfo { free, total }) => println!("{} of {} MiB are free", free >> 20, total >> 20),
    ///     Err(Error::NoDevice(reason)) => println!("{reason}"), // on the CPU
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] on devices on the CPU, whose buffers are memory of the process; [`Error::Cuda`] if the driver fails.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.backend().memory_info().map(|(free, total)| MemoryInfo { free, total })
    }

    /// Bytes of memory that the GPU has.
    ///
    /// ```
    /// if let Ok(device) = rtc_runtime::Device::cuda(0) {
    ///     assert!(device.total_memory()? > 1 << 30);
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::memory_info`].
    pub fn total_memory(&self) -> Result<u64> {
        self.memory_info().map(|info| info.total)
    }

    /// Has the driver's memory pool, of which [`Stream::alloc`] takes its memory, keep up to so many `bytes` that are free. At first
    /// it keeps none: what is free when the host waits for work goes back to the system, and takes long to come again. The setting
    /// is one of the GPU in this process, so that other libraries share it. Devices on the CPU, and GPUs without a pool, have no
    /// such setting; there the call does nothing.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// let device = Device::auto();
    /// device.set_pool_release_threshold(1 << 30)?; // 1 GiB
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails.
    pub fn set_pool_release_threshold(&self, bytes: u64) -> Result<()> {
        self.backend().set_pool_release_threshold(bytes)
    }

    /// The number that names this GPU on all machines, as `nvidia-smi -L` shows it.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// assert!(Device::emulator().uuid().is_err());
    /// if let Ok(device) = Device::cuda(0) {
    ///     assert_ne!(device.uuid()?, [0; 16]);
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] on devices on the CPU; [`Error::Cuda`] if the driver fails.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        self.backend().uuid()
    }

    /// The target that kernels for this device are compiled for: its own on a GPU, `sm_90a` on the others.
    ///
    /// ```
    /// use rtc_runtime::{Device, abi::Arch};
    /// let arch: Arch = Device::emulator().arch();
    /// assert_eq!((arch.capability, arch.to_string()), (90, "sm_90a".into()));
    /// ```
    pub fn arch(&self) -> Arch {
        self.backend().arch()
    }

    /// Waits for all work.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] for a failure of the work, or of the driver; devices on the CPU report it where the work is given.
    pub fn synchronize(&self) -> Result<()> {
        self.backend().synchronize()
    }

    /// The default stream, to which copies of the host belong.
    pub fn default_stream(&self) -> &Stream {
        &self.0.default_stream
    }

    /// A further stream, whose work may run beside that of others. It waits for copies of the host, which are made on the
    /// default stream.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// A further stream. Blocks of a stream with a higher priority start before those of others that are waiting; 0 is the
    /// lowest, which [`Device::stream`] has, and numbers above the device's range mean its highest.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails.
    pub fn stream_with_priority(&self, priority: u8) -> Result<Stream> {
        Ok(Stream::of(self.backend(), self.backend().clone().stream(priority)?))
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// The number that tells it from other devices.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        self.0.id
    }

    /// Whether two handles mean the same device, so that buffers of one are valid on the other.
    #[inline]
    pub fn is_same(&self, other: &Device) -> bool {
        self.id() == other.id()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.backend().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_is_an_error() {
        assert_eq!(Device::emulator().cuda_error(), None);
        if Device::cuda_count() == Ok(0) {
            assert!(matches!(Device::cuda(0), Err(Error::NoDevice(_) | Error::Cuda { .. })));
            let device = Device::auto();
            assert_eq!(device.to_string(), "emulator");
            let reason = device.cuda_error().expect("there is a reason").to_string();
            assert!(reason.contains("CUDA"), "{reason}");
        }
    }
}

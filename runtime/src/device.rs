//! Devices: where kernels run.
//!
//! A [`Device`] is a CUDA GPU, the PTX emulator or the interpreter of the tile IR; the rest of the runtime is the same
//! code for all three. On the emulator and the interpreter a launch runs to its end before the call returns.

use crate::host::HostMemory;
#[cfg(feature = "emulator")]
use crate::host::Sanitize;
use crate::{Error, Result, cuda};
use std::fmt;
use std::str::FromStr;
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
pub struct Device {
    backend: Backend,
    /// What tells devices apart: the number of a GPU, whose handles share its primary context, else where its memory is.
    id: usize,
    /// Why `Device::auto` found no GPU.
    fallback: Option<Arc<Error>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Cuda(Arc<cuda::Context>),
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))]
    Emulator(Arc<HostMemory>),
    #[cfg_attr(not(feature = "jit"), allow(dead_code))]
    Interpreter(Arc<HostMemory>),
}

/// Which device is wanted, as the command line writes it.
///
/// ```
/// use rtc_runtime::{Device, DeviceKind};
/// let kind: DeviceKind = "emulator".parse()?;
/// assert_eq!(Device::open(kind).map(|device| device.to_string()), Ok("emulator".into()));
/// assert_eq!("cuda:1".parse(), Ok(DeviceKind::Cuda(1)));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The first GPU, or the emulator where there is none.
    Auto,
    /// The GPU of that number.
    Cuda(usize),
    /// The PTX emulator.
    Emulator,
    /// The interpreter of the tile IR.
    Interpreter,
}

impl FromStr for DeviceKind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<DeviceKind, String> {
        match text {
            "auto" => Ok(DeviceKind::Auto),
            "cuda" => Ok(DeviceKind::Cuda(0)),
            "emulator" => Ok(DeviceKind::Emulator),
            "interpreter" => Ok(DeviceKind::Interpreter),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok().map(DeviceKind::Cuda))
                .ok_or_else(|| format!("`{text}` is not a device; devices are auto, cuda:N, emulator, interpreter")),
        }
    }
}

/// What the devices on the CPU say they have: few, so that persistent kernels take several rounds there, too.
const EMULATED_MULTIPROCESSORS: u32 = 2;

impl Device {
    fn new(backend: Backend) -> Device {
        let id = match &backend {
            Backend::Cuda(context) => context.ordinal(),
            Backend::Emulator(memory) | Backend::Interpreter(memory) => Arc::as_ptr(memory).addr(),
        };
        Device { backend, id, fallback: None }
    }

    /// The device that `kind` names.
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

    /// The GPU of that number; an error where there is no driver or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device::new(Backend::Cuda(cuda::Context::open(ordinal)?)))
    }

    /// How many GPUs there are; 0 where there is no driver or it sees none. An error where there is a driver that cannot be used:
    /// it is too old, say, or is not that of the running kernel module.
    ///
    /// ```
    /// match rtc_runtime::Device::cuda_count() {
    ///     Ok(count) => println!("{count} GPUs"),
    ///     Err(error) => println!("there may be GPUs, but: {error}"),
    /// }
    /// ```
    pub fn cuda_count() -> Result<usize> {
        cuda::visible_count()
    }

    /// The version of CUDA that the driver has, as major and minor; an error where there is no driver or it is too old. Its
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
    pub fn cuda_driver() -> Result<(u32, u32)> {
        cuda::supported_version()
    }

    /// The number of the GPU on which memory lies, of whichever library. An error where the driver does not know the address.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// if let Ok(device) = Device::cuda(0) {
    ///     let x = device.zeros::<f32>(4)?;
    ///     assert_eq!(Device::cuda_ordinal_of(x.address())?, 0);
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn cuda_ordinal_of(address: u64) -> Result<usize> {
        cuda::ordinal_of(address)
    }

    /// A new emulated device with empty memory. It executes PTX. Feature `emulator`.
    #[cfg(feature = "emulator")]
    pub fn emulator() -> Device {
        Device::new(Backend::Emulator(HostMemory::create()))
    }

    /// The same kind of device, new and with empty memory, whose launches are checked: what a kernel does wrong is
    /// [`Error::Sanitizer`], which says where in the source and who wrote last. Slower, by how much depends on the checks.
    /// The emulator makes all checks but `promise` and `open`, the interpreter makes those two; GPUs give an error. Feature
    /// `emulator`.
    ///
    /// ```
    /// use rtc_runtime::{Device, Error, args, sanitize::Checks};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::emulator().sanitize(Checks::ALL)?;
    /// // SAFETY: the files were made together.
    /// let kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let (x, mut y) = (device.alloc::<f32>(3)?, device.zeros::<f32>(3)?);
    /// let Err(Error::Sanitizer(found)) = kernel.launch(&device.default_stream(), 1, &args![&x, &mut y, 2.0f32, 3]) else {
    ///     panic!("nobody wrote x");
    /// };
    /// assert_eq!(found[0].code, "uninitialized-global");
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "emulator")]
    pub fn sanitize(&self, checks: rtc_emulator::sanitize::Checks) -> Result<Device> {
        self.sanitize_within(checks, None)
    }

    /// Like [`Device::sanitize`], where a block that executes more than `budget` instructions, counted once per warp, has an
    /// endless loop. [`Device::sanitize`] allows a block as many as other launches on the emulator: what the environment variable
    /// `RTC_STEPS` says, or a thousand million. Feature `emulator`.
    ///
    /// ```
    /// use rtc_runtime::{Device, sanitize::Checks};
    /// let device = Device::emulator().sanitize_within(Checks::ALL, Some(1_000_000))?;
    /// assert!(!device.is_cuda());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    #[cfg(feature = "emulator")]
    pub fn sanitize_within(&self, checks: rtc_emulator::sanitize::Checks, budget: Option<u64>) -> Result<Device> {
        match self.backend {
            Backend::Emulator(_) => {
                let sanitize = Sanitize { checks, budget, ..self.asked() };
                Ok(Device::new(Backend::Emulator(HostMemory::sanitized(sanitize))))
            }
            Backend::Interpreter(_) => {
                let sanitize = Sanitize { checks, budget, ..self.asked() };
                Ok(Device::new(Backend::Interpreter(HostMemory::sanitized(sanitize))))
            }
            Backend::Cuda(_) => Err(Error::NoDevice(format!("the sanitizer runs on the emulator, not on {self}"))),
        }
    }

    /// The same kind of device, new and with empty memory, that counts what launches ask of the machine:
    /// [`Kernel::take_counters`](crate::Kernel::take_counters). The numbers are the same in every run. Only the emulator can;
    /// other devices give an error. Feature `emulator`.
    ///
    /// ```
    /// use rtc_runtime::{Device, Kernel, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::emulator().count()?;
    /// // SAFETY: the files were made together.
    /// let kernel: Kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let (x, mut y) = (device.zeros::<f32>(256)?, device.zeros::<f32>(256)?);
    /// kernel.launch(&device.default_stream(), 8, &args![&x, &mut y, 2.0f32, 256])?;
    /// let counters = kernel.take_counters().expect("they were asked for");
    /// assert_eq!((counters.loads.sectors, counters.loads.bytes), (32, 1024));
    /// println!("{counters}");
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    #[cfg(feature = "emulator")]
    pub fn count(&self) -> Result<Device> {
        match self.backend {
            Backend::Emulator(_) => {
                let sanitize = Sanitize { counts: true, ..self.asked() };
                Ok(Device::new(Backend::Emulator(HostMemory::sanitized(sanitize))))
            }
            _ => Err(Error::NoDevice(format!("counters are those of the emulator, not of {self}"))),
        }
    }

    /// What its launches are checked for and whether they are counted.
    #[cfg(feature = "emulator")]
    fn asked(&self) -> Sanitize {
        match &self.backend {
            Backend::Emulator(memory) | Backend::Interpreter(memory) => memory.asked(),
            Backend::Cuda(_) => Sanitize::default(),
        }
    }

    /// A new interpreting device with empty memory. It executes the tile IR, so it needs the compiler: feature `jit`.
    pub fn interpreter() -> Result<Device> {
        #[cfg(feature = "jit")]
        return Ok(Device::new(Backend::Interpreter(HostMemory::create())));
        #[cfg(not(feature = "jit"))]
        Err(Error::NoDevice("the interpreter needs the feature `jit` of rtc-runtime".into()))
    }

    /// The first GPU, or the emulator where there is none; [`Device::fallback_reason`] then says why. Feature `emulator`.
    #[cfg(feature = "emulator")]
    pub fn auto() -> Device {
        Device::cuda(0).unwrap_or_else(|error| Device { fallback: Some(Arc::new(error)), ..Device::emulator() })
    }

    /// Why `Device::auto` gave the emulator instead of a GPU; `None` for devices that were asked for.
    ///
    /// ```
    /// let device = rtc_runtime::Device::auto();
    /// if let Some(reason) = device.fallback_reason() {
    ///     eprintln!("running on the {device}: {reason}");
    /// }
    /// assert_eq!(device.fallback_reason().is_some(), !device.is_cuda());
    /// ```
    pub fn fallback_reason(&self) -> Option<&Error> {
        self.fallback.as_deref()
    }

    /// How many multiprocessors it has, which run blocks at the same time.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// for device in (0..Device::cuda_count()?).map(Device::cuda) {
    ///     println!("{} multiprocessors", device?.multiprocessors());
    /// }
    /// if let Ok(device) = Device::interpreter() {
    ///     assert!(device.is_interpreter()); // with the feature `jit`
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn multiprocessors(&self) -> u32 {
        match &self.backend {
            Backend::Cuda(context) => context.multiprocessors(),
            Backend::Emulator(_) | Backend::Interpreter(_) => EMULATED_MULTIPROCESSORS,
        }
    }

    /// Whether it is a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.backend, Backend::Cuda(_))
    }

    /// Whether it executes tile IR instead of PTX.
    pub fn is_interpreter(&self) -> bool {
        matches!(self.backend, Backend::Interpreter(_))
    }

    /// The target that kernels for this device are compiled for: its own on a GPU, `sm_90a` on the others.
    ///
    /// ```
    /// assert_eq!(rtc_runtime::Device::emulator().arch(), "sm_90a");
    /// ```
    pub fn arch(&self) -> String {
        match &self.backend {
            // Targets of capability 9.0 and above have an architecture-specific feature set.
            Backend::Cuda(context) if context.capability() >= 90 => format!("sm_{}a", context.capability()),
            Backend::Cuda(context) => format!("sm_{}", context.capability()),
            Backend::Emulator(_) | Backend::Interpreter(_) => "sm_90a".into(),
        }
    }

    /// Waits for all work; reports what went wrong in it.
    pub fn synchronize(&self) -> Result<()> {
        match &self.backend {
            Backend::Cuda(context) => context.synchronize(),
            Backend::Emulator(_) | Backend::Interpreter(_) => Ok(()),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Whether two handles mean the same device, so that buffers of one are valid on the other.
    #[inline]
    pub fn is_same(&self, other: &Device) -> bool {
        self.id == other.id
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.backend {
            Backend::Cuda(context) => write!(f, "cuda:{} ({})", context.ordinal(), context.name()),
            Backend::Emulator(_) => f.write_str("emulator"),
            Backend::Interpreter(_) => f.write_str("interpreter"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        assert_eq!("cuda:3".parse(), Ok(DeviceKind::Cuda(3)));
        assert_eq!("auto".parse(), Ok(DeviceKind::Auto));
        for bad in ["cuda:", "cuda:-1", "gpu", ""] {
            let error = bad.parse::<DeviceKind>().unwrap_err();
            assert!(error.contains("cuda:N"), "{error}");
        }
    }

    #[test]
    fn a_missing_driver_is_an_error() {
        assert_eq!(Device::emulator().fallback_reason(), None);
        if Device::cuda_count() == Ok(0) {
            assert!(matches!(Device::cuda(0), Err(Error::NoDevice(_) | Error::Cuda { .. })));
            let device = Device::auto();
            assert_eq!(device.to_string(), "emulator");
            let reason = device.fallback_reason().expect("there is a reason").to_string();
            assert!(reason.contains("CUDA"), "{reason}");
        }
    }
}

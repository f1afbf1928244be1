//! The driver, the GPUs and the devices on the CPU: each runs a small kernel.

use crate::Check;
use rtc_runtime::jit::Options;
use rtc_runtime::{Device, args};

/// Writes the numbers from 0 on.
const KERNEL: &str = "@triton.jit\ndef count(x_ptr, BLOCK: tl.constexpr):\n    offsets = tl.arange(0, BLOCK)\n    tl.store(x_ptr + offsets, offsets)\n";
const BLOCK: usize = 256;

/// The devices.
pub(crate) struct Devices {
    pub(crate) checks: Vec<Check>,
    /// The version of CUDA that the driver has, as major and minor; nothing without a driver.
    pub(crate) driver: Option<(u32, u32)>,
    /// The targets of the GPUs.
    pub(crate) archs: Vec<String>,
}

/// Looks at all devices.
pub(crate) fn checks() -> Devices {
    let (mut checks, mut archs) = (Vec::new(), Vec::new());
    let driver = match Device::cuda_driver() {
        Ok((major, minor)) => {
            let version = crate::list::driver_version().map_or(String::new(), |version| format!("{version}, "));
            checks.push(Check::ok("driver", format!("the CUDA driver is {version}for CUDA {major}.{minor}")));
            Some((major, minor))
        }
        Err(error) => {
            let remedy = "to use an NVIDIA GPU, install or update its driver (CUDA 12.0 or later), and in a container start it \
                          with the GPUs (`docker run --gpus all`)";
            checks.push(Check::warning("driver", error.to_string(), remedy));
            None
        }
    };
    // Why the driver cannot be used is said above.
    let count = Device::cuda_count().unwrap_or(0);
    if driver.is_some() && count == 0 {
        let remedy = "`nvidia-smi` shows what the driver sees; CUDA_VISIBLE_DEVICES may hide GPUs";
        checks.push(Check::warning("gpu", "the driver sees no GPU", remedy));
    }
    for ordinal in 0..count {
        checks.push(match Device::cuda(ordinal) {
            Ok(device) => {
                let arch = device.arch().to_string();
                let text = format!("{device}, {arch}, {} SMs", device.sm_count());
                archs.push(arch);
                ran(&device, "gpu", text)
            }
            Err(error) => {
                let remedy = "`nvidia-smi` shows the state of the GPU; it may be in use exclusively or need a reset";
                Check::error("gpu", format!("GPU {ordinal} cannot be used: {error}"), remedy).of_device(false)
            }
        });
    }
    checks.push(ran(&Device::emulator(), "emulator", "executes PTX on the CPU".into()));
    checks.push(match Device::interpreter() {
        Ok(device) => ran(&device, "interpreter", "executes tile IR on the CPU".into()),
        Err(error) => Check::error("interpreter", error.to_string(), "build rtc again").of_device(false),
    });
    Devices { checks, driver, archs }
}

/// The check of a device on which a kernel was run.
fn ran(device: &Device, topic: &'static str, text: String) -> Check {
    match run(device) {
        Ok(true) => Check::ok(topic, format!("{text}; a kernel ran there")).of_device(true),
        Ok(false) => {
            let remedy = "report it with this output; until then use another device (`--device emulator`)";
            Check::error(topic, format!("{text}; a kernel ran there, and its result is wrong"), remedy).of_device(false)
        }
        Err(error) => {
            let remedy = "the message says which step failed; another program may have used up the device's memory, or the driver \
                          may be older than the GPU";
            Check::error(topic, format!("{text}; no kernel runs there: {error}"), remedy).of_device(false)
        }
    }
}

/// Compiles the kernel, runs it and compares its result.
fn run(device: &Device) -> Result<bool, Box<dyn std::error::Error>> {
    let kernel = device.jit(&[("doctor.rt", KERNEL)])?.with_cache(None).kernel("count")?;
    let mut x = device.zeros::<i32>(BLOCK)?;
    kernel.launch(device.default_stream(), 1, &args![&mut x, BLOCK], &Options::new())?;
    device.synchronize()?;
    Ok(x.to_vec()?.iter().copied().eq(0..BLOCK as i32))
}

//! The devices that kernels can run on: the GPUs, the emulator and the interpreter.

use rtc_runtime::Device;
use serde::Serialize;
use std::fmt;

/// The devices of this machine and its driver. The fields are the same on every machine; what a machine does not have is
/// `None`.
///
/// ```
/// let list = rtc_doctor::devices();
/// assert!(list.devices.iter().any(|device| device.device == "emulator"));
/// assert_eq!(list.driver.error.is_none(), list.driver.cuda.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceList {
    /// The CUDA driver.
    pub driver: Driver,
    /// The device that `auto` names.
    pub default: String,
    /// The GPUs in the order of the driver, then the emulator and the interpreter.
    pub devices: Vec<DeviceInfo>,
}

/// The CUDA driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// The version of the driver, such as `570.124.06`.
    pub version: Option<String>,
    /// The latest version of CUDA that it supports, such as `12.8`.
    pub cuda: Option<String>,
    /// Why there is no driver that can be used.
    pub error: Option<String>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// The device as `--device` takes it, such as `cuda:0`.
    pub device: String,
    /// The model; `emulator` and `interpreter` on the CPU.
    pub name: Option<String>,
    /// The target of kernels for it, such as `sm_90a`.
    pub arch: Option<String>,
    /// The compute capability, such as `9.0`; on the CPU that of the GPU whose code is executed.
    pub compute_capability: Option<String>,
    /// The number of SMs; on the CPU of processors that run blocks.
    pub sms: Option<u32>,
    /// Bytes of memory; on the CPU none, since buffers are memory of the process.
    pub memory_bytes: Option<u64>,
    /// Bytes of memory that are free.
    pub free_bytes: Option<u64>,
    /// The UUID of a GPU, as `nvidia-smi -L` shows it.
    pub uuid: Option<String>,
    /// Why the device cannot be used.
    pub error: Option<String>,
}

/// Lists the devices. No kernel is run.
pub fn devices() -> DeviceList {
    let cuda = Device::cuda_driver();
    let driver = Driver {
        version: driver_version(),
        cuda: cuda.as_ref().ok().map(|(major, minor)| format!("{major}.{minor}")),
        error: cuda.as_ref().err().map(ToString::to_string),
    };
    let count = if cuda.is_ok() { Device::cuda_count().unwrap_or(0) } else { 0 };
    let mut devices: Vec<DeviceInfo> =
        (0..count).map(|ordinal| info(format!("cuda:{ordinal}"), Device::cuda(ordinal))).collect();
    // As `Device::auto`: the first GPU or the emulator.
    let default = devices.first().filter(|gpu| gpu.error.is_none()).map_or("emulator", |gpu| &gpu.device).to_owned();
    devices.push(info("emulator".into(), Ok(Device::emulator())));
    devices.push(info("interpreter".into(), Device::interpreter()));
    DeviceList { driver, default, devices }
}

fn info(name: String, device: rtc_runtime::Result<Device>) -> DeviceInfo {
    let device = match device {
        Ok(device) => device,
        Err(error) => return DeviceInfo { error: Some(error.to_string()), ..DeviceInfo::unknown(name) },
    };
    let (major, minor) = device.compute_capability();
    let memory = device.memory_info().ok();
    DeviceInfo {
        name: Some(device.name()),
        arch: Some(device.arch().to_string()),
        compute_capability: Some(format!("{major}.{minor}")),
        sms: Some(device.sm_count()),
        memory_bytes: memory.map(|info| info.total),
        free_bytes: memory.map(|info| info.free),
        uuid: device.uuid().ok().map(uuid),
        ..DeviceInfo::unknown(name)
    }
}

impl DeviceInfo {
    fn unknown(device: String) -> DeviceInfo {
        DeviceInfo {
            device,
            name: None,
            arch: None,
            compute_capability: None,
            sms: None,
            memory_bytes: None,
            free_bytes: None,
            uuid: None,
            error: None,
        }
    }

    fn memory(&self) -> String {
        let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        match (self.memory_bytes, self.free_bytes) {
            (Some(total), Some(free)) => format!("{:.1} GiB, {:.1} free", gibibytes(total), gibibytes(free)),
            _ => "of the process".into(),
        }
    }
}

/// A UUID in the form of `nvidia-smi`.
fn uuid(bytes: [u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("GPU-{}", parts.join("-"))
}

/// The version of the driver's kernel module. CUDA gives only the version of CUDA that the driver supports.
pub(crate) fn driver_version() -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let module = || read("/sys/module/nvidia/version").map(|text| text.trim().to_owned()).filter(|t| !t.is_empty());
    read("/proc/driver/nvidia/version").and_then(|text| version_in(&text)).or_else(module)
}

/// The version in `/proc/driver/nvidia/version`: the first word of its first line that consists of numbers and dots.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.contains('.') && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

impl DeviceList {
    /// The list as JSON: the fields of this type.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }
}

impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name_width = self.devices.iter().filter_map(|d| d.name.as_ref()).map(String::len).max().unwrap_or(0);
        let width = name_width.max("name".len());
        writeln!(f, "{:12} {:width$}  {:7} {:10} {:>4}  memory", "device", "name", "target", "capability", "SMs")?;
        for device in &self.devices {
            if let Some(error) = &device.error {
                writeln!(f, "{:12} cannot be used: {error}", device.device)?;
                continue;
            }
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            writeln!(
                f,
                "{:12} {:width$}  {:7} {:10} {:>4}  {}",
                device.device,
                text(&device.name),
                text(&device.arch),
                text(&device.compute_capability),
                device.sms.map(|sms| sms.to_string()).unwrap_or_default(),
                device.memory(),
            )?;
        }
        let Driver { version, cuda, error } = &self.driver;
        match (cuda, error) {
            (Some(cuda), _) => {
                let version = version.as_ref().map_or(String::new(), |version| format!("{version}, "));
                writeln!(f, "driver: {version}for CUDA {cuda}")
            }
            (None, Some(error)) => writeln!(f, "driver: {error}"),
            (None, None) => writeln!(f, "driver: none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_both_kernel_modules() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12.2.0";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (root@host)\n";
        assert_eq!(version_in(closed).as_deref(), Some("550.54.15"));
        assert_eq!(version_in(open).as_deref(), Some("570.124.06"));
        assert_eq!(version_in("GCC version. 12..2\n"), None);
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn uuids_are_those_of_nvidia_smi() {
        let bytes = std::array::from_fn(|index| 0x10 * (index as u8));
        assert_eq!(uuid(bytes), "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
    }

    #[test]
    fn a_table_of_a_gpu_and_of_one_that_cannot_be_used() {
        let gpu = DeviceInfo {
            name: Some("NVIDIA H100 80GB HBM3".into()),
            arch: Some("sm_90a".into()),
            compute_capability: Some("9.0".into()),
            sms: Some(132),
            memory_bytes: Some(80 << 30),
            free_bytes: Some(79 << 30),
            ..DeviceInfo::unknown("cuda:0".into())
        };
        let broken = DeviceInfo { error: Some("out of memory".into()), ..DeviceInfo::unknown("cuda:1".into()) };
        let driver = Driver { version: Some("570.124.06".into()), cuda: Some("12.8".into()), error: None };
        let list = DeviceList { driver, default: "cuda:0".into(), devices: vec![gpu, broken] };
        let expected = "\
device       name                   target  capability  SMs  memory
cuda:0       NVIDIA H100 80GB HBM3  sm_90a  9.0         132  80.0 GiB, 79.0 free
cuda:1       cannot be used: out of memory
driver: 570.124.06, for CUDA 12.8
";
        assert_eq!(list.to_string(), expected);
    }
}

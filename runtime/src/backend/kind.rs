//! Which kinds of devices there are.

use std::str::FromStr;

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
}

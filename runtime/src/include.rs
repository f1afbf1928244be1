//! Including kernels that were compiled by a build script.
#![allow(unsafe_code)]

use crate::{Device, Error, Kernel, Result};
use rtc_abi::{Arch, Metadata};

/// A kernel for one target, as a build script embeds it.
///
/// ```
/// use rtc_runtime::{Device, Variant};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// // SAFETY: the files were made together.
/// let variants = [unsafe { Variant::new("sm_80", ptx, json, None) }]; // and others, of which the best is taken
/// let kernel = Device::auto().load_variant("scale", &variants)?;
/// assert_eq!(kernel.metadata().arch, "sm_80");
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    arch: &'static str,
    ptx: &'static str,
    metadata: &'static str,
    cubin: Option<&'static [u8]>,
}

impl Variant {
    /// A kernel for a target such as `sm_90a`: PTX text, the JSON text of its metadata, and the machine code for GPUs of
    /// just that target, if it was assembled at build time.
    ///
    /// # Safety
    ///
    /// As for [`Device::load_cubin`]. What `rtc-build` writes meets it.
    pub const unsafe fn new(
        arch: &'static str,
        ptx: &'static str,
        metadata: &'static str,
        cubin: Option<&'static [u8]>,
    ) -> Variant {
        Variant { arch, ptx, metadata, cubin }
    }
}

impl Device {
    /// Loads the variant that suits the device best: the newest target that it can run.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] if the device can run none of them; else as for [`Device::load_cubin`].
    pub fn load_variant(&self, kernel: &str, variants: &[Variant]) -> Result<Kernel> {
        let ranked = variants.iter().filter_map(|variant| Some((self.rank(variant.arch)?, variant)));
        let best = ranked.max_by_key(|(rank, _)| *rank).map(|(_, variant)| variant).ok_or_else(|| {
            let archs: Vec<&str> = variants.iter().map(|v| v.arch).collect();
            let message = format!(
                "it was built for {}, the device needs {}; build it for that target, too",
                archs.join(", "),
                self.arch()
            );
            Error::WrongDevice { kernel: kernel.to_owned(), device: self.to_string(), message }
        })?;
        // SAFETY: the creator of the variant guaranteed it.
        unsafe { self.load_cubin(best.ptx, best.cubin, &Metadata::from_json(best.metadata)?) }
    }

    /// How well PTX for that target suits the device, more is better; `None` if it does not run here.
    fn rank(&self, arch: &str) -> Option<Arch> {
        let own = self.arch();
        arch.parse().ok().filter(|arch: &Arch| arch.runs_on(own.capability))
    }
}

/// Includes the module that `rtc-build` made of a source file: `include_kernels!("softmax")` for `softmax.rt`.
///
/// The macro stands where a module may stand; the module has the name of the source file and one function per kernel,
/// which loads the kernel on a device and gives a value with a typed `launch`.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/rtc/", $name, ".rs"));
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_targets_run_on_later_devices() {
        // The emulator stands for sm_90a.
        let device = Device::emulator();
        let answers = ["sm_80", "sm_90", "sm_90a", "sm_89a", "sm_100a", "x"].map(|arch| device.rank(arch).is_some());
        assert_eq!(answers, [true, true, true, false, false, false]);
        assert!(device.rank("sm_90a") > device.rank("sm_90") && device.rank("sm_90") > device.rank("sm_80"));
        let variant = |arch| Variant { arch, ptx: "", metadata: "{}", cubin: None };
        let error = device.load_variant("k", &[variant("sm_100a"), variant("sm_120a")]).unwrap_err();
        insta::assert_snapshot!(error, @"kernel `k` cannot run on emulator: it was built for sm_100a, sm_120a, the device needs sm_90a; build it for that target, too");
    }
}

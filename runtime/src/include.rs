//! Including kernels that were compiled by a build script.

use crate::{Device, Error, Kernel, Result};

/// A kernel for one target, as a build script embeds it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Target such as `sm_90a`.
    pub arch: &'static str,
    /// PTX text.
    pub ptx: &'static str,
    /// JSON text of the metadata.
    pub metadata: &'static str,
}

impl Device {
    /// Loads the variant that suits the device best: the newest target that it can run.
    pub fn load_variant(&self, kernel: &str, variants: &[Variant]) -> Result<Kernel> {
        let runs = |variant: &&Variant| self.runs(variant.arch);
        let rank = |variant: &&Variant| (target_number(variant.arch), is_specific(variant.arch));
        let best = variants.iter().filter(runs).max_by_key(rank).ok_or_else(|| {
            let archs: Vec<&str> = variants.iter().map(|v| v.arch).collect();
            let message = format!("it was built for {}, the device needs {}", archs.join(", "), self.arch());
            Error::WrongDevice { kernel: kernel.to_owned(), device: self.to_string(), message }
        })?;
        self.load_json(best.ptx, best.metadata)
    }

    /// Whether PTX for that target runs here: plain targets run on later devices too, architecture-specific ones only
    /// on their own.
    fn runs(&self, arch: &str) -> bool {
        let own = self.arch();
        let (wanted, have) = (target_number(arch), target_number(&own));
        wanted == have || (wanted < have && !is_specific(arch))
    }
}

/// 90 for `sm_90a`; a number above all for what is no target.
fn target_number(arch: &str) -> u32 {
    let digits = arch.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().unwrap_or(u32::MAX)
}

fn is_specific(arch: &str) -> bool {
    arch.ends_with(['a', 'f'])
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
        let answers = ["sm_80", "sm_90", "sm_90a", "sm_89a", "sm_100a", "x"].map(|arch| device.runs(arch));
        assert_eq!(answers, [true, true, true, false, false, false]);
        let variant = |arch| Variant { arch, ptx: "", metadata: "{}" };
        let error = device.load_variant("k", &[variant("sm_100a"), variant("sm_120a")]).unwrap_err();
        insta::assert_snapshot!(error, @"kernel `k` cannot run on emulator: it was built for sm_100a, sm_120a, the device needs sm_90a");
    }
}

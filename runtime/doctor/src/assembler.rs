//! NVIDIA's assembler, in the driver and as `ptxas`, and the defects that are known of its versions.

use crate::Check;
use rtc_build::Assembler;

/// A version: major and minor.
type Version = (u32, u32);

/// A defect of the assembler.
struct Defect {
    /// The first version that has it.
    first: Version,
    /// The first version without it.
    mended: Version,
    /// The target whose machine code is wrong.
    arch: &'static str,
    what: &'static str,
}

/// Those that matter for code as rtc emits it.
const DEFECTS: &[Defect] = &[Defect {
    first: (12, 8),
    mended: (13, 1),
    arch: "sm_90a",
    what: "wrong results were reported of kernels of linear attention, which have several dependent wgmma in a loop",
}];

impl Defect {
    fn concerns(&self, version: Version) -> bool {
        (self.first..self.mended).contains(&version)
    }

    /// The check of an assembler that has it.
    fn check(&self, which: &str, (major, minor): Version, remedy: String) -> Check {
        let Defect { arch, what, mended, .. } = self;
        let text = format!(
            "{which} is {major}.{minor}; for {arch}, {what} (mended in {}.{}). Whether a kernel of yours is among them is not known",
            mended.0, mended.1
        );
        Check::warning("assembler", text, remedy)
    }
}

/// Looks at the assembler of the driver, if a GPU needs it, and at the `ptxas` that is found.
pub(crate) fn checks(driver: Option<Version>, has_hopper: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(version) = driver {
        checks.push(of_driver(version, has_hopper));
    }
    checks.push(of_toolkit());
    checks
}

/// The assembler of a driver, which has the version of the driver's CUDA.
fn of_driver(version: Version, has_hopper: bool) -> Check {
    match DEFECTS.iter().find(|defect| has_hopper && defect.concerns(version)) {
        Some(defect) => {
            let (major, minor) = defect.mended;
            let remedy = format!(
                "update the driver to one for CUDA {major}.{minor} or later; or build programs with cubins by a ptxas of that version \
                 (`rtc_build::Config::cubin`)"
            );
            defect.check("the driver's assembler", version, remedy)
        }
        None => Check::ok("assembler", format!("the driver's assembler is {}.{}", version.0, version.1)),
    }
}

/// The `ptxas` that cubins are made with.
fn of_toolkit() -> Check {
    if let Some(named) = std::env::var_os("RTC_PTXAS").filter(|name| !name.is_empty())
        && let Err(error) = Assembler::new(named).check()
    {
        return Check::warning("assembler", format!("RTC_PTXAS: {error}"), "set RTC_PTXAS to a ptxas, or unset it");
    }
    let Some(assembler) = Assembler::find() else {
        return Check::ok(
            "assembler",
            "there is no ptxas; it is needed only for cubins and for `rtc tune --assembler`",
        );
    };
    let shown = assembler.path().display().to_string();
    let Some(version) = assembler.version() else {
        let remedy = "set RTC_PTXAS to NVIDIA's ptxas";
        return Check::warning("assembler", format!("`{shown}` does not say its version"), remedy);
    };
    match DEFECTS.iter().find(|defect| defect.concerns(version)) {
        Some(defect) => {
            let (major, minor) = defect.mended;
            let remedy = format!(
                "for cubins of {}, install CUDA {major}.{minor} or later, or the Python package nvidia-cuda-nvcc of that version, and \
                 set RTC_PTXAS to its ptxas",
                defect.arch
            );
            defect.check(&format!("`{shown}`"), version, remedy)
        }
        None => Check::ok("assembler", format!("`{shown}` is {}.{}", version.0, version.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_defect_concerns_its_versions_and_its_target() {
        let status = |version, has_hopper| of_driver(version, has_hopper).status;
        assert_eq!(status((12, 7), true), Status::Ok);
        assert_eq!(status((12, 8), true), Status::Warning);
        assert_eq!(status((13, 0), true), Status::Warning);
        assert_eq!(status((13, 0), false), Status::Ok);
        assert_eq!(status((13, 1), true), Status::Ok);
        assert!(of_driver((13, 0), true).remedy.is_some_and(|remedy| remedy.contains("CUDA 13.1 or later")));
    }
}

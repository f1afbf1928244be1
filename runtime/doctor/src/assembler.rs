//! NVIDIA's assembler, in the driver and as `ptxas`, and the defects that are known of its versions.

use crate::Check;
use rtc_assembler::{Assembler, Defect, Version};

/// The target for which a defect is known.
const ARCH: &str = "sm_90a";

/// The check of an assembler that has a defect.
fn defective(defect: &Defect, which: &str, (major, minor): Version, remedy: String) -> Check {
    let Defect { arch, what, mended, .. } = defect;
    let text = format!(
        "{which} is {major}.{minor}; for {arch} it {what} (mended in {}.{}). Whether a kernel of yours is among them is not known",
        mended.0, mended.1
    );
    Check::warning("assembler", text, remedy)
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
    let defect = Defect::of_target(version, ARCH).filter(|_| has_hopper);
    match (defect, defect.and_then(|_| Assembler::find_for(ARCH)).filter(|found| found.is_good_for(ARCH))) {
        (Some(defect), None) => {
            let (major, minor) = defect.mended;
            let remedy = format!(
                "update the driver to one for CUDA {major}.{minor} or later; or install a ptxas of that version (the Python package \
                 nvidia-cuda-nvcc), which is then called instead"
            );
            defective(defect, "the driver's assembler", version, remedy)
        }
        (Some(_), Some(other)) => {
            let text = format!(
                "the driver's assembler is {}.{}, which has a defect for {ARCH}; `{}` is called instead for the kernels that it \
                 may concern",
                version.0,
                version.1,
                other.path().display()
            );
            Check::ok("assembler", text)
        }
        (None, _) => Check::ok("assembler", format!("the driver's assembler is {}.{}", version.0, version.1)),
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
    let other = Assembler::find_for(ARCH).filter(|other| *other != assembler);
    match (Defect::of_target(version, ARCH), other) {
        (Some(_), Some(other)) => {
            let (major, minor) = version;
            let text = format!("`{shown}` is {major}.{minor}; for {ARCH} `{}` is called", other.path().display());
            Check::ok("assembler", text)
        }
        (Some(defect), None) => {
            let (major, minor) = defect.mended;
            let remedy = format!(
                "for cubins of {}, install CUDA {major}.{minor} or later, or the Python package nvidia-cuda-nvcc of that version, and \
                 set RTC_PTXAS to its ptxas",
                defect.arch
            );
            defective(defect, &format!("`{shown}`"), version, remedy)
        }
        (None, _) => Check::ok("assembler", format!("`{shown}` is {}.{}", version.0, version.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_defect_concerns_its_versions_and_its_target() {
        let status = |version, has_hopper| of_driver(version, has_hopper).status;
        assert_eq!(status((12, 9), true), Status::Ok);
        assert_eq!(status((13, 0), true), Status::Ok);
        assert_eq!(status((12, 8), false), Status::Ok);
        // The message if another assembler is found is tested by the command line's tests.
        let check = of_driver((12, 8), true);
        assert!(
            check.text.contains("12.8") && (check.status == Status::Ok) == check.text.contains("is called instead"),
            "{check:?}"
        );
    }
}

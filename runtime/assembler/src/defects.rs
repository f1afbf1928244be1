//! Known defects of versions of NVIDIA's assembler.

use std::fmt;

/// A version of CUDA, which `ptxas` and the assembler in a driver have: major and minor.
pub type Version = (u32, u32);

/// A defect of the assembler by which it makes wrong machine code of right PTX.
///
/// ```
/// use rtc_assembler::{Defect, Version};
/// let ptx = ".target sm_90a\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 ..";
/// let defect = Defect::of_kernel((12, 8), "sm_90a", ptx).expect("it has it");
/// let first_without: Version = (12, 9);
/// assert_eq!(defect.mended, first_without);
/// assert!(Defect::of_kernel((12, 9), "sm_90a", ptx).is_none());
/// assert!(Defect::of_kernel((12, 8), "sm_90a", "add.f32 ..").is_none());
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Defect {
    /// The first version without it.
    pub mended: Version,
    /// The target whose machine code is wrong.
    pub arch: &'static str,
    /// Only kernels with this instruction have been seen to be wrong.
    pub instruction: &'static str,
    /// The defect, as the end of a sentence about the assembler.
    pub what: &'static str,
}

/// Those that matter for code as rtc emits it.
///
/// The one of `wgmma` was measured by `benches/gpu/ptxas_defect.py`: the same PTX gives wrong numbers by ptxas 12.8, and right
/// ones by 12.9, 13.0 and the driver of CUDA 13.0. Which property of a kernel brings it out is not known.
const DEFECTS: &[Defect] = &[Defect {
    mended: (12, 9),
    arch: "sm_90a",
    instruction: "wgmma.mma_async",
    what: "gives wrong code for some kernels with several dependent products (`tl.dot`) in a loop, such as those of linear \
           attention",
}];

impl Defect {
    /// The defect that an assembler of this version has for a target, for whichever kernels.
    pub fn of_target(version: Version, arch: &str) -> Option<&'static Defect> {
        DEFECTS.iter().find(|defect| defect.arch == arch && version < defect.mended)
    }

    /// The defect of an assembler of this version that may concern the PTX of a kernel.
    pub fn of_kernel(version: Version, arch: &str, ptx: &str) -> Option<&'static Defect> {
        Defect::of_target(version, arch).filter(|defect| ptx.contains(defect.instruction))
    }

    /// The text of a warning about a kernel that such an assembler assembles; `which` names the assembler.
    ///
    /// ```
    /// let defect = rtc_assembler::Defect::of_target((12, 8), "sm_90a").expect("it has it");
    /// let text = defect.warning("matmul", "`ptxas`", (12, 8));
    /// assert!(text.starts_with("kernel `matmul` is assembled for sm_90a by `ptxas` of CUDA 12.8, which gives wrong code"));
    /// assert!(text.contains("CUDA 12.9 or later"));
    /// ```
    pub fn warning(&self, kernel: &str, which: &str, version: Version) -> String {
        let Defect { mended, arch, what, .. } = self;
        format!(
            "kernel `{kernel}` is assembled for {arch} by {which} of CUDA {}, which {what}; whether this kernel is among \
             them is not known. Have a ptxas of CUDA {} or later where it is found: named by RTC_PTXAS, on PATH, or from \
             the Python package nvidia-cuda-nvcc",
            Shown(version),
            Shown(*mended),
        )
    }
}

struct Shown(Version);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.0, self.0.1)
    }
}

//! The table of targets: what each NVIDIA architecture can do, as far as code
//! generation asks.
//!
//! The PTX version is the lowest that has every instruction we emit for the
//! architecture, because a driver reads any version up to its own: 8.3 up to
//! Hopper, and the first version that knows the chip above it.
//!
//! ```
//! let target = rtc_codegen::Target::named("sm_90a").unwrap();
//! assert!(target.features.wgmma);
//! assert_eq!(target.shared_bytes_max, 227 * 1024);
//! ```

use crate::error::CodegenError;

/// Instructions that only some architectures have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// `cvt` between fp8 (e4m3, e5m2) and fp16 or fp32.
    pub fp8_conversions: bool,
    /// `mma.sync` on fp8 operands.
    pub fp8_mma: bool,
    /// `add`, `sub` and `mul` on bf16; below, bf16 has `fma`, `min` and `max` only.
    pub bf16_arithmetic: bool,
    /// `atom.add` on bf16 values without a compare-and-swap loop.
    pub bf16_atomics: bool,
    /// `cp.async`.
    pub cp_async: bool,
    /// `stmatrix`.
    pub stmatrix: bool,
    /// `wgmma.mma_async`.
    pub wgmma: bool,
    /// Tensor memory access, `cp.async.bulk`, `mbarrier` with transaction counts.
    pub tma: bool,
    /// Clusters of blocks.
    pub clusters: bool,
    /// Programmatic dependent launch (`griddepcontrol`).
    pub dependent_launch: bool,
    /// `redux.sync` on fp32.
    pub redux_f32: bool,
    /// The fifth-generation tensor core (`tcgen05`).
    pub tcgen05: bool,
}

/// One architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The name as users and PTX write it: `sm_90a`.
    pub name: &'static str,
    /// The compute capability times ten: 90 for `sm_90a`.
    pub capability: u32,
    /// The PTX version that is requested: major, minor.
    pub ptx_version: (u32, u32),
    /// The most shared memory that one block may ask for, in bytes.
    pub shared_bytes_max: u32,
    /// What the architecture has beyond the common ground.
    pub features: Features,
}

const AMPERE: Features = Features {
    fp8_conversions: false,
    fp8_mma: false,
    bf16_arithmetic: false,
    bf16_atomics: false,
    cp_async: true,
    stmatrix: false,
    wgmma: false,
    tma: false,
    clusters: false,
    dependent_launch: false,
    redux_f32: false,
    tcgen05: false,
};
const ADA: Features = Features { fp8_conversions: true, fp8_mma: true, ..AMPERE };
const HOPPER: Features = Features {
    bf16_arithmetic: true,
    bf16_atomics: true,
    stmatrix: true,
    tma: true,
    clusters: true,
    dependent_launch: true,
    ..ADA
};
/// `wgmma` belongs to the architecture-specific feature set, which later chips lack.
const HOPPER_SPECIFIC: Features = Features { wgmma: true, ..HOPPER };
/// The large Blackwell has no fp8 `mma.sync`: its fp8 products go through `tcgen05`.
const BLACKWELL: Features = Features { fp8_mma: false, redux_f32: true, tcgen05: true, ..HOPPER };
const BLACKWELL_SMALL: Features = HOPPER;

const fn target(
    name: &'static str,
    capability: u32,
    ptx_version: (u32, u32),
    shared_kib: u32,
    features: Features,
) -> Target {
    Target { name, capability, ptx_version, shared_bytes_max: shared_kib * 1024, features }
}

/// Every target that the compiler accepts, oldest first.
pub const TARGETS: &[Target] = &[
    target("sm_80", 80, (8, 3), 163, AMPERE),
    target("sm_86", 86, (8, 3), 99, AMPERE),
    target("sm_87", 87, (8, 3), 163, AMPERE),
    target("sm_89", 89, (8, 3), 99, ADA),
    target("sm_90", 90, (8, 3), 227, HOPPER),
    target("sm_90a", 90, (8, 3), 227, HOPPER_SPECIFIC),
    target("sm_100a", 100, (8, 6), 227, BLACKWELL),
    target("sm_103a", 103, (8, 8), 227, BLACKWELL),
    target("sm_120a", 120, (8, 7), 99, BLACKWELL_SMALL),
    target("sm_121a", 121, (8, 8), 99, BLACKWELL_SMALL),
];

impl Target {
    /// The target called `name`.
    pub fn named(name: &str) -> Result<&'static Target, CodegenError> {
        TARGETS.iter().find(|target| target.name == name).ok_or_else(|| CodegenError::Target {
            name: name.to_owned(),
            known: TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The LLVM feature string that asks for [`Target::ptx_version`]: `+ptx83`.
    pub(crate) fn llvm_features(&self) -> String {
        format!("+ptx{}{}", self.ptx_version.0, self.ptx_version.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (index, target) in TARGETS.iter().enumerate() {
            let found = Target::named(target.name).expect(target.name);
            assert_eq!(found, target);
            assert!(TARGETS[..index].iter().all(|other| other.name != target.name));
            assert!(target.name.starts_with(&format!("sm_{}", target.capability)), "{}", target.name);
        }
    }

    #[test]
    fn an_unknown_target_lists_the_known_ones() {
        let message = Target::named("sm_42").expect_err("no such chip").to_string();
        assert!(message.contains("sm_42") && message.contains("sm_80") && message.contains("sm_121a"), "{message}");
    }

    #[test]
    fn only_hopper_itself_has_wgmma() {
        let with: Vec<_> = TARGETS.iter().filter(|target| target.features.wgmma).map(|target| target.name).collect();
        assert_eq!(with, ["sm_90a"]);
    }
}

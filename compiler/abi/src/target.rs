//! The table of targets: the features of each NVIDIA architecture that the compiler uses.
//!
//! The PTX version is the lowest that has every instruction we emit for the architecture, because a driver reads any
//! version up to its own: 8.3 up to Hopper, and the first version that knows the chip above it.
//!
//! ```
//! use rtc_abi::{Feature, Target};
//! let target = Target::named("sm_90a").unwrap();
//! assert!(target.has(Feature::Wgmma) && !Target::named("sm_90").unwrap().has(Feature::Wgmma));
//! assert_eq!(target.shared_bytes_max, 227 * 1024);
//! ```

use std::fmt;
use std::str::FromStr;

use crate::SmLimits;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)*) => {
        /// Instructions that only some architectures have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Feature {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Feature {
            /// All features.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),*];

            /// Its name, such as `wgmma`.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)* }
            }
        }
    };
}

features! {
    /// `cvt` between fp8 (e4m3, e5m2) and fp16 or fp32.
    Fp8Conversions = "fp8_conversions",
    /// `mma.sync` on fp8 operands.
    Fp8Mma = "fp8_mma",
    /// `add`, `sub` and `mul` on bf16; below, bf16 has `fma`, `min` and `max` only.
    Bf16Arithmetic = "bf16_arithmetic",
    /// `atom.add` on bf16 values without a compare-and-swap loop.
    Bf16Atomics = "bf16_atomics",
    /// `atom.add` on up to 16 bytes of fp16, bf16 or fp32 values.
    VectorAtomics = "vector_atomics",
    /// `cp.async`.
    CpAsync = "cp_async",
    /// `stmatrix`.
    Stmatrix = "stmatrix",
    /// `wgmma.mma_async`.
    Wgmma = "wgmma",
    /// Tensor memory access, `cp.async.bulk`, `mbarrier` with transaction counts.
    Tma = "tma",
    /// Clusters of blocks.
    Clusters = "clusters",
    /// Programmatic dependent launch (`griddepcontrol`).
    DependentLaunch = "dependent_launch",
    /// Warps that change the number of their registers (`setmaxnreg`).
    RegisterBudgets = "register_budgets",
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of features, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features(u32);

impl Features {
    const fn with(self, features: &[Feature]) -> Features {
        let (mut bits, mut i) = (self.0, 0);
        while i < features.len() {
            bits |= 1 << features[i] as u32;
            i += 1;
        }
        Features(bits)
    }

    const fn without(self, feature: Feature) -> Features {
        Features(self.0 & !(1 << feature as u32))
    }
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
    /// The most shared memory of one block, in bytes.
    pub shared_bytes_max: u32,
    /// The resources of an SM.
    pub sm: SmLimits,
    /// The features beyond the common ones.
    features: Features,
}

/// The most threads that a block may have, on every target.
///
/// ```
/// assert_eq!(rtc_abi::MAX_THREADS / 32, 32); // warps
/// ```
pub const MAX_THREADS: u32 = 1024;

const AMPERE: Features = Features(0).with(&[Feature::CpAsync]);
const ADA: Features = AMPERE.with(&[Feature::Fp8Conversions, Feature::Fp8Mma]);
const HOPPER: Features = ADA.with(&[
    Feature::Bf16Arithmetic,
    Feature::Bf16Atomics,
    Feature::VectorAtomics,
    Feature::Stmatrix,
    Feature::Tma,
    Feature::Clusters,
    Feature::DependentLaunch,
]);
/// `wgmma` and `setmaxnreg` belong to the architecture-specific feature set; later chips lack the former.
const HOPPER_SPECIFIC: Features = HOPPER.with(&[Feature::Wgmma, Feature::RegisterBudgets]);
/// The large Blackwell has no fp8 `mma.sync`: its fp8 products go through `tcgen05`.
const BLACKWELL: Features = HOPPER.without(Feature::Fp8Mma).with(&[Feature::RegisterBudgets]);
const BLACKWELL_SMALL: Features = HOPPER.with(&[Feature::RegisterBudgets]);

const fn target(
    name: &'static str,
    capability: u32,
    ptx_version: (u32, u32),
    sm: SmLimits,
    features: Features,
) -> Target {
    Target { name, capability, ptx_version, shared_bytes_max: sm.shared_bytes - sm.reserved_bytes, sm, features }
}

/// An SM by its threads, blocks and KiB of shared memory.
const fn sm(threads: u32, blocks: u32, shared_kib: u32) -> SmLimits {
    SmLimits { threads, blocks, shared_bytes: shared_kib * 1024, reserved_bytes: 1024 }
}

/// Every target that the compiler accepts, oldest first.
///
/// ```
/// use rtc_abi::{Feature, TARGETS};
/// let names = TARGETS.iter().filter(|target| target.has(Feature::Wgmma)).map(|target| target.name);
/// assert_eq!(names.collect::<Vec<_>>(), ["sm_90a"]);
/// assert!(Feature::ALL.iter().any(|feature| feature.name() == "wgmma"));
/// ```
pub const TARGETS: &[Target] = &[
    target("sm_80", 80, (8, 3), sm(2048, 32, 164), AMPERE),
    target("sm_86", 86, (8, 3), sm(1536, 16, 100), AMPERE),
    target("sm_87", 87, (8, 3), sm(1536, 16, 164), AMPERE),
    target("sm_89", 89, (8, 3), sm(1536, 24, 100), ADA),
    target("sm_90", 90, (8, 3), SmLimits::HOPPER, HOPPER),
    target("sm_90a", 90, (8, 3), SmLimits::HOPPER, HOPPER_SPECIFIC),
    target("sm_100a", 100, (8, 6), SmLimits::HOPPER, BLACKWELL),
    target("sm_103a", 103, (8, 8), SmLimits::HOPPER, BLACKWELL),
    target("sm_120a", 120, (8, 7), sm(1536, 24, 100), BLACKWELL_SMALL),
    target("sm_121a", 121, (8, 8), sm(1536, 24, 100), BLACKWELL_SMALL),
];

/// A name that no target has.
///
/// ```
/// use rtc_abi::{Target, UnknownTarget};
/// let error: UnknownTarget = Target::named("sm_42").unwrap_err();
/// assert!(error.name == "sm_42" && error.known.contains("sm_80"));
/// assert_eq!(Target::of_capability(90).map(|target| target.name), Some("sm_90a"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{name}`; known targets: {known}")]
pub struct UnknownTarget {
    /// The requested name.
    pub name: String,
    /// The names that are known, separated by commas.
    pub known: String,
}

impl Target {
    /// The target called `name`.
    ///
    /// # Errors
    ///
    /// [`UnknownTarget`], which lists the names that there are.
    pub fn named(name: &str) -> Result<&'static Target, UnknownTarget> {
        TARGETS.iter().find(|target| target.name == name).ok_or_else(|| UnknownTarget {
            name: name.to_owned(),
            known: TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The target of a compute capability (times ten) with all that it has: `sm_90a` for 90.
    pub fn of_capability(capability: u32) -> Option<&'static Target> {
        TARGETS.iter().rev().find(|target| target.capability == capability)
    }

    /// Whether the target has the feature.
    pub const fn has(&self, feature: Feature) -> bool {
        self.features.0 & (1 << feature as u32) != 0
    }
}

/// The name of an architecture, possibly one unknown to the compiler: it determines the compatibility of PTX.
///
/// ```
/// use rtc_abi::Arch;
/// let arch = |name: &str| name.parse::<Arch>().unwrap();
/// assert!(arch("sm_80").runs_on(90));
/// assert!(!arch("sm_90a").runs_on(100));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// The compute capability times ten.
    pub capability: u32,
    /// Whether it has the instructions of that architecture or family alone: the `a` of `sm_90a`, the `f` of `sm_100f`.
    pub is_specific: bool,
}

impl Arch {
    /// Whether PTX for this architecture runs on a device of that capability: for a plain one on all later devices
    /// too, for a specific one only there.
    pub fn runs_on(self, capability: u32) -> bool {
        self.capability == capability || (self.capability < capability && !self.is_specific)
    }
}

/// As signatures and files name it; a specific one as that of its architecture, with `a`.
impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.capability, if self.is_specific { "a" } else { "" })
    }
}

impl FromStr for Arch {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Arch, UnknownTarget> {
        let parse = || {
            let number = name.strip_prefix("sm_")?;
            let plain = number.strip_suffix(['a', 'f']);
            let digits = plain.unwrap_or(number);
            let is_number = digits.bytes().all(|c| c.is_ascii_digit());
            let capability = digits.parse().ok().filter(|_| is_number)?;
            Some(Arch { capability, is_specific: plain.is_some() })
        };
        parse().ok_or_else(|| UnknownTarget { name: name.to_owned(), known: "sm_80, sm_90a and the like".into() })
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
            let arch: Arch = target.name.parse().expect(target.name);
            assert_eq!(arch.capability, target.capability);
            assert_eq!(arch.is_specific, target.name.ends_with('a'));
            assert_eq!(arch.to_string(), target.name);
        }
        assert_eq!(Target::of_capability(90).map(|target| target.name), Some("sm_90a"));
        assert_eq!(Target::of_capability(42), None);
    }

    #[test]
    fn an_unknown_target_lists_the_known_ones() {
        let message = Target::named("sm_42").expect_err("no such chip").to_string();
        assert!(message.contains("sm_42") && message.contains("sm_80") && message.contains("sm_121a"), "{message}");
        for name in ["", "sm_", "90", "sm_9x", "sm_+90", "sm_90aa"] {
            assert!(name.parse::<Arch>().is_err(), "{name}");
        }
    }

    #[test]
    fn only_hopper_itself_has_wgmma() {
        let with = |feature| -> Vec<&str> {
            TARGETS.iter().filter(|target| target.has(feature)).map(|target| target.name).collect()
        };
        assert_eq!(with(Feature::Wgmma), ["sm_90a"]);
        assert_eq!(with(Feature::Fp8Mma), ["sm_89", "sm_90", "sm_90a", "sm_120a", "sm_121a"]);
        assert_eq!(with(Feature::CpAsync).len(), TARGETS.len());
    }

    #[test]
    fn features_have_names_of_their_own() {
        for (index, feature) in Feature::ALL.iter().enumerate() {
            assert!(Feature::ALL[..index].iter().all(|other| other.name() != feature.name()), "{feature}");
        }
    }
}

//! Kernels that the driver's own assembler may get wrong.

use super::{Context, Module};
use crate::warning::{self, Warning};
use rtc_abi::Metadata;
use rtc_assembler::{Assembler, Defect, Version};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The kernel by another assembler, where the driver's has a defect that may concern it and there is one without. Nothing where
/// the driver may assemble it, or has to; the latter is warned of.
pub(super) fn instead_of_driver(context: &Arc<Context>, ptx: &str, metadata: &Metadata) -> Option<Module> {
    let version = context.driver_version();
    let defect = Defect::of_kernel(version, &metadata.arch, ptx)?;
    let other = good_assembler(defect.arch).and_then(|Found { assembler, .. }| {
        // It may be too old for the PTX, or too new for the driver.
        let cubin = assembler.assemble(ptx, &metadata.kernel, &metadata.arch).ok()?;
        Module::load_cubin(context, &cubin, &metadata.symbol).ok()
    });
    static WARNED: AtomicBool = AtomicBool::new(false);
    if other.is_none() && !WARNED.swap(true, Ordering::Relaxed) {
        let message = defect.warning(&metadata.kernel, "the driver's assembler", version);
        warning::give(&Warning { code: "assembler-defect", message });
    }
    other
}

/// An assembler and its version.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) assembler: Assembler,
    #[cfg_attr(not(feature = "jit"), allow(dead_code))]
    pub(super) version: Version,
}

/// The assembler that is found for a target if it has no known defect; a process looks for it once.
pub(super) fn good_assembler(arch: &'static str) -> Option<Found> {
    static FOUND: Mutex<BTreeMap<&str, Option<Found>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let look = || {
        let assembler = Assembler::find_for(arch)?;
        let version = assembler.version()?;
        Defect::of_target(version, arch).is_none().then_some(Found { assembler, version })
    };
    found.entry(arch).or_insert_with(look).clone()
}

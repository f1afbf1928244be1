//! Kernels whose machine code was made ahead.

use super::occupancy::with_most;
use super::{Context, Image, Module};
use crate::{Result, line_info};
use std::sync::Arc;

/// The kernel of an image with at most so many registers of a thread, and what the assembler said: by the machine code that was
/// made ahead, or else by the driver's assembler.
pub(super) fn load_limited(context: &Arc<Context>, image: &Image<'_>, registers: u32) -> Result<(Module, String)> {
    match load_ahead(context, image, registers) {
        Some(module) => Ok(module),
        None => {
            let ptx = with_most(image.ptx, registers).unwrap_or_default();
            Module::load_with_remarks(context, &ptx, &image.metadata.symbol)
        }
    }
}

/// The kernel whose text allows so many registers (0: as it is), if its machine code was made ahead and the driver takes it.
pub(super) fn load_ahead(context: &Arc<Context>, image: &Image<'_>, registers: u32) -> Option<(Module, String)> {
    let code = image.ahead.filter(|code| !line_info::is_on() && code.version.0 <= context.driver_version().0)?;
    let variant = code.variant(registers)?;
    let mut module = Module::load_cubin(context, &variant.cubin, &image.metadata.symbol).ok()?;
    module.is_assembled = false;
    Some((module, variant.remarks.clone()))
}

//! Loading: what the device must have, and by which way its code comes.

use super::super::{Backend, Image, wrong_device};
use super::ahead::load_ahead;
use super::assembled::instead_of_driver;
use super::occupancy::more_blocks;
use super::{Context, Module};
use crate::{Error, Result};
use rtc_abi::{Arch, Metadata};
use std::sync::Arc;

/// Loads the machine code if it is for this device, else the PTX.
pub(super) fn load(context: &Arc<Context>, image: &Image<'_>) -> Result<Module> {
    let Image { ptx, cubin, metadata, .. } = *image;
    check_arch(context, metadata)?;
    let out_of = |resource, needed: u32, available: u32, hint| Error::OutOfResources {
        kernel: metadata.kernel.clone(),
        resource,
        needed: needed.into(),
        available: available.into(),
        hint,
    };
    let smaller = "Smaller blocks or a smaller num_stages need less.";
    if metadata.shared_bytes > context.shared_limit() {
        return Err(out_of("shared memory (bytes)", metadata.shared_bytes, context.shared_limit(), smaller));
    }
    let is_own = metadata.arch.parse::<Arch>().is_ok_and(|arch| arch.capability == context.capability());
    let assembled = cubin.filter(|_| is_own).map(|cubin| Module::load_cubin(context, cubin, &metadata.symbol));
    let module = match assembled {
        Some(Ok(module)) => module,
        _ => match load_ahead(context, image, 0) {
            Some((module, _)) => module,
            None => match instead_of_driver(context, ptx, metadata) {
                Some(module) => module,
                None => Module::load_with_remarks(context, ptx, &metadata.symbol)?.0,
            },
        },
    };
    let shared = metadata.shared_bytes.saturating_add(module.static_shared);
    if shared > context.shared_limit() {
        return Err(out_of("shared memory (bytes)", shared, context.shared_limit(), smaller));
    }
    if metadata.threads_per_block > module.max_threads {
        let hint = "The registers of a block do not fit; set maxnreg, or use smaller blocks.";
        return Err(out_of("threads per block", metadata.threads_per_block, module.max_threads, hint));
    }
    let module = if module.is_assembled { module } else { more_blocks(module, context, image)? };
    module.prepare(metadata.shared_bytes, metadata.cluster)?;
    Ok(module)
}

/// PTX for a plain target runs on it and on later ones, for an architecture-specific target only there.
fn check_arch(context: &Context, metadata: &Metadata) -> Result<()> {
    let capability = context.capability();
    if metadata.arch.parse::<Arch>().is_ok_and(|arch| arch.runs_on(capability)) {
        return Ok(());
    }
    let message = format!("it was built for {}, the device is sm_{capability}", metadata.arch);
    Err(wrong_device(context.name(), metadata, message))
}

//! The tensor maps of a kernel whose warps are specialized.

use rtc_ir::{Kernel, view};

use super::candidate::Candidate;
use super::config::PartitionConfig;
use crate::PassError;
use crate::schedule::tma::tensor_maps::{CopyMap, StoreMap, copy_map, store_maps};

/// The tensor maps of a kernel.
pub(crate) struct Maps {
    /// The maps of the copies of each loop.
    pub copies: Vec<Vec<CopyMap>>,
    /// Those of operands that are copied before the loops.
    pub before: Vec<CopyMap>,
    /// The stores that are copies.
    pub stores: Vec<StoreMap>,
}

impl Maps {
    /// Adds the parameters.
    pub fn make(kernel: &mut Kernel, found: &Candidate, form: &PartitionConfig) -> Result<Maps, PassError> {
        let mut maps = Maps { copies: Vec::new(), before: Vec::new(), stores: Vec::new() };
        for of in &found.loops {
            let copies = of
                .copies
                .iter()
                .map(|(copy, access)| copy_map(kernel, view::CopyAsync::at(kernel, *copy).buffer(), access));
            maps.copies.push(copies.collect::<Result<_, _>>()?);
        }
        for before in &found.before {
            maps.before.push(copy_map(kernel, before.buffer, &before.access)?);
        }
        if let Some(most) = form.stored {
            maps.stores = store_maps(kernel, &found.stores, most)?;
        }
        Ok(maps)
    }
}

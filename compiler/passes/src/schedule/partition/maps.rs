//! The tensor maps of a kernel whose warps are specialized.

use std::collections::HashMap;

use rtc_ir::Kernel;

use super::candidate::Candidate;
use super::config::PartitionConfig;
use super::short_operands;
use super::transfers::{Copies, Transfer};
use crate::PassError;
use crate::schedule::tma::copy_maps::BoxRows;
use crate::schedule::tma::tensor_maps::{StoreMap, store_maps};

/// The tensor maps of a kernel.
pub(crate) struct Maps<'f> {
    /// The copies of each loop.
    pub copies: Vec<Vec<Copies<'f>>>,
    /// Those of operands that are copied before the loops.
    pub before: Vec<Copies<'f>>,
    /// How many rows the boxes of operands have, by the numbers of their rings, where not as many as a tile.
    pub rows: HashMap<usize, BoxRows>,
    /// The stores that are copies.
    pub stores: Vec<StoreMap>,
}

impl<'f> Maps<'f> {
    /// Adds the parameters.
    pub fn make(kernel: &mut Kernel, found: &'f Candidate, form: &PartitionConfig) -> Result<Maps<'f>, PassError> {
        let rows = short_operands::shrinking(kernel, &found.loops, &found.slot_types());
        let mut maps = Maps { copies: Vec::new(), before: Vec::new(), rows, stores: Vec::new() };
        for of in &found.loops {
            let rows = |transfer: &Transfer| maps.rows.get(&transfer.ring).copied().unwrap_or(BoxRows::Tile);
            let copies = of.transfers.iter().map(|transfer| Copies::of(kernel, transfer, rows(transfer)));
            maps.copies.push(copies.collect::<Result<_, _>>()?);
        }
        for before in &found.before {
            maps.before.push(Copies::of_box(kernel, before.buffer, &before.access, BoxRows::Tile)?);
        }
        if let Some(most) = form.stored {
            maps.stores = store_maps(kernel, &found.stores, most)?;
        }
        Ok(maps)
    }
}

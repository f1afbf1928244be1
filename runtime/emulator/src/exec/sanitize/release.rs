//! Order between clusters: what a release at an address hands to who acquires it there.

use std::collections::HashMap;

use crate::code::Order;
use crate::exec::hazard::Hazards;
use crate::exec::hazard::clock::{Knowledge, World};

/// The released clocks, by address; for a release among the threads of a block only, by its cluster too.
#[derive(Default)]
pub struct Released(HashMap<(u64, Option<u32>), World>);

impl Released {
    /// A strong access of a warp at an address.
    pub fn access(
        &mut self,
        address: u64,
        (cluster, warp): (u32, u32),
        hazards: &mut Hazards,
        order: Order,
        writes: bool,
    ) {
        for scope in [None, Some(cluster)] {
            let Some(world) = self.0.get(&(address, scope)).filter(|_| !(order.block_only && scope.is_none())) else {
                continue;
            };
            let knowledge = Knowledge { seen: world.of(cluster), world: world.clone(), ..Knowledge::default() };
            if order.acquire {
                hazards.acquire(warp, &knowledge);
            } else {
                hazards.observe(warp, &knowledge);
            }
        }
        if !writes {
            return;
        }
        // A relaxed write releases the events before the last fence.
        let known = if order.release { hazards.publish(warp, false) } else { hazards.at_fence(warp).clone() };
        if known.seen.is_empty() && known.world.is_empty() {
            return;
        }
        let scope = order.block_only.then_some(cluster);
        let world = self.0.entry((address, scope)).or_default();
        world.join(&known.world);
        world.add(cluster, &known.seen);
    }
}

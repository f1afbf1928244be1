//! Tensor maps in global memory that are written while copies by them are in flight, or used without a fence behind the write.
//!
//! A copy may read its map until it is over, so that who writes a map must know that all copies by it are: by a wait of its
//! own, or by one of another warp and a barrier in between. A copy by a map that the cluster has written needs an acquiring
//! fence on this map (`fence.proxy.tensormap::generic.acquire`), by its own warp or by another one and a barrier in between.
//! Whether it is so follows from the clocks of `exec/hazard` and does not depend on when the emulator makes the copies.

use std::collections::HashMap;

use super::Actor;
use crate::code::Window;
use crate::exec::access::resolve;
use crate::exec::hazard::clock::Epoch;
use crate::exec::step::Step;
use crate::sanitize::Check;
use crate::tensor_map::MAP_BYTES;

/// The state of maps in global memory, by address, for the blocks of a cluster.
#[derive(Default)]
pub struct Maps {
    /// The copies by them: for each agent whose time tells that copies are over the latest one.
    uses: HashMap<u64, Vec<(Epoch, Actor)>>,
    writes: HashMap<u64, MapWrite>,
}

/// The latest write of a map.
struct MapWrite {
    epoch: Epoch,
    actor: Actor,
    /// The fences behind it.
    acquired: Vec<Epoch>,
}

impl Step<'_, '_> {
    /// Notes a copy by the map at an address; it is over when `epoch` is known.
    pub(in crate::exec) fn note_map_use(&mut self, lane: u32, (window, address): (Window, u64), epoch: Epoch) {
        if !self.state.sanitizer.as_ref().is_some_and(|sanitizer| sanitizer.checks.has(Check::Race)) {
            return;
        }
        let (Window::Global, address) = resolve(window, address) else { return };
        let actor = self.actor(lane);
        self.inspect_map_use(actor, address);
        let uses = self.shared.maps.uses.entry(address).or_default();
        match uses.iter_mut().find(|(known, _)| known.agent == epoch.agent) {
            Some(known) if known.0.time <= epoch.time => *known = (epoch, actor),
            Some(_) => {}
            None => uses.push((epoch, actor)),
        }
    }

    /// Looks at a write of a map: copies by what was there must be over.
    pub(in crate::exec) fn inspect_map_write(&mut self, lane: u32, (window, address): (Window, u64)) {
        let (Window::Global, address) = resolve(window, address) else { return };
        let warp = self.index();
        let actor = self.actor(lane);
        let Some(hazards) = &self.shared.hazards else { return };
        let write = MapWrite { epoch: hazards.now(warp), actor, acquired: Vec::new() };
        let near = address.saturating_sub(MAP_BYTES as u64 - 1)..address + MAP_BYTES as u64;
        let under_way = self.shared.maps.uses.iter().filter(|(at, _)| near.contains(at)).flat_map(|(_, uses)| uses);
        let first = under_way.filter(|(epoch, _)| !hazards.known(warp).covers(*epoch)).map(|(_, actor)| *actor);
        let first = first.min_by_key(|actor| (actor.pc, actor.warp, actor.lane));
        self.shared.maps.writes.insert(address, write);
        let Some(other) = first else { return };
        let name = self.state.memory.describe(address);
        self.record((Check::Race, "map-in-use"), actor, Some(("copied by it here", other)), || {
            format!("the tensor map at {address:#x}{name} is written while a copy by it may be in flight; wait for the copy first")
        });
    }

    /// Notes an acquiring fence on a map; it counts if its warp knows of the latest write.
    pub(in crate::exec) fn note_map_acquired(&mut self, (window, address): (Window, u64)) {
        let (Window::Global, address) = resolve(window, address) else { return };
        let warp = self.index();
        let Some(hazards) = &self.shared.hazards else { return };
        let Some(write) = self.shared.maps.writes.get_mut(&address) else { return };
        let now = hazards.now(warp);
        if hazards.known(warp).covers(write.epoch) && !write.acquired.contains(&now) {
            write.acquired.push(now);
        }
    }

    /// Looks at a copy by a map that the cluster has written: a fence must lie between.
    fn inspect_map_use(&mut self, actor: Actor, address: u64) {
        let Some(hazards) = &self.shared.hazards else { return };
        let Some(write) = self.shared.maps.writes.get(&address) else { return };
        let known = hazards.known(self.index());
        if write.acquired.iter().any(|fence| known.covers(*fence)) {
            return;
        }
        let (other, name) = (write.actor, self.state.memory.describe(address));
        self.record((Check::Race, "map-not-acquired"), actor, Some(("written here", other)), || {
            format!("a copy uses the tensor map at {address:#x}{name} without `fence.proxy.tensormap::generic.acquire` behind its write")
        });
    }
}

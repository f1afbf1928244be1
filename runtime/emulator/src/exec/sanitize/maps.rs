//! Tensor maps in global memory that are written while copies by them are under way.
//!
//! A copy may read its map until it is over, so that who writes a map must know that all copies by it are: by a wait of its
//! own, or by one of another warp and a barrier in between. Whether it does follows from the clocks of `exec/hazard` and does
//! not depend on when the emulator makes the copies.

use std::collections::HashMap;

use super::Actor;
use crate::code::Window;
use crate::exec::access::resolve;
use crate::exec::hazard::clock::Epoch;
use crate::exec::step::Step;
use crate::sanitize::Check;
use crate::tensor_map::MAP_BYTES;

/// The copies by maps in global memory, of the blocks of a cluster: by the map's address, for each agent whose time tells
/// that copies are over the latest one.
#[derive(Default)]
pub struct MapUses(HashMap<u64, Vec<(Epoch, Actor)>>);

impl Step<'_, '_> {
    /// Notes a copy by the map at an address; it is over when `epoch` is known.
    pub(in crate::exec) fn note_map_use(&mut self, lane: u32, (window, address): (Window, u64), epoch: Epoch) {
        if !self.state.sanitizer.as_ref().is_some_and(|sanitizer| sanitizer.checks.has(Check::Race)) {
            return;
        }
        let (Window::Global, address) = resolve(window, address) else { return };
        let actor = self.actor(lane);
        let uses = self.shared.map_uses.0.entry(address).or_default();
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
        let Some(hazards) = &self.shared.hazards else { return };
        let near = address.saturating_sub(MAP_BYTES as u64 - 1)..address + MAP_BYTES as u64;
        let under_way = self.shared.map_uses.0.iter().filter(|(at, _)| near.contains(at)).flat_map(|(_, uses)| uses);
        let first = under_way.filter(|(epoch, _)| !hazards.known(warp).covers(*epoch)).map(|(_, actor)| *actor);
        let Some(other) = first.min_by_key(|actor| (actor.pc, actor.warp, actor.lane)) else { return };
        let (actor, name) = (self.actor(lane), self.state.memory.describe(address));
        self.record((Check::Race, "map-in-use"), actor, Some(("copied by it here", other)), || {
            format!("the tensor map at {address:#x}{name} is written while a copy by it may be under way; wait for the copy first")
        });
    }
}

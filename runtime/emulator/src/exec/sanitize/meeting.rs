//! Where lanes and warps meet: shuffles from lanes that are not there, barriers that are never completed.

use crate::alu::Lanes;
use crate::exec::cluster::Cluster;
use crate::exec::place;
use crate::exec::sanitize::{Actor, Sanitizer};
use crate::exec::step::Step;
use crate::fault::FaultKind;
use crate::sanitize::Check;

impl Step<'_, '_> {
    /// A member mask that names lanes which have ended.
    pub(in crate::exec) fn inspect_members(&mut self, lanes: u32, mask: u32) {
        let gone = mask & !self.warp.live & self.warp.started;
        if gone != 0 {
            let actor = self.actor(lanes.trailing_zeros());
            self.record((Check::Sync, "missing-lanes"), actor, None, || {
                format!("the member mask {mask:#010x} names lanes {gone:#010x}, which have ended")
            });
        }
    }

    /// A shuffle among `lanes` that reads `from` other lanes.
    pub(in crate::exec) fn inspect_shuffle(&mut self, lanes: u32, from: &Lanes) {
        let absent = (0..32u32).find(|lane| lanes >> lane & 1 == 1 && lanes >> (from[*lane as usize] & 31) & 1 == 0);
        if let Some(lane) = absent {
            let source = from[lane as usize];
            let actor = self.actor(lane);
            self.record((Check::Sync, "shuffle-from-missing-lane"), actor, None, || {
                format!("lane {lane} shuffles a value from lane {source}, which takes no part")
            });
        }
    }

    /// An mbarrier at which a copy completes, and which nothing has shown to copies since it was initialised. On GPUs of today
    /// such programs work, so that the launch goes on.
    pub(in crate::exec) fn inspect_init(&mut self, lane: u32, address: u32, init: u32) {
        let (actor, code) = (self.actor(lane), self.launch.code);
        let other = Actor { pc: init, lane: None, ..actor };
        self.record((Check::Sync, "mbarrier-init-not-visible"), actor, Some(("initialised here", other)), || {
            let init = place(code, init);
            FaultKind::InitNotVisible { address: address.into(), init, fence: true }.to_string()
        });
    }

    /// A barrier at which warps expect different numbers of threads, or more come than it waits for.
    pub(in crate::exec) fn inspect_barrier(&mut self, id: u32, before: (u32, Option<u32>), count: Option<u32>) {
        let lane = self.active.trailing_zeros();
        let (arrived, expected) = before;
        if let (Some(expected), Some(count)) = (expected, count)
            && arrived > 0
            && expected != count
        {
            let actor = self.actor(lane);
            self.record((Check::Sync, "barrier-count"), actor, None, || {
                format!("barrier {id} is met for {count} threads here and for {expected} elsewhere")
            });
        }
    }
}

impl Cluster {
    /// Barriers of the block at which some threads arrived and the others never did.
    pub(in crate::exec) fn report_barriers(&self, sanitizer: &mut Sanitizer) {
        if !sanitizer.checks.has(Check::Sync) {
            return;
        }
        for block in &self.shared.blocks {
            for (id, barrier) in block.barriers.iter().enumerate().filter(|(_, barrier)| barrier.arrived > 0) {
                let (pc, warp) = barrier.last;
                let at = Actor { pc, block: block.index, warp, lane: None };
                let expected = barrier.expected.unwrap_or(0);
                sanitizer.record((Check::Sync, "barrier-incomplete"), at, None, || {
                    format!(
                        "the block ended while {} of {expected} threads had arrived at barrier {id}",
                        barrier.arrived
                    )
                });
            }
        }
    }
}

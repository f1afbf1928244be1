//! Findings in shared memory: what `exec/hazard` collected.

use super::{Actor, Sanitizer};
use crate::exec::cluster::Cluster;
use crate::exec::hazard::Conflict;
use crate::sanitize::Check;

impl Cluster {
    /// Reports the conflicts collected since the last call.
    pub(in crate::exec) fn report_collected(&mut self, sanitizer: &mut Sanitizer) {
        let Some(hazards) = &mut self.shared.hazards else { return };
        for found in std::mem::take(&mut hazards.collected) {
            let actor = |warp: u32, pc, lane| Actor {
                pc,
                block: self.shared.blocks[warp as usize / self.each].index,
                warp: warp % self.each as u32,
                lane,
            };
            let at = actor(found.touch.warp, found.touch.pc, Some(found.lane.min(31)));
            let (address, access) = (found.at.1, if found.writes { "write" } else { "read" });
            match found.conflict {
                Conflict::Unwritten => sanitizer.record((Check::Init, "uninitialized-shared"), at, None, || {
                    format!("read at {address:#x} in shared memory, which is uninitialized")
                }),
                Conflict::Unordered(pc, write) => {
                    let warp = found.other.unwrap_or(0) % hazards.agents.0;
                    let (other, what) =
                        if write { ("write", "written here before") } else { ("read", "read here before") };
                    sanitizer.record((Check::Race, "shared-race"), at, Some((what, actor(warp, pc, None))), || {
                        format!(
                            "{access} at {address:#x} in shared memory is not ordered with the {other} of another warp; \
                             a barrier is missing in between"
                        )
                    });
                }
                _ => {}
            }
        }
    }
}

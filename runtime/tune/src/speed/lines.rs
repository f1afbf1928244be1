//! Source lines whose accesses cost more than their bytes: sectors of which only a part is used, and bank conflicts.

use super::{Basis, Change, Estimate, Explainer, LEAST_GAIN, Subject};
use rtc_runtime::counters::{Counters, InstructionCount};
use std::collections::BTreeMap;

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;
/// Bytes that shared memory delivers in a cycle.
const CYCLE: f64 = 128.0;

/// The counts of a line.
#[derive(Default)]
struct Line {
    requests: u64,
    sectors: u64,
    /// Sectors that its bytes would fill.
    needed: u64,
    /// Of those that are read and those that are written, the ones that could be saved.
    saved: [u64; 2],
    wavefronts: u64,
    conflicts: u64,
}

impl Explainer<'_> {
    /// The changes of lines that would shorten the time.
    pub(super) fn lines(&self, counters: &Counters, now: &Estimate) -> Vec<Change> {
        let mut lines: BTreeMap<(&str, u32), Line> = BTreeMap::new();
        for count in &counters.by_instruction {
            let Some(location) = &count.location else { continue };
            // What is inlined belongs to the line of the outermost call.
            let outermost = location.inlined_at.last().map(|(file, line, _)| (file.as_str(), *line));
            let place = outermost.unwrap_or((location.file.as_str(), location.line));
            lines.entry(place).or_default().add(count);
        }
        let mut changes = Vec::new();
        let time = now.predict(self.tensors(), &self.machine).milliseconds;
        let blocks = now.blocks() as f64;
        for ((file, number), line) in lines {
            let mut add = |other: Estimate, what: String| {
                let milliseconds = other.predict(self.tensors(), &self.machine).milliseconds;
                let gain = time / milliseconds;
                if gain >= LEAST_GAIN {
                    changes.push(Change {
                        subject: Subject::Source,
                        what,
                        basis: Basis::Model,
                        milliseconds: Some(milliseconds),
                        gain: Some(gain),
                        place: Some((file.to_owned(), number)),
                        code: None,
                    });
                }
            };
            let mut coalesced = now.clone();
            let [read, written] = line.saved.map(|sectors| (sectors * SECTOR) as f64 / blocks);
            coalesced.work.read -= read.min(coalesced.work.read);
            coalesced.work.written -= written.min(coalesced.work.written);
            let work = &mut coalesced.work;
            (work.reread, work.common) = (work.reread.min(work.read), work.common.min(work.read));
            let each = line.sectors as f64 / line.requests.max(1) as f64;
            let share = 100.0 * line.needed as f64 / line.sectors.max(1) as f64;
            let what = format!(
                "let neighbouring lanes access neighbouring elements: {each:.1} sectors per request, {share:.0} % of their \
                 bytes used"
            );
            add(coalesced, what);
            let mut without = now.clone();
            without.work.shared -= (line.conflicts as f64 * CYCLE / blocks).min(without.work.shared);
            let what = format!(
                "avoid the bank conflicts: {} of {} wavefronts of shared memory are due to them",
                line.conflicts, line.wavefronts
            );
            add(without, what);
        }
        changes
    }
}

impl Line {
    fn add(&mut self, count: &InstructionCount) {
        let global = count.global;
        self.requests += global.requests;
        self.sectors += global.sectors;
        // Lanes that share an element request its bytes several times.
        let needed = global.bytes.div_ceil(SECTOR).max(global.requests).min(global.sectors);
        self.needed += needed;
        self.saved[usize::from(count.writes)] += global.sectors - needed;
        self.wavefronts += count.shared.turns;
        self.conflicts += count.shared.conflicts;
    }
}

//! The records of a launch as they lie in memory.

use rtc_abi::records::{ENTRIES, ENTRY_BYTES, EVENTS, Event, HEADER};
use std::collections::HashMap;

/// The events of a kernel by number, each with the index of its instruction.
pub type Events = HashMap<u32, (Event, u32)>;

/// The records of a warp.
#[derive(Default)]
pub struct Warp {
    /// Times and numbers of events, in order. Times are in cycles since the launch began.
    pub events: Vec<(u64, u32)>,
    /// Events for which there was no room.
    pub lost: u64,
}

/// The records of a block.
pub struct Block {
    /// Its warps; those without records have no events.
    pub warps: Vec<Warp>,
    /// The end of its last warp.
    pub end: u64,
}

/// The entries of a warp before its events, and those after them.
struct Entries {
    count: u64,
    start: (u64, u64),
    end: (u64, u64),
    events: Vec<(u64, u64)>,
}

impl Block {
    /// The blocks that recorded. The clocks of two SMs have nothing to do with each other: blocks are placed by the
    /// nanoseconds at their start, in cycles of the measured rate.
    pub fn read(records: &[u8], warps_per_block: u32) -> Vec<Block> {
        let of_warp = (ENTRIES * ENTRY_BYTES) as usize;
        let warps: Vec<Entries> = records.chunks_exact(of_warp).map(Entries::read).collect();
        let blocks = warps.chunks(warps_per_block.max(1) as usize);
        let started = |warps: &[Entries]| warps.iter().map(|warp| warp.start).filter(|start| *start != (0, 0)).min();
        let blocks: Vec<(&[Entries], (u64, u64))> = blocks.filter_map(|warps| Some((warps, started(warps)?))).collect();
        let first = blocks.iter().map(|(_, (_, nanoseconds))| *nanoseconds).min().unwrap_or(0);
        let rate = rate(&warps);
        let block = |(warps, (clock, nanoseconds)): (&[Entries], (u64, u64))| {
            let offset = ((nanoseconds - first) as f64 * rate) as u64;
            let time = |at: u64| offset + at.saturating_sub(clock);
            let end = warps.iter().map(|warp| time(warp.last())).max().unwrap_or(offset);
            Block { warps: warps.iter().map(|warp| warp.warp(&time)).collect(), end }
        };
        blocks.into_iter().map(block).collect()
    }
}

/// Cycles per nanosecond, from the warp that took longest; 1 where that cannot be measured.
fn rate(warps: &[Entries]) -> f64 {
    let spans = warps.iter().filter_map(|warp| {
        let cycles = warp.end.0.checked_sub(warp.start.0)?;
        Some((warp.end.1.checked_sub(warp.start.1)?, cycles))
    });
    spans.max().filter(|(nanoseconds, _)| *nanoseconds > 0).map_or(1.0, |(ns, cycles)| cycles as f64 / ns as f64)
}

impl Entries {
    fn read(bytes: &[u8]) -> Entries {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let mut entries = bytes.chunks_exact(ENTRY_BYTES as usize).map(|entry| {
            let (first, second) = entry.split_at(8);
            (number(first), number(second))
        });
        let [count, start, end] =
            std::array::from_fn::<_, { HEADER as usize }, _>(|_| entries.next().unwrap_or((0, 0)));
        // A warp that a fault ended has no count.
        let events = entries.take_while(|(_, event)| *event > 0).collect();
        Entries { count: count.0, start, end, events }
    }

    /// The clock at its last event.
    fn last(&self) -> u64 {
        self.events.last().map_or(0, |(clock, _)| *clock).max(self.end.0)
    }

    fn warp(&self, time: &dyn Fn(u64) -> u64) -> Warp {
        let events = self.events.iter().map(|(clock, event)| (time(*clock), *event as u32 - 1)).collect();
        Warp { events, lost: self.count.saturating_sub(EVENTS.into()) }
    }
}

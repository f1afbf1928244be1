//! The timeline of a launch that recorded its events ([`rtc_abi::records`]), on a GPU or in the emulator.
//!
//! `entries.rs` reads the records, `replay.rs` makes bars of those of a block. An asynchronous copy is issued between its
//! two events and ends at the first wait for it; an asynchronous MMA likewise. So the ends of these bars are when their
//! data was awaited, and perhaps later than when it was there.

mod entries;
mod replay;

use crate::assembly;
use entries::{Block, Events};
use rtc_abi::records::{Event, MARKER};
use rtc_emulator::timeline::{Instruction, Timeline};
use std::collections::HashMap;

/// What a launch recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The blocks that recorded, one after the other.
    pub timeline: Timeline,
    /// How many blocks these are.
    pub blocks: u32,
    /// Events of all warps.
    pub events: u64,
    /// Events for which there was no room.
    pub lost: u64,
}

/// Reads the records of a kernel with this PTX, of blocks of so many warps.
pub fn recorded(ptx: &str, records: &[u8], warps_per_block: u32) -> Recorded {
    let (events, instructions) = events(ptx);
    let blocks = Block::read(records, warps_per_block);
    let mut bars = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let own = replay::bars(block, &events).into_iter();
        let first = number as u32 * warps_per_block;
        bars.extend(own.map(|bar| replay::in_cluster(bar, first)));
    }
    bars.sort_by_key(|bar| (bar.warp, bar.start));
    let warps = || blocks.iter().flat_map(|block| &block.warps);
    let lost = warps().map(|warp| warp.lost).sum();
    Recorded {
        blocks: blocks.len() as u32,
        events: lost + warps().map(|warp| warp.events.len() as u64).sum::<u64>(),
        lost,
        timeline: Timeline {
            cycles: blocks.iter().map(|block| block.end).max().unwrap_or(0),
            bars,
            instructions,
            warps_per_block,
            warps: blocks.len() as u32 * warps_per_block,
            is_truncated: lost > 0,
        },
    }
}

/// The events of a kernel by number, each with the index of its line of PTX. A loop that LLVM has unrolled has several
/// lines for an event; the first is taken.
fn events(ptx: &str) -> (Events, Vec<Instruction>) {
    let (mut events, mut instructions) = (HashMap::new(), Vec::new());
    let locations = assembly::locations(ptx);
    for (number, (line, location)) in ptx.lines().zip(locations).enumerate() {
        let Some((_, text)) = line.split_once(MARKER) else { continue };
        let Ok(event) = text.parse::<Event>() else { continue };
        if let std::collections::hash_map::Entry::Vacant(vacant) = events.entry(event.number) {
            let text = event.kind.word().to_owned();
            vacant.insert((event, instructions.len() as u32));
            instructions.push(Instruction { ptx_line: number as u32 + 1, text, location });
        }
    }
    (events, instructions)
}

#[cfg(test)]
mod tests;

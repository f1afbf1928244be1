//! Records that are decoded, also with lost events and with warps that recorded nothing.

//! Records that are decoded, also with lost events and with warps that recorded nothing.

use super::*;
use rtc_abi::records::{ENTRIES, EVENTS, bytes};
use rtc_emulator::timeline::BarKind;

/// PTX of a kernel with these events, each at a line of its own.
fn ptx(events: &[&str]) -> String {
    let mut text = ".file 1 \"k.py\"\n".to_owned();
    for (line, event) in events.iter().enumerate() {
        text += &format!(".loc 1 {} 1\nmov.u64 %rd1, %clock64; {MARKER}{line} {event}\n", line + 10);
    }
    text
}

/// Writes the entries of a warp: its count, its start and end in cycles and nanoseconds, its events.
fn write(records: &mut [u8], warp: usize, count: u64, clocks: [(u64, u64); 2], events: &[(u64, u64)]) {
    let entries = [(count, 0)].into_iter().chain(clocks);
    let entries = entries.chain(events.iter().map(|(clock, event)| (*clock, event + 1)));
    for (at, (first, second)) in entries.enumerate() {
        let start = (warp * ENTRIES as usize + at) * 16;
        records[start..start + 8].copy_from_slice(&first.to_le_bytes());
        records[start + 8..start + 16].copy_from_slice(&second.to_le_bytes());
    }
}

/// A warp copies, another waits: each copy is in the phase of the last `expect`, and ends at the first wait for it.
#[test]
fn copies_end_at_the_waits_for_their_phase() {
    let events = [
        "begin loop",
        "at iteration",
        "at expect ring 2 of 3",
        "begin copy ring 2 of 3",
        "end copy ring 2 of 3",
        "end loop",
        "begin loop",
        "at iteration",
        "begin wait ring 2 of 3",
        "end wait ring 2 of 3",
        "begin dot",
        "end dot",
        "end loop",
    ];
    let mut records = vec![0; bytes(1, 2) as usize];
    let rounds = |first: u64, step: u64, numbers: &[u64]| -> Vec<(u64, u64)> {
        (0..4)
            .flat_map(|k| numbers.iter().zip(0..).map(move |(n, i)| (first + k * step + i, *n)).collect::<Vec<_>>())
            .collect()
    };
    let producer = [vec![(100, 0)], rounds(100, 10, &[1, 2, 3, 4]), vec![(200, 5)]].concat();
    let consumer = [vec![(100, 6)], rounds(150, 50, &[7, 8, 9, 10, 11]), vec![(400, 12)]].concat();
    write(&mut records, 0, producer.len() as u64, [(100, 7000), (200, 7100)], &producer);
    write(&mut records, 1, consumer.len() as u64, [(100, 7000), (400, 7150)], &consumer);
    let Recorded { timeline, blocks, events, lost } = recorded(&ptx(&events), &records, 2);
    assert_eq!((blocks, events, lost, timeline.warps, timeline.cycles), (1, (18 + 22), 0, 2, 300));
    let copies: Vec<_> = timeline.bars.iter().filter(|bar| bar.kind == BarKind::Copy).collect();
    let found: Vec<_> = copies.iter().map(|bar| (bar.start, bar.end, bar.iteration, bar.stage)).collect();
    let end = |k: u64| 52 + k * 50;
    let expected: Vec<_> = (0..4).map(|k| (2 + k * 10, end(k), Some(k as u32), Some(k as u32 % 3))).collect();
    assert_eq!(found, expected);
    let awaited = copies[3].awaited.unwrap();
    // The waiting warp began its first iteration at 50, after all copies were issued.
    assert_eq!((awaited.warp, awaited.iteration, awaited.ahead, awaited.end), (1, Some(3), None, end(3)));
    let dots = timeline.bars.iter().filter(|bar| bar.kind == BarKind::Mma && bar.warp == 1);
    assert_eq!(dots.count(), 4);
    let location = timeline.instructions[copies[0].instruction as usize].location.clone().unwrap();
    assert_eq!((location.file.as_str(), location.line), ("k.py", 13));
}

/// All warps come to a copy that the first of them issues, and each counts its own groups of `cp.async`.
#[test]
fn groups_end_at_waits_of_their_warp() {
    let events = [
        "begin copy-out",
        "end copy-out",
        "begin wait-stores",
        "end wait-stores",
        "begin copy",
        "end copy",
        "at commit",
        "begin wait-copies pending 1",
        "end wait-copies pending 1",
        "begin mma",
        "end mma",
        "begin wait-mma",
        "end wait-mma",
    ];
    let order = [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let events_of_warp: Vec<(u64, u64)> = order.iter().zip(50..).map(|(event, time)| (time, *event)).collect();
    let mut records = vec![0; bytes(1, 2) as usize];
    for warp in 0..2 {
        write(&mut records, warp, events_of_warp.len() as u64, [(50, 0), (70, 0)], &events_of_warp);
    }
    let timeline = recorded(&ptx(&events), &records, 2).timeline;
    let of = |warp: u32, kind: BarKind| -> Vec<(u64, u64)> {
        let own = timeline.bars.iter().filter(|bar| bar.warp == warp && bar.kind == kind);
        own.map(|bar| (bar.start, bar.end)).collect()
    };
    assert_eq!((of(0, BarKind::CopyOut), of(1, BarKind::CopyOut)), (vec![(0, 3)], Vec::new()));
    for warp in 0..2 {
        // The wait leaves the second group pending, and nothing waits for that.
        assert_eq!(of(warp, BarKind::Copy), [(4, 11), (7, 8)]);
        assert_eq!(of(warp, BarKind::Mma), [(12, 15)]);
    }
}

/// Clocks of two SMs differ: blocks are placed by the nanoseconds. What had no room is counted.
#[test]
fn blocks_are_placed_by_their_start() {
    let events = ["begin load", "end load"];
    let mut records = vec![0; bytes(3, 1) as usize];
    write(&mut records, 0, 2, [(1000, 500), (3000, 1500)], &[(1000, 0), (1010, 1)]);
    write(&mut records, 2, u64::from(EVENTS) + 7, [(90_000, 600), (90_100, 650)], &[(90_000, 0), (90_010, 1)]);
    let Recorded { timeline, blocks, events, lost } = recorded(&ptx(&events), &records, 1);
    assert_eq!((blocks, events, lost, timeline.is_truncated), (2, 4 + 7, 7, true));
    let bars: Vec<_> = timeline.bars.iter().map(|bar| (bar.warp, bar.start, bar.end)).collect();
    // 100 ns later, at 2 cycles per nanosecond.
    assert_eq!(bars, [(0, 0, 10), (1, 200, 210)]);
    assert!(recorded(&ptx(&[]), &[], 4).timeline.bars.is_empty());
}

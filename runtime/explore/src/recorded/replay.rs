//! The bars of a block, from its events.

use super::entries::{Block, Events, Warp};
use rtc_abi::records::{Kind, Moment};
use rtc_emulator::timeline::{Awaited, Bar, BarKind};
use std::collections::{HashMap, HashSet, VecDeque};

/// A phase of a ring of barriers: the number of the ring, and the phases before.
type Phase = (u32, u32);

/// The bars of a block; warps count from its first one.
pub fn bars(block: &Block, events: &Events) -> Vec<Bar> {
    let mut replay =
        Replay { events, bars: Vec::new(), copies: Vec::new(), waits: HashMap::new(), taken: HashSet::new() };
    let warps: Vec<Vec<(u64, u32)>> = (0..).zip(&block.warps).map(|(number, warp)| replay.warp(number, warp)).collect();
    replay.end_copies(&warps);
    replay.bars
}

/// The same bar where the warps of the block count from `first`.
pub fn in_cluster(mut bar: Bar, first: u32) -> Bar {
    bar.warp += first;
    if let Some(awaited) = &mut bar.awaited {
        awaited.warp += first;
    }
    bar
}

struct Replay<'a> {
    events: &'a Events,
    bars: Vec<Bar>,
    /// Copies that a barrier counts: the bar, and the phase.
    copies: Vec<(usize, Phase)>,
    /// Waits for each phase: the warp, its iteration, the end.
    waits: HashMap<Phase, Vec<(u32, Option<u32>, u64)>>,
    /// Copies of which a warp has made bars. All warps come to a copy of tiles, and the first one issues it.
    taken: HashSet<u32>,
}

/// Bars of operations that a wait of the same warp ends, in groups.
#[derive(Default)]
struct Pending {
    open: Vec<usize>,
    groups: VecDeque<Vec<usize>>,
}

impl Pending {
    fn commit(&mut self) {
        let group = std::mem::take(&mut self.open);
        self.groups.push_back(group);
    }

    /// The bars of all groups but the latest ones.
    fn complete(&mut self, pending: u32) -> Vec<usize> {
        let done = self.groups.len().saturating_sub(pending as usize);
        self.groups.drain(..done).flatten().collect()
    }
}

impl Replay<'_> {
    /// Adds the bars of a warp; gives the start of each iteration of it.
    fn warp(&mut self, number: u32, warp: &Warp) -> Vec<(u64, u32)> {
        let (mut loops, mut iterations): (Vec<Option<u32>>, _) = (Vec::new(), Vec::new());
        let (mut copies, mut stores, mut mmas) = (Pending::default(), Pending::default(), Pending::default());
        let (mut phases, mut awaited): (HashMap<u32, u32>, HashMap<u32, u32>) = Default::default();
        let own: HashSet<u32> = warp.events.iter().map(|(_, event)| *event).collect();
        let taken = std::mem::take(&mut self.taken);
        let (mut begun, mut idle) = (None, warp.events.first().map(|(time, _)| *time));
        for (time, event) in &warp.events {
            let Some((event, instruction)) = self.events.get(event) else { continue };
            let iteration = loops.last().copied().flatten();
            match (event.moment, event.kind) {
                (Moment::Begin, Kind::Loop) => loops.push(None),
                (Moment::End, Kind::Loop) => drop(loops.pop()),
                (_, Kind::Iteration) => {
                    if let Some(innermost) = loops.last_mut() {
                        let next = innermost.map_or(0, |iteration| iteration + 1);
                        *innermost = Some(next);
                        iterations.push((*time, next));
                    }
                }
                (_, Kind::Expect) => *phases.entry(event.ring.map_or(0, |(ring, _)| ring)).or_insert(0) += 1,
                (_, Kind::Commit) => copies.commit(),
                (Moment::Begin, _) => begun = Some((*time, *instruction, event.number)),
                (Moment::End, kind) => {
                    let Some((start, instruction, number_of_begin)) = begun.take() else { continue };
                    let Some(bar_kind) = bar_kind(kind) else { continue };
                    let bar = Bar {
                        warp: number,
                        kind: bar_kind,
                        start,
                        end: *time,
                        instruction,
                        events: 1,
                        bytes: 0,
                        iteration,
                        stage: None,
                        awaited: None,
                    };
                    if let Some(idle) = idle.filter(|idle| *idle < start) {
                        self.bars.push(Bar { kind: BarKind::Compute, start: idle, end: start, ..bar.clone() });
                    }
                    idle = Some(*time);
                    let is_tile = event.ring.is_some() || kind == Kind::CopyOut;
                    if matches!(kind, Kind::Copy | Kind::CopyOut) && is_tile && taken.contains(&number_of_begin) {
                        continue;
                    }
                    let index = self.bars.len();
                    self.bars.push(bar);
                    match (kind, event.ring) {
                        (Kind::Copy, Some((ring, slots))) => {
                            let phase = phases.get(&ring).copied().unwrap_or(0).saturating_sub(1);
                            self.bars[index].stage = Some(phase % slots.max(1));
                            self.copies.push((index, (ring, phase)));
                        }
                        (Kind::Copy, None) => copies.open.push(index),
                        (Kind::CopyOut, _) => {
                            stores.open.push(index);
                            stores.commit();
                        }
                        (Kind::Mma, _) => {
                            mmas.open.push(index);
                            mmas.commit();
                        }
                        (Kind::Wait, Some((ring, _))) => {
                            let phase = awaited.entry(ring).or_insert(0);
                            self.waits.entry((ring, *phase)).or_default().push((number, iteration, *time));
                            *phase += 1;
                        }
                        (Kind::WaitCopies, _) => {
                            let wait = Awaited { warp: number, iteration, ahead: None, end: *time };
                            self.end_group(copies.complete(event.pending), wait);
                        }
                        (Kind::WaitStores, _) => self.end_at(stores.complete(event.pending), *time),
                        (Kind::WaitMma, _) => self.end_at(mmas.complete(event.pending), *time),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self.taken = taken;
        self.taken.extend(own);
        iterations
    }

    fn end_at(&mut self, bars: Vec<usize>, end: u64) {
        for bar in bars {
            self.bars[bar].end = end;
        }
    }

    /// Ends copies at a wait of the warp that issued them.
    fn end_group(&mut self, bars: Vec<usize>, wait: Awaited) {
        for bar in bars {
            let bar = &mut self.bars[bar];
            bar.end = wait.end;
            let ahead = wait.iteration.zip(bar.iteration).and_then(|(now, then)| now.checked_sub(then));
            bar.awaited = Some(Awaited { ahead, ..wait });
        }
    }

    /// Ends the copies that barriers count at the first wait for their phase. `iterations` are those of each warp.
    fn end_copies(&mut self, iterations: &[Vec<(u64, u32)>]) {
        for (index, phase) in std::mem::take(&mut self.copies) {
            let first = self.waits.get(&phase).and_then(|waits| waits.iter().min_by_key(|(_, _, end)| *end));
            let Some((warp, iteration, end)) = first.copied() else { continue };
            let bar = &mut self.bars[index];
            let starts = &iterations[warp as usize];
            let before = starts.partition_point(|(time, _)| *time <= bar.start);
            let then = before.checked_sub(1).map(|last| starts[last].1);
            let ahead = iteration.zip(then).and_then(|(now, then)| now.checked_sub(then));
            bar.end = end.max(bar.end);
            bar.awaited = Some(Awaited { warp, iteration, ahead, end });
        }
    }
}

fn bar_kind(kind: Kind) -> Option<BarKind> {
    Some(match kind {
        Kind::Load => BarKind::Load,
        Kind::Store | Kind::Atomic => BarKind::Store,
        Kind::Copy => BarKind::Copy,
        Kind::CopyOut => BarKind::CopyOut,
        Kind::Dot | Kind::Mma => BarKind::Mma,
        Kind::Wait | Kind::WaitCopies | Kind::WaitStores | Kind::WaitMma => BarKind::Wait,
        Kind::Barrier => BarKind::Barrier,
        Kind::Start | Kind::Finish | Kind::Loop | Kind::Iteration | Kind::Expect | Kind::Commit => return None,
    })
}

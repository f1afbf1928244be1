//! Times for the events of a trace: of all warps whose next event can take place, the earliest goes on.

use std::collections::{BTreeMap, HashMap};

use super::{Action, Awaited, Bar, BarKind, Event, Group, Key, Model, Timeline, Trace};

/// A line and a column of the source, or a line of the PTX where that is not known.
type Place = (u32, u32);

/// The arrivals of a key.
#[derive(Default)]
struct Arrivals {
    /// Those to come.
    left: u32,
    /// The time of the latest.
    time: u64,
}

/// A warp during the replay.
struct Warp {
    /// The next event.
    at: usize,
    /// The cycle at which the warp came to it.
    time: u64,
    /// Whether the instructions before the event are issued.
    issued: bool,
}

/// The replay of a trace.
struct Replay<'t> {
    trace: &'t Trace,
    model: &'t Model,
    warps: Vec<Warp>,
    /// When each event is over: its data is there; and when it has read its source.
    done: HashMap<u32, (u64, u64)>,
    arrivals: HashMap<Key, Arrivals>,
    /// The cycle from which on each scheduler, each tensor core, and both memories are free.
    schedulers: Vec<u64>,
    tensor: Vec<u64>,
    global: u64,
    shared: u64,
    bars: Vec<Bar>,
    /// The latest bar of each warp, kind, and place in the source.
    latest: HashMap<(u32, BarKind, Place), usize>,
    /// The bar of each copy.
    copies: HashMap<u32, usize>,
    /// Copies that arrive at a key.
    arriving: HashMap<Key, Vec<u32>>,
    /// The group of each bar of copies.
    groups: HashMap<usize, Group>,
    /// The addresses that the copies of a warp and a line of the source go to, in order of appearance.
    rings: HashMap<(u32, Place), Vec<u32>>,
    /// For each warp, the cycles at which its iterations begin.
    iterations: Vec<BTreeMap<u64, u32>>,
}

impl Trace {
    /// The times of all events by a model.
    pub fn replay(&self, model: &Model) -> Timeline {
        let mut replay = Replay::new(self, model);
        while let Some(warp) = replay.next() {
            replay.step(warp);
        }
        replay.finish()
    }
}

impl<'t> Replay<'t> {
    fn new(trace: &'t Trace, model: &'t Model) -> Replay<'t> {
        let mut arrivals: HashMap<Key, Arrivals> = HashMap::new();
        let mut arriving: HashMap<Key, Vec<u32>> = HashMap::new();
        for event in trace.warps.iter().flatten() {
            let keys: &[Key] = match &event.action {
                Action::Arrive { key, .. } | Action::Meet { key } => &[*key],
                Action::Copy { group, .. } => group.keys(),
                _ => &[],
            };
            keys.iter().for_each(|key| arrivals.entry(*key).or_default().left += 1);
            match &event.action {
                Action::Copy { group, .. } => {
                    group.keys().iter().for_each(|key| arriving.entry(*key).or_default().push(event.id));
                }
                Action::Arrive { key, events } => arriving.entry(*key).or_default().extend(events),
                _ => {}
            }
        }
        let warps: Vec<Warp> = trace.warps.iter().map(|_| Warp { at: 0, time: 0, issued: false }).collect();
        let units = (warps.len() as u32).div_ceil(trace.warps_per_block.max(1)) * model.schedulers;
        Replay {
            iterations: vec![BTreeMap::new(); warps.len()],
            trace,
            model,
            warps,
            done: HashMap::new(),
            arrivals,
            schedulers: vec![0; units as usize],
            tensor: vec![0; units as usize],
            global: 0,
            shared: 0,
            bars: Vec::new(),
            latest: HashMap::new(),
            copies: HashMap::new(),
            arriving,
            groups: HashMap::new(),
            rings: HashMap::new(),
        }
    }

    fn event(&self, warp: usize) -> Option<&'t Event> {
        self.trace.warps[warp].get(self.warps[warp].at)
    }

    /// The cycle at which the object of an event's wait is there; nothing while it is not known.
    fn ready(&self, event: &Event) -> Option<u64> {
        match &event.action {
            Action::After { events, reads } => {
                let time = |id: &u32| self.done.get(id).map_or(0, |(end, read)| if *reads { *read } else { *end });
                Some(events.iter().map(time).max().unwrap_or(0))
            }
            Action::Await { key } | Action::Meet { key } => {
                let arrivals = self.arrivals.get(key);
                arrivals.map_or(Some(0), |arrivals| (arrivals.left == 0).then_some(arrivals.time))
            }
            _ => Some(0),
        }
    }

    /// The warp to go on: the earliest that can.
    fn next(&self) -> Option<usize> {
        let can = |warp: &usize| {
            let Some(event) = self.event(*warp) else { return false };
            !self.warps[*warp].issued || self.ready(event).is_some()
        };
        (0..self.warps.len()).filter(can).min_by_key(|warp| self.warps[*warp].time)
    }

    /// The scheduler of a warp.
    fn unit(&self, warp: usize) -> usize {
        let each = self.trace.warps_per_block.max(1) as usize;
        let schedulers = self.model.schedulers as usize;
        warp / each * schedulers + warp % each % schedulers
    }

    /// Issues the instructions before an event, or the event itself.
    fn step(&mut self, warp: usize) {
        let Some(event) = self.event(warp) else { return };
        if !self.warps[warp].issued {
            self.issue(warp, event);
            if let Action::Arrive { .. } | Action::Meet { .. } = event.action {
                self.arrive(warp, event);
            }
            return;
        }
        let (start, unit) = (self.warps[warp].time, self.unit(warp));
        let Model { global_latency, shared_latency, mma_latency, .. } = *self.model;
        let mut bar = self.bar(warp, event, BarKind::Wait, start);
        match &event.action {
            Action::Load { bytes, is_global } => {
                let latency = if *is_global { global_latency } else { shared_latency };
                let end = self.moved(*is_global, start, *bytes) + latency;
                self.done.insert(event.id, (end, end));
                self.add(Bar { kind: BarKind::Load, end, bytes: *bytes, ..bar });
            }
            Action::Store { bytes, is_global } => {
                let end = self.moved(*is_global, start, *bytes);
                self.add(Bar { kind: BarKind::Store, end, bytes: *bytes, ..bar });
            }
            Action::Copy { bytes, to, group } => {
                let end = self.moved(true, start, *bytes) + global_latency;
                self.done.insert(event.id, (end, end));
                let bar = Bar { kind: BarKind::Copy, end, bytes: *bytes, ..bar };
                let index = self.copy(bar, *to, group);
                self.copies.insert(event.id, index);
                group.keys().iter().for_each(|key| self.count(*key, end));
            }
            Action::CopyOut { bytes } => {
                let read = self.moved(false, start, *bytes);
                let end = self.moved(true, read, *bytes) + global_latency;
                self.done.insert(event.id, (end, read));
                self.add(Bar { kind: BarKind::CopyOut, end, bytes: *bytes, ..bar });
            }
            Action::Mma { flops, .. } => {
                let begin = start.max(self.tensor[unit]);
                let end = begin + flops.div_ceil(self.model.mma_flops);
                self.tensor[unit] = end;
                self.done.insert(event.id, (end + mma_latency, end + mma_latency));
                bar.start = begin;
                self.add(Bar { kind: BarKind::Mma, end, ..bar });
            }
            Action::After { .. } | Action::Await { .. } | Action::Meet { .. } => {
                let end = self.ready(event).unwrap_or(start).max(start);
                let meets = matches!(event.action, Action::Meet { .. } | Action::Await { key: Key::Cluster(_) });
                let kind = if meets { BarKind::Barrier } else { BarKind::Wait };
                if end > start {
                    self.add(Bar { kind, end, ..bar });
                }
                self.warps[warp].time = end;
                self.note_waited(warp, event, end);
            }
            Action::Arrive { .. } | Action::End => {}
        }
        let state = &mut self.warps[warp];
        state.at += 1;
        state.issued = false;
    }

    /// The scheduler issues the instructions up to an event.
    fn issue(&mut self, warp: usize, event: &Event) {
        let unit = self.unit(warp);
        let state = &mut self.warps[warp];
        let start = if event.issued > 0 { state.time.max(self.schedulers[unit]) } else { state.time };
        self.schedulers[unit] = start + u64::from(event.issued);
        state.time = start + u64::from(event.issued) * self.model.issue;
        state.issued = true;
        let end = state.time;
        if let Some(iteration) = event.iteration {
            let known = self.iterations[warp].values().next_back();
            if known != Some(&iteration) {
                self.iterations[warp].insert(end, iteration);
            }
        }
        // The last instruction is the event's own.
        if event.issued > 1 {
            let bar = self.bar(warp, event, BarKind::Compute, start);
            self.add(Bar { end, ..bar });
        }
    }

    fn arrive(&mut self, warp: usize, event: &Event) {
        let time = self.warps[warp].time;
        match &event.action {
            Action::Arrive { key, events } => {
                let over = events.iter().filter_map(|id| self.done.get(id)).map(|(end, _)| *end).max();
                self.count(*key, over.unwrap_or(0).max(time));
            }
            Action::Meet { key } => self.count(*key, time),
            _ => {}
        }
    }

    fn count(&mut self, key: Key, time: u64) {
        let arrivals = self.arrivals.entry(key).or_default();
        arrivals.left = arrivals.left.saturating_sub(1);
        arrivals.time = arrivals.time.max(time);
    }

    /// When memory has moved so many bytes, from a cycle on.
    fn moved(&mut self, is_global: bool, start: u64, bytes: u64) -> u64 {
        let Model { global_bytes, shared_bytes, .. } = *self.model;
        let (free, rate) = if is_global { (&mut self.global, global_bytes) } else { (&mut self.shared, shared_bytes) };
        *free = start.max(*free) + bytes.div_ceil(rate).max(1);
        *free
    }

    /// The copies that a wait of a warp is for.
    fn note_waited(&mut self, warp: usize, event: &Event, end: u64) {
        let ids: Vec<u32> = match &event.action {
            Action::After { events, .. } => events.clone(),
            Action::Await { key } => self.arriving.get(key).cloned().unwrap_or_default(),
            _ => return,
        };
        for id in ids {
            let Some(index) = self.copies.get(&id) else { continue };
            let bar = &mut self.bars[*index];
            if bar.awaited.is_some() {
                continue;
            }
            let then = self.iterations[warp].range(..=bar.start).next_back().map(|(_, iteration)| *iteration);
            let ahead = event.iteration.zip(then).and_then(|(own, then)| own.checked_sub(then));
            bar.awaited = Some(Awaited { warp: warp as u32, iteration: event.iteration, ahead, end });
        }
    }

    fn bar(&self, warp: usize, event: &Event, kind: BarKind, start: u64) -> Bar {
        Bar {
            warp: warp as u32,
            kind,
            start,
            end: start,
            instruction: event.instruction,
            events: 1,
            bytes: 0,
            iteration: event.iteration,
            stage: None,
            awaited: None,
        }
    }

    /// Adds a copy to the bar of its line and group, or a new bar. Gives its index.
    fn copy(&mut self, bar: Bar, to: u32, group: &Group) -> usize {
        let place = self.place(bar.instruction);
        let key = (bar.warp, bar.kind, place);
        if let Some(index) = self.latest.get(&key).copied().filter(|index| self.groups[index] == *group) {
            self.lengthen(index, &bar);
            return index;
        }
        let ring = self.rings.entry((bar.warp, place)).or_default();
        let stage = ring.iter().position(|known| *known == to).unwrap_or_else(|| {
            ring.push(to);
            ring.len() - 1
        });
        let index = self.bars.len();
        self.bars.push(Bar { stage: Some(stage as u32), ..bar });
        self.latest.insert(key, index);
        self.groups.insert(index, group.clone());
        index
    }

    fn place(&self, instruction: u32) -> Place {
        let instruction = &self.trace.instructions[instruction as usize];
        instruction.location.as_ref().map_or((instruction.ptx_line, 0), |at| (at.line, at.column))
    }

    fn lengthen(&mut self, index: usize, bar: &Bar) {
        let last = &mut self.bars[index];
        last.end = last.end.max(bar.end);
        last.bytes += bar.bytes;
        last.events += 1;
    }

    /// Adds a bar, or lengthens the latest of its kind if both are parts of one: the same line and iteration, side by side.
    fn add(&mut self, bar: Bar) {
        let place = if bar.kind == BarKind::Compute { (0, 0) } else { self.place(bar.instruction) };
        let key = (bar.warp, bar.kind, place);
        if let Some(index) = self.latest.get(&key).copied() {
            let last = &self.bars[index];
            let is_one = !matches!(bar.kind, BarKind::Wait | BarKind::Barrier);
            if is_one && bar.start <= last.end && last.iteration == bar.iteration {
                return self.lengthen(index, &bar);
            }
        }
        self.bars.push(bar);
        self.latest.insert(key, self.bars.len() - 1);
    }

    fn finish(self) -> Timeline {
        let mut bars = self.bars;
        bars.sort_by_key(|bar| (bar.warp, bar.start, bar.kind));
        let last = self.warps.iter().map(|warp| warp.time);
        Timeline {
            cycles: bars.iter().map(|bar| bar.end).chain(last).max().unwrap_or(0),
            bars,
            instructions: self.trace.instructions.clone(),
            warps_per_block: self.trace.warps_per_block,
            warps: self.trace.warps.len() as u32,
            is_truncated: self.trace.is_truncated,
        }
    }
}

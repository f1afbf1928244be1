//! The timeline as data of the page, and for Perfetto.

use crate::LaunchInput;
use crate::model::{BarData, Ring, TimelineData};
use crate::places::Places;
use rtc_emulator::timeline::{Bar, BarKind, Timeline};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most bars of a page; those that begin later are left out.
const LIMIT: usize = 5000;

/// The data of the timeline of a launch.
pub fn data(LaunchInput { timeline, model, recording, .. }: &LaunchInput, places: &mut Places<'_>) -> TimelineData {
    let mut starts: Vec<u64> = timeline.bars.iter().map(|bar| bar.start).collect();
    starts.sort_unstable();
    let last = starts.get(LIMIT).copied().unwrap_or(u64::MAX);
    let mut bar = |bar: &Bar| {
        let instruction = &timeline.instructions[bar.instruction as usize];
        let place = instruction.location.as_ref().and_then(|location| places.location(location).last().copied());
        BarData {
            warp: bar.warp,
            kind: bar.kind.name(),
            start: bar.start,
            end: bar.end,
            ptx_line: instruction.ptx_line,
            place,
            bytes: bar.bytes,
            events: bar.events,
            iteration: bar.iteration,
            stage: bar.stage,
            for_iteration: bar.awaited.and_then(|awaited| awaited.iteration),
            ahead: bar.awaited.and_then(|awaited| awaited.ahead).filter(|_| bar.iteration.is_some()),
        }
    };
    let bars: Vec<BarData> = timeline.bars.iter().map(&mut bar).collect();
    TimelineData {
        model,
        recording: recording.clone(),
        warps: timeline.warps,
        warps_per_block: timeline.warps_per_block,
        cycles: timeline.cycles,
        rings: rings(&bars),
        bars: bars.into_iter().filter(|bar| bar.start < last).collect(),
        is_truncated: timeline.is_truncated || timeline.bars.len() > LIMIT,
    }
}

/// The rings that copies fill, and how far ahead of the waits.
fn rings(bars: &[BarData]) -> Vec<Ring> {
    let mut rings: BTreeMap<u32, Ring> = BTreeMap::new();
    for bar in bars.iter().filter(|bar| bar.kind == BarKind::Copy.name()) {
        let (Some(place), Some(ahead)) = (bar.place, bar.ahead) else { continue };
        let Some(stages) = bar.stage.map(|stage| stage + 1) else { continue };
        let ring = rings.entry(place).or_insert(Ring { place, stages, ahead: (ahead, ahead) });
        ring.stages = ring.stages.max(stages);
        ring.ahead = (ring.ahead.0.min(ahead), ring.ahead.1.max(ahead));
    }
    rings.into_values().collect()
}

/// The timeline as trace events, which Perfetto and Chrome read: a process for each block, a thread for each warp, and
/// asynchronous events for copies and MMAs, which overlap with what the warp does. One microsecond is one cycle.
pub fn chrome_trace(timeline: &Timeline) -> Value {
    let each = timeline.warps_per_block.max(1);
    let mut events = Vec::new();
    for warp in 0..timeline.warps {
        let (pid, tid) = (warp / each, warp % each);
        if tid == 0 {
            events.push(json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": format!("block {pid} of the cluster")}}));
        }
        events.push(
            json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": format!("warp {tid}")}}),
        );
    }
    for (id, bar) in timeline.bars.iter().enumerate() {
        let instruction = &timeline.instructions[bar.instruction as usize];
        let (pid, tid) = (bar.warp / each, bar.warp % each);
        let args = json!({
            "ptx_line": instruction.ptx_line,
            "instruction": instruction.text,
            "source": instruction.location.as_ref().map(ToString::to_string),
            "iteration": bar.iteration,
            "stage": bar.stage,
            "bytes": bar.bytes,
            "events": bar.events,
            "awaited_in": bar.awaited.and_then(|awaited| awaited.iteration),
            "ahead": bar.awaited.and_then(|awaited| awaited.ahead),
        });
        let name = bar.kind.name();
        if matches!(bar.kind, BarKind::Compute | BarKind::Wait | BarKind::Barrier) {
            let duration = bar.end - bar.start;
            events.push(json!({
                "ph": "X", "name": name, "cat": name, "pid": pid, "tid": tid, "ts": bar.start, "dur": duration, "args": args,
            }));
            continue;
        }
        let common = json!({"name": name, "cat": name, "pid": pid, "tid": tid, "id": id});
        for (phase, at) in [("b", bar.start), ("e", bar.end)] {
            let mut event = common.clone();
            event["ph"] = phase.into();
            event["ts"] = at.into();
            if phase == "b" {
                event["args"] = args.clone();
            }
            events.push(event);
        }
    }
    json!({"traceEvents": events, "displayTimeUnit": "ns"})
}

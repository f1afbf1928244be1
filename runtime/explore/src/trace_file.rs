//! Traces of recorded launches: a timeline for Perfetto that also has what `rtc explore` needs to show it beside the kernel.
//!
//! The part `rtc` of the file names the kernel and its specialization. The bars are read from the events, their places
//! from the PTX, which is compiled again.

use crate::assembly;
use crate::model::Recording;
use crate::recorded::Recorded;
use crate::timeline::chrome_trace;
use rtc_abi::records::{Event, MARKER, MAX_BLOCKS};
use rtc_emulator::timeline::{Awaited, Bar, BarKind, Instruction, Timeline};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The kinds of bars, which are found by their names.
const KINDS: [BarKind; 8] = [
    BarKind::Compute,
    BarKind::Load,
    BarKind::Store,
    BarKind::Copy,
    BarKind::CopyOut,
    BarKind::Mma,
    BarKind::Wait,
    BarKind::Barrier,
];

/// The launch of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOf {
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub arch: String,
    /// The device that it ran on.
    pub device: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// The specialization, as `rtc build --spec` takes it.
    pub spec: String,
    /// The option that it was compiled with: how many blocks record, if there are as many.
    pub instrument: u32,
}

/// Why a file cannot be shown as the trace of a launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotATrace {
    /// It has no launch, or a part of it has another form.
    #[error(
        "it is no trace of a launch: {0}; `python -m rtc --instrument DIR program.py` and RTC_INSTRUMENT write such traces"
    )]
    Form(String),
    /// It is of a kernel with another PTX.
    #[error(
        "line {line} of the PTX does not record `{event}`: the trace is of another kernel, or the source or the \
         compiler has changed since"
    )]
    OtherKernel {
        /// The line.
        line: u32,
        /// The event of the trace.
        event: String,
    },
}

/// The trace of a launch that recorded.
pub fn recorded_trace(recorded: &Recorded, of: &TraceOf) -> Value {
    let Recorded { timeline, blocks, events, lost } = recorded;
    let mut trace = chrome_trace(timeline);
    trace["rtc"] = json!({
        "format": 1,
        "kernel": of.kernel,
        "arch": of.arch,
        "device": of.device,
        "grid": of.grid,
        "spec": of.spec,
        "instrument": of.instrument,
        "blocks": blocks,
        "events": events,
        "lost": lost,
        "cycles": timeline.cycles,
        "warps": timeline.warps,
        "warps_per_block": timeline.warps_per_block,
        "truncated": timeline.is_truncated,
    });
    trace
}

fn form(name: &str) -> NotATrace {
    NotATrace::Form(format!("`{name}` is missing, or of another form"))
}

fn text(of: &Value, name: &str) -> Result<String, NotATrace> {
    of[name].as_str().map(str::to_owned).ok_or_else(|| form(name))
}

fn number<N: TryFrom<u64>>(of: &Value, name: &str) -> Result<N, NotATrace> {
    of[name].as_u64().and_then(|value| value.try_into().ok()).ok_or_else(|| form(name))
}

/// A number that may be missing.
fn optional(of: &Value, name: &str) -> Result<Option<u32>, NotATrace> {
    if of[name].is_null() { Ok(None) } else { number(of, name).map(Some) }
}

/// The launch of a trace, and what it recorded.
///
/// # Errors
///
/// [`NotATrace::Form`] for JSON that is no such trace.
pub fn trace_of(trace: &Value) -> Result<(TraceOf, Recording), NotATrace> {
    let own = &trace["rtc"];
    if own["format"] != 1 {
        return Err(form("rtc.format"));
    }
    let grid = own["grid"].as_array().and_then(|sizes| {
        let sizes: Option<Vec<u32>> = sizes.iter().map(|size| size.as_u64()?.try_into().ok()).collect();
        <[u32; 3]>::try_from(sizes?).ok()
    });
    let of = TraceOf {
        kernel: text(own, "kernel")?,
        arch: text(own, "arch")?,
        device: text(own, "device")?,
        grid: grid.ok_or_else(|| form("grid"))?,
        spec: text(own, "spec")?,
        instrument: number(own, "instrument")?,
    };
    if !(1..=MAX_BLOCKS).contains(&of.instrument) {
        return Err(form("instrument"));
    }
    let recording = Recording {
        device: of.device.clone(),
        blocks: number(own, "blocks")?,
        events: number(own, "events")?,
        lost: number(own, "lost")?,
    };
    Ok((of, recording))
}

/// The timeline of a trace of the kernel with this PTX.
///
/// # Errors
///
/// [`NotATrace`] where the events are of another form, or not those of the kernel.
pub fn trace_timeline(trace: &Value, ptx: &str) -> Result<Timeline, NotATrace> {
    let own = &trace["rtc"];
    let warps_per_block: u32 = number(own, "warps_per_block")?;
    let warps: u32 = number(own, "warps")?;
    // A block has at most 1024 threads.
    if !(1..=32).contains(&warps_per_block) || warps > MAX_BLOCKS * warps_per_block {
        return Err(form("warps"));
    }
    let mut instructions = Instructions::of(ptx);
    let events = trace["traceEvents"].as_array().ok_or_else(|| form("traceEvents"))?;
    // Of bars that may overlap begin and end are events of their own.
    let mut ends: HashMap<u64, u64> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "e") {
        ends.insert(number(event, "id")?, number(event, "ts")?);
    }
    let mut bars = Vec::new();
    for event in events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "b") {
        let start: u64 = number(event, "ts")?;
        let end = match event["ph"] == "X" {
            true => start.checked_add(number(event, "dur")?),
            false => ends.get(&number(event, "id")?).copied(),
        };
        let (block, warp): (u32, u32) = (number(event, "pid")?, number(event, "tid")?);
        let warp = block.checked_mul(warps_per_block).and_then(|first| first.checked_add(warp));
        let kind = KINDS.into_iter().find(|kind| event["name"] == kind.name());
        let args = &event["args"];
        let (awaited_in, ahead) = (optional(args, "awaited_in")?, optional(args, "ahead")?);
        let warp = warp.filter(|warp| *warp < warps).ok_or_else(|| form("tid"))?;
        let end = end.filter(|end| *end >= start).ok_or_else(|| form("dur"))?;
        let awaited = Awaited { warp, iteration: awaited_in, ahead, end };
        bars.push(Bar {
            warp,
            kind: kind.ok_or_else(|| form("name"))?,
            start,
            end,
            instruction: instructions.index(number(args, "ptx_line")?, &text(args, "instruction")?)?,
            events: number(args, "events")?,
            bytes: number(args, "bytes")?,
            iteration: optional(args, "iteration")?,
            stage: optional(args, "stage")?,
            awaited: (awaited_in.is_some() || ahead.is_some()).then_some(awaited),
        });
    }
    bars.sort_by_key(|bar| (bar.warp, bar.start));
    Ok(Timeline {
        cycles: bars.iter().map(|bar| bar.end).fold(number(own, "cycles")?, u64::max),
        bars,
        instructions: instructions.list,
        warps_per_block,
        warps,
        is_truncated: own["truncated"] == true,
    })
}

/// The lines of the PTX that bars name.
struct Instructions<'p> {
    lines: Vec<&'p str>,
    locations: Vec<Option<rtc_emulator::SourceLocation>>,
    by_line: HashMap<u32, u32>,
    list: Vec<Instruction>,
}

impl<'p> Instructions<'p> {
    fn of(ptx: &'p str) -> Instructions<'p> {
        let (by_line, list) = Default::default();
        Instructions { lines: ptx.lines().collect(), locations: assembly::locations(ptx), by_line, list }
    }

    /// The index of a line, which records an event of that kind.
    fn index(&mut self, line: u32, kind: &str) -> Result<u32, NotATrace> {
        let at = (line as usize).wrapping_sub(1);
        let event = self.lines.get(at).and_then(|text| text.split_once(MARKER)?.1.parse::<Event>().ok());
        if event.is_none_or(|event| event.kind.word() != kind) {
            return Err(NotATrace::OtherKernel { line, event: kind.to_owned() });
        }
        if let Some(known) = self.by_line.get(&line) {
            return Ok(*known);
        }
        let index = self.list.len() as u32;
        let location = self.locations[at].clone();
        self.list.push(Instruction { ptx_line: line, text: kind.to_owned(), location });
        self.by_line.insert(line, index);
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".entry k()\n{\n mov.u64 %rd1, %clock64; // record 0 begin copy\n mov.u64 %rd2, %clock64; // record 1 \
                       begin wait\n}\n";

    fn recorded() -> Recorded {
        let instructions = [(3, "copy"), (4, "wait")];
        let instructions =
            instructions.map(|(ptx_line, text)| Instruction { ptx_line, text: text.into(), location: None });
        let bar = Bar {
            warp: 5,
            kind: BarKind::Copy,
            start: 10,
            end: 30,
            instruction: 0,
            events: 2,
            bytes: 64,
            iteration: Some(1),
            stage: Some(2),
            awaited: Some(Awaited { warp: 5, iteration: Some(3), ahead: Some(2), end: 30 }),
        };
        let wait = Bar { kind: BarKind::Wait, start: 20, instruction: 1, awaited: None, ..bar.clone() };
        Recorded {
            timeline: Timeline {
                bars: vec![bar, wait],
                instructions: instructions.into(),
                warps_per_block: 4,
                warps: 8,
                cycles: 40,
                is_truncated: true,
            },
            blocks: 2,
            events: 9,
            lost: 1,
        }
    }

    fn of() -> TraceOf {
        let [kernel, arch, device, spec] = ["k", "sm_90a", "emulator", "{}"].map(str::to_owned);
        TraceOf { kernel, arch, device, grid: [3, 1, 1], spec, instrument: 2 }
    }

    #[test]
    fn a_trace_is_read_as_it_was_written() {
        let trace: Value = serde_json::from_str(&recorded_trace(&recorded(), &of()).to_string()).unwrap();
        let (read, recording) = trace_of(&trace).unwrap();
        assert_eq!(read, of());
        assert_eq!((recording.blocks, recording.events, recording.lost), (2, 9, 1));
        assert_eq!(trace_timeline(&trace, PTX), Ok(recorded().timeline));
    }

    #[test]
    fn the_trace_of_another_kernel_is_refused() {
        let trace = recorded_trace(&recorded(), &of());
        for ptx in ["", &PTX.replace("begin copy", "begin load"), &PTX.replace("\n{", "\n\n{")] {
            assert!(matches!(trace_timeline(&trace, ptx), Err(NotATrace::OtherKernel { .. })), "{ptx}");
        }
    }

    /// Each part of a trace, replaced by something else.
    #[test]
    fn damaged_traces_are_refused() {
        let trace = recorded_trace(&recorded(), &of());
        assert!(trace_of(&json!([])).is_err() && trace_timeline(&json!(3), PTX).is_err());
        for name in ["format", "kernel", "arch", "device", "grid", "spec", "instrument", "blocks", "events", "lost"] {
            for wrong in [json!(null), json!(-1), json!([1, 2]), json!(1e30), json!({"a": 1})] {
                let mut damaged = trace.clone();
                damaged["rtc"][name] = wrong;
                assert!(trace_of(&damaged).is_err(), "{name}");
            }
        }
        for (name, wrong) in [("warps", json!(1u64 << 40)), ("warps_per_block", json!(0)), ("cycles", json!("x"))] {
            let mut damaged = trace.clone();
            damaged["rtc"][name] = wrong;
            assert!(trace_timeline(&damaged, PTX).is_err(), "{name}");
        }
        let count = trace["traceEvents"].as_array().unwrap().len();
        for (at, name) in
            (0..count).flat_map(|at| ["ph", "pid", "tid", "ts", "dur", "id", "name", "args"].map(|name| (at, name)))
        {
            for wrong in [json!(null), json!(u64::MAX), json!(u32::MAX), json!("e"), json!({})] {
                let mut damaged = trace.clone();
                damaged["traceEvents"][at][name] = wrong;
                // Some changes leave a trace, such as those of names; none may end in a panic or in a bar that ends too early.
                if let Ok(timeline) = trace_timeline(&damaged, PTX) {
                    assert!(timeline.bars.iter().all(|bar| bar.start <= bar.end && bar.warp < timeline.warps));
                }
            }
        }
    }
}

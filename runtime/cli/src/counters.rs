//! The counters of a launch as JSON. The fields have the names of those in Rust; `docs/correctness/counters.md` describes them.

use rtc_runtime::counters::{Class, Count, Counters, InstructionCount, Machine, SharedTraffic, Traffic};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All counts.
pub(crate) fn to_json(counters: &Counters) -> Value {
    let roofline = |machine: &Machine| {
        let least = counters.roofline(machine);
        let bound = match least {
            _ if least.is_memory_bound() => "memory",
            _ if least.matrix >= least.threads => "matrix",
            _ => "threads",
        };
        json!({
            "machine": machine.name, "memory_seconds": least.memory, "matrix_seconds": least.matrix,
            "thread_seconds": least.threads, "seconds": least.seconds(), "bound": bound, "intensity": least.intensity,
        })
    };
    json!({
        "instructions": classes(&counters.instructions),
        "active_lanes": counters.active_lanes(),
        "loads": traffic(counters.loads),
        "stores": traffic(counters.stores),
        "atomics": traffic(counters.atomics),
        "copies_in": traffic(counters.copies_in),
        "copies_out": traffic(counters.copies_out),
        "distinct_read": counters.distinct_read,
        "distinct_written": counters.distinct_written,
        "shared": shared(counters.shared),
        "branches": counters.branches,
        "divergent_branches": counters.divergent_branches,
        "matrix_flops": counters.matrix_flops,
        "thread_flops": counters.thread_flops,
        "roofline": [roofline(&Machine::H200), roofline(&Machine::A100)],
        "by_line": by_line(&counters.by_instruction),
    })
}

fn classes(counts: &BTreeMap<Class, Count>) -> Map<String, Value> {
    let of = |(class, Count { warps, threads }): (&Class, &Count)| {
        (format!("{class:?}").to_lowercase(), json!({"warps": warps, "threads": threads}))
    };
    counts.iter().map(of).collect()
}

fn traffic(traffic: Traffic) -> Value {
    let Traffic { requests, sectors, bytes } = traffic;
    let each = (requests > 0).then(|| traffic.sectors_per_request());
    json!({
        "requests": requests, "sectors": sectors, "bytes": bytes, "sectors_per_request": each, "efficiency": traffic.efficiency(),
    })
}

fn shared(traffic: SharedTraffic) -> Value {
    let SharedTraffic { requests, turns, conflicts, bytes } = traffic;
    json!({
        "requests": requests, "turns": turns, "conflicts": conflicts, "bytes": bytes,
        "conflict_share": traffic.conflict_share(),
    })
}

/// The counts of a line.
#[derive(Default)]
struct Line {
    executed: Count,
    classes: BTreeMap<Class, Count>,
    global: Traffic,
    shared: SharedTraffic,
    divergent: u64,
}

/// The counts by line of the source. Instructions of a function that was inlined belong to the line of the outermost call.
fn by_line(counts: &[InstructionCount]) -> Vec<Value> {
    let mut lines: BTreeMap<(&str, u32), Line> = BTreeMap::new();
    for count in counts {
        let Some(location) = &count.location else { continue };
        let own = (location.file.as_str(), location.line);
        let place = location.inlined_at.last().map_or(own, |(file, line, _)| (file.as_str(), *line));
        let line = lines.entry(place).or_default();
        add(&mut line.executed, count.executed);
        add(line.classes.entry(count.class).or_default(), count.executed);
        line.global.requests += count.global.requests;
        line.global.sectors += count.global.sectors;
        line.global.bytes += count.global.bytes;
        line.shared.requests += count.shared.requests;
        line.shared.turns += count.shared.turns;
        line.shared.conflicts += count.shared.conflicts;
        line.shared.bytes += count.shared.bytes;
        line.divergent += count.divergent;
    }
    let of = |((file, number), line): ((&str, u32), Line)| {
        json!({
            "file": file, "line": number, "warps": line.executed.warps, "threads": line.executed.threads,
            "instructions": classes(&line.classes), "global": traffic(line.global), "shared": shared(line.shared),
            "divergent_branches": line.divergent,
        })
    };
    lines.into_iter().map(of).collect()
}

fn add(sum: &mut Count, count: Count) {
    sum.warps += count.warps;
    sum.threads += count.threads;
}

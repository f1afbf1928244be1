//! The counters of a launch by place, and by level of memory.

use crate::diagnostics::finding;
use crate::model::{Heat, Launch, Level, Roofline, Traffic};
use crate::places::Places;
use crate::{LaunchInput, timeline};
use rtc_emulator::counters::{Counters, InstructionCount, Machine, SECTOR};
use std::collections::BTreeMap;

/// The data of a launch.
pub fn launch(input: &LaunchInput, places: &mut Places<'_>) -> Launch {
    let counters = &input.counters;
    let named = [
        ("loads", counters.loads),
        ("stores", counters.stores),
        ("atomics", counters.atomics),
        ("copies in", counters.copies_in),
        ("copies out", counters.copies_out),
    ];
    let traffic = named.iter().filter(|(_, traffic)| traffic.requests > 0).map(|(name, traffic)| Traffic {
        name,
        requests: traffic.requests,
        sectors: traffic.sectors,
        bytes: traffic.bytes,
    });
    let shared = counters.shared;
    let shared = (shared.requests > 0).then_some(Traffic {
        name: "shared memory",
        requests: shared.requests,
        sectors: shared.turns,
        bytes: shared.bytes,
    });
    let instructions = counters.instructions.iter();
    Launch {
        executor: input.executor,
        grid: input.grid,
        instructions: instructions.map(|(class, count)| (class.to_string(), count.warps, count.threads)).collect(),
        traffic: traffic.chain(shared).collect(),
        levels: levels(counters),
        heat: heat(&counters.by_instruction, places),
        ptx_heat: counters.by_instruction.iter().map(|count| (count.ptx_line, count.executed.warps)).collect(),
        outputs: input.outputs.clone(),
        findings: input.findings.iter().map(|report| finding(report, places)).collect(),
        fault: input.fault.clone(),
        rooflines: [Machine::H200, Machine::A100].iter().map(|machine| roofline(counters, machine)).collect(),
        intensity: counters.roofline(&Machine::H200).intensity,
        flops: (counters.matrix_flops, counters.thread_flops),
        branches: (counters.branches, counters.divergent_branches),
        timeline: timeline::data(input, places),
    }
}

fn levels(counters: &Counters) -> Vec<Level> {
    let Counters { loads, stores, atomics, copies_in, copies_out, .. } = counters;
    vec![
        Level {
            name: "requested by threads and copies",
            read: loads.bytes + atomics.bytes + copies_in.bytes,
            written: stores.bytes + atomics.bytes + copies_out.bytes,
        },
        Level {
            name: "L2 cache, in sectors",
            read: SECTOR * (loads.sectors + atomics.sectors + copies_in.sectors),
            written: SECTOR * (stores.sectors + atomics.sectors + copies_out.sectors),
        },
        Level { name: "device memory, at least", read: counters.distinct_read, written: counters.distinct_written },
    ]
}

fn roofline(counters: &Counters, machine: &Machine) -> Roofline {
    let least = counters.roofline(machine);
    Roofline {
        machine: machine.name.to_owned(),
        bytes: machine.bytes,
        matrix_flops: machine.matrix_flops,
        thread_flops: machine.thread_flops,
        seconds: (least.memory, least.matrix, least.threads),
    }
}

/// The counts of each place. What is inlined belongs to the outermost call.
fn heat(counts: &[InstructionCount], places: &mut Places<'_>) -> Vec<Heat> {
    let mut by_place: BTreeMap<u32, (Heat, BTreeMap<String, u64>)> = BTreeMap::new();
    for count in counts {
        let Some(location) = &count.location else { continue };
        let Some(place) = places.location(location).last().copied() else { continue };
        let (heat, classes) = by_place.entry(place).or_default();
        heat.place = place;
        heat.warps += count.executed.warps;
        heat.threads += count.executed.threads;
        heat.requests += count.global.requests;
        heat.sectors += count.global.sectors;
        heat.bytes += count.global.bytes;
        heat.shared_cycles += count.shared.turns;
        heat.conflicts += count.shared.conflicts;
        heat.divergent += count.divergent;
        *classes.entry(count.class.to_string()).or_default() += count.executed.warps;
    }
    let finished = by_place.into_values().map(|(heat, classes)| {
        let mut classes: Vec<(String, u64)> = classes.into_iter().collect();
        classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Heat { classes, ..heat }
    });
    finished.collect()
}

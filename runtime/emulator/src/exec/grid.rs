//! The blocks of a launch: one after the other, or several at the same time.
//!
//! If it is allowed, the remaining clusters after the first are distributed over threads, each with a copy-on-write
//! memory (`memory/apart.rs`). If no thread had a fault and none read a byte that an earlier block wrote, their writes
//! are merged; otherwise they are discarded, and the blocks run one after the other. So the result is always that of
//! the latter. Programs with atomics or order between blocks, with a clock, under the sanitizer or counted run
//! sequentially.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Cluster, Launch, Random, State, Stop};
use crate::code::{Code, Kind, Order, Special, Window};
use crate::{Memory, Schedule};

/// Turns that a cluster gets before the next one starts.
const CLUSTER_TURNS: u32 = 64;
/// Warp instructions of a launch after which the cluster that has executed most gets a turn after every other one, so
/// that a block that never ends soon exceeds its budget, however many others there are.
const LONG: u64 = 1 << 26;
/// The number of remaining warp instructions, estimated from the first cluster, from which on threads are profitable.
const WORTHWHILE: u64 = 50_000;

/// Runs all clusters, on up to so many threads.
pub fn run_grid(
    launch: &Launch<'_>,
    state: &mut State<'_>,
    schedule: Schedule,
    threads: usize,
) -> Result<(), (Stop, [u32; 3])> {
    let total = clusters(launch).iter().product();
    let threads = threads.min(total as usize);
    let looks_on = state.sanitizer.is_some() || state.counting.is_some() || state.recorder.is_some();
    if threads < 2 || looks_on || !separate(launch.code) {
        return run(launch, state, schedule, 0..total);
    }
    run(launch, state, schedule, 0..1)?;
    if state.warp_instructions.saturating_mul(total - 1) >= WORTHWHILE
        && at_once(launch, state, schedule, (1..total, threads))
    {
        return Ok(());
    }
    run(launch, state, schedule, 1..total)
}

/// Whether no block can observe others, as far as the code shows.
fn separate(code: &Code) -> bool {
    let apart = |window: Window, order: Order| window == Window::Shared || !order.strong;
    code.ops.iter().all(|op| match &op.kind {
        Kind::Atomic(atomic) => atomic.address.window == Window::Shared,
        Kind::Load(load) => apart(load.address.window, load.order),
        Kind::Store(store) => apart(store.address.window, store.order),
        Kind::Special(Special::Clock | Special::ClockHi | Special::Clock64, _) => false,
        _ => true,
    })
}

/// Runs a range of clusters on threads; false, and nothing has happened, if that does not give what one after the
/// other gives.
fn at_once(
    launch: &Launch<'_>,
    state: &mut State<'_>,
    schedule: Schedule,
    (range, threads): (Range<u64>, usize),
) -> bool {
    let length = range.end - range.start;
    let share = |i: usize| range.start + length * i as u64 / threads as u64;
    let begun = state.warp_instructions;
    let parts: Vec<Option<Part>> = std::thread::scope(|scope| {
        let memories = state.memory.apart(threads);
        let work = |(i, memory): (usize, Memory)| {
            let range = share(i)..share(i + 1);
            scope.spawn(move || Part::run(launch, memory, begun, schedule, range))
        };
        let workers: Vec<_> = memories.into_iter().enumerate().map(work).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).collect()
    });
    let parts: Option<Vec<Part>> = parts.into_iter().collect();
    let parts = parts.filter(|parts| {
        parts.iter().map(|part| part.warp_instructions).sum::<u64>().saturating_add(begun) <= launch.budget
    });
    let (mut memories, mut rest) = (Vec::new(), Vec::new());
    let complete = parts.is_some();
    for part in parts.into_iter().flatten() {
        memories.push(part.memory);
        rest.push((part.printed, part.warp_instructions, part.thread_instructions, part.findings));
    }
    if !state.memory.join(complete.then_some(memories)) {
        return false;
    }
    for (printed, warps, threads, findings) in rest {
        state.printed.push_str(&printed);
        state.warp_instructions += warps;
        state.thread_instructions += threads;
        // Each operation that wrapped is reported once.
        for finding in findings {
            if state.findings.iter().all(|known| known.origin != finding.origin) {
                state.findings.push(finding);
            }
        }
    }
    true
}

/// The outcome of a thread.
struct Part {
    memory: Memory,
    printed: String,
    warp_instructions: u64,
    thread_instructions: u64,
    findings: Vec<super::RawFinding>,
}

impl Part {
    /// `None` if something went wrong.
    fn run(launch: &Launch<'_>, mut memory: Memory, begun: u64, schedule: Schedule, range: Range<u64>) -> Option<Part> {
        let mut state = State {
            memory: &mut memory,
            printed: String::new(),
            warp_instructions: begun,
            thread_instructions: 0,
            findings: Vec::new(),
            sanitizer: None,
            counting: None,
            recorder: None,
        };
        run(launch, &mut state, schedule, range).ok()?;
        let State { printed, warp_instructions, thread_instructions, findings, .. } = state;
        Some(Part { memory, printed, warp_instructions: warp_instructions - begun, thread_instructions, findings })
    }
}

fn clusters(launch: &Launch<'_>) -> [u64; 3] {
    std::array::from_fn(|i| u64::from(launch.grid[i] / launch.cluster[i]))
}

/// Runs a range of clusters one after the other; one that exceeds its share of turns is resumed later.
fn run(
    launch: &Launch<'_>,
    state: &mut State<'_>,
    schedule: Schedule,
    range: Range<u64>,
) -> Result<(), (Stop, [u32; 3])> {
    let clusters = clusters(launch);
    let Range { start: mut next, end: total } = range;
    let mut resident: VecDeque<Cluster> = VecDeque::new();
    loop {
        if state.warp_instructions > LONG
            && let Some(longest) = (0..resident.len()).max_by_key(|at| resident[*at].executed())
            && resident[longest].run(launch, state, CLUSTER_TURNS)?
        {
            resident.remove(longest);
        }
        let mut cluster = if next < total {
            let index = [next % clusters[0], next / clusters[0] % clusters[1], next / (clusters[0] * clusters[1])];
            let random = match schedule {
                Schedule::InOrder => None,
                Schedule::Random(seed) => Some(Random::new(seed ^ next << 32)),
            };
            next += 1;
            Cluster::new(launch, &members(launch, index), random)
        } else {
            match resident.pop_front() {
                Some(cluster) => cluster,
                None => return Ok(()),
            }
        };
        if !cluster.run(launch, state, CLUSTER_TURNS)? {
            resident.push_back(cluster);
            // Waiting clusters get a turn after each new one, in order.
            if next < total
                && let Some(mut waiting) = resident.pop_front()
                && !waiting.run(launch, state, CLUSTER_TURNS)?
            {
                resident.push_back(waiting);
            }
        }
    }
}

/// The indices of a cluster's blocks, by rank.
fn members(launch: &Launch<'_>, cluster: [u64; 3]) -> Vec<[u32; 3]> {
    let [x, y, z] = launch.cluster;
    (0..x * y * z)
        .map(|rank| {
            let within = [rank % x, rank / x % y, rank / (x * y)];
            std::array::from_fn(|i| cluster[i] as u32 * launch.cluster[i] + within[i])
        })
        .collect()
}

//! Decisions as sentences.

use rtc_ir::{Kernel, Op, OpKind, Type, place_bytes, trip_count};

use super::reads::{LoopKind, Read};
use crate::schedule::partition::specialize_warps::LEAST_SLOTS;
use crate::schedule::partition::{config, persistent};
use crate::schedule::pipeline::expand_loop::needs_second_barrier;
use crate::schedule::pipeline::schedule_loop::ring_bytes;

/// One form of a loop in the finished kernel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoopForm {
    /// How its loads get there.
    pub way: LoopKind,
    /// The rest of the sentence: the reason why it is plain, or the prefetch distance.
    pub said: String,
    /// What it reads.
    pub reads: Vec<Read>,
    /// In which launches it runs, where the kernel was written out twice.
    pub when: Option<String>,
}

/// `1 iteration`, `2 iterations`.
pub(super) fn iterations(number: u32) -> String {
    format!("{number} iteration{}", if number == 1 { "" } else { "s" })
}

/// `2 slots of 8192 bytes`.
fn slots_of(slots: impl Into<u64>, bytes: u64) -> String {
    let slots = slots.into();
    format!("{slots} slot{} of {bytes} bytes", if slots == 1 { "" } else { "s" })
}

/// The prefetch distance of the copies of a loop, and the shared memory that it takes.
pub(super) fn copies_ahead(kernel: &Kernel, of: Op, slots: u32, ahead: u32, pending: u32) -> String {
    let bytes = ring_bytes(kernel, of) / u64::from(slots);
    let all = trip_count(kernel, of).is_some_and(|trips| trips <= ahead.into());
    let begin = match all {
        true => format!("before the loop, for all {}", iterations(ahead)),
        false => format!("{} ahead", iterations(ahead)),
    };
    let in_flight = match pending {
        0 => "",
        _ => ", with an MMA in flight from one iteration to the next",
    };
    let barrier = match !all && needs_second_barrier(slots, ahead, pending) {
        true => "; a second barrier per iteration saves a slot",
        false => "",
    };
    format!("{begin}, {}{in_flight}{barrier}", slots_of(slots, bytes))
}

/// `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The decision as one sentence.
pub(super) fn sentence(forms: &[LoopForm]) -> String {
    let parts: Vec<String> = forms.iter().map(of_form).collect();
    format!("the loop is {}", parts.join("; "))
}

fn of_form(form: &LoopForm) -> String {
    let when = form.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let early = early(form);
    let of_way = |way: LoopKind| shown(form.reads.iter().filter(move |read| read.way == way));
    let others = of_way(LoopKind::Plain);
    let what = match form.way {
        LoopKind::Gone => form.said.clone(),
        LoopKind::Plain => format!("not pipelined{when}: {}", form.said),
        LoopKind::Registers => format!("pipelined{when}: loads from {early} are issued {}", form.said),
        LoopKind::Async => {
            let beside = match of_way(LoopKind::Registers) {
                none if none.is_empty() => none,
                loads => format!("; loads from {loads} are issued 1 iteration ahead"),
            };
            format!("pipelined{when}: copies from {} are issued {}{beside}", of_way(LoopKind::Async), form.said)
        }
        LoopKind::Specialized => {
            format!("pipelined{when}: copies from {early} are issued by a producer warp; {}", form.said)
        }
    };
    match others.is_empty() {
        true => what,
        false => format!("{what}; each iteration loads from {others}"),
    }
}

/// The reads that are issued ahead of time, by any mechanism.
fn early(form: &LoopForm) -> String {
    shown(form.reads.iter().filter(|read| read.way > LoopKind::Plain))
}

/// `a` and `b` (16 bytes at a time) and `c` (a number).
fn shown<'r>(reads: impl Iterator<Item = &'r Read>) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for read in reads {
        let how = how(read);
        match groups.iter_mut().find(|(other, _)| *other == how) {
            Some((_, names)) => names.push(read.name.clone()),
            None => groups.push((how, vec![read.name.clone()])),
        }
    }
    let groups: Vec<String> = groups.into_iter().map(|(how, names)| format!("{} ({how})", listed(&names))).collect();
    listed(&groups)
}

fn how(read: &Read) -> String {
    let width = match read.bytes {
        Some(1) => "1 byte at a time".to_owned(),
        Some(bytes) => format!("{bytes} bytes at a time"),
        None => "a number".to_owned(),
    };
    match read.way {
        LoopKind::Specialized => "TMA".to_owned(),
        LoopKind::Async => format!("`cp.async`, {width}"),
        LoopKind::Registers => format!("into registers, {width}"),
        LoopKind::Plain | LoopKind::Gone => width,
    }
}

/// The advantage of `better` over `now`.
pub(super) fn change(now: &[LoopForm], better: &[LoopForm]) -> String {
    let worst = |forms: &[LoopForm]| forms.iter().map(|form| form.way).min();
    let [form] = better else { return sentence(better) };
    let everywhere = if now.len() > 1 { " in every launch" } else { "" };
    let early = early(form);
    match form.way {
        _ if worst(now) >= Some(form.way) => format!("it reads from {}{everywhere}", shown(form.reads.iter())),
        LoopKind::Specialized => format!("a producer warp copies from {early}{everywhere}"),
        LoopKind::Async => format!("copies from {early} are issued ahead of time{everywhere}"),
        LoopKind::Registers => format!("loads from {early} are issued ahead of time{everywhere}"),
        LoopKind::Plain | LoopKind::Gone => sentence(better),
    }
}

/// Whether an operation waits for a dot after which another one was begun.
fn leaves_others_in_flight(kernel: &Kernel, op: Op) -> bool {
    let OpKind::MmaAwait {} = kernel.kind(op) else { return false };
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::MmaAsync {});
    let before = std::iter::successors(kernel.previous_op(op), |op| kernel.previous_op(*op)).find(is_dot);
    let waited = kernel.variadic(op).iter().filter_map(|acc| kernel.def_op(*acc)).find(is_dot);
    waited.is_some_and(|waited| before.is_some_and(|before| before != waited && kernel.is_before(waited, before)))
}

/// How the warps of a kernel are divided.
pub(super) fn division(kernel: &Kernel) -> String {
    let division = kernel.specialization().map(|op| kernel.kind(op));
    let Some(OpKind::WarpSpecialize { warps, registers }) = division else { return String::new() };
    let (mut bytes, mut slots) = (0, 0);
    for op in rtc_ir::walk(kernel).into_iter().filter(|op| config::is_ring(kernel, *op)) {
        let Type::Shared(ty) = kernel.value_type(kernel.result(op, 0)) else { continue };
        // One alone is an operand that loops read since before them.
        if ty.slots < LEAST_SLOTS {
            continue;
        }
        slots = ty.slots;
        bytes += place_bytes(Type::Shared(ty)) / u64::from(ty.slots);
    }
    let producer = warps.first().copied().unwrap_or_default();
    let consumer: u32 = warps.iter().skip(1).sum();
    let own = registers.as_deref().unwrap_or_default();
    let [few, many] = [own.first(), own.last()].map(|number| number.copied().unwrap_or_default());
    let blocks = kernel.persistent.map_or(1, |persistent| persistent.blocks_per_multiprocessor);
    let overlap = match rtc_ir::walk(kernel).into_iter().any(|op| leaves_others_in_flight(kernel, op)) {
        true => "; the second dot of an iteration overlaps the first one of the next",
        false => "",
    };
    let plural = if producer == 1 { "" } else { "s" };
    format!(
        "the warps are specialized: {producer} producer warp{plural} with {few} registers per thread, {consumer} consumer warps with \
         {many}; {}, {}{overlap}",
        slots_of(slots, bytes),
        persistent::described(blocks)
    )
}

//! The reads of a loop from global memory in each iteration, and their mechanism.

use rtc_ir::{Hidden, Kernel, LoopHints, Op, OpKind, Value, regions, view};

use crate::access::addresses::{Memory, addresses, loads_of_dots, memory};
use crate::schedule::pipeline::expand_loop::roots;
use crate::schedule::pipeline::register_prefetch::{asked_for, beside_copies};
use crate::schedule::pipeline::stages::copies;

/// Bytes of the widest access of a thread.
pub(super) const WIDEST: u32 = 16;

/// How what a loop loads gets there, the slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoopKind {
    /// There is no such loop any more.
    Gone,
    /// Each iteration loads its own.
    Plain,
    /// Loads an iteration ahead into registers.
    Registers,
    /// Copies by threads into shared memory.
    Async,
    /// Copies by TMA by a warp that does nothing else.
    Specialized,
}

/// The reads through one argument by one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// The argument, as messages show it.
    pub name: String,
    pub way: LoopKind,
    /// Bytes that a thread reads at a time; `None` for TMA copies and scalars.
    pub bytes: Option<u32>,
}

impl Read {
    /// Bytes at a time, for comparison.
    pub fn width(&self) -> u32 {
        self.bytes.unwrap_or(WIDEST)
    }
}

/// The reads of the loops that come from one source loop, without nested loops; each argument once, by its best
/// mechanism.
pub(super) fn of_loop(kernel: &Kernel, loops: &[Op], hints: &LoopHints) -> Vec<Read> {
    let mut reads: Vec<Read> = Vec::new();
    for of in loops {
        let ahead = ahead(kernel, *of, hints);
        for op in own_ops(kernel, *of) {
            let way = match kernel.kind(op) {
                OpKind::CopyDesc { .. } | OpKind::CopyBulk { .. } => LoopKind::Specialized,
                OpKind::CopyAsync { .. } if hints.ahead.is_some() || kernel.group_of(op).partition.is_some() => {
                    LoopKind::Async
                }
                OpKind::Load { .. } if ahead.contains(&op) => LoopKind::Registers,
                OpKind::Load { .. } | OpKind::CopyAsync { .. } => LoopKind::Plain,
                _ => continue,
            };
            let read = Read { name: name(kernel, kernel.operand(op, 0)), way, bytes: bytes(kernel, op) };
            match reads.iter_mut().find(|other| (&other.name, other.way) == (&read.name, read.way)) {
                // The narrowest access is the relevant one.
                Some(other) => other.bytes = [other.bytes, read.bytes].into_iter().flatten().min(),
                None => reads.push(read),
            }
        }
    }
    reads
}

/// The loads that are issued ahead into registers.
fn ahead(kernel: &Kernel, of: Op, hints: &LoopHints) -> Vec<Op> {
    match (hints.slots, hints.ahead) {
        (Some(_), Some(_)) => addresses(kernel, of, &roots(kernel, &copies(kernel, of)))
            .map_or(Vec::new(), |copied| beside_copies(kernel, of, &copied)),
        (None, Some(_)) => asked_for(kernel, of).unwrap_or_else(|| loads_of_dots(kernel, of)),
        (_, None) => Vec::new(),
    }
}

/// The operations in a loop that are in no loop in it, in program order.
pub(super) fn own_ops(kernel: &Kernel, of: Op) -> Vec<Op> {
    let inside = |op: Op| {
        kernel.op(op).blocks.iter().rev().flat_map(|block| kernel.ops(*block).collect::<Vec<_>>().into_iter().rev())
    };
    let (mut own, mut work) = (Vec::new(), inside(of).collect::<Vec<Op>>());
    while let Some(op) = work.pop() {
        own.push(op);
        if !regions::is_loop(kernel.kind(op)) {
            work.extend(inside(op));
        }
    }
    own
}

/// Bytes of a thread at a time.
fn bytes(kernel: &Kernel, op: Op) -> Option<u32> {
    let pointers = kernel.value_type(kernel.operand(op, 0));
    pointers.shape()?;
    let elem = pointers.elem()?.pointee()?;
    match kernel.kind(op) {
        OpKind::Load { vector, .. } => Some(vector.unwrap_or(1) * elem.bytes()),
        OpKind::CopyAsync { vector } => Some(vector * elem.bytes()),
        _ => None,
    }
}

/// The argument that a pointer or a tensor map leads to, as messages show it.
pub(super) fn name(kernel: &Kernel, place: Value) -> String {
    // A choice is one of two maps of an argument.
    let choice = kernel.def_op(place).and_then(|made| view::Select::of(kernel, made));
    let place = choice.map_or(place, |choice| choice.rhs());
    let param = |value: Value| kernel.params.iter().find(|param| param.value == value);
    if let Some(param) = param(place) {
        return match &param.hidden {
            Some(Hidden::TensorMap(map)) => format!("`{}`", map.base),
            _ => format!("`{}`", param.name),
        };
    }
    let shown = |value: Value| param(value).map(|param| format!("`{}`", param.name));
    let found = match memory(kernel, made_of(kernel, place)) {
        Some(Memory::Of(value)) => shown(value),
        Some(Memory::Behind(value)) => shown(value).map(|name| format!("addresses in {name}")),
        None => None,
    };
    found.unwrap_or_else(|| "addresses that are computed".to_owned())
}

/// The address that a tensor map was made of in the kernel, or the value itself.
fn made_of(kernel: &Kernel, place: Value) -> Value {
    let made = regions::slot_of(kernel, place).and_then(|slot| slot.values(kernel).next()).unwrap_or(place);
    match kernel.def_op(made) {
        Some(op) if matches!(kernel.kind(op), OpKind::MakeMap { .. }) => kernel.operand(op, 0),
        _ => place,
    }
}

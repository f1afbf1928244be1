//! How many registers of a thread are live at the same time.
//!
//! Numeric tiles count as their layouts distribute them. Masks and operands of addresses count less: the back end
//! recomputes many of them, or folds them into the instructions.

use rtc_abi::REGISTERS_PER_THREAD;
use rtc_ir::{DotKind, Elem, Kernel, Op, OpKind, Value, ValueDef, regions, view, walk};
use std::collections::{HashMap, HashSet};

use super::instructions::width;
use crate::matrix_unit;

/// Registers for values that are not tiles.
const BASE: f64 = 12.0;
/// Registers of addresses, descriptors and counters in kernels with dots.
const PRODUCT: f64 = 12.0;
/// How many bits of a row of the first operand an `mma.sync` takes.
const BITS_OF_STEP: u32 = 256;

/// The registers of a thread: those that the kernel sets, else the estimate up to what a thread can have.
pub fn registers_or_set(kernel: &Kernel) -> u32 {
    let set = kernel.registers_at_start().or(kernel.options.maxnreg);
    set.unwrap_or_else(|| registers(kernel).min(REGISTERS_PER_THREAD))
}

/// The estimated registers of a thread; more than the target has means that some are spilled.
pub fn registers(kernel: &Kernel) -> u32 {
    estimate(kernel, false)
}

/// The fewest registers of a thread that hold everything: fragments of operands of `mma.sync` are read from shared memory
/// beside the instructions that take them, and of a sum from which only addresses are computed the parts are held that
/// differ between the elements of a thread. The assembler takes more where there are more.
pub fn least_registers(kernel: &Kernel) -> u32 {
    estimate(kernel, true)
}

fn estimate(kernel: &Kernel, least: bool) -> u32 {
    let ops = walk(kernel);
    let number: HashMap<Op, usize> = ops.iter().enumerate().map(|(i, op)| (*op, i)).collect();
    // The last operation within each one that has nested blocks.
    let mut end: Vec<usize> = (0..ops.len()).collect();
    for (i, op) in ops.iter().enumerate().rev() {
        if let Some(around) = kernel.op(*op).parent.and_then(|block| kernel.block(block).parent) {
            let at = number[&around];
            end[at] = end[at].max(end[i]);
        }
    }
    let offsets = if least { offsets(kernel, &ops) } else { HashSet::new() };
    let mut change = vec![0.0f64; ops.len() + 1];
    let mut live = |value: Value, from: usize| {
        let share = if least { read_share(kernel, value) } else { 1.0 };
        let weight = weight(kernel, value, &offsets) * share;
        if weight == 0.0 {
            return;
        }
        let home = match kernel.value(value).def {
            ValueDef::Result(op, _) => kernel.op(op).parent,
            ValueDef::Arg(block, _) => Some(block),
        };
        let last = |user: Op| {
            // A value from outside of a loop lives through all of it.
            let mut last = number.get(&user).copied().unwrap_or(from);
            let mut at = user;
            while let Some(block) = kernel.op(at).parent.filter(|block| Some(*block) != home) {
                let Some(around) = kernel.block(block).parent else { break };
                if regions::is_loop(kernel.kind(around)) {
                    last = last.max(end[number[&around]]);
                }
                at = around;
            }
            last
        };
        let last = kernel.users(value).into_iter().map(last).max().unwrap_or(from);
        change[from] += weight;
        change[last.max(from) + 1 - usize::from(last > from)] -= weight;
    };
    for (i, op) in ops.iter().enumerate() {
        kernel.op(*op).results.iter().for_each(|v| live(*v, end[i]));
        for block in &kernel.op(*op).blocks {
            kernel.block(*block).args.iter().for_each(|v| live(*v, i));
        }
    }
    let (mut now, mut most) = (0.0, 0.0f64);
    for step in change {
        now += step;
        most = most.max(now);
    }
    let dot = if has_dot(kernel) { PRODUCT } else { 0.0 };
    (BASE + dot + most).round() as u32
}

/// Whether dots hold sums in registers.
pub fn has_dot(kernel: &Kernel) -> bool {
    walk(kernel).into_iter().any(|op| matrix_unit::is_dot(kernel.kind(op)))
}

/// Registers that a value takes of a thread.
fn weight(kernel: &Kernel, value: Value, offsets: &HashSet<Value>) -> f64 {
    if kernel.layout_of(value).is_none() {
        return 0.0;
    }
    if let ValueDef::Result(op, _) = kernel.value(value).def
        && matches!(
            kernel.kind(op),
            OpKind::Constant { .. }
                | OpKind::Splat {}
                | OpKind::Arange { .. }
                | OpKind::ExpandDims { .. }
                | OpKind::Broadcast {}
        )
    {
        return 0.0;
    }
    let width = width(kernel, value) as f64;
    match kernel.value_type(value).elem() {
        Some(Elem::Num(scalar)) if scalar.bits() == 1 => width / 32.0,
        Some(Elem::Num(scalar)) if scalar.is_int() && offsets.contains(&value) => (width * 0.125).max(2.0),
        Some(Elem::Num(scalar)) if scalar.is_int() => width * f64::from(scalar.bits()) / 32.0 * 0.5,
        Some(Elem::Num(scalar)) => (width * f64::from(scalar.bits()) / 32.0).max(1.0),
        // Pointers of a tile are a base and offsets.
        Some(Elem::Ptr(_)) => (width * 0.125).max(2.0),
        _ => 0.0,
    }
}

/// The integers from which only addresses are computed.
fn offsets(kernel: &Kernel, ops: &[Op]) -> HashSet<Value> {
    let mut offsets = HashSet::new();
    for op in ops.iter().rev() {
        for result in &kernel.op(*op).results {
            let users = kernel.users(*result);
            let only = |user: &Op| match kernel.kind(*user) {
                OpKind::AddPtr {} => true,
                OpKind::AddI {} | OpKind::MulI {} => offsets.contains(&kernel.result(*user, 0)),
                _ => false,
            };
            if !users.is_empty() && users.iter().all(only) {
                offsets.insert(*result);
            }
        }
    }
    offsets
}

/// The share of a value that a thread holds at the same time, if fragments of an operand of `mma.sync` are read for two steps
/// of K at a time.
fn read_share(kernel: &Kernel, value: Value) -> f64 {
    let ValueDef::Result(op, _) = kernel.value(value).def else { return 1.0 };
    if !matches!(kernel.kind(op), OpKind::LocalLoad {}) {
        return 1.0;
    }
    let bits = kernel.value_type(value).elem().map_or(32, |elem| elem.bits());
    let step = 2 * BITS_OF_STEP / bits.max(1);
    let k = |user: Op| {
        let OpKind::Dot { kind: DotKind::MmaV2, .. } = kernel.kind(user) else { return None };
        let from_end = if view::Dot::at(kernel, user).lhs() == value { 0 } else { 1 };
        kernel.value_type(value).shape()?.iter().nth_back(from_end).copied()
    };
    let users: Option<Vec<u32>> = kernel.users(value).into_iter().map(k).collect();
    let Some(least) = users.and_then(|k| k.into_iter().min()) else { return 1.0 };
    (f64::from(step) / f64::from(least.max(1))).min(1.0)
}

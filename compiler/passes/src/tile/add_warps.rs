//! Raises `num_warps` if the threads could not hold the accumulators of the dots, or if there would be only one dot in
//! flight.
//!
//! ```text
//! kernel @k(..) warps 4 ..                     kernel @k(..) warps 8 given 4 ..
//!   for_range .. (%acc: tile<128x256xf32>)  →    for_range .. (%acc: tile<128x256xf32>)
//!     %s = dot %a, %b, %acc                        %s = dot %a, %b, %acc
//! ```
//!
//! Each of 128 threads holds 256 of these accumulator elements and has 255 registers: kilobytes are spilled, and
//! neither partitions nor rings fit. Each of 256 threads holds 128. A program can observe the number of warps only by
//! inline assembly with effects, and a kernel written with buffers and barriers depends on its threads: both are
//! unchanged. So is one whose launch bounds the registers. A block of more than eight warps has fewer registers per
//! thread, so that more would not help.
//!
//! With warp specialization (`specialize_warps`), four consumer warps are one warp group, which leaves the tensor cores
//! idle while it waits for a dot. Two blocks per SM fill the gaps, except if the source itself loops over tiles: such a
//! kernel has as many programs as there are SMs. Eight warps are two warp groups, which wait at different times.
//! different times.

use std::collections::HashMap;

use rtc_ir::effects::{EffectKind, On, Space};
use rtc_ir::{Elem, Kernel, Op, OpKind, Phase, Type, Value, ValueDef, constant_bits, regions, view};
use rtc_source::{Code, Diagnostic};

use crate::access::addresses::{innermost_loops, loads_of_dots};
use crate::access::specializable::may_specialize;
use crate::laid::accelerate_dot;
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "add-warps", needs: Phase::Tile, leaves: Phase::Tile, run };

/// The most registers of a thread that tiles can take in a loop with dots: of its 255 the others hold addresses, rows of
/// statistics, and fragments of operands.
const MOST_REGISTERS: u64 = 224;
/// The most warps that have so many.
const MOST_WARPS: u32 = 8;
/// Rows of the accumulators of an instruction of a warp group.
const GROUP_ROWS: u32 = 64;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let given = kernel.options.num_warps;
    if kernel.options.maxnreg.is_some() || kernel.options.given_warps.is_some() {
        return Ok(());
    }
    let Some((_, bits)) = most_expensive(kernel, cx) else { return Ok(()) };
    let mut warps = given;
    while warps < MOST_WARPS && registers(bits, warps) > MOST_REGISTERS {
        warps *= 2;
    }
    if given == matrix_unit::GROUP_WARPS && warps == given && waits_alone(kernel, cx)? {
        warps = 2 * matrix_unit::GROUP_WARPS;
    }
    if warps > given && !counts_threads(kernel) {
        kernel.options.num_warps = warps;
        kernel.options.given_warps = Some(given);
    }
    Ok(())
}

/// Whether a kernel has one dot, of rows enough for two groups, in a loop over tiles, and warps will likely be divided.
fn waits_alone(kernel: &Kernel, cx: &PassContext) -> Result<bool, PassError> {
    let dots = accelerate_dot::dots(kernel);
    let [dot] = dots[..] else { return Ok(false) };
    let Some(of) = regions::loop_around(kernel, dot).filter(|of| innermost_loops(kernel).contains(of)) else {
        return Ok(false);
    };
    let rows = kernel.value_type(kernel.result(dot, 0)).shape().map_or(0, |shape| shape[shape.rank() - 2]);
    if rows < 2 * GROUP_ROWS || regions::loop_around(kernel, of).is_none() {
        return Ok(false);
    }
    let mut trial = kernel.clone();
    trial.options.num_warps = 2 * matrix_unit::GROUP_WARPS;
    accelerate_dot::choose_kinds(&mut trial, cx)?;
    let by_wgmma = matrix_unit::is_async_dot(trial.kind(dot));
    Ok(by_wgmma && may_specialize(kernel, cx, &loads_of_dots(kernel, of))?)
}

/// Registers of a thread for so many bits of the block.
fn registers(bits: u64, warps: u32) -> u64 {
    bits / 32 / (32 * u64::from(warps))
}

/// The dot in whose loop tiles take most bits at a time, and how many.
fn most_expensive(kernel: &Kernel, cx: &PassContext) -> Option<(Op, u64)> {
    let mut loops: HashMap<Option<Op>, u64> = HashMap::new();
    let mut most: Option<(Op, u64)> = None;
    for dot in rtc_ir::walk(kernel).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Dot { .. })) {
        let around = regions::loop_around(kernel, dot);
        let held = *loops.entry(around).or_insert_with(|| around.map_or(0, |of| held(kernel, cx, of)));
        // The result replaces the accumulator.
        let fresh = constant_bits(kernel, view::Dot::at(kernel, dot).acc()).is_some();
        let bits = held + if fresh { bits_of(kernel.value_type(kernel.result(dot, 0))) } else { 0 };
        if most.is_none_or(|(_, other)| bits > other) {
            most = Some((dot, bits));
        }
    }
    most
}

/// The registers that threads hold throughout a loop: loop-carried floats, accumulators, and, if fragments of operands
/// come from registers, operands from before the loop.
fn held(kernel: &Kernel, cx: &PassContext, of: Op) -> u64 {
    let dots: Vec<view::Dot<'_>> = rtc_ir::walk_block(kernel, *kernel.op(of).blocks.last().unwrap_or(&kernel.body()))
        .into_iter()
        .filter_map(|op| view::Dot::of(kernel, op))
        .collect();
    let mut values: Vec<Value> = Vec::new();
    for slot in regions::slots(kernel, of) {
        let in_loop = |value: &&Value| matches!(kernel.value(**value).def, ValueDef::Arg(..));
        values.extend(slot.targets.iter().find(in_loop).filter(|value| {
            let is_float = kernel.value_type(**value).elem().and_then(Elem::num).is_some_and(|elem| elem.is_float());
            is_float || dots.iter().any(|dot| dot.acc() == **value)
        }));
    }
    if !matrix_unit::has_async(cx.target) {
        let operands = dots.iter().flat_map(|dot| [dot.lhs(), dot.rhs()]);
        values.extend(
            operands.filter(|value| regions::is_outside(kernel, *value, of) && constant_bits(kernel, *value).is_none()),
        );
    }
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(|value| bits_of(kernel.value_type(value))).sum()
}

fn bits_of(ty: Type) -> u64 {
    match (ty.shape(), ty.elem()) {
        (Some(shape), Some(elem)) => shape.numel() * u64::from(elem.bits()),
        _ => 0,
    }
}

/// Whether a kernel may do other things with another number of threads.
fn counts_threads(kernel: &Kernel) -> bool {
    rtc_ir::walk(kernel).into_iter().any(|op| {
        let by_hand = kernel.effects(op).any(|(effect, _)| {
            let own = effect.access != EffectKind::Exchange && matches!(effect.on, On::Operand(_) | On::Result);
            own && matches!(effect.space, Space::Shared | Space::Barrier)
        });
        by_hand || matches!(kernel.kind(op), OpKind::InlineAsm { pure: false, .. } | OpKind::WarpSpecialize { .. })
    })
}

/// The remark that `num_warps` was raised.
pub fn warps_remark(kernel: &Kernel, cx: &PassContext) -> Option<Diagnostic> {
    let given = kernel.options.given_warps?;
    let warps = kernel.options.num_warps;
    let (dot, bits) = most_expensive(kernel, cx)?;
    let span = kernel.loc(kernel.op(dot).loc).span.unwrap_or_default();
    let message = if registers(bits, given) > MOST_REGISTERS {
        format!(
            "`num_warps` is raised from {given} to {warps}: with {given}, each thread would hold {} registers of accumulators and operands, with {warps}, {}",
            registers(bits, given),
            registers(bits, warps)
        )
    } else {
        format!(
            "`num_warps` is raised from {given} to {warps}: in this loop over tiles, {given} would have only one dot in flight"
        )
    };
    Some(Diagnostic::remark(Code::COST, span, message))
}

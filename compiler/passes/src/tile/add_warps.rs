//! Lets more warps compute than the launch says, where the threads of these could not hold the sums of the products, or would
//! wait for each product with nothing beside them.
//!
//! ```text
//! kernel @k(..) warps 4 ..                     kernel @k(..) warps 8 given 4 ..
//!   for_range .. (%acc: tile<128x256xf32>)  →    for_range .. (%acc: tile<128x256xf32>)
//!     %s = dot %a, %b, %acc                        %s = dot %a, %b, %acc
//! ```
//!
//! Of 128 threads each holds 256 of these sums and has 255 registers: kilobytes are spilled, and neither roles nor rings fit.
//! Of 256 threads each holds 128. No program can tell how many warps there are but by assembly that has effects, and a
//! kernel written with buffers and barriers counts on its threads: both stay as they are. So does one whose launch bounds
//! the registers. A block of more than eight warps has fewer registers for each thread, so that more would not help.
//!
//! Where some warps copy and the others only multiply (`specialize_warps`), four of these are one group for the tensor cores, which stand
//! still while it waits for a product. Two blocks on a multiprocessor fill the gaps, but not where the source loops over tiles
//! itself: such a kernel has as many programs as there are multiprocessors. Eight warps are two groups, which wait at
//! different times.

use std::collections::HashMap;

use rtc_abi::Feature;
use rtc_ir::effects::{EffectKind, On, Space};
use rtc_ir::{DotKind, Elem, Kernel, Op, OpKind, Phase, Type, Value, ValueDef, constant_bits, regions};
use rtc_source::{Code, Diagnostic};

use crate::laid::accelerate_dot;
use crate::schedule::addresses::{innermost_loops, loads_of_dots};
use crate::schedule::specialize_warps;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "add-warps", needs: Phase::Tile, leaves: Phase::Tile, run };

/// The most registers of a thread that tiles can take in a loop with products: of its 255 the others hold addresses, rows of
/// statistics, and fragments of operands.
const MOST_REGISTERS: u64 = 224;
/// The most warps that have so many.
const MOST_WARPS: u32 = 8;
/// Warps that an instruction of a product takes together, and rows of its sums.
const GROUP: u32 = 4;
const GROUP_ROWS: u32 = 64;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let given = kernel.options.num_warps;
    if kernel.options.maxnreg.is_some() || kernel.options.given_warps.is_some() {
        return Ok(());
    }
    let Some((_, bits)) = dearest(kernel, cx) else { return Ok(()) };
    let mut warps = given;
    while warps < MOST_WARPS && registers(bits, warps) > MOST_REGISTERS {
        warps *= 2;
    }
    if given == GROUP && warps == given && waits_alone(kernel, cx)? {
        warps = 2 * GROUP;
    }
    if warps > given && !counts_threads(kernel) {
        kernel.options.num_warps = warps;
        kernel.options.given_warps = Some(given);
    }
    Ok(())
}

/// Whether a kernel has one product, of rows enough for two groups, in a loop over tiles, and warps will likely be divided.
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
    trial.options.num_warps = 2 * GROUP;
    accelerate_dot::choose_kinds(&mut trial, cx)?;
    let by_wgmma = matches!(trial.kind(dot), OpKind::Dot { kind: DotKind::Wgmma, .. });
    Ok(by_wgmma && specialize_warps::may_specialize(kernel, cx, &loads_of_dots(kernel, of))?)
}

/// Registers of a thread for so many bits in all.
fn registers(bits: u64, warps: u32) -> u64 {
    bits / 32 / (32 * u64::from(warps))
}

/// The product in whose loop tiles take most bits at a time, and how many.
fn dearest(kernel: &Kernel, cx: &PassContext) -> Option<(Op, u64)> {
    let mut loops: HashMap<Option<Op>, u64> = HashMap::new();
    let mut most: Option<(Op, u64)> = None;
    for dot in rtc_ir::walk(kernel).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Dot { .. })) {
        let around = regions::loop_around(kernel, dot);
        let held = *loops.entry(around).or_insert_with(|| around.map_or(0, |of| held(kernel, cx, of)));
        // What is added to something takes its place.
        let fresh = constant_bits(kernel, kernel.operand(dot, 2)).is_some();
        let bits = held + if fresh { bits_of(kernel.value_type(kernel.result(dot, 0))) } else { 0 };
        if most.is_none_or(|(_, other)| bits > other) {
            most = Some((dot, bits));
        }
    }
    most
}

/// What threads hold throughout a loop: the floats that it carries, sums, and where fragments of operands come from
/// registers, operands from before it.
fn held(kernel: &Kernel, cx: &PassContext, of: Op) -> u64 {
    let dots: Vec<Op> = rtc_ir::walk_block(kernel, *kernel.op(of).blocks.last().unwrap_or(&kernel.body()))
        .into_iter()
        .filter(|op| matches!(kernel.kind(*op), OpKind::Dot { .. }))
        .collect();
    let mut values: Vec<Value> = Vec::new();
    for slot in regions::slots(kernel, of) {
        let in_loop = |value: &&Value| matches!(kernel.value(**value).def, ValueDef::Arg(..));
        values.extend(slot.targets.iter().find(in_loop).filter(|value| {
            let is_float = kernel.value_type(**value).elem().and_then(Elem::num).is_some_and(|elem| elem.is_float());
            is_float || dots.iter().any(|dot| kernel.operand(*dot, 2) == **value)
        }));
    }
    if !cx.target.has(Feature::Wgmma) {
        let operands = dots.iter().flat_map(|dot| [kernel.operand(*dot, 0), kernel.operand(*dot, 1)]);
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

/// Says that more warps compute than the launch says.
pub fn warps_remark(kernel: &Kernel, cx: &PassContext) -> Option<Diagnostic> {
    let given = kernel.options.given_warps?;
    let warps = kernel.options.num_warps;
    let (dot, bits) = dearest(kernel, cx)?;
    let span = kernel.loc(kernel.op(dot).loc).span.unwrap_or_default();
    let message = if registers(bits, given) > MOST_REGISTERS {
        format!(
            "{warps} warps compute, not {given}: of {given} each thread would hold {} registers of sums and operands, of {warps} {}",
            registers(bits, given),
            registers(bits, warps)
        )
    } else {
        format!("{warps} warps compute, not {given}: in this loop over tiles {given} would wait for each product alone")
    };
    Some(Diagnostic::remark(Code::COST, span, message))
}

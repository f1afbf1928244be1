//! Divides the warps of a kernel with a product in a loop: one group copies tiles by TMA, the others multiply and store.
//!
//! ```text
//! {program}             rings, barriers
//!   for_range .. {      warp_specialize {warps = [1, 8], registers = [40, 232]}
//!     load ..       →     for programs of the block: for_range .. { wait for a free slot; copies by TMA }
//!     dot ..              for programs of the block: for_range .. { wait for the slot; mma; free it }; store
//!   }
//!   store ..
//! ```
//!
//! The kernel becomes persistent: as many blocks run as fit, each loops over programs, and the copies for the next program
//! begin while the results of one are stored. That changes when things happen, so it is done only where nothing tells: no
//! atomics whose results count, no messages, no volatile accesses, nothing written that is also copied from. All loads for products of the loop must
//! be of boxes of tensors (`box_analysis.rs`), and the right operands of all products must come from them, as `stage_operands` puts
//! them; a left one can also be computed, into registers or before the loop. `candidate.rs` looks for all that. `partitions.rs` has the
//! new form, and is tried on a copy of the kernel, with fewer slots until shared memory holds all; a kernel for which it does
//! not serve stays as it is, and its loops get rings of `copy_async` (`schedule_loop`). Where one block runs on a
//! multiprocessor, results of 16 bits wait for the next program (`defer_stores.rs`).

use rtc_abi::{Feature, ResultStores};
use rtc_ir::analysis::Ranges;
use rtc_ir::{Kernel, MmaForm, Op, OpKind, Phase, Type, place_bytes};

use super::box_analysis::BoxAnalysis;
use super::candidate::{Candidate, ProducerLoop};
use super::clamped_rows;
use super::defer_stores;
use super::descriptors;
use super::partitions::{self, PartitionConfig};
use super::pipeline_chained_dots;
use super::register_pressure::{pressure, words};
use super::stage_operands::stages;
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "specialize-warps", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Warps that copy.
pub(super) const PRODUCER_WARPS: u32 = 1;
/// Warps that these take of the block, for numbers of registers are changed by four warps together.
const TAKEN_WARPS: u32 = 4;
/// Registers of a thread that copies.
const PRODUCER_REGISTERS: u32 = 40;
/// The same where what computes needs all that can be had.
const FEW_REGISTERS: u32 = 24;
/// What a thread that multiplies needs beside its sums.
const OTHER_REGISTERS: u32 = 56;
/// The same beside all tiles, where other work stands between products.
pub(super) const SCALAR_REGISTERS: u32 = 16;
/// The same where results are held that wait to be stored.
const HELD_REGISTERS: u32 = 24;
/// What the assembler asks for beside the sums of one instruction.
const INSTRUCTION_REGISTERS: u32 = 26;
/// The most registers that a thread can use, as a multiple of 8.
const MOST_REGISTERS: u32 = 240;
/// Registers of a multiprocessor for one lane of all its warps together.
const LANE_REGISTERS: u32 = 2048;
/// With fewer registers at the start, addresses that are computed before the roles begin are spilled.
const LEAST_AT_START: u32 = 64;
/// Blocks on a multiprocessor where other work stands between products.
const MOST_BLOCKS: u32 = 3;
/// More slots have never paid.
const MOST_SLOTS: u32 = 6;
/// Of fewer slots a ring is not worth its barriers.
pub(super) const LEAST_SLOTS: u32 = 2;
/// Shared memory of a multiprocessor that is not a block's: each takes so many bytes for the system.
const SYSTEM_BYTES: u32 = 1024;
/// So many bytes of results go through shared memory at a time, for each warp.
pub(super) const STORED_BYTES: u32 = 4096;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if !is_supported(cx) {
        return Ok(());
    }
    let (staged, found) = match Candidate::of(kernel, cx)? {
        Ok(found) => found,
        Err(_) => return Ok(()),
    };
    let most = if found.has_work_between(&staged) { MOST_BLOCKS } else { 2 };
    let Some(given) = cx.structure.roles() else { return Ok(()) };
    let mut best: Option<(u32, Kernel)> = None;
    for blocks in (1..=most).rev().filter(|blocks| given.blocks.is_none_or(|given| given == *blocks)) {
        // Only less than double as many blocks can be worse than these.
        let beaten = |(worth, _): &(u32, Kernel)| *worth >= OVERLAP * blocks;
        if best.as_ref().is_some_and(beaten) || best.is_some() && !found.may_overlap(&staged) {
            break;
        }
        for stores in ResultStores::ALL.into_iter().filter(|stores| given.stores.is_none_or(|given| given == *stores)) {
            let asked = given.stores.is_some();
            if stores == ResultStores::Deferred && !asked && !defer_stores::is_profitable(&staged, &found) {
                continue;
            }
            let Some(form) = found.form(&staged, blocks, stores) else { continue };
            if let Some(made) = fitting(&staged, cx, &found, form)? {
                let overlaps = found.may_overlap(&staged) && pipeline_chained_dots::is_applicable(&made);
                let worth = if overlaps { OVERLAP * blocks } else { blocks };
                if best.as_ref().is_none_or(|(other, _)| worth > *other) {
                    best = Some((worth, made));
                }
                break;
            }
        }
    }
    if let Some((_, made)) = best {
        *kernel = made;
    }
    Ok(())
}

/// So many blocks without it are as good as one in which the products of two iterations overlap.
const OVERLAP: u32 = 2;

pub(super) fn is_supported(cx: &PassContext) -> bool {
    let features = [Feature::Wgmma, Feature::Tma, Feature::RegisterBudgets];
    cx.structure.roles().is_some() && features.iter().all(|feature| cx.target.has(*feature))
}

/// Whether these loads of products, in a kernel without layouts, are of boxes, so that its warps will likely be divided.
pub(crate) fn may_specialize(kernel: &Kernel, cx: &PassContext, loads: &[Op]) -> Result<bool, PassError> {
    let rows = |op: &Op| match kernel.kind(*op) {
        OpKind::Dot { .. } => kernel.value_type(kernel.result(*op, 0)).shape().map(|shape| shape[shape.rank() - 2]),
        _ => None,
    };
    let tall = rtc_ir::walk(kernel).iter().filter_map(rows).all(|rows| rows >= 64);
    if !is_supported(cx) || !tall || !kernel.options.num_warps.is_multiple_of(4) {
        return Ok(false);
    }
    let mut trial = kernel.clone();
    clamped_rows::as_remainders(&mut trial)?;
    let ranges = Ranges::new(&trial);
    let mut known = BoxAnalysis::new(&trial, &ranges);
    Ok(loads.iter().all(|load| known.load(*load).is_ok()))
}

impl Candidate {
    /// Whether a loop has two products, of which one may begin together with the other one of the iteration before.
    fn may_overlap(&self, kernel: &Kernel) -> bool {
        self.loops.iter().any(|of| of.mmas(kernel).len() == 2)
    }

    /// The registers that tiles take in the loops.
    fn pressure(&self, kernel: &Kernel) -> u32 {
        let of_loop = |of: &ProducerLoop| {
            let mmas = of.mmas(kernel);
            // Operands stay in registers while their products are under way beside others.
            let operands = mmas.iter().map(|mma| words(kernel, kernel.operand(*mma, 0))).max().unwrap_or(0);
            pressure(kernel, of.of) + if mmas.len() > 2 { operands } else { 0 }
        };
        self.loops.iter().map(of_loop).max().unwrap_or(0)
    }

    /// How it is to be divided if `blocks` are to run on a multiprocessor at a time.
    fn form(&self, kernel: &Kernel, blocks: u32, stores: ResultStores) -> Option<PartitionConfig> {
        let warps = kernel.options.num_warps;
        let all = warps + TAKEN_WARPS;
        let producer = if self.has_work_between(kernel) { FEW_REGISTERS } else { PRODUCER_REGISTERS };
        let start = (LANE_REGISTERS / (all * blocks)).min(248) / 8 * 8;
        let own = (start * all).checked_sub(producer * TAKEN_WARPS)? / warps / 8 * 8;
        let mmas: Vec<Vec<Op>> = self.loops.iter().map(|of| of.mmas(kernel)).collect();
        // The assembler takes the registers at the start for the limit of every instruction.
        let at_once = mmas.iter().flatten().filter_map(|op| instruction_registers(kernel, *op)).max().unwrap_or(0);
        (start >= LEAST_AT_START.max(at_once + INSTRUCTION_REGISTERS)).then_some(())?;
        let registers = |op: &Op| kernel.layout_of(kernel.result(*op, 0)).map_or(0, |layout| layout.registers());
        let accs = mmas.iter().map(|of| of.iter().map(registers).sum::<u32>()).max().unwrap_or(0);
        let own = own.min(MOST_REGISTERS);
        let suffices = if self.has_work_between(kernel) {
            own >= self.pressure(kernel) + SCALAR_REGISTERS
        } else {
            own >= accs + OTHER_REGISTERS
        };
        (suffices || blocks == 1 && accs <= 192 && own >= accs).then_some(())?;
        let deferred = stores == ResultStores::Deferred;
        if deferred {
            // Two blocks on a multiprocessor hide the stores of each other, and then waiting costs more than it gives. The
            // results of a program wait in half as many registers as the sums of the next one.
            let fits = blocks == 1 && own >= accs + accs / 2 + HELD_REGISTERS;
            (fits && defer_stores::can_wait(kernel, self)).then_some(())?;
        }
        let stored = if stores == ResultStores::Direct { None } else { Some(STORED_BYTES * warps) };
        stored.is_none_or(|_| !self.stores.is_empty()).then_some(())?;
        let wished = self.loops.iter().map(|of| stages(kernel, of.of)).max().unwrap_or(0).max(MOST_SLOTS);
        Some(PartitionConfig { registers: [producer, own], at_start: start, blocks, slots: wished, stored, deferred })
    }
}

/// The sums of a thread that one instruction of a product takes, in registers.
fn instruction_registers(kernel: &Kernel, mma: Op) -> Option<u32> {
    let form = MmaForm::of(kernel, mma).ok()?;
    let bits = kernel.value_type(kernel.result(mma, 0)).elem()?.bits();
    Some(form.n * bits / 64)
}

/// The kernel in that form with as many slots as fit; `None` if it has no such form.
fn fitting(
    kernel: &Kernel,
    cx: &PassContext,
    found: &Candidate,
    mut form: PartitionConfig,
) -> Result<Option<Kernel>, PassError> {
    let most = match form.blocks {
        1 => cx.target.shared_bytes_max,
        blocks => (cx.target.shared_bytes_max + SYSTEM_BYTES) / blocks - SYSTEM_BYTES,
    };
    let rings = found.rings.iter().chain(&found.row_rings);
    let slot: u64 = rings.map(|ring| place_bytes(Type::Shared(*ring))).sum();
    form.slots = form.slots.min((u64::from(most) / slot.max(1)) as u32);
    let least = if form.blocks > 1 && found.loops[0].groups.iter().all(|group| *group == 0) {
        LEAST_SLOTS + 1
    } else {
        LEAST_SLOTS
    };
    while form.slots >= least {
        let mut made = kernel.clone();
        partitions::partition_warps(&mut made, found, &form)?;
        crate::tile::dce::run(&mut made, cx)?;
        if !partitions::is_plain(&made, found) || !clamped_rows::are_gone(&made, &found.clamps) {
            return Ok(None);
        }
        descriptors::drop_addresses(&mut made);
        // A product that overlaps the next iteration keeps its operands in use for longer.
        let mut overlapped = made.clone();
        if found.may_overlap(kernel) {
            (pipeline_chained_dots::PASS.run)(&mut overlapped, cx)?;
        }
        match shared_bytes(&overlapped, cx)? {
            Some(bytes) if bytes <= most => return Ok(Some(made)),
            _ => form.slots -= 1,
        }
    }
    Ok(None)
}

/// The shared memory that a kernel takes; `None` if it is too much.
pub(super) fn shared_bytes(kernel: &Kernel, cx: &PassContext) -> Result<Option<u32>, PassError> {
    let mut trial = kernel.clone();
    for pass in [split_conversions::PASS, place_scratch::PASS, allocate_shared::PASS] {
        match (pass.run)(&mut trial, cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(trial.shared_bytes))
}

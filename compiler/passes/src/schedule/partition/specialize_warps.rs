//! Warp specialization of a kernel with a dot in a loop: a producer warp copies tiles by TMA, consumer warps compute
//! and store.
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
//! The kernel becomes persistent: as many blocks run as fit, each loops over programs, and the copies for the next
//! program start while the results of one are stored. This reorders side effects, so it is done only if the reordering
//! is unobservable: no atomics whose results are used, no prints, no volatile accesses, no stores to memory that is
//! also copied from. All loads for dots of the loop must be boxes of tensors (`box_analysis.rs`), or rows that threads
//! of the producer can copy (`gathered_tiles.rs`). Operand B of every dot must be such a load, as staged by
//! `stage_operands`, or be loaded before the loop; operand A can also be computed, in registers (of such loads, or of
//! another dot), before the loop, or in it and stored to shared memory by the warps that compute it. `candidate.rs`
//! checks all that. `partitions.rs` rewrites a clone of the kernel, with fewer slots until shared memory suffices; if
//! it is not applicable, the kernel is unchanged, and its loops get rings of `copy_async` (`schedule_loop`).
//! With one block per SM, stores of results of 16 bits are deferred to the next program (`defer_stores.rs`).

use rtc_abi::{ResultStores, SmLimits};
use rtc_ir::{BESIDE_SUMS, Kernel, MmaForm, Op, Phase, Type, Value, place_bytes};

use super::candidate::Candidate;
use super::config::{self, PartitionConfig, PartitionSpec, Role};
use super::defer_stores;
use super::partitions;
use super::producer_loop::ProducerLoop;
use crate::access::clamped_rows;
use crate::schedule::overlap::{overlap_promotion, pipeline_chained_dots};
use crate::schedule::pipeline::stages::stages;
use crate::schedule::resources::{SPARE_REGISTERS, STORED_BYTES, fits_shared};
use crate::schedule::tma::argument_maps;
use crate::schedule::tma::tensor_maps::stored_tile;
use crate::work::words::words_of_tile;
use crate::work::{Scope, estimate};
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "specialize-warps", needs: Phase::Laid, leaves: Phase::Laid, run };

/// The most registers that a thread can use, as a multiple of 8.
const MOST_REGISTERS: u32 = 240;
/// The most registers of a thread at the start.
const MOST_AT_START: u32 = 248;
/// With fewer registers at the start, addresses that are computed before the partitions begin are spilled.
const LEAST_AT_START: u32 = 64;
/// Blocks per SM with other work between dots.
const MOST_BLOCKS: u32 = 3;
/// Deeper pipelines gave no gain.
const MOST_SLOTS: u32 = 6;
/// With fewer slots the barriers of a ring cost more than they hide.
pub(crate) const LEAST_SLOTS: u32 = 2;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    // Parameters of descriptors are exchanged for maps, and hidden ones come last.
    let has_hidden = kernel.params.iter().any(|param| param.hidden.is_some());
    if !cx.specializes_warps() || is_specialized(kernel) || has_hidden {
        return Ok(());
    }
    let (staged, found) = match Candidate::of(kernel, cx)? {
        Ok(found) => found,
        Err(_) => return Ok(()),
    };
    let most = if found.has_work_between(&staged) { MOST_BLOCKS } else { 2 };
    let Some(given) = cx.structure.warp_specialization() else { return Ok(()) };
    let mut best: Option<(u32, Kernel)> = None;
    for blocks in (1..=most).rev().filter(|blocks| given.blocks.is_none_or(|given| given == *blocks)) {
        // Only less than double as many blocks can be worse than these.
        let beaten = |(worth, _): &(u32, Kernel)| *worth >= OVERLAP * blocks;
        if best.as_ref().is_some_and(beaten) || best.is_some() && !found.may_overlap(&staged) {
            break;
        }
        // A warp group alone on an SM leaves the tensor cores idle during its own work between dots.
        let is_alone =
            staged.options.num_warps * blocks < 2 * matrix_unit::GROUP_WARPS && found.has_work_between(&staged);
        if is_alone && given.blocks.is_none() {
            continue;
        }
        for stores in ResultStores::ALL.into_iter().filter(|stores| given.stores.is_none_or(|given| given == *stores)) {
            let asked = given.stores.is_some();
            if stores == ResultStores::Deferred && !asked && !defer_stores::is_profitable(&staged, &found) {
                continue;
            }
            let Some(form) = found.form(&staged, blocks, stores) else { continue };
            if let Some(made) = fitting(&staged, cx, &found, form)? {
                let overlaps = found.may_overlap(&staged) && pipeline_chained_dots::is_applicable(&made, cx);
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

/// Whether the warps of a kernel are divided already: it was printed and read back.
pub(crate) fn is_specialized(kernel: &Kernel) -> bool {
    kernel.persistent.is_some() || kernel.specialization().is_some()
}

/// The weight of overlapped dots against occupancy: so many blocks without overlap are as good as one with it.
const OVERLAP: u32 = 2;

impl Candidate {
    /// The registers of a consumer in the loops, beside results that wait to be stored.
    fn registers(&self, kernel: &Kernel, waiting: &[Value]) -> u32 {
        let of_loop = |of: &ProducerLoop| {
            let mut held = waiting.to_vec();
            // Operands stay in registers while their dots are in flight together with others.
            if of.dependences(kernel).begin_early() {
                let operands = of.mmas(kernel).into_iter().map(|mma| kernel.operand(mma, 0));
                held.extend(operands.max_by_key(|operand| words_of_tile(kernel, *operand)));
            }
            estimate(kernel, Scope::Consumer(of.of, &held))
        };
        self.loops.iter().map(of_loop).max().unwrap_or(0)
    }

    /// How it is to be divided if `blocks` are to run on an SM at a time.
    fn form(&self, kernel: &Kernel, blocks: u32, stores: ResultStores) -> Option<PartitionConfig> {
        let warps = kernel.options.num_warps;
        let pieces = |of: &ProducerLoop| of.transfers.iter().map(|transfer| transfer.pieces(kernel)).sum();
        let pieces: u32 = self.loops.iter().map(pieces).max().unwrap_or(0);
        let mut partitions = config::beside_consumer(self.has_work_between(kernel), pieces);
        let all = warps + partitions.iter().map(|partition| partition.taken).sum::<u32>();
        let start = SmLimits::registers_for(blocks, all * 32).min(MOST_AT_START);
        let others: u32 = partitions.iter().map(|partition| partition.registers * partition.taken).sum();
        let own = (start * all).checked_sub(others)? / warps / 8 * 8;
        let mmas: Vec<Vec<Op>> = self.loops.iter().map(|of| of.mmas(kernel)).collect();
        // The assembler takes the registers at the start for the limit of every instruction.
        let at_once = mmas.iter().flatten().filter_map(|op| instruction_registers(kernel, *op)).max().unwrap_or(0);
        (start >= LEAST_AT_START.max(at_once + BESIDE_SUMS)).then_some(())?;
        let accs = mmas.iter().map(|of| acc_registers(kernel, of)).max().unwrap_or(0);
        let own = own.min(MOST_REGISTERS);
        let suffices =
            self.registers(kernel, &[]) <= own + SPARE_REGISTERS || blocks == 1 && accs <= 192 && own >= accs;
        suffices.then_some(())?;
        let deferred = stores == ResultStores::Deferred;
        if deferred {
            // Two blocks on an SM hide the stores of each other, and then waiting costs more than it gives.
            let waiting: Vec<Value> = self.stores.iter().map(|(store, _)| stored_tile(kernel, *store)).collect();
            let fits = blocks == 1 && self.registers(kernel, &waiting) <= own;
            // Promotions under the next dot need the registers, and hide more.
            let promotes = self.loops.iter().any(|of| overlap_promotion::fits(kernel, of.of, own));
            (fits && !promotes && defer_stores::can_wait(kernel, self)).then_some(())?;
        }
        let stored = if stores == ResultStores::Direct { None } else { Some(STORED_BYTES * warps) };
        stored.is_none_or(|_| !self.stores.is_empty()).then_some(())?;
        let wished = self.loops.iter().map(|of| stages(kernel, of.of)).max().unwrap_or(0).max(MOST_SLOTS);
        partitions.push(PartitionSpec { role: Role::Consumer, warps, taken: warps, registers: own });
        Some(PartitionConfig { partitions, at_start: start, blocks, slots: wished, stored, in_pieces: false, deferred })
    }
}

/// The registers of a thread for the accumulators of a loop's dots: all that iterations add to, and the most of one of the others.
/// Those that a dot adds to are not counted again.
fn acc_registers(kernel: &Kernel, mmas: &[Op]) -> u32 {
    let adds_on = |op: &Op| mmas.iter().any(|next| kernel.operand(*next, 2) == kernel.result(*op, 0));
    let begins = |op: &Op| {
        kernel.def_op(kernel.operand(*op, 2)).is_some_and(|made| kernel.op(made).parent != kernel.op(*op).parent)
    };
    let registers = |op: &Op| words_of_tile(kernel, kernel.result(*op, 0));
    let (new, carried): (Vec<Op>, Vec<Op>) = mmas.iter().filter(|op| !adds_on(op)).partition(|op| begins(op));
    carried.iter().map(registers).sum::<u32>() + new.iter().map(registers).max().unwrap_or(0)
}

/// The accumulators of a thread that one instruction of a dot takes, in registers.
fn instruction_registers(kernel: &Kernel, mma: Op) -> Option<u32> {
    let form = MmaForm::of(kernel, mma).ok()?;
    let bits = kernel.value_type(kernel.result(mma, 0)).elem()?.bits();
    Some(form.n * bits / 64)
}

/// The kernel in that form with as many slots as fit; `None` if it has no such form. Results that are stored directly are
/// stored in pieces if that makes space for more slots.
fn fitting(
    kernel: &Kernel,
    cx: &PassContext,
    found: &Candidate,
    form: PartitionConfig,
) -> Result<Option<Kernel>, PassError> {
    let wished = form.slots;
    let is_direct = form.stored.is_none();
    let in_pieces = PartitionConfig { in_pieces: true, ..form.clone() };
    let slots = |made: &Option<(Kernel, u32)>| made.as_ref().map_or(0, |(_, slots)| *slots);
    let mut best = fitting_so(kernel, cx, found, form)?;
    if is_direct && slots(&best) < wished {
        let other = fitting_so(kernel, cx, found, in_pieces)?;
        best = if slots(&other) > slots(&best) { other } else { best };
    }
    Ok(best.map(|(made, _)| made))
}

/// The kernel in exactly that form, and how many slots fit.
fn fitting_so(
    kernel: &Kernel,
    cx: &PassContext,
    found: &Candidate,
    mut form: PartitionConfig,
) -> Result<Option<(Kernel, u32)>, PassError> {
    let most = cx.target.sm.shared_for(form.blocks);
    let slot: u64 = found.rings.iter().map(|ring| place_bytes(Type::Shared(ring.ty))).sum();
    form.slots = cx.plan.ring.unwrap_or(form.slots).min((u64::from(most) / slot.max(1)) as u32);
    let least = if cx.plan.ring.is_some() {
        1
    } else if form.blocks > 1 && found.groups == 1 {
        LEAST_SLOTS + 1
    } else {
        LEAST_SLOTS
    };
    while form.slots >= least {
        let mut made = kernel.clone();
        partitions::partition_warps(&mut made, found, &form)?;
        crate::tile::dce::run(&mut made, cx)?;
        clamped_rows::restore(&mut made, &found.clamps)?;
        if !partitions::is_plain(&made, found, &form) {
            return Ok(None);
        }
        argument_maps::drop_addresses(&mut made);
        let fits = if found.may_overlap(kernel) {
            // A dot that overlaps the next iteration keeps its operands in use for longer.
            let mut overlapped = made.clone();
            (pipeline_chained_dots::PASS.run)(&mut overlapped, cx)?;
            fits_shared(&overlapped, cx, most)?
        } else {
            fits_shared(&made, cx, most)?
        };
        if fits {
            return Ok(Some((made, form.slots)));
        }
        form.slots -= 1;
    }
    Ok(None)
}

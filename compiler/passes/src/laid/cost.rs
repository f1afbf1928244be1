//! The cost of moving and computing tiles, by which layouts are chosen.
//!
//! The unit is a quarter of a cycle of an SM, in which it can issue one instruction of one warp. All costs are per
//! warp; each surrounding loop multiplies them by [`LOOP`].
//!
//! - An instruction that only computes: 1.
//! - A conversion by shuffles: its shuffles and selects. Through shared memory: the wavefronts of all its stores and
//!   loads (4 each, as shared memory handles one per cycle), the issue of each access (3), as counted by
//!   `rtc_layout::SharedAccess::cost`, and [`BARRIERS`]. A renaming of registers: nothing.
//! - An access to global memory: for each instruction its issue and its address arithmetic, plus the larger of two
//!   times: that of L1, one cycle for each line of 128 bytes that the warp touches, and that of the path to L2,
//!   [`BYTES_PER_CYCLE`]. On that path a store sends each piece of a sector that it writes as a whole sector of 32
//!   bytes; for a load only sectors count that this instruction is the first to touch.
//!
//! The numbers need only be right within a factor of two: they decide between alternatives that differ by more.

use std::collections::HashMap;

use rtc_abi::{Feature, Target};
use rtc_ir::{Kernel, Op, OpKind, Value, view};
use rtc_layout::{Conversion, InputBit, Layout, MatrixInstructions, conversion, shared_plan};

use super::dot_users::makes_operand;
use super::weight::weight;
use crate::access::addresses::is_part_of_address;
use crate::access::vector_width::{pointee_bytes, vector_width};
use rtc_ir::analysis::{AxisInfos, Step, Steps};

/// The two barriers of a conversion through shared memory, and the wait for what it loads.
const BARRIERS: u64 = 64;

/// The issue of an access and the arithmetic of its address.
const ACCESS: u64 = 7;

/// A shuffle, and the operation on its result.
const SHUFFLE: u64 = 4;

/// A cycle.
const CYCLE: u64 = 4;

/// Registers up to which a load may take another layout than suits it.
const MOST_RELAID: u32 = 16;

/// A line of the first-level cache.
const LINE_BYTES: u64 = 128;

/// The most bytes that one access of a thread takes.
const WIDEST: u64 = 16;
/// The unit of transfer between caches.
const SECTOR_BYTES: u64 = 32;

/// The way between an SM and the second level, when all of them use it.
const BYTES_PER_CYCLE: u64 = 24;

/// Costs of a kernel's operations on a target.
pub struct Costs {
    matrix: MatrixInstructions,
    known: HashMap<(Layout, Layout, u32), u64>,
}

impl Costs {
    /// For a target with these matrix instructions.
    pub fn new(matrix: MatrixInstructions) -> Costs {
        Costs { matrix, known: HashMap::new() }
    }

    /// A conversion of a tile of elements of `bytes` bytes.
    pub fn conversion(&mut self, from: &Layout, to: &Layout, bytes: u32) -> u64 {
        let key = (from.clone(), to.clone(), bytes);
        if let Some(cost) = self.known.get(&key) {
            return *cost;
        }
        let cost = match conversion(from, to) {
            Conversion::Identity | Conversion::Registers(_) => 0,
            Conversion::Shuffles(plan) => u64::from(plan.instructions(from.registers()) * bytes.div_ceil(4)),
            Conversion::Shared => {
                let plan = shared_plan(from, to, bytes * 8, self.matrix);
                u64::from(plan.store.cost(true) + plan.load.cost(false)) + BARRIERS
            }
        };
        self.known.insert(key, cost);
        cost
    }

    /// The conversion of a value from the layout that it has.
    pub fn conversion_of(&mut self, kernel: &Kernel, value: Value, to: &Layout) -> u64 {
        let (Some(from), Some(elem)) = (kernel.layout_of(value), kernel.value_type(value).elem()) else { return 0 };
        self.conversion(from, to, elem.bytes())
    }
}

/// The matrix instructions that conversions through shared memory may use on a target.
pub fn matrix_instructions(target: &Target) -> MatrixInstructions {
    MatrixInstructions { load: true, store: target.has(Feature::Stmatrix) }
}

/// Whether a load may produce its tile in a layout that its user requires. Only small tiles: the addresses of others
/// take registers, and accumulators are loaded when there are few. In loops only next to dots: elsewhere the barriers
/// of a conversion keep the warps of a block together, so that they read neighbouring rows (without them a loop over
/// such rows took a quarter longer). That is no reason for indices: the accesses through them would wait for the barriers;
/// nor for tiles with an element for each thread or less, of which all warps read all.
///
/// A tile that an operand of a dot is computed from by casts, scales or shifts is not loaded in smaller pieces than
/// copies to shared memory have: it is read from there in the operand's layout.
pub fn may_be_relaid(kernel: &Kernel, infos: &AxisInfos, load: Op, layout: &Layout) -> bool {
    let is_dot = |op: Op| matches!(kernel.kind(op), OpKind::Dot { .. });
    let beside_dot = || kernel.op(load).parent.is_some_and(|block| kernel.ops(block).any(is_dot));
    matches!(kernel.kind(load), OpKind::Load { volatile: false, .. })
        && (weight(kernel, load) == 1
            || beside_dot()
            || is_part_of_address(kernel, kernel.result(load, 0))
            || is_small(kernel, infos, load, layout))
        && layout.registers() <= MOST_RELAID
        && !loses_copies(kernel, infos, load, layout)
}

/// Whether a load has at most an element for each thread, and takes one access in a layout. With four, a vector times a matrix
/// took a quarter longer than with barriers (H200), with one, a matrix times a vector a third less.
fn is_small(kernel: &Kernel, infos: &AxisInfos, load: Op, layout: &Layout) -> bool {
    let shape = kernel.value_type(kernel.result(load, 0)).shape();
    shape.is_some_and(|shape| shape.numel() <= u64::from(kernel.group_of(load).threads()))
        && u64::from(layout.registers()) <= width(kernel, infos, load, layout)
}

/// The least that a copy into shared memory takes.
const LEAST_COPIED: u64 = 4;

/// Whether a load in a loop, from which an operand of a dot is computed, can be done by copies, and only by narrower
/// ones or none in another layout.
fn loses_copies(kernel: &Kernel, infos: &AxisInfos, load: Op, layout: &Layout) -> bool {
    let access = view::Load::at(kernel, load);
    let (pointer, mask) = (access.pointer(), access.mask());
    let Some(shape) = kernel.value_type(pointer).shape() else { return false };
    if weight(kernel, load) == 1 || shape.rank() != 2 || shape.contains(&1) {
        return false;
    }
    let threads = 32 * u64::from(kernel.group_of(load).warps);
    let along = (0..2).map(|axis| vector_width(kernel, infos, pointer, mask, axis)).max().unwrap_or(1);
    let best = along.min((shape.numel() / threads).max(1));
    best * pointee_bytes(kernel, pointer) >= LEAST_COPIED
        && width(kernel, infos, load, layout) < best
        && makes_operand(kernel, kernel.result(load, 0))
}

/// How much more expensive a load or store is in one layout than in its preferred layout. The difference counts one and
/// a half times, since a load in more pieces also has a longer latency.
pub fn extra_cost(kernel: &Kernel, infos: &AxisInfos, op: Op, own: &Layout, other: &Layout) -> u64 {
    let steps = Steps::new(kernel, infos);
    let [own, other] = [own, other].map(|layout| access(kernel, infos, &steps, op, layout));
    other.saturating_sub(own) * 3 / 2
}

/// Whether threads would store less than [`WIDEST`] bytes at once where they store so many in the layout that suits them.
/// Programs count on wide stores: tests of Triton look for them in the PTX.
pub fn loses_wide_stores(kernel: &Kernel, infos: &AxisInfos, op: Op, own: &Layout, other: &Layout) -> bool {
    let Some(bytes) = kernel.pointer(op).map(|pointer| pointee_bytes(kernel, pointer)) else { return false };
    let [own, other] = [own, other].map(|layout| width(kernel, infos, op, layout) * bytes);
    own >= WIDEST && other < WIDEST
}

/// How many elements a thread accesses at once with its tiles in this layout.
fn width(kernel: &Kernel, infos: &AxisInfos, op: Op, layout: &Layout) -> u64 {
    let Some(pointer) = kernel.pointer(op) else { return 1 };
    let mask = kernel.mask(op);
    let along = |axis: usize| vector_width(kernel, infos, pointer, mask, axis).min(u64::from(layout.contiguity(axis)));
    (0..layout.rank()).map(along).max().unwrap_or(1)
}

/// A load or store, had its tiles this layout.
pub fn access(kernel: &Kernel, infos: &AxisInfos, steps: &Steps<'_>, op: Op, layout: &Layout) -> u64 {
    let Some(pointer) = kernel.pointer(op) else { return 0 };
    let once = width(kernel, infos, op, layout);
    let axes: Vec<Vec<Step>> = (0..layout.rank()).map(|axis| steps.along(pointer, axis)).collect();
    let is_store = matches!(kernel.kind(op), OpKind::Store { .. });
    access_by(layout, &axes, once, pointee_bytes(kernel, pointer), is_store)
}

/// The cost of accesses of `width` elements at once where the addresses change by these steps, for each bit along each axis.
fn access_by(layout: &Layout, axes: &[Vec<Step>], width: u64, bytes: u64, is_store: bool) -> u64 {
    let once = width * bytes;
    let accesses = u64::from(layout.registers()).div_ceil(width);
    let lanes: Vec<Step> = layout.bases().lane.iter().filter_map(|basis| lane_step(axes, |axis| basis[axis])).collect();
    let cost = |stride_is_one: bool| {
        let touched = WarpFootprint::of(&lanes, once, stride_is_one);
        let sectors = touched.sectors * SECTOR_BYTES;
        let sent = if is_store { sectors } else { ((1 << lanes.len()) * once).min(sectors) };
        accesses * (ACCESS + (CYCLE * touched.lines).max(CYCLE * sent / BYTES_PER_CYCLE))
    };
    // It is not known whether the stride is 1, so half of both counts, unless elements are contiguous along another
    // axis.
    let together = |steps: &Vec<Step>| steps.first() == Some(&Step::By(bytes as i64));
    let may_be_one = lanes.iter().any(|step| matches!(step, Step::Times(_))) && !axes.iter().any(together);
    if may_be_one { (cost(true) + cost(false)) / 2 } else { cost(false) }
}

/// The step of the address for one bit of the lane; `None` if lanes that differ in it have the same element.
fn lane_step(axes: &[Vec<Step>], basis: impl Fn(usize) -> u32) -> Option<Step> {
    let bits = axes.iter().enumerate().flat_map(|(axis, steps)| {
        let moved = basis(axis);
        steps.iter().enumerate().filter(move |(bit, _)| moved >> bit & 1 == 1).map(|(_, step)| *step)
    });
    bits.reduce(Step::plus)
}

/// The lines and sectors that the lanes of a warp touch in one access.
struct WarpFootprint {
    lines: u64,
    sectors: u64,
}

impl WarpFootprint {
    /// Where each bit of the lane adds so much, and each lane takes `once` bytes.
    fn of(lanes: &[Step], once: u64, stride_is_one: bool) -> WarpFootprint {
        // The bits with large steps determine the distance.
        let mut places: Vec<(u32, i64)> = vec![(0, 0)];
        for (bit, step) in lanes.iter().enumerate() {
            let (far, by) = match *step {
                Step::By(by) => (0, by),
                Step::Times(by) if stride_is_one => (0, by),
                Step::Times(_) | Step::Far => (1 << bit, 0),
            };
            let moved: Vec<(u32, i64)> = places.iter().map(|(apart, at)| (apart | far, at.wrapping_add(by))).collect();
            places.extend(moved);
        }
        let count = |size: u64| {
            let (size, once) = (size as i64, once.max(1) as i64);
            let pieces = |(apart, at): &(u32, i64)| {
                let (first, last) = (at.div_euclid(size), at.wrapping_add(once - 1).div_euclid(size));
                let apart = *apart;
                (first..=last).map(move |piece| (apart, piece))
            };
            let mut all: Vec<(u32, i64)> = places.iter().flat_map(pieces).collect();
            all.sort_unstable();
            all.dedup();
            all.len() as u64
        };
        WarpFootprint { lines: count(LINE_BYTES), sectors: count(SECTOR_BYTES) }
    }
}

/// What a reduction along an axis takes between threads: shuffles for each result that is not complete in a thread, and
/// for those not complete in a warp a round through shared memory.
pub fn reduction(layout: &Layout, axis: usize) -> u64 {
    let Some(bits) = layout.axis_bits(axis) else { return 0 };
    let count = |is: fn(&InputBit) -> bool| bits.iter().filter(|bit| is(bit)).count() as u32;
    let results = u64::from(layout.registers()) >> count(|bit| matches!(bit, InputBit::Register(_)));
    let shuffles = results * u64::from(count(|bit| matches!(bit, InputBit::Lane(_)))) * SHUFFLE;
    let crosses = count(|bit| matches!(bit, InputBit::Warp(_))) > 0;
    shuffles + if crosses { BARRIERS + 2 * results * (CYCLE + ACCESS) } else { 0 }
}

/// An operation that computes its result in this layout. Indices are sums of a part that depends on the thread and a
/// constant for each register, which ends up in the instructions that use them.
pub fn compute(kind: &OpKind, layout: &Layout) -> u64 {
    let each = match kind {
        OpKind::Constant { .. }
        | OpKind::Arange { .. }
        | OpKind::Splat {}
        | OpKind::ExpandDims { .. }
        | OpKind::Broadcast {} => 0,
        OpKind::Reshape { .. } | OpKind::Trans { .. } | OpKind::Join {} | OpKind::ConvertLayout {} => 0,
        OpKind::DivF {} | OpKind::DivFRn {} | OpKind::SqrtRn {} => 8,
        _ => 1,
    };
    each * u64::from(layout.registers())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        Costs::new(MatrixInstructions { load: true, store: true })
    }

    /// Rows that follow each other, far apart.
    fn by_rows(bytes: i64) -> [Vec<Step>; 2] {
        [vec![Step::Far; 10], (0..10).map(|bit| Step::By(bytes << bit)).collect()]
    }

    #[test]
    fn a_conversion_costs_what_it_moves() {
        let rows = Layout::default_blocked(&[64, 64], 4, &[1, 0], 4);
        let columns = Layout::default_blocked(&[64, 64], 4, &[0, 1], 4);
        let mut costs = costs();
        assert_eq!(costs.conversion(&rows, &rows, 4), 0);
        let (half, full) = (costs.conversion(&rows, &columns, 2), costs.conversion(&rows, &columns, 4));
        assert!(BARRIERS < half && half < full, "{half} {full}");
        // 32 floats of each thread are 32 wavefronts of a warp on each side at the least.
        assert!(full >= 2 * 32 * CYCLE + BARRIERS);
    }

    #[test]
    fn accumulators_of_four_bytes_are_stored_as_they_are_and_those_of_two_are_not() {
        let accumulator = Layout::mma_v2(&[128, 128], &[2, 2]);
        let rows = Layout::default_blocked(&[128, 128], 4, &[1, 0], 4);
        let direct = access_by(&accumulator, &by_rows(4), 2, 4, true);
        let moved = access_by(&rows, &by_rows(4), 4, 4, true) + costs().conversion(&accumulator, &rows, 4);
        assert!(direct < moved, "rows of 32 bytes are whole sectors: {direct} {moved}");
        let rows = Layout::default_blocked(&[128, 128], 4, &[1, 0], 8);
        let direct = access_by(&accumulator, &by_rows(2), 2, 2, true);
        let moved = access_by(&rows, &by_rows(2), 8, 2, true) + costs().conversion(&accumulator, &rows, 2);
        assert!(direct > moved, "rows of 16 bytes are half sectors: {direct} {moved}");
    }

    #[test]
    fn neighbouring_lanes_share_lines_and_sectors() {
        let layout = Layout::default_blocked(&[1, 128], 4, &[1, 0], 1);
        // 32 lanes of 4 bytes: a line, four sectors, 128 bytes.
        assert_eq!(access_by(&layout, &by_rows(4), 1, 4, false), ACCESS + CYCLE * 128 / BYTES_PER_CYCLE);
        // Elements far apart: a line and a sector for each lane.
        let far = [vec![], vec![Step::Far; 7]];
        assert_eq!(access_by(&layout, &far, 1, 4, false), ACCESS + CYCLE * 32);
        assert_eq!(access_by(&layout, &far, 1, 4, true), ACCESS + CYCLE * 32 * 32 / BYTES_PER_CYCLE);
        // A stride that may be 1 counts as half of both.
        let unknown = [vec![], (0..7).map(|bit| Step::Times(4 << bit)).collect()];
        let both = access_by(&layout, &by_rows(4), 1, 4, false) + access_by(&layout, &far, 1, 4, false);
        assert_eq!(access_by(&layout, &unknown, 1, 4, false), both / 2);
    }

    #[test]
    fn runs_within_strides_are_counted_piece_by_piece() {
        // `i // 8 * 4096 + i % 8` of two bytes: 8 lanes share a sector.
        let layout = Layout::default_blocked(&[1, 32], 1, &[1, 0], 1);
        let pieces = [vec![], [2, 4, 8, 8192, 16384].map(Step::By).to_vec()];
        assert_eq!(access_by(&layout, &pieces, 1, 2, true), ACCESS + CYCLE * 4 * 32 / BYTES_PER_CYCLE);
    }
}

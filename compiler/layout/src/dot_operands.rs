//! Operands of a dot on their way through shared memory, for dots by FMAs and by `mma.sync` on
//! `f64`.
//!
//! Each operand is cut along the axis that is summed over into *slices* of a few steps. A slice lies in one piece, and
//! the next follows at a fixed distance, so that a loop over slices adds a constant to its addresses. Within a slice the
//! offset bits are, from the lowest: the registers that one wide load fills, the lanes, which then touch neighbouring
//! banks, and the rest. A little room between slices spreads the stores over the banks, where the lanes that store run
//! along the axis that is summed over.
//!
//! Slices of one step suit an operand that arrives contiguous along its other axis, deeper ones an operand that arrives
//! contiguous along the axis summed over: then stores are wide too. The cheapest by counted wavefronts is taken.

use crate::access::SharedAccess;
use crate::coord::{Coord, Shape};
use crate::gf2;
use crate::linear::Layout;
use crate::shared::SharedLayout;

/// The most bytes of room between two slices.
pub const MOST_ROOM: u32 = 64;

/// The multiplying unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// Each thread, by FMAs.
    Threads,
    /// `mma.sync` m8n8k4 or m16n8k4 on `f64`; the accumulators have the layout [`Layout::mma_f64`] or [`Layout::mma_v2`].
    MmaF64,
}

impl Multiplier {
    /// Steps of the accumulator that are taken at once.
    pub fn steps(self) -> u32 {
        match self {
            Multiplier::Threads => 1,
            Multiplier::MmaF64 => 4,
        }
    }

    /// A thread's part of operand 0 or 1 of a dot, `depth` long along the axis summed over.
    pub fn fragment(self, accumulator: &Layout, operand: u32, depth: u32) -> Layout {
        match self {
            Multiplier::Threads => Layout::fma_operand(accumulator, operand, depth),
            Multiplier::MmaF64 => Layout::mma_f64_operand(accumulator, operand, depth),
        }
    }
}

/// How an operand gets to shared memory and, slice by slice, into the registers of the threads that multiply it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandPlan {
    /// Steps of the accumulator in a slice.
    pub depth: u32,
    /// Slices.
    pub slices: u32,
    /// Elements of a slice.
    pub elements: u32,
    /// Bytes from one slice to the next.
    pub stride: u32,
    /// A thread's part of a slice: a tile like the operand, `depth` long along the axis summed over.
    pub fragment: Layout,
    /// How the whole operand is stored, at offsets that leave out the room between slices: those of element `i` of
    /// slice `s` is `s * elements + i`.
    pub store: SharedAccess,
    /// How a fragment is loaded from its slice.
    pub load: SharedAccess,
}

impl OperandPlan {
    /// The shared memory needed, in bytes.
    pub fn bytes(&self) -> u32 {
        self.slices * self.stride
    }

    /// The place of an offset of the store, in bytes.
    pub fn place(&self, offset: u32) -> u32 {
        offset / self.elements * self.stride + offset % self.elements * self.store.bits / 8
    }

    /// Time of a warp in the memory pipe.
    fn cost(&self) -> u32 {
        let one = |access: &SharedAccess, wavefronts: u32| access.steps.len() as u32 * (wavefronts + 1);
        let store = one(&self.store, self.store.wavefronts_at(true, |offset| self.place(offset)));
        store + self.slices * one(&self.load, self.load.wavefronts(false))
    }
}

/// 32-bit registers that a fragment of more than one step may take: fewer where the accumulators leave few.
pub(crate) fn fragment_limit(accumulator: &Layout, bits: u32) -> u32 {
    if accumulator.registers() * bits >= 128 * 32 { 16 } else { 32 }
}

/// The plan for operand 0 (`[.., M, K]`) or 1 (`[.., K, N]`) of a dot whose accumulators have layout `accumulator`. The
/// operand arrives as `source` says, with elements of `bits` bits.
pub fn operand_plan(
    source: &Layout,
    accumulator: &Layout,
    operand: u32,
    bits: u32,
    multiplier: Multiplier,
) -> OperandPlan {
    let rank = accumulator.rank();
    let axis = if operand == 0 { rank - 1 } else { rank - 2 };
    let least = multiplier.steps();
    let most = source.shape()[axis].min(least * 128 / bits);
    let depths = (least.trailing_zeros()..=most.trailing_zeros()).map(|bit| 1 << bit);
    let plans = depths.flat_map(|depth| {
        let fragment = multiplier.fragment(accumulator, operand, depth);
        let allowed = depth == least || fragment.registers() * bits <= 32 * fragment_limit(accumulator, bits);
        let widths = if allowed { (128 / bits).trailing_zeros() + 1 } else { 0 };
        (0..widths).rev().flat_map(move |width| {
            let slice = slice_layout(&fragment, width as usize);
            let fragment = fragment.clone();
            [0, 16, 32, MOST_ROOM].map(|room| plan(source, &slice, fragment.clone(), axis, bits, room))
        })
    });
    plans.min_by_key(OperandPlan::cost).expect("the shallowest slices are always tried")
}

fn plan(source: &Layout, slice: &SharedLayout, fragment: Layout, axis: usize, bits: u32, room: u32) -> OperandPlan {
    let depth = fragment.shape()[axis];
    let slices = source.shape()[axis] / depth;
    // The whole operand: the slice's offsets, then the number of the slice.
    let further = (0..slices.trailing_zeros()).map(|bit| Coord::along(axis, depth << bit));
    let bases: Vec<Coord> = slice.bases().into_iter().chain(further).collect();
    let whole = SharedLayout::from_bases(source.shape(), &bases);
    let elements = slice.elements();
    OperandPlan {
        depth,
        slices,
        elements,
        stride: (elements * bits / 8).next_multiple_of(16) + room,
        store: SharedAccess::vector(&whole, source, bits),
        load: SharedAccess::vector(slice, &fragment, bits),
        fragment,
    }
}

/// Where the elements of a slice lie: the lowest `wide` bits are those of registers.
fn slice_layout(fragment: &Layout, wide: usize) -> SharedLayout {
    let wide = wide.min(fragment.register.len());
    let shape = Shape::new(fragment.shape());
    let rest: Vec<u64> = (0..shape.bits()).map(|bit| 1 << bit).collect();
    let order = [&fragment.register[..wide], &fragment.lane, &rest].concat();
    SharedLayout::from_columns(shape, gf2::independent(&[], &order))
}

/// How many of the `steps` steps along K are unrolled in the loop's body, if a thread has `sums` accumulator elements:
/// enough for loads to overlap with FMAs.
pub fn unrolled_steps(accs: u32, steps: u32) -> u32 {
    (512 / accs.max(1)).clamp(8, 32).min(steps)
}

/// The same where operands lie in buffers: more, since there the loop is entered once for each iteration of a loop around
/// it, and waits for its first loads; but so few that the loop around it fits into the instruction cache.
pub fn unrolled_in_buffers(accs: u32, steps: u32) -> u32 {
    (1024 / accs.max(1)).clamp(8, 64).min(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accumulator() -> Layout {
        Layout::blocked(&[64, 64], &[4, 4], &[4, 8], &[2, 2], &[1, 0])
    }

    /// Stores every element by the plan and loads it back as the loop does.
    fn check(source: &Layout, operand: u32, bits: u32, multiplier: Multiplier) -> OperandPlan {
        let acc = match multiplier {
            Multiplier::Threads => accumulator(),
            Multiplier::MmaF64 => Layout::mma_v2(&[64, 64], &[2, 2]),
        };
        let plan = operand_plan(source, &acc, operand, bits, multiplier);
        let axis = if operand == 0 { 1 } else { 0 };
        let mut memory = std::collections::HashMap::new();
        for warp in 0..source.warps() {
            for lane in 0..32 {
                for step in &plan.store.steps {
                    let start = plan.place(plan.store.address(step, lane, warp));
                    assert!(start.is_multiple_of(plan.store.width * bits / 8));
                    for (i, register) in step.registers.iter().enumerate() {
                        memory.insert(start + i as u32 * bits / 8, source.coords(*register, lane, warp));
                    }
                }
            }
        }
        assert_eq!(memory.len() as u32, source.elements());
        assert!(memory.keys().all(|place| place + bits / 8 <= plan.bytes()));
        for slice in 0..plan.slices {
            for (warp, lane) in (0..acc.warps()).flat_map(|warp| (0..32).map(move |lane| (warp, lane))) {
                for step in &plan.load.steps {
                    let start = slice * plan.stride + plan.load.address(step, lane, warp) * bits / 8;
                    for (i, register) in step.registers.iter().enumerate() {
                        let mut wanted = plan.fragment.coords(*register, lane, warp);
                        wanted[axis] += slice * plan.depth;
                        assert_eq!(memory.get(&(start + i as u32 * bits / 8)), Some(&wanted));
                    }
                }
            }
        }
        plan
    }

    #[test]
    fn what_is_stored_is_what_is_loaded() {
        let rows = Layout::blocked(&[64, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        let columns = rows.transpose(&[1, 0]);
        for operand in [0, 1] {
            for source in [&rows, &columns, &accumulator(), &Layout::mma_v2(&[64, 64], &[2, 2])] {
                for bits in [16, 32, 64] {
                    check(source, operand, bits, Multiplier::Threads);
                }
                check(source, operand, 64, Multiplier::MmaF64);
            }
        }
    }

    #[test]
    fn accesses_are_wide_and_free_of_conflicts() {
        let rows = Layout::blocked(&[64, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        for (source, operand) in [(&rows, 0), (&rows, 1), (&rows.transpose(&[1, 0]), 0), (&rows.transpose(&[1, 0]), 1)]
        {
            let plan = check(source, operand, 32, Multiplier::Threads);
            assert_eq!((plan.store.width, plan.load.width), (4, 4));
            assert_eq!(plan.load.wavefronts(false), plan.load.minimum_wavefronts(false));
            let store = plan.store.wavefronts_at(true, |offset| plan.place(offset));
            assert_eq!(store, plan.store.minimum_wavefronts(true));
        }
    }
}

//! Operands of a dot that lie in a buffer in shared memory, and how threads that multiply them load their
//! parts, a few steps of the sum at a time. [`operand_plan`](crate::operand_plan) is for operands that are yet to be
//! stored; here the buffer is as it is.

use crate::access::SharedAccess;
use crate::coord::Coord;
use crate::dot_operands::{Multiplier, fragment_limit};
use crate::linear::Layout;
use crate::shared::SharedLayout;

/// How the fragments of an operand are loaded from its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentPlan {
    /// Steps of the sum in a fragment.
    pub depth: u32,
    /// A thread's part: a tile like the operand, `depth` long along the axis summed over.
    pub fragment: Layout,
    /// How the first fragment is loaded.
    pub load: SharedAccess,
    /// The XOR of each bit of a fragment's number with the offsets of its elements.
    pub numbers: Vec<u32>,
}

impl FragmentPlan {
    /// How fragment `number` is loaded.
    pub fn load_of(&self, number: u32) -> SharedAccess {
        let (offset, mut load) = (self.offset(number), self.load.clone());
        // Bits within a wide access only select the element.
        let within = offset & (load.width - 1);
        for step in &mut load.steps {
            step.offset ^= offset ^ within;
            step.registers = (0..load.width).map(|i| step.registers[(i ^ within) as usize]).collect();
        }
        load
    }

    /// The offset of the first element of fragment `number` for thread 0.
    pub fn offset(&self, number: u32) -> u32 {
        self.numbers.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1).fold(0, |sum, (_, basis)| sum ^ basis)
    }

    /// How many fragments lie in an order of their own, before the next as many follow in the same order: so far apart
    /// as the fragment with this number is from the first.
    pub fn period(&self) -> u32 {
        let mut used = self.load.steps.iter().fold(self.load.thread_bits(), |bits, step| bits | step.offset);
        used = (0..self.load.width).fold(used, |bits, within| bits | within);
        let is_apart = |bit: usize| {
            let before = self.numbers[..bit].iter().fold(used, |bits, basis| bits | basis);
            let (first, rest) = (self.numbers[bit], &self.numbers[bit..]);
            rest.iter().enumerate().all(|(i, basis)| *basis == first << i && before & basis == 0)
        };
        let bits = (0..self.numbers.len()).find(|bit| is_apart(*bit)).unwrap_or(self.numbers.len());
        1 << bits
    }

    /// Time of a warp in the memory pipe.
    fn cost(&self) -> u32 {
        (self.load.steps.len() as u32 * (self.load.wavefronts(false) + 1)) << self.numbers.len()
    }
}

/// The plan for operand 0 (`[M, K]`) or 1 (`[K, N]`) in a buffer of layout `shared`, of a dot whose sums have layout
/// `accumulator`. Elements have `bits` bits.
pub fn fragment_plan(
    shared: &SharedLayout,
    accumulator: &Layout,
    operand: u32,
    bits: u32,
    multiplier: Multiplier,
) -> FragmentPlan {
    let axis = if operand == 0 { 1 } else { 0 };
    let (steps, least) = (shared.shape()[axis], multiplier.steps());
    let whole = multiplier.fragment(accumulator, operand, steps);
    let most = steps.min(least * 128 / bits).max(least);
    let plans = (least.trailing_zeros()..=most.trailing_zeros()).filter_map(|bit| {
        let depth = 1 << bit;
        let fragment = multiplier.fragment(accumulator, operand, depth);
        let allowed = depth == least || fragment.registers() * bits <= 32 * fragment_limit(accumulator, bits);
        // The same registers in a tile of the whole operand: those of other steps are left out.
        let mut first = whole.clone();
        first.register.drain((depth / least).trailing_zeros() as usize..(steps / least).trailing_zeros() as usize);
        let further = depth.trailing_zeros()..steps.trailing_zeros();
        allowed.then(|| FragmentPlan {
            depth,
            fragment,
            load: SharedAccess::vector(shared, &first, bits),
            numbers: further.map(|bit| shared.offset(Coord::along(axis, 1 << bit)).unwrap_or(0)).collect(),
        })
    });
    plans.min_by_key(FragmentPlan::cost).expect("the shallowest fragments are always tried")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swizzle::swizzle_for;

    /// Loads every fragment by the plan, once number by number and once in the order of a period.
    fn check(shared: &SharedLayout, accumulator: &Layout, operand: u32, bits: u32, multiplier: Multiplier) {
        let axis = if operand == 0 { 1 } else { 0 };
        let plan = fragment_plan(shared, accumulator, operand, bits, multiplier);
        let (count, period) = (shared.shape()[axis] / plan.depth, plan.period());
        assert_eq!(count, 1 << plan.numbers.len());
        for number in 0..count {
            let (load, again) = (plan.load_of(number), plan.load_of(number % period));
            let turn = if period < count { number / period * plan.offset(period) } else { 0 };
            for (warp, lane) in (0..accumulator.warps()).flat_map(|warp| (0..32).map(move |lane| (warp, lane))) {
                for (step, once_more) in load.steps.iter().zip(&again.steps) {
                    let at = load.address(step, lane, warp);
                    assert!(at.is_multiple_of(load.width));
                    assert_eq!(at, turn + again.address(once_more, lane, warp));
                    assert_eq!(step.registers, once_more.registers);
                    for (i, register) in step.registers.iter().enumerate() {
                        let mut wanted = plan.fragment.coords(*register, lane, warp);
                        wanted[axis] += number * plan.depth;
                        assert_eq!(shared.coords(at + i as u32), wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn fragments_are_where_the_buffer_has_them() {
        let threads = Layout::blocked(&[64, 64], &[4, 4], &[4, 8], &[2, 2], &[1, 0]);
        let tensor_cores = Layout::mma_v2(&[64, 64], &[2, 2]);
        for order in [[1, 0], [0, 1]] {
            for (vector, per_phase, max_phase) in [(1, 1, 1), (4, 4, 8), (2, 1, 4), (4, 1, 4), (2, 2, 16)] {
                for (operand, shape) in [(0, [64, 32]), (1, [32, 64]), (0, [64, 64]), (1, [64, 64])] {
                    let shared = SharedLayout::swizzled(&shape, vector, per_phase, max_phase, &order);
                    check(&shared, &threads, operand, 32, Multiplier::Threads);
                    check(&shared, &threads, operand, 64, Multiplier::Threads);
                    check(&shared, &tensor_cores, operand, 64, Multiplier::MmaF64);
                }
            }
        }
    }

    #[test]
    fn loads_from_a_swizzled_buffer_are_free_of_conflicts() {
        let threads = Layout::blocked(&[64, 64], &[4, 4], &[4, 8], &[2, 2], &[1, 0]);
        let tensor_cores = Layout::mma_v2(&[64, 64], &[2, 2]);
        for order in [[1, 0], [0, 1]] {
            for operand in [0, 1] {
                for (accumulator, bits, multiplier, width) in
                    [(&threads, 32, Multiplier::Threads, 4), (&tensor_cores, 64, Multiplier::MmaF64, 1)]
                {
                    let reader = multiplier.fragment(accumulator, operand, 32);
                    let shared = swizzle_for(&reader, bits, &order, 128 / bits, false);
                    let plan = fragment_plan(&shared, accumulator, operand, bits, multiplier);
                    assert_eq!(plan.load.width, width);
                    assert_eq!(plan.load.wavefronts(false), plan.load.minimum_wavefronts(false), "{shared}");
                }
            }
        }
    }
}

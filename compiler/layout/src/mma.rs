//! Layouts of the fragments of `mma.sync`, as the PTX manual numbers them, repeated over a tile.
//!
//! Accumulators of m16n8: c0, c1 at row `lane / 4`, columns `lane % 4 * 2 + {0, 1}`; c2, c3 eight rows below.
//! Operands of 4 to 32 bits: each 32-bit register holds `pack = 32 / bits` neighbours along k; lane % 4 walks along k,
//! lane / 4 along rows (columns of B); then a second register eight rows below (A only), then the upper half of k.
//! That is m16n8k8 for tf32, m16n8k16 for 16 bits, m16n8k32 for 8 bits. For f64 it is m8n8k4.
//!
//! The registers of one instruction come first, in the order of the PTX fragment, and are kept even where the tile is
//! smaller than the instruction (they hold copies then). Repetitions follow: along n, then m for the accumulator; along
//! k, then m or n for operands. Warps are counted along the last axis first.
//!
//! Which steps of the sum an instruction takes does not matter as long as both operands agree. With a *k width* of `w` a
//! thread has `w` neighbours along k, over one instruction or several: the bits of k are given to the 32-bit register, then
//! to its other half and to repetitions, and only then to lanes. Operands that are cast can then be read from memory in
//! pieces of `w` narrower elements.

use crate::blocked::GridBuilder;
use crate::coord::Shape;
use crate::gf2;
use crate::linear::{LANE_BITS, Layout};

/// The tile of one `mma.sync` instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MmaShape {
    /// Rows of A and of the result.
    pub m: u32,
    /// Columns of B and of the result.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
}

impl MmaShape {
    /// The instruction for operands of `bits` bits whose fragments these layouts describe.
    pub fn for_bits(bits: u32) -> MmaShape {
        match bits {
            64 => MmaShape { m: 8, n: 8, k: 4 },
            _ => MmaShape { m: 16, n: 8, k: 256 / bits },
        }
    }

    /// Registers (elements) per thread of operand 0 (A) or 1 (B) of one instruction.
    pub fn operand_registers(self, operand: u32) -> u32 {
        if operand == 0 { self.m * self.k / 32 } else { self.n * self.k / 32 }
    }

    /// Registers per thread of the accumulator of one instruction.
    pub fn result_registers(self) -> u32 {
        self.m * self.n / 32
    }
}

impl Layout {
    /// The accumulator of `mma.sync` m16n8 over a tile `[..batch, M, N]` with `warps` along each axis.
    pub fn mma_v2(shape: &[u32], warps: &[u32]) -> Layout {
        accumulator(shape, warps, true)
    }

    /// The accumulator of `mma.sync` m8n8k4 for f64 over a tile `[..batch, M, N]` with `warps` along each axis.
    pub fn mma_f64(shape: &[u32], warps: &[u32]) -> Layout {
        accumulator(shape, warps, false)
    }

    /// Operand 0 (A, `[..batch, M, K]`) or 1 (B, `[..batch, K, N]`) of `mma.sync` for elements of `bits` bits, where
    /// the accumulator has `warps` along each of its axes. Warps along the axis that the operand lacks hold copies.
    pub fn mma_operand(shape: &[u32], operand: u32, bits: u32, warps: &[u32]) -> Layout {
        Layout::mma_operand_wide(shape, operand, bits, pack(bits), warps)
    }

    /// As [`mma_operand`](Layout::mma_operand), where each thread has `k_width` neighbours along the axis summed over:
    /// a power of two, `32 / bits` for what the PTX manual shows, up to a quarter of the axis.
    pub fn mma_operand_wide(shape: &[u32], operand: u32, bits: u32, k_width: u32, warps: &[u32]) -> Layout {
        let order: Vec<usize> = (0..warps.len()).rev().collect();
        operand_with_warp_order(shape, operand, bits, k_width, warps, &order)
    }

    /// The k widths other than the plain one that an operand of `bits` bits may have with `k` steps of the sum.
    pub fn mma_k_widths(k: u32, bits: u32) -> impl Iterator<Item = u32> {
        let wider = std::iter::successors(Some(2 * pack(bits)), |width| Some(2 * width));
        wider.take_while(move |width| bits < 64 && 4 * width <= k)
    }

    /// The operand of a dot that each thread computes by scalar FMAs: lanes and warps as in the accumulator,
    /// with the axis that the operand lacks left out, and all `k` values in registers (k varies fastest).
    ///
    /// An accumulator element at `[m, n]` finds `[m, 0..k]` (operand 0) or `[0..k, n]` (operand 1) in its own thread.
    pub fn fma_operand(accumulator: &Layout, operand: u32, k: u32) -> Layout {
        let rank = accumulator.rank();
        assert!(rank >= 2 && operand < 2, "a dot has operands 0 and 1 and rank at least 2");
        let k_axis = if operand == 0 { rank - 1 } else { rank - 2 };
        let mut dims = accumulator.shape().to_vec();
        dims[k_axis] = k;
        let shape = Shape::new(&dims);
        let mut layout = accumulator.map_bases(shape, |basis| {
            let mut coord = accumulator.shape.unflatten(basis);
            coord[k_axis] = 0;
            shape.flatten(coord)
        });
        let along_k: Vec<u64> = (0..k.trailing_zeros()).map(|bit| 1 << (bit + shape.shift(k_axis))).collect();
        layout.register = [along_k, gf2::independent(&[], &layout.register)].concat();
        layout
    }

    /// Operand 0 or 1 of `mma.sync` m8n8k4 for f64, `k` long along the axis summed over, for an accumulator made by
    /// [`mma_f64`](Layout::mma_f64): [`mma_operand`](Layout::mma_operand) without the numbers of warps. One made by
    /// [`mma_v2`](Layout::mma_v2) is that of m16n8k4, whose operands are two of those one above the other.
    pub fn mma_f64_operand(accumulator: &Layout, operand: u32, k: u32) -> Layout {
        let rank = accumulator.rank();
        assert!(operand < 2 && k >= 4, "m8n8k4 has operands 0 and 1 of at least 4 steps");
        let k_axis = if operand == 0 { rank - 1 } else { rank - 2 };
        let mut dims = accumulator.shape().to_vec();
        dims[k_axis] = k;
        let shape = Shape::new(&dims);
        let project = |basis: u64| {
            let mut coord = accumulator.shape.unflatten(basis);
            coord[k_axis] = 0;
            shape.flatten(coord)
        };
        let mut along_k = (0..k.trailing_zeros()).map(|bit| 1u64 << (bit + shape.shift(k_axis)));
        let steps = [along_k.next().unwrap_or(0), along_k.next().unwrap_or(0)];
        // Lane / 4 counts rows of A and columns of B; pairs of columns lie in one thread of the accumulator.
        let (first, lane) = (accumulator.register[0], accumulator.lane);
        let others = if operand == 0 { [lane[2], lane[3], lane[4]] } else { [first, lane[0], lane[1]] };
        let repeated: Vec<u64> = accumulator.register[1..].iter().map(|&basis| project(basis)).collect();
        let mut register: Vec<u64> = along_k.collect();
        register.extend(gf2::independent(&[], &repeated));
        Layout {
            shape,
            register,
            lane: lane_bases(steps, others.map(project)),
            warp: accumulator.warp.iter().map(|&basis| project(basis)).collect(),
            block: Vec::new(),
        }
    }
}

fn accumulator(shape: &[u32], warps: &[u32], rows_16: bool) -> Layout {
    let rank = shape.len();
    check_warps(rank, warps);
    let shape = Shape::new(shape);
    let (m, n) = (rank - 2, rank - 1);
    let mut grid = GridBuilder::new(shape);
    let mut register = vec![grid.take(n)];
    let columns = [grid.take(n), grid.take(n)];
    let rows = [grid.take(m), grid.take(m), grid.take(m)];
    if rows_16 {
        register.push(grid.take(m));
    }
    let order: Vec<u32> = (0..rank as u32).rev().collect();
    let warp = grid.extend(warps, &order);
    register.extend(grid.rest(&order));
    Layout { shape, register, lane: lane_bases(columns, rows), warp, block: Vec::new() }
}

/// Elements of a 32-bit register.
fn pack(bits: u32) -> u32 {
    32 / bits.min(32)
}

/// Like [`Layout::mma_operand_wide`], with the axes of the accumulator in the order of the warps along them.
pub(crate) fn operand_with_warp_order(
    shape: &[u32],
    operand: u32,
    bits: u32,
    k_width: u32,
    warps: &[u32],
    warp_order: &[usize],
) -> Layout {
    let rank = shape.len();
    check_warps(rank, warps);
    assert!(operand < 2, "a dot has operands 0 and 1, got {operand}");
    assert!(matches!(bits, 4 | 8 | 16 | 32 | 64), "no mma has operands of {bits} bits");
    let shape = Shape::new(shape);
    let (k, other) = if operand == 0 { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
    let mut grid = GridBuilder::new(shape);
    assert!(
        k_width == pack(bits) || Layout::mma_k_widths(shape.dims()[k], bits).any(|width| width == k_width),
        "no operand of {bits} bits and {} steps has a k width of {k_width}",
        shape.dims()[k]
    );
    let mut register: Vec<u64> = (0..pack(bits).trailing_zeros()).map(|_| grid.take(k)).collect();
    // Further neighbours are in the other half of the instruction's k, then in other instructions.
    let neighbours: Vec<u64> = (1..=(k_width / pack(bits)).trailing_zeros()).map(|_| grid.take(k)).collect();
    let along_k = [grid.take(k), grid.take(k)];
    let across = [grid.take(other), grid.take(other), grid.take(other)];
    if bits < 64 {
        if operand == 0 {
            register.push(grid.take(other));
        }
        register.push(neighbours.first().copied().unwrap_or_else(|| grid.take(k)));
    }
    // The accumulator's axis at the place of k is the one that this operand lacks.
    let mut warp = Vec::new();
    for &axis in warp_order {
        for _ in 0..warps[axis].trailing_zeros() {
            warp.push(if axis == k { 0 } else { grid.take(axis) });
        }
    }
    register.extend(neighbours.iter().skip(1));
    let batches = (0..rank as u32 - 2).rev();
    let order: Vec<u32> = [k as u32, other as u32].into_iter().chain(batches).collect();
    register.extend(grid.rest(&order));
    Layout { shape, register, lane: lane_bases(along_k, across), warp, block: Vec::new() }
}

pub(crate) fn lane_bases(low: [u64; 2], high: [u64; 3]) -> [u64; LANE_BITS] {
    [low[0], low[1], high[0], high[1], high[2]]
}

fn check_warps(rank: usize, warps: &[u32]) {
    assert!(rank >= 2, "a tile of a dot has rank 2 or more, got {rank}");
    assert!(
        warps.len() == rank && warps.iter().all(|w| w.is_power_of_two()),
        "warps of an mma layout of rank {rank} are {rank} powers of two, got {warps:?}"
    );
}

#[cfg(test)]
mod tests {
    use crate::{Coord, Layout, MmaShape};

    /// The PTX manual's formulas, for one instruction and one warp.
    fn check(layout: &Layout, expect: impl Fn(u32, u32) -> [u32; 2]) {
        for lane in 0..32 {
            for register in 0..layout.registers() {
                let expected = Coord::from(expect(register, lane));
                assert_eq!(layout.coords(register, lane, 0), expected, "register {register}, lane {lane}");
            }
        }
    }

    #[test]
    fn m16n8_accumulator() {
        let layout = Layout::mma_v2(&[16, 8], &[1, 1]);
        assert_eq!(layout.registers(), 4);
        check(&layout, |i, lane| [lane / 4 + if i < 2 { 0 } else { 8 }, lane % 4 * 2 + (i & 1)]);
    }

    #[test]
    fn m16n8k16_operands() {
        check(&Layout::mma_operand(&[16, 16], 0, 16, &[1, 1]), |i, lane| {
            let row = if matches!(i, 0 | 1 | 4 | 5) { lane / 4 } else { lane / 4 + 8 };
            let column = lane % 4 * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            [row, column]
        });
        check(&Layout::mma_operand(&[16, 8], 1, 16, &[1, 1]), |i, lane| {
            [lane % 4 * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, lane / 4]
        });
    }

    #[test]
    fn m16n8k8_tf32_operands() {
        check(&Layout::mma_operand(&[16, 8], 0, 32, &[1, 1]), |i, lane| {
            let row = if i == 0 || i == 2 { lane / 4 } else { lane / 4 + 8 };
            [row, if i < 2 { lane % 4 } else { lane % 4 + 4 }]
        });
        check(&Layout::mma_operand(&[8, 8], 1, 32, &[1, 1]), |i, lane| [lane % 4 + 4 * i, lane / 4]);
    }

    #[test]
    fn m16n8k32_byte_operands() {
        check(&Layout::mma_operand(&[16, 32], 0, 8, &[1, 1]), |i, lane| {
            let row = if i < 4 || (8..12).contains(&i) { lane / 4 } else { lane / 4 + 8 };
            [row, lane % 4 * 4 + (i & 3) + if i < 8 { 0 } else { 16 }]
        });
        check(&Layout::mma_operand(&[32, 8], 1, 8, &[1, 1]), |i, lane| {
            [lane % 4 * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, lane / 4]
        });
    }

    #[test]
    fn wide_operands_have_neighbours_and_agree_on_k() {
        for (bits, k) in [(8, 64), (16, 32), (16, 64), (32, 32)] {
            let (pack, step) = (32 / bits, 256 / bits);
            for width in Layout::mma_k_widths(k, bits) {
                let a = Layout::mma_operand_wide(&[32, k], 0, bits, width, &[2, 2]);
                let b = Layout::mma_operand_wide(&[k, 32], 1, bits, width, &[2, 2]);
                assert!(a.covers_tile() && b.covers_tile());
                // A piece of `width` elements in each thread, and pieces of neighbouring lanes side by side.
                for lane in 0..4 {
                    let held = |i: u32| b.find_register(Coord::from([lane * width + i, 0]), lane, 0).is_some();
                    assert!((0..width).all(held), "{bits} bits, width {width}");
                }
                // Step by step, the registers of both fragments are at the same places of k.
                let (of_a, of_b) = (step / 2, step / 4);
                for number in 0..k / step {
                    for lane in 0..32 {
                        let k_of_a = |i: u32| a.coords(number * of_a + i / pack * 2 * pack + i % pack, lane, 0)[1];
                        let k_of_b = |i: u32| b.coords(number * of_b + i, lane % 4, 0)[0];
                        assert!((0..of_b).all(|i| k_of_a(i) == k_of_b(i)), "{bits} bits, width {width}");
                    }
                }
            }
        }
        assert_eq!(Layout::mma_k_widths(16, 16).collect::<Vec<_>>(), [4]);
        assert_eq!(Layout::mma_k_widths(64, 16).collect::<Vec<_>>(), [4, 8, 16]);
        assert_eq!(Layout::mma_k_widths(64, 64).count(), 0);
    }

    #[test]
    fn operands_of_f64_follow_from_the_accumulator() {
        for warps in [[1, 1], [2, 2], [4, 1], [1, 8]] {
            let acc = Layout::mma_f64(&[64, 64], &warps);
            for k in [4, 16] {
                let lhs = Layout::mma_operand(&[64, k], 0, 64, &warps);
                assert_eq!(Layout::mma_f64_operand(&acc, 0, k), lhs);
                assert_eq!(Layout::mma_f64_operand(&acc, 1, k), Layout::mma_operand(&[k, 64], 1, 64, &warps));
            }
        }
    }

    #[test]
    fn m8n8k4_f64() {
        check(&Layout::mma_f64(&[8, 8], &[1, 1]), |i, lane| [lane / 4, lane % 4 * 2 + i]);
        check(&Layout::mma_operand(&[8, 4], 0, 64, &[1, 1]), |_, lane| [lane / 4, lane % 4]);
        check(&Layout::mma_operand(&[4, 8], 1, 64, &[1, 1]), |_, lane| [lane % 4, lane / 4]);
    }

    #[test]
    fn fragments_have_the_size_of_the_instruction() {
        for bits in [4, 8, 16, 32, 64] {
            let shape = MmaShape::for_bits(bits);
            let a = Layout::mma_operand(&[shape.m, shape.k], 0, bits, &[1, 1]);
            let b = Layout::mma_operand(&[shape.k, shape.n], 1, bits, &[1, 1]);
            assert_eq!((a.registers(), b.registers()), (shape.operand_registers(0), shape.operand_registers(1)));
            assert!(a.covers_tile() && b.covers_tile());
        }
    }

    #[test]
    fn accumulator_and_operands_of_a_warp_meet() {
        // Each warp holds the rows of A and the columns of B that its accumulators need.
        let (warps, k) = ([2, 4], 32);
        let acc = Layout::mma_v2(&[64, 128], &warps);
        let a = Layout::mma_operand(&[64, k], 0, 16, &warps);
        let b = Layout::mma_operand(&[k, 128], 1, 16, &warps);
        let held = |layout: &Layout, warp, axis| {
            let mut list: Vec<u32> =
                (0..layout.registers() * 32).map(|i| layout.coords(i / 32, i % 32, warp)[axis]).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        for warp in 0..8 {
            assert_eq!(held(&acc, warp, 0), held(&a, warp, 0));
            assert_eq!(held(&acc, warp, 1), held(&b, warp, 1));
        }
    }

    #[test]
    fn small_tiles_keep_whole_fragments() {
        let acc = Layout::mma_v2(&[8, 8], &[1, 1]);
        assert_eq!(acc.registers(), 4);
        assert_eq!(acc.coords(2, 5, 0), acc.coords(0, 5, 0));
    }

    #[test]
    fn scalar_operands_stay_in_the_thread() {
        let acc = Layout::blocked(&[16, 32], &[2, 2], &[4, 8], &[2, 2], &[1, 0]);
        let a = Layout::fma_operand(&acc, 0, 8);
        let b = Layout::fma_operand(&acc, 1, 8);
        for k in 0..8 {
            assert!(acc.register_map(&a, |c| [c[0], k].into()).is_some());
            assert!(acc.register_map(&b, |c| [k, c[1]].into()).is_some());
        }
        assert_eq!(a.coords(3, 0, 0), Coord::from([0, 3]));
    }
}

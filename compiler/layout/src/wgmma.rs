//! Layouts of the register fragments of `wgmma` (warp-group mma, Hopper).
//!
//! An m64nN accumulator gives each warp of the four 16 rows, and within them the fragment of m16n8 repeated along n.
//! Warps 0 to 3 of a warp group must hold consecutive rows, so warps are counted along m first.

use crate::blocked::GridBuilder;
use crate::coord::{Coord, Shape};
use crate::linear::Layout;
use crate::mma::{lane_bases, operand_with_warp_order};

impl Layout {
    /// The accumulator of `wgmma` m64n`instruction_n` over a tile `[M, N]` with `warps` `[along m, along n]`.
    ///
    /// Registers: those of one instruction in the order of the PTX fragment, then repetitions along n, then along m.
    /// `warps[0]` is a multiple of 4; `instruction_n` a power of two from 8 to 256.
    pub fn wgmma(shape: &[u32], instruction_n: u32, warps: [u32; 2]) -> Layout {
        check_warps(shape, warps);
        assert!(
            instruction_n.is_power_of_two() && (8..=256).contains(&instruction_n),
            "n of a wgmma layout is a power of two from 8 to 256, got {instruction_n}"
        );
        let shape = Shape::new(shape);
        let mut grid = GridBuilder::new(shape);
        let mut register = vec![grid.take(1)];
        let columns = [grid.take(1), grid.take(1)];
        let rows = [grid.take(0), grid.take(0), grid.take(0)];
        register.push(grid.take(0));
        for _ in 3..instruction_n.trailing_zeros() {
            register.push(grid.take(1));
        }
        let warp = grid.extend(&warps, &[0, 1]);
        register.extend(grid.rest(&[1, 0]));
        Layout { shape, register, lane: lane_bases(columns, rows), warp, block: Vec::new() }
    }

    /// Operand A (`[M, K]`) of `wgmma` in registers, for elements of `bits` bits; `warps` as for the accumulator.
    pub fn wgmma_operand(shape: &[u32], bits: u32, warps: [u32; 2]) -> Layout {
        check_warps(shape, warps);
        assert!(bits <= 32, "wgmma has operands of 8, 16 and 32 bits, got {bits}");
        operand_with_warp_order(shape, 0, bits, 32 / bits, &warps, &[0, 1])
    }

    /// This layout of a tile `[M, N]` with the rows in another order: bit `i` of a row's number becomes bit `order[i]`.
    ///
    /// `wgmma` does not care which rows of a tile its rows are, as long as operand A and the accumulator agree.
    pub fn with_rows(&self, order: &[u32]) -> Layout {
        let shape = self.shape;
        self.map_bases(shape, |basis| {
            let mut coord = shape.unflatten(basis);
            let row = coord[0];
            coord[0] = order.iter().enumerate().fold(0, |sum, (bit, to)| sum | (row >> bit & 1) << to);
            shape.flatten(coord)
        })
    }

    /// The order with which [`with_rows`](Layout::with_rows) makes this layout of `plain`, if there is one.
    pub fn rows_of(&self, plain: &Layout) -> Option<Vec<u32>> {
        if self.shape() != plain.shape() || self.columns().len() != plain.columns().len() {
            return None;
        }
        let places = || self.columns().into_iter().zip(plain.columns());
        let to = |bit: u32| {
            let mut row = Coord::ZERO;
            row[0] = 1 << bit;
            let (own, _) = places().find(|(_, basis)| *basis == self.shape.flatten(row))?;
            let own = self.shape.unflatten(own)[0];
            own.is_power_of_two().then(|| own.trailing_zeros())
        };
        let order: Vec<u32> = (0..self.shape()[0].trailing_zeros()).map(to).collect::<Option<_>>()?;
        (plain.with_rows(&order) == *self).then_some(order)
    }

    /// An order of rows for operand A, of elements of `operand` bits, that is made of elements of `memory` bits which lie in
    /// shared memory with M innermost, in rows of 128 bytes and with their swizzle: threads load several rows at once, up to
    /// 16 bytes, without bank conflicts.
    ///
    /// The rows that a thread has lie side by side. The swizzle gives some of the 32 banks to the two bits of K that lanes
    /// have, so the next bits of lanes take the other ones.
    pub fn rows_for_vectors(rows: u32, warps_along_m: u32, operand: u32, memory: u32) -> Vec<u32> {
        let bits = rows.trailing_zeros();
        let repeats = 4 + warps_along_m.trailing_zeros();
        let own: Vec<u32> = [3].into_iter().chain(repeats..bits).take(2).collect();
        let among_threads = (0..bits).filter(|bit| !own.contains(bit));
        let width = own.len() as u32;
        // Bits of a row's number, as bits of addresses.
        let bytes = memory.trailing_zeros() - 3;
        let swizzled = 4 + (32 / operand).trailing_zeros();
        let of_k = |bit: &u32| (swizzled..swizzled + 2).contains(&(bit + bytes));
        let in_bank = |bit: &u32| (2..7).contains(&(bit + bytes));
        let is_free = |bit: &u32| in_bank(bit) && !of_k(bit);
        let rest = (width..bits).filter(|bit| !is_free(bit));
        let to: Vec<u32> = (width..bits).filter(is_free).chain(rest).collect();
        let mut order = vec![0; bits as usize];
        for (from, to) in own.iter().copied().zip(0..).chain(among_threads.zip(to)) {
            order[from as usize] = to;
        }
        order
    }
}

fn check_warps(shape: &[u32], warps: [u32; 2]) {
    assert_eq!(shape.len(), 2, "wgmma works on tiles of rank 2, got {shape:?}");
    assert!(
        warps.iter().all(|w| w.is_power_of_two()) && warps[0] >= 4,
        "wgmma needs powers of two of warps, at least 4 of them along m, got {warps:?}"
    );
}

#[cfg(test)]
mod tests {
    use crate::{Coord, Layout, SharedAccess, SharedLayout};

    #[test]
    fn accumulator_of_one_instruction() {
        let layout = Layout::wgmma(&[64, 32], 32, [4, 1]);
        assert_eq!(layout.registers(), 16);
        for warp in 0..4 {
            for lane in 0..32 {
                for i in 0..16 {
                    let row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
                    let column = 8 * (i / 4) + lane % 4 * 2 + i % 2;
                    assert_eq!(layout.coords(i, lane, warp), Coord::from([row, column]));
                }
            }
        }
    }

    #[test]
    fn two_warp_groups_and_repetitions() {
        let layout = Layout::wgmma(&[256, 128], 64, [8, 1]);
        assert_eq!(layout.coords(0, 0, 4), Coord::from([64, 0]));
        assert_eq!(layout.coords(32, 0, 0), Coord::from([0, 64]));
        assert_eq!(layout.coords(64, 0, 0), Coord::from([128, 0]));
        assert!(layout.covers_tile());
    }

    #[test]
    fn an_accumulator_becomes_operand_a_without_data_movement() {
        // The second dot of attention takes the first one's result as A, in 16 bits.
        let accumulator = Layout::wgmma(&[128, 64], 64, [8, 1]);
        let operand = Layout::wgmma_operand(&[128, 64], 16, [8, 1]);
        assert!(operand.register_map(&accumulator, |c| c).is_some());
    }

    #[test]
    fn rows_in_another_order_are_found_again() {
        let plain = Layout::wgmma_operand(&[128, 32], 32, [8, 1]);
        let order = Layout::rows_for_vectors(128, 8, 32, 32);
        let other = plain.with_rows(&order);
        assert!(other.covers_tile());
        assert_eq!(other.rows_of(&plain), Some(order));
        assert_eq!(plain.rows_of(&plain), Some((0..7).collect()));
        // Columns in another order are something else.
        let narrow = Layout::wgmma_operand(&[128, 32], 16, [8, 1]);
        assert_eq!(plain.rows_of(&narrow), None);
        assert_eq!(other.rows_of(&Layout::wgmma_operand(&[128, 32], 32, [4, 2])), None);
    }

    #[test]
    fn fragments_with_m_innermost_load_vectors_without_conflicts() {
        for (rows, warps, width) in [(64, 4, 2), (128, 8, 2), (128, 4, 4), (256, 8, 4), (256, 4, 4)] {
            for (operand, memory) in [(32, 32), (16, 8), (16, 16), (16, 32)] {
                if rows * memory < 1024 {
                    continue;
                }
                let plain = Layout::wgmma_operand(&[rows, 32], operand, [warps, 1]);
                let swizzle = SharedLayout::nvmma_swizzle(rows, memory);
                let shared = SharedLayout::nvmma(&[rows, 32], memory, swizzle, &[0, 1]);
                let access = |layout: &Layout| SharedAccess::vector(&shared, layout, memory);
                assert_eq!(access(&plain).width, 1);
                let order = Layout::rows_for_vectors(rows, warps, operand, memory);
                let other = access(&plain.with_rows(&order));
                let least = (width * memory / 32).max(1);
                assert_eq!(
                    (other.width, other.wavefronts(false)),
                    (width, least),
                    "{rows} rows, {warps} warps, {operand} of {memory}"
                );
            }
        }
    }
}

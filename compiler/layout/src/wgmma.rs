//! Layouts of the register fragments of `wgmma` (warp-group mma, Hopper).
//!
//! An m64nN accumulator gives each warp of the four 16 rows, and within them the fragment of m16n8 repeated along n.
//! Warps 0 to 3 of a warp group must hold consecutive rows, so warps are counted along m first.

use crate::blocked::GridBuilder;
use crate::coord::Shape;
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
        operand_with_warp_order(shape, 0, bits, &warps, &[0, 1])
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
    use crate::{Coord, Layout};

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
        // The second product of attention takes the first one's result as A, in 16 bits.
        let accumulator = Layout::wgmma(&[128, 64], 64, [8, 1]);
        let operand = Layout::wgmma_operand(&[128, 64], 16, [8, 1]);
        assert!(operand.register_map(&accumulator, |c| c).is_some());
    }
}

//! Queries of a layout: copies, contiguity, the position of an element, and which registers feed which.

use crate::coord::Coord;
use crate::gf2::{self, Span};
use crate::linear::{InputBit, LANE_BITS, Layout};

/// The input bits along which a layout only holds copies, as masks.
///
/// The places whose masked bits are all zero hold each element exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Copies {
    /// Mask of register bits.
    pub registers: u32,
    /// Mask of lane bits.
    pub lanes: u32,
    /// Mask of warp bits.
    pub warps: u32,
    /// Mask of block bits.
    pub blocks: u32,
}

impl Copies {
    /// True if each element is held once.
    pub fn none(self) -> bool {
        self == Copies::default()
    }
}

impl Layout {
    /// The input bits that are redundant: their basis is zero, or a sum of bases of registers, lower lanes, lower warps.
    ///
    /// A store issues each element once if it is predicated on `lane & lanes == 0 && warp & warps == 0` and skips the
    /// registers with `register & registers != 0`.
    pub fn copies(&self) -> Copies {
        let mut copies = Copies::default();
        let mut span = Span::default();
        for (bit, column) in self.input_bits().into_iter().zip(self.columns()) {
            if !span.insert(column) {
                match bit {
                    InputBit::Register(i) => copies.registers |= 1 << i,
                    InputBit::Lane(i) => copies.lanes |= 1 << i,
                    InputBit::Warp(i) => copies.warps |= 1 << i,
                    InputBit::Block(i) => copies.blocks |= 1 << i,
                }
            }
        }
        copies
    }

    /// How many consecutive registers, from an aligned one, hold consecutive aligned elements along `axis`, in every
    /// thread. A power of two; the widest vector access in elements if memory is contiguous along `axis`.
    pub fn contiguity(&self, axis: usize) -> u32 {
        assert!(axis < self.rank(), "axis {axis} of a tile of rank {}", self.rank());
        let (mask, shift) = (self.shape.axis_mask(axis), self.shape.shift(axis));
        let mut bits = 0;
        while bits < mask.count_ones() as usize && self.register.get(bits) == Some(&(1u64 << shift << bits)) {
            bits += 1;
        }
        // A low bit that another basis flips as well would permute the vector in some threads.
        let others = self.columns().into_iter().skip(bits).fold(0, |low, basis| low | basis & mask);
        bits = bits.min((others >> shift).trailing_zeros() as usize);
        1 << bits
    }

    /// The place of lowest number that holds `coord`: register, lane, warp (of block 0), or `None`.
    pub fn find(&self, coord: Coord) -> Option<(u32, u32, u32)> {
        let columns = [&self.register[..], &self.lane, &self.warp].concat();
        let place = gf2::solve(&columns, self.shape.flatten(coord))?;
        let registers = self.register.len();
        let lane = place >> registers & 31;
        let warp = place >> (registers + LANE_BITS);
        Some(((place & ((1 << registers) - 1)) as u32, lane as u32, warp as u32))
    }

    /// The register of this lane and warp that holds `coord`, if any does.
    pub fn find_register(&self, coord: Coord, lane: u32, warp: u32) -> Option<u32> {
        let rest = self.shape.flatten(coord) ^ self.flat(0, lane, warp, 0);
        gf2::solve(&self.register, rest).map(|register| register as u32)
    }

    /// For each register of this layout, the register of `operand` that holds the element at `map(coordinate)` in the
    /// same thread, in every thread; `None` if some element must come from elsewhere.
    ///
    /// `map` takes coordinates of this tile to coordinates of the operand's, and is affine over GF(2): identity,
    /// permutation of axes, row-major reshape, setting an axis to a constant, ...
    pub fn register_map(&self, operand: &Layout, map: impl Fn(Coord) -> Coord) -> Option<Vec<u32>> {
        if self.warp.len() != operand.warp.len() || self.block.len() != operand.block.len() {
            return None;
        }
        let image = |index: u64| operand.shape.flatten(map(self.shape.unflatten(index)));
        let origin = image(0);
        let linear = |basis: u64| image(basis) ^ origin;
        let own = self.lane.iter().chain(&self.warp).chain(&self.block);
        let theirs = operand.lane.iter().chain(&operand.warp).chain(&operand.block);
        if own.zip(theirs).any(|(&a, &b)| linear(a) != b) {
            return None;
        }
        let span = Span::of(operand.register.iter().copied());
        (0..self.registers())
            .map(|r| span.express(image(gf2::apply(&self.register, r.into()))).map(|register| register as u32))
            .collect()
    }

    /// For each bit of the coordinate along `axis`, lowest first, the input bit that alone carries it: its basis is
    /// that unit step, and no other basis touches the axis. `None` if bases mix.
    ///
    /// A scan along the axis is direct where this is `Some` with registers before lanes before warps
    /// (see [`Layout::is_scan_order`]).
    pub fn axis_bits(&self, axis: usize) -> Option<Vec<InputBit>> {
        assert!(axis < self.rank(), "axis {axis} of a tile of rank {}", self.rank());
        let mask = self.shape.axis_mask(axis);
        let mut carriers = Vec::new();
        for (bit, basis) in self.input_bits().into_iter().zip(self.columns()) {
            if basis & mask == 0 {
                continue;
            }
            let carried_before = carriers.iter().any(|&(other, _)| other == basis);
            if carried_before || basis & !mask != 0 || !basis.is_power_of_two() {
                return None;
            }
            carriers.push((basis, bit));
        }
        carriers.sort_unstable();
        (carriers.len() == mask.count_ones() as usize).then(|| carriers.into_iter().map(|(_, bit)| bit).collect())
    }

    /// True if going up along `axis` one meets first register bits, then lanes in ascending order, then warps in
    /// ascending order, then perhaps further registers: what a scan in that order needs.
    pub fn is_scan_order(&self, axis: usize) -> bool {
        let Some(bits) = self.axis_bits(axis) else { return false };
        let first_thread_bit = bits.iter().position(|bit| !matches!(bit, InputBit::Register(_))).unwrap_or(bits.len());
        let rest = &bits[first_thread_bit..];
        let last_thread_bit = rest.iter().rposition(|bit| !matches!(bit, InputBit::Register(_)));
        rest[..last_thread_bit.map_or(0, |i| i + 1)]
            .windows(2)
            .all(|pair| pair[0] < pair[1] && !matches!(pair[1], InputBit::Register(_)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bases, Coord, InputBit, Layout};

    #[test]
    fn copies_of_a_small_tile() {
        let layout = Layout::blocked(&[16], &[2], &[32], &[4], &[0]);
        let copies = layout.copies();
        assert_eq!((copies.registers, copies.lanes, copies.warps), (0, 0b11000, 0b11));
        assert!(Layout::blocked(&[256], &[2], &[32], &[4], &[0]).copies().none());
    }

    #[test]
    fn contiguity_needs_alignment() {
        assert_eq!(Layout::blocked(&[8, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]).contiguity(1), 4);
        assert_eq!(Layout::blocked(&[8, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]).contiguity(0), 1);
        assert_eq!(Layout::replicated(&[4, 8], 1).contiguity(1), 8);
        // The lane flips column bit 1 as well: pairs stay together, groups of four are permuted.
        let mut bases = Bases { register: vec![[0, 1].into(), [0, 2].into()], ..Bases::default() };
        bases.lane[0] = [1, 2].into();
        assert_eq!(Layout::from_bases(&[2, 4], &bases).contiguity(1), 2);
    }

    #[test]
    fn finds_every_element() {
        let layout = Layout::mma_v2(&[32, 32], &[2, 2]);
        for row in 0..32 {
            for column in 0..32 {
                let coord = Coord::from([row, column]);
                let (register, lane, warp) = layout.find(coord).expect("the tile is covered");
                assert_eq!(layout.coords(register, lane, warp), coord);
                assert_eq!(layout.find_register(coord, lane, warp), Some(register));
                assert_eq!(layout.find_register(coord, lane ^ 4, warp), None);
            }
        }
    }

    #[test]
    fn register_maps_hold_in_every_thread() {
        let operand = Layout::mma_v2(&[64, 64], &[4, 1]);
        let result = Layout::mma_operand(&[64, 64], 0, 16, &[4, 1]);
        let map = result.register_map(&operand, |c| c).expect("the accumulator is operand A, in another order");
        for warp in 0..4 {
            for lane in 0..32 {
                for r in 0..result.registers() {
                    assert_eq!(operand.coords(map[r as usize], lane, warp), result.coords(r, lane, warp));
                }
            }
        }
        assert_eq!(Layout::blocked(&[64, 64], &[1, 2], &[8, 4], &[4, 1], &[1, 0]).register_map(&operand, |c| c), None);
    }

    #[test]
    fn scan_order() {
        let layout = Layout::blocked(&[8, 256], &[1, 2], &[2, 16], &[1, 2], &[1, 0]);
        let bits = layout.axis_bits(1).expect("blocked layouts do not mix axes");
        assert_eq!(bits[..2], [InputBit::Register(0), InputBit::Lane(0)]);
        assert!(layout.is_scan_order(0) && layout.is_scan_order(1));
        let swapped = Layout::blocked(&[256, 8], &[2, 1], &[16, 2], &[2, 1], &[1, 0]).transpose(&[1, 0]);
        assert!(swapped.is_scan_order(1));
    }
}

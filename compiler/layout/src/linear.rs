//! The layout type, and the tutorial on linear layouts.
//!
//! # Definition
//!
//! A tile is spread over the threads of a block: each thread holds some elements in its registers. A layout says which.
//! It is a function from *places* (register, lane, warp, block of the cluster) to *coordinates* in the tile, and it
//! is **linear over GF(2)**: write the numbers in binary, then
//!
//! ```text
//! L(register, lane, warp) = XOR of one coordinate for each bit that is set in register, lane and warp
//! ```
//!
//! So a layout is a table with one coordinate per input bit, its *bases*. That is all there is: for 8 registers,
//! 32 lanes and 4 warps, 3 + 5 + 2 coordinates describe where 1024 elements are.
//!
//! # A worked table
//!
//! A tile of shape [4, 8], and (to keep the table small) 8 lanes with 4 registers. Bases: registers [0, 1], [0, 2];
//! lanes [0, 4], [1, 0], [2, 0]. Row `lane`, column `register`:
//!
//! ```text
//!            r0     r1     r2     r3                                     columns of the tile
//! lane 0   [0,0]  [0,1]  [0,2]  [0,3]                               0  1  2  3  4  5  6  7
//! lane 1   [0,4]  [0,5]  [0,6]  [0,7]     the same, seen     row 0  l0 l0 l0 l0 l1 l1 l1 l1
//! lane 2   [1,0]  [1,1]  [1,2]  [1,3]     from the tile:     row 1  l2 l2 l2 l2 l3 l3 l3 l3
//! lane 3   [1,4]  [1,5]  [1,6]  [1,7]                        row 2  l4 l4 l4 l4 l5 l5 l5 l5
//! lane 4   [2,0]  ...                                        row 3  l6 l6 l6 l6 l7 l7 l7 l7
//! ```
//!
//! Lane 3 is `0b011`, register 2 is `0b10`: `[0, 4] ^ [1, 0] ^ [0, 2] = [1, 6]`.
//!
//! # Examples
//!
//! - *Blocked.* All bases are powers of two along one axis, as above: 4 elements per thread, 2 lanes along a row.
//! - *mma accumulator* (m16n8): registers [0, 1], [8, 0]; lanes [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]. The manual's
//!   "row = lane / 4, or that plus 8 for c2 and c3; column = lane % 4 * 2 + (i & 1)" is this table.
//! - *Replication.* A basis that is zero: the lane bit changes nothing, so pairs of lanes hold copies. The result of a
//!   reduction along columns has zeros where the columns were.
//! - *Swizzle.* A basis with two bits, such as [1, 8]: going down a row also flips bit 3 of the column. Linear, hence
//!   no special case.
//!
//! # Why it is useful
//!
//! The queries of a compiler become linear algebra on small matrices:
//!
//! - which elements a thread holds: the span of the register bases, moved by its lane and warp;
//! - which lanes hold copies: bases that depend on others;
//! - may thread-local data be reinterpreted (transpose, reshape, slice): linear maps composed with the layout;
//! - how to get from layout A to B: solve `A x = B`; where `x` only permutes registers the conversion is free, where
//!   it stays within the warp it is shuffles, else shared memory;
//! - a shared-memory layout without bank conflicts: a subspace that meets two others only in zero;
//! - reduction along an axis: the kernel of the layout followed by "forget this axis".
//!
//! # The mathematics
//!
//! GF(2) is {0, 1} with XOR as addition and AND as multiplication; numbers of n bits are the vectors of GF(2)^n. Since
//! all sides of a tile are powers of two, the row-major index of an element is the concatenation of its coordinates'
//! bits, and the tile's space is GF(2)^(log2 of its size). A [`Layout`] keeps its bases as such indices: reshaping a
//! tile changes no basis, transposing permutes bits. Register bit `i` is the input vector with bit `i` set, the lanes
//! follow, then warps, then blocks. (Linear Layouts, arXiv 2505.23819, is the paper to read.)

use crate::coord::{Coord, Shape};
use crate::gf2;

/// Lanes of a warp.
pub const LANES: u32 = 32;
/// log2 of [`LANES`].
pub(crate) const LANE_BITS: usize = 5;

/// Which thread and register holds which element of a tile: a linear map over GF(2).
///
/// Equality is equality of the maps, however the layouts were made.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    pub(crate) shape: Shape,
    /// Bases as row-major indices, lowest input bit first.
    pub(crate) register: Vec<u64>,
    pub(crate) lane: [u64; LANE_BITS],
    pub(crate) warp: Vec<u64>,
    pub(crate) block: Vec<u64>,
}

/// The table of a layout: one coordinate per input bit, lowest bit first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bases {
    /// One per register bit.
    pub register: Vec<Coord>,
    /// One per lane bit.
    pub lane: [Coord; LANE_BITS],
    /// One per warp bit.
    pub warp: Vec<Coord>,
    /// One per bit of the block's rank in its cluster; usually none.
    pub block: Vec<Coord>,
}

/// One bit of a place: the input of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InputBit {
    /// A bit of the register number.
    Register(u32),
    /// A bit of the lane number.
    Lane(u32),
    /// A bit of the warp number.
    Warp(u32),
    /// A bit of the block's rank in its cluster.
    Block(u32),
}

impl Layout {
    /// The layout with these bases. Sides of the shape are powers of two, bases lie in the shape.
    pub fn from_bases(shape: &[u32], bases: &Bases) -> Layout {
        let shape = Shape::new(shape);
        let flat = |list: &[Coord]| list.iter().map(|&c| shape.flatten(c)).collect::<Vec<u64>>();
        Layout {
            shape,
            register: flat(&bases.register),
            lane: bases.lane.map(|c| shape.flatten(c)),
            warp: flat(&bases.warp),
            block: flat(&bases.block),
        }
    }

    /// The layout in which every thread holds the whole tile, in row-major register order.
    pub fn replicated(shape: &[u32], num_warps: u32) -> Layout {
        assert!(num_warps.is_power_of_two(), "the number of warps is a power of two, got {num_warps}");
        let shape = Shape::new(shape);
        Layout {
            shape,
            register: (0..shape.bits()).map(|bit| 1 << bit).collect(),
            lane: [0; LANE_BITS],
            warp: vec![0; num_warps.trailing_zeros() as usize],
            block: Vec::new(),
        }
    }

    /// The bases as coordinates.
    pub fn bases(&self) -> Bases {
        let coords = |list: &[u64]| list.iter().map(|&v| self.shape.unflatten(v)).collect::<Vec<Coord>>();
        Bases {
            register: coords(&self.register),
            lane: self.lane.map(|v| self.shape.unflatten(v)),
            warp: coords(&self.warp),
            block: coords(&self.block),
        }
    }

    /// The shape of the tile.
    pub fn shape(&self) -> &[u32] {
        self.shape.dims()
    }

    /// The rank of the tile.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements of the tile.
    pub fn elements(&self) -> u32 {
        1 << self.shape.bits()
    }

    /// The number of elements that each thread holds, copies included.
    pub fn registers(&self) -> u32 {
        1 << self.register.len()
    }

    /// The lanes of a warp: 32.
    pub fn lanes(&self) -> u32 {
        LANES
    }

    /// The number of warps.
    pub fn warps(&self) -> u32 {
        1 << self.warp.len()
    }

    /// The number of blocks of the cluster that share the tile.
    pub fn blocks(&self) -> u32 {
        1 << self.block.len()
    }

    /// The coordinate of the element in this register of this lane and warp (of block 0).
    pub fn coords(&self, register: u32, lane: u32, warp: u32) -> Coord {
        self.shape.unflatten(self.flat(register, lane, warp, 0))
    }

    /// The row-major index of the element in this register of this lane and warp (of block 0).
    pub fn index(&self, register: u32, lane: u32, warp: u32) -> u32 {
        self.flat(register, lane, warp, 0) as u32
    }

    /// The basis of one input bit: how the coordinate changes when that bit flips.
    pub fn basis(&self, bit: InputBit) -> Coord {
        self.shape.unflatten(match bit {
            InputBit::Register(i) => self.register[i as usize],
            InputBit::Lane(i) => self.lane[i as usize],
            InputBit::Warp(i) => self.warp[i as usize],
            InputBit::Block(i) => self.block[i as usize],
        })
    }

    /// All input bits: registers, lanes, warps, blocks, each from the lowest.
    pub fn input_bits(&self) -> Vec<InputBit> {
        let registers = (0..self.register.len() as u32).map(InputBit::Register);
        let lanes = (0..LANE_BITS as u32).map(InputBit::Lane);
        let warps = (0..self.warp.len() as u32).map(InputBit::Warp);
        let blocks = (0..self.block.len() as u32).map(InputBit::Block);
        registers.chain(lanes).chain(warps).chain(blocks).collect()
    }

    /// True if every element of the tile is held somewhere.
    pub fn covers_tile(&self) -> bool {
        gf2::rank(&self.columns()) == self.shape.bits() as usize
    }

    pub(crate) fn flat(&self, register: u32, lane: u32, warp: u32, block: u32) -> u64 {
        assert!(
            register < self.registers() && lane < LANES && warp < self.warps() && block < self.blocks(),
            "register {register}, lane {lane}, warp {warp}, block {block} is no place of {self}"
        );
        gf2::apply(&self.register, register.into())
            ^ gf2::apply(&self.lane, lane.into())
            ^ gf2::apply(&self.warp, warp.into())
            ^ gf2::apply(&self.block, block.into())
    }

    /// The matrix: all bases as row-major indices, in the order of [`input_bits`](Layout::input_bits).
    pub(crate) fn columns(&self) -> Vec<u64> {
        [&self.register[..], &self.lane, &self.warp, &self.block].concat()
    }

    /// The layout of a tile of `shape` whose bases are `map` of the bases of this one.
    pub(crate) fn map_bases(&self, shape: Shape, map: impl Fn(u64) -> u64) -> Layout {
        let all = |list: &[u64]| list.iter().map(|&v| map(v)).collect::<Vec<u64>>();
        Layout {
            shape,
            register: all(&self.register),
            lane: self.lane.map(&map),
            warp: all(&self.warp),
            block: all(&self.block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_sums_of_bases() {
        let layout = Layout::from_bases(
            &[4, 8],
            &Bases {
                register: vec![[0, 1].into(), [0, 2].into()],
                lane: [[0, 4].into(), [1, 0].into(), [2, 0].into(), Coord::ZERO, Coord::ZERO],
                ..Bases::default()
            },
        );
        assert_eq!(layout.coords(2, 3, 0), Coord::from([1, 6]));
        assert_eq!(layout.index(2, 3, 0), 14);
        assert_eq!(layout.coords(0, 24, 0), Coord::ZERO);
        assert!(layout.covers_tile());
        assert_eq!(Layout::from_bases(layout.shape(), &layout.bases()), layout);
    }

    #[test]
    fn a_scalar_tile_has_one_register() {
        let layout = Layout::replicated(&[], 4);
        assert_eq!((layout.rank(), layout.registers(), layout.warps(), layout.elements()), (0, 1, 4, 1));
        assert_eq!(layout.coords(0, 31, 3), Coord::ZERO);
    }
}

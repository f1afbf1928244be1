//! Coordinates in a tile, and shapes whose sides are powers of two.
//!
//! Such a shape makes the row-major index of an element the concatenation of the bits of its coordinates. A vector of
//! the tile's space is therefore one integer, and XOR of coordinates is XOR of indices:
//! in shape [4, 8], coordinate [2, 5] has index `0b10_101`.

use std::fmt;
use std::ops::{BitXor, BitXorAssign, Index, IndexMut};

/// The greatest rank of a tile. Programs split tiles into single bits of an index, as for scales in the order of a
/// matrix instruction, and reach nine dimensions.
pub const MAX_RANK: usize = 9;

/// A coordinate in a tile; entries beyond the tile's rank are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Coord(pub [u32; MAX_RANK]);

impl Coord {
    /// The origin.
    pub const ZERO: Coord = Coord([0; MAX_RANK]);

    /// The coordinate that is `value` along `axis` and zero elsewhere.
    pub fn along(axis: usize, value: u32) -> Coord {
        let mut coord = Coord::ZERO;
        coord[axis] = value;
        coord
    }
}

impl From<&[u32]> for Coord {
    fn from(values: &[u32]) -> Coord {
        assert!(values.len() <= MAX_RANK, "a coordinate has at most {MAX_RANK} entries, got {values:?}");
        let mut coord = Coord::ZERO;
        coord.0[..values.len()].copy_from_slice(values);
        coord
    }
}

impl<const N: usize> From<[u32; N]> for Coord {
    fn from(values: [u32; N]) -> Coord {
        Coord::from(&values[..])
    }
}

impl Index<usize> for Coord {
    type Output = u32;
    fn index(&self, axis: usize) -> &u32 {
        &self.0[axis]
    }
}

impl IndexMut<usize> for Coord {
    fn index_mut(&mut self, axis: usize) -> &mut u32 {
        &mut self.0[axis]
    }
}

impl BitXor for Coord {
    type Output = Coord;
    fn bitxor(mut self, other: Coord) -> Coord {
        self ^= other;
        self
    }
}

impl BitXorAssign for Coord {
    fn bitxor_assign(&mut self, other: Coord) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a ^= b;
        }
    }
}

impl fmt::Debug for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A shape of powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Shape {
    dims: [u32; MAX_RANK],
    rank: u8,
}

impl Shape {
    pub(crate) fn new(dims: &[u32]) -> Shape {
        assert!(dims.len() <= MAX_RANK, "a tile has at most {MAX_RANK} dimensions, got {dims:?}");
        assert!(dims.iter().all(|d| d.is_power_of_two()), "sides of a tile are powers of two, got {dims:?}");
        let bits: u32 = dims.iter().map(|d| d.trailing_zeros()).sum();
        assert!(bits < 32, "a tile has fewer than 2^32 elements, got {dims:?}");
        let mut shape = Shape { dims: [1; MAX_RANK], rank: dims.len() as u8 };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    pub(crate) fn dims(&self) -> &[u32] {
        &self.dims[..self.rank as usize]
    }

    /// log2 of the number of elements.
    pub(crate) fn bits(&self) -> u32 {
        self.dims().iter().map(|d| d.trailing_zeros()).sum()
    }

    /// Row-major index.
    pub(crate) fn flatten(&self, coord: Coord) -> u64 {
        let mut index = 0;
        for (axis, &dim) in self.dims().iter().enumerate() {
            assert!(coord[axis] < dim, "coordinate {coord:?} is outside of shape {:?}", self.dims());
            index = index * u64::from(dim) + u64::from(coord[axis]);
        }
        index
    }

    /// Coordinate of a row-major index.
    pub(crate) fn unflatten(&self, mut index: u64) -> Coord {
        let mut coord = Coord::ZERO;
        for (axis, &dim) in self.dims().iter().enumerate().rev() {
            coord[axis] = (index % u64::from(dim)) as u32;
            index /= u64::from(dim);
        }
        coord
    }

    /// The position of the lowest bit of `axis` in a row-major index.
    pub(crate) fn shift(&self, axis: usize) -> u32 {
        self.dims()[axis + 1..].iter().map(|d| d.trailing_zeros()).sum()
    }

    /// The bits of a row-major index that belong to `axis`.
    pub(crate) fn axis_mask(&self, axis: usize) -> u64 {
        u64::from(self.dims[axis] - 1) << self.shift(axis)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

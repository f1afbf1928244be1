//! Layouts of tiles in shared memory: a linear map from the offset of an element to its coordinate.
//!
//! Offsets count elements. Basis `i` is the coordinate at offset `1 << i`; swizzles are bases with more than one bit:
//! in a row-major [8, 64] tile of 16-bit elements with the 128-byte swizzle, offset 64 (row 1, first chunk of 16 bytes)
//! has coordinate [1, 8]: chunk `p` of row `r` holds the columns of chunk `p ^ r`.

use std::fmt;
use std::str::FromStr;

use crate::blocked::GridBuilder;
use crate::coord::{Coord, Shape};
use crate::gf2::{self, Span};
use crate::text::{Call, ParseLayoutError, write_coords};

/// Where the elements of a tile lie in shared memory: an injective linear map over GF(2) from offsets to coordinates.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedLayout {
    shape: Shape,
    offset: Vec<u64>,
}

impl SharedLayout {
    /// The layout in which the element at offset `1 << i` has coordinate `bases[i]`; the bases are independent.
    pub fn from_bases(shape: &[u32], bases: &[Coord]) -> SharedLayout {
        let shape = Shape::new(shape);
        SharedLayout::from_columns(shape, bases.iter().map(|&c| shape.flatten(c)).collect())
    }

    pub(crate) fn from_columns(shape: Shape, offset: Vec<u64>) -> SharedLayout {
        assert_eq!(gf2::rank(&offset), offset.len(), "bases of a shared layout must be independent");
        SharedLayout { shape, offset }
    }

    /// Row-major, without swizzle.
    pub fn row_major(shape: &[u32]) -> SharedLayout {
        let shape = Shape::new(shape);
        SharedLayout { shape, offset: (0..shape.bits()).map(|bit| 1 << bit).collect() }
    }

    /// Contiguous along `order[0]`, then `order[1]`, ..., with groups of `vector` elements along the fastest axis
    /// permuted by XOR with `row / per_phase % max_phase`, where a row is a step along `order[1]`.
    pub fn swizzled(shape: &[u32], vector: u32, per_phase: u32, max_phase: u32, order: &[u32]) -> SharedLayout {
        let mut layout = SharedLayout::boxed(Shape::new(shape), u32::MAX, order);
        layout.swizzle_rows(vector, per_phase, max_phase, order);
        layout
    }

    /// The layout that TMA writes and `wgmma` reads: contiguous along `order[0]` in boxes `swizzle_bytes` (128, 64 or
    /// 32) wide, each box holding all rows, 16-byte chunks permuted within 8 rows. With 0 there are no boxes and no
    /// swizzle. See [`SharedLayout::nvmma_swizzle`] for the width that fits a tile.
    pub fn nvmma(shape: &[u32], bits: u32, swizzle_bytes: u32, order: &[u32]) -> SharedLayout {
        assert!(
            matches!(swizzle_bytes, 0 | 32 | 64 | 128),
            "the swizzle is 0, 32, 64 or 128 bytes, got {swizzle_bytes}"
        );
        if swizzle_bytes == 0 {
            return SharedLayout::boxed(Shape::new(shape), u32::MAX, order);
        }
        let width = swizzle_bytes * 8 / bits;
        assert!(
            shape[order[0] as usize] >= width,
            "a row of shape {shape:?} with {bits}-bit elements is shorter than the swizzle of {swizzle_bytes} bytes"
        );
        let mut layout = SharedLayout::boxed(Shape::new(shape), width, order);
        layout.swizzle_rows(128 / bits, 128 / swizzle_bytes, swizzle_bytes / 16, order);
        layout
    }

    /// The widest swizzle (128, 64, 32 bytes, or 0 for none) that a row of `row` elements of `bits` bits has room for.
    pub fn nvmma_swizzle(row: u32, bits: u32) -> u32 {
        [128, 64, 32].into_iter().find(|&bytes| u64::from(row) * u64::from(bits) >= u64::from(bytes) * 8).unwrap_or(0)
    }

    /// The swizzle in bytes and the contiguous axis with which [`SharedLayout::nvmma`] gives this layout (for elements
    /// of `bits` bits): what a `wgmma` descriptor or a tensor map needs. `None` if the layout is no such one.
    pub fn as_nvmma(&self, bits: u32) -> Option<(u32, u32)> {
        let rank = self.shape().len() as u32;
        // Unswizzled last: a single chunk per row looks alike with and without.
        let forms = [128, 64, 32, 0].into_iter().flat_map(|swizzle| (0..rank).rev().map(move |axis| (swizzle, axis)));
        forms.into_iter().find(|&(swizzle, axis)| {
            let others = (0..rank).rev().filter(|&other| other != axis);
            let order: Vec<u32> = [axis].into_iter().chain(others).collect();
            let row = u64::from(self.shape()[axis as usize]) * u64::from(bits);
            row >= u64::from(swizzle) * 8 && SharedLayout::nvmma(self.shape(), bits, swizzle, &order) == *self
        })
    }

    /// The coordinates at offsets 1, 2, 4, ...
    pub fn bases(&self) -> Vec<Coord> {
        self.offset.iter().map(|&v| self.shape.unflatten(v)).collect()
    }

    /// The shape of the tile.
    pub fn shape(&self) -> &[u32] {
        self.shape.dims()
    }

    /// The number of elements in memory.
    pub fn elements(&self) -> u32 {
        1 << self.offset.len()
    }

    /// The size in bytes for elements of `bits` bits.
    pub fn bytes(&self, bits: u32) -> u32 {
        (u64::from(self.elements()) * u64::from(bits)).div_ceil(8) as u32
    }

    /// The coordinate of the element at `offset`.
    pub fn coords(&self, offset: u32) -> Coord {
        self.shape.unflatten(gf2::apply(&self.offset, offset.into()))
    }

    /// The offset of the element at `coord`; `None` if the layout leaves it out.
    pub fn offset(&self, coord: Coord) -> Option<u32> {
        gf2::solve(&self.offset, self.shape.flatten(coord)).map(|offset| offset as u32)
    }

    /// The layout of the transposed tile in the same memory: axis `i` of the result is axis `permutation[i]` of this.
    pub fn transpose(&self, permutation: &[u32]) -> SharedLayout {
        let dims: Vec<u32> = permutation.iter().map(|&axis| self.shape()[axis as usize]).collect();
        let permuted = |coord: Coord| {
            let mut to = Coord::ZERO;
            for (i, &axis) in permutation.iter().enumerate() {
                to[i] = coord[axis as usize];
            }
            to
        };
        SharedLayout::from_bases(&dims, &self.bases().into_iter().map(permuted).collect::<Vec<Coord>>())
    }

    /// The layout of the tile read in row-major order as another shape of the same size, in the same memory.
    pub fn reshape(&self, shape: &[u32]) -> SharedLayout {
        let to = Shape::new(shape);
        assert_eq!(to.bits(), self.shape.bits(), "reshape of {:?} to {shape:?} changes the size", self.shape());
        SharedLayout { shape: to, offset: self.offset.clone() }
    }

    /// From row-major indices of elements to offsets.
    pub(crate) fn inverse(&self) -> Span {
        Span::of(self.offset.iter().copied())
    }

    /// Contiguous along the axes in `order`, in boxes of `width` along the fastest.
    fn boxed(shape: Shape, width: u32, order: &[u32]) -> SharedLayout {
        assert_eq!(order.len(), shape.dims().len(), "the order of a shared layout names each axis once");
        let Some((&fastest, slower)) = order.split_first() else { return SharedLayout { shape, offset: Vec::new() } };
        let mut grid = GridBuilder::new(shape);
        let inner = shape.dims()[fastest as usize].min(width);
        let mut offset: Vec<u64> = (0..inner.trailing_zeros()).map(|_| grid.take(fastest as usize)).collect();
        offset.extend(grid.rest(slower));
        offset.extend(grid.rest(&[fastest]));
        SharedLayout::from_columns(shape, offset)
    }

    fn swizzle_rows(&mut self, vector: u32, per_phase: u32, max_phase: u32, order: &[u32]) {
        assert!(
            [vector, per_phase, max_phase].iter().all(|n| n.is_power_of_two()),
            "a swizzle's parameters are powers of two, got {vector}, {per_phase}, {max_phase}"
        );
        let &[columns, rows, ..] = order else { return };
        let (columns, rows) = (columns as usize, rows as usize);
        let row_mask = self.shape.axis_mask(rows);
        for basis in &mut self.offset {
            let row = (*basis & row_mask) >> self.shape.shift(rows);
            let phase = (row / u64::from(per_phase)) % u64::from(max_phase);
            let column = phase * u64::from(vector) % u64::from(self.shape.dims()[columns]);
            *basis ^= column << self.shape.shift(columns);
        }
    }
}

impl fmt::Display for SharedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared(shape {:?}, offset ", self.shape())?;
        write_coords(f, &self.bases(), self.shape().len())?;
        f.write_str(")")
    }
}

impl fmt::Debug for SharedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SharedLayout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<SharedLayout, ParseLayoutError> {
        let call = Call::parse(text)?;
        call.require(call.name == "shared", "expected a shared layout")?;
        let shape = call.shape()?;
        let bases = call.coords("offset", &shape)?;
        let flat = Shape::new(&shape);
        let columns: Vec<u64> = bases.iter().take(64).map(|&c| flat.flatten(c)).collect();
        call.require(bases.len() <= 32 && gf2::rank(&columns) == bases.len(), "the bases must be independent")?;
        Ok(SharedLayout::from_columns(flat, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzle_matches_its_formula() {
        for (vector, per_phase, max_phase) in [(8, 1, 8), (4, 2, 4), (1, 1, 1), (8, 4, 2)] {
            let layout = SharedLayout::swizzled(&[32, 64], vector, per_phase, max_phase, &[1, 0]);
            for row in 0..32 {
                for column in 0..64 {
                    let phase = row / per_phase % max_phase;
                    let offset = row * 64 + ((column / vector) ^ phase) * vector + column % vector;
                    assert_eq!(layout.offset([row, column].into()), Some(offset));
                    assert_eq!(layout.coords(offset), Coord::from([row, column]));
                }
            }
            let transposed = SharedLayout::swizzled(&[64, 32], vector, per_phase, max_phase, &[0, 1]);
            assert_eq!(layout.transpose(&[1, 0]), transposed);
        }
    }

    #[test]
    fn hardware_swizzle_is_an_xor_of_address_bits() {
        // Within each box: byte address bits 4.. are XORed with bits 7.., for as many bits as chunks need.
        for (swizzle, bits) in [(128, 16), (64, 16), (32, 16), (128, 8), (128, 32)] {
            let width = swizzle * 8 / bits;
            let layout = SharedLayout::nvmma(&[16, 2 * width], bits, swizzle, &[1, 0]);
            for row in 0..16 {
                for column in 0..2 * width {
                    let plain = (column / width * 16 * width + row * width + column % width) * bits / 8;
                    let swizzled = plain ^ ((plain >> 7 & (swizzle / 16 - 1)) << 4);
                    assert_eq!(layout.offset([row, column].into()), Some(swizzled * 8 / bits));
                }
            }
        }
        let tile = SharedLayout::nvmma(&[64, 128], 16, 128, &[0, 1]);
        assert_eq!(tile.as_nvmma(16), Some((128, 0)));
        assert_eq!(SharedLayout::nvmma(&[64, 32], 16, 64, &[1, 0]).as_nvmma(16), Some((64, 1)));
        assert_eq!(SharedLayout::swizzled(&[64, 64], 4, 1, 4, &[1, 0]).as_nvmma(16), None);
        assert_eq!(SharedLayout::nvmma_swizzle(64, 16), 128);
        assert_eq!(SharedLayout::nvmma_swizzle(32, 16), 64);
        assert_eq!(SharedLayout::nvmma_swizzle(8, 16), 0);
    }

    #[test]
    fn text_round_trip() {
        let layout = SharedLayout::swizzled(&[4, 8], 2, 1, 4, &[1, 0]);
        assert_eq!(layout.to_string(), "shared(shape [4, 8], offset [[0, 1], [0, 2], [0, 4], [1, 2], [2, 4]])");
        assert_eq!(layout.to_string().parse(), Ok(layout));
        assert!("shared(shape [4], offset [[1], [1]])".parse::<SharedLayout>().is_err());
    }
}

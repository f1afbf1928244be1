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

    /// The offset of the element with a row-major index; `None` if the layout leaves it out.
    pub fn offset_of(&self, index: u32) -> Option<u32> {
        gf2::solve(&self.offset, u64::from(index)).map(|offset| offset as u32)
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

    /// The part of the tile that starts at `start` and has the sides `shape`, and the offset at which it begins. `None`
    /// unless the part lies in one piece that begins at a multiple of its size, and is swizzled as if it were alone.
    pub fn slice(&self, start: &[u32], shape: &[u32]) -> Option<(u32, SharedLayout)> {
        let sides = || shape.iter().zip(self.shape());
        let fits = shape.len() == self.shape().len()
            && start.len() == shape.len()
            && sides().all(|(part, whole)| part.is_power_of_two() && part <= whole)
            && sides().zip(start).all(|((part, whole), at)| at % part == 0 && at < whole);
        if !fits {
            return None;
        }
        let part = Shape::new(shape);
        let size = part.bits() as usize;
        let low = self.offset.get(..size)?;
        let inside = |&basis: &u64| {
            let coord = self.shape.unflatten(basis);
            shape.iter().enumerate().all(|(axis, side)| coord[axis] < *side).then(|| part.flatten(coord))
        };
        let columns: Option<Vec<u64>> = low.iter().map(inside).collect();
        // The offset of `start` is a sum of higher bits, since the lower ones reach every element of the part at the
        // origin; a swizzle that depends on `start` would show as lower bits.
        let begin = self.offset(start.into())?;
        (begin % (1 << size) == 0).then_some(())?;
        Some((begin, SharedLayout::from_columns(part, columns?)))
    }

    /// The offsets of all elements in row-major order; `None` if the layout leaves some out.
    pub fn offsets(&self) -> Option<Vec<u32>> {
        let inverse = self.inverse();
        let mut offsets = vec![0u32];
        for bit in 0..self.shape.bits() {
            let step = inverse.express(1 << bit)? as u32;
            offsets.extend_from_within(..);
            let half = offsets.len() / 2;
            offsets[half..].iter_mut().for_each(|offset| *offset ^= step);
        }
        Some(offsets)
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
        let shape = call.shape()?;
        match call.name.as_str() {
            "shared" => {}
            "row_major" => return Ok(SharedLayout::row_major(&shape)),
            "swizzled" | "nvmma" => return read_constructor(&call, &shape),
            _ => call.require(false, "expected a shared layout")?,
        }
        let bases = call.coords("offset", &shape)?;
        let flat = Shape::new(&shape);
        let columns: Vec<u64> = bases.iter().take(64).map(|&c| flat.flatten(c)).collect();
        call.require(bases.len() <= 32 && gf2::rank(&columns) == bases.len(), "the bases must be independent")?;
        Ok(SharedLayout::from_columns(flat, columns))
    }
}

/// `swizzled(shape [64, 64], vector 8, per_phase 1, max_phase 8, order [1, 0])` or
/// `nvmma(shape [64, 64], bits 16, swizzle 128, order [1, 0])`.
fn read_constructor(call: &Call, shape: &[u32]) -> Result<SharedLayout, ParseLayoutError> {
    let order = call.numbers("order")?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    call.require(sorted.into_iter().eq(0..shape.len() as u32), "order must name each axis once")?;
    if call.name == "swizzled" {
        let [vector, per_phase, max_phase] = ["vector", "per_phase", "max_phase"].map(|key| call.power_of_two(key));
        return Ok(SharedLayout::swizzled(shape, vector?, per_phase?, max_phase?, &order));
    }
    let (bits, swizzle) = (call.number("bits")?, call.number("swizzle")?);
    call.require(matches!(bits, 8 | 16 | 32), "bits must be 8, 16 or 32")?;
    call.require(matches!(swizzle, 0 | 32 | 64 | 128), "the swizzle must be 0, 32, 64 or 128 bytes")?;
    let row = order.first().map_or(1, |&axis| shape[axis as usize]);
    call.require(u64::from(row) * u64::from(bits) >= u64::from(swizzle) * 8, "a row must be as wide as the swizzle")?;
    Ok(SharedLayout::nvmma(shape, bits, swizzle, &order))
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
    fn slices_lie_in_one_piece() {
        let layout = SharedLayout::nvmma(&[64, 128], 16, 128, &[1, 0]);
        // Whole atoms of eight rows, and the second box.
        let atom = SharedLayout::nvmma(&[8, 64], 16, 128, &[1, 0]);
        assert_eq!(layout.slice(&[16, 64], &[8, 64]), Some((64 * 64 + 16 * 64, atom)));
        assert_eq!(layout.slice(&[4, 0], &[4, 64]), None, "the rows are swizzled unlike the first four");
        assert_eq!(layout.slice(&[0, 16], &[64, 16]), None, "the columns lie apart");
        assert_eq!(layout.slice(&[0, 0], &[128, 64]), None, "there are fewer rows");
        for (start, shape) in [([16u32, 64u32], [8u32, 64u32]), ([32, 0], [32, 64])] {
            let (begin, part) = layout.slice(&start, &shape).expect("it is in one piece");
            for row in 0..shape[0] {
                for column in 0..shape[1] {
                    let within = part.offset([row, column].into()).expect("it is in the part");
                    assert_eq!(layout.offset([start[0] + row, start[1] + column].into()), Some(begin + within));
                }
            }
        }
    }

    #[test]
    fn offsets_are_those_of_each_element() {
        let layout = SharedLayout::nvmma(&[8, 4, 32], 16, 64, &[2, 0, 1]);
        let offsets = layout.offsets().expect("it holds every element");
        for (index, offset) in offsets.into_iter().enumerate() {
            assert_eq!(layout.offset(layout.shape.unflatten(index as u64)), Some(offset));
        }
        let half = SharedLayout::from_bases(&[4], &[[2].into()]);
        assert_eq!(half.offsets(), None);
    }

    #[test]
    fn constructors_are_read() {
        let read = |text: &str| text.parse::<SharedLayout>();
        assert_eq!(
            read("swizzled(shape [64, 32], vector 8, per_phase 2, max_phase 4, order [1, 0])"),
            Ok(SharedLayout::swizzled(&[64, 32], 8, 2, 4, &[1, 0]))
        );
        assert_eq!(
            read("nvmma(shape [64, 128], bits 16, swizzle 128, order [0, 1])"),
            Ok(SharedLayout::nvmma(&[64, 128], 16, 128, &[0, 1]))
        );
        assert_eq!(read("row_major(shape [4, 8])"), Ok(SharedLayout::row_major(&[4, 8])));
        for wrong in [
            "linear(shape [4], reg [], lane [[0],[0],[0],[0],[0]], warp [])",
            "swizzled(shape [64, 32], vector 8, per_phase 2, max_phase 4, order [1, 1])",
            "swizzled(shape [64, 32], vector 3, per_phase 2, max_phase 4, order [1, 0])",
            "nvmma(shape [64, 32], bits 16, swizzle 128, order [1, 0])",
            "nvmma(shape [64, 64], bits 0, swizzle 128, order [1, 0])",
            "nvmma(shape [64, 64], bits 16, swizzle 96, order [1, 0])",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn text_round_trip() {
        let layout = SharedLayout::swizzled(&[4, 8], 2, 1, 4, &[1, 0]);
        assert_eq!(layout.to_string(), "shared(shape [4, 8], offset [[0, 1], [0, 2], [0, 4], [1, 2], [2, 4]])");
        assert_eq!(layout.to_string().parse(), Ok(layout));
        assert!("shared(shape [4], offset [[1], [1]])".parse::<SharedLayout>().is_err());
    }
}

//! The fragments of `mma.sync` and `wgmma` in the registers of a warp.
//!
//! An element's row, or column of B, is its lane divided by four; of A and of C and D as f32 there are eight rows in
//! one register and eight in another. Four lanes are adjacent along K. The content of a lane's register of 32 bits,
//! one, two or four factors, is a word: rows of A are eight words, and so are columns of B.

use crate::alu::Lanes;
use crate::numeric::tile::{COLUMNS, ROWS};

/// The rows of A, whose registers alternate between the upper and the lower eight rows.
#[inline(always)]
pub fn rows<'l, T: Copy + Default, const W: usize>(
    registers: impl Iterator<Item = &'l Lanes>,
    of: impl Fn(u64) -> T,
) -> [[T; W]; ROWS] {
    let mut rows = [[T::default(); W]; ROWS];
    for (r, lanes) in registers.enumerate() {
        for (row, lanes) in rows[r % 2 * 8..][..8].iter_mut().zip(lanes.as_chunks::<4>().0) {
            for (word, value) in row[r / 2 * 4..][..4].iter_mut().zip(lanes) {
                *word = of(*value);
            }
        }
    }
    rows
}

/// The columns of B: for each word the eight of them.
#[inline(always)]
pub fn columns<'l, T: Copy + Default, const W: usize>(
    registers: impl Iterator<Item = &'l Lanes>,
    of: impl Fn(u64) -> T,
) -> [[T; COLUMNS]; W] {
    let mut columns = [[T::default(); COLUMNS]; W];
    for (r, lanes) in registers.enumerate() {
        let lanes = lanes.as_chunks::<4>().0;
        for (q, word) in columns[r * 4..][..4].iter_mut().enumerate() {
            *word = std::array::from_fn(|column| of(lanes[column][q]));
        }
    }
    columns
}

/// Elements of C with one element per register.
#[inline(always)]
pub fn starts<'l, T: Copy + Default>(
    registers: impl Iterator<Item = &'l Lanes>,
    of: impl Fn(u64) -> T,
) -> [[T; COLUMNS]; ROWS] {
    let mut starts = [[T::default(); COLUMNS]; ROWS];
    for (r, lanes) in registers.enumerate() {
        for (row, lanes) in starts[r / 2 * 8..][..8].iter_mut().zip(lanes.as_chunks::<4>().0) {
            for (q, value) in lanes.iter().enumerate() {
                row[2 * q + r % 2] = of(*value);
            }
        }
    }
    starts
}

/// Elements of C with two halves per register.
#[inline(always)]
pub fn half_starts<'l, T: Copy + Default>(
    registers: impl Iterator<Item = &'l Lanes>,
    of: impl Fn(u16) -> T,
) -> [[T; COLUMNS]; ROWS] {
    let mut starts = [[T::default(); COLUMNS]; ROWS];
    for (r, lanes) in registers.enumerate() {
        for (row, lanes) in starts[r * 8..][..8].iter_mut().zip(lanes.as_chunks::<4>().0) {
            for (pair, value) in row.as_chunks_mut::<2>().0.iter_mut().zip(lanes) {
                *pair = [of(*value as u16), of((*value >> 16) as u16)];
            }
        }
    }
    starts
}

/// Register `r` of D, if each holds one element.
#[inline(always)]
pub fn result<T: Copy + Into<u64>>(d: &[[T; COLUMNS]; ROWS], r: usize, lanes: &mut Lanes) {
    for (lanes, row) in lanes.as_chunks_mut::<4>().0.iter_mut().zip(&d[r / 2 * 8..]) {
        for (q, lane) in lanes.iter_mut().enumerate() {
            *lane = row[2 * q + r % 2].into();
        }
    }
}

/// Register `r` of D, if each holds two halves.
#[inline(always)]
pub fn half_result(d: &[[u32; COLUMNS]; ROWS], r: usize, lanes: &mut Lanes) {
    for (lanes, row) in lanes.as_chunks_mut::<4>().0.iter_mut().zip(&d[r * 8..]) {
        for (lane, [low, high]) in lanes.iter_mut().zip(row.as_chunks::<2>().0) {
            *lane = u64::from(low | high << 16);
        }
    }
}

/// A register of eight rows of 16 bytes, as `ldmatrix` loads them: a word of a row in each lane, or two halves of a column.
#[inline(always)]
pub fn loaded(rows: &[[u8; 16]; 8], transposed: bool, lanes: &mut Lanes) {
    if !transposed {
        for (lane, word) in lanes.iter_mut().zip(rows.as_flattened().as_chunks::<4>().0) {
            *lane = u32::from_le_bytes(*word).into();
        }
        return;
    }
    for (q, [low, high]) in rows.as_chunks::<2>().0.iter().enumerate() {
        for (column, (low, high)) in low.as_chunks::<2>().0.iter().zip(high.as_chunks::<2>().0).enumerate() {
            lanes[4 * column + q] = u32::from_le_bytes([low[0], low[1], high[0], high[1]]).into();
        }
    }
}

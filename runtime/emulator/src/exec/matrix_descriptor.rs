//! Where the elements of a `wgmma` operand lie in shared memory.
//!
//! A descriptor holds the start address, two distances and the swizzle. Pieces of 16 bytes (8 rows of them are a core
//! matrix) follow one another by these rules, before the swizzle; W is the width of the swizzle in bytes:
//!
//! | | K innermost | M or N innermost (16-bit elements) |
//! | --- | --- | --- |
//! | swizzled | rows W apart, groups of 8 rows `stride` apart | blocks of W bytes of M or N `leading` apart; in them rows of k W apart, groups of 8 `stride` apart |
//! | not swizzled | rows 16 bytes apart, groups of 8 rows `stride` apart, the 16-byte columns `leading` apart | groups of 8 of M or N `stride` apart; in them rows of k 16 bytes apart, groups of 8 `leading` apart |

use std::ops::Range;

use crate::numeric::tile::WORDS;
use crate::tensor_map::swizzled;

/// A decoded descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    start: u32,
    leading: u32,
    stride: u32,
    /// Width of the swizzle in bytes, 0 for none.
    swizzle: u32,
    /// Bytes of an element.
    size: u32,
    /// True if M or N is innermost.
    transposed: bool,
}

impl Descriptor {
    /// Reads a descriptor for elements of `size` bytes; the error names an unsupported feature.
    pub fn new(bits: u64, size: u32, transposed: bool) -> Result<Descriptor, String> {
        let field = |at: u32| ((bits >> at) as u32 & 0x3fff) << 4;
        if bits >> 49 & 7 != 0 {
            return Err(format!("the matrix descriptor {bits:#018x} has a base offset"));
        }
        let swizzle = match bits >> 62 {
            0 => 0,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        Ok(Descriptor { start: field(0), leading: field(16), stride: field(32), swizzle, size, transposed })
    }

    /// The address of an element before the swizzle.
    fn plain(&self, row: u32, k: u32) -> u32 {
        let (outer, inner) = if self.transposed { (k, row) } else { (row, k) };
        let inner = inner * self.size;
        let width = self.swizzle.max(16);
        let within = outer % 8 * width + (inner & (width - 1));
        let (by_eights, by_blocks) = match (self.transposed, self.swizzle) {
            (true, 0) => (self.leading, self.stride),
            (true, _) | (false, 0) => (self.stride, self.leading),
            // K of one instruction never leaves the swizzled row.
            (false, _) => (self.stride, 0),
        };
        self.start + outer / 8 * by_eights + (inner >> width.trailing_zeros()) * by_blocks + within
    }

    /// The addresses of the pieces of 16 bytes that hold rows (or columns) and 32 bytes of k: eight rows after eight rows, and
    /// of these piece by piece, along k first if k is innermost. Eight rows are 16 pieces in any case.
    pub fn pieces(&self, rows: u32) -> Vec<u32> {
        let depth = 32 / self.size;
        let per = 16 / self.size;
        let piece = |row, k| swizzled(self.plain(row, k), self.swizzle);
        let mut pieces = Vec::with_capacity(rows as usize * 2);
        for eight in (0..rows).step_by(8) {
            if self.transposed {
                pieces.extend((0..depth).map(|k| piece(eight, k)));
            } else {
                pieces.extend((0..16).map(|at| piece(eight + at / 2, at % 2 * per)));
            }
        }
        pieces
    }

    /// The words of eight rows, which these pieces hold: of each word the eight.
    pub fn words(&self, memory: &[u8], pieces: &[u32; 16]) -> [[u32; 8]; WORDS] {
        let mut words = [[0; 8]; WORDS];
        for (at, piece) in pieces.iter().enumerate() {
            let bytes = &memory[*piece as usize..][..16];
            if self.transposed {
                for (row, half) in bytes.as_chunks::<2>().0.iter().enumerate() {
                    words[at / 2][row] |= u32::from(u16::from_le_bytes(*half)) << (16 * (at % 2));
                }
            } else {
                for (i, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
                    words[at % 2 * 4 + i][at / 2] = u32::from_le_bytes(*word);
                }
            }
        }
        words
    }
}

/// The ranges of memory that pieces of 16 bytes take.
pub fn ranges(pieces: &[u32]) -> Vec<Range<usize>> {
    let mut starts = pieces.to_vec();
    // A swizzle swaps pairs: without one the pieces are mostly in order.
    starts.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.sort_unstable());
    starts.sort_unstable();
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(starts.len());
    for start in starts {
        let start = start as usize;
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = start + 16,
            _ => ranges.push(start..start + 16),
        }
    }
    ranges
}

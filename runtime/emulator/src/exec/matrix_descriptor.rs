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
    /// Reads a descriptor for elements of `size` bytes; the error says what is not supported.
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
        let within = outer % 8 * width + inner % width;
        let (by_eights, by_blocks) = match (self.transposed, self.swizzle) {
            (true, 0) => (self.leading, self.stride),
            (true, _) | (false, 0) => (self.stride, self.leading),
            // K of one instruction never leaves the swizzled row.
            (false, _) => (self.stride, 0),
        };
        self.start + outer / 8 * by_eights + inner / width * by_blocks + within
    }

    /// The address of an element: row of A or column of B, and k.
    pub fn address(&self, row: u32, k: u32) -> u32 {
        swizzled(self.plain(row, k), self.swizzle)
    }

    /// The ranges of memory that rows (or columns) and 32 bytes of k take, in pieces of 16 bytes.
    pub fn pieces(&self, rows: u32, depth: u32) -> Vec<Range<usize>> {
        let per = 16 / self.size;
        let (rows_by, depth_by) = if self.transposed { (per, 1) } else { (1, per) };
        let mut starts: Vec<usize> = (0..rows)
            .step_by(rows_by as usize)
            .flat_map(|row| (0..depth).step_by(depth_by as usize).map(move |k| (row, k)))
            .map(|(row, k)| self.address(row, k) as usize)
            .collect();
        starts.sort_unstable();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for start in starts {
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = start + 16,
                _ => ranges.push(start..start + 16),
            }
        }
        ranges
    }
}

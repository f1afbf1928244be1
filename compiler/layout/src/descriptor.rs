//! Matrix descriptors: how `wgmma` finds an operand in shared memory.
//!
//! The descriptor holds the address of the first element, two distances and the swizzle. `W` is the width of the swizzle
//! in bytes; the other axis than K is M for operand A and N for operand B:
//!
//! | innermost | rows, each of `W` bytes | leading distance | stride distance | next step of K |
//! | --- | --- | --- | --- | --- |
//! | K | of the other axis; blocks of `W` bytes of K follow each other | not used | 8 rows | 32 bytes on; in the next block after `W` bytes |
//! | the other axis (elements of 16 bits) | of K; blocks of `W` bytes of the other axis follow each other | one block | 8 rows | 16 rows on |
//!
//! A step of K is 32 bytes of it, whatever the elements. The hardware applies the swizzle to whole addresses, so a buffer
//! starts at a multiple of 8 rows, and distances are those before the swizzle.

use crate::shared::SharedLayout;

/// Where an operand of `wgmma` lies, from the start of its buffer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixDescriptor {
    /// Width of the swizzle in bytes: 32, 64 or 128.
    pub swizzle: u32,
    /// Whether the other axis is innermost instead of K.
    pub transposed: bool,
    /// Bytes of an element.
    size: u32,
    /// Rows of `swizzle` bytes in a block.
    rows: u32,
}

impl MatrixDescriptor {
    /// How `wgmma` reads a matrix with elements of `bits` bits in this layout, with K along `k_axis`. `None` if it
    /// cannot.
    pub fn of(layout: &SharedLayout, bits: u32, k_axis: usize) -> Option<MatrixDescriptor> {
        let shape = layout.shape();
        if shape.len() != 2 || k_axis > 1 || !matches!(bits, 8 | 16 | 32) {
            return None;
        }
        let (swizzle, inner) = layout.as_nvmma(bits)?;
        let transposed = inner as usize != k_axis;
        let rows = shape[1 - inner as usize];
        let known = swizzle > 0 && rows.is_multiple_of(8) && (bits == 16 || !transposed);
        known.then_some(MatrixDescriptor { swizzle, transposed, size: bits / 8, rows })
    }

    /// The descriptor without the address: the distances and the swizzle.
    pub fn fields(&self) -> u64 {
        let kind = match self.swizzle {
            128 => 1,
            64 => 2,
            _ => 3,
        };
        // An unused distance counts as 1.
        let leading = if self.transposed { self.rows * self.swizzle } else { 16 };
        let stride = 8 * self.swizzle;
        u64::from(leading >> 4) << 16 | u64::from(stride >> 4) << 32 | kind << 62
    }

    /// The distance in bytes from the start of the buffer to the start of a piece: `other` along the axis other than K
    /// and `k` along K, both multiples of the instruction's shape.
    pub fn start(&self, other: u32, k: u32) -> u32 {
        let (row, inner) = if self.transposed { (k, other) } else { (other, k) };
        let inner = inner * self.size;
        inner / self.swizzle * self.rows * self.swizzle + row * self.swizzle + inner % self.swizzle
    }

    /// The alignment of the buffer's address.
    pub fn align(&self) -> u32 {
        8 * self.swizzle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Coord;

    fn descriptor(shape: [u32; 2], bits: u32, swizzle: u32, inner: u32, k_axis: usize) -> MatrixDescriptor {
        let layout = SharedLayout::nvmma(&shape, bits, swizzle, &[inner, 1 - inner]);
        MatrixDescriptor::of(&layout, bits, k_axis).expect("wgmma reads it")
    }

    /// Leading and stride distance and the kind of swizzle.
    fn parts(d: MatrixDescriptor) -> (u64, u64, u64) {
        ((d.fields() >> 16 & 0x3fff) << 4, (d.fields() >> 32 & 0x3fff) << 4, d.fields() >> 62)
    }

    #[test]
    fn forms_that_were_checked_on_hardware() {
        // A: [M, K] with K innermost; rows of 128, 64 and 32 bytes.
        for (k, bits, swizzle, stride, kind) in [
            (64, 16, 128, 1024, 1),
            (32, 32, 128, 1024, 1),
            (128, 8, 128, 1024, 1),
            (32, 16, 64, 512, 2),
            (16, 16, 32, 256, 3),
        ] {
            let d = descriptor([128, k], bits, swizzle, 1, 1);
            assert_eq!(parts(d), (16, stride, kind));
            assert!(!d.transposed);
            assert_eq!(d.start(0, 256 / bits), if k * bits > 256 { 32 } else { 128 * swizzle });
            assert_eq!(d.start(64, 0), 64 * swizzle);
            assert_eq!(d.align(), stride as u32);
        }
        // B: [K, N] with N innermost, in blocks of 64 columns.
        let d = descriptor([64, 256], 16, 128, 1, 0);
        assert_eq!(parts(d), (64 * 128, 1024, 1));
        assert!(d.transposed);
        assert_eq!((d.start(0, 16), d.start(64, 0), d.start(128, 48)), (2048, 64 * 128, 2 * 64 * 128 + 48 * 128));
        // K of attention as B: [K, N] stored as [N, K] with 128 of K, in two blocks of 64.
        let d = descriptor([128, 96 + 32], 16, 128, 0, 0);
        assert_eq!(parts(d), (16, 1024, 1));
        assert_eq!((d.start(0, 48), d.start(0, 64), d.start(0, 80)), (96, 128 * 128, 128 * 128 + 32));
    }

    #[test]
    fn pieces_start_where_the_layout_has_them() {
        for (shape, bits, swizzle, inner, k_axis) in
            [([64, 128], 16, 128, 1, 1), ([64, 128], 16, 64, 1, 0), ([128, 64], 8, 32, 1, 1), ([32, 64], 32, 128, 0, 0)]
        {
            let layout = SharedLayout::nvmma(&shape, bits, swizzle, &[inner, 1 - inner]);
            let d = MatrixDescriptor::of(&layout, bits, k_axis).expect("wgmma reads it");
            for other in (0..shape[1 - k_axis]).step_by(64) {
                for k in (0..shape[k_axis]).step_by(256 / bits as usize) {
                    let mut coord = Coord::ZERO;
                    (coord[k_axis], coord[1 - k_axis]) = (k, other);
                    // The swizzle moves 16 bytes within a row by the row's number, here a multiple of 8 or not.
                    let plain = d.start(other, k);
                    let mask = swizzle / 16 - 1;
                    let swizzled = plain ^ ((plain >> 7 & mask) << 4);
                    assert_eq!(layout.offset(coord).map(|at| at * bits / 8), Some(swizzled), "{shape:?} {other} {k}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let none = |layout: SharedLayout, bits, k_axis| assert_eq!(MatrixDescriptor::of(&layout, bits, k_axis), None);
        none(SharedLayout::row_major(&[64, 64]), 16, 1);
        none(SharedLayout::swizzled(&[64, 64], 4, 1, 8, &[1, 0]), 16, 1);
        none(SharedLayout::nvmma(&[64, 64], 8, 64, &[1, 0]), 8, 0);
        none(SharedLayout::nvmma(&[64, 64], 32, 128, &[1, 0]), 32, 0);
        none(SharedLayout::nvmma(&[4, 64], 16, 128, &[1, 0]), 16, 1);
        none(SharedLayout::nvmma(&[2, 64, 64], 16, 128, &[2, 1, 0]), 16, 2);
    }
}

//! `mma.sync`, `ldmatrix`, `stmatrix`.
//!
//! Floats are added as tensor cores add them (`numeric/tensor.rs`); f64 is a chain of fused multiply-adds. Integers are
//! exact: they wrap, or clamp with `.satfinite`.

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::types::bits;

use super::access::aligned;
use super::step::Step;
use crate::alu::Lanes;
use crate::code::{AddressOperand, Mma, Reg, Src, Window};
use crate::fault::{Access, FaultKind};
use crate::numeric::float::{Operation, bits32, directed64};
use crate::numeric::format::{self, Format, Round};
use crate::numeric::tensor;
use crate::numeric::tile::{self, COLUMNS, Left, ROWS, Right, Starts};

/// Elements in one register.
pub fn per_register(ty: Modifier) -> usize {
    match ty {
        F64 | F32 | Tf32 | S32 => 1,
        _ => 32 / bits(ty).unwrap_or(32) as usize,
    }
}

/// The bits of an element of a register, of a type that is multiplied on tensor cores.
pub fn raw(register: u64, index: usize, ty: Modifier) -> u32 {
    match ty {
        F16 | Bf16 => half_of(register, index),
        Tf32 => register as u32 >> 13,
        _ => byte_of(register, index),
    }
}

fn half_of(register: u64, index: usize) -> u32 {
    (register >> (16 * index)) as u32 & 0xffff
}

fn byte_of(register: u64, index: usize) -> u32 {
    (register >> (8 * index)) as u32 & 0xff
}

/// The value of a whole number of 8 bits.
pub fn byte(bits: u32, ty: Modifier) -> i32 {
    if ty == S8 { i32::from(bits as i8) } else { bits as i32 }
}

impl Step<'_, '_> {
    pub(super) fn mma(&mut self, mma: &Mma) {
        match (mma.a_type, mma.k) {
            (F64, _) => self.wide(mma),
            (S8 | U8, _) => self.bytes(mma),
            (E4m3 | E5m2, _) => self.fp8(mma),
            (Tf32, _) => self.narrow::<8, 1>(mma, |bits, _| bits as u32 >> 13),
            (_, 8) => self.narrow::<8, 2>(mma, half_of),
            _ => self.narrow::<16, 2>(mma, half_of),
        }
    }

    /// The rows of A, of which each register holds so many elements.
    #[inline(always)]
    fn rows<T: Copy + Default, const K: usize, const PER: usize>(
        &self,
        mma: &Mma,
        of: impl Fn(u64, usize) -> T,
    ) -> [[T; K]; ROWS] {
        let mut rows = [[T::default(); K]; ROWS];
        for (r, source) in mma.a.iter().enumerate() {
            // Registers of A belong to the upper and the lower eight rows in turn.
            let (lanes, first) = (self.source(*source), r / 2 * 4 * PER);
            for (row, lanes) in rows[r % 2 * 8..][..8].iter_mut().zip(lanes.as_chunks::<4>().0) {
                for (elements, value) in row[first..].as_chunks_mut::<PER>().0.iter_mut().zip(lanes) {
                    *elements = std::array::from_fn(|j| of(*value, j));
                }
            }
        }
        rows
    }

    /// The columns of B: what stands at each place of the eight of them.
    #[inline(always)]
    fn columns<T: Copy + Default, const K: usize, const PER: usize>(
        &self,
        mma: &Mma,
        of: impl Fn(u64, usize) -> T,
    ) -> [[T; COLUMNS]; K] {
        let mut columns = [[T::default(); COLUMNS]; K];
        for (r, source) in mma.b.iter().enumerate() {
            let lanes = self.source(*source).as_chunks::<4>().0;
            for (q, places) in columns[r * 4 * PER..].as_chunks_mut::<PER>().0.iter_mut().take(4).enumerate() {
                for (j, places) in places.iter_mut().enumerate() {
                    *places = std::array::from_fn(|column| of(lanes[column][q], j));
                }
            }
        }
        columns
    }

    /// C, each register of which holds so many elements.
    #[inline(always)]
    fn starts<T: Copy + Default, const PER: usize>(&self, mma: &Mma, of: impl Fn(u64) -> T) -> [[T; COLUMNS]; ROWS] {
        let mut starts = [[T::default(); COLUMNS]; ROWS];
        for (r, source) in mma.c.iter().enumerate() {
            let lanes = self.source(*source);
            each_result::<PER>(r, |lane, shift, (row, column)| starts[row][column] = of(lanes[lane] >> shift));
        }
        starts
    }

    /// C as floats.
    #[inline(always)]
    fn floats(&self, mma: &Mma) -> Starts {
        match mma.c_type {
            F16 => self.starts::<_, 2>(mma, |bits| format::f16_value(bits as u16)),
            _ => self.starts::<_, 1>(mma, |bits| f32::from_bits(bits as u32)),
        }
    }

    /// Writes D.
    #[inline(always)]
    fn finish<const PER: usize>(&mut self, mma: &Mma, of: impl Fn(usize, usize) -> u64) {
        for (r, to) in mma.d.iter().enumerate() {
            let mut values: Lanes = [0; 32];
            each_result::<PER>(r, |lane, shift, (row, column)| values[lane] |= of(row, column) << shift);
            self.write_lanes(*to, u32::MAX, &values);
        }
    }

    /// Products of f64.
    fn wide(&mut self, mma: &Mma) {
        let a: [[f64; 16]; ROWS] = self.rows::<_, _, 1>(mma, |bits, _| f64::from_bits(bits));
        let b: [[f64; COLUMNS]; 16] = self.columns::<_, _, 1>(mma, |bits, _| f64::from_bits(bits));
        let c = self.starts::<_, 1>(mma, f64::from_bits);
        self.finish::<1>(mma, |row, column| {
            let pairs = a[row].iter().zip(&b).take(mma.k as usize);
            let fused =
                |sum, (x, y): (&f64, &[f64; COLUMNS])| directed64(Operation::Fma, *x, y[column], sum, Round::Nearest);
            pairs.fold(c[row][column], fused).to_bits()
        });
    }

    /// Products of integers.
    fn bytes(&mut self, mma: &Mma) {
        let a: [[i32; 32]; ROWS] = self.rows::<_, _, 4>(mma, |bits, j| byte(byte_of(bits, j), mma.a_type));
        let b = self.columns::<_, _, 4>(mma, |bits, j| byte(byte_of(bits, j), mma.b_type));
        let (c, products) = (self.starts::<_, 1>(mma, |bits| bits as i32), whole_products(&a, &b));
        self.finish::<1>(mma, |row, column| {
            whole(i64::from(c[row][column]) + i64::from(products[row][column]), mma.saturate).into()
        });
    }

    /// Products of f16, bf16 and tf32.
    fn narrow<const K: usize, const PER: usize>(&mut self, mma: &Mma, of: impl Fn(u64, usize) -> u32) {
        let format = format_of(mma.a_type);
        let (a, b) = (self.rows::<u32, K, PER>(mma, &of), self.columns::<u32, K, PER>(mma, &of));
        let (left, right) = (Left::new(&a, format), Right::new(&b, format));
        let c = self.floats(mma);
        if mma.d_type == F16 {
            let sums = tile::add(&left, &right, &c, 0..K, tensor::TO_F16);
            return self.finish::<2>(mma, |row, column| sums[row][column].to_f16().into());
        }
        let sums = tile::to_f32(&tile::add(&left, &right, &c, 0..K, tensor::TO_F32));
        self.finish::<1>(mma, |row, column| sums[row][column].into());
    }

    /// Products of fp8. Hopper makes f16 of the bytes, the first two of each four for the first of two products, and adds C in
    /// the end.
    fn fp8(&mut self, mma: &Mma) {
        let (a_type, b_type) = (mma.a_type, mma.b_type);
        let order = |place: usize| place % 16 / 2 * 4 + place % 2 + place / 16 * 2;
        let (a, b) = (self.rows::<u32, 32, 4>(mma, byte_of), self.columns::<u32, 32, 4>(mma, byte_of));
        let a: [[u32; 32]; ROWS] = a.map(|row| std::array::from_fn(|place| wider(row[order(place)], a_type)));
        let b: [[u32; COLUMNS]; 32] = std::array::from_fn(|place| b[order(place)].map(|byte| wider(byte, b_type)));
        let (left, right) = (Left::new(&a, &format::F16), Right::new(&b, &format::F16));
        let first = tile::add(&left, &right, &[[0.0; COLUMNS]; ROWS], 0..16, tensor::TO_F32);
        let first = tile::to_f32(&first).map(|row| row.map(f32::from_bits));
        let both = tile::to_f32(&tile::add(&left, &right, &first, 16..32, tensor::TO_F32));
        let c = self.floats(mma);
        self.finish::<1>(mma, |row, column| bits32(c[row][column] + f32::from_bits(both[row][column])).into());
    }

    pub(super) fn load_matrix(
        &mut self,
        to: &[Reg],
        address: AddressOperand,
        transposed: bool,
    ) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(address);
        self.count_rows((address.window, &addresses), to.len(), Access::Read);
        for (matrix, register) in to.iter().enumerate() {
            let mut rows = [[0u16; 8]; 8];
            for (i, row) in rows.iter_mut().enumerate() {
                let lane = (matrix * 8 + i) as u32;
                let at = addresses[lane as usize];
                let bytes = match self.plain_row(address.window, at) {
                    Some(bytes) => bytes,
                    None => {
                        aligned(address.window, Access::Read, at, 16).map_err(|kind| (kind, lane))?;
                        self.check((address.window, at), 16, lane, Access::Read)?;
                        self.read((address.window, at), 16, lane)?
                    }
                };
                for (value, pair) in row.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = u16::from_le_bytes(*pair);
                }
            }
            let pick = |lane: usize, j: usize| {
                if transposed { rows[lane % 4 * 2 + j][lane / 4] } else { rows[lane / 4][lane % 4 * 2 + j] }
            };
            let values: Lanes = std::array::from_fn(|lane| u64::from(pick(lane, 0)) | u64::from(pick(lane, 1)) << 16);
            self.write_lanes(*register, u32::MAX, &values);
        }
        Ok(())
    }

    /// The 16 bytes of a row in the block's own shared memory, if nothing has to be looked at.
    #[inline(always)]
    fn plain_row(&self, window: Window, at: u64) -> Option<&[u8]> {
        if window != Window::Shared || !at.is_multiple_of(16) || self.shared.hazards.is_some() {
            return None;
        }
        let (block, at) = self.shared.locate(at);
        self.shared.blocks[block].bytes.get(at as usize..)?.get(..16)
    }

    pub(super) fn store_matrix(
        &mut self,
        from: &[Src],
        address: AddressOperand,
        transposed: bool,
    ) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(address);
        self.count_rows((address.window, &addresses), from.len(), Access::Write);
        for (matrix, source) in from.iter().enumerate() {
            let values = *self.source(*source);
            let mut rows = [[0u8; 16]; 8];
            for (lane, value) in values.iter().enumerate() {
                for j in 0..2 {
                    let (row, column) =
                        if transposed { (lane % 4 * 2 + j, lane / 4) } else { (lane / 4, lane % 4 * 2 + j) };
                    let half = (value >> (16 * j)) as u16;
                    rows[row][2 * column..2 * column + 2].copy_from_slice(&half.to_le_bytes());
                }
            }
            for (i, row) in rows.iter().enumerate() {
                let lane = (matrix * 8 + i) as u32;
                let at = addresses[lane as usize];
                aligned(address.window, Access::Write, at, 16).map_err(|kind| (kind, lane))?;
                self.check((address.window, at), 16, lane, Access::Write)?;
                self.slot(Access::Write, (address.window, at), 16, lane)?.copy_from_slice(row);
            }
        }
        Ok(())
    }
}

/// Lane, shift, row and column of each element in register `r` of C or D, of which each register holds so many.
#[inline(always)]
pub fn each_result<const PER: usize>(r: usize, mut each: impl FnMut(usize, usize, (usize, usize))) {
    for row in 0..8 {
        for q in 0..4 {
            for j in 0..PER {
                let element = PER * r + j;
                each(4 * row + q, 16 * j, (row + 8 * (element / 2), 2 * q + element % 2));
            }
        }
    }
}

/// Sums of products of bytes.
pub fn whole_products<const K: usize>(a: &[[i32; K]; ROWS], b: &[[i32; COLUMNS]; K]) -> [[i32; COLUMNS]; ROWS] {
    let mut sums = [[0; COLUMNS]; ROWS];
    for (sums, row) in sums.iter_mut().zip(a) {
        for (x, ys) in row.iter().zip(b) {
            for (sum, y) in sums.iter_mut().zip(ys) {
                *sum += x * y;
            }
        }
    }
    sums
}

/// The bits of a sum of integers.
pub fn whole(value: i64, saturate: bool) -> u32 {
    if saturate { value.clamp(i32::MIN.into(), i32::MAX.into()) as u32 } else { value as u32 }
}

/// The bits of a byte of fp8 as f16.
fn wider(byte: u32, ty: Modifier) -> u32 {
    format::F16.narrow(format_of(ty).decode(byte), Round::Nearest)
}

/// The format of the factors of a product.
pub fn format_of(ty: Modifier) -> &'static Format {
    match ty {
        F16 => &format::F16,
        Bf16 => &format::BF16,
        E4m3 => &format::E4M3,
        E5m2 => &format::E5M2,
        _ => &tensor::TF32,
    }
}

//! `mma.sync`, `ldmatrix`, `stmatrix`.
//!
//! Floats are added as tensor cores add them (`numeric/tensor.rs`); f64 is a chain of FMAs. Integers are
//! exact: they wrap, or clamp with `.satfinite`.

use rtc_ptx::Modifier::{self, *};

use super::access::aligned;
use super::fragment;
use super::step::Step;
use crate::alu::Lanes;
use crate::code::{AddressOperand, Mma, Reg, Src, Window};
use crate::fault::{Access, FaultKind};
use crate::numeric::float::{Operation, bits32, directed64};
use crate::numeric::format::{self, Format, Round};
use crate::numeric::tensor;
use crate::numeric::tile::{self, COLUMNS, Columns, ROWS, Results, Rows, Starts, WORDS};

impl Step<'_, '_> {
    pub(super) fn mma(&mut self, mma: &Mma) {
        match mma.a_type {
            F64 => self.wide(mma),
            S8 | U8 => self.bytes(mma),
            E4m3 | E5m2 => self.fp8(mma),
            Tf32 => self.narrow::<1>(mma),
            _ => self.narrow::<2>(mma),
        }
    }

    fn registers<'s>(&'s self, list: &'s [Src]) -> impl Iterator<Item = &'s Lanes> {
        list.iter().map(|source| self.source(*source))
    }

    /// The words of A and B.
    #[inline(always)]
    fn words(&self, mma: &Mma) -> ([[u32; WORDS]; ROWS], [[u32; COLUMNS]; WORDS]) {
        let word = |value: u64| value as u32;
        (fragment::rows(self.registers(&mma.a), word), fragment::columns(self.registers(&mma.b), word))
    }

    /// C as floats.
    #[inline(always)]
    fn floats(&self, mma: &Mma) -> Starts {
        match mma.c_type {
            F16 => fragment::half_starts(self.registers(&mma.c), format::f16_value),
            _ => fragment::starts(self.registers(&mma.c), |bits| f32::from_bits(bits as u32)),
        }
    }

    /// Writes D with one element per register.
    #[inline(always)]
    fn finish<T: Copy + Into<u64>>(&mut self, mma: &Mma, d: &[[T; COLUMNS]; ROWS]) {
        for (r, to) in mma.d.iter().enumerate() {
            if let Some(lanes) = self.warp.register(self.frame, *to) {
                fragment::result(d, r, lanes);
            }
        }
    }

    /// Products of f64.
    fn wide(&mut self, mma: &Mma) {
        let a: [[f64; 16]; ROWS] = fragment::rows(self.registers(&mma.a), f64::from_bits);
        let b: [[f64; COLUMNS]; 16] = fragment::columns(self.registers(&mma.b), f64::from_bits);
        let mut d = fragment::starts(self.registers(&mma.c), f64::from_bits);
        for (sums, row) in d.iter_mut().zip(&a) {
            for (column, sum) in sums.iter_mut().enumerate() {
                let pairs = row.iter().zip(&b).take(mma.k as usize).map(|(x, y)| (*x, y[column]));
                let quick = pairs.clone().fold(*sum, |sum, (x, y)| x.mul_add(y, sum));
                // Only among finite numbers does nothing depend on which of several NaNs goes on.
                *sum = match quick.is_finite() {
                    true => quick,
                    false => pairs.fold(*sum, |sum, (x, y)| directed64(Operation::Fma, x, y, sum, Round::Nearest)),
                };
            }
        }
        self.finish(mma, &d.map(|row| row.map(f64::to_bits)));
    }

    /// Products of integers.
    fn bytes(&mut self, mma: &Mma) {
        let (a, b) = self.words(mma);
        let c = fragment::starts(self.registers(&mma.c), |bits| bits as u32);
        self.finish(mma, &whole(&a, &b, &c, (mma.a_type, mma.b_type), mma.saturate));
    }

    /// Dots of f16, bf16 and tf32, with so many factors per register.
    fn narrow<const PER: usize>(&mut self, mma: &Mma) {
        let format = format_of(mma.a_type);
        let (a, b) = self.words(mma);
        let (rows, columns) =
            (Rows::<PER>::new(&a, format, format.smallest()), Columns::<PER>::new(&b, format, format.smallest()));
        let c = self.floats(mma);
        if mma.d_type == F16 {
            let sums = tile::add(&rows, &columns, &c, 0..PER, tensor::TO_F16);
            for (r, to) in mma.d.iter().enumerate() {
                if let Some(lanes) = self.warp.register(self.frame, *to) {
                    fragment::half_result(&sums, r, lanes);
                }
            }
        } else {
            self.finish(mma, &tile::add(&rows, &columns, &c, 0..PER, tensor::TO_F32));
        }
    }

    /// Products of fp8. Hopper makes f16 of the bytes, the first two of each four for the first of two products, and adds C in
    /// the end.
    fn fp8(&mut self, mma: &Mma) {
        let (a, b) = self.words(mma);
        let smallest = format::F16.smallest();
        let rows = Rows::<4>::new(&a, format_of(mma.a_type), smallest);
        let columns = Columns::<4>::new(&b, format_of(mma.b_type), smallest);
        let first = tile::add(&rows, &columns, &[[0.0; COLUMNS]; ROWS], 0..2, tensor::TO_F32);
        let first = first.map(|row| row.map(f32::from_bits));
        let both = tile::add(&rows, &columns, &first, 2..4, tensor::TO_F32);
        let mut d = self.floats(mma);
        for (sum, both) in d.as_flattened_mut().iter_mut().zip(both.as_flattened()) {
            *sum += f32::from_bits(*both);
        }
        self.finish(mma, &d.map(|row| row.map(bits32)));
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
            let mut rows = [[0; 16]; 8];
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
                row.copy_from_slice(bytes);
            }
            if let Some(lanes) = self.warp.register(self.frame, *register) {
                fragment::loaded(&rows, transposed, lanes);
            }
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
                self.check_store((address.window, at), lane, row)?;
                self.slot(Access::Write, (address.window, at), 16, lane)?.copy_from_slice(row);
            }
        }
        Ok(())
    }
}

/// The bits of sums of products of bytes, added to accumulators.
#[inline(always)]
pub fn whole(
    a: &[[u32; WORDS]; ROWS],
    b: &[[u32; COLUMNS]; WORDS],
    c: &Results,
    (a_type, b_type): (Modifier, Modifier),
    saturate: bool,
) -> Results {
    let mut sums = tile::whole_products(a, b, (a_type == S8, b_type == S8)).map(|row| row.map(|sum| sum as u32));
    for (sum, start) in sums.as_flattened_mut().iter_mut().zip(c.as_flattened()) {
        let (products, start) = (*sum as i32, *start as i32);
        *sum = if saturate { start.saturating_add(products) } else { start.wrapping_add(products) } as u32;
    }
    sums
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

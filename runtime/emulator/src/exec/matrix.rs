//! `mma.sync`, `ldmatrix`, `stmatrix`.
//!
//! Floats are added as tensor cores add them (`numeric/tensor.rs`); f64 is a chain of fused multiply-adds. Integers are
//! exact: they wrap, or clamp with `.satfinite`.

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::types::bits;

use super::access::aligned;
use super::step::Step;
use crate::alu::Lanes;
use crate::code::{AddressOperand, Mma, Reg, Src};
use crate::fault::{Access, FaultKind};
use crate::numeric::float::{Operation, bits32, directed64};
use crate::numeric::format::{self, Format, Round};
use crate::numeric::tensor::{self, Factors, Sum};

/// The value of an element of a register.
pub fn element(register: u64, index: u32, ty: Modifier) -> f64 {
    match ty {
        F64 => f64::from_bits(register),
        F32 => f32::from_bits(register as u32).into(),
        // The low 13 bits are ignored.
        Tf32 => f32::from_bits(register as u32 & 0xffff_e000).into(),
        F16 => format::F16.decode((register >> (16 * index)) as u32 & 0xffff),
        Bf16 => format::BF16.decode((register >> (16 * index)) as u32 & 0xffff),
        E4m3 => format::E4M3.decode((register >> (8 * index)) as u32 & 0xff),
        E5m2 => format::E5M2.decode((register >> (8 * index)) as u32 & 0xff),
        S8 => f64::from((register >> (8 * index)) as i8),
        U8 => f64::from((register >> (8 * index)) as u8),
        _ => f64::from(register as i32),
    }
}

/// Elements in one register.
fn per_register(ty: Modifier) -> u32 {
    match ty {
        F64 | F32 | Tf32 | S32 => 1,
        _ => 32 / bits(ty).unwrap_or(32),
    }
}

/// The bits of an element of a register, of a type that has an own format.
pub fn raw(register: u64, index: u32, ty: Modifier) -> u32 {
    match ty {
        F16 | Bf16 => (register >> (16 * index)) as u32 & 0xffff,
        Tf32 => register as u32 >> 13,
        _ => (register >> (8 * index)) as u32 & 0xff,
    }
}

impl Step<'_, '_> {
    pub(super) fn mma(&mut self, mma: &Mma) {
        let c: Vec<Lanes> = mma.c.iter().map(|source| *self.source(*source)).collect();
        let sums = if matches!(mma.a_type, F64 | S8 | U8) {
            let a = self.operand(&mma.a, mma.m, mma.k, (mma.a_type, true), element);
            let b = self.operand(&mma.b, mma.n, mma.k, (mma.b_type, false), element);
            plain(mma, &a, &b, &c)
        } else {
            let a = self.operand(&mma.a, mma.m, mma.k, (mma.a_type, true), raw);
            let b = self.operand(&mma.b, mma.n, mma.k, (mma.b_type, false), raw);
            floats(mma, a, b, &c)
        };
        for (to, values) in mma.d.iter().zip(&sums) {
            self.write_lanes(*to, u32::MAX, values);
        }
    }

    /// The elements of A row by row, or those of B column by column.
    fn operand<T: Copy + Default>(
        &self,
        registers: &[Src],
        rows: u32,
        k: u32,
        (ty, is_a): (Modifier, bool),
        of: fn(u64, u32, Modifier) -> T,
    ) -> Vec<T> {
        let (k, per) = (k as usize, per_register(ty));
        let mut elements = vec![T::default(); rows as usize * k];
        for (r, source) in registers.iter().enumerate() {
            // Registers of A belong to the upper and the lower eight rows in turn.
            let (below, along) = if is_a { (8 * (r % 2), r / 2) } else { (0, r) };
            for (lane, value) in self.source(*source).iter().enumerate() {
                let first = (lane / 4 + below) * k + (lane % 4 + 4 * along) * per as usize;
                for j in 0..per {
                    elements[first + j as usize] = of(*value, j, ty);
                }
            }
        }
        elements
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
                aligned(address.window, Access::Read, at, 16).map_err(|kind| (kind, lane))?;
                self.check((address.window, at), 16, lane, Access::Read)?;
                let bytes = self.read((address.window, at), 16, lane)?;
                for (value, pair) in row.iter_mut().zip(bytes.chunks_exact(2)) {
                    *value = u16::from_le_bytes([pair[0], pair[1]]);
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

/// Row and column of element `j` of register `r` of C or D in a lane.
fn result_place(lane: usize, r: usize, j: u32, ty: Modifier) -> (usize, usize) {
    let element = if per_register(ty) == 2 { 2 * r + j as usize } else { r };
    (lane / 4 + 8 * (element / 2), lane % 4 * 2 + element % 2)
}

/// D of each register: in each lane what `sum` makes of row, column and C.
fn sums(mma: &Mma, c: &[Lanes], sum: impl Fn(usize, usize, f64) -> u64) -> Vec<Lanes> {
    let per = per_register(mma.d_type);
    let register = |r: usize| {
        std::array::from_fn(|lane| {
            (0..per).fold(0, |all, j| {
                let (row, column) = result_place(lane, r, j, mma.d_type);
                all | sum(row, column, element(c[r][lane], j, mma.c_type)) << (16 * j)
            })
        })
    };
    (0..mma.d.len()).map(register).collect()
}

/// Products of f64 and of integers.
fn plain(mma: &Mma, a: &[f64], b: &[f64], c: &[Lanes]) -> Vec<Lanes> {
    let k = mma.k as usize;
    sums(mma, c, |row, column, c| {
        let pairs = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
        if mma.a_type == F64 {
            let fused = |sum, (x, y): (&f64, &f64)| directed64(Operation::Fma, *x, *y, sum, Round::Nearest);
            return pairs.fold(c, fused).to_bits();
        }
        // Sums of 32 products of bytes and a 32-bit integer are exact in f64.
        whole(pairs.fold(c, |sum, (x, y)| sum + x * y), mma.saturate).into()
    })
}

/// The bits of a sum of integers.
pub fn whole(value: f64, saturate: bool) -> u32 {
    if saturate { value.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32 } else { value as i64 as u32 }
}

/// Products of narrow floats.
fn floats(mma: &Mma, a: Vec<u32>, b: Vec<u32>, c: &[Lanes]) -> Vec<Lanes> {
    let k = mma.k as usize;
    if matches!(mma.a_type, E4m3 | E5m2) {
        let (x, y) = (halves(&a, mma.a_type), halves(&b, mma.b_type));
        return sums(mma, c, |row, column, c| {
            let first = Sum::ZERO.add((&x, row), (&y, column), 0..2, tensor::TO_F32).to_f32();
            let both = Sum::of(first).add((&x, row), (&y, column), 2..4, tensor::TO_F32).to_f32();
            bits32(c as f32 + f32::from_bits(both)).into()
        });
    }
    let format = format_of(mma.a_type);
    let (x, y) = (Factors::new(a, k, format), Factors::new(b, k, format));
    let chunks = 0..k.div_ceil(8);
    sums(mma, c, |row, column, c| match mma.d_type {
        F16 => Sum(c).add((&x, row), (&y, column), chunks.clone(), tensor::TO_F16).to_f16().into(),
        _ => Sum(c).add((&x, row), (&y, column), chunks.clone(), tensor::TO_F32).to_f32().into(),
    })
}

/// Hopper has no `mma.sync` for fp8: it makes f16 of the bytes, the first two of each four for the first of two products,
/// and adds C in the end.
fn halves(bytes: &[u32], ty: Modifier) -> Factors {
    let order = |place: usize| place % 16 / 2 * 4 + place % 2 + place / 16 * 2;
    let wide = |byte: u32| format::F16.narrow(format_of(ty).decode(byte), Round::Nearest);
    let row = |row: &[u32]| (0..32).map(|place| wide(row[order(place)])).collect::<Vec<u32>>();
    Factors::new(bytes.chunks_exact(32).flat_map(row).collect(), 32, &format::F16)
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

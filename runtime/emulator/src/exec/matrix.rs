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

impl Step<'_, '_> {
    pub(super) fn mma(&mut self, mma: &Mma) {
        let (m, n, k) = (mma.m as usize, mma.n as usize, mma.k as usize);
        let mut a = vec![0f64; m * k];
        let mut b = vec![0f64; k * n];
        let mut c = vec![0f64; m * n];
        let per = per_register(mma.a_type);
        for (r, source) in mma.a.iter().enumerate() {
            let lanes = self.source(*source);
            for (lane, value) in lanes.iter().enumerate() {
                let (row, quad) = (lane / 4 + 8 * (r % 2), lane % 4);
                for j in 0..per {
                    let column = quad * per as usize + j as usize + (r / 2) * 4 * per as usize;
                    a[row * k + column] = element(*value, j, mma.a_type);
                }
            }
        }
        for (r, source) in mma.b.iter().enumerate() {
            let lanes = self.source(*source);
            for (lane, value) in lanes.iter().enumerate() {
                for j in 0..per {
                    let row = lane % 4 * per as usize + j as usize + r * 4 * per as usize;
                    b[lane / 4 * k + row] = element(*value, j, mma.b_type);
                }
            }
        }
        for (r, source) in mma.c.iter().enumerate() {
            let lanes = self.source(*source);
            for (lane, value) in lanes.iter().enumerate() {
                for j in 0..per_register(mma.c_type) {
                    let (row, column) = result_place(lane, r, j, mma.c_type);
                    c[row * n + column] = element(*value, j, mma.c_type);
                }
            }
        }
        multiply(mma, a, b, &mut c);
        let per = per_register(mma.d_type);
        for (r, to) in mma.d.iter().enumerate() {
            let mut values: Lanes = [0; 32];
            for (lane, value) in values.iter_mut().enumerate() {
                for j in 0..per {
                    let (row, column) = result_place(lane, r, j, mma.d_type);
                    *value |= encode(c[row * n + column], mma) << (16 * j);
                }
            }
            self.write_lanes(*to, u32::MAX, &values);
        }
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

/// Adds the product of `a`, row by row, and `b`, column by column, to `c`.
fn multiply(mma: &Mma, a: Vec<f64>, b: Vec<f64>, c: &mut [f64]) {
    let (n, k) = (mma.n as usize, mma.k as usize);
    let each = |c: &mut [f64], sum: &dyn Fn(usize, usize, f64) -> f64| {
        for (i, c) in c.iter_mut().enumerate() {
            *c = sum(i / n, i % n, *c);
        }
    };
    let pairs = |row: usize, column: usize| a[row * k..][..k].iter().zip(&b[column * k..][..k]);
    match mma.a_type {
        F64 => each(c, &|row, column, c| {
            pairs(row, column).fold(c, |sum, (x, y)| directed64(Operation::Fma, *x, *y, sum, Round::Nearest))
        }),
        S8 | U8 => each(c, &|row, column, c| pairs(row, column).fold(c, |sum, (x, y)| sum + x * y)),
        // Hopper has no instruction for these: it makes f16 of the bytes, the first two of each four for the first of two
        // products, and adds C in the end.
        E4m3 | E5m2 => {
            let order = |place: usize| place % 16 / 2 * 4 + place % 2 + place / 16 * 2;
            let (x, y) = (Factors::ordered(&a, k, &format::F16, order), Factors::ordered(&b, k, &format::F16, order));
            each(c, &|row, column, c| {
                let first = Sum::ZERO.add((&x, row), (&y, column), (0, 16), tensor::TO_F32).to_f32();
                let both = Sum::of(first).add((&x, row), (&y, column), (16, 32), tensor::TO_F32).to_f32();
                f64::from(c as f32 + f32::from_bits(both))
            });
        }
        _ => {
            let format = format_of(mma.a_type);
            let rule = if mma.d_type == F16 { tensor::TO_F16 } else { tensor::TO_F32 };
            let (x, y) = (Factors::new(a, k, format), Factors::new(b, k, format));
            each(c, &|row, column, c| {
                let sum = Sum(c).add((&x, row), (&y, column), (0, k), rule);
                if mma.d_type == F16 { sum.0 } else { f64::from(f32::from_bits(sum.to_f32())) }
            });
        }
    }
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

fn encode(value: f64, mma: &Mma) -> u64 {
    match mma.d_type {
        F64 => value.to_bits(),
        F32 => bits32(format::F32.round(value, Round::Nearest) as f32).into(),
        F16 => format::F16.narrow(value, Round::Nearest).into(),
        // Sums of 32 products of bytes and a 32-bit integer are exact in f64.
        _ if mma.saturate => value.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32 as u64,
        _ => value as i64 as u32 as u64,
    }
}

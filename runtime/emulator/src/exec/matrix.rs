//! `mma.sync`, `ldmatrix`, `stmatrix`.
//!
//! An `mma` multiplies exactly, adds the products to C in order of k in f64, and rounds once to D's type. Tensor cores
//! add in groups and truncate, so a float result may differ from hardware by a few ulp of the largest partial sum;
//! f64 is a chain of fused multiply-adds. Integers are exact: they wrap, or clamp with `.satfinite`.

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::types::bits;

use super::access::aligned;
use super::step::Step;
use crate::alu::Lanes;
use crate::code::{AddressOperand, Mma, Reg, Src};
use crate::fault::{Access, FaultKind};
use crate::numeric::float::bits32;
use crate::numeric::format::{self, Round};

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
                    b[row * n + lane / 4] = element(*value, j, mma.b_type);
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
        for row in 0..m {
            for column in 0..n {
                let products = (0..k).map(|i| (a[row * k + i], b[i * n + column]));
                let sum = &mut c[row * n + column];
                if mma.a_type == F64 {
                    *sum = products.fold(*sum, |sum, (x, y)| x.mul_add(y, sum));
                } else {
                    *sum = products.fold(*sum, |sum, (x, y)| sum + x * y);
                }
            }
        }
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

//! Dots.
//!
//! Each element of the result starts from the accumulator and adds the dots in ascending order of K:
//!
//! | operands | each step |
//! | --- | --- |
//! | fp16, bf16, fp8 | the dot is exact; the accumulator is computed in `f64` and rounded to `f32`, at the end to the accumulator's type |
//! | f32, `tf32` | as above, operands without their low 13 mantissa bits |
//! | f32, `ieee` | one FMA in `f32` |
//! | f64 | one FMA in `f64` |
//! | i8 | dots and accumulators in `i32`, wrapping |

use super::machine::{Machine, Stop};
use crate::ops::eval::{decode, mask, sign_extend};
use crate::wgmma::operand_shape;
use crate::{Elem, Op, Precision, Rounding, Scalar, Value, encode_float, view};

/// The bits of an `f32` that `tf32` keeps.
const TF32_MASK: u64 = 0xffff_e000;

impl Machine<'_> {
    /// `dot`.
    pub(crate) fn dot(&mut self, op: Op, precision: Precision) -> Result<(), Stop> {
        let kernel = self.kernel;
        let dot = view::Dot::at(kernel, op);
        let operands @ [lhs, rhs, acc] = [dot.lhs(), dot.rhs(), dot.acc()];
        let (lhs, rhs, acc) = (self.elements(lhs)?, self.elements(rhs)?, self.elements(acc)?.to_vec());
        let accs = self.dot_tiles(operands, &lhs, &rhs, acc, precision)?;
        let placed = self.place(self.result_type(op), accs);
        self.set_result(op, placed);
        Ok(())
    }

    /// The dot of the elements of the first two values, added to those of the third; all in row-major order.
    pub(crate) fn dot_tiles(
        &mut self,
        [a, b, c]: [Value; 3],
        lhs: &[u64],
        rhs: &[u64],
        mut acc: Vec<u64>,
        precision: Precision,
    ) -> Result<Vec<u64>, Stop> {
        let kernel = self.kernel;
        let scalar = |v| kernel.value_type(v).elem().and_then(Elem::num).unwrap_or(Scalar::F32);
        let (Some(shape), Some(out)) = (operand_shape(kernel.value_type(a)), kernel.value_type(c).shape()) else {
            return Ok(acc);
        };
        let rank = shape.rank();
        let (m, k, n) = (shape[rank - 2] as usize, shape[rank - 1] as usize, out[rank - 1] as usize);
        let size = Size { batches: shape[..rank - 2].iter().map(|d| *d as usize).product(), m, k, n };
        self.tick(size.batches * m * n * k)?;
        match scalar(a) {
            Scalar::I8 => {
                let wide = |tile: &[u64]| tile.iter().map(|x| sign_extend(*x, Elem::I8) as i32).collect::<Vec<i32>>();
                let step = |acc: i32, a: i32, b: i32| acc.wrapping_add(a.wrapping_mul(b));
                let start: Vec<i32> = acc.iter().map(|x| *x as i32).collect();
                let accs = size.multiply(&wide(lhs), &wide(rhs), start, step);
                acc = accs.into_iter().map(|x| mask(x as u64, Elem::I32)).collect();
            }
            Scalar::F64 => {
                let wide = |tile: &[u64]| tile.iter().map(|x| f64::from_bits(*x)).collect::<Vec<f64>>();
                let accs = size.multiply(&wide(lhs), &wide(rhs), wide(&acc), |acc, a, b| a.mul_add(b, acc));
                acc = accs.into_iter().map(|x| encode_float(x, Scalar::F64, Rounding::NearestEven)).collect();
            }
            Scalar::F32 if precision == Precision::Ieee => {
                let wide = |tile: &[u64]| tile.iter().map(|x| f32::from_bits(*x as u32)).collect::<Vec<f32>>();
                let accs = size.multiply(&wide(lhs), &wide(rhs), wide(&acc), |acc, a, b| a.mul_add(b, acc));
                acc = accs.into_iter().map(|x| encode_float(x.into(), Scalar::F32, Rounding::NearestEven)).collect();
            }
            from => {
                let keep = if from == Scalar::F32 { TF32_MASK } else { u64::MAX };
                let wide = |tile: &[u64], from| tile.iter().map(|x| decode(*x & keep, from)).collect::<Vec<f64>>();
                let start: Vec<f32> = acc.iter().map(|x| decode(*x, scalar(c)) as f32).collect();
                let step = |acc: f32, a: f64, b: f64| (f64::from(acc) + a * b) as f32;
                let accs = size.multiply(&wide(lhs, from), &wide(rhs, scalar(b)), start, step);
                acc = accs.into_iter().map(|x| encode_float(x.into(), scalar(c), Rounding::NearestEven)).collect();
            }
        }
        Ok(acc)
    }
}

struct Size {
    batches: usize,
    m: usize,
    k: usize,
    n: usize,
}

impl Size {
    /// `acc[.., i, j] = step(acc[.., i, j], a[.., i, l], b[.., l, j])` for ascending `l`.
    fn multiply<T: Copy, A: Copy>(&self, a: &[T], b: &[T], mut acc: Vec<A>, step: impl Fn(A, T, T) -> A) -> Vec<A> {
        let Size { batches, m, k, n } = *self;
        for batch in 0..batches {
            for i in 0..m {
                let row = &mut acc[(batch * m + i) * n..][..n];
                for l in 0..k {
                    let x = a[(batch * m + i) * k + l];
                    for (acc, y) in row.iter_mut().zip(&b[(batch * k + l) * n..][..n]) {
                        *acc = step(*acc, x, *y);
                    }
                }
            }
        }
        acc
    }
}

//! Comparing tensors with reference values.
//!
//! Integers and truth values must be equal. Floats may differ by a tolerance: an absolute-and-relative bound
//! (`|x - y| <= t + t * |y|`) or a number of units in the last place. NaN equals NaN, infinities must be equal.

use crate::{Dtype, Error, Result, Tensor};
use half::{bf16, f16};
use std::fmt;
use std::str::FromStr;

/// How much floats may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A bound that suits the element type: 1e-5 for fp32 and fp64, 2e-3 for fp16, 1.6e-2 for bf16, 0.13 for fp8.
    ByType,
    /// `|x - y| <= t + t * |y|`.
    Bound(f64),
    /// So many units in the last place of the element type.
    Ulp(u64),
    /// `|x - y| <= absolute + relative * |y|`.
    Close {
        /// Relative to the reference.
        relative: f64,
        /// Whatever the reference.
        absolute: f64,
    },
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Tolerance, String> {
        let message = || format!("`{text}` is not a tolerance; write a number such as 1e-5, or for example 2ulp");
        if let Some(ulp) = text.strip_suffix("ulp") {
            return ulp.trim().parse().map(Tolerance::Ulp).map_err(|_| message());
        }
        match text.parse::<f64>() {
            Ok(bound) if bound >= 0.0 => Ok(Tolerance::Bound(bound)),
            _ => Err(message()),
        }
    }
}

/// The result of a comparison.
///
/// ```
/// use rtc_testing::{Comparison, Tensor, Tolerance, compare};
/// let (one, other) = (Tensor::of(vec![2], &[1.0f32, 2.0])?, Tensor::of(vec![2], &[1.0f32, 2.5])?);
/// let result: Comparison = compare("y", &one, &other, Tolerance::Bound(0.1))?;
/// assert_eq!((result.wrong, result.worst_index, result.worst_pair), (1, 1, (2.0, 2.5)));
/// # Ok::<(), rtc_testing::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub elements: usize,
    /// Elements outside the tolerance.
    pub wrong: usize,
    /// The largest absolute difference.
    pub worst_absolute: f64,
    /// The largest difference relative to the reference, where that is not zero.
    pub worst_relative: f64,
    /// The largest difference in units in the last place.
    pub worst_ulp: u64,
    /// Index of the element with the largest excess over the tolerance, or else with the largest difference.
    pub worst_index: usize,
    /// The value there and its reference.
    pub worst_pair: (f64, f64),
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements == 0 {
            return f.write_str("no elements");
        }
        if self.worst_ulp == 0 && self.wrong == 0 {
            return write!(f, "{} elements, all equal by bits or value", self.elements);
        }
        write!(
            f,
            "{} elements, worst error {:.3e} absolute, {:.3e} relative, {} ulp; at index {} {} instead of {}",
            self.elements,
            self.worst_absolute,
            self.worst_relative,
            self.worst_ulp,
            self.worst_index,
            self.worst_pair.0,
            self.worst_pair.1,
        )?;
        if self.wrong > 0 {
            write!(f, "; {} outside the tolerance", self.wrong)?;
        }
        Ok(())
    }
}

/// Compares a tensor with its reference.
///
/// # Errors
///
/// [`Error::Tensors`] if types or shapes differ, or the elements are no numbers.
pub fn compare(name: &str, actual: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<Comparison> {
    if (actual.dtype, &actual.shape) != (expected.dtype, &expected.shape) {
        return Err(Error::Tensors(format!(
            "tensor `{name}` is {:?} {:?}, its reference {:?} {:?}",
            actual.dtype, actual.shape, expected.dtype, expected.shape
        )));
    }
    let format = Format::of(expected.dtype)
        .ok_or_else(|| Error::Tensors(format!("tensor `{name}`: {:?} values cannot be compared", expected.dtype)))?;
    let mut result = Comparison {
        elements: 0,
        wrong: 0,
        worst_absolute: 0.0,
        worst_relative: 0.0,
        worst_ulp: 0,
        worst_index: 0,
        worst_pair: (0.0, 0.0),
    };
    let mut worst = (false, 0.0, 0);
    let size = expected.dtype.bitsize() / 8;
    for (index, (a, e)) in actual.data.chunks_exact(size).zip(expected.data.chunks_exact(size)).enumerate() {
        result.elements += 1;
        if a == e {
            continue;
        }
        let (x, y) = (format.value(a), format.value(e));
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let absolute = if x.is_finite() && y.is_finite() { (x - y).abs() } else { f64::INFINITY };
        let ulp = format.ulp(a, e);
        let wrong = match (format.is_float, tolerance) {
            (false, _) => true,
            _ if absolute.is_infinite() => true,
            (true, Tolerance::ByType) => absolute > format.tolerance * (1.0 + y.abs()),
            (true, Tolerance::Bound(t)) => absolute > t * (1.0 + y.abs()),
            (true, Tolerance::Ulp(n)) => ulp > n,
            (true, Tolerance::Close { relative, absolute: t }) => absolute > t + relative * y.abs(),
        };
        result.wrong += usize::from(wrong);
        result.worst_absolute = result.worst_absolute.max(absolute);
        if y != 0.0 {
            result.worst_relative = result.worst_relative.max(absolute / y.abs());
        }
        result.worst_ulp = result.worst_ulp.max(ulp);
        let rank = (wrong, absolute / (1.0 + y.abs()), ulp);
        if rank.partial_cmp(&worst) == Some(std::cmp::Ordering::Greater) {
            worst = rank;
            result.worst_index = index;
            result.worst_pair = (x, y);
        }
    }
    Ok(result)
}

impl Tensor {
    /// Its values as fp64, 64-bit integers rounded.
    ///
    /// ```
    /// assert_eq!(rtc_testing::Tensor::of(vec![2], &[1i32, -2])?.to_f64()?, [1.0, -2.0]);
    /// # Ok::<(), rtc_testing::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if its elements are no numbers of whole bytes.
    pub fn to_f64(&self) -> Result<Vec<f64>> {
        let format = Format::of(self.dtype)
            .ok_or_else(|| Error::Tensors(format!("{:?} values are no numbers of their own", self.dtype)))?;
        Ok(self.data.chunks_exact(self.dtype.bitsize() / 8).map(|bytes| format.value(bytes)).collect())
    }
}

/// How the bytes of an element type are read.
struct Format {
    read: fn(&[u8]) -> f64,
    is_float: bool,
    tolerance: f64,
}

impl Format {
    fn of(dtype: Dtype) -> Option<Format> {
        macro_rules! int {
            ($ty:ty) => {
                Format { read: |b| <$ty>::from_le_bytes(array(b)) as f64, is_float: false, tolerance: 0.0 }
            };
        }
        let float = |read, tolerance| Format { read, is_float: true, tolerance };
        Some(match dtype {
            Dtype::BOOL | Dtype::U8 => int!(u8),
            Dtype::I8 => int!(i8),
            Dtype::I16 => int!(i16),
            Dtype::U16 => int!(u16),
            Dtype::I32 => int!(i32),
            Dtype::U32 => int!(u32),
            Dtype::I64 => int!(i64),
            Dtype::U64 => int!(u64),
            Dtype::F16 => float(|b| f16::from_le_bytes(array(b)).to_f64(), 2e-3),
            Dtype::BF16 => float(|b| bf16::from_le_bytes(array(b)).to_f64(), 1.6e-2),
            Dtype::F32 => float(|b| f32::from_le_bytes(array(b)).into(), 1e-5),
            Dtype::F64 => float(|b| f64::from_le_bytes(array(b)), 1e-5),
            Dtype::F8_E5M2 => float(|b| rtc_floats::E5M2.decode(b[0].into()), 0.13),
            Dtype::F8_E4M3 => float(|b| rtc_floats::E4M3.decode(b[0].into()), 0.13),
            _ => return None,
        })
    }

    fn value(&self, bytes: &[u8]) -> f64 {
        (self.read)(bytes)
    }

    /// Distance in representable values; for integers their difference.
    fn ulp(&self, a: &[u8], b: &[u8]) -> u64 {
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |acc, byte| acc << 8 | u64::from(*byte));
        let top = 1u64 << (a.len() * 8 - 1);
        // Sign and magnitude to an order in which neighbours differ by one; both zeros are 0.
        let ordered = |v: u64| if v & top == 0 { i128::from(v) } else { -i128::from(v & (top - 1)) };
        if self.is_float {
            (ordered(bits(a)) - ordered(bits(b))).unsigned_abs() as u64
        } else {
            let difference = (self.value(a) - self.value(b)).abs();
            (difference as u64).max(1)
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Tensor {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new(Dtype::F32, vec![values.len()], data).unwrap()
    }

    #[test]
    fn errors_are_measured() {
        let next = f32::from_bits(1f32.to_bits() + 3);
        let got = compare("x", &f32s(&[0.0, next, 5.0]), &f32s(&[-0.0, 1.0, 5.0]), Tolerance::Ulp(3)).unwrap();
        assert_eq!((got.wrong, got.worst_ulp, got.worst_index), (0, 3, 1));
        let got = compare("x", &f32s(&[0.0, next]), &f32s(&[-0.0, 1.0]), Tolerance::Ulp(2)).unwrap();
        assert_eq!(got.wrong, 1);
        insta::assert_snapshot!(got, @"2 elements, worst error 3.576e-7 absolute, 3.576e-7 relative, 3 ulp; at index 1 1.0000003576278687 instead of 1; 1 outside the tolerance");
        assert_eq!(compare("x", &f32s(&[1.1]), &f32s(&[1.0]), Tolerance::Bound(0.06)).unwrap().wrong, 0);
        assert_eq!(compare("x", &f32s(&[1.1]), &f32s(&[1.0]), Tolerance::Bound(0.04)).unwrap().wrong, 1);
    }

    #[test]
    fn nan_and_infinity() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let wrong = |a, b| compare("x", &f32s(&[a]), &f32s(&[b]), Tolerance::Bound(1e9)).unwrap().wrong;
        assert_eq!((wrong(nan, -nan), wrong(inf, inf)), (0, 0));
        assert_eq!((wrong(nan, 1.0), wrong(1.0, nan), wrong(inf, -inf), wrong(inf, 1.0)), (1, 1, 1, 1));
    }

    #[test]
    fn integers_must_be_equal() {
        let ints = |v: &[i8]| Tensor::new(Dtype::I8, vec![v.len()], v.iter().map(|v| *v as u8).collect()).unwrap();
        let got = compare("x", &ints(&[-1, 5]), &ints(&[1, 5]), Tolerance::Bound(100.0)).unwrap();
        assert_eq!((got.wrong, got.worst_absolute, got.worst_ulp), (1, 2.0, 2));
        assert!(compare("x", &ints(&[1]), &ints(&[1, 2]), Tolerance::ByType).is_err());
        assert!(compare("x", &ints(&[1, 0, 0, 0]), &f32s(&[1.0]), Tolerance::ByType).is_err());
    }

    #[test]
    fn fp8_values() {
        let one = |v: u8| Tensor::new(Dtype::F8_E4M3, vec![1], vec![v]).unwrap();
        assert_eq!(compare("x", &one(0x7e), &one(0x7d), Tolerance::Ulp(1)).unwrap().worst_absolute, 32.0);
        assert_eq!(compare("x", &one(0x7e), &one(0x7f), Tolerance::Ulp(9)).unwrap().wrong, 1);
        let fp8 = |v: u8| Tensor::new(Dtype::F8_E5M2, vec![1], vec![v]).unwrap();
        assert_eq!(compare("x", &fp8(0x3c), &fp8(0x3d), Tolerance::Ulp(1)).unwrap().worst_absolute, 0.25);
    }

    #[test]
    fn tolerances_are_read() {
        assert_eq!("1e-3".parse(), Ok(Tolerance::Bound(1e-3)));
        assert_eq!("2ulp".parse(), Ok(Tolerance::Ulp(2)));
        for bad in ["", "-1", "ulp", "x", "nan"] {
            assert!(bad.parse::<Tolerance>().is_err(), "{bad}");
        }
    }
}

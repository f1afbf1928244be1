//! How precise a kernel is: mean and largest relative errors beside what its types allow.

use crate::{Case, Dtype, Error, Reference, Result, Tensor};
use rtc_runtime::Kernel;
use std::fmt;

/// What floats of a type may differ by: the mean relative error stays below the threshold, the largest below ten times that,
/// and elements below `small` in magnitude differ by less than that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorLimits {
    /// Of the mean relative error.
    pub threshold: f64,
    /// Below this, the absolute error counts.
    pub small: f64,
}

impl ErrorLimits {
    /// The standard of a type; none of those that must be equal.
    pub fn of(dtype: Dtype) -> Option<ErrorLimits> {
        let (threshold, small) = match dtype {
            Dtype::F64 => (2f64.powi(-40), 1e-14),
            Dtype::F32 => (2f64.powi(-13), 1e-7),
            Dtype::F16 => (2f64.powi(-10), 2f64.powi(-14)),
            Dtype::BF16 => (2f64.powi(-7), 1e-7),
            _ => return None,
        };
        Some(ErrorLimits { threshold, small })
    }
}

/// The errors of one tensor of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorStatistics {
    /// The case.
    pub case: String,
    /// The tensor.
    pub tensor: String,
    /// Its type, as the kernel has it.
    pub dtype: Dtype,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// The mean relative error.
    pub mean_relative: f64,
    /// The largest relative error.
    pub max_relative: f64,
    /// The largest absolute error.
    pub max_absolute: f64,
    /// Elements that differ, of types that must be equal; else those below the standard's `small` that differ by more.
    pub wrong: usize,
}

impl ErrorStatistics {
    /// Whether the standard of its type is met.
    pub fn passes(&self) -> bool {
        let is_small = ErrorLimits::of(self.dtype).is_none_or(|standard| {
            self.mean_relative < standard.threshold && self.max_relative < 10.0 * standard.threshold
        });
        self.wrong == 0 && is_small
    }
}

/// The errors of a kernel over all cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The kernel.
    pub kernel: String,
    /// For each case and tensor.
    pub errors: Vec<ErrorStatistics>,
}

impl Precision {
    /// Whether all standards are met.
    pub fn passes(&self) -> bool {
        self.errors.iter().all(ErrorStatistics::passes)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, if self.passes() { "PASS" } else { "FAIL" })?;
        for errors in &self.errors {
            let ErrorStatistics { case, tensor, dtype, shape, mean_relative, max_relative, max_absolute, wrong } =
                errors;
            let result = if errors.passes() { "PASS" } else { "FAIL" };
            write!(f, "\n  {case}, `{tensor}` {dtype:?} {shape:?}: {result}, ")?;
            match ErrorLimits::of(*dtype) {
                None => write!(f, "{wrong} elements differ, the largest error is {max_absolute:e}")?,
                Some(ErrorLimits { threshold, .. }) => {
                    write!(
                        f,
                        "MERE {mean_relative:.3e} (< {threshold:.3e}), MARE {max_relative:.3e} (< {:.3e}), ",
                        10.0 * threshold
                    )?;
                    write!(f, "largest absolute error {max_absolute:.3e}")?;
                    if *wrong > 0 {
                        write!(f, ", {wrong} small elements are wrong")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Launches the kernel for each case and measures its errors against the reference, which may compute in fp64.
///
/// ```
/// use rtc_testing::{Case, Dtype, ErrorStatistics, Precision, ErrorLimits, Tensor, Tensors, precision};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// # let scale = unsafe { rtc_runtime::Device::emulator().load_json(ptx, json)? };
/// let case = Case::new("one third", [1])
///     .tensor("x", Tensor::of(vec![1], &[1.0f32])?)
///     .output("y", Dtype::F32, vec![1])?
///     .value("a", 1.0 / 3.0)
///     .value("n", 1);
/// let exact = |_: &Tensors| Ok(Tensors::from_iter([("y", Tensor::of(vec![1], &[1.0f64 / 3.0])?)]));
/// let report: Precision = precision(&scale, &[case], &exact)?;
/// let ErrorStatistics { mean_relative, max_relative, .. } = &report.errors[0];
/// assert!(report.passes() && *max_relative > 0.0, "{report}");
/// assert!(*mean_relative < ErrorLimits::of(Dtype::F32).expect("floats have one").threshold);
/// # Ok::<(), rtc_testing::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Case`] for a reference that lacks results or has NaN or other sizes; else as for [`Case::run`].
pub fn precision(kernel: &impl AsRef<Kernel>, cases: &[Case], reference: &dyn Reference) -> Result<Precision> {
    let kernel = kernel.as_ref();
    let mut errors = Vec::new();
    for case in cases {
        let expected = case.expected(reference)?;
        let actual = case.run(kernel)?;
        for name in expected.names() {
            if let (Some(actual), Some(expected)) = (actual.get(name), expected.get(name)) {
                errors.push(measure(case.name(), name, actual, expected)?);
            }
        }
    }
    Ok(Precision { kernel: kernel.metadata().kernel.clone(), errors })
}

fn measure(case: &str, tensor: &str, actual: &Tensor, expected: &Tensor) -> Result<ErrorStatistics> {
    if actual.shape != expected.shape {
        let (own, other) = (&actual.shape, &expected.shape);
        return Err(Error::Case(format!("tensor `{tensor}` has sizes {own:?}, its reference {other:?}")));
    }
    let (dtype, shape) = (actual.dtype, actual.shape.clone());
    let standard = ErrorLimits::of(dtype);
    let (mut sum, mut count) = (0.0, 0usize);
    let (mut max_relative, mut max_absolute, mut wrong) = (0f64, 0f64, 0);
    for (x, y) in actual.to_f64()?.into_iter().zip(expected.to_f64()?) {
        let error = if x == y { 0.0 } else { (x - y).abs() };
        let error = if error.is_nan() { f64::INFINITY } else { error };
        max_absolute = max_absolute.max(error);
        match standard {
            None => wrong += usize::from(error != 0.0),
            Some(standard) if y.abs() < standard.small => wrong += usize::from(error > standard.small),
            Some(_) if y.is_infinite() => wrong += usize::from(error != 0.0),
            Some(_) => {
                sum += error / y.abs();
                count += 1;
                max_relative = max_relative.max(error / y.abs());
            }
        }
    }
    let mean_relative = if count == 0 { 0.0 } else { sum / count as f64 };
    let (case, tensor) = (case.to_owned(), tensor.to_owned());
    Ok(ErrorStatistics { case, tensor, dtype, shape, mean_relative, max_relative, max_absolute, wrong })
}

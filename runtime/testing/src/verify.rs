//! Verification: a kernel's results beside those of a reference.

use crate::{Case, Comparison, Reference, Result, Tolerance, compare};
use rtc_runtime::Kernel;
use std::fmt;

/// The results of a verification: a comparison for each case and tensor.
#[derive(Clone, Debug)]
pub struct Verification {
    kernel: String,
    /// The case, the tensor, how they compare.
    pub comparisons: Vec<(String, String, Comparison)>,
    /// What the emulator or the interpreter found besides: reads of uninitialized memory, for example.
    pub findings: Vec<rtc_runtime::Finding>,
}

impl Verification {
    /// Whether every element is within the tolerance.
    pub fn is_right(&self) -> bool {
        self.comparisons.iter().all(|(.., comparison)| comparison.wrong == 0)
    }

    /// Ends a test that is wrong, with what is wrong.
    #[track_caller]
    pub fn assert(&self) {
        assert!(self.is_right(), "{self}");
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, if self.is_right() { "right" } else { "wrong" })?;
        for (case, tensor, comparison) in &self.comparisons {
            write!(f, "\n  {case}, `{tensor}`: {comparison}")?;
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// Launches the kernel, a [`Kernel`] or one of a build script's module, for each case and compares what it gives with the
/// reference, which must have the same types.
///
/// ```
/// use rtc_runtime::Device;
/// use rtc_testing::{Case, Dtype, Tensor, Tensors, Tolerance, Verification, verify};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// // SAFETY: the files were made together.
/// let scale = unsafe { Device::emulator().load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
/// let x: Vec<f32> = (0..40).map(|i| i as f32 / 7.0).collect();
/// let case = Case::new("40 elements", [2])
///     .tensor("x", Tensor::of(vec![40], &x)?)
///     .output("y", Dtype::F32, vec![40])?
///     .value("a", 3.0)
///     .value("n", 40);
/// let reference = |inputs: &Tensors| {
///     let x = inputs.get("x").expect("it is given").values::<f32>()?;
///     let y: Vec<f32> = x.iter().map(|x| x * 3.0).collect();
///     Ok(Tensors::from_iter([("y", Tensor::of(vec![40], &y)?)]))
/// };
/// let result: Verification = verify(&scale, &[case], &reference, Tolerance::ByType)?;
/// assert!(result.is_right());
/// assert_eq!(result.to_string(), "kernel `scale`: right\n  40 elements, `y`: 40 elements, all equal by bits or value");
/// result.assert();
/// # Ok::<(), rtc_testing::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Case`](crate::Error::Case) for a reference that lacks results or has NaN,
/// [`Error::Tensors`](crate::Error::Tensors) for results of another type or shape;
/// else as for [`Case::run`]. Wrong results are no error: [`Verification::is_right`].
pub fn verify(
    kernel: &impl AsRef<Kernel>,
    cases: &[Case],
    reference: &dyn Reference,
    tolerance: Tolerance,
) -> Result<Verification> {
    let kernel = kernel.as_ref();
    let mut comparisons = Vec::new();
    let mut findings = Vec::new();
    for case in cases {
        let expected = case.expected(reference)?;
        let actual = case.run(kernel)?;
        findings.extend(kernel.take_findings());
        for name in expected.names() {
            if let (Some(actual), Some(expected)) = (actual.get(name), expected.get(name)) {
                let comparison = compare(name, actual, expected, tolerance)?;
                comparisons.push((case.name().to_owned(), name.to_owned(), comparison));
            }
        }
    }
    Ok(Verification { kernel: kernel.metadata().kernel.clone(), comparisons, findings })
}

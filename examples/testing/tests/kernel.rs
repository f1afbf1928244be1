//! The kernel beside a reference, on the emulator. `docs/rust/guides.md` shows this.

use rtc_runtime::Device;
use rtc_testing::{Case, Dtype, Tensor, Tensors, Tolerance, verify};

rtc_runtime::include_kernels!("scale");

#[test]
fn scale_is_right() -> Result<(), Box<dyn std::error::Error>> {
    let kernel = scale::scale_kernel(&Device::emulator())?;
    let case = Case::new("100 elements", [1])
        .tensor("x", Tensor::of(vec![100], &[2.0f32; 100])?)
        .output("y", Dtype::F32, vec![100])?
        .value("n", 100);
    let reference = |_: &Tensors| Ok(Tensors::from_iter([("y", Tensor::of(vec![100], &[6.0f32; 100])?)]));
    verify(&kernel, &[case], &reference, Tolerance::ByType)?.assert();
    Ok(())
}

/// The same under the sanitizer, and a reference that is wrong.
#[test]
fn a_wrong_reference_is_told() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::emulator().with_sanitizer(rtc_runtime::sanitize::Checks::ALL)?;
    let kernel = scale::scale_kernel(&device)?;
    let case = Case::new("100 elements", [1])
        .tensor("x", Tensor::of(vec![100], &[2.0f32; 100])?)
        .output("y", Dtype::F32, vec![100])?
        .value("n", 100);
    let reference = |_: &Tensors| Ok(Tensors::from_iter([("y", Tensor::of(vec![100], &[5.0f32; 100])?)]));
    assert!(!verify(&kernel, &[case], &reference, Tolerance::ByType)?.is_right());
    Ok(())
}

//! The kernel in comparison with a closure, under the sanitizer.

use rtc_runtime::{Device, sanitize::Checks};
use rtc_testing::{Case, Dtype, Tensor, Tensors, Tolerance, verify};

#[test]
fn rows_of_781_are_right() -> Result<(), Box<dyn std::error::Error>> {
    let x: Vec<f32> = (0..4 * 781).map(|i| (i as f32 * 0.37).sin()).collect();
    let reference = |tensors: &Tensors| {
        let x: Vec<f32> = tensors.get("x_ptr").expect("the case has it").values()?;
        let rows = x.chunks(781).flat_map(|row| {
            let e: Vec<f64> = row.iter().map(|v| f64::from(*v).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.into_iter().map(move |v| (v / sum) as f32)
        });
        Ok(Tensors::from_iter([("y_ptr", Tensor::of(vec![4, 781], &rows.collect::<Vec<f32>>())?)]))
    };
    let case = Case::new("4 rows", [4])
        .tensor("x_ptr", Tensor::of(vec![4, 781], &x)?)
        .output("y_ptr", Dtype::F32, vec![4, 781])?
        .value("stride", 781)
        .value("n_cols", 781);
    let device = Device::emulator().with_sanitizer(Checks::ALL)?;
    let kernel = tutorial::softmax::softmax_kernel(&device)?;
    verify(&kernel, &[case], &reference, Tolerance::ByType)?.assert();
    Ok(())
}

//! The example in the emulator.

use rtc_runtime::Device;
use rtc_tune::Decision;

#[test]
fn the_result_is_that_of_one_launch() {
    let (x, y): (Vec<f32>, Vec<f32>) = (0..1000).map(|i| (i as f32, 0.5 * i as f32)).unzip();
    let (result, report) = rtc_example_autotune::scale_add(&Device::emulator(), None, 2.0, &x, &y).unwrap();
    assert!(result.iter().enumerate().all(|(i, v)| *v == 2.5 * i as f32));
    assert_eq!((report.decision, report.candidates.len()), (Decision::Model, 6));
}

//! A kernel that is compiled when it is launched. `docs/rust/guides.md` shows this.

use rtc_runtime::args;

#[test]
fn scale_is_launched() -> Result<(), Box<dyn std::error::Error>> {
    let device = rtc_runtime::Device::auto();
    let scale = device.jit(&[("scale.rt", include_str!("scale.rt"))])?.kernel("scale_kernel")?;
    let (x, mut y) = (device.upload(&[2.0f32; 100])?, device.zeros::<f32>(100)?);
    let options = rtc_runtime::jit::Options::new().constexpr("BLOCK", 128);
    scale.launch(device.default_stream(), 1, &args![&x, &mut y, 100], &options)?;
    assert_eq!(y.to_vec()?, [6.0; 100]);
    Ok(())
}

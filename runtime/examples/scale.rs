//! The smallest whole launch: a kernel of a few lines of PTX on the first device there is. Without the feature `emulator` it
//! needs a GPU.
#![allow(unsafe_code)]

use rtc_runtime::{Device, DeviceKind, Result, args};

const PTX: &str = include_str!("../tests/kernels/scale.ptx");
const METADATA: &str = include_str!("../tests/kernels/scale.json");

fn main() -> Result<()> {
    let device = Device::open(DeviceKind::Auto)?;
    // SAFETY: `rtc build` wrote both files together.
    let kernel = unsafe { device.load_json(PTX, METADATA)? };
    let x = device.upload(&[1.0f32, 2.0, 3.0])?;
    let mut y = device.zeros::<f32>(3)?;
    kernel.launch(device.default_stream(), 1, &args![&x, &mut y, 2.0f32, 3])?;
    println!("{:?} on {device}", y.to_vec()?);
    Ok(())
}

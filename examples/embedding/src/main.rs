//! A program that ships its kernels: compiled by `build.rs`, launched here on a GPU or in the emulator. It links neither
//! the compiler nor LLVM.

use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("vector_add");

fn main() -> Result<()> {
    let device = Device::auto();
    let count = 10_000;
    let x: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..count).map(|i| (2 * i) as f32).collect();
    let (x, y) = (device.upload(&x)?, device.upload(&y)?);
    let mut sum = device.alloc::<f32>(count as usize)?;

    let kernel = vector_add::add_kernel(&device)?;
    let stream = device.default_stream();
    let blocks = (count as u32).div_ceil(1024);
    kernel.launch(stream, blocks, &x, &y, &mut sum, count)?;
    stream.synchronize()?;

    let sum = sum.to_vec()?;
    let right = sum.iter().enumerate().all(|(i, s)| *s == (3 * i) as f32);
    println!("{} sums on {device}: {}", sum.len(), if right { "all right" } else { "wrong" });
    if right { Ok(()) } else { std::process::exit(1) }
}

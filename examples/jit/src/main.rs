//! Softmax of matrices whose sizes are known only now: each launch gets the kernel for the kinds of its arguments, which is
//! compiled the first time, and found in memory or on disk from then on.
//!
//! ```sh
//! cargo run -p rtc-example-jit        # on the GPU if there is one, else in the emulator; run it twice
//! ```

use rtc_runtime::jit::{JitEvent, JitKernel, Options};
use rtc_runtime::{Device, args};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto();
    println!("on {device}");
    let program = device.jit(&[("softmax.rt", include_str!("softmax.rt"))])?;
    let program = program.with_observer(|event| match event {
        JitEvent::Ready { kernel, signature, origin, .. } => println!("  {kernel} for {signature}: {origin:?}"),
        JitEvent::Warning(text) => eprintln!("{text}"),
        JitEvent::CacheProblem(problem) => eprintln!("{problem}"),
        _ => {}
    });
    let kernel = program.kernel("softmax_kernel")?;
    for (rows, columns) in [(4, 128), (4, 100), (2, 96), (8, 128), (3, 101)] {
        let start = Instant::now();
        let error = softmax(&device, &kernel, rows, columns)?;
        println!("{rows} x {columns}: {:.1} ms, largest error {error:.1e}", start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{} kernels for 5 launches", kernel.variants());
    Ok(())
}

/// Launches the kernel on some matrix; gives the largest difference from the definition.
fn softmax(
    device: &Device,
    kernel: &JitKernel,
    rows: usize,
    columns: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let values: Vec<f32> = (0..rows * columns).map(|i| (i * 37 % 101) as f32 / 25.0).collect();
    let (x, mut y) = (device.upload(&values)?, device.zeros::<f32>(rows * columns)?);
    // A constexpr can be an argument, as BLOCK is here, or be set by name in the options.
    let arguments = args![&x, &mut y, columns, columns, columns, columns.next_power_of_two()];
    kernel.launch(device.default_stream(), rows as u32, &arguments, &Options::new())?;

    let mut worst = 0f64;
    for (x, y) in values.chunks(columns).zip(y.to_vec()?.chunks(columns)) {
        let sum = x.iter().map(|v| f64::from(*v).exp()).sum::<f64>();
        for (x, y) in x.iter().zip(y) {
            worst = worst.max((f64::from(*x).exp() / sum - f64::from(*y)).abs());
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_specialize_alike_share_a_kernel() {
        let device = Device::emulator();
        let program = device.jit(&[("softmax.rt", include_str!("softmax.rt"))]).expect("the source is right");
        let kernel = program.with_cache(None).kernel("softmax_kernel").expect("it is there");
        for (rows, columns, kernels) in [(2, 128, 1), (3, 112, 1), (2, 100, 2), (1, 101, 2), (1, 1, 3)] {
            let error = softmax(&device, &kernel, rows, columns).expect("it runs");
            assert!(error < 1e-6, "{error}");
            assert_eq!(kernel.variants(), kernels, "{rows} x {columns}");
        }
    }
}

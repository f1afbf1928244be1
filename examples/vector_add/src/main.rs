//! Adds two vectors, on a GPU if there is one, else in the emulator.

use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("vector_add");

/// The sum of two vectors of one length.
fn add<T: vector_add::AddKernelT>(device: &Device, x: &[T], y: &[T]) -> Result<Vec<T>> {
    let kernel = vector_add::add_kernel::<T>(device)?;
    let (x, y) = (device.upload(x)?, device.upload(y)?);
    let mut sum = device.alloc::<T>(x.len())?;
    let count = x.len() as i32;
    kernel.launch(device.default_stream(), (count as u32).div_ceil(1024), &x, &y, &mut sum, count)?;
    sum.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let x: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
    let sum = add(&device, &x, &x)?;
    println!("{} sums on {device}; the last one is {}", sum.len(), sum[9_999]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_floats_and_integers() {
        let device = Device::auto();
        for count in [1, 1000, 1024, 1025] {
            let x: Vec<i32> = (0..count).collect();
            let expected: Vec<i32> = x.iter().map(|x| 2 * x).collect();
            assert_eq!(add(&device, &x, &x).unwrap(), expected);
            let floats: Vec<f32> = x.iter().map(|x| *x as f32).collect();
            assert!(add(&device, &floats, &floats).unwrap().iter().zip(expected).all(|(s, e)| *s == e as f32));
        }
    }

    #[test]
    fn a_slice_that_is_too_short_is_refused() {
        let device = Device::auto();
        let kernel = vector_add::add_kernel::<f32>(&device).unwrap();
        let (x, mut sum) = (device.zeros::<f32>(100).unwrap(), device.zeros::<f32>(99).unwrap());
        let launch = kernel.launch(device.default_stream(), 1, &x, &x, &mut sum, 100);
        let text = launch.unwrap_err().to_string();
        assert!(text.contains("`out_ptr`") && text.contains("touches 100 elements (`n`), the slice has 99"), "{text}");
    }
}

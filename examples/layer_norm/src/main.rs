//! Layer normalization of the rows of a matrix, on a GPU if there is one, else in the emulator.

use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("layer_norm");

/// Every row with mean 0 and variance 1, times `weight`, plus `bias`.
fn layer_norm(device: &Device, x: &[f32], weight: &[f32], bias: &[f32]) -> Result<Vec<f32>> {
    let kernel = layer_norm::layer_norm_kernel(device)?;
    let columns = weight.len() as i32;
    let rows = (x.len() / weight.len()) as u32;
    let (x, weight, bias) = (device.upload(x)?, device.upload(weight)?, device.upload(bias)?);
    let mut y = device.alloc::<f32>(x.len())?;
    kernel.launch(device.default_stream(), rows, &x, &weight, &bias, &mut y, columns, columns, 1e-5)?;
    y.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let y = layer_norm(&device, &[1.0, 2.0, 3.0, 4.0], &[1.0; 4], &[0.0; 4])?;
    println!("on {device}: {y:.3?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_definition() {
        let device = Device::auto();
        for (rows, columns) in [(3, 100), (2, 1500)] {
            let x: Vec<f32> = (0..rows * columns).map(|i| (i * 37 % 101) as f32 / 25.0).collect();
            let (weight, bias): (Vec<f32>, Vec<f32>) = (0..columns).map(|i| (1.0 + i as f32 / 100.0, i as f32)).unzip();
            let y = layer_norm(&device, &x, &weight, &bias).unwrap();
            for (x, y) in x.chunks(columns).zip(y.chunks(columns)) {
                let mean = x.iter().sum::<f32>() / columns as f32;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / columns as f32;
                for i in 0..columns {
                    let expected = (x[i] - mean) / (variance + 1e-5).sqrt() * weight[i] + bias[i];
                    assert!((y[i] - expected).abs() <= 1e-4 * expected.abs().max(1.0), "{} {expected}", y[i]);
                }
            }
        }
    }
}

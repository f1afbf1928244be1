//! GELU with dropout, on a GPU if there is one, else in the emulator.

use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("dropout");

/// GELU of every element, of which a share of `p` becomes 0; the same seed drops the same ones.
fn gelu_dropout(device: &Device, x: &[f32], p: f32, seed: i32) -> Result<Vec<f32>> {
    let kernel = dropout::gelu_dropout_kernel(device)?;
    let x = device.upload(x)?;
    let mut out = device.alloc::<f32>(x.len())?;
    let count = x.len() as i32;
    kernel.launch(device.default_stream(), (count as u32).div_ceil(1024), &x, &mut out, count, p, seed)?;
    out.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let y = gelu_dropout(&device, &[1.0; 8], 0.5, 42)?;
    println!("on {device}: {y:.3?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_dropped_and_the_rest_is_scaled() {
        let device = Device::auto();
        let x = vec![1.0; 5000];
        let kept = gelu_dropout(&device, &x, 0.0, 1).unwrap();
        assert!(kept.iter().all(|y| (y - 0.841_344_7).abs() < 1e-6));
        let y = gelu_dropout(&device, &x, 0.25, 1).unwrap();
        let dropped = y.iter().filter(|y| **y == 0.0).count();
        assert!((1100..1400).contains(&dropped), "{dropped} of 5000");
        assert!(y.iter().all(|y| *y == 0.0 || (y - 0.841_344_7 / 0.75).abs() < 1e-6));
        assert_eq!(gelu_dropout(&device, &x, 0.25, 1).unwrap(), y);
        assert_ne!(gelu_dropout(&device, &x, 0.25, 2).unwrap(), y);
    }
}

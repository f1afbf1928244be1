//! Softmax of the rows of a matrix, on a GPU if there is one, else in the emulator.

use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("softmax");

/// The softmax of every row of a matrix with `columns` columns.
fn softmax(device: &Device, x: &[f32], columns: usize) -> Result<Vec<f32>> {
    match columns {
        0..=256 => softmax_in::<256>(device, x, columns),
        257..=1024 => softmax_in::<1024>(device, x, columns),
        // `softmax_in::<2048>` would not compile: build.rs does not declare it.
        _ => softmax_in::<4096>(device, x, columns),
    }
}

fn softmax_in<const BLOCK: i64>(device: &Device, x: &[f32], columns: usize) -> Result<Vec<f32>> {
    assert!(columns > 0 && columns <= BLOCK as usize, "a row fits one block");
    let kernel = softmax::softmax_kernel::<BLOCK>(device)?;
    let x = device.upload(x)?;
    let mut y = device.alloc::<f32>(x.len())?;
    let (stride, rows) = (columns as i32, (x.len() / columns) as i32);
    let programs = rows.clamp(1, 512) as u32;
    kernel.launch(device.default_stream(), programs, &x, &mut y, stride, stride, rows, stride)?;
    y.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let y = softmax(&device, &[0.0, 1.0, 2.0, 3.0, 3.0, 3.0], 3)?;
    println!("on {device}: {y:.3?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_definition() {
        let device = Device::auto();
        for (rows, columns) in [(1, 1), (5, 100), (3, 1000), (2, 3000)] {
            let x: Vec<f32> = (0..rows * columns).map(|i| (i * 37 % 101) as f32 / 25.0).collect();
            let y = softmax(&device, &x, columns).unwrap();
            for (x, y) in x.chunks(columns).zip(y.chunks(columns)) {
                let top = x.iter().copied().fold(f32::MIN, f32::max);
                let all: f32 = x.iter().map(|x| (x - top).exp()).sum();
                assert!(x.iter().zip(y).all(|(x, y)| ((x - top).exp() / all - y).abs() < 1e-6));
            }
        }
    }
}

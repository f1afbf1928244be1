//! Attention of several heads, on a GPU if there is one, else in the emulator.

use rtc_runtime::half::f16;
use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("attention");

/// The attention of `heads` heads of `D` columns; `q`, `k` and `v` have the same number of rows.
fn attention<const D: i64>(device: &Device, q: &[f16], k: &[f16], v: &[f16], heads: usize) -> Result<Vec<f16>> {
    let kernel = attention::attention_kernel::<D>(device)?;
    let rows = q.len() / heads / D as usize;
    let (q, k, v) = (device.upload(q)?, device.upload(k)?, device.upload(v)?);
    let mut out = device.alloc::<f16>(q.len())?;
    let grid = ((rows as u32).div_ceil(64), heads as u32);
    let scale = std::f32::consts::LOG2_E / (D as f32).sqrt();
    kernel.launch(device.default_stream(), grid, &q, &k, &v, &mut out, scale, rows as i32)?;
    out.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let x: Vec<f16> = (0..8 * 32).map(|i| f16::from_f32((i % 7) as f32 / 7.0)).collect();
    let y = attention::<32>(&device, &x, &x, &x, 1)?;
    println!("on {device}: {:?} ..", &y[..4]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const D: i64>(rows: usize, heads: usize) {
        let (device, columns) = (Device::auto(), D as usize);
        let number = |i: usize| f16::from_f32((i * 37 % 101) as f32 / 50.0 - 1.0);
        let of = |seed: usize| (0..heads * rows * columns).map(|i| number(i + seed)).collect::<Vec<f16>>();
        let (q, k, v) = (of(0), of(13), of(29));
        let out = attention::<D>(&device, &q, &k, &v, heads).unwrap();
        let row = |x: &[f16], at: usize| -> Vec<f32> {
            x[at * columns..(at + 1) * columns].iter().map(|x| x.to_f32()).collect()
        };
        for at in 0..heads * rows {
            let (head, q) = (at / rows, row(&q, at));
            let score = |key: usize| -> f32 {
                row(&k, head * rows + key).iter().zip(&q).map(|(k, q)| k * q).sum::<f32>() / (D as f32).sqrt()
            };
            let weights: Vec<f32> = (0..rows).map(|key| score(key).exp()).collect();
            let total: f32 = weights.iter().sum();
            for (column, found) in row(&out, at).into_iter().enumerate() {
                let sum: f32 = (0..rows).map(|key| weights[key] * row(&v, head * rows + key)[column]).sum();
                assert!((found - sum / total).abs() < 4e-3, "row {at}, column {column}: {found}, {}", sum / total);
            }
        }
    }

    #[test]
    fn heads_are_those_of_the_definition() {
        check::<32>(80, 2);
        check::<64>(33, 1);
    }
}

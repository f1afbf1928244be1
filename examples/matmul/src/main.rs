//! A product of matrices with an activation, on a GPU if there is one, else in the emulator.

use matmul::{MatmulKernelActivation as Activation, MatmulKernelArgs};
use rtc_runtime::half::f16;
use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("matmul");

/// The product of `a`, `m` by `k`, and `b`, `k` by `n`, through the activation.
fn product(device: &Device, a: &[f16], b: &[f16], [m, n, k]: [usize; 3], activation: Activation) -> Result<Vec<f16>> {
    let kernel = matmul::matmul_kernel::<f16>(device, activation)?;
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    let mut c = device.alloc::<f16>(m * n)?;
    // How many programs there are depends on the blocks of the configuration that the launch takes.
    let grid = |config: matmul::MatmulKernelConfig| {
        (m as u32).div_ceil(config.block_m) * (n as u32).div_ceil(config.block_n)
    };
    let [m, n, k] = [m, n, k].map(|size| size as i32);
    let args = MatmulKernelArgs {
        a_ptr: &a,
        b_ptr: &b,
        c_ptr: &mut c,
        M: m,
        N: n,
        K: k,
        stride_am: k,
        stride_bk: n,
        stride_cm: n,
    };
    kernel.launch_args(device.default_stream(), grid, args)?;
    c.to_vec()
}

fn main() -> Result<()> {
    let device = Device::auto();
    let identity: Vec<f16> = (0..9).map(|i| f16::from_f32(if i % 4 == 0 { 1.0 } else { 0.0 })).collect();
    let x: Vec<f16> = (0..9).map(|i| f16::from_f32(i as f32 - 4.0)).collect();
    let y = product(&device, &identity, &x, [3, 3, 3], Activation::LeakyRelu)?;
    println!("on {device}: {y:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let device = Device::auto();
        // The last one takes the larger blocks.
        for [m, n, k] in [[1, 1, 1], [40, 33, 50], [130, 128, 40]] {
            let number = |i: usize| f16::from_f32((i * 7 % 11) as f32 - 5.0);
            let (a, b): (Vec<f16>, Vec<f16>) = ((0..m * k).map(number).collect(), (0..k * n).map(number).collect());
            let plain = product(&device, &a, &b, [m, n, k], Activation::None).unwrap();
            let leaky = product(&device, &a, &b, [m, n, k], Activation::LeakyRelu).unwrap();
            for (i, (plain, leaky)) in plain.iter().zip(leaky).enumerate() {
                let expected: f32 = (0..k).map(|l| a[i / n * k + l].to_f32() * b[l * n + i % n].to_f32()).sum();
                assert_eq!(plain.to_f32(), expected, "element {i} of {m} x {n} x {k}");
                let expected = if expected >= 0.0 { expected } else { 0.01 * expected };
                assert!((leaky.to_f32() - expected).abs() <= expected.abs() / 500.0);
            }
        }
    }
}

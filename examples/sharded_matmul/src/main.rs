//! A matrix product over several devices: each has some columns of A and the same rows of B, computes its part of the sum, and
//! the parts are added. With the feature `nccl` GPUs add them by NCCL; without it, and on emulated devices, the host does.

use rtc_runtime::half::f16;
use rtc_runtime::{Device, Result};

rtc_runtime::include_kernels!("partial_matmul");

#[cfg(feature = "nccl")]
mod nccl;

/// A is `m` x `k`, B is `k` x `n`, both row by row.
#[derive(Clone, Copy, Debug)]
struct Size {
    m: usize,
    n: usize,
    k: usize,
}

/// What one of `count` devices has of A and B, and how many columns and rows those are.
fn shard(size: Size, a: &[f16], b: &[f16], number: usize, count: usize) -> (Vec<f16>, Vec<f16>, usize) {
    let Size { n, k, .. } = size;
    let (start, end) = (k * number / count, k * (number + 1) / count);
    let columns = a.chunks(k).flat_map(|row| &row[start..end]).copied().collect();
    (columns, b[start * n..end * n].to_vec(), end - start)
}

/// Launches the product of a shard.
macro_rules! launch {
    ($kernel:expr, $stream:expr, $size:expr, $k:expr, $a:expr, $b:expr, $c:expr) => {{
        let Size { m, n, .. } = $size;
        let tiles = |size: usize, block: u32| (size as u32).div_ceil(block);
        // The configuration depends on the sizes: see tuned.json.
        let grid = |config: partial_matmul::PartialMatmulConfig| tiles(m, config.block_m) * tiles(n, config.block_n);
        $kernel.launch($stream, grid, $a, $b, $c, m as i32, n as i32, $k as i32)
    }};
}
#[cfg(feature = "nccl")]
use launch;

/// The product on these devices at the same time; the host adds the parts.
fn product(devices: &[Device], size: Size, a: &[f16], b: &[f16]) -> Result<Vec<f32>> {
    let part = |number: usize| -> Result<Vec<f32>> {
        let device = &devices[number];
        let (a, b, k) = shard(size, a, b, number, devices.len());
        let kernel = partial_matmul::partial_matmul(device)?;
        let (a, b, mut c) = (device.upload(&a)?, device.upload(&b)?, device.alloc::<f32>(size.m * size.n)?);
        launch!(kernel, device.default_stream(), size, k, &a, &b, &mut c)?;
        c.to_vec()
    };
    let part = &part;
    let parts = std::thread::scope(|scope| {
        let started: Vec<_> = (0..devices.len()).map(|number| scope.spawn(move || part(number))).collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<Vec<_>>>()
    })?;
    let sum = |i: usize| parts.iter().map(|part| part[i]).sum();
    Ok((0..size.m * size.n).map(sum).collect())
}

/// All GPUs of the host, or two emulated ones.
fn devices() -> Result<Vec<Device>> {
    match Device::cuda_count()? {
        0 => Ok(vec![Device::emulator(), Device::emulator()]),
        count => (0..count).map(Device::cuda).collect(),
    }
}

/// Small numbers that fp16 holds exactly, so that every order of summing gives the same.
fn matrices(size: Size) -> (Vec<f16>, Vec<f16>) {
    let number = |i: usize| f16::from_f32((i * 7919 % 15) as f32 / 8.0 - 0.875);
    let of = |count: usize, seed: usize| (0..count).map(|i| number(i + seed)).collect();
    (of(size.m * size.k, 0), of(size.k * size.n, 5))
}

/// Some elements of the product, each with its place.
fn expected(size: Size, a: &[f16], b: &[f16], step: usize) -> Vec<(usize, f32)> {
    let at = |place: usize| {
        let (row, column) = (place / size.n, place % size.n);
        let terms = (0..size.k).map(|i| a[row * size.k + i].to_f32() * b[i * size.n + column].to_f32());
        (place, terms.sum())
    };
    (0..size.m * size.n).step_by(step).map(at).collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let devices = devices()?;
    let size = match devices[0].is_cuda() {
        true => Size { m: 4096, n: 4096, k: 8192 },
        false => Size { m: 64, n: 96, k: 128 },
    };
    let (a, b) = matrices(size);
    let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
    println!("{} x {} x {} on {}", size.m, size.n, size.k, names.join(", "));
    let c = product(&devices, size, &a, &b)?;
    let sample = expected(size, &a, &b, size.m * size.n / 97);
    assert!(sample.iter().all(|(place, value)| c[*place] == *value), "the host's sum is wrong");
    println!("the host's sum is right");
    #[cfg(feature = "nccl")]
    if devices[0].is_cuda() {
        let (c, seconds) = nccl::product(&devices, size, &a, &b, 20)?;
        assert!(sample.iter().all(|(place, value)| c[*place] == *value), "the sum of NCCL is wrong");
        let rate = 2.0 * (size.m * size.n * size.k) as f64 / seconds * 1e-12;
        println!("the sum of NCCL is right: {:.3} ms a product, {rate:.0} TFLOP/s", seconds * 1e3);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_two_devices_add_up() {
        // The last is of the sizes that tuned.json has a configuration for.
        for (m, n, k) in [(33, 40, 50), (64, 64, 1), (64, 96, 128)] {
            let size = Size { m, n, k };
            let (a, b) = matrices(size);
            for count in [1, 2, 3] {
                let devices: Vec<Device> = (0..count).map(|_| Device::emulator()).collect();
                let c = product(&devices, size, &a, &b).unwrap();
                for (place, value) in expected(size, &a, &b, 1) {
                    assert_eq!(c[place], value, "{size:?}, {count} devices, element {place}");
                }
            }
        }
    }

    #[test]
    fn gpus_add_up_by_nccl() {
        let devices = devices().unwrap();
        if !devices[0].is_cuda() {
            return eprintln!("SKIPPED: there is no GPU");
        }
        #[cfg(feature = "nccl")]
        {
            let size = Size { m: 256, n: 128, k: 512 };
            let (a, b) = matrices(size);
            let (c, _) = nccl::product(&devices, size, &a, &b, 1).unwrap();
            assert!(expected(size, &a, &b, 1).iter().all(|(place, value)| c[*place] == *value));
        }
    }
}

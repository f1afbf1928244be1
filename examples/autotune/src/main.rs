//! `cargo run -p rtc-example-autotune`: on a GPU twice, the second time it starts with the winner.

use rtc_cache::{Cache, CacheConfig};
use rtc_runtime::Device;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto();
    let cache = Cache::open(CacheConfig::from_env()?)?;
    let n = if device.is_cuda() { 1 << 26 } else { 10_000 };
    let (x, y) = (vec![3.0; n], vec![1.0; n]);
    let (result, report) = rtc_example_autotune::scale_add(&device, Some(&cache), 2.0, &x, &y)?;
    assert!(result.iter().all(|v| *v == 7.0));
    println!("{device}: {:?}\n{report}", report.decision);
    Ok(())
}

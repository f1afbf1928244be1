//! Autotuning from Rust: which configuration of a kernel is the fastest for these arguments, and a launch with it.

use rtc_abi::DType;
use rtc_cache::Cache;
use rtc_compiler::{HostValue, Program, Signature, Source, Spec};
use rtc_runtime::{Device, args};
use rtc_tune::{GridFn, Tuner, TuningReport};
use std::error::Error;

/// The source, with the configurations above the kernel.
const SOURCE: &str = include_str!("../kernels/scale_add.rt");

/// Computes `a * x + y` with the fastest configuration; gives it with what the tuner found. With a cache the next process
/// starts with the winner.
pub fn scale_add(
    device: &Device,
    cache: Option<&Cache>,
    a: f32,
    x: &[f32],
    y: &[f32],
) -> Result<(Vec<f32>, TuningReport), Box<dyn Error>> {
    let n = x.len();
    let program = Program::parse(&[Source::new("scale_add.rt", SOURCE)]);
    // What configurations and heuristics set is left out.
    let spec = Spec {
        args: Signature::parse("*fp32:16, *fp32:16, fp32, i32")?.bind(&["x", "y", "a", "n"])?,
        ..Spec::default()
    };
    let tensor = || HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![n as u64]) };
    let mut tuner = Tuner::new(&program, spec)
        .argument("x", tensor())
        .argument("y", tensor())
        .integer("n", n as i64)
        .grid(GridFn::new(["cdiv(n, BLOCK)".parse()?, 1.into(), 1.into()]));
    if let Some(cache) = cache {
        tuner = tuner.cache(cache);
    }

    let (x, mut y) = (device.upload(x)?, device.upload(y)?);
    // Runs the kernel many times on these buffers, and puts them back.
    let report = tuner.tune(device, &args![&x, &mut y, a, n])?;
    let winner = report.winner().ok_or("no configuration can run")?;
    let spec = report.winning_spec().ok_or("no configuration can run")?;
    let kernel = device.compile_program(&program, &spec)?.kernel;
    kernel.launch(device.default_stream(), winner.grid, &args![&x, &mut y, a, n])?;
    Ok((y.to_vec()?, report))
}

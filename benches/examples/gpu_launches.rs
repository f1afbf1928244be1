//! Host time of one launch on a real GPU: the runtime, a bare call of the driver, and a graph, alternately in one run.
//! `scripts/launch_times.py` adds Triton's time on the same machine.
#![allow(unsafe_code)]

use rtc_benches::{bare::Bare, empty_kernel};
use rtc_runtime::{Buffer, Device, Kernel, Read, Result, Write, args};
use std::time::Instant;

type In = Read<f32>;
type Sixteen = (In, In, In, In, In, In, In, Write<f32>, i32, i32, i32, i32, i32, i32, i32, i32);

/// Launches between two waits: fewer than the driver queues.
const BATCH: u32 = 256;
const ROUNDS: usize = 300;

/// The cost of loading in addition to the driver's own time for the same PTX; each load has a text that is in no cache
/// of the driver.
fn loads(device: &Device) -> Result<()> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for index in 0..40 {
        let text = |salt: usize| {
            let (ptx, metadata) = empty_kernel(8, 8);
            let body = format!("    .reg .b32 %r<2>;\n{}    ret;", format!("    mov.u32 %r1, {salt};\n").repeat(2000));
            (ptx.replace("    ret;", &body), metadata)
        };
        let ((ptx, metadata), (other, _)) = (text(2 * index), text(2 * index + 1));
        let start = Instant::now();
        // SAFETY: the metadata is that of the kernel.
        let kernel = unsafe { device.load_json(&ptx, &metadata)? };
        ours.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let loaded = Bare::load(&other, 16);
        bare.push(start.elapsed().as_secs_f64() * 1e3);
        assert!(loaded.is_ok() && kernel.usage().is_some());
    }
    for (name, times) in [("load, rtc", &mut ours), ("load, bare driver", &mut bare)] {
        times.sort_by(f64::total_cmp);
        println!("{name:36} {:7.3} ms (median of {})", times[times.len() / 2], times.len());
    }
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.default_stream();
    let buffers: Vec<Buffer<f32>> = (0..8).map(|_| device.alloc(64)).collect::<Result<_>>()?;
    let [x0, x1, x2, x3, x4, x5, x6, _] = &buffers[..] else { return Ok(()) };
    let mut out = device.alloc::<f32>(64)?;
    let (ptx4, metadata4) = empty_kernel(2, 2);
    let (ptx16, metadata16) = empty_kernel(8, 8);
    // SAFETY: the metadata is that of the kernels, which access nothing.
    let four = unsafe { device.load_json(&ptx4, &metadata4)? };
    // SAFETY: as above.
    let sixteen = unsafe { device.load_json(&ptx16, &metadata16)? };
    let typed: Kernel<Sixteen> = sixteen.typed()?;
    let failed = |error: cudarc::driver::DriverError| rtc_runtime::Error::NoDevice(format!("{error:?}"));
    let (mut bare4, mut bare16) = (Bare::load(&ptx4, 4).map_err(failed)?, Bare::load(&ptx16, 16).map_err(failed)?);
    let graph = stream.capture(|s| (0..100).try_for_each(|_| four.launch(s, 1, &args![x0, &mut out, 64, 1])))?;

    loads(&device)?;
    let mut rows: Vec<(&str, f64, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS {
        let mut row = |name: &'static str, launches: f64, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            device.synchronize()?;
            let start = Instant::now();
            for _ in 0..BATCH {
                work()?;
            }
            let time = start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH);
            device.synchronize()?;
            match rows.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, times)) if round >= 20 => times.push(time),
                Some(_) => {}
                None => rows.push((name, launches, Vec::new())),
            }
            Ok(())
        };
        row("bare cuLaunchKernel, 4 arguments", 1.0, &mut || bare4.launch().map_err(failed))?;
        row("rtc, 4 arguments", 1.0, &mut || four.launch(stream, 1, &args![x0, &mut out, 64, 1]))?;
        row("bare cuLaunchKernel, 16 arguments", 1.0, &mut || bare16.launch().map_err(failed))?;
        row("rtc, 16 arguments", 1.0, &mut || {
            // SAFETY: the kernel accesses nothing.
            unsafe {
                sixteen.launch_unchecked(
                    stream,
                    1,
                    &args![x0, x1, x2, x3, x4, x5, x6, &mut out, 64, 1, 2, 3, 4, 5, 6, 7],
                )
            }
        })?;
        row("rtc, 16 arguments, lengths proved", 1.0, &mut || {
            sixteen.launch(stream, 1, &args![x0, x1, x2, x3, x4, x5, x6, &mut out, 64, 1, 2, 3, 4, 5, 6, 7])
        })?;
        row("rtc, 16 arguments, typed handle", 1.0, &mut || {
            typed.launch(stream, 1, (x0, x1, x2, x3, x4, x5, x6, &mut out, 64, 1, 2, 3, 4, 5, 6, 7))
        })?;
        if round % 10 == 0 {
            row("rtc, graph of 100 launches", 100.0, &mut || graph.launch(stream))?;
        }
    }
    for (name, launches, mut times) in rows {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let (low, high) = (times[times.len() / 20], times[times.len() * 19 / 20]);
        println!("{name:36} {median:7.3} us a call (5% {low:.3}, 95% {high:.3}), {:.3} us a launch", median / launches);
    }
    Ok(())
}

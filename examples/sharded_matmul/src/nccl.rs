//! The sum by NCCL: memory and streams are those of cudarc, in which the kernels are launched.

use crate::{Size, launch, partial_matmul, shard};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use cudarc::nccl::{Comm, ReduceOp, group_end, group_start};
use rtc_runtime::half::f16;
use rtc_runtime::{Device, interop};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// A device with its shard.
struct Rank<'d> {
    device: &'d Device,
    theirs: Arc<CudaStream>,
    stream: rtc_runtime::Stream,
    kernel: partial_matmul::PartialMatmul,
    a: CudaSlice<f16>,
    b: CudaSlice<f16>,
    c: CudaSlice<f32>,
    k: usize,
}

/// The product on these GPUs, which then all have the sum; gives that of the first, and the seconds that one of `repeat`
/// products takes.
pub(crate) fn product(
    devices: &[Device],
    size: Size,
    a: &[f16],
    b: &[f16],
    repeat: u32,
) -> Result<(Vec<f32>, f64), Box<dyn Error>> {
    let mut ranks = Vec::new();
    for (number, device) in devices.iter().enumerate() {
        let (a, b, k) = shard(size, a, b, number, devices.len());
        let theirs = CudaContext::new(number)?.new_stream()?;
        let stream = interop::stream(device, &theirs)?;
        let kernel = partial_matmul::partial_matmul(device)?;
        let (a, b) = (theirs.clone_htod(&a)?, theirs.clone_htod(&b)?);
        let c = theirs.alloc_zeros::<f32>(size.m * size.n)?;
        ranks.push(Rank { device, theirs, stream, kernel, a, b, c, k });
    }
    let streams = ranks.iter().map(|rank| rank.theirs.clone()).collect();
    let comms = Comm::from_devices(streams).map_err(|error| format!("NCCL: {error:?}"))?;
    let mut once = || -> Result<(), Box<dyn Error>> {
        for rank in &mut ranks {
            let a = interop::read(rank.device, &rank.a, &rank.theirs)?;
            let b = interop::read(rank.device, &rank.b, &rank.theirs)?;
            let mut c = interop::write(rank.device, &mut rank.c, &rank.theirs)?;
            launch!(rank.kernel, &rank.stream, size, rank.k, a.slice(), b.slice(), c.slice_mut())?;
        }
        // One thread asks all ranks: NCCL must see the requests as one.
        group_start().map_err(|error| format!("NCCL: {error:?}"))?;
        for (comm, rank) in comms.iter().zip(&mut ranks) {
            comm.all_reduce_in_place(&mut rank.c, &ReduceOp::Sum).map_err(|error| format!("NCCL: {error:?}"))?;
        }
        group_end().map_err(|error| format!("NCCL: {error:?}"))?;
        Ok(())
    };
    once()?;
    devices.iter().try_for_each(Device::synchronize)?;
    let start = Instant::now();
    (0..repeat).try_for_each(|_| once())?;
    devices.iter().try_for_each(Device::synchronize)?;
    let seconds = start.elapsed().as_secs_f64() / f64::from(repeat.max(1));
    let rank = &ranks[0];
    Ok((rank.theirs.clone_dtoh(&rank.c)?, seconds))
}

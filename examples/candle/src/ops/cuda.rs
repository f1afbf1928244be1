//! The operations on tensors of a GPU: candle's memory and candle's stream are lent to the launches.

use super::{attend, kernels};
use candle_core::WithDType;
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaDType;
use candle_core::cuda_backend::cudarc::driver::{CudaView, DeviceRepr};
use candle_core::{CudaStorage, Error, Layout, Result, bail};
use rtc_runtime::half::f16;
use rtc_runtime::interop;

/// The elements of an argument, row after row; `what` it is for.
fn elements<'s, T: CudaDType + WithDType + DeviceRepr>(
    what: &str,
    storage: &'s CudaStorage,
    layout: &Layout,
) -> Result<CudaView<'s, T>> {
    if storage.dtype() != T::DTYPE {
        bail!("{what} takes {}", T::DTYPE.as_str());
    }
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(storage.as_cuda_slice::<T>()?.slice(start..end)),
        None => bail!("the argument is not contiguous; call `contiguous()` first"),
    }
}

/// The softmax of so many rows of so many elements.
pub(super) fn softmax(x: &CudaStorage, layout: &Layout, (rows, columns): (usize, usize)) -> Result<CudaStorage> {
    let (own, candle, x) = (kernels()?, x.device().clone(), elements::<f32>("softmax", x, layout)?);
    let theirs = candle.cuda_stream();
    let mut y = candle.alloc_zeros::<f32>(rows * columns)?;
    let mut launch = || {
        let stream = interop::stream(&own.device, &theirs)?;
        let (x, mut y) = (interop::read(&own.device, &x, &theirs)?, interop::write(&own.device, &mut y, &theirs)?);
        own.softmax.launch(&stream, rows.min(512) as u32, x.slice(), y.slice_mut(), rows as i32, columns as i32)
    };
    launch().map_err(Error::wrap)?;
    Ok(CudaStorage::wrap_cuda_slice(y, candle))
}

/// The attention of q, k and v with so many heads, rows and columns.
pub(super) fn attention([q, k, v]: [(&CudaStorage, &Layout); 3], size: (usize, usize, usize)) -> Result<CudaStorage> {
    let (own, candle) = (kernels()?, q.0.device().clone());
    let theirs = candle.cuda_stream();
    let [q, k, v] = [q, k, v].map(|(storage, layout)| elements::<f16>("attention", storage, layout));
    let (q, k, v) = (q?, k?, v?);
    let mut out = candle.alloc_zeros::<f16>(size.0 * size.1 * size.2)?;
    let mut launch = || {
        let (device, stream) = (&own.device, interop::stream(&own.device, &theirs)?);
        let [q, k, v] = [&q, &k, &v].map(|all| interop::read(device, all, &theirs));
        let (q, k, v, mut out) = (q?, k?, v?, interop::write(device, &mut out, &theirs)?);
        attend(own, &stream, [q.slice(), k.slice(), v.slice()], out.slice_mut(), size)
    };
    launch().map_err(Error::wrap)?;
    Ok(CudaStorage::wrap_cuda_slice(out, candle))
}

//! The kernels as operations of candle: [`softmax`] of the last dimension and [`attention`].
//!
//! Of a tensor on the CPU candle hands an operation its memory on the host, which is copied to the device of the kernels: a
//! GPU if there is one, else the emulator. Of a tensor on a GPU, with the feature `cuda` (candle compiles its own kernels for
//! it, so `nvcc` has to be there), nothing is copied: the launch borrows candle's memory and runs on candle's stream.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, DType, Error, Layout, Result, Shape, Tensor, bail};
use rtc_runtime::half::f16;
use rtc_runtime::{Device, Slice, SliceMut, Stream};
use std::sync::OnceLock;

#[cfg(feature = "cuda")]
mod cuda;

rtc_runtime::include_kernels!("kernels");

/// The kernels, loaded once.
struct Kernels {
    device: Device,
    stream: Stream,
    softmax: kernels::SoftmaxKernel,
    attention_32: kernels::AttentionKernel<32>,
    attention_64: kernels::AttentionKernel<64>,
}

fn kernels() -> Result<&'static Kernels> {
    static KERNELS: OnceLock<rtc_runtime::Result<Kernels>> = OnceLock::new();
    let load = || {
        let device = Device::auto();
        Ok(Kernels {
            stream: device.stream()?,
            softmax: kernels::softmax_kernel(&device)?,
            attention_32: kernels::attention_kernel::<32>(&device)?,
            attention_64: kernels::attention_kernel::<64>(&device)?,
            device,
        })
    };
    KERNELS.get_or_init(load).as_ref().map_err(|error| Error::msg(error.to_string()))
}

/// The elements of an argument, row after row.
fn elements<'s, T>(all: &'s [T], layout: &Layout) -> Result<&'s [T]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&all[start..end]),
        None => bail!("the argument is not contiguous; call `contiguous()` first"),
    }
}

/// The rows of an argument of softmax, and how many elements each has.
fn rows_of(layout: &Layout) -> Result<(usize, usize)> {
    let columns = layout.shape().dims().last().copied().unwrap_or(1);
    if columns == 0 || columns > 1024 {
        bail!("softmax takes rows of 1 to 1024 elements, not {columns}");
    }
    Ok((layout.shape().elem_count() / columns, columns))
}

struct Softmax;

/// The softmax of the last dimension of an `f32` tensor.
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    x.apply_op1(Softmax)
}

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "rtc-softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let CpuStorage::F32(x) = storage else { bail!("softmax takes f32") };
        let (x, (rows, columns)) = (elements(x, layout)?, rows_of(layout)?);
        let k = kernels()?;
        let y = || {
            let (x, mut y) = (k.device.upload(x)?, k.device.alloc(x.len())?);
            k.softmax.launch(&k.stream, rows.min(512) as u32, &x, &mut y, rows as i32, columns as i32)?;
            k.stream.synchronize()?;
            y.to_vec()
        };
        Ok((CpuStorage::F32(y().map_err(Error::wrap)?), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        Ok((cuda::softmax(storage, layout, rows_of(layout)?)?, layout.shape().clone()))
    }

    /// `y * (g - sum(y * g))`.
    fn bwd(&self, _x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
        let last = y.rank() - 1;
        let along = (y * g)?.sum_keepdim(last)?;
        Ok(Some((y * g.broadcast_sub(&along)?)?))
    }
}

struct Attention;

/// The attention of heads: `q`, `k` and `v` are `f16` tensors of the shape (heads, rows, columns) with 32 or 64 columns.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    q.apply_op3_no_bwd(k, v, &Attention)
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "rtc-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (CpuStorage::F16(q), CpuStorage::F16(k), CpuStorage::F16(v)) = (q, k, v) else {
            bail!("attention takes {:?}", DType::F16)
        };
        let size = size_of(q_layout, k_layout, v_layout)?;
        let (q, k, v) = (elements(q, q_layout)?, elements(k, k_layout)?, elements(v, v_layout)?);
        let own = kernels()?;
        let out = || {
            let (q, k, v) = (own.device.upload(q)?, own.device.upload(k)?, own.device.upload(v)?);
            let mut out = own.device.alloc(q.len())?;
            attend(own, &own.stream, [(&q).into(), (&k).into(), (&v).into()], (&mut out).into(), size)?;
            own.stream.synchronize()?;
            out.to_vec()
        };
        Ok((CpuStorage::F16(out().map_err(Error::wrap)?), q_layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        q: &candle_core::CudaStorage,
        q_layout: &Layout,
        k: &candle_core::CudaStorage,
        k_layout: &Layout,
        v: &candle_core::CudaStorage,
        v_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let size = size_of(q_layout, k_layout, v_layout)?;
        Ok((cuda::attention([(q, q_layout), (k, k_layout), (v, v_layout)], size)?, q_layout.shape().clone()))
    }
}

/// Heads, rows and columns of the arguments of attention.
fn size_of(q: &Layout, k: &Layout, v: &Layout) -> Result<(usize, usize, usize)> {
    let size = q.shape().dims3()?;
    if k.shape() != q.shape() || v.shape() != q.shape() {
        bail!("q, k and v have the shapes {:?}, {:?} and {:?}", q.shape(), k.shape(), v.shape());
    }
    match size.2 {
        32 | 64 => Ok(size),
        columns => bail!("attention takes 32 or 64 columns, not {columns}"),
    }
}

fn attend(
    own: &Kernels,
    stream: &Stream,
    [q, k, v]: [Slice<'_, f16>; 3],
    out: SliceMut<'_, f16>,
    (heads, rows, columns): (usize, usize, usize),
) -> rtc_runtime::Result<()> {
    let grid = (rows.div_ceil(64) as u32, heads as u32);
    let scale = std::f32::consts::LOG2_E / (columns as f32).sqrt();
    match columns {
        32 => own.attention_32.launch(stream, grid, q, k, v, out, scale, rows as i32),
        _ => own.attention_64.launch(stream, grid, q, k, v, out, scale, rows as i32),
    }
}

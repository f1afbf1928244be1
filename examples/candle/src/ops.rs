//! The kernels as operations of candle: [`softmax`] of the last dimension and [`attention`].
//!
//! candle hands an operation its memory on the host here, which is copied to the device of the kernels: a GPU if there is
//! one, else the emulator. candle's own GPU tensors need its feature `cuda`, which compiles candle's kernels by `nvcc` when the
//! crate is built; this example builds without a CUDA toolkit, so it does without. Where `nvcc` is there, nothing need be
//! copied: `cuda_fwd` of an operation gets a storage whose `as_cuda_slice` is a slice of cudarc 0.19, and
//! `rtc_runtime::interop::read` lends that to a launch.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, DType, Error, Layout, Result, Shape, Tensor, bail};
use rtc_runtime::half::f16;
use rtc_runtime::{Device, Stream};
use std::sync::OnceLock;

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
        let (x, columns) = (elements(x, layout)?, layout.shape().dims().last().copied().unwrap_or(1));
        if columns == 0 || columns > 1024 {
            bail!("softmax takes rows of 1 to 1024 elements, not {columns}");
        }
        let rows = x.len() / columns;
        let y = || {
            let k = kernels()?;
            let (x, mut y) = (k.device.upload(x).map_err(Error::wrap)?, k.device.alloc(x.len()).map_err(Error::wrap)?);
            let programs = rows.min(512) as u32;
            k.softmax.launch(&k.stream, programs, &x, &mut y, rows as i32, columns as i32).map_err(Error::wrap)?;
            k.stream.synchronize().map_err(Error::wrap)?;
            y.to_vec().map_err(Error::wrap)
        };
        Ok((CpuStorage::F32(y()?), layout.shape().clone()))
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
        let (heads, rows, columns) = q_layout.shape().dims3()?;
        if k_layout.shape() != q_layout.shape() || v_layout.shape() != q_layout.shape() {
            bail!(
                "q, k and v have the shapes {:?}, {:?} and {:?}",
                q_layout.shape(),
                k_layout.shape(),
                v_layout.shape()
            );
        }
        let (q, k, v) = (elements(q, q_layout)?, elements(k, k_layout)?, elements(v, v_layout)?);
        let out = run(q, k, v, (heads, rows, columns)).map_err(Error::wrap)?;
        Ok((CpuStorage::F16(out?), q_layout.shape().clone()))
    }
}

fn run(
    q: &[f16],
    k: &[f16],
    v: &[f16],
    (heads, rows, columns): (usize, usize, usize),
) -> rtc_runtime::Result<Result<Vec<f16>>> {
    let own = match kernels() {
        Ok(own) => own,
        Err(error) => return Ok(Err(error)),
    };
    let (q, k, v) = (own.device.upload(q)?, own.device.upload(k)?, own.device.upload(v)?);
    let mut out = own.device.alloc(q.len())?;
    let grid = (rows.div_ceil(64) as u32, heads as u32);
    let scale = std::f32::consts::LOG2_E / (columns as f32).sqrt();
    match columns {
        32 => own.attention_32.launch(&own.stream, grid, &q, &k, &v, &mut out, scale, rows as i32)?,
        64 => own.attention_64.launch(&own.stream, grid, &q, &k, &v, &mut out, scale, rows as i32)?,
        _ => return Ok(Err(Error::msg(format!("attention takes 32 or 64 columns, not {columns}")))),
    }
    own.stream.synchronize()?;
    Ok(Ok(out.to_vec()?))
}

//! Tensor descriptors: tensors in memory as arguments.
//!
//! Dimensions stand outermost first.

use crate::backend::MAX_RANK;
use crate::pointer::Pointer;
use crate::{Buffer, Element};
use rtc_abi::metadata::Padding;

/// A tensor in memory as an argument: what `TensorDescriptor` is in the host code of Triton. The kernel knows the block.
///
/// ```
/// use rtc_runtime::{Arg, Device, TensorDescriptor};
/// let device = Device::emulator();
/// let buffer = device.zeros::<half::f16>(100 * 64)?;
/// let rows = TensorDescriptor::new(&buffer, &[100, 64], &[64, 1]);
/// let arg = Arg::from(&rows);
/// # let _ = arg;
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorDescriptor<'a> {
    base: Pointer<'a>,
    extents: Extents,
}

/// Sizes and strides of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    pub(crate) shape: [i128; MAX_RANK],
    pub(crate) strides: [i128; MAX_RANK],
    /// That of the shape, and that of the strides.
    pub(crate) ranks: [usize; 2],
    pub(crate) padding: Padding,
    /// The block that the kernel moves and its rank; 0 if it was not said.
    block: ([u32; MAX_RANK], usize),
}

impl Extents {
    /// How many elements lie between its first and its last, both counted.
    pub(crate) fn elements(&self) -> u128 {
        let (shape, strides) = (&self.shape[..self.ranks[0].min(MAX_RANK)], &self.strides);
        if shape.iter().any(|size| *size <= 0) {
            return 0;
        }
        let last = shape.iter().zip(strides).map(|(size, stride)| (size - 1).saturating_mul((*stride).max(0)));
        u128::try_from(last.fold(1, i128::saturating_add)).unwrap_or(u128::MAX)
    }

    /// The size along a dimension.
    #[cfg(feature = "jit")]
    pub(crate) fn size(&self, axis: usize) -> i128 {
        self.shape.get(axis).copied().unwrap_or(1)
    }

    /// The stride of a dimension, in elements.
    #[cfg(feature = "jit")]
    pub(crate) fn stride(&self, axis: usize) -> i128 {
        self.strides.get(axis).copied().unwrap_or(1)
    }

    /// Whether copies of what lies beside it give NaN.
    #[cfg(feature = "jit")]
    pub(crate) fn pads_nan(&self) -> bool {
        self.padding == Padding::Nan
    }

    /// The block that was said; empty if none was.
    #[cfg(feature = "jit")]
    pub(crate) fn block(&self) -> &[u32] {
        &self.block.0[..self.block.1]
    }

    /// How many sizes and strides there are.
    #[cfg(feature = "jit")]
    pub(crate) fn ranks(&self) -> [usize; 2] {
        self.ranks
    }
}

impl<'a> TensorDescriptor<'a> {
    /// A tensor of that shape whose elements are `strides` apart in each dimension, counted in elements; outermost first.
    /// Copies of what lies beside it give zeros.
    pub fn new(base: impl Into<Pointer<'a>>, shape: &[u64], strides: &[u64]) -> TensorDescriptor<'a> {
        let wide = |list: &[u64]| list.iter().map(|n| i128::from(*n)).collect::<Vec<_>>();
        TensorDescriptor::of_numbers(base.into(), &wide(shape), &wide(strides))
    }

    /// The tensor that a buffer is by its shape ([`Buffer::reshape`](crate::Buffer::reshape)), row after row.
    ///
    /// ```
    /// use rtc_runtime::{Device, TensorDescriptor};
    /// let rows = Device::emulator().zeros::<half::f16>(100 * 64)?.reshape(&[100, 64])?;
    /// let descriptor = TensorDescriptor::of(&rows);
    /// # let _ = descriptor;
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn of<T: Element>(buffer: &'a Buffer<T>) -> TensorDescriptor<'a> {
        let shape: Vec<i128> = buffer.shape().iter().map(|size| *size as i128).collect();
        TensorDescriptor::of_numbers(buffer.into(), &shape, &row_major(&shape))
    }

    /// The same of a buffer that the kernel writes.
    pub fn of_mut<T: Element>(buffer: &'a mut Buffer<T>) -> TensorDescriptor<'a> {
        let shape: Vec<i128> = buffer.shape().iter().map(|size| *size as i128).collect();
        TensorDescriptor::of_numbers(buffer.into(), &shape, &row_major(&shape))
    }

    pub(crate) fn of_numbers(base: Pointer<'a>, shape: &[i128], strides: &[i128]) -> TensorDescriptor<'a> {
        let array = |list: &[i128]| std::array::from_fn(|i| list.get(i).copied().unwrap_or(1));
        let ranks = [shape.len(), strides.len()];
        let extents = Extents {
            shape: array(shape),
            strides: array(strides),
            ranks,
            padding: Padding::Zero,
            block: ([1; MAX_RANK], 0),
        };
        TensorDescriptor { base, extents }
    }

    pub(crate) fn of_extents(base: Pointer<'a>, extents: Extents) -> TensorDescriptor<'a> {
        TensorDescriptor { base, extents }
    }

    pub(crate) fn extents(&self) -> Extents {
        self.extents
    }

    /// The same with the block that the kernel moves, as a kernel that is compiled at its launch must know; others know it
    /// already. At most five sizes count.
    ///
    /// ```
    /// use rtc_runtime::{Device, TensorDescriptor};
    /// let mut rows = Device::emulator().zeros::<f32>(64 * 64)?.reshape(&[64, 64])?;
    /// let descriptor = TensorDescriptor::of_mut(&mut rows).with_block(&[16, 32]).padded_with_nan();
    /// # let _ = descriptor;
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn with_block(mut self, block: &[u32]) -> TensorDescriptor<'a> {
        let rank = block.len().min(MAX_RANK);
        self.extents.block.0[..rank].copy_from_slice(&block[..rank]);
        self.extents.block.1 = rank;
        self
    }

    /// The same; copies of what lies beside it give NaN.
    pub fn padded_with_nan(self) -> TensorDescriptor<'a> {
        TensorDescriptor { base: self.base, extents: Extents { padding: Padding::Nan, ..self.extents } }
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> &Pointer<'a> {
        &self.base
    }
}

/// Strides of a tensor whose elements lie row after row.
fn row_major(shape: &[i128]) -> Vec<i128> {
    let mut strides = vec![1i128; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

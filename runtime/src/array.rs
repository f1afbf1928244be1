//! Arrays of the crate `ndarray` on the host (feature `ndarray`).

use crate::{Buffer, Device, Element, Error, Result};
use ndarray::{Array, ArrayView, Dimension, ShapeBuilder};

impl Device {
    /// Allocates a buffer with the elements of an array, in the order of its indices (row after row), whatever its strides.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// use rtc_runtime::ndarray::array; // of the version that this crate takes
    /// let a = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let x = Device::emulator().upload_array(a.t())?;
    /// assert_eq!(x.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// assert_eq!(x.to_array((3, 2))?, a.t());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::upload`].
    pub fn upload_array<T: Element, D: Dimension>(&self, array: ArrayView<'_, T, D>) -> Result<Buffer<T>> {
        match array.as_slice() {
            Some(elements) => self.upload(elements),
            None => self.upload(&array.iter().copied().collect::<Vec<T>>()),
        }
    }
}

impl<T: Element> Buffer<T> {
    /// All elements as an array of that shape, row after row.
    ///
    /// # Errors
    ///
    /// [`Error::CopyLength`] if the shape has another number of elements; else as for [`Buffer::to_vec`].
    pub fn to_array<S: ShapeBuilder>(&self, shape: S) -> Result<Array<T, S::Dim>> {
        let shape = shape.into_shape_with_order();
        let wanted = shape.size();
        if wanted != self.len() {
            return Err(Error::CopyLength { from: self.len() as u64, to: wanted as u64 });
        }
        Array::from_shape_vec(shape, self.to_vec()?).map_err(|error| Error::BufferAccess(error.to_string()))
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    #[test]
    fn arrays_there_and_back() {
        let device = Device::emulator();
        let array = Array::from_shape_fn((4, 3, 2), |(i, j, k)| (i * 100 + j * 10 + k) as i32);
        let x = device.upload_array(array.view()).unwrap();
        assert_eq!(x.to_array((4, 3, 2)).unwrap(), array);
        let part = array.slice(ndarray::s![1..3, .., 1]);
        let y = device.upload_array(part).unwrap();
        assert_eq!(y.to_vec().unwrap(), [101, 111, 121, 201, 211, 221]);
        assert!(y.to_array((2, 4)).is_err());
        assert!(device.upload_array(array.slice(ndarray::s![..0, .., ..])).unwrap().is_empty());
    }
}

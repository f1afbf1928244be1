//! Tensors on the host and the safetensors files that hold them.
//!
//! Values stay bytes: every element type of the format is kept as it is, whether Rust has a type for it or not.
//!
//! ```
//! use rtc_testing::{Dtype, Tensor, Tensors};
//! let mut tensors = Tensors::default();
//! tensors.insert("x", Tensor::new(Dtype::F32, vec![2], 1f32.to_le_bytes().repeat(2)).unwrap());
//! let back = Tensors::from_bytes(&tensors.to_bytes().unwrap()).unwrap();
//! assert_eq!(back.get("x").unwrap().shape, [2]);
//! ```

use crate::{Error, Result};
use rtc_abi::DType;
use rtc_runtime::Element;
use safetensors::tensor::{TensorView, serialize};
use safetensors::{SafeTensorError, SafeTensors};

pub use safetensors::Dtype;

/// A tensor: element type, shape, and its bytes in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: Dtype,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Little-endian values, row-major, without gaps.
    pub data: Vec<u8>,
}

impl Tensor {
    /// A tensor of these bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if the number of bytes is not that of the shape.
    pub fn new(dtype: Dtype, shape: Vec<usize>, data: Vec<u8>) -> Result<Tensor> {
        let elements = shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
        let bytes = elements.and_then(|n| n.checked_mul(dtype.bitsize())).map(|bits| bits.div_ceil(8));
        if bytes != Some(data.len()) {
            return Err(Error::Tensors(format!(
                "{} bytes do not make a {dtype:?} tensor of shape {shape:?}",
                data.len()
            )));
        }
        Ok(Tensor { dtype, shape, data })
    }

    /// A tensor of these values.
    ///
    /// ```
    /// let x = rtc_testing::Tensor::of(vec![2, 2], &[1i32, 2, 3, 4])?;
    /// assert_eq!(x.values::<i32>()?, [1, 2, 3, 4]);
    /// assert!(x.values::<f32>().is_err());
    /// # Ok::<(), rtc_testing::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if the number of values is not that of the shape, or safetensors files have no such type.
    pub fn of<T: Element>(shape: Vec<usize>, values: &[T]) -> Result<Tensor> {
        let dtype =
            dtype_of(T::DTYPE).ok_or_else(|| Error::Tensors(format!("there are no tensors of {}", T::DTYPE)))?;
        Tensor::new(dtype, shape, rtc_runtime::to_bytes(values).to_vec())
    }

    /// Its values.
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if it has elements of another type.
    pub fn values<T: Element>(&self) -> Result<Vec<T>> {
        if dtype_of(T::DTYPE) != Some(self.dtype) {
            return Err(Error::Tensors(format!("a tensor of {:?} has no values of {}", self.dtype, T::DTYPE)));
        }
        Ok(rtc_runtime::from_bytes(&self.data)?)
    }
}

/// The element type under the name of the format, if it has such a type.
///
/// ```
/// use rtc_testing::{Dtype, dtype_of};
/// assert_eq!(dtype_of(rtc_abi::DType::Fp8E4Nv), Some(Dtype::F8_E4M3));
/// assert_eq!(dtype_of(rtc_abi::DType::Fp8E4B15), None);
/// ```
pub fn dtype_of(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::UInt1 => Dtype::BOOL,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::UInt8 => Dtype::U8,
        DType::UInt16 => Dtype::U16,
        DType::UInt32 => Dtype::U32,
        DType::UInt64 => Dtype::U64,
        DType::Fp8E5 => Dtype::F8_E5M2,
        DType::Fp8E4Nv => Dtype::F8_E4M3,
        DType::Fp16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::Fp32 => Dtype::F32,
        DType::Fp64 => Dtype::F64,
        DType::Fp8E4B15 | DType::Fp8E4B8 | DType::Fp8E5B16 => return None,
    })
}

/// Tensors by name, in the order of insertion.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Tensors {
    entries: Vec<(String, Tensor)>,
}

impl Tensors {
    /// Reads the bytes of a safetensors file.
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if they are no such file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Tensors> {
        let file = SafeTensors::deserialize(bytes).map_err(|e| Error::Tensors(explain(&e, bytes)))?;
        let mut entries: Vec<(usize, String, Tensor)> = file
            .iter()
            .map(|(name, view)| {
                let start = view.data().as_ptr().addr();
                let tensor = Tensor { dtype: view.dtype(), shape: view.shape().to_vec(), data: view.data().to_vec() };
                (start, name.to_owned(), tensor)
            })
            .collect();
        // The reader gives no order; that of the data is the file's, empty tensors by name.
        entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Ok(Tensors { entries: entries.into_iter().map(|(_, name, tensor)| (name, tensor)).collect() })
    }

    /// The bytes of a safetensors file.
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if the format cannot hold them.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let views = self.entries.iter().map(|(name, tensor)| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.data);
            view.map(|view| (name.as_str(), view)).map_err(|e| Error::Tensors(format!("tensor `{name}`: {e}")))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        serialize(views, None).map_err(|e| Error::Tensors(e.to_string()))
    }

    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.entries.iter().find(|(n, _)| n == name).map(|(_, t)| t)
    }

    /// Adds or replaces a tensor.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        let name = name.into();
        match self.entries.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = tensor,
            None => self.entries.push((name, tensor)),
        }
    }

    /// Takes a tensor out.
    ///
    /// ```
    /// use rtc_testing::{LaunchFile, Tensor, Tensors};
    /// let launch = LaunchFile::parse(r#"{"spec": {}, "grid": [1], "args": {"n": 2}}"#)?;
    /// let mut tensors = Tensors::default();
    /// tensors.insert("x", Tensor::of(vec![2], &[1i32, 2])?);
    /// assert_eq!(launch.with_tensor("x").host_values(&[], &tensors).len(), 2);
    /// assert_eq!(tensors.remove("x").map(|tensor| tensor.shape), Some(vec![2]));
    /// assert!(tensors.remove("x").is_none() && tensors.names().is_empty());
    /// # Ok::<(), rtc_testing::Error>(())
    /// ```
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        let at = self.entries.iter().position(|(n, _)| n == name)?;
        Some(self.entries.remove(at).1)
    }

    /// Names and tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Their names in order.
    pub fn names(&self) -> Vec<&str> {
        self.iter().map(|(name, _)| name).collect()
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for Tensors {
    fn from_iter<T: IntoIterator<Item = (N, Tensor)>>(all: T) -> Tensors {
        let mut tensors = Tensors::default();
        all.into_iter().for_each(|(name, tensor)| tensors.insert(name, tensor));
        tensors
    }
}

/// What is wrong with a file, in words that do not need knowledge of the format.
fn explain(error: &SafeTensorError, bytes: &[u8]) -> String {
    match error {
        SafeTensorError::HeaderTooSmall => format!("the file has {} bytes; a header needs at least 8", bytes.len()),
        SafeTensorError::HeaderTooLarge => "the length of the header in the first 8 bytes is over 100 MB".into(),
        SafeTensorError::InvalidHeaderLength => {
            format!("the header is longer than the file of {} bytes; the file is truncated", bytes.len())
        }
        SafeTensorError::InvalidHeader(e) => format!("the header is not UTF-8: {e}"),
        SafeTensorError::InvalidHeaderDeserialization(e) => format!("the header is not valid: {e}"),
        SafeTensorError::InvalidOffset(name) => {
            format!("tensor `{name}`: its `data_offsets` overlap another tensor or leave a gap")
        }
        SafeTensorError::TensorInvalidInfo => "a tensor's `data_offsets` do not fit its `shape` and `dtype`".into(),
        SafeTensorError::MetadataIncompleteBuffer => {
            "the data is shorter or longer than the `data_offsets` say; the file is truncated or has bytes to spare"
                .into()
        }
        SafeTensorError::ValidationOverflow => "a tensor's `shape` overflows".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    }

    #[test]
    fn every_dtype_round_trips() {
        let mut tensors = Tensors::default();
        use Dtype::*;
        for dtype in [BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, BF16, I32, U32, F32, F64, I64, U64] {
            let bytes = dtype.bitsize() / 8 * 6;
            let data = (0..bytes).map(|i| if dtype == BOOL { (i % 2) as u8 } else { (i * 37 + 11) as u8 }).collect();
            tensors.insert(format!("{dtype:?}"), Tensor::new(dtype, vec![2, 3], data).unwrap());
        }
        tensors.insert("scalar", Tensor::new(F32, vec![], vec![0; 4]).unwrap());
        tensors.insert("empty", Tensor::new(F32, vec![0, 3], vec![]).unwrap());
        let back = Tensors::from_bytes(&tensors.to_bytes().unwrap()).unwrap();
        for (name, tensor) in tensors.iter() {
            assert_eq!(back.get(name), Some(tensor), "{name}");
        }
        assert_eq!(back.names().len(), tensors.names().len());
    }

    #[test]
    fn corrupt_files_say_what_is_wrong() {
        let text = |bytes: &[u8]| Tensors::from_bytes(bytes).unwrap_err().to_string();
        let one = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        assert!(Tensors::from_bytes(&raw(one, &[0; 8])).is_ok());
        insta::assert_snapshot!(text(&[]), @"safetensors file: the file has 0 bytes; a header needs at least 8");
        insta::assert_snapshot!(text(&raw(one, &[0; 8])[..40]), @"safetensors file: the header is longer than the file of 40 bytes; the file is truncated");
        insta::assert_snapshot!(text(&u64::MAX.to_le_bytes()), @"safetensors file: the length of the header in the first 8 bytes is over 100 MB");
        insta::assert_snapshot!(text(&raw(one, &[0; 7])), @"safetensors file: the data is shorter or longer than the `data_offsets` say; the file is truncated or has bytes to spare");
        insta::assert_snapshot!(text(&raw(one, &[0; 9])), @"safetensors file: the data is shorter or longer than the `data_offsets` say; the file is truncated or has bytes to spare");
        let overlap = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        insta::assert_snapshot!(text(&raw(overlap, &[0; 8])), @"safetensors file: tensor `y`: its `data_offsets` overlap another tensor or leave a gap");
        insta::assert_snapshot!(text(&raw(&one.replace("[2]", "[3]"), &[0; 8])), @"safetensors file: a tensor's `data_offsets` do not fit its `shape` and `dtype`");
        insta::assert_snapshot!(text(&raw(&one.replace("[2]", "[4611686018427387904, 16]"), &[0; 8])), @"safetensors file: a tensor's `shape` overflows");
        assert!(text(&raw(&one.replace("F32", "F33"), &[0; 8])).contains("F33"));
        assert!(text(&raw("{", &[])).contains("header"));
    }

    #[test]
    fn shapes_are_checked() {
        assert!(Tensor::new(Dtype::F32, vec![3], vec![0; 8]).is_err());
        assert!(Tensor::new(Dtype::F32, vec![usize::MAX, 2], vec![0; 8]).is_err());
    }
}

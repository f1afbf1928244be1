//! Memory of other libraries: where it lies, what it holds, by whichever protocol its object speaks.
#![allow(unsafe_code)]

use crate::dlpack::dlpack;
use crate::host::{HostRange, View};
use crate::kind::ByAddress;
use crate::place::Memory;
use dlpark::AllocationDeleter;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rtc_abi::DType;
use std::sync::{Mutex, PoisonError};

/// An array or tensor.
pub(crate) struct Foreign {
    pub(crate) address: u64,
    pub(crate) dtype: DType,
    /// `None` where nothing tells.
    pub(crate) memory: Option<Memory>,
    /// Of memory of the process: the whole that it is a part of.
    pub(crate) range: Option<HostRange>,
    /// The elements of the array within that range.
    pub(crate) view: Option<View>,
    /// Of memory of a GPU: its number, unless it is PyTorch's current one.
    pub(crate) gpu: Option<usize>,
    /// A stream whose work on the memory must be finished before the launch.
    pub(crate) stream: Option<u64>,
    /// Why the kernel must not write to it.
    pub(crate) read_only: Option<&'static str>,
    /// Whether it has a shape and a type only, as PyTorch's tensors on the device `meta`.
    pub(crate) is_meta: bool,
    /// What keeps the memory alive, if the Python object does not.
    pub(crate) owner: Option<AllocationDeleter>,
}

impl Foreign {
    /// An array of which no more is known.
    pub(crate) fn new(address: u64, dtype: DType, memory: Option<Memory>) -> Foreign {
        let (range, view, gpu, stream, read_only, is_meta, owner) = Default::default();
        Foreign { address, dtype, memory, range, view, gpu, stream, read_only, is_meta, owner }
    }
}

/// The type that a dtype of any library stands for: the last part of its name tells.
pub(crate) fn dtype_of(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    static KNOWN: ByAddress<(DType, Py<PyAny>)> = Mutex::new(None);
    let key = dtype.as_ptr() as usize;
    if let Some((found, _)) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&key) {
        return Ok(*found);
    }
    let text = dtype.str()?;
    let text = text.to_string_lossy();
    let found = parse_dtype(&text)
        .ok_or_else(|| PyTypeError::new_err(format!("a kernel cannot take elements of type {text}")))?;
    KNOWN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(key, (found, dtype.clone().unbind()));
    Ok(found)
}

/// `torch.float16`, `bfloat16`, `fp32`, `<class 'jax.numpy.float32'>`.
pub(crate) fn parse_dtype(text: &str) -> Option<DType> {
    let name = text.trim_end_matches(['\'', '>']);
    let name = name.rsplit(['.', '\'']).next().unwrap_or(name);
    Some(match name {
        "bool" | "bool_" => DType::UInt1,
        "half" => DType::Fp16,
        "float" => DType::Fp32,
        "double" => DType::Fp64,
        "float8_e4m3fn" => DType::Fp8E4Nv,
        "float8_e5m2" => DType::Fp8E5,
        "float8_e4m3fnuz" => DType::Fp8E4B8,
        "float8_e5m2fnuz" => DType::Fp8E5B16,
        // Two numbers of four bits in a byte.
        "float4_e2m1fn_x2" | "float8_e8m0fnu" => DType::UInt8,
        "short" => DType::Int16,
        "int" => DType::Int32,
        "long" => DType::Int64,
        name => DType::parse(name)?,
    })
}

/// `object.data_ptr()`, without a bound method.
#[inline]
fn data_ptr(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = object.py();
    // SAFETY: both are live objects, and the list of arguments ends with null.
    let result = unsafe {
        let none = std::ptr::null_mut::<pyo3::ffi::PyObject>();
        let found = pyo3::ffi::PyObject_CallMethodObjArgs(object.as_ptr(), intern!(py, "data_ptr").as_ptr(), none);
        Bound::from_owned_ptr_or_err(py, found)?
    };
    result.extract()
}

/// A tensor of PyTorch.
#[inline]
pub(crate) fn torch(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let dtype = dtype_of(&object.getattr(intern!(py, "dtype"))?)?;
    let address = data_ptr(object)?;
    if object.getattr(intern!(py, "is_cuda"))?.is_truthy()? {
        let found = Foreign::new(address, dtype, Some(Memory::Gpu));
        crate::tensor::learn(object, &found);
        // A launch needs the address alone; the journal has the memory, too.
        return if crate::journal::is_active() { with_memory(object, found) } else { Ok(found) };
    }
    let device = object.getattr(intern!(py, "device"))?.getattr(intern!(py, "type"))?.extract::<String>()?;
    if device != "cpu" {
        return Ok(Foreign { is_meta: device == "meta", ..Foreign::new(address, dtype, None) });
    }
    with_memory(object, Foreign::new(address, dtype, Some(Memory::Host)))
}

/// A tensor of PyTorch with the memory that it is a part of, and its elements there.
fn with_memory(object: &Bound<'_, PyAny>, found: Foreign) -> PyResult<Foreign> {
    let py = object.py();
    let storage = object.call_method0(intern!(py, "untyped_storage"))?;
    let start = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let bytes = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    // Page-locked memory is the GPU's, too.
    let is_pinned = || object.call_method0(intern!(py, "is_pinned"))?.is_truthy();
    let pinned = found.memory == Some(Memory::Gpu) || crate::place::has_gpu() && is_pinned()?;
    let range = Some(HostRange { start, bytes, pinned });
    let sizes = object.getattr(intern!(py, "shape"))?.extract();
    let strides = object.call_method0(intern!(py, "stride")).and_then(|strides| strides.extract());
    let view = match (sizes, strides) {
        (Ok(sizes), Ok(strides)) => Some(View { sizes, strides, element: found.dtype.bytes().into() }),
        _ => None,
    };
    Ok(Foreign { range, view, ..found })
}

/// Anything else with `data_ptr()`: a tensor seen as of another type tells where it lies by its `base`.
pub(crate) fn data(object: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Foreign> {
    let py = object.py();
    let dtype = dtype_of(&object.getattr(intern!(py, "dtype"))?)?;
    let address = data_ptr(object)?;
    if let Ok(base) = object.getattr(intern!(py, "base"))
        && let Some(inner) = array(&base, stream)?
    {
        let view = inner.view.filter(|_| inner.address == address);
        return Ok(Foreign { address, dtype, view, ..inner });
    }
    Ok(Foreign::new(address, dtype, None))
}

/// The array that an object is; `None` if it is none. `stream` is that of the launch, if it is known.
pub(crate) fn array(object: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Option<Foreign>> {
    use crate::kind::Kind;
    Ok(Some(match crate::kind::kind(object)? {
        Kind::Torch => torch(object)?,
        Kind::Data => data(object, stream)?,
        Kind::CudaArray => cuda_array(object, stream)?,
        Kind::Array => numpy(object)?,
        Kind::Dlpack => dlpack(object, stream)?,
        _ => return Ok(None),
    }))
}

/// An object with `__cuda_array_interface__`. One whose class has it for other arrays only, such as JAX's in bfloat16 or on the
/// CPU, has `__dlpack__`.
pub(crate) fn cuda_array(object: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Foreign> {
    let py = object.py();
    let interface = match object.getattr(intern!(py, "__cuda_array_interface__")) {
        Err(error) if error.is_instance_of::<PyAttributeError>(py) && object.hasattr(intern!(py, "__dlpack__"))? => {
            return dlpack(object, stream);
        }
        found => found?.cast_into::<PyDict>()?,
    };
    let dtype = interface_dtype(object, &interface)?;
    let (address, is_read_only) = interface_data(&interface)?;
    let gpu = crate::place::gpu_of(py, address)?;
    let producer = match interface.get_item("stream")? {
        Some(stream) if !stream.is_none() => Some(stream.extract::<u64>()?),
        _ => None,
    };
    if producer == Some(0) {
        let text =
            "`__cuda_array_interface__` gives the stream 0, which the protocol does not allow; the default stream is 1";
        return Err(PyValueError::new_err(text));
    }
    let read_only = is_read_only.then_some("`__cuda_array_interface__` says that it is read-only");
    Ok(Foreign { gpu, stream: producer, read_only, ..Foreign::new(address, dtype, Some(Memory::Gpu)) })
}

/// An object with `__array_interface__`.
pub(crate) fn numpy(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let interface = object.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let dtype = interface_dtype(object, &interface)?;
    let (address, is_read_only) = interface_data(&interface)?;
    let view = interface_view(&interface, dtype)?;
    // The array whose memory it is a view of.
    let mut whole = object.clone();
    while let Ok(base) = whole.getattr(intern!(py, "base")) {
        if base.is_none() || !base.hasattr(intern!(py, "__array_interface__"))? {
            break;
        }
        whole = base;
    }
    let (own_start, own_end) = extent(&interface, Some(dtype.bytes().into()), object)?;
    let interface = whole.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let (start, end) = extent(&interface, None, &whole)?;
    let (start, end) = match own_start <= end && start <= own_end {
        true => (start.min(own_start), end.max(own_end)),
        false => (own_start, own_end),
    };
    let bytes = end - start;
    let range = Some(HostRange { start, bytes, pinned: false });
    let read_only = is_read_only.then_some("the array is read-only");
    Ok(Foreign { range, view, read_only, ..Foreign::new(address, dtype, Some(Memory::Host)) })
}

fn interface_data(interface: &Bound<'_, PyDict>) -> PyResult<(u64, bool)> {
    let data = interface.get_item("data")?.ok_or_else(|| PyTypeError::new_err("an array interface without `data`"))?;
    let data = data.cast_into::<PyTuple>()?;
    Ok((data.get_item(0)?.extract()?, data.get_item(1)?.extract()?))
}

/// The first byte and the end of the elements of an array. Its memory may be larger than `nbytes`, which counts no gaps between
/// elements, and smaller, if elements share memory. `element` is in bytes; without it `nbytes` gives it.
fn extent(interface: &Bound<'_, PyDict>, element: Option<u64>, array: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    let (address, _) = interface_data(interface)?;
    let sizes: Vec<u64> = match interface.get_item("shape")? {
        Some(sizes) => sizes.extract()?,
        None => Vec::new(),
    };
    let Some(count) = sizes.iter().try_fold(1u64, |count, size| count.checked_mul(*size)) else {
        return Err(PyValueError::new_err("an array interface with a shape of 2^64 elements or more"));
    };
    if count == 0 {
        return Ok((address, address));
    }
    let element = match element {
        Some(element) => element,
        None => array.getattr(intern!(array.py(), "nbytes"))?.extract::<u64>()? / count,
    };
    let strides: Vec<i64> = match interface.get_item("strides")? {
        Some(strides) if !strides.is_none() => strides.extract()?,
        _ => View::compact(&sizes).iter().map(|stride| stride.saturating_mul(element as i64)).collect(),
    };
    // With the strides in bytes, the span ends one byte after the start of the last element.
    View { sizes, strides, element: 1 }
        .span(address)
        .and_then(|(low, high)| Some((low, (high - 1).checked_add(element)?)))
        .ok_or_else(|| PyValueError::new_err("an array interface with elements outside of the address space"))
}

/// The elements that an array interface describes; `None` where strides are no multiple of the element.
fn interface_view(interface: &Bound<'_, PyDict>, dtype: DType) -> PyResult<Option<View>> {
    let element = u64::from(dtype.bytes());
    let Some(sizes) = interface.get_item("shape")? else { return Ok(None) };
    let sizes: Vec<u64> = sizes.extract()?;
    let strides = match interface.get_item("strides")? {
        Some(strides) if !strides.is_none() => {
            let strides: Vec<i64> = strides.extract()?;
            if strides.iter().any(|stride| stride % element as i64 != 0) {
                return Ok(None);
            }
            strides.iter().map(|stride| stride / element as i64).collect()
        }
        _ => View::compact(&sizes),
    };
    Ok(Some(View { sizes, strides, element }))
}

fn interface_dtype(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyDict>) -> PyResult<DType> {
    if let Ok(dtype) = object.getattr(intern!(object.py(), "dtype")) {
        return dtype_of(&dtype);
    }
    let text: String = interface
        .get_item("typestr")?
        .ok_or_else(|| PyTypeError::new_err("an array interface without `typestr`"))?
        .extract()?;
    let found = match text.get(1..) {
        Some("b1") => DType::UInt1,
        Some("i1") => DType::Int8,
        Some("i2") => DType::Int16,
        Some("i4") => DType::Int32,
        Some("i8") => DType::Int64,
        Some("u1") => DType::UInt8,
        Some("u2") => DType::UInt16,
        Some("u4") => DType::UInt32,
        Some("u8") => DType::UInt64,
        Some("f2") => DType::Fp16,
        Some("f4") => DType::Fp32,
        Some("f8") => DType::Fp64,
        _ => return Err(PyTypeError::new_err(format!("a kernel cannot take elements of type {text}"))),
    };
    Ok(found)
}

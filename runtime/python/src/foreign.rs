//! Memory of other libraries: where it lies, what it holds, by whichever protocol its object speaks.
#![allow(unsafe_code)]

use crate::host::HostRange;
use crate::kind::ByAddress;
use crate::place::Memory;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use rtc_abi::DType;
use std::sync::{Mutex, PoisonError};

/// An array or tensor.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) address: u64,
    pub(crate) dtype: DType,
    /// `None` where nothing tells.
    pub(crate) memory: Option<Memory>,
    /// Of memory of the process: the whole that it is a part of.
    pub(crate) range: Option<HostRange>,
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
        let found = Foreign { address, dtype, memory: Some(Memory::Gpu), range: None };
        crate::tensor::learn(object, &found);
        return Ok(found);
    }
    if object.getattr(intern!(py, "device"))?.getattr(intern!(py, "type"))?.extract::<String>()? != "cpu" {
        return Ok(Foreign { address, dtype, memory: None, range: None });
    }
    // Page-locked memory is the GPU's, too.
    let storage = object.call_method0(intern!(py, "untyped_storage"))?;
    let start = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let bytes = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    let pinned = crate::place::device_count() > 0 && object.call_method0(intern!(py, "is_pinned"))?.is_truthy()?;
    let range = HostRange { start, bytes, writable: true, pinned };
    Ok(Foreign { address, dtype, memory: Some(Memory::Host), range: Some(range) })
}

/// Anything else with `data_ptr()`: a tensor seen as of another type tells where it lies by its `base`.
pub(crate) fn data(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let dtype = dtype_of(&object.getattr(intern!(py, "dtype"))?)?;
    let address = data_ptr(object)?;
    if let Ok(base) = object.getattr(intern!(py, "base"))
        && let Some(inner) = array(&base)?
    {
        return Ok(Foreign { address, dtype, ..inner });
    }
    Ok(Foreign { address, dtype, memory: None, range: None })
}

/// The array that an object is; `None` if it is none.
pub(crate) fn array(object: &Bound<'_, PyAny>) -> PyResult<Option<Foreign>> {
    use crate::kind::Kind;
    Ok(Some(match crate::kind::kind(object)? {
        Kind::Torch => torch(object)?,
        Kind::Data => data(object)?,
        Kind::CudaArray => cuda_array(object)?,
        Kind::Array => numpy(object)?,
        Kind::Dlpack => dlpack(object)?,
        _ => return Ok(None),
    }))
}

/// An object with `__cuda_array_interface__`. One whose class has it for other arrays only, such as JAX's in bfloat16 or on the
/// CPU, has `__dlpack__`.
pub(crate) fn cuda_array(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let interface = match object.getattr(intern!(py, "__cuda_array_interface__")) {
        Err(error) if error.is_instance_of::<PyAttributeError>(py) && object.hasattr(intern!(py, "__dlpack__"))? => {
            return dlpack(object);
        }
        found => found?.cast_into::<PyDict>()?,
    };
    let dtype = interface_dtype(object, &interface)?;
    let (address, _) = interface_data(&interface)?;
    Ok(Foreign { address, dtype, memory: Some(Memory::Gpu), range: None })
}

/// An object with `__array_interface__`.
pub(crate) fn numpy(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let interface = object.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let dtype = interface_dtype(object, &interface)?;
    let (address, read_only) = interface_data(&interface)?;
    // The array whose memory it is a view of.
    let mut whole = object.clone();
    while let Ok(base) = whole.getattr(intern!(py, "base")) {
        if base.is_none() || !base.hasattr(intern!(py, "__array_interface__"))? {
            break;
        }
        whole = base;
    }
    let interface = whole.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let (start, _) = interface_data(&interface)?;
    let bytes: u64 = whole.getattr(intern!(py, "nbytes"))?.extract()?;
    let (start, bytes) = match address >= start && address <= start + bytes {
        true => (start, bytes),
        false => (address, object.getattr(intern!(py, "nbytes"))?.extract()?),
    };
    let range = HostRange { start, bytes, writable: !read_only, pinned: false };
    Ok(Foreign { address, dtype, memory: Some(Memory::Host), range: Some(range) })
}

fn interface_data(interface: &Bound<'_, PyDict>) -> PyResult<(u64, bool)> {
    let data = interface.get_item("data")?.ok_or_else(|| PyTypeError::new_err("an array interface without `data`"))?;
    let data = data.cast_into::<PyTuple>()?;
    Ok((data.get_item(0)?.extract()?, data.get_item(1)?.extract()?))
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

/// The head of a `DLManagedTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut std::ffi::c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// An object with `__dlpack__`. The capsule is not consumed: it frees what it holds when it goes, the object keeps the memory.
pub(crate) fn dlpack(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = object.py();
    let capsule = object.call_method0(intern!(py, "__dlpack__"))?.cast_into::<PyCapsule>()?;
    // SAFETY: a capsule of this name holds a tensor of DLPack, which lives as long as the capsule.
    let tensor = unsafe {
        let pointer = pyo3::ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr());
        if pointer.is_null() {
            return Err(PyErr::fetch(py));
        }
        pointer.cast::<DlTensor>().read()
    };
    let unfit = || {
        PyTypeError::new_err(format!(
            "a kernel cannot take elements of DLPack's type {}, {} bits",
            tensor.code, tensor.bits
        ))
    };
    if tensor.lanes != 1 {
        return Err(unfit());
    }
    let dtype = match (tensor.code, tensor.bits) {
        (0, 8) => DType::Int8,
        (0, 16) => DType::Int16,
        (0, 32) => DType::Int32,
        (0, 64) => DType::Int64,
        (1, 8) => DType::UInt8,
        (1, 16) => DType::UInt16,
        (1, 32) => DType::UInt32,
        (1, 64) => DType::UInt64,
        (2, 16) => DType::Fp16,
        (2, 32) => DType::Fp32,
        (2, 64) => DType::Fp64,
        (4, 16) => DType::Bf16,
        (6, 8) => DType::UInt1,
        (10, 8) => DType::Fp8E4Nv,
        (12, 8) => DType::Fp8E5,
        _ => return Err(unfit()),
    };
    let address = tensor.data as u64 + tensor.byte_offset;
    match tensor.device_type {
        // GPUs of CUDA, and their page-locked and managed memory.
        2 | 3 | 13 => Ok(Foreign { address, dtype, memory: Some(Memory::Gpu), range: None }),
        1 => {
            let rank = usize::try_from(tensor.ndim).unwrap_or(0);
            let mut last = 0i64;
            for axis in 0..rank {
                // SAFETY: DLPack has `ndim` sizes, and as many strides unless the pointer is null.
                let (size, stride) = unsafe {
                    let stride = if tensor.strides.is_null() {
                        (axis + 1..rank).map(|inner| *tensor.shape.add(inner)).product()
                    } else {
                        *tensor.strides.add(axis)
                    };
                    (*tensor.shape.add(axis), stride)
                };
                if size == 0 || stride < 0 {
                    return Err(PyValueError::new_err("a tensor of DLPack without elements, or with negative strides"));
                }
                last += (size - 1) * stride;
            }
            let bytes = (last as u64 + 1) * u64::from(dtype.bytes());
            let range = HostRange { start: address, bytes, writable: true, pinned: false };
            Ok(Foreign { address, dtype, memory: Some(Memory::Host), range: Some(range) })
        }
        other => Err(PyTypeError::new_err(format!("memory of DLPack's device type {other} is out of reach"))),
    }
}

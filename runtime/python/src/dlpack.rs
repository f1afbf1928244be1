//! Arrays by `__dlpack__`.
//!
//! A producer may export a view of its memory or a copy, and either is guaranteed to live only until the tensor is given back.
//! So the tensor is taken from its capsule and kept until the launch no longer uses the memory. `copy` and `dl_device` are not
//! requested: the launch runs where the memory lies, and a copy that is only read is as good as the original.
#![allow(unsafe_code)]

use crate::foreign::Foreign;
use crate::host::{HostRange, View};
use crate::place::{self, Memory};
use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::python::{DlpackStream, ImportRequest, ImportedDlpack, StreamArg, consumer};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rtc_abi::DType;

/// The stream that a producer has to put its work before.
struct Consumer(u64);

// SAFETY: the handle is that of the stream of the launch, which is a live stream of that device; `cuda` encodes the default
// streams as the protocol asks.
unsafe impl DlpackStream for Consumer {
    fn as_python_arg(&self, _py: Python<'_>, _device: DLDevice) -> PyResult<StreamArg> {
        Ok(consumer::stream::cuda(std::ptr::with_exposed_provenance_mut(self.0 as usize)))
    }
}

fn is_of_gpu(device: DLDevice) -> bool {
    let kind = device.device_type;
    kind == DLDeviceType::CUDA || kind == DLDeviceType::CUDAHOST || kind == DLDeviceType::CUDAMANAGED
}

/// The array that an object exports by `__dlpack__`. `stream` is that of the launch where the caller knows it, otherwise the
/// current stream of the GPU.
pub(crate) fn dlpack(object: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Foreign> {
    let py = object.py();
    let request = ImportRequest::new(object.as_borrowed())?;
    let device = request.device()?;
    let gpu = match usize::try_from(device.device_id) {
        Ok(ordinal) if device.device_type == DLDeviceType::CUDA => Some(ordinal),
        _ => None,
    };
    let consumer = match (is_of_gpu(device), stream) {
        (false, _) => None,
        (true, Some(stream)) => Some(Consumer(stream)),
        (true, None) => {
            let current = place::Current::of(py, Some(Memory::Gpu), gpu)?;
            Some(Consumer(current.stream(py)?.as_raw().unwrap_or(0)))
        }
    };
    let stream = consumer.as_ref().map(|consumer| consumer as &dyn DlpackStream);
    let imported_tensor = match request.import(stream, None) {
        // A producer of before DLPack 1.0 does not know `max_version`; the protocol says to ask again without it.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            let capsule = unversioned(object, consumer.as_ref())?;
            ImportRequest::new(capsule.as_borrowed())?.import(None, None)?
        }
        imported => imported?,
    };
    let found = match imported_tensor {
        ImportedDlpack::Legacy(tensor) => imported(tensor)?,
        ImportedDlpack::Versioned(tensor) => imported(tensor)?,
    };
    Ok(Foreign { gpu, ..found })
}

/// The capsule of a producer that is asked in the way of before DLPack 1.0.
fn unversioned<'py>(object: &Bound<'py, PyAny>, consumer: Option<&Consumer>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    match consumer {
        None => object.call_method0(intern!(py, "__dlpack__")),
        Some(Consumer(stream)) => {
            let keywords = PyDict::new(py);
            // The protocol's number of the default stream is 1.
            keywords.set_item(intern!(py, "stream"), (*stream).max(1))?;
            object.call_method(intern!(py, "__dlpack__"), (), Some(&keywords))
        }
    }
}

fn imported<M: ManagedTensorBase>(tensor: Managed<M>) -> PyResult<Foreign> {
    let refused = |error: dlpark::tensor::Error| PyValueError::new_err(error.to_string());
    let view = tensor.validate().map_err(refused)?;
    let dtype = dtype_of(view.dtype())?;
    let address = (view.data_ptr().expose_provenance() as u64).wrapping_add(view.byte_offset());
    let flags = tensor.flags();
    let read_only = if flags.contains(DlpackFlags::READ_ONLY) {
        Some("its DLPack tensor is read-only")
    } else if flags.contains(DlpackFlags::IS_COPIED) {
        Some("its `__dlpack__` exports a copy, in which the results would be lost")
    } else {
        None
    };
    let device = view.device();
    let mut found = match device.device_type {
        DLDeviceType::CPU => {
            let sizes: Vec<u64> = view.shape().iter().map(|size| *size as u64).collect();
            let strides: Vec<i64> = view.strides_or_compact().map_err(refused)?.to_vec();
            let element = u64::from(dtype.bytes());
            let mut last = 0u64;
            for (size, stride) in sizes.iter().zip(&strides) {
                match u64::try_from(*stride) {
                    Ok(stride) if *size > 0 => last += (size - 1) * stride,
                    _ => {
                        let text = "a tensor of DLPack without elements, or with negative strides";
                        return Err(PyValueError::new_err(text));
                    }
                }
            }
            let range = HostRange { start: address, bytes: (last + 1) * element, pinned: false };
            let view = Some(View { sizes, strides, element });
            Foreign { range: Some(range), view, ..Foreign::new(address, dtype, Some(Memory::Host)) }
        }
        _ if is_of_gpu(device) => Foreign::new(address, dtype, Some(Memory::Gpu)),
        other => {
            let text = format!("memory of DLPack's device type {} cannot be reached", other.0);
            return Err(PyTypeError::new_err(text));
        }
    };
    found.read_only = read_only;
    found.owner = Some(tensor.into_deleter());
    Ok(found)
}

fn dtype_of(DLDataType { code, bits, lanes }: DLDataType) -> PyResult<DType> {
    let found = match (code.0, bits, lanes) {
        (0, 8, 1) => DType::Int8,
        (0, 16, 1) => DType::Int16,
        (0, 32, 1) => DType::Int32,
        (0, 64, 1) => DType::Int64,
        (1, 8, 1) => DType::UInt8,
        (1, 16, 1) => DType::UInt16,
        (1, 32, 1) => DType::UInt32,
        (1, 64, 1) => DType::UInt64,
        (2, 16, 1) => DType::Fp16,
        (2, 32, 1) => DType::Fp32,
        (2, 64, 1) => DType::Fp64,
        (4, 16, 1) => DType::Bf16,
        (6, 8, 1) => DType::UInt1,
        (10, 8, 1) => DType::Fp8E4Nv,
        (12, 8, 1) => DType::Fp8E5,
        (code, ..) => {
            let text = format!("a kernel cannot take elements of DLPack's type {code}, {bits} bits, {lanes} lanes");
            return Err(PyTypeError::new_err(text));
        }
    };
    Ok(found)
}

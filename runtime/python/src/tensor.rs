//! PyTorch's tensors, current device and streams, asked by the C interface that it has for compiled models (`aoti_torch_..`):
//! a few nanoseconds each, where an attribute or a method of Python takes a hundred.
//!
//! That interface does not change between releases, but it takes a tensor of C++; where that lies in the object of Python is
//! found out with the first tensor of each class (`_cdata` of a tensor is the word to look for) and compared with what Python
//! says. This needs no range of versions of PyTorch: where anything is not as expected, `Torch::get` gives nothing, or the class
//! is not read in this way, and everything is asked through Python.
#![allow(unsafe_code)]

use crate::foreign::Foreign;
use libloading::os::unix::Library;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{ffi, intern};
use rtc_abi::DType;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// A tensor of C++.
type Handle = *mut c_void;
type Ask<T> = unsafe extern "C" fn(Handle, *mut T) -> c_int;

/// PyTorch's functions, and where tensors lie in their objects.
pub(crate) struct Torch {
    data_ptr: Ask<u64>,
    dtype: Ask<i32>,
    device_type: Ask<i32>,
    current_device: unsafe extern "C" fn(*mut i32) -> c_int,
    current_stream: unsafe extern "C" fn(i32, *mut u64) -> c_int,
    /// The number of the type of device that GPUs have.
    cuda: i32,
    /// What elements are, by PyTorch's number for it.
    dtypes: [Option<DType>; 64],
    /// Bytes from the start of an object to its tensor.
    offset: usize,
    /// Classes whose objects are tensors and nothing else: `torch.Tensor`, `torch.nn.Parameter`.
    classes: [Py<PyAny>; 2],
    /// For each class whether its objects were found to have their tensor at `offset`.
    verified: [AtomicBool; 2],
}

static TORCH: PyOnceLock<Option<Torch>> = PyOnceLock::new();

const DTYPES: [(&str, DType); 15] = [
    ("bool", DType::UInt1),
    ("int8", DType::Int8),
    ("int16", DType::Int16),
    ("int32", DType::Int32),
    ("int64", DType::Int64),
    ("uint8", DType::UInt8),
    ("uint16", DType::UInt16),
    ("uint32", DType::UInt32),
    ("uint64", DType::UInt64),
    ("float16", DType::Fp16),
    ("bfloat16", DType::Bf16),
    ("float32", DType::Fp32),
    ("float64", DType::Fp64),
    ("float8_e4m3fn", DType::Fp8E4Nv),
    ("float8_e5m2", DType::Fp8E5),
];

/// Learns from a tensor on a GPU, of which Python said what it is. Does nothing after the first of a class.
pub(crate) fn learn(tensor: &Bound<'_, PyAny>, said: &Foreign) {
    let py = tensor.py();
    if TORCH.get(py).is_none() {
        let found = find(tensor).filter(|torch| torch.read(tensor.as_ptr()) == Some((said.address, said.dtype)));
        // Another thread may have been first.
        let _ = TORCH.set(py, found);
    }
    let Some(torch) = Torch::get(py) else { return };
    let class = torch.classes.iter().position(|class| tensor.get_type().is(class));
    if let Some(index) = class
        && !torch.verified[index].load(Ordering::Relaxed)
        && has_tensor_at(tensor, torch.offset)
        && torch.read(tensor.as_ptr()) == Some((said.address, said.dtype))
    {
        torch.verified[index].store(true, Ordering::Relaxed);
    }
}

/// Whether the word at an offset of the object is the address that Python gives as that of its tensor.
fn has_tensor_at(tensor: &Bound<'_, PyAny>, offset: usize) -> bool {
    let size = tensor.get_type().getattr("__basicsize__").and_then(|size| size.extract::<usize>());
    let cdata = tensor.getattr("_cdata").and_then(|cdata| cdata.extract::<usize>());
    let (Ok(size), Ok(cdata)) = (size, cdata) else { return false };
    // SAFETY: the object has at least `size` bytes, so the word lies within it; objects are aligned for pointers.
    offset + size_of::<usize>() <= size && unsafe { tensor.as_ptr().byte_add(offset).cast::<usize>().read() } == cdata
}

fn find(tensor: &Bound<'_, PyAny>) -> Option<Torch> {
    let py = tensor.py();
    let torch = py.import(intern!(py, "torch")).ok()?;
    let classes = [torch.getattr("Tensor").ok()?, torch.getattr("nn").ok()?.getattr("Parameter").ok()?];
    if !classes.iter().any(|class| tensor.get_type().is(class)) {
        return None;
    }
    let offset = size_of::<ffi::PyObject>();
    if !has_tensor_at(tensor, offset) {
        return None;
    }
    let (cpu, gpu) = (loaded("libtorch_cpu.so")?, loaded("libtorch_cuda.so")?);
    // SAFETY: these functions of PyTorch have these types.
    let torch = unsafe {
        let number = |name: String| {
            let ask = cpu.get::<unsafe extern "C" fn() -> i32>(&name).ok()?;
            Some(ask())
        };
        let mut dtypes = [None; 64];
        for (name, dtype) in DTYPES {
            let code = number(format!("aoti_torch_dtype_{name}")).and_then(|code| usize::try_from(code).ok());
            if let Some(place) = code.and_then(|code| dtypes.get_mut(code)) {
                *place = Some(dtype);
            }
        }
        Torch {
            data_ptr: *cpu.get("aoti_torch_get_data_ptr").ok()?,
            dtype: *cpu.get("aoti_torch_get_dtype").ok()?,
            device_type: *cpu.get("aoti_torch_get_device_type").ok()?,
            current_device: *cpu.get("aoti_torch_get_current_device_index").ok()?,
            current_stream: *gpu.get("aoti_torch_get_current_cuda_stream").ok()?,
            cuda: number("aoti_torch_device_type_cuda".into())?,
            dtypes,
            offset,
            classes: classes.map(Bound::unbind),
            verified: Default::default(),
        }
    };
    // They stay loaded.
    std::mem::forget((cpu, gpu));
    Some(torch)
}

/// A library that the process has loaded.
fn loaded(name: &str) -> Option<Library> {
    const NOW: c_int = 2;
    const ONLY_IF_LOADED: c_int = 4;
    // SAFETY: it is loaded already, so nothing of it runs.
    unsafe { Library::open(Some(name), NOW | ONLY_IF_LOADED) }.ok()
}

impl Torch {
    /// PyTorch, once a tensor was seen.
    #[inline]
    pub(crate) fn get(py: Python<'_>) -> Option<&Torch> {
        TORCH.get(py)?.as_ref()
    }

    /// Whether the class is one of those whose objects `read` may be asked for.
    #[inline]
    pub(crate) fn is_tensor(&self, class: *mut ffi::PyTypeObject) -> bool {
        self.classes
            .iter()
            .zip(&self.verified)
            .any(|(own, verified)| own.as_ptr() == class.cast() && verified.load(Ordering::Relaxed))
    }

    /// The address of a tensor on a GPU and what its elements are; nothing for other tensors, and where PyTorch refuses.
    #[inline]
    pub(crate) fn read(&self, tensor: *mut ffi::PyObject) -> Option<(u64, DType)> {
        let (mut device, mut dtype, mut address) = (0, 0, 0);
        // SAFETY: the object is of one of the classes, which have their tensor there; the functions write what they are asked.
        unsafe {
            let handle: Handle = tensor.byte_add(self.offset).cast();
            if (self.device_type)(handle, &mut device) != 0 || device != self.cuda {
                return None;
            }
            if (self.dtype)(handle, &mut dtype) != 0 || (self.data_ptr)(handle, &mut address) != 0 {
                return None;
            }
        }
        let dtype = *self.dtypes.get(usize::try_from(dtype).ok()?)?;
        Some((address, dtype?))
    }

    /// The number of the current GPU.
    #[inline]
    pub(crate) fn current_device(&self) -> Option<i32> {
        let mut ordinal = 0;
        // SAFETY: the function writes the number.
        (unsafe { (self.current_device)(&mut ordinal) } == 0).then_some(ordinal)
    }

    /// The handle of the stream that is current on a GPU.
    #[inline]
    pub(crate) fn current_stream(&self, ordinal: i32) -> Option<u64> {
        let mut stream = 0;
        // SAFETY: as above.
        (unsafe { (self.current_stream)(ordinal, &mut stream) } == 0).then_some(stream)
    }
}

//! What the type of an argument says of it. Types are asked once; then their address is enough.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    Bool,
    Int,
    Float,
    Str,
    Tuple,
    NamedTuple,
    /// A tensor of PyTorch.
    Torch,
    /// Anything else with `data_ptr()` and `dtype`.
    Data,
    /// Memory of a GPU by `__cuda_array_interface__`.
    CudaArray,
    /// Memory of the process by `__array_interface__`.
    Array,
    /// Memory by `__dlpack__`.
    Dlpack,
    /// Of this package: `constexpr`, `dtype`, `JITFunction` and functions of the language, `TensorDescriptor`.
    Constexpr,
    Dtype,
    Function,
    Descriptor,
    /// A number by `__index__`, such as an integer of numpy.
    Index,
    /// A number by `__float__`.
    Real,
    List,
    Other,
}

/// What is known of objects, by their addresses; they are kept. Made when it is first asked.
pub(crate) type ByAddress<T> = Mutex<Option<FxHashMap<usize, T>>>;

static KINDS: ByAddress<(Kind, Py<PyType>)> = Mutex::new(None);
static CLASSES: Mutex<Vec<(Kind, Py<PyType>)>> = Mutex::new(Vec::new());

/// Tells the classes of the package whose objects have a meaning as arguments.
#[pyfunction]
pub(crate) fn register(
    constexpr: Py<PyType>,
    dtype: Py<PyType>,
    function: Py<PyType>,
    of_language: Py<PyType>,
    descriptor: Py<PyType>,
) {
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    *classes = vec![
        (Kind::Constexpr, constexpr),
        (Kind::Dtype, dtype),
        (Kind::Function, function),
        (Kind::Function, of_language),
        (Kind::Descriptor, descriptor),
    ];
}

/// What an argument is.
#[inline]
pub(crate) fn kind(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(Kind::Int);
    }
    if object.is_none() {
        return Ok(Kind::None);
    }
    let ty = object.get_type_ptr() as usize;
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((kind, _)) = kinds.get_or_insert_default().get(&ty) {
        return Ok(*kind);
    }
    drop(kinds);
    let found = find(object)?;
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    kinds.get_or_insert_default().insert(ty, (found, object.get_type().unbind()));
    Ok(found)
}

fn find(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let py = object.py();
    let ty = object.get_type();
    let classes: Vec<(Kind, Py<PyType>)> = {
        let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        classes.iter().map(|(kind, class)| (*kind, class.clone_ref(py))).collect()
    };
    for (kind, class) in classes {
        if ty.is_subclass(class.bind(py))? {
            return Ok(kind);
        }
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Kind::Bool);
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(Kind::Int);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Kind::Float);
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Kind::Str);
    }
    if object.is_instance_of::<PyTuple>() {
        return Ok(if ty.hasattr(intern!(py, "_fields"))? { Kind::NamedTuple } else { Kind::Tuple });
    }
    let has = |name: &Bound<'_, pyo3::types::PyString>| object.hasattr(name);
    if has(intern!(py, "data_ptr"))? && has(intern!(py, "dtype"))? {
        let is_torch = has(intern!(py, "untyped_storage"))? && has(intern!(py, "is_cuda"))?;
        return Ok(if is_torch { Kind::Torch } else { Kind::Data });
    }
    if has(intern!(py, "__cuda_array_interface__"))? {
        return Ok(Kind::CudaArray);
    }
    // The scalars of numpy have an array interface, too.
    let is_scalar = has(intern!(py, "ndim"))? && has(intern!(py, "item"))? && !has(intern!(py, "__setitem__"))?;
    if !is_scalar && has(intern!(py, "__array_interface__"))? && has(intern!(py, "dtype"))? {
        return Ok(Kind::Array);
    }
    if has(intern!(py, "__dlpack__"))? && has(intern!(py, "__dlpack_device__"))? && !is_scalar {
        return Ok(Kind::Dlpack);
    }
    if has(intern!(py, "__index__"))? {
        return Ok(Kind::Index);
    }
    if is_scalar && has(intern!(py, "__float__"))? {
        return Ok(Kind::Real);
    }
    if object.is_instance_of::<pyo3::types::PyList>() {
        return Ok(Kind::List);
    }
    Ok(Kind::Other)
}

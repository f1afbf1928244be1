//! `kernel[grid]` and its call. It is a builtin function that is bound to a kernel and a grid: arguments then come as they lie
//! on the interpreter's stack, without a tuple and a dictionary being made of them.
#![allow(unsafe_code)]

use crate::kernel::{self, Kernel};
use crate::recent::{self, Given};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// An object, for as long as the call holds it.
type Object = *mut ffi::PyObject;

struct Definition(ffi::PyMethodDef);

// SAFETY: nobody writes it.
unsafe impl Sync for Definition {}

static LAUNCH: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"launch".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: launch },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Launches the kernel on the grid.".as_ptr(),
});

/// The function that launches the kernel on the grid.
pub(crate) fn with_grid<'py>(kernel: &Bound<'py, Kernel>, grid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let pair = PyTuple::new(kernel.py(), [kernel.as_any(), grid])?;
    // SAFETY: the definition lives for ever and the function holds the pair; the result is new, or an error is set.
    unsafe {
        let definition = (&raw const LAUNCH.0).cast_mut();
        let function = ffi::PyCFunction_NewEx(definition, pair.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(kernel.py(), function)
    }
}

/// What Python calls: `pair` is that of `with_grid`, `args` has `count` arguments by position and then those of `names`.
unsafe extern "C" fn launch(pair: Object, args: *const Object, count: ffi::Py_ssize_t, names: Object) -> Object {
    // SAFETY: Python calls this, so the thread is attached to it and holds the objects.
    let (py, kernel, grid) = unsafe {
        let py = Python::assume_attached();
        let kernel = Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(pair, 0));
        (py, kernel.downcast_into_unchecked::<Kernel>(), Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(pair, 1)))
    };
    // SAFETY: as Python says; without arguments there may be no array.
    let (positional, keywords) = unsafe {
        let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) };
        let all: &[Object] = match count + named {
            0 => &[],
            total => std::slice::from_raw_parts(args, total as usize),
        };
        let (positional, values) = all.split_at(count as usize);
        let keyword = |(at, value): (usize, &Object)| (ffi::PyTuple_GetItem(names, at as ffi::Py_ssize_t), *value);
        (positional, values.iter().enumerate().map(keyword).collect::<SmallVec<[_; 8]>>())
    };
    let given = Given { positional, keywords: &keywords };
    let work = || {
        let known = if kernel::is_hooked() { None } else { recent::launch(&kernel, &grid, &given) };
        known.unwrap_or_else(|| Python::attach(|py| long_way(py, &kernel, &grid, &given)))
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(compiled)) => compiled.into_ptr(),
        Ok(Err(error)) => {
            error.restore(py);
            ptr::null_mut()
        }
        Err(_) => {
            PyRuntimeError::new_err("a launch panicked, which is a bug of rtc").restore(py);
            ptr::null_mut()
        }
    }
}

/// A launch that is like none before it.
fn long_way(
    py: Python<'_>,
    kernel: &Bound<'_, Kernel>,
    grid: &Bound<'_, PyAny>,
    given: &Given<'_>,
) -> PyResult<Py<PyAny>> {
    // SAFETY: the call holds the objects.
    let object = |object: &Object| unsafe { Bound::from_borrowed_ptr(py, *object) };
    let positional: Vec<_> = given.positional.iter().map(object).collect();
    let args = PyTuple::new(py, positional)?;
    let kwargs = match given.keywords {
        [] => None,
        keywords => {
            let all = PyDict::new(py);
            keywords.iter().try_for_each(|(name, value)| all.set_item(object(name), object(value)))?;
            Some(all)
        }
    };
    let (kernel, grid) = (kernel.clone().unbind(), grid.clone().unbind());
    kernel::launch(kernel.bind(py), grid.bind(py), false, (&args, kwargs.as_ref(), None))
}

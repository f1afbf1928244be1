//! `kernel[grid]` and its call. It is a builtin function that is bound to a kernel, or to a search for its configuration, and a
//! grid: arguments then come as they lie on the interpreter's stack, without a tuple and a dictionary being made of them.
#![allow(unsafe_code)]

use crate::kernel::{self, Kernel};
use crate::recent::{self, Given, Object};
use crate::tuned::{self, Tuned};
use pyo3::PyClass;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

pub(crate) struct Definition(ffi::PyMethodDef);

// SAFETY: it is never written.
unsafe impl Sync for Definition {}

/// What can be launched as `it[grid](..)`.
pub(crate) trait Launch: PyClass {
    /// The function that Python calls: it is given a pair of the object and the grid.
    const CALL: &'static Definition;

    fn launch(slf: &Bound<'_, Self>, grid: &Bound<'_, PyAny>, given: &Given<'_>) -> PyResult<Py<PyAny>>;
}

impl Launch for Kernel {
    const CALL: &'static Definition = &definition(answer::<Kernel>);

    fn launch(slf: &Bound<'_, Kernel>, grid: &Bound<'_, PyAny>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
        let known = if kernel::is_watched() { None } else { recent::launch(slf, grid, given) };
        known.unwrap_or_else(|| Python::attach(|py| long_way(py, slf, grid, given)))
    }
}

impl Launch for Tuned {
    const CALL: &'static Definition = &definition(answer::<Tuned>);

    fn launch(slf: &Bound<'_, Tuned>, grid: &Bound<'_, PyAny>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
        let known = tuned::launch(slf, grid, given);
        known.unwrap_or_else(|| Python::attach(|py| tuned::run(py, slf.as_any(), grid, given)))
    }
}

const fn definition(call: ffi::PyCFunctionFastWithKeywords) -> Definition {
    Definition(ffi::PyMethodDef {
        ml_name: c"launch".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: c"Launches the kernel on the grid.".as_ptr(),
    })
}

/// The function that launches on the grid.
pub(crate) fn with_grid<'py, T: Launch>(slf: &Bound<'py, T>, grid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let pair = PyTuple::new(slf.py(), [slf.as_any(), grid])?;
    // SAFETY: the definition lives for ever and the function holds the pair; the result is new, or an error is set.
    unsafe {
        let definition = (&raw const T::CALL.0).cast_mut();
        let function = ffi::PyCFunction_NewEx(definition, pair.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(slf.py(), function)
    }
}

/// What Python calls: `pair` is that of `with_grid`, `args` has `count` arguments by position and then those of `names`.
unsafe extern "C" fn answer<T: Launch>(
    pair: Object,
    args: *const Object,
    count: ffi::Py_ssize_t,
    names: Object,
) -> Object {
    // SAFETY: Python calls this, so the thread is attached to it and holds the objects.
    let (py, slf, grid) = unsafe {
        let py = Python::assume_attached();
        let slf = Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(pair, 0));
        (py, slf.cast_into_unchecked::<T>(), Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(pair, 1)))
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
    match catch_unwind(AssertUnwindSafe(|| T::launch(&slf, &grid, &given))) {
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

impl Given<'_> {
    /// The arguments by position, and the keywords.
    pub(crate) fn as_python<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        // SAFETY: the call holds the objects.
        let object = |object: &Object| unsafe { Bound::from_borrowed_ptr(py, *object) };
        let keywords = PyDict::new(py);
        self.keywords.iter().try_for_each(|(name, value)| keywords.set_item(object(name), object(value)))?;
        Ok((PyTuple::new(py, self.positional.iter().map(object).collect::<Vec<_>>())?, keywords))
    }
}

/// A launch that is like none before it.
fn long_way(
    py: Python<'_>,
    kernel: &Bound<'_, Kernel>,
    grid: &Bound<'_, PyAny>,
    given: &Given<'_>,
) -> PyResult<Py<PyAny>> {
    let (args, keywords) = given.as_python(py)?;
    let keywords = (!keywords.is_empty()).then_some(keywords);
    let (kernel, grid) = (kernel.clone().unbind(), grid.clone().unbind());
    kernel::launch(kernel.bind(py), grid.bind(py), false, (&args, keywords.as_ref(), None))
}

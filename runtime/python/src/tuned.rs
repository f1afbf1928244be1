//! Launches of a kernel whose configuration was searched for, like an earlier one: the arguments in the search's key have the
//! same values, tensors have the same dtypes, and what Python found for that key is still there.
//!
//! Such a launch adds the keywords of the configuration and goes the way of any other. All else is Python's
//! (`runtime/autotuner.py`), which also says what may be kept here.
#![allow(unsafe_code)]

use crate::call::{self, Launch};
use crate::kernel::Kernel;
use crate::kind::{Kind, kind};
use crate::recent::{Given, Object};
use crate::tensor::Torch;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple, PyType};
use pyo3::{ffi, intern};
use rtc_abi::DType;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// How many forms of launches are kept.
const KEPT: usize = 32;

/// A search for the best configuration of a kernel: the Python class derives from it.
#[pyclass(subclass, frozen, module = "rtc._rtc")]
#[derive(Debug, Default)]
pub(crate) struct Tuned {
    forms: Mutex<Vec<Arc<Form>>>,
}

/// A launch that was made.
#[derive(Debug)]
struct Form {
    /// The number of arguments by position, which come first.
    given: usize,
    expected: SmallVec<[Expected; 16]>,
    /// The names of the others.
    names: SmallVec<[Py<PyAny>; 8]>,
    /// The kernel, or the heuristics around it.
    kernel: Py<PyAny>,
    /// A kernel with hooks has another class.
    class: Py<PyType>,
    /// `None` where there is only one configuration.
    key: Option<Py<PyTuple>>,
    config: Py<PyAny>,
    /// What the configuration adds.
    keywords: SmallVec<[(Py<PyAny>, Py<PyAny>); 8]>,
}

/// What an argument must be, so that the key is the same.
#[derive(Debug)]
enum Expected {
    /// A tensor on a GPU.
    Tensor(DType),
    /// An integer of the key.
    Int(i64),
    /// A number, a text or `None` that is not in the key.
    Plain,
    /// This object, which never changes.
    Same(Py<PyAny>),
}

#[pymethods]
impl Tuned {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Tuned {
        Tuned::default()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, grid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call::with_grid(slf, grid)
    }

    /// Keeps a launch: of this kernel, with these arguments, of which those of `in_key` (whether each argument's value is in the
    /// key) decide; with what was found for the key, and what that adds.
    fn _remember(
        &self,
        kernel: &Bound<'_, PyAny>,
        call: (Bound<'_, PyTuple>, Bound<'_, PyDict>),
        in_key: Vec<bool>,
        found: (Option<Py<PyTuple>>, Py<PyAny>),
        adds: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let Some(torch) = Torch::get(kernel.py()) else { return Ok(()) };
        let ((args, kwargs), (key, config)) = (call, found);
        let mut expected = SmallVec::new();
        for (object, in_key) in args.iter().chain(kwargs.values()).zip(in_key) {
            let Some(own) = expectation(torch, &object, in_key)? else { return Ok(()) };
            expected.push(own);
        }
        let form = Form {
            given: args.len(),
            expected,
            names: kwargs.keys().iter().map(Bound::unbind).collect(),
            kernel: kernel.clone().unbind(),
            class: kernel.get_type().unbind(),
            key,
            config,
            keywords: adds.iter().map(|(name, value)| (name.unbind(), value.unbind())).collect(),
        };
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        // What is dropped may run code of Python.
        let dropped = (forms.len() == KEPT).then(|| forms.pop());
        forms.insert(0, Arc::new(form));
        drop(forms);
        drop(dropped);
        Ok(())
    }
}

/// What another argument must be for the same key; nothing for kinds of arguments that Python has to ask.
fn expectation(torch: &Torch, object: &Bound<'_, PyAny>, in_key: bool) -> PyResult<Option<Expected>> {
    if torch.is_tensor(object.get_type_ptr()) {
        let dtype = torch.read(object.as_ptr()).map(|(_, dtype)| dtype);
        return Ok(dtype.filter(|_| !in_key).map(Expected::Tensor));
    }
    let same = || Expected::Same(object.clone().unbind());
    Ok(match is_plain(object.as_ptr()) {
        true if !in_key => Some(Expected::Plain),
        true => Some(int(object.as_ptr()).map_or_else(same, Expected::Int)),
        false => (kind(object)? == Kind::Dtype).then(same),
    })
}

/// Whether the object is of a class whose objects never change and have no dtype.
#[inline]
fn is_plain(object: Object) -> bool {
    // SAFETY: the object is alive; the classes are those of the interpreter.
    unsafe {
        let class = ffi::Py_TYPE(object);
        class == &raw mut ffi::PyLong_Type
            || class == &raw mut ffi::PyFloat_Type
            || class == &raw mut ffi::PyBool_Type
            || class == &raw mut ffi::PyUnicode_Type
            || object == ffi::Py_None()
    }
}

/// The value of an `int` that is nothing else.
#[inline]
fn int(object: Object) -> Option<i64> {
    // SAFETY: the object is alive, and a number.
    unsafe {
        let mut overflow = 0;
        let is_int = ffi::Py_TYPE(object) == &raw mut ffi::PyLong_Type;
        is_int.then(|| ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow)).filter(|_| overflow == 0)
    }
}

impl Expected {
    #[inline]
    fn is_met(&self, torch: &Torch, object: Object) -> bool {
        match self {
            Expected::Tensor(dtype) => {
                // SAFETY: the call holds the object.
                let is_tensor = torch.is_tensor(unsafe { ffi::Py_TYPE(object) });
                is_tensor && torch.read(object).is_some_and(|(_, own)| own == *dtype)
            }
            Expected::Int(value) => int(object) == Some(*value),
            Expected::Plain => is_plain(object),
            Expected::Same(own) => own.as_ptr() == object,
        }
    }
}

impl Form {
    #[inline]
    fn fits(&self, torch: &Torch, given: &Given<'_>) -> bool {
        let same_name = |(own, (name, _)): (&Py<PyAny>, &(Object, Object))| own.as_ptr() == *name;
        let objects = given.positional.iter().chain(given.keywords.iter().map(|(_, value)| value));
        given.positional.len() == self.given
            && given.keywords.len() == self.names.len()
            && self.names.iter().zip(given.keywords).all(same_name)
            && self.expected.iter().zip(objects).all(|(expected, object)| expected.is_met(torch, *object))
    }

    /// Whether Python would take the same configuration, and the same kernel.
    fn is_current(&self, search: &Bound<'_, Tuned>) -> PyResult<bool> {
        let py = search.py();
        let kernel = self.kernel.bind(py);
        if !search.getattr(intern!(py, "fn"))?.is(kernel) || !kernel.get_type().is(self.class.bind(py)) {
            return Ok(false);
        }
        let config = match &self.key {
            Some(key) => search.getattr(intern!(py, "cache"))?.cast::<PyDict>()?.get_item(key)?,
            None => Some(search.getattr(intern!(py, "configs"))?.get_item(0)?),
        };
        Ok(config.is_some_and(|config| config.is(&self.config)))
    }
}

/// Launches if an earlier launch was like it.
pub(crate) fn launch(
    search: &Bound<'_, Tuned>,
    grid: &Bound<'_, PyAny>,
    given: &Given<'_>,
) -> Option<PyResult<Py<PyAny>>> {
    let py = search.py();
    let torch = Torch::get(py)?;
    let form = {
        let forms = search.get().forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.iter().find(|form| form.fits(torch, given))?.clone()
    };
    if !form.is_current(search).unwrap_or(false) {
        return None;
    }
    let own = form.keywords.iter().map(|(name, value)| (name.as_ptr(), value.as_ptr()));
    let keywords: SmallVec<[_; 16]> = given.keywords.iter().copied().chain(own).collect();
    let given = Given { positional: given.positional, keywords: &keywords };
    Some(search.setattr(intern!(py, "best_config"), &form.config).and_then(|()| match form.kernel.bind(py).cast() {
        Ok(kernel) => Kernel::launch(kernel, grid, &given),
        Err(_) => Python::attach(|py| run(py, form.kernel.bind(py), grid, &given)),
    }))
}

/// Launches by Python.
pub(crate) fn run(
    py: Python<'_>,
    slf: &Bound<'_, PyAny>,
    grid: &Bound<'_, PyAny>,
    given: &Given<'_>,
) -> PyResult<Py<PyAny>> {
    let (args, keywords) = given.as_python(py)?;
    for (name, value) in [("grid", grid.clone()), ("warmup", PyBool::new(py, false).to_owned().into_any())] {
        if keywords.contains(name)? {
            return Err(PyTypeError::new_err(format!("run() got multiple values for keyword argument '{name}'")));
        }
        keywords.set_item(name, value)?;
    }
    let slf = slf.clone().unbind();
    Ok(slf.bind(py).call_method(intern!(py, "run"), args, Some(&keywords))?.unbind())
}

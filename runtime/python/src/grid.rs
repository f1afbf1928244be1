//! Grids: what they say, and the functions that give them.
//!
//! A grid function is given a dictionary of all arguments, which is its own to keep and to change. To make one takes longer
//! than nearly all such functions run, which ask it for one or two names and do nothing else with it. What such a function
//! asks for is found once by looking at its code (`_grids.py`), and launches then lend it a dictionary of those names alone.
#![allow(unsafe_code)]

use crate::bind::{self, Held};
use crate::kernel::Core;
use crate::kind::{Kind, kind};
use crate::recent::Object;
use libloading::os::unix::Library;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{Borrowed, ffi, intern};
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// How many grid functions are known for each form of a launch.
const KEPT: usize = 4;

/// The arguments of a launch by the names of the parameters, except for tensors, which are not kept.
#[derive(Debug)]
pub(crate) struct Meta {
    /// All of them: a launch makes a copy and corrects what is not as it was then.
    all: Py<PyDict>,
    /// What the dictionary has for each parameter.
    values: SmallVec<[Option<Py<PyAny>>; 16]>,
    asked: Mutex<Vec<Asked>>,
}

/// What grid functions with the same code do.
#[derive(Debug)]
struct Asked {
    code: Py<PyAny>,
    /// Nothing if they may do more than ask for names, or ask for a tensor.
    lent: Option<Lent>,
}

/// A dictionary that is lent to calls, one after the other.
#[derive(Debug)]
struct Lent {
    dictionary: Py<PyDict>,
    /// The parameters that it has, and their values.
    values: SmallVec<[(usize, Py<PyAny>); 4]>,
}

impl Meta {
    /// Of the arguments of a call.
    pub(crate) fn new<'a, 'py: 'a>(
        py: Python<'py>,
        core: &Core,
        given: impl Iterator<Item = Held<'a, 'py>>,
    ) -> PyResult<Meta> {
        let (all, mut values) = (PyDict::new(py), SmallVec::new());
        for (param, value) in core.params.iter().zip(given) {
            let is_kept = !matches!(kind(&value)?, Kind::Torch);
            let value = is_kept.then(|| (*value).clone().unbind());
            all.set_item(&param.name, &value)?;
            values.push(value);
        }
        Ok(Meta { all: all.unbind(), values, asked: Mutex::default() })
    }

    /// What a grid function gives for other arguments.
    pub(crate) fn ask<'py>(
        &self,
        core: &Core,
        function: &Bound<'py, PyAny>,
        objects: &[Object],
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        let Some(code) = Functions::of(py).code(function) else {
            return call(function, &self.copy(py, core, objects)?);
        };
        match self.take(code) {
            Some(Asked { code, lent: Some(mut lent) }) => {
                lent.correct(py, core, objects)?;
                let given = call(function, lent.dictionary.bind(py));
                // SAFETY: the object is alive. A debugger, or the traceback of an error, may have it now.
                if unsafe { ffi::Py_REFCNT(lent.dictionary.as_ptr()) } == 1 {
                    self.give_back(Asked { code, lent: Some(lent) });
                }
                given
            }
            Some(asked) => {
                self.give_back(asked);
                call(function, &self.copy(py, core, objects)?)
            }
            None => {
                // SAFETY: the function has it.
                let code: Bound<'_, PyAny> = unsafe { Bound::from_borrowed_ptr(py, code) };
                let lent = self.lent(py, core, &code)?;
                self.give_back(Asked { code: code.unbind(), lent });
                call(function, &self.copy(py, core, objects)?)
            }
        }
    }

    /// Takes what is known of a function with this code: a function may launch the same kernel, and so may another thread.
    fn take(&self, code: Object) -> Option<Asked> {
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|asked| asked.code.as_ptr() == code)?;
        Some(all.swap_remove(index))
    }

    fn give_back(&self, asked: Asked) {
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = if all.len() < KEPT { None } else { Some(all.swap_remove(0)) };
        all.push(asked);
        drop(all);
        // What it frees may run code of Python.
        drop(dropped);
    }

    /// All arguments. A copy of a dictionary is made faster than a dictionary.
    fn copy<'py>(&self, py: Python<'py>, core: &Core, objects: &[Object]) -> PyResult<Bound<'py, PyDict>> {
        let all = self.all.bind(py).copy()?;
        for ((object, param), value) in objects.iter().zip(&core.params).zip(&self.values) {
            if value.as_ref().is_none_or(|value| value.as_ptr() != *object) {
                // SAFETY: the call, or the kernel, holds the object.
                all.set_item(&param.name, unsafe { Borrowed::from_ptr(py, *object) })?;
            }
        }
        Ok(all)
    }

    /// A dictionary for functions with this code, if they only ask it for numbers and other things that are kept.
    fn lent(&self, py: Python<'_>, core: &Core, code: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
        let names = py.import(intern!(py, "rtc._grids"))?.call_method1(intern!(py, "names_asked"), (code,))?;
        if names.is_none() {
            return Ok(None);
        }
        let (dictionary, mut values) = (PyDict::new(py), SmallVec::new());
        for name in names.try_iter()? {
            let name = name?;
            let place = bind::position(&core.params, &name)?;
            let Some((place, Some(value))) = place.map(|place| (place, &self.values[place])) else { return Ok(None) };
            dictionary.set_item(&core.params[place].name, value)?;
            values.push((place, value.clone_ref(py)));
        }
        Ok(Some(Lent { dictionary: dictionary.unbind(), values }))
    }
}

impl Lent {
    /// Makes it that of other arguments.
    fn correct(&mut self, py: Python<'_>, core: &Core, objects: &[Object]) -> PyResult<()> {
        for (place, value) in &mut self.values {
            if value.as_ptr() != objects[*place] {
                // SAFETY: the call, or the kernel, holds the object.
                let object: Bound<'_, PyAny> = unsafe { Bound::from_borrowed_ptr(py, objects[*place]) };
                self.dictionary.bind(py).set_item(&core.params[*place].name, &object)?;
                *value = object.unbind();
            }
        }
        Ok(())
    }
}

/// Functions of the interpreter that are not in its limited interface.
struct Functions {
    /// The code of a function, if it is one that is written in Python.
    code: Option<unsafe extern "C" fn(Object) -> Object>,
    function: Py<PyAny>,
}

impl Functions {
    fn of(py: Python<'_>) -> &Functions {
        static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();
        FUNCTIONS.get_or_init(py, || {
            // SAFETY: the function has this type in all versions of Python; where it is missing, nothing is lent.
            let code = unsafe { Library::this().get(b"PyFunction_GetCode\0").ok().map(|found| *found) };
            let class = py.import("types").and_then(|types| types.getattr("FunctionType"));
            Functions { code, function: class.map_or_else(|_| py.None(), Bound::unbind) }
        })
    }

    #[inline]
    fn code(&self, function: &Bound<'_, PyAny>) -> Option<Object> {
        // SAFETY: the object is alive, and a function of Python, which has a code.
        unsafe {
            let is_function = ffi::Py_TYPE(function.as_ptr()).cast() == self.function.as_ptr();
            self.code.filter(|_| is_function).map(|code| code(function.as_ptr()))
        }
    }
}

/// Calls a function with one argument, without a tuple.
fn call<'py>(function: &Bound<'py, PyAny>, argument: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let end = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: both objects are alive, and the list of arguments ends with a null pointer; the result is new, or an error is set.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(function.as_ptr(), argument.as_ptr(), end);
        Bound::from_owned_ptr_or_err(function.py(), result)
    }
}

/// The quotient of two integers, rounded up. Grid functions call it at each launch; kernels have the compiler's own.
#[pyfunction]
pub(crate) fn cdiv<'py>(x: &Bound<'py, PyAny>, y: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    if let (Some(x), Some(y)) = (plain(x), plain(y))
        && y > 0
        && let Some(sum) = x.checked_add(y - 1)
    {
        return Ok(sum.div_euclid(y).into_pyobject(py)?.into_any());
    }
    let one = 1i64.into_pyobject(py)?;
    let quotient = x.add(y)?.sub(&one)?.floor_div(y)?;
    match kind(&quotient)? {
        Kind::Constexpr => quotient.getattr(intern!(py, "value")),
        _ => Ok(quotient),
    }
}

/// A number that is an `int` and nothing else.
fn plain(object: &Bound<'_, PyAny>) -> Option<i64> {
    // SAFETY: the object is alive, and a number.
    unsafe {
        let is_int = ffi::Py_TYPE(object.as_ptr()) == &raw mut ffi::PyLong_Type;
        let mut overflow = 0;
        let value = is_int.then(|| ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow));
        value.filter(|_| overflow == 0)
    }
}

/// The sizes of a grid.
pub(crate) fn sizes(object: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let wrong = || {
        let text = object.repr().map(|repr| repr.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "grid must be a tuple of one to three integers, not {text}; a function that gives it must return a tuple, too, \
             as in `(triton.cdiv(n, meta['BLOCK']),)`"
        ))
    };
    let mut sizes = [1u32; 3];
    if let Ok(tuple) = object.cast_exact::<PyTuple>()
        && (1..=3).contains(&tuple.len())
        && (0..tuple.len()).all(|axis| {
            let size = tuple.get_borrowed_item(axis).ok().and_then(|size| size.extract::<u32>().ok());
            size.map(|size| sizes[axis] = size).is_some()
        })
    {
        return Ok(sizes);
    }
    let len = object.len().map_err(|_| wrong())?;
    if len == 0 || len > 3 {
        return Err(wrong());
    }
    for (axis, size) in sizes.iter_mut().enumerate().take(len) {
        let item = object.get_item(axis)?;
        let number: i64 = match item.extract() {
            Ok(number) => number,
            // What numpy and PyTorch have for integers.
            Err(_) => item.call_method0("__index__").and_then(|n| n.extract()).map_err(|_| wrong())?,
        };
        *size = u32::try_from(number).map_err(|_| {
            let text = match number {
                ..0 => "which cannot be negative".to_owned(),
                _ => format!(
                    "GPUs take at most {} along this axis; let each program do more",
                    rtc_runtime::Grid::MAX[axis]
                ),
            };
            PyValueError::new_err(format!("the grid has {number} programs along axis {axis}, {text}"))
        })?;
    }
    Ok(sizes)
}

//! Functions that kernels call with constexprs and host code with plain values.

use crate::kind::{Kind, kind};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

/// A Python function that host code calls as it is: the Python class derives from it. Grid functions call `cdiv` at each
/// launch, so a call whose values are plain costs little more than that of the function itself.
#[pyclass(subclass, frozen, module = "rtc._rtc")]
#[derive(Debug)]
pub(crate) struct PlainFunction {
    function: Py<PyAny>,
    /// Whether it is the quotient of two integers, rounded up, which needs no Python.
    is_cdiv: bool,
}

#[pymethods]
impl PlainFunction {
    #[new]
    #[pyo3(signature = (function, is_cdiv = false))]
    fn new(function: Py<PyAny>, is_cdiv: bool) -> PlainFunction {
        PlainFunction { function, is_cdiv }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().is_cdiv
            && kwargs.is_none()
            && let Some(quotient) = cdiv(args)
        {
            return Ok(quotient.into_pyobject(py)?.into_any());
        }
        if kwargs.is_none() && args.iter_borrowed().all(|value| is_plain(&value)) {
            let value = slf.get().function.bind(py).call1(args)?;
            return if is_plain(&value) { Ok(value) } else { slf.call_method1(intern!(py, "_unwrap"), (value,)) };
        }
        slf.call_method(intern!(py, "_of_constexprs"), args, kwargs)
    }
}

/// Whether there is no constexpr in a value.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    !matches!(kind(value), Ok(Kind::Constexpr | Kind::List) | Err(_))
}

/// The quotient, rounded up, of two integers of which the first is not negative and the second positive.
fn cdiv(args: &Bound<'_, PyTuple>) -> Option<i64> {
    let number = |index: usize| {
        let value = args.get_borrowed_item(index).ok()?;
        value.is_exact_instance_of::<PyInt>().then(|| value.extract::<i64>().ok())?
    };
    let (x, y) = (number(0)?, number(1)?);
    (args.len() == 2 && x >= 0 && y > 0).then(|| x / y + i64::from(x % y != 0))
}

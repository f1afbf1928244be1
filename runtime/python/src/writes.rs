//! Arrays that must not be written, and how results get back to arrays on the CPU.

use crate::error::runtime_error;
use crate::host::Copies;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rtc_abi::{Access, Param};
use rtc_runtime::jit::SpecializedKernel;

/// An array that must not be written.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    /// The number of its parameter.
    pub(crate) param: usize,
    /// Where in a tuple it is: `.0.x`.
    pub(crate) path: String,
    /// The reason.
    pub(crate) why: &'static str,
}

/// Refuses a launch that would write to an array that must not be written, as far as the compiler knows what is written.
pub(crate) fn check(ready: &SpecializedKernel, arrays: &[ReadOnly], name_of: impl Fn(usize) -> String) -> PyResult<()> {
    let kernel = ready.kernel();
    let metadata = kernel.metadata();
    for ReadOnly { param, path, why } in arrays {
        let name = format!("{}{path}", name_of(*param));
        let is_own =
            |param: &Param| param.name.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let is_written = |param: &Param| matches!(param.access, Some(Access::Write | Access::ReadWrite));
        if metadata.params.iter().any(|param| is_own(param) && is_written(param)) {
            return Err(PyValueError::new_err(format!(
                "kernel `{}`, argument `{name}`: the kernel writes to it, but {why}",
                metadata.kernel
            )));
        }
    }
    Ok(())
}

/// Brings what the kernel has written back to the arrays on the CPU.
pub(crate) fn write_back(py: Python<'_>, kernel: &str, copies: &Copies) -> PyResult<()> {
    match copies.download().map_err(|error| runtime_error(py, &error))? {
        None => Ok(()),
        Some(name) => Err(PyValueError::new_err(format!(
            "kernel `{kernel}`, argument `{name}`: the kernel wrote to it, but the array is read-only; it is unchanged"
        ))),
    }
}

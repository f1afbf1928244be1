//! Errors of the compiler and the runtime as exceptions of Python.

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use rtc_compiler::Failure;
use rtc_runtime::Error;
use rtc_runtime::jit::CompileError;

/// An exception of the class `name` of `rtc.runtime.errors`.
fn of_package(py: Python<'_>, name: &str, args: impl for<'py> pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made =
        py.import("rtc.runtime.errors").and_then(|module| module.getattr(name)).and_then(|class| class.call1(args));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Why a kernel could not be made ready, with pictures of the source.
pub(crate) fn compile_error(py: Python<'_>, error: &CompileError) -> PyErr {
    match error {
        CompileError::Runtime(error) => runtime_error(py, error),
        CompileError::Compiler { failure: Failure::Diagnostics(list), .. } => {
            let codes: Vec<String> = list.iter().map(|found| found.code.to_string()).collect();
            let lines: Vec<String> = list.iter().map(|found| found.message.clone()).collect();
            of_package(py, "_compilation_error", (codes, lines, error.to_string()))
        }
        CompileError::Compiler { failure: Failure::Request { code, message }, .. } => {
            of_package(py, "_request_error", (code.0, message.clone()))
        }
        CompileError::Compiler { failure: failure @ Failure::Internal { .. }, .. } => {
            of_package(py, "InternalError", (failure.to_string(),))
        }
    }
}

/// What went wrong with a device or in a launch.
pub(crate) fn runtime_error(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::OutOfResources { resource, needed, available, .. } => {
            of_package(py, "OutOfResources", (*needed, *available, *resource, text))
        }
        Error::OutOfRange { .. } => PyOverflowError::new_err(text),
        Error::Argument { .. } | Error::ArgumentCount { .. } => PyTypeError::new_err(text),
        Error::Ptx { .. } => of_package(py, "PTXASError", (text,)),
        Error::Fault(_) | Error::Sanitizer(_) | Error::Interpreter { .. } => of_package(py, "KernelFault", (text,)),
        Error::Cuda { call, code, name, text, detail } => {
            PyRuntimeError::new_err(format!("Triton Error [CUDA]: {text} ({call}: {name} {code}){detail}"))
        }
        Error::BufferAccess(_) => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

//! Launches as files describe them (LAUNCH.json and tensors): replayed and compared with what is expected (`python -m rtc
//! verify --golden`), or counted in the emulator (`bench`).
#![allow(unsafe_code)]

use crate::compiled::compiling;
use crate::error::{compile_error, runtime_error};
use crate::interrupted::interruptible;
use crate::place;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rtc_compiler::{Program, Source, Spec};
use rtc_runtime::Device;
use rtc_runtime::jit::SpecializedKernel;
use rtc_source::json_fields::Field;
use rtc_testing::{Error, LaunchFile, Outcome, Tensors, Tolerance, compare};

/// Modules of a program: name, file, text. The first holds the kernel.
type Modules = Vec<(String, String, String)>;

/// A tensor: its name, how the comparison went in words, how many elements are wrong.
type Compared = (String, String, usize);

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn tensors(bytes: &Bound<'_, PyBytes>) -> PyResult<Tensors> {
    Tensors::from_bytes(bytes.as_bytes()).map_err(wrong)
}

/// Launches what a LAUNCH.json says.
fn launched(
    py: Python<'_>,
    device: &Device,
    modules: Modules,
    launch: &str,
    inputs: &Tensors,
) -> PyResult<(SpecializedKernel, Outcome)> {
    let launch = LaunchFile::parse(launch).map_err(wrong)?;
    let spec = Spec::from_field(&Field::root(&launch.spec)).map_err(wrong)?;
    let name = spec.kernel.clone().ok_or_else(|| wrong("`spec` does not name the kernel"))?;
    let modules: Vec<_> = modules.into_iter().map(|(name, file, text)| (name, Source::new(file, text))).collect();
    let source = compiling(py, || Program::parse_modules(&modules))?;
    let program = device.jit_program(source).map_err(|error| compile_error(py, &error))?;
    let ready = compiling(py, || program.kernel(&name)?.specialize_for(&spec))?;
    let ready = ready.map_err(|error| compile_error(py, &error))?;
    // SAFETY: as with Triton, the program that launches guarantees the sizes of its arrays.
    let kernel = unsafe { ready.kernel().assume_in_bounds() };
    let outcome = interruptible(py, || launch.run(&kernel, inputs))?.map_err(|error| match error {
        Error::Runtime(error) => runtime_error(py, &error),
        other => wrong(other),
    })?;
    Ok((ready, outcome))
}

/// Launches on the chosen device or, where none is chosen, a GPU or the emulator, and compares with the expected tensors.
/// Gives the device, too.
#[pyfunction]
pub(crate) fn replay(
    py: Python<'_>,
    modules: Modules,
    launch: &str,
    inputs: &Bound<'_, PyBytes>,
    expected: &Bound<'_, PyBytes>,
    rtol: f64,
    atol: f64,
) -> PyResult<(String, Vec<Compared>)> {
    let device = place::device_of(py, None)?;
    let (inputs, expected) = (tensors(inputs)?, tensors(expected)?);
    let (_, outcome) = launched(py, device, modules, launch, &inputs)?;
    let mut compared = Vec::new();
    for (name, expected) in expected.iter() {
        let actual = outcome.outputs.get(name).ok_or_else(|| {
            wrong(format!("tensor `{name}` is not among the outputs: {}", outcome.outputs.names().join(", ")))
        })?;
        let tolerance = Tolerance::Close { relative: rtol, absolute: atol };
        let found = compare(name, actual, expected, tolerance).map_err(wrong)?;
        compared.push((name.to_owned(), found.to_string(), found.wrong));
    }
    Ok((device.to_string(), compared))
}

/// The operations on floats of a launch, counted in the emulator: those of matrix products, and those of threads.
#[pyfunction]
pub(crate) fn count_flops(
    py: Python<'_>,
    modules: Modules,
    launch: &str,
    inputs: &Bound<'_, PyBytes>,
) -> PyResult<(u64, u64)> {
    let device = Device::emulator().with_counters().map_err(|error| runtime_error(py, &error))?;
    let (ready, _) = launched(py, &device, modules, launch, &tensors(inputs)?)?;
    let counters = ready.kernel().take_counters();
    let counters = counters.ok_or_else(|| wrong("nothing was counted"))?;
    Ok((counters.matrix_flops, counters.thread_flops))
}

//! The names that the compiler knows, for the Python side of the language, and the commands of `rtc`.

use crate::host::detached;
use pyo3::exceptions::PyLookupError;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// Every function of the kernel language: pairs of a namespace (`tl`, `libdevice`, ..) and a name.
#[pyfunction]
pub(crate) fn language_names() -> Vec<(String, String)> {
    let documented = rtc_sema::reference::entries().into_iter().map(|entry| (entry.namespace, entry.name));
    let built_in = rtc_sema::reference::built_in().into_iter();
    let built_in = built_in.map(|(namespace, name, ..)| (namespace.to_owned(), name.to_owned()));
    documented.chain(built_in).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The parameters of a function of the kernel language as they are written, `axis: tl.constexpr = None`, if it is documented.
#[pyfunction]
pub(crate) fn language_parameters(namespace: &str, name: &str) -> Option<Vec<String>> {
    let is_it = |entry: &rtc_sema::reference::Entry| entry.namespace == namespace && entry.name == name;
    rtc_sema::reference::entries().into_iter().find(is_it).map(|entry| entry.params)
}

/// The options of a launch.
#[pyfunction]
pub(crate) fn option_names() -> Vec<&'static str> {
    rtc_compiler::OPTION_NAMES.to_vec()
}

/// What this machine has that rtc needs: the report as text and as JSON, and whether kernels run on some device. `python` says
/// which Python this is.
#[pyfunction]
pub(crate) fn doctor(py: Python<'_>, python: String) -> (String, String, bool) {
    let report = detached(py, || rtc_doctor::examine(vec![rtc_doctor::Check::ok("python", python)]));
    (report.to_string(), format!("{:#}", report.to_json()), report.works())
}

/// Runs the command `rtc` with these words, the name of the program first; gives its exit status. `python` runs what needs a Python.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, python: PathBuf, words: Vec<OsString>) -> u8 {
    detached(py, || rtc_cli::run_in_python(python, words))
}

/// The options that Triton does not have.
#[pyfunction]
pub(crate) fn rtc_option_names() -> Vec<&'static str> {
    rtc_compiler::RTC_OPTION_NAMES.to_vec()
}

/// What a code of a diagnostic means, or what a function takes and gives; without a name all codes.
#[pyfunction]
#[pyo3(signature = (name = None))]
pub(crate) fn explain(name: Option<&str>) -> PyResult<String> {
    rtc_compiler::explain(name).map_err(PyLookupError::new_err)
}

/// A file without block pointers, as far as they could be rewritten: its text, the changes as a diff, and what was left, as
/// text for people.
#[pyfunction]
pub(crate) fn fix(name: &str, text: &str, color: bool) -> (String, String, Vec<String>) {
    let fixed = rtc_compiler::fix(name, text);
    let left = fixed.left.iter().map(|left| rtc_source::render(&fixed.sources, left, color)).collect();
    let diff = fixed.diff();
    (fixed.text, diff, left)
}

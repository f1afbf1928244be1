//! NVIDIA's assembler among the packages of this Python, and warnings of the runtime, which is about it.

use pyo3::prelude::*;
use rtc_assembler::Assembler;
use rtc_runtime::on_warning;
use std::path::PathBuf;
use std::sync::Once;

/// Before the first GPU is opened: its kernels may need another assembler than that of the driver.
pub(crate) fn prepare(py: Python<'_>) {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        look_in_packages(py);
        // To `sys.stderr`, which notebooks show, unlike the stream of the process.
        on_warning(|warning| {
            let text = format!("{warning}\n");
            let written =
                Python::attach(|py| py.import("sys")?.getattr("stderr")?.call_method1("write", (&text,)).map(drop));
            if written.is_err() {
                eprint!("{text}");
            }
        });
    });
}

fn look_in_packages(py: Python<'_>) {
    let path = py.import("sys").and_then(|sys| sys.getattr("path"));
    let folders: Vec<PathBuf> = path.and_then(|path| path.extract()).unwrap_or_default();
    rtc_assembler::look_in(folders);
}

/// The `ptxas` that assembles for a target; nothing where none is found.
#[pyfunction]
pub(crate) fn find_ptxas(py: Python<'_>, arch: &str) -> Option<PathBuf> {
    look_in_packages(py);
    Assembler::find_for(arch).map(|found| found.path().to_owned())
}

/// What is known to be wrong with the code that a `ptxas` makes of the PTX of a kernel, as a warning.
#[pyfunction]
pub(crate) fn ptxas_defect(ptxas: PathBuf, kernel: &str, arch: &str, ptx: &str) -> Option<String> {
    Assembler::new(ptxas).defect(kernel, arch, ptx).map(|text| format!("warning[assembler-defect]: {text}"))
}

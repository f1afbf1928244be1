//! The extension module `rtc._rtc`: what the Python package `rtc` does in Rust.
//!
//! A launch from Python goes through here from end to end: arguments are bound to parameters (`bind.rs`), turned into
//! values (`value.rs`, by what `kind.rs` knows of their types), given a device (`place.rs`; arrays on the CPU go to the emulator,
//! `host.rs`; `foreign.rs` and `dlpack.rs` read arrays of other libraries, `writes.rs` guards those that are read-only, `journal.rs` records what `rtc verify` judges by, `instrument.rs` takes timelines of launches), and handed to `rtc_runtime::jit`, which finds or compiles the kernel. No text is compared on the way. A launch
//! like an earlier one is recognized and made in a tenth of the time (`recent.rs`, `tensor.rs`).
//!
//! The configurations of a search are compiled at the same time (`several.rs`), and later launches find theirs without asking
//! Python (`tuned.rs`).
//!
//! Python keeps what needs Python: how a kernel's source and globals are gathered, autotuning with hooks, the names of
//! the API. It is in `python/rtc`.

mod ahead;
mod assembler;
mod bind;
mod call;
mod compiled;
mod dlpack;
mod error;
mod filled;
mod foreign;
mod golden;
mod grid;
mod host;
mod instrument;
mod interrupted;
mod journal;
mod kernel;
mod kind;
mod names;
mod place;
mod recent;
mod several;
mod tensor;
mod tuned;
mod value;
mod writes;

use pyo3::prelude::*;

/// The compiled part of the package `rtc`.
#[pymodule]
fn _rtc(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<compiled::Ready>()?;
    module.add_class::<tuned::Tuned>()?;
    module.add_function(wrap_pyfunction!(ahead::compile_spec, module)?)?;
    module.add_function(wrap_pyfunction!(ahead::ready_for, module)?)?;
    module.add_function(wrap_pyfunction!(assembler::find_ptxas, module)?)?;
    module.add_function(wrap_pyfunction!(assembler::ptxas_defect, module)?)?;
    module.add_function(wrap_pyfunction!(golden::replay, module)?)?;
    module.add_function(wrap_pyfunction!(golden::count_flops, module)?)?;
    module.add_function(wrap_pyfunction!(grid::cdiv, module)?)?;
    module.add_function(wrap_pyfunction!(instrument::instrument_search, module)?)?;
    module.add_function(wrap_pyfunction!(journal::journal_open, module)?)?;
    module.add_function(wrap_pyfunction!(journal::journal_trials, module)?)?;
    module.add_function(wrap_pyfunction!(kind::register, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::set_hooked, module)?)?;
    module.add_function(wrap_pyfunction!(names::language_names, module)?)?;
    module.add_function(wrap_pyfunction!(names::language_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(names::option_names, module)?)?;
    module.add_function(wrap_pyfunction!(names::rtc_option_names, module)?)?;
    module.add_function(wrap_pyfunction!(names::explain, module)?)?;
    module.add_function(wrap_pyfunction!(names::fix, module)?)?;
    module.add_function(wrap_pyfunction!(names::command, module)?)?;
    module.add_function(wrap_pyfunction!(names::doctor, module)?)?;
    module.add_function(wrap_pyfunction!(place::device_count, module)?)?;
    module.add_function(wrap_pyfunction!(place::device_arch, module)?)?;
    module.add_function(wrap_pyfunction!(place::host_arch, module)?)?;
    module.add_function(wrap_pyfunction!(place::device_name, module)?)?;
    module.add_function(wrap_pyfunction!(place::set_device, module)?)?;
    module.add("compiler_version", rtc_compiler::COMPILER_VERSION)?;
    module.add("build_id", rtc_compiler::BUILD_ID)?;
    Ok(())
}

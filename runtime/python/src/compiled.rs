//! A compiled kernel, as Python looks at it: metadata, PTX, the compiler's stages.

use crate::error::{compile_error, runtime_error};
use crate::host::detached;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtc_compiler::{ArgKind, LaunchOptions, Silent, Specialization, Stage, const_to_json};
use rtc_runtime::jit::CompileError;
use rtc_runtime::{Device, jit};
use serde_json::{Map, Value, json};
use std::any::Any;

/// Deeply nested sources recurse deeply; the stack is only reserved, not used.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Runs the compiler on a thread with a large stack, without Python's lock.
pub(crate) fn compiling<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let result = detached(py, || {
        std::thread::scope(|scope| {
            let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            worker.map(|worker| worker.join()).map_err(|error| error.to_string())
        })
    });
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => {
            Err(PyRuntimeError::new_err(format!("the compiler panicked, which is a bug of rtc: {}", said(&*panic))))
        }
        Err(error) => Err(PyRuntimeError::new_err(format!("cannot start a thread to compile on: {error}"))),
    }
}

fn kind_json(kind: &ArgKind) -> Map<String, Value> {
    let mut field = Map::new();
    match kind {
        ArgKind::Value { ty, divisible_by } => {
            field.insert("type".into(), ty.to_string().into());
            if let Some(factor) = divisible_by {
                field.insert("divisible_by".into(), (*factor).into());
            }
        }
        ArgKind::Constexpr(value) => drop(field.insert("constexpr".into(), const_to_json(value))),
        ArgKind::Tuple { items, fields } => {
            let items = items.iter().map(|item| Value::Object(kind_json(item))).collect();
            field.insert("tuple".into(), Value::Array(items));
            if let Some(fields) = fields {
                field.insert("fields".into(), fields.clone().into());
            }
        }
        ArgKind::Descriptor { .. } => drop(field.insert("type".into(), kind.to_string().into())),
    }
    field
}

/// The options that hooks of launches are given, and all others that are not the default.
fn options_json(options: &LaunchOptions) -> serde_json::Result<Value> {
    let always = [
        "num_warps",
        "num_stages",
        "num_ctas",
        "maxnreg",
        "enable_fp_fusion",
        "debug",
        "launch_pdl",
        "launch_cooperative_grid",
    ];
    let (mut all, default) = (serde_json::to_value(options)?, serde_json::to_value(LaunchOptions::default())?);
    if let Value::Object(all) = &mut all {
        all.retain(|name, value| always.contains(&name.as_str()) || default.get(name) != Some(value));
    }
    Ok(all)
}

/// A specialization as JSON, as `rtc build --spec` takes it.
pub(crate) fn spec_json(of: &Specialization) -> PyResult<String> {
    let mut args = Vec::new();
    for arg in &of.args {
        let mut field = kind_json(&arg.kind);
        field.insert("name".into(), arg.name.clone().into());
        args.push(Value::Object(field));
    }
    let options = options_json(&of.options).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(json!({"kernel": of.kernel, "args": args, "options": options}).to_string())
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// A kernel that is compiled and loaded.
#[pyclass(frozen, module = "rtc._rtc")]
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) ready: jit::SpecializedKernel,
    pub(crate) program: jit::JitProgram,
}

impl Ready {
    fn kernel(&self) -> &rtc_runtime::Kernel {
        self.ready.kernel()
    }

    /// The device that it is loaded on.
    pub(crate) fn device_of_kernel(&self) -> &Device {
        self.kernel().device()
    }

    /// What it was compiled for.
    pub(crate) fn specialization(&self) -> &Specialization {
        self.ready.specialization()
    }
}

#[pymethods]
impl Ready {
    /// The metadata as JSON.
    fn metadata(&self) -> String {
        self.kernel().metadata().to_json()
    }

    /// What it is called in the cache.
    fn key(&self) -> String {
        self.ready.key().to_string()
    }

    /// What it was compiled for: pairs of a parameter and its kind, as signatures write it.
    fn signature(&self) -> Vec<(String, String)> {
        self.specialization().args.iter().map(|arg| (arg.name.clone(), arg.kind.to_string())).collect()
    }

    /// What it was compiled for as JSON, as `rtc build --spec` takes it.
    fn spec(&self) -> PyResult<String> {
        spec_json(self.specialization())
    }

    /// The launch options that it was compiled with.
    fn num_stages(&self) -> u32 {
        self.specialization().options.num_stages
    }

    /// Where it runs.
    fn device(&self) -> String {
        self.kernel().device().to_string()
    }

    /// Registers of a thread, bytes of local memory of a thread, most threads of a block; nothing where no driver tells.
    fn usage(&self) -> Option<(u32, u32, u32)> {
        self.kernel().usage().map(|usage| (usage.registers, usage.local_bytes, usage.max_threads))
    }

    /// What looked wrong in the launches since the last call.
    fn take_findings(&self) -> Vec<String> {
        self.kernel().take_findings().iter().map(ToString::to_string).collect()
    }

    /// The names of the compiler's stages.
    #[staticmethod]
    fn stages() -> Vec<&'static str> {
        Stage::ALL.iter().map(|stage| stage.name()).collect()
    }

    /// The text of a stage.
    fn stage(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let stage: Stage = name.parse().map_err(PyKeyError::new_err)?;
        let specialization = self.specialization();
        let arch = self.program.device().arch().to_string();
        let source = self.program.source();
        let text = compiling(py, || rtc_compiler::emit(source, specialization, &arch, stage, &mut Silent))?;
        text.map_err(|failure| {
            let sources = self.program.source().sources();
            compile_error(py, &CompileError::new(failure, sources))
        })
    }

    /// Launches on the stream of that handle; an argument for each parameter, in order.
    fn launch(&self, grid: (u32, u32, u32), stream: u64, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        crate::ahead::launch(args.py(), self, [grid.0, grid.1, grid.2], stream, args)
    }

    /// Waits for all work of its device.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.kernel().device().synchronize().map_err(|error| runtime_error(py, &error))
    }
}

//! `RTC_INSTRUMENT`: the first launch of each kernel is one of the same kernel with records ([`rtc_abi::records`]), whose
//! timeline goes to a file. Its results are those of the kernel without records, and later launches are ordinary ones.
#![allow(unsafe_code)]

use crate::compiled::{Ready, compiling};
use crate::error::{compile_error, runtime_error};
use crate::journal;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use rtc_abi::DType;
use rtc_abi::records::{self, MAX_BLOCKS};
use rtc_compiler::{ArgKind, Silent};
use rtc_explore::{Recorded, TraceOf};
use rtc_runtime::internal::Passed;
use rtc_runtime::jit::{self, JitProgram};
use rtc_runtime::{Arg, Buffer, Device, Kernel, Pointer, Stream};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Blocks that record, unless `RTC_INSTRUMENT_BLOCKS` has another number.
const BLOCKS: u32 = 4;

/// Searches for configurations in flight: their trials are not recorded.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);
static STATE: Mutex<State> = Mutex::new(State { known: Vec::new(), files: None });

struct State {
    /// Kernels that were launched: the program, which is kept so that its address stays its own, and the name.
    known: Vec<(JitProgram, String)>,
    /// How many kernels of a name have a file.
    files: Option<HashMap<String, usize>>,
}

/// What the environment asks for.
#[derive(Debug)]
struct Setting {
    folder: PathBuf,
    blocks: u32,
}

/// The setting, as text for an error where it is no setting.
fn setting() -> &'static Result<Option<Setting>, String> {
    static SETTING: OnceLock<Result<Option<Setting>, String>> = OnceLock::new();
    SETTING.get_or_init(|| {
        let given = |name| std::env::var_os(name).filter(|text| !text.is_empty());
        let Some(folder) = given("RTC_INSTRUMENT") else { return Ok(None) };
        let blocks = match given("RTC_INSTRUMENT_BLOCKS") {
            None => BLOCKS,
            Some(text) => {
                let number = text.to_str().and_then(|text| text.parse().ok());
                number.filter(|blocks| (1..=MAX_BLOCKS).contains(blocks)).ok_or_else(|| {
                    format!("RTC_INSTRUMENT_BLOCKS: a number from 1 to {MAX_BLOCKS} is expected, not {text:?}")
                })?
            }
        };
        Ok(Some(Setting { folder: folder.into(), blocks }))
    })
}

/// Whether launches may have to be recorded.
#[inline]
pub(crate) fn is_active() -> bool {
    !matches!(setting(), Ok(None))
}

/// Says that a search for a configuration begins, or that it has ended.
#[pyfunction]
pub(crate) fn instrument_search(begins: bool) {
    match begins {
        true => SEARCHES.fetch_add(1, Ordering::Relaxed),
        false => SEARCHES.fetch_sub(1, Ordering::Relaxed),
    };
}

/// A launch that is recorded.
pub(crate) struct Recording {
    setting: &'static Setting,
    kernel: Kernel,
    ptx: String,
    spec: String,
    passed: Passed,
    memory: Buffer<u64>,
}

/// The kernel with records for a launch with the arguments of these parameters, if the launch is to be recorded.
pub(crate) fn begin(
    py: Python<'_>,
    of: &Ready,
    device: &Device,
    names: impl Iterator<Item = String>,
) -> PyResult<Option<Recording>> {
    let setting = match setting() {
        Ok(None) => return Ok(None),
        Ok(Some(setting)) => setting,
        Err(message) => return Err(PyValueError::new_err(message.as_str())),
    };
    if journal::is_active() || SEARCHES.load(Ordering::Relaxed) > 0 || is_captured(py, device) {
        return Ok(None);
    }
    if device.is_interpreter() {
        let text = "RTC_INSTRUMENT: the interpreter has no time to record; use a GPU or the emulator";
        return Err(PyValueError::new_err(text));
    }
    if !is_new(of) {
        return Ok(None);
    }
    let spec = crate::compiled::spec_json(of.specialization())?;
    let mut specialization = of.specialization().clone();
    specialization.options.instrument = setting.blocks;
    let arch = device.arch().to_string();
    let source = of.program.source();
    let hash = rtc_compiler::source_hash(source, &specialization, &arch);
    let compiled = compiling(py, || jit::compile(device, source, &specialization, &arch, hash, &mut Silent))?;
    let compiled = compiled.map_err(|error| compile_error(py, &error))?;
    let metadata = compiled.kernel.metadata();
    let whole = |name: &str| {
        let kind = specialization.args.iter().find(|arg| arg.name == name).map(|arg| arg.kind.clone());
        kind.unwrap_or(ArgKind::Constexpr(rtc_compiler::ConstValue::None))
    };
    let given: Vec<(String, ArgKind)> = names.map(|name| (name.clone(), whole(&name))).collect();
    let given: Vec<(&str, &ArgKind)> = given.iter().map(|(name, kind)| (name.as_str(), kind)).collect();
    // The records come behind the parameters of the source.
    let mut of_source = metadata.clone();
    of_source.params.retain(|param| param.name != records::PARAM);
    let passed = Passed::of(&of_source, &given).map_err(|param| {
        PyValueError::new_err(format!("RTC_INSTRUMENT: no argument of the launch stands for the parameter `{param}`"))
    })?;
    let bytes = records::bytes(setting.blocks, metadata.threads_per_block / 32);
    let zeros = || {
        let memory = device.zeros(bytes as usize / size_of::<u64>())?;
        // The stream of the launch may be one that does not wait for the default stream.
        device.default_stream().synchronize()?;
        Ok(memory)
    };
    let memory = zeros().map_err(|error| runtime_error(py, &error))?;
    let ptx = compiled.artifact.map(|artifact| artifact.ptx).unwrap_or_default();
    Ok(Some(Recording { setting, kernel: compiled.kernel, ptx, spec, passed, memory }))
}

/// Whether the launch goes into a CUDA graph of PyTorch: then it is made later, and perhaps several times.
fn is_captured(py: Python<'_>, device: &Device) -> bool {
    let asked = || -> PyResult<bool> {
        let modules = py.import("sys")?.getattr("modules")?;
        let torch = modules.call_method1("get", ("torch",))?;
        if torch.is_none() {
            return Ok(false);
        }
        torch.getattr("cuda")?.call_method0(intern!(py, "is_current_stream_capturing"))?.extract()
    };
    device.is_cuda() && asked().unwrap_or(false)
}

/// Whether no launch of this kernel came before; one has, from now on.
fn is_new(of: &Ready) -> bool {
    let name = &of.specialization().kernel;
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it =
        |(program, known): &(JitProgram, String)| std::ptr::eq(program.source(), of.program.source()) && known == name;
    if state.known.iter().any(is_it) {
        return false;
    }
    state.known.push((of.program.clone(), name.clone()));
    true
}

/// A file of its own for each kernel of this process.
fn file_for(folder: &Path, kernel: &str) -> PathBuf {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let count = state.files.get_or_insert_default().entry(kernel.to_owned()).or_insert(0);
    *count += 1;
    folder.join(match *count {
        1 => format!("{kernel}.perfetto.json"),
        number => format!("{kernel}.{number}.perfetto.json"),
    })
}

impl Recording {
    /// Launches, as [`Kernel::launch_unchecked`] does.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    pub(crate) unsafe fn launch(&self, stream: &Stream, grid: [u32; 3], args: &[Arg<'_>]) -> rtc_runtime::Result<()> {
        let bytes = self.memory.len() as u64 * size_of::<u64>() as u64;
        // SAFETY: the buffer lives until the records are read.
        let records = unsafe { Pointer::from_raw(self.kernel.device(), self.memory.address(), bytes, DType::Int64) };
        let mut passed = self.passed.pick(args);
        passed.push(Arg::Pointer(records));
        // SAFETY: the caller guarantees the accesses of the kernel; its records stay within their memory.
        unsafe { self.kernel.launch_unchecked(stream, grid, &passed) }
    }

    /// Waits for the launch, and writes its timeline.
    pub(crate) fn end(self, py: Python<'_>, stream: &Stream, grid: [u32; 3]) -> PyResult<()> {
        stream.synchronize().map_err(|error| runtime_error(py, &error))?;
        let words = self.memory.to_vec().map_err(|error| runtime_error(py, &error))?;
        let records: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let metadata = self.kernel.metadata();
        let name = &metadata.kernel;
        let knobs = py.import("rtc.knobs")?;
        for finding in self.kernel.take_findings() {
            knobs.call_method1("report_finding", (name, finding.to_string()))?;
        }
        let recorded = rtc_explore::recorded(&self.ptx, &records, metadata.threads_per_block / 32);
        let device = self.kernel.device();
        let (arch, device) = (device.arch().to_string(), device.to_string());
        let instrument = self.setting.blocks;
        let of = TraceOf { kernel: name.clone(), arch, device, grid, spec: self.spec, instrument };
        let path = file_for(&self.setting.folder, name);
        let trace = rtc_explore::recorded_trace(&recorded, &of).to_string();
        let written = std::fs::create_dir_all(&self.setting.folder).and_then(|()| std::fs::write(&path, trace));
        written
            .map_err(|error| PyOSError::new_err(format!("RTC_INSTRUMENT: cannot write {}: {error}", path.display())))?;
        let Recorded { blocks, events, lost, .. } = recorded;
        let lost = if lost == 0 { "none lost".to_owned() } else { format!("the last {lost} of warps lost") };
        let text =
            format!("note: timeline of `{name}`: {} ({blocks} blocks, {events} events, {lost})\n", path.display());
        py.import("sys")?.getattr("stderr")?.call_method1("write", (text,)).map(drop)
    }
}

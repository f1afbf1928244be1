//! Where a launch runs: the device that its arguments lie on, and the stream that is current there.
#![allow(unsafe_code)]

use crate::error::runtime_error;
use dlpark::AllocationDeleter;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use rtc_runtime::sanitize::Checks;
use rtc_runtime::{Device, DeviceKind, Event, Stream};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where an argument lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// On a GPU, or where a GPU can reach it.
    Gpu,
    /// Memory of the process.
    Host,
}

/// What `RTC_DEVICE` or `rtc.set_device` says.
static CHOSEN: Mutex<Option<DeviceKind>> = Mutex::new(None);
/// The emulator and the interpreter, which keep their memory.
static HOST: [Mutex<Option<&Device>>; 2] = [Mutex::new(None), Mutex::new(None)];
/// GPUs that were opened, which stay open.
static GPUS: Mutex<Vec<(usize, &Device)>> = Mutex::new(Vec::new());
/// The streams of launches, by device and handle, the latest first.
static STREAMS: Mutex<Vec<(Device, u64, Arc<Stream>)>> = Mutex::new(Vec::new());
/// How many streams are kept: a program that makes streams for ever must not fill the memory.
const STREAMS_KEPT: usize = 64;
/// Whether a device on the CPU was asked for.
static CPU_CHOSEN: AtomicBool = AtomicBool::new(false);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind of device that was asked for.
fn chosen() -> PyResult<DeviceKind> {
    let mut chosen = lock(&CHOSEN);
    if let Some(kind) = *chosen {
        return Ok(kind);
    }
    let kind = match std::env::var("RTC_DEVICE") {
        Ok(text) => text.parse().map_err(|error| PyValueError::new_err(format!("RTC_DEVICE: {error}")))?,
        Err(_) => DeviceKind::Auto,
    };
    choose(&mut chosen, kind);
    Ok(kind)
}

fn choose(chosen: &mut Option<DeviceKind>, kind: DeviceKind) {
    CPU_CHOSEN.store(matches!(kind, DeviceKind::Emulator | DeviceKind::Interpreter), Ordering::Relaxed);
    *chosen = Some(kind);
}

/// Whether a device on the CPU was asked for.
#[inline]
pub(crate) fn is_cpu_chosen() -> bool {
    CPU_CHOSEN.load(Ordering::Relaxed)
}

/// Says where kernels run: `auto`, `cuda:N`, `emulator` or `interpreter`.
#[pyfunction]
pub(crate) fn set_device(name: &str) -> PyResult<()> {
    let kind = name.parse().map_err(PyValueError::new_err)?;
    choose(&mut lock(&CHOSEN), kind);
    Ok(())
}

/// The GPU of that number.
pub(crate) fn gpu(py: Python<'_>, ordinal: usize) -> PyResult<&'static Device> {
    let mut all = lock(&GPUS);
    if let Some((_, device)) = all.iter().find(|(own, _)| *own == ordinal) {
        return Ok(device);
    }
    crate::assembler::prepare(py);
    let device: &Device = Box::leak(Box::new(Device::cuda(ordinal).map_err(|error| runtime_error(py, &error))?));
    all.push((ordinal, device));
    Ok(device)
}

/// The stream of that handle, which PyTorch gave.
#[inline]
pub(crate) fn stream_of(py: Python<'_>, device: &Device, handle: u64) -> PyResult<Arc<Stream>> {
    if !device.is_cuda() {
        return Ok(default_stream(device));
    }
    // SAFETY: PyTorch gives the handle of a stream of the primary context, which lives as long as the object that Python has.
    kept_stream(device, handle, || unsafe { Stream::from_raw(device, handle) })
        .map_err(|error| runtime_error(py, &error))
}

/// The stream of a handle, made if it is not among the latest.
#[inline]
fn kept_stream<E>(device: &Device, handle: u64, make: impl FnOnce() -> Result<Stream, E>) -> Result<Arc<Stream>, E> {
    let mut all = lock(&STREAMS);
    let is_it = |(own, known, _): &(Device, u64, Arc<Stream>)| *known == handle && own.is_same(device);
    let found = all.iter().position(is_it);
    if let Some(index) = found {
        all[..=index].rotate_right(1);
        return Ok(all[0].2.clone());
    }
    let stream = Arc::new(make()?);
    all.insert(0, (device.clone(), handle, stream.clone()));
    let kept = STREAMS_KEPT.min(all.len());
    let forgotten = all.split_off(kept);
    // Giving back what a stream has, such as scratch memory, may wait for the GPU.
    drop(all);
    drop(forgotten);
    Ok(stream)
}

/// Makes a stream wait for what other libraries have put on theirs, which are given by their handles.
pub(crate) fn wait_for(py: Python<'_>, device: &Device, stream: &Stream, after: &[u64]) -> PyResult<()> {
    /// The default stream, as `__cuda_array_interface__` and the driver number it.
    const LEGACY: u64 = 1;
    let own = stream.as_raw().unwrap_or(0);
    for handle in after.iter().copied().filter(|handle| *handle != own && (*handle, own) != (LEGACY, 0)) {
        // SAFETY: the object that gave the handle guarantees that it is a stream, which lives as long as the object.
        let theirs = unsafe { Stream::from_raw(device, handle) };
        let waits = theirs.and_then(|theirs| stream.wait(&theirs.record()?));
        waits.map_err(|error| runtime_error(py, &error))?;
    }
    Ok(())
}

/// Memory that other libraries have handed over for launches on a GPU, by the point at which the launch is done with it.
static HANDED: Mutex<Vec<(Event, Vec<AllocationDeleter>)>> = Mutex::new(Vec::new());

/// Keeps memory until what is on the stream now is done. Memory of earlier launches that are done is given back.
pub(crate) fn keep_until_done(py: Python<'_>, stream: &Stream, owners: Vec<AllocationDeleter>) -> PyResult<()> {
    if owners.is_empty() {
        return Ok(());
    }
    let point = stream.record().map_err(|error| runtime_error(py, &error));
    let mut handed = lock(&HANDED);
    match point {
        Ok(point) => handed.push((point, owners)),
        // When the launch is done cannot be found out, so that the memory is never given back.
        Err(error) => {
            std::mem::forget(owners);
            return Err(error);
        }
    }
    let done = |(point, _): &mut (Event, _)| point.is_complete().unwrap_or(false);
    let done: Vec<_> = handed.extract_if(.., done).collect();
    // The functions that free it may run code of Python, which may launch.
    drop(handed);
    drop(done);
    Ok(())
}

/// What launches on the emulator are checked for, as `RTC_SANITIZE` says it.
fn sanitizer_checks() -> PyResult<Option<Checks>> {
    match std::env::var("RTC_SANITIZE") {
        Ok(text) if !text.is_empty() => {
            let checks = text.parse().map_err(|error| PyValueError::new_err(format!("RTC_SANITIZE: {error}")))?;
            Ok(Some(checks))
        }
        _ => Ok(None),
    }
}

/// The device on the CPU that was asked for; the emulator where none was.
fn host_device(py: Python<'_>) -> PyResult<&'static Device> {
    let interpreter = chosen()? == DeviceKind::Interpreter;
    let mut slot = lock(&HOST[usize::from(interpreter)]);
    if let Some(device) = *slot {
        return Ok(device);
    }
    let device = match (interpreter, sanitizer_checks()?) {
        (true, None) => Device::interpreter(),
        (true, Some(_)) => {
            let text = "RTC_SANITIZE: the sanitizer runs on the emulator; RTC_DEVICE asks for the interpreter";
            return Err(PyValueError::new_err(text));
        }
        (false, None) => Ok(Device::emulator()),
        (false, Some(checks)) => Device::emulator().with_sanitizer(checks),
    };
    let device = device.map_err(|error| runtime_error(py, &error))?;
    Ok(*slot.insert(Box::leak(Box::new(device))))
}

/// How many GPUs there are.
#[pyfunction]
pub(crate) fn device_count(py: Python<'_>) -> PyResult<usize> {
    counted().as_ref().copied().map_err(|error| runtime_error(py, error))
}

/// Whether there is a GPU that can be used.
pub(crate) fn has_gpu() -> bool {
    counted().as_ref().is_ok_and(|count| *count > 0)
}

/// How many GPUs there are, or why the driver cannot tell.
fn counted() -> &'static Result<usize, rtc_runtime::Error> {
    static COUNT: OnceLock<Result<usize, rtc_runtime::Error>> = OnceLock::new();
    COUNT.get_or_init(Device::cuda_count)
}

/// The target of the current device.
#[pyfunction]
pub(crate) fn device_arch(py: Python<'_>) -> PyResult<String> {
    Ok(device_of(py, None)?.arch().to_string())
}

/// The target of the device on the CPU.
#[pyfunction]
pub(crate) fn host_arch(py: Python<'_>) -> PyResult<String> {
    Ok(device_of(py, Some(Memory::Host))?.arch().to_string())
}

/// The current device, as text.
#[pyfunction]
pub(crate) fn device_name(py: Python<'_>) -> PyResult<String> {
    Ok(device_of(py, None)?.to_string())
}

/// The functions of PyTorch that tell the current device and its stream.
struct Torch {
    device: Py<PyAny>,
    stream: Py<PyAny>,
}

/// PyTorch, if the program has loaded it and it knows GPUs; it is not imported here.
fn torch<'a>(py: Python<'a>) -> PyResult<Option<&'a Torch>> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if let Some(torch) = TORCH.get(py) {
        return Ok(Some(torch));
    }
    let modules = MODULES.get_or_try_init(py, || {
        let modules = py.import("sys")?.getattr("modules")?;
        PyResult::Ok(modules.cast_into::<PyDict>()?.unbind())
    })?;
    let Some(torch) = modules.bind(py).get_item(intern!(py, "torch"))? else { return Ok(None) };
    let Ok(functions) = torch.getattr("_C") else { return Ok(None) };
    let (Ok(device), Ok(stream)) =
        (functions.getattr("_cuda_getDevice"), functions.getattr("_cuda_getCurrentRawStream"))
    else {
        return Ok(None);
    };
    let made = Torch { device: device.unbind(), stream: stream.unbind() };
    Ok(Some(TORCH.get_or_init(py, || made)))
}

/// The device of a launch, and what PyTorch calls it.
pub(crate) struct Current<'py> {
    pub(crate) device: &'static Device,
    /// The number of the GPU as PyTorch gave it.
    ordinal: Option<Bound<'py, PyAny>>,
}

/// The device of a launch whose arguments lie there; `None` if none of them is memory.
pub(crate) fn device_of(py: Python<'_>, memory: Option<Memory>) -> PyResult<&'static Device> {
    Ok(Current::of(py, memory, None)?.device)
}

/// The number of the GPU on which memory lies; `None` for the null pointer of an empty array, and where there is no GPU.
pub(crate) fn gpu_of(py: Python<'_>, address: u64) -> PyResult<Option<usize>> {
    if address == 0 || device_count(py)? == 0 {
        return Ok(None);
    }
    Device::cuda_ordinal_of(address).map(Some).map_err(|error| runtime_error(py, &error))
}

impl<'py> Current<'py> {
    /// The device of a launch whose arguments lie there; `None` if none of them is memory. `number` is that of the GPU
    /// where an argument says it; otherwise it is PyTorch's current one.
    #[inline]
    pub(crate) fn of(py: Python<'py>, memory: Option<Memory>, number: Option<usize>) -> PyResult<Current<'py>> {
        let kind = chosen()?;
        let of = |device| Ok(Current { device, ordinal: None });
        match (memory, kind) {
            (Some(Memory::Gpu), DeviceKind::Cuda(asked)) if number.is_some_and(|own| own != asked) => {
                Err(PyValueError::new_err(format!(
                    "RTC_DEVICE or --device asks for GPU {asked}, but an argument lies on GPU {}",
                    number.unwrap_or_default()
                )))
            }
            (Some(Memory::Gpu), DeviceKind::Emulator | DeviceKind::Interpreter) => Err(PyRuntimeError::new_err(
                "RTC_DEVICE asks for a device on the CPU, but an argument lies on a GPU: pass arrays on the CPU, or unset \
                 RTC_DEVICE",
            )),
            (Some(Memory::Host), DeviceKind::Cuda(_)) => Err(PyValueError::new_err(
                "Pointer argument cannot be accessed from Triton (cpu tensor?): RTC_DEVICE or --device asks for a GPU, the \
                 arrays lie in memory of the CPU",
            )),
            (Some(Memory::Host), _) | (None, DeviceKind::Emulator | DeviceKind::Interpreter) => of(host_device(py)?),
            (None, DeviceKind::Auto) if !has_gpu() => of(host_device(py)?),
            (None, DeviceKind::Cuda(ordinal)) => of(gpu(py, ordinal)?),
            (Some(Memory::Gpu) | None, _) => {
                let ordinal = match (torch(py)?, number) {
                    (Some(_), Some(number)) => Some(number.into_pyobject(py)?.into_any()),
                    (Some(torch), None) => Some(torch.device.bind(py).call0()?),
                    (None, _) => None,
                };
                let known = ordinal.as_ref().map(|ordinal| ordinal.extract()).transpose()?;
                Ok(Current { device: gpu(py, known.or(number).unwrap_or(0))?, ordinal })
            }
        }
    }

    /// A GPU of which nothing else is known.
    pub(crate) fn of_gpu(device: &'static Device) -> Current<'py> {
        Current { device, ordinal: None }
    }

    /// PyTorch's number of the GPU, if PyTorch told it.
    pub(crate) fn ordinal(&self) -> Option<i32> {
        self.ordinal.as_ref()?.extract().ok()
    }

    /// The stream that is current there: PyTorch's where it is loaded, else the default stream.
    #[inline]
    pub(crate) fn stream(&self, py: Python<'py>) -> PyResult<Arc<Stream>> {
        if !self.device.is_cuda() {
            return Ok(default_stream(self.device));
        }
        let handle: u64 = match (torch(py)?, &self.ordinal) {
            (Some(torch), Some(ordinal)) => torch.stream.bind(py).call1((ordinal,))?.extract()?,
            (Some(torch), None) => torch.stream.bind(py).call1((torch.device.bind(py).call0()?,))?.extract()?,
            (None, _) => 0,
        };
        stream_of(py, self.device, handle)
    }
}

/// The stream of a device on the CPU.
fn default_stream(device: &Device) -> Arc<Stream> {
    let made: Result<_, Infallible> = kept_stream(device, 0, || Ok(device.default_stream().clone()));
    made.unwrap_or_else(|never| match never {})
}

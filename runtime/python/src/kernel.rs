//! A kernel of Python, and its launches.
#![allow(unsafe_code)]

use crate::bind::{self, Call, Held, KnownOptions, Param};
use crate::call;
use crate::compiled::{self, compiling};
use crate::error::{compile_error, runtime_error};
use crate::filled::Fillings;
use crate::grid::{self, Meta};
use crate::host::Copies;
use crate::instrument;
use crate::interrupted::interruptible;
use crate::journal;
use crate::place::{self, Memory};
use crate::recent::{self, Fixed, Keyword, Recent, Recents};
use crate::several;
use crate::tensor::Torch;
use crate::value::{Reading, Value, with_args};
use crate::writes;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use rtc_compiler::Source;
use rtc_runtime::jit::{self, JitEvent, JitKernel, JitProgram};
use rtc_runtime::{Arg, Device};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether some hook is to be told of launches.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Says whether launches call `_enter` and `_exit` of their kernel.
#[pyfunction]
pub(crate) fn set_hooked(hooked: bool) {
    HOOKED.store(hooked, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `rtc.jit` makes of a function: the Python class derives from it.
#[pyclass(subclass, frozen, module = "rtc._rtc")]
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    core: Mutex<Option<Arc<Core>>>,
    pub(crate) recents: Recents,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    /// Options that hold where a launch says nothing.
    pub(crate) defaults: Py<PyDict>,
    pub(crate) options: KnownOptions,
    variants: Mutex<Vec<Arc<Variant>>>,
    /// What Python has of each kernel that is ready.
    compiled: Mutex<FxHashMap<usize, Py<PyAny>>>,
    /// Globals that the kernel was compiled with: where they are, and what they were.
    watched: Mutex<Vec<Watched>>,
}

/// The kernel for a device, with the functions that it is given as arguments.
#[derive(Debug)]
pub(crate) struct Variant {
    functions: Arc<[Py<PyAny>]>,
    pub(crate) kernel: JitKernel,
    program: JitProgram,
    said: Said,
}

/// What the compiler says while it works: for which of several requests, whether it is a warning, the text.
type Said = Arc<Mutex<Vec<(usize, bool, String)>>>;

/// Whether warnings about kernels are shown: as `RTC_WARNINGS` says, else not under `python -m rtc`, where most kernels of a
/// program come from libraries and generators.
fn shows_warnings() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match set("RTC_WARNINGS") {
        Some(value) => value != "0",
        None => set("RTC_AS_TRITON").is_none_or(|value| value != "1"),
    }
}

thread_local! {
    /// The number of the request that this thread compiles for.
    pub(crate) static REQUEST: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
struct Watched {
    scope: Py<PyDict>,
    name: Py<PyString>,
    value: Py<PyAny>,
}

#[pymethods]
impl Kernel {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Kernel {
        Kernel::default()
    }

    /// Says what the kernel is: its name, its parameters (name, whether it is a constexpr, a tuple that holds its default
    /// or is empty), options that hold where a launch says nothing. What was compiled before is forgotten.
    fn _configure(
        &self,
        name: String,
        params: Vec<(Bound<'_, PyString>, bool, Bound<'_, PyTuple>)>,
        defaults: Py<PyDict>,
    ) -> PyResult<()> {
        let param = |(name, is_constexpr, default): (Bound<'_, PyString>, bool, Bound<'_, PyTuple>)| {
            let default = if default.is_empty() { None } else { Some(default.get_item(0)?.unbind()) };
            let is_option = bind::is_shared_option(&name.to_string_lossy());
            Ok(Param { name: name.unbind(), is_constexpr, default, is_option })
        };
        let params = params.into_iter().map(param).collect::<PyResult<_>>()?;
        self.recents.forget();
        let (options, variants, compiled, watched) = Default::default();
        *lock(&self.core) = Some(Arc::new(Core { name, params, defaults, options, variants, compiled, watched }));
        Ok(())
    }

    /// Names globals whose change is an error from now on: a dictionary, a name in it, its value.
    fn _watch(&self, all: Vec<(Py<PyDict>, Py<PyString>, Py<PyAny>)>) -> PyResult<()> {
        let all = all.into_iter().map(|(scope, name, value)| Watched { scope, name, value }).collect();
        *lock(&self.core()?.watched) = all;
        Ok(())
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, grid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call::with_grid(slf, grid)
    }

    /// Launches, or only makes ready. Gives what Python has of the compiled kernel. `options` are options even if a
    /// parameter has the same name.
    #[pyo3(signature = (grid, warmup, args, kwargs = None, options = None))]
    fn _launch<'py>(
        slf: &Bound<'py, Self>,
        grid: &Bound<'py, PyAny>,
        warmup: bool,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        launch(slf, grid, warmup, (args, kwargs, options))
    }

    /// Compiles for several calls at the same time and launches nothing: pairs of positional arguments and keywords, each read
    /// before the next is asked for.
    fn _prepare(slf: &Bound<'_, Self>, calls: &Bound<'_, PyAny>) -> PyResult<()> {
        several::prepare(slf, calls)
    }
}

impl Kernel {
    pub(crate) fn core(&self) -> PyResult<Arc<Core>> {
        lock(&self.core).clone().ok_or_else(|| PyRuntimeError::new_err("the kernel has no function"))
    }
}

/// Positional arguments, keywords, options.
type Bindable<'a, 'py> = (&'a Bound<'py, PyTuple>, Option<&'a Bound<'py, PyDict>>, Option<&'a Bound<'py, PyDict>>);

/// Whether some hook is to be told of launches, or some of them are recorded.
#[inline]
pub(crate) fn is_watched() -> bool {
    HOOKED.load(Ordering::Relaxed) || instrument::is_active()
}

/// Launches, or only makes ready.
pub(crate) fn launch<'py>(
    slf: &Bound<'py, Kernel>,
    grid: &Bound<'py, PyAny>,
    warmup: bool,
    (args, kwargs, options): Bindable<'_, 'py>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let hooked = HOOKED.load(Ordering::Relaxed);
    let is_plain = !warmup && !is_watched() && options.is_none();
    if is_plain && let Some(launched) = recent::launch_of(slf, grid, args, kwargs) {
        return launched;
    }
    let core = slf.get().core()?;
    let mut call = bind::bind(&core.name, &core.params, args, kwargs)?;
    call.rest.extend(options.into_iter().flat_map(bind::members));
    let jit_options = core.options.of(&call, core.defaults.bind(py))?;
    let mut reading = Reading::default();
    let mut values: SmallVec<[Value; 16]> = SmallVec::new();
    for (index, (param, object)) in core.params.iter().zip(&call.values).enumerate() {
        let Some(object) = object else { continue };
        reading.param = index;
        values.push(reading.value(object, param.is_constexpr).map_err(|error| named(py, error, &core, param))?);
    }
    if !warmup {
        reading.check_memory(&core.name, |param| core.params[param].name.to_string())?;
    }
    let owners = std::mem::take(&mut reading.owners);
    let current = place::Current::of(py, reading.memory, reading.gpu)?;
    let device = current.device;
    let variant = core.variant(slf, device, &reading)?;
    core.check_globals(slf)?;
    let copies = match reading.memory {
        Some(Memory::Host) if !device.is_cuda() => {
            let copies = Copies::upload(device, &reading.ranges, |param| core.params[param].name.to_string());
            Some(copies.map_err(|error| runtime_error(py, &error))?)
        }
        _ => None,
    };
    with_args(device, &values, copies.as_ref(), |args| {
        let ready = variant.ready(py, args, &jit_options)?;
        let compiled = core.compiled(slf, &ready, &variant, warmup)?;
        if warmup || compiled.is_none(py) {
            return Ok(compiled);
        }
        let grid = core.grid(py, grid, call.values.iter().copied().flatten())?;
        writes::check(&ready, &reading.read_only, |param| core.params[param].name.to_string())?;
        let stream = current.stream(py)?;
        place::wait_for(py, device, &stream, &reading.after)?;
        let watched = journal::begin(py, device, &stream, &reading.ranges, copies.is_some())?;
        let of = || compiled::Ready { ready: ready.clone(), program: variant.program.clone() };
        let recording = match instrument::is_active() {
            true => {
                let given = core.params.iter().zip(&call.values).filter(|(_, value)| value.is_some());
                instrument::begin(py, &of(), device, given.map(|(param, _)| param.name.to_string()))?
            }
            false => None,
        };
        let told = |hook: &str| {
            let given: SmallVec<[_; 16]> = call.values.iter().flatten().map(|value| (**value).clone()).collect();
            let given = PyTuple::new(py, given)?;
            slf.call_method1(hook, (&compiled, grid, stream.as_raw().unwrap_or(0), given))
        };
        if hooked {
            told("_enter")?;
        }
        // SAFETY: as with Triton, the program that launches guarantees the sizes of its arrays.
        let start = || match &recording {
            Some(recording) => unsafe { recording.launch(&stream, grid, args) },
            None => unsafe { ready.launch_unchecked(&stream, grid, args) },
        };
        let launched = match copies {
            None => Ok(start()),
            Some(_) => interruptible(py, start),
        };
        // A kernel that ended with a fault, or was interrupted, has written, too.
        let ended = match &copies {
            Some(copies) => writes::write_back(py, &core.name, copies),
            None => place::keep_until_done(py, &stream, owners),
        };
        launched?.map_err(|error| runtime_error(py, &error))?;
        ended?;
        if let Some(watched) = watched {
            watched.end(py, &stream, &of(), grid, copies.is_some(), |param| core.params[param].name.to_string())?;
        }
        if let Some(recording) = recording {
            recording.end(py, &stream, grid)?;
        }
        if hooked {
            told("_exit")?;
        }
        if copies.is_some() {
            slf.call_method1(intern!(py, "_findings"), (&compiled,))?;
        } else if is_plain
            && Torch::get(py).is_some()
            && let Some(ordinal) = current.ordinal()
            && let Some(fixed) = fixed(&call, &values, &reading)
            && let Ok(remembered) = variant.kernel.remember(args, &jit_options)
        {
            let keywords = kwargs.into_iter().flat_map(bind::members);
            let keywords = keywords.map(|(name, value)| keyword(&core, &name, &value)).collect::<PyResult<_>>()?;
            let (core, given, device) = (core.clone(), call.given, current.device);
            let meta = Meta::new(py, &core, call.values.iter().copied().flatten())?;
            let compiled = compiled.clone_ref(py);
            let fillings = Fillings::default();
            let recent = Recent { core, given, keywords, fixed, ordinal, device, remembered, compiled, meta, fillings };
            slf.get().recents.keep(recent);
        }
        Ok(compiled)
    })
}

/// For each parameter the object that it was given, if it is neither a number nor a tensor; nothing if one of them is of a
/// kind that `recent.rs` does not know.
fn fixed(call: &Call<'_, '_>, values: &[Value], reading: &Reading) -> Option<SmallVec<[Option<Fixed>; 16]>> {
    let objects = call.values.iter().flatten();
    if reading.is_special || call.values.iter().any(Option::is_none) {
        return None;
    }
    let each = objects.zip(values).map(|(object, value)| match value {
        Value::Constant(constant) => Some(((**object).clone().unbind(), constant.clone())),
        _ => None,
    });
    Some(each.collect())
}

/// A keyword as `recent.rs` keeps it.
fn keyword(core: &Core, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Keyword> {
    let param = bind::position(&core.params, name)?;
    let is_option = param.is_none_or(|index| core.params[index].is_option);
    let option = is_option.then(|| value.clone().unbind());
    Ok(Keyword { name: name.clone().unbind(), param, option })
}

/// An error that names the argument.
fn named(py: Python<'_>, error: PyErr, core: &Core, param: &Param) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    PyTypeError::new_err(format!("kernel `{}`, argument `{}`: {}", core.name, param.name.bind(py), error.value(py)))
}

impl Core {
    /// The kernel for a device with these functions as arguments, read again if it is not known.
    pub(crate) fn variant(
        &self,
        slf: &Bound<'_, Kernel>,
        device: &Device,
        reading: &Reading,
    ) -> PyResult<Arc<Variant>> {
        let py = slf.py();
        let is_same = |known: &&Arc<Variant>| {
            let own = known.functions.iter().map(|function| function.as_ptr());
            known.program.device().is_same(device) && own.eq(reading.functions.iter().map(|function| function.as_ptr()))
        };
        if let Some(found) = lock(&self.variants).iter().find(is_same) {
            return Ok(found.clone());
        }
        let functions = PyList::new(py, &reading.functions)?;
        let modules: Vec<(String, String, String)> =
            slf.call_method1(intern!(py, "_modules"), (functions,))?.extract()?;
        let modules: Vec<(String, Source)> =
            modules.into_iter().map(|(name, file, text)| (name, Source::new(file, text))).collect();
        let said = Said::default();
        let heard = said.clone();
        let program = compiling(py, || {
            let program = rtc_compiler::Program::parse_modules(&modules);
            let program = device.jit_program(program)?;
            Ok(program.with_observer(move |event| {
                let (is_warning, text) = match event {
                    JitEvent::StaticPrint(line) => (false, (*line).to_owned()),
                    JitEvent::Warning(text) if shows_warnings() => (true, text.trim_end().to_owned()),
                    JitEvent::CacheProblem(problem) if !problem.is_read_only() => {
                        (true, format!("warning[cache]: {problem}"))
                    }
                    _ => return,
                };
                lock(&heard).push((REQUEST.get(), is_warning, text));
            }))
        })?;
        let program = program.map_err(|error: jit::CompileError| compile_error(py, &error))?;
        let kernel = program.kernel(&self.name).map_err(|error| compile_error(py, &error))?;
        let functions = reading.functions.iter().map(|function| function.clone_ref(py)).collect();
        let made = Arc::new(Variant { functions, kernel, program, said });
        lock(&self.variants).push(made.clone());
        Ok(made)
    }

    /// What Python has of a kernel that is ready; `None` where a hook keeps it from being launched.
    fn compiled(
        &self,
        slf: &Bound<'_, Kernel>,
        ready: &jit::SpecializedKernel,
        variant: &Variant,
        warmup: bool,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if let Some(found) = lock(&self.compiled).get(&ready.id()) {
            return Ok(found.clone_ref(py));
        }
        let object = compiled::Ready { ready: ready.clone(), program: variant.program.clone() };
        let made = slf.call_method1(intern!(py, "_compiled"), (object, warmup))?.unbind();
        if made.is_none(py) {
            return Ok(made);
        }
        lock(&self.compiled).insert(ready.id(), made.clone_ref(py));
        Ok(made)
    }

    /// The grid; where a function gives it, that is asked with the arguments.
    fn grid<'a, 'py: 'a>(
        &self,
        py: Python<'py>,
        grid: &Bound<'py, PyAny>,
        values: impl Iterator<Item = Held<'a, 'py>>,
    ) -> PyResult<[u32; 3]> {
        if !grid.is_callable() {
            return grid::sizes(grid);
        }
        let all = PyDict::new(py);
        for (param, value) in self.params.iter().zip(values) {
            all.set_item(&param.name, value)?;
        }
        grid::sizes(&grid.call1((all,))?)
    }

    /// Refuses a launch after a global that the kernel was compiled with has changed.
    pub(crate) fn check_globals(&self, slf: &Bound<'_, Kernel>) -> PyResult<()> {
        let py = slf.py();
        let changed = {
            let watched = lock(&self.watched);
            watched.iter().find_map(|watched| {
                let now = watched.scope.bind(py).get_item(&watched.name).ok()?;
                let is_same = now.as_ref().is_some_and(|now| now.is(&watched.value));
                (!is_same).then(|| (watched.name.clone_ref(py), watched.value.clone_ref(py), now.map(Bound::unbind)))
            })
        };
        let Some((name, then, now)) = changed else { return Ok(()) };
        slf.call_method1(intern!(py, "_global_changed"), (name, then, now)).map(drop)
    }
}

impl Variant {
    /// The kernel for such arguments, compiled if need be.
    fn ready(&self, py: Python<'_>, args: &[Arg<'_>], options: &jit::Options) -> PyResult<jit::SpecializedKernel> {
        if let Some(ready) = self.kernel.specialized(args, options) {
            return Ok(ready);
        }
        let ready = compiling(py, || self.kernel.specialize(args, options))?;
        self.say(py, |_| true)?;
        ready.map_err(|error| compile_error(py, &error))
    }

    /// Writes what the compiler said for those requests, one after the other; forgets the rest.
    pub(crate) fn say(&self, py: Python<'_>, of: impl Fn(usize) -> bool) -> PyResult<()> {
        let mut said = std::mem::take(&mut *lock(&self.said));
        said.sort_by_key(|(request, ..)| *request);
        for (_, is_warning, text) in said.into_iter().filter(|(request, ..)| of(*request)) {
            let sys = py.import("sys")?;
            let stream = sys.getattr(if is_warning { "stderr" } else { "stdout" })?;
            stream.call_method1("write", (format!("{text}\n"),))?;
        }
        Ok(())
    }
}

//! A launch like an earlier one, which nearly every launch is: the same number of arguments and the same keywords, tensors of
//! PyTorch on its current GPU, numbers, and for the rest the same objects.
//!
//! Such a launch is bound and read by comparing addresses, its tensors by `tensor.rs`, and its kernel is recognized without a
//! look-up. If its numbers are the same, too, `filled.rs` has its arguments packed. What does not fit goes the long way (`kernel.rs`), which knows all rules and all errors; nothing is lost by trying.
#![allow(unsafe_code)]

use crate::bind;
use crate::error::runtime_error;
use crate::filled::Fillings;
use crate::grid::{self, Meta};
use crate::journal;
use crate::kernel::{Core, Kernel};
use crate::place;
use crate::tensor::Torch;
use crate::value::UNKNOWN_BYTES;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rtc_runtime::internal::Remembered;
use rtc_runtime::{Arg, Constant, Device, Pointer, Stream};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// How many forms of launches a kernel keeps.
const KEPT: usize = 16;

/// The latest launches of a kernel that differ in form or kind of arguments.
#[derive(Debug, Default)]
pub(crate) struct Recents(Mutex<Vec<Arc<Recent>>>);

/// A launch that was made.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) core: Arc<Core>,
    /// The number of arguments by position.
    pub(crate) given: usize,
    pub(crate) keywords: SmallVec<[Keyword; 4]>,
    /// For each parameter what it was given if that is neither a number nor a tensor: an object that never changes.
    pub(crate) fixed: SmallVec<[Option<Fixed>; 16]>,
    /// PyTorch's number of the device.
    pub(crate) ordinal: i32,
    pub(crate) device: &'static Device,
    pub(crate) remembered: Remembered,
    /// What Python has of the kernel.
    pub(crate) compiled: Py<PyAny>,
    /// What grid functions are given.
    pub(crate) meta: Meta,
    pub(crate) fillings: Fillings,
}

/// An object that never changes, and what it is to the runtime.
pub(crate) type Fixed = (Py<PyAny>, Arc<Constant>);

/// A keyword of a launch.
#[derive(Debug)]
pub(crate) struct Keyword {
    pub(crate) name: Py<PyAny>,
    /// The parameter of that name.
    pub(crate) param: Option<usize>,
    /// Its value, if it is an option.
    pub(crate) option: Option<Py<PyAny>>,
}

impl Keyword {
    /// Whether it is the one of this name and, if it is an option, of this value.
    #[inline]
    fn is(&self, name: Object, value: Object) -> bool {
        self.name.as_ptr() == name && self.option.as_ref().is_none_or(|option| option.as_ptr() == value)
    }
}

impl Recents {
    pub(crate) fn keep(&self, recent: Recent) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.truncate(KEPT - 1);
        all.insert(0, Arc::new(recent));
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn get(&self, index: usize) -> Option<Arc<Recent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(index).cloned()
    }
}

/// What a call is given, as long as it holds it.
pub(crate) struct Given<'a> {
    pub(crate) positional: &'a [Object],
    /// Names and values.
    pub(crate) keywords: &'a [(Object, Object)],
}

/// Launches if an earlier launch was like it.
pub(crate) fn launch_of<'py>(
    slf: &Bound<'py, Kernel>,
    grid: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Option<PyResult<Py<PyAny>>> {
    Torch::get(slf.py())?;
    let positional: Objects = args.iter_borrowed().map(|object| object.as_ptr()).collect();
    let members = kwargs.into_iter().flat_map(bind::members);
    let keywords: SmallVec<[_; 8]> = members.map(|(name, value)| (name.as_ptr(), value.as_ptr())).collect();
    launch(slf, grid, &Given { positional: &positional, keywords: &keywords })
}

/// Launches if an earlier launch was like it.
#[inline]
pub(crate) fn launch<'py>(
    slf: &Bound<'py, Kernel>,
    grid: &Bound<'py, PyAny>,
    given: &Given<'_>,
) -> Option<PyResult<Py<PyAny>>> {
    let torch = Torch::get(slf.py())?;
    let ordinal = torch.current_device()?;
    let recents = &slf.get().recents;
    (0..).map_while(|index| recents.get(index)).find_map(|recent| recent.again(slf, torch, ordinal, grid, given))
}

/// An argument, for as long as the call holds it.
pub(crate) type Object = *mut ffi::PyObject;
type Objects = SmallVec<[Object; 24]>;
type Args<'a> = SmallVec<[Arg<'a>; 24]>;

impl Recent {
    /// Launches if this launch was like it.
    fn again<'py>(
        &self,
        slf: &Bound<'py, Kernel>,
        torch: &Torch,
        ordinal: i32,
        grid: &Bound<'py, PyAny>,
        given: &Given<'_>,
    ) -> Option<PyResult<Py<PyAny>>> {
        if ordinal != self.ordinal
            || given.positional.len() != self.given
            || place::is_cpu_chosen()
            || journal::is_active()
        {
            return None;
        }
        if let Some(launched) = self.filled_again(slf, torch, grid, given) {
            return Some(launched);
        }
        // Both stay where they are: they are large.
        let (mut objects, mut values) = (Objects::new(), Args::new());
        self.bind(given, &mut objects)?;
        self.read(torch, &objects, &mut values)?;
        self.remembered.fits(&values).then(|| {
            // SAFETY: as with Triton, the program that launches guarantees the sizes of its arrays.
            let start =
                |stream: &Stream, grid| unsafe { self.remembered.ready().launch_unchecked(stream, grid, &values) };
            let launched = self.launch(slf, torch, grid, || objects.clone(), start);
            if launched.is_ok() {
                self.fillings.learn(slf.py(), &self.remembered, &objects, &values);
            }
            launched
        })
    }

    /// Launches if this launch was like it and has the same numbers.
    #[inline]
    fn filled_again<'py>(
        &self,
        slf: &Bound<'py, Kernel>,
        torch: &Torch,
        grid: &Bound<'py, PyAny>,
        given: &Given<'_>,
    ) -> Option<PyResult<Py<PyAny>>> {
        let filled = self.fillings.get()?;
        let mut again = filled.prepared.again();
        let mut take = |param, object| filled.take(torch, &mut again, param, object);
        if given.keywords.len() != self.keywords.len() {
            return None;
        }
        let are_same =
            given.positional.iter().enumerate().all(|(param, object)| take(param, *object))
                && self.keywords.iter().zip(given.keywords).all(|(own, (name, value))| {
                    own.is(*name, *value) && own.param.is_none_or(|param| take(param, *value))
                });
        let objects = || {
            let mut objects = Objects::new();
            self.bind(given, &mut objects).map(|()| objects).unwrap_or_default()
        };
        // SAFETY: as with Triton, the program that launches guarantees the sizes of its arrays.
        let start = |stream: &Stream, grid| unsafe { again.launch_unchecked(stream, grid) };
        are_same.then(|| self.launch(slf, torch, grid, objects, start))
    }

    /// Adds the argument of each parameter.
    #[inline(always)]
    fn bind(&self, given: &Given<'_>, objects: &mut Objects) -> Option<()> {
        objects.extend_from_slice(given.positional);
        let params = &self.core.params;
        objects.extend(params[self.given..].iter().map(|param| match &param.default {
            Some(default) => default.as_ptr(),
            None => std::ptr::null_mut(),
        }));
        if given.keywords.len() != self.keywords.len() {
            return None;
        }
        for (own, (name, value)) in self.keywords.iter().zip(given.keywords) {
            if !own.is(*name, *value) {
                return None;
            }
            if let Some(index) = own.param {
                objects[index] = *value;
            }
        }
        Some(())
    }

    /// Adds the arguments as the runtime takes them.
    #[inline(always)]
    fn read<'a>(&'a self, torch: &Torch, objects: &Objects, args: &mut Args<'a>) -> Option<()> {
        for ((object, param), fixed) in objects.iter().zip(&self.core.params).zip(&self.fixed) {
            args.push(match fixed {
                Some((own, constant)) => match own.as_ptr() == *object {
                    true => Arg::Constant(constant),
                    false => return None,
                },
                None => self.argument(torch, *object, param.is_constexpr)?,
            });
        }
        Some(())
    }

    /// A number or a tensor.
    #[inline]
    fn argument(&self, torch: &Torch, object: Object, is_constexpr: bool) -> Option<Arg<'_>> {
        // SAFETY: the call, or the kernel, holds the object; its class says what it is.
        unsafe {
            let class = ffi::Py_TYPE(object);
            if class == &raw mut ffi::PyLong_Type {
                let mut overflow = 0;
                let value = ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow);
                (overflow == 0).then(|| Arg::Int(value.into()))
            } else if !is_constexpr && torch.is_tensor(class) {
                let (address, dtype) = torch.read(object)?;
                Some(Arg::Pointer(Pointer::from_raw(self.device, address, UNKNOWN_BYTES, dtype)))
            } else if class == &raw mut ffi::PyFloat_Type {
                Some(Arg::Float(ffi::PyFloat_AsDouble(object)))
            } else if class == &raw mut ffi::PyBool_Type {
                Some(Arg::Bool(object == ffi::Py_True()))
            } else {
                None
            }
        }
    }

    /// Launches by `start`; `objects` gives the arguments for a grid function.
    #[inline]
    fn launch<'py>(
        &self,
        slf: &Bound<'py, Kernel>,
        torch: &Torch,
        grid: &Bound<'py, PyAny>,
        objects: impl FnOnce() -> Objects,
        start: impl FnOnce(&Stream, [u32; 3]) -> rtc_runtime::Result<()>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        self.core.check_globals(slf)?;
        let grid = match grid.is_exact_instance_of::<PyTuple>() {
            true => grid::sizes(grid)?,
            false if grid.is_callable() => grid::sizes(&self.meta.ask(&self.core, grid, &objects())?)?,
            false => grid::sizes(grid)?,
        };
        let stream = match torch.current_stream(self.ordinal) {
            Some(handle) => place::stream_of(py, self.device, handle)?,
            None => place::Current::of_gpu(self.device).stream(py)?,
        };
        start(&stream, grid).map_err(|error| runtime_error(py, &error))?;
        Ok(self.compiled.clone_ref(py))
    }
}

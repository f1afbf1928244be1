//! Binds the arguments of a call to the parameters of a kernel and the options of a launch, as Python binds them.
#![allow(unsafe_code)]

use pyo3::Borrowed;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rtc_compiler::set_option;
use rtc_runtime::jit::Options;
use rtc_source::json_fields::Field;
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// A parameter of a kernel.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: Py<PyString>,
    pub(crate) is_constexpr: bool,
    pub(crate) default: Option<Py<PyAny>>,
    /// Whether an option of Triton has the same name: a keyword then sets both.
    pub(crate) is_option: bool,
}

/// Whether a keyword argument that names a parameter also sets the launch option of that name.
pub(crate) fn is_shared_option(name: &str) -> bool {
    rtc_compiler::OPTION_NAMES.contains(&name) && !rtc_compiler::RTC_OPTION_NAMES.contains(&name)
}

/// An object that the call, or the kernel, holds.
pub(crate) type Held<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// The arguments of a call, by parameter.
pub(crate) type Bindings<'a, 'py> = SmallVec<[Option<Held<'a, 'py>>; 16]>;

/// Keyword arguments that are no parameters, by the addresses of their names and values.
type OptionKey = SmallVec<[(usize, usize); 4]>;

/// The sets of options that a kernel was launched with.
#[derive(Debug, Default)]
pub(crate) struct KnownOptions(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    key: OptionKey,
    options: Options,
    /// Objects whose addresses are in the key.
    _kept: Vec<(Py<PyAny>, Py<PyAny>)>,
}

/// What a call says.
pub(crate) struct Call<'a, 'py> {
    /// The number of arguments by position.
    pub(crate) given: usize,
    pub(crate) values: Bindings<'a, 'py>,
    /// Keyword arguments that are no parameters.
    pub(crate) rest: SmallVec<[(Held<'a, 'py>, Held<'a, 'py>); 4]>,
}

/// Binds a call.
pub(crate) fn bind<'a, 'py>(
    kernel: &str,
    params: &'a [Param],
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
) -> PyResult<Call<'a, 'py>> {
    let py = args.py();
    let given = args.len();
    if given > params.len() {
        return Err(PyTypeError::new_err(format!(
            "{kernel}() takes {} positional arguments but {given} were given",
            params.len(),
        )));
    }
    let mut call = Call { given, values: SmallVec::new(), rest: SmallVec::new() };
    for index in 0..given {
        call.values.push(Some(args.get_borrowed_item(index)?));
    }
    call.values.resize(params.len(), None);
    for (name, value) in kwargs.into_iter().flat_map(members) {
        match position(params, &name)? {
            Some(index) if call.values[index].is_some() => {
                return Err(PyTypeError::new_err(format!("{kernel}() got multiple values for argument '{}'", &*name)));
            }
            Some(index) => {
                if params[index].is_option {
                    call.rest.push((name, value));
                }
                call.values[index] = Some(value);
            }
            None => call.rest.push((name, value)),
        }
    }
    for (param, value) in params.iter().zip(&mut call.values) {
        if value.is_none() {
            let Some(default) = &param.default else {
                return Err(PyTypeError::new_err(format!(
                    "{kernel}() missing a required argument: '{}'",
                    param.name.bind(py)
                )));
            };
            *value = Some(default.bind_borrowed(py));
        }
    }
    Ok(call)
}

/// The names and values of keyword arguments.
pub(crate) fn members<'a, 'py>(kwargs: &'a Bound<'py, PyDict>) -> SmallVec<[(Held<'a, 'py>, Held<'a, 'py>); 8]> {
    let mut all = SmallVec::new();
    let (mut at, mut name, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: no other code has the dictionary of keywords of a call, so it stays as it is and holds its members.
    unsafe {
        while ffi::PyDict_Next(kwargs.as_ptr(), &raw mut at, &raw mut name, &raw mut value) != 0 {
            all.push((Borrowed::from_ptr(kwargs.py(), name), Borrowed::from_ptr(kwargs.py(), value)));
        }
    }
    all
}

pub(crate) fn position(params: &[Param], name: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if let Some(index) = params.iter().position(|param| param.name.as_ptr() == name.as_ptr()) {
        return Ok(Some(index));
    }
    let text: &Bound<'_, PyString> = name.cast()?;
    let text = text.to_string_lossy();
    Ok(params.iter().position(|param| param.name.bind(name.py()).to_string_lossy() == text))
}

impl KnownOptions {
    /// The options that keyword arguments and defaults of the kernel make.
    pub(crate) fn of(&self, call: &Call<'_, '_>, defaults: &Bound<'_, PyDict>) -> PyResult<Options> {
        let key: OptionKey =
            call.rest.iter().map(|(name, value)| (name.as_ptr() as usize, value.as_ptr() as usize)).collect();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|known| known.key == key) {
            return Ok(found.options.clone());
        }
        drop(known);
        let all = defaults.copy()?;
        call.rest.iter().try_for_each(|(name, value)| all.set_item(&**name, &**value))?;
        let options = make(&all)?;
        let _kept =
            call.rest.iter().map(|(name, value)| ((**name).clone().unbind(), (**value).clone().unbind())).collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two objects may say the same.
        known.truncate(255);
        known.push(Known { key, options: options.clone(), _kept });
        Ok(options)
    }
}

/// Options of a launch from what Python says of them; one object for each content.
fn make(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    static MADE: Mutex<Vec<(rtc_compiler::LaunchOptions, Options)>> = Mutex::new(Vec::new());
    let mut launch = rtc_compiler::LaunchOptions::default();
    for (name, value) in given {
        let name = name.cast_into::<PyString>()?.to_string_lossy().into_owned();
        // Another copy of libdevice: rtc has those functions itself.
        if name == "extern_libs" && is_libdevice(&value) {
            continue;
        }
        let json = json(&value)?;
        let field = Field::root(&json);
        set_option(&mut launch, &name, &field).map_err(|error| {
            let text = error.to_string();
            match rtc_compiler::OPTION_NAMES.contains(&name.as_str()) {
                true => PyTypeError::new_err(format!("`{name}`: {text}")),
                false => PyKeyError::new_err(format!("Keyword argument {name} was specified but unrecognised: {text}")),
            }
        })?;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, options)) = made.iter().find(|(own, _)| *own == launch) {
        return Ok(options.clone());
    }
    let options = Options::new().launch(|options| *options = launch.clone());
    made.push((launch, options.clone()));
    Ok(options)
}

/// Whether a dictionary of libraries names libdevice alone.
fn is_libdevice(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyDict>().is_ok_and(|libraries| {
        libraries.keys().iter().all(|name| name.extract::<String>().is_ok_and(|name| name == "libdevice"))
    })
}

/// A value of an option as JSON.
fn json(value: &Bound<'_, PyAny>) -> PyResult<serde_json::Value> {
    use serde_json::Value;
    Ok(if value.is_none() {
        Value::Null
    } else if let Ok(truth) = value.cast::<pyo3::types::PyBool>() {
        Value::Bool(truth.is_true())
    } else if let Ok(number) = value.extract::<i64>() {
        Value::from(number)
    } else if let Ok(number) = value.extract::<f64>() {
        Value::from(number)
    } else if let Ok(text) = value.extract::<String>() {
        Value::from(text)
    } else if let Ok(members) = value.cast::<PyDict>() {
        let member = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((name.str()?.to_string(), json(&value)?));
        Value::Object(members.iter().map(member).collect::<PyResult<_>>()?)
    } else {
        let items = value.try_iter().map_err(|_| {
            PyTypeError::new_err(format!(
                "{} is no value of an option",
                value.repr().map(|r| r.to_string()).unwrap_or_default()
            ))
        })?;
        Value::Array(items.map(|item| json(&item?)).collect::<PyResult<_>>()?)
    })
}

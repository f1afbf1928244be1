//! A launch like an earlier one down to its numbers, which most launches in loops are: its arguments are packed already, only
//! the addresses of tensors are asked for and put in.
#![allow(unsafe_code)]

use crate::recent::Object;
use crate::tensor::Torch;
use pyo3::ffi;
use pyo3::prelude::*;
use rtc_runtime::Arg;
use rtc_runtime::internal::{Again, Prepared, Remembered};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the latest launches of a form were filled with.
#[derive(Debug, Default)]
pub(crate) struct Fillings(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    known: Known,
    /// A sum of the numbers of the latest launch that had others.
    others: u64,
}

#[derive(Debug, Default)]
enum Known {
    #[default]
    Untried,
    /// The kernel takes more than numbers and addresses.
    Never,
    Filled(Arc<Filled>),
}

/// The packed arguments, and what they were made of.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) prepared: Prepared,
    expected: SmallVec<[Expected; 16]>,
}

/// What an argument must be.
#[derive(Debug)]
enum Expected {
    /// This object, which never changes.
    Same(Py<PyAny>),
    /// This object, or another integer of that value.
    Int(Py<PyAny>, i64),
    /// This object, or another float of those bits.
    Float(Py<PyAny>, u64),
    Tensor,
}

impl Fillings {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Option<Arc<Filled>> {
        match &self.latest().known {
            Known::Filled(filled) => Some(filled.clone()),
            Known::Untried | Known::Never => None,
        }
    }

    /// Learns of a launch that had other numbers. They are packed when they come for the second time in a row, for to pack
    /// them takes longer than a launch without.
    pub(crate) fn learn(&self, py: Python<'_>, remembered: &Remembered, objects: &[Object], args: &[Arg<'_>]) {
        let mut latest = self.latest();
        let sum =
            args.iter().fold(0, |sum: u64, arg| (sum.rotate_left(7) ^ number(arg)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let is_wanted = match latest.known {
            Known::Untried => true,
            Known::Never => false,
            Known::Filled(_) => latest.others == sum,
        };
        latest.others = sum;
        if is_wanted {
            let known = match Filled::of(py, remembered, objects, args) {
                Some(filled) => Known::Filled(Arc::new(filled)),
                None => Known::Never,
            };
            let before = std::mem::replace(&mut latest.known, known);
            drop(latest);
            // What it frees may run code of Python.
            drop(before);
        }
    }
}

fn number(arg: &Arg<'_>) -> u64 {
    match arg {
        Arg::Int(value) => *value as u64,
        Arg::Float(value) => value.to_bits(),
        Arg::Bool(value) => u64::from(*value),
        _ => 0,
    }
}

impl Filled {
    fn of(py: Python<'_>, remembered: &Remembered, objects: &[Object], args: &[Arg<'_>]) -> Option<Filled> {
        let prepared = remembered.prepare(args)?;
        let expected = objects.iter().zip(args).map(|(object, arg)| {
            // SAFETY: the call, or the kernel, holds the object.
            let own = unsafe { Bound::from_borrowed_ptr(py, *object).unbind() };
            match arg {
                Arg::Pointer(_) => Expected::Tensor,
                Arg::Int(value) => match i64::try_from(*value) {
                    Ok(value) => Expected::Int(own, value),
                    Err(_) => Expected::Same(own),
                },
                Arg::Float(value) => Expected::Float(own, value.to_bits()),
                _ => Expected::Same(own),
            }
        });
        Some(Filled { prepared, expected: expected.collect() })
    }

    /// Takes the argument of a parameter; false if it is another one.
    #[inline]
    pub(crate) fn take(&self, torch: &Torch, launch: &mut Again<'_>, param: usize, object: Object) -> bool {
        let Some(expected) = self.expected.get(param) else { return false };
        // SAFETY: the call holds the object; its class says what it is.
        unsafe {
            let class = ffi::Py_TYPE(object);
            match expected {
                Expected::Tensor => {
                    torch.is_tensor(class)
                        && torch.read(object).is_some_and(|(address, dtype)| launch.address(param, address, dtype))
                }
                Expected::Same(own) => own.as_ptr() == object,
                Expected::Int(own, value) => {
                    own.as_ptr() == object
                        || class == &raw mut ffi::PyLong_Type && {
                            let mut overflow = 0;
                            ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow) == *value && overflow == 0
                        }
                }
                Expected::Float(own, bits) => {
                    own.as_ptr() == object
                        || class == &raw mut ffi::PyFloat_Type && ffi::PyFloat_AsDouble(object).to_bits() == *bits
                }
            }
        }
    }
}

//! The values of a launch: what the arguments of Python are to the runtime.
#![allow(unsafe_code)]

use crate::foreign::{self, Foreign};
use crate::host::{Copies, OfArgument};
use crate::kind::{ByAddress, Kind, kind};
use crate::place::Memory;
use crate::tensor::Torch;
use crate::writes::ReadOnly;
use dlpark::AllocationDeleter;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use rtc_abi::spec::ConstValue;
use rtc_abi::{DType, ValueType};
use rtc_runtime::{Arg, Constant, Device, Pointer, TensorDescriptor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use typed_arena::Arena;

/// One argument.
#[derive(Debug)]
pub(crate) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
    Pointer { address: u64, dtype: DType },
    Constant(Arc<Constant>),
    Tuple(Vec<Value>),
    NamedTuple(Arc<Constant>, Vec<Value>),
    Descriptor(Box<Descriptor>),
}

/// A tensor descriptor made on the host.
#[derive(Debug)]
pub(crate) struct Descriptor {
    address: u64,
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<u64>,
    block: Vec<u32>,
    pads_nan: bool,
}

/// What a launch is made of while its arguments are read.
#[derive(Default)]
pub(crate) struct Reading {
    /// The memory of the arguments, if one of them is memory.
    pub(crate) memory: Option<Memory>,
    pub(crate) ranges: SmallVec<[OfArgument; 4]>,
    /// The GPU on which arguments lie, if one of them says so; otherwise PyTorch's current one.
    pub(crate) gpu: Option<usize>,
    /// The stream of the launch, if the caller knows it.
    pub(crate) stream: Option<u64>,
    /// Streams whose work must be finished before the launch.
    pub(crate) after: SmallVec<[u64; 2]>,
    /// Arrays that must not be written.
    pub(crate) read_only: SmallVec<[ReadOnly; 2]>,
    /// The parameter of a tensor that has no memory, with which a kernel can be compiled but not launched.
    pub(crate) meta: Option<usize>,
    /// What keeps memory alive that Python objects do not.
    pub(crate) owners: Vec<AllocationDeleter>,
    /// The number of the parameter whose argument is read.
    pub(crate) param: usize,
    /// Where in a tuple the argument is: `.0.x`.
    path: String,
    /// Functions among the arguments, which are part of the program.
    pub(crate) functions: SmallVec<[Py<PyAny>; 2]>,
    /// Whether some argument is none of those that `recent.rs` knows: numbers of 64 bits, tensors of PyTorch itself on a GPU,
    /// objects that never change.
    pub(crate) is_special: bool,
}

impl Reading {
    /// Refuses a launch with a tensor that has no memory.
    pub(crate) fn check_memory(&self, kernel: &str, name_of: impl Fn(usize) -> String) -> PyResult<()> {
        let Some(param) = self.meta else { return Ok(()) };
        Err(PyValueError::new_err(format!(
            "kernel `{kernel}`, argument `{}`: the tensor is on the device `meta`, so it has a shape and no memory that a kernel \
             could use; make it on a real device, as by `torch.empty_like(x, device=\"cuda\")`, or only compile, by \
             `kernel.warmup(..)`",
            name_of(param)
        )))
    }

    /// Reads an argument for a parameter that is a constexpr or not.
    pub(crate) fn value(&mut self, object: &Bound<'_, PyAny>, is_constexpr: bool) -> PyResult<Value> {
        let py = object.py();
        let kind = kind(object)?;
        self.is_special |= !matches!(
            kind,
            Kind::Int | Kind::Bool | Kind::Float | Kind::None | Kind::Str | Kind::Dtype | Kind::Function | Kind::Torch
        );
        Ok(match kind {
            Kind::Int => {
                let value = int(object)?;
                self.is_special |= i64::try_from(value).is_err();
                Value::Int(value)
            }
            Kind::Bool => Value::Bool(object.is_truthy()?),
            Kind::Float => Value::Float(object.extract()?),
            Kind::Torch if !is_constexpr => {
                let found = foreign::torch(object)?;
                let is_known = Torch::get(py).is_some_and(|torch| torch.is_tensor(object.get_type_ptr()));
                self.is_special |= !is_known || found.memory != Some(Memory::Gpu);
                self.pointer(found)?
            }
            Kind::Data if !is_constexpr => {
                let found = foreign::data(object, self.stream)?;
                self.pointer(found)?
            }
            Kind::CudaArray if !is_constexpr => {
                let found = foreign::cuda_array(object, self.stream)?;
                self.pointer(found)?
            }
            Kind::Array if !is_constexpr => {
                let found = foreign::numpy(object)?;
                self.pointer(found)?
            }
            Kind::Dlpack if !is_constexpr => {
                let found = crate::dlpack::dlpack(object, self.stream)?;
                self.pointer(found)?
            }
            Kind::Constexpr if is_constexpr => self.value(&object.getattr(intern!(py, "value"))?, true)?,
            // A constexpr stays one where the parameter does not ask for it, as the items of a tuple do not.
            Kind::Constexpr => Value::Constant(by_value(constant(object, &mut self.functions)?)),
            Kind::Tuple if !is_constexpr => Value::Tuple(self.items(object, None)?),
            Kind::NamedTuple if !is_constexpr => {
                let names = object.getattr(intern!(py, "_fields"))?;
                let fields: Vec<String> = names.extract()?;
                let names = interned(&names, || constant(&names, &mut self.functions))?;
                Value::NamedTuple(names, self.items(object, Some(&fields))?)
            }
            Kind::Descriptor => self.descriptor(object)?,
            Kind::Index => Value::Int(object.call_method0(intern!(py, "__index__"))?.extract()?),
            Kind::Real => Value::Float(object.call_method0(intern!(py, "__float__"))?.extract()?),
            Kind::Function => {
                let value = constant(object, &mut self.functions)?;
                Value::Constant(by_value(value))
            }
            Kind::Str | Kind::Dtype if !is_constexpr => {
                return Err(PyTypeError::new_err(format!(
                    "{} is not a value that a kernel can be given at run time: annotate the parameter as `tl.constexpr`",
                    object.repr()?
                )));
            }
            Kind::None | Kind::Str | Kind::Dtype => {
                Value::Constant(interned(object, || constant(object, &mut self.functions))?)
            }
            _ if is_constexpr => {
                let value = constant(object, &mut self.functions)?;
                Value::Constant(by_value(value))
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "failed to specialize argument of type: {}: pass a number, or an array by data_ptr(), DLPack, \
                     __cuda_array_interface__ or __array_interface__",
                    object.get_type().name()?
                )));
            }
        })
    }

    fn items(&mut self, tuple: &Bound<'_, PyAny>, fields: Option<&[String]>) -> PyResult<Vec<Value>> {
        tuple
            .cast::<PyTuple>()?
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let length = self.path.len();
                self.path.push('.');
                match fields.and_then(|fields| fields.get(index)) {
                    Some(field) => self.path.push_str(field),
                    None => self.path.push_str(&index.to_string()),
                }
                let value = self.value(&item, false);
                self.path.truncate(length);
                value
            })
            .collect()
    }

    #[inline]
    fn pointer(&mut self, found: Foreign) -> PyResult<Value> {
        if let Some(memory) = found.memory {
            match (memory, self.memory, &found.range) {
                // Page-locked memory goes with that of a GPU.
                (Memory::Host, Some(Memory::Gpu), Some(range)) if range.pinned => {}
                (Memory::Gpu, Some(Memory::Host), _) if self.ranges.iter().all(|given| given.range.pinned) => {
                    self.memory = Some(Memory::Gpu);
                }
                (memory, Some(known), _) if memory != known => {
                    return Err(PyValueError::new_err(
                        "Pointer argument cannot be accessed from Triton (cpu tensor?): some arguments lie on the GPU, \
                         others in memory of the CPU; move them to one device",
                    ));
                }
                (memory, ..) => self.memory = Some(memory),
            }
            match (found.gpu, self.gpu) {
                (Some(own), Some(known)) if own != known => {
                    let text = format!(
                        "an argument lies on GPU {own}, an earlier one on GPU {known}: move them to one device"
                    );
                    return Err(PyValueError::new_err(text));
                }
                (own, known) => self.gpu = known.or(own),
            }
            let (param, address, element) = (self.param, found.address, u64::from(found.dtype.bytes()));
            let (view, writable) = (found.view, found.read_only.is_none());
            let argument = |range| OfArgument { range, param, address, element, view, writable };
            self.ranges.extend(found.range.map(argument));
        }
        if let Some(stream) = found.stream.filter(|stream| !self.after.contains(stream)) {
            self.after.push(stream);
        }
        let (param, path) = (self.param, &self.path);
        self.read_only.extend(found.read_only.map(|why| ReadOnly { param, path: path.clone(), why }));
        self.owners.extend(found.owner);
        self.meta = self.meta.or(found.is_meta.then_some(self.param));
        Ok(Value::Pointer { address: found.address, dtype: found.dtype })
    }

    fn descriptor(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        let py = object.py();
        let base = object.getattr(intern!(py, "base"))?;
        let found = foreign::array(&base, self.stream)?
            .ok_or_else(|| PyTypeError::new_err("the base of a tensor descriptor is no tensor"))?;
        let (address, dtype) = (found.address, found.dtype);
        self.pointer(found)?;
        Ok(Value::Descriptor(Box::new(Descriptor {
            address,
            dtype,
            shape: object.getattr(intern!(py, "shape"))?.extract()?,
            strides: object.getattr(intern!(py, "strides"))?.extract()?,
            block: object.getattr(intern!(py, "block_shape"))?.extract()?,
            pads_nan: object.getattr(intern!(py, "padding"))?.extract::<String>()? == "nan",
        })))
    }
}

#[inline]
fn int(object: &Bound<'_, PyAny>) -> PyResult<i128> {
    match object.extract::<i64>() {
        Ok(value) => Ok(value.into()),
        Err(_) => object.extract::<i128>().map_err(|_| PyOverflowError::new_err("int too large to convert")),
    }
}

/// Constants by the object they were made of, which is kept.
fn interned(object: &Bound<'_, PyAny>, make: impl FnOnce() -> PyResult<ConstValue>) -> PyResult<Arc<Constant>> {
    static KNOWN: ByAddress<(Arc<Constant>, Py<PyAny>)> = Mutex::new(None);
    let key = object.as_ptr() as usize;
    if let Some((found, _)) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&key) {
        return Ok(found.clone());
    }
    let made = by_value(make()?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    // Texts that programs make again each time are compared by value only.
    if known.len() < 4096 {
        known.insert(key, (made.clone(), object.clone().unbind()));
    }
    Ok(made)
}

/// One constant for each value.
fn by_value(value: ConstValue) -> Arc<Constant> {
    static KNOWN: Mutex<Option<FxHashMap<String, Vec<Arc<Constant>>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let alike = known.get_or_insert_default().entry(value.to_string()).or_default();
    if let Some(found) = alike.iter().find(|known| *known.value() == value) {
        return found.clone();
    }
    let made = Arc::new(Constant::new(value));
    alike.push(made.clone());
    made
}

/// The name that the program gives to a function among the arguments.
pub(crate) fn function_name(number: usize) -> String {
    format!("__argument_{number}")
}

/// What an object is as a constexpr; functions are noted.
fn constant(object: &Bound<'_, PyAny>, functions: &mut SmallVec<[Py<PyAny>; 2]>) -> PyResult<ConstValue> {
    let py = object.py();
    let mut items = |list: &Bound<'_, PyAny>| -> PyResult<Vec<ConstValue>> {
        list.try_iter()?.map(|item| constant(&item?, functions)).collect()
    };
    Ok(match kind(object)? {
        Kind::None => ConstValue::None,
        Kind::Bool => ConstValue::Bool(object.is_truthy()?),
        Kind::Int => ConstValue::Int(int(object)?),
        Kind::Index => ConstValue::Int(object.call_method0(intern!(py, "__index__"))?.extract()?),
        Kind::Float => ConstValue::Float(object.extract()?),
        Kind::Real => ConstValue::Float(object.call_method0(intern!(py, "__float__"))?.extract()?),
        Kind::Str => ConstValue::Str(object.cast::<PyString>()?.to_string_lossy().into_owned()),
        Kind::Constexpr => constant(&object.getattr(intern!(py, "value"))?, functions)?,
        Kind::Tuple | Kind::List => ConstValue::Tuple { items: items(object)?, fields: None },
        Kind::NamedTuple => {
            let fields = object.getattr(intern!(py, "_fields"))?.extract()?;
            ConstValue::Tuple { items: items(object)?, fields: Some(fields) }
        }
        Kind::Dtype => {
            let text: String = object.getattr(intern!(py, "_signature"))?.extract()?;
            match ValueType::parse(&text) {
                Some(ty) => ConstValue::DType(ty),
                None => ConstValue::Opaque(text),
            }
        }
        Kind::Function => {
            let known = functions.iter().position(|known| known.is(object));
            let number = known.unwrap_or_else(|| {
                functions.push(object.clone().unbind());
                functions.len() - 1
            });
            ConstValue::Function(function_name(number))
        }
        // What only Python knows; enumerations of numbers and texts are what they hold.
        _ => match object.getattr(intern!(py, "value")) {
            Ok(value) if kind(&value)? != Kind::Other => constant(&value, functions)?,
            _ => ConstValue::Opaque(object.str()?.to_string_lossy().into_owned()),
        },
    })
}

/// Memory that nothing is known of but its address.
pub(crate) const UNKNOWN_BYTES: u64 = 1 << 56;

/// Gives the values as arguments of the runtime; addresses of arrays on the CPU become those of their copies.
pub(crate) fn with_args<R>(
    device: &Device,
    values: &[Value],
    copies: Option<&Copies>,
    then: impl FnOnce(&[Arg<'_>]) -> R,
) -> R {
    let pointer = |address: u64, dtype: DType| {
        let (address, bytes) = match copies {
            Some(copies) => copies.translate(address),
            None => (address, UNKNOWN_BYTES),
        };
        // SAFETY: a program that launches a kernel from Python guarantees its arguments, as with Triton.
        unsafe { Pointer::from_raw(device, address, bytes, dtype) }
    };
    let is_plain = |value: &Value| !matches!(value, Value::Tuple(_) | Value::NamedTuple(..) | Value::Descriptor(_));
    if values.iter().all(is_plain) {
        let mut args: SmallVec<[Arg<'_>; 16]> = SmallVec::new();
        for value in values {
            args.push(match value {
                Value::Pointer { address, dtype } => Arg::Pointer(pointer(*address, *dtype)),
                other => plain(other),
            });
        }
        return then(&args);
    }
    let (tuples, descriptors) = (Arena::with_capacity(1), Arena::with_capacity(1));
    let args: Vec<Arg<'_>> = values.iter().map(|value| nested(value, &pointer, &tuples, &descriptors)).collect();
    then(&args)
}

#[inline]
fn plain(value: &Value) -> Arg<'_> {
    match value {
        Value::Int(value) => Arg::Int(*value),
        Value::Float(value) => Arg::Float(*value),
        Value::Bool(value) => Arg::Bool(*value),
        Value::Constant(constant) => Arg::Constant(constant),
        Value::Pointer { .. } | Value::Tuple(_) | Value::NamedTuple(..) | Value::Descriptor(_) => Arg::Tuple(&[]),
    }
}

fn nested<'a>(
    value: &'a Value,
    pointer: &dyn Fn(u64, DType) -> Pointer<'a>,
    tuples: &'a Arena<Arg<'a>>,
    descriptors: &'a Arena<TensorDescriptor<'a>>,
) -> Arg<'a> {
    let items = |items: &'a [Value]| -> &'a [Arg<'a>] {
        let made: Vec<Arg<'a>> = items.iter().map(|item| nested(item, pointer, tuples, descriptors)).collect();
        tuples.alloc_extend(made)
    };
    match value {
        Value::Pointer { address, dtype } => Arg::Pointer(pointer(*address, *dtype)),
        Value::Tuple(list) => Arg::Tuple(items(list)),
        Value::NamedTuple(names, list) => Arg::NamedTuple(names, items(list)),
        Value::Descriptor(given) => {
            let base = pointer(given.address, given.dtype);
            let made = TensorDescriptor::new(base, &given.shape, &given.strides).with_block(&given.block);
            Arg::Descriptor(descriptors.alloc(if given.pads_nan { made.padded_with_nan() } else { made }))
        }
        other => plain(other),
    }
}

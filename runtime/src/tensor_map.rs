//! Tensor maps: parameters of 128 bytes by which a kernel copies boxes of a tensor (TMA).
//!
//! A map is made of a [`TensorDescriptor`] that the caller passes, or of pointer and integer arguments as the metadata
//! says. What the hardware would refuse is refused here, with the name of the argument and what to do. The maps of the
//! latest launches are kept by what they were made of, so that a launch with known arguments encodes nothing.
//!
//! Dimensions stand outermost first in what users and metadata say, and innermost first in a map.

use crate::argument;
use crate::backend::{ElementType, Form, MAP_BYTES, MAX_RANK, MapError, Place, check_tensor_map};
use crate::{Arg, Device, Error, Result, TensorDescriptor};
use rtc_abi::metadata::{Hidden, HostTensorMap, Padding};
use rtc_abi::{DType, Expr, Metadata, Param, ParamType, ValueType};
use std::sync::{Mutex, PoisonError};

/// A parameter that is a map.
#[derive(Debug)]
pub(crate) struct MapSlot {
    /// Its number among the parameters.
    param: usize,
    offset: usize,
    form: Form,
    /// What the launch makes it of; `None` if a descriptor is passed.
    source: Option<Source>,
    known: Mutex<Known>,
}

/// How many maps of a parameter are kept.
const KEPT: usize = 4;

/// The latest maps.
#[derive(Debug, Default)]
struct Known {
    maps: [Option<(Place, [u8; MAP_BYTES])>; KEPT],
    /// Where the next one goes.
    next: usize,
}

#[derive(Debug)]
struct Source {
    /// The number of the pointer among the parameters, and where it lies.
    base: (usize, usize),
    start: Number,
    /// Outermost first.
    shape: Vec<Number>,
    strides: Vec<Number>,
    padding: Padding,
}

/// An expression, and where in the parameter buffer the values of its names lie.
#[derive(Debug)]
struct Number {
    expr: Expr,
    at: Vec<Place64>,
}

/// An integer in the parameter buffer.
#[derive(Clone, Copy, Debug)]
struct Place64 {
    offset: usize,
    bytes: usize,
    signed: bool,
}

/// The maps of a kernel; an error names what the runtime cannot make.
pub(crate) fn slots(metadata: &Metadata) -> Result<Box<[MapSlot]>> {
    let mut slots = Vec::new();
    for (index, param) in metadata.params.iter().enumerate() {
        let fail =
            |field: &str, message: String| Err(argument::metadata_error(format!("params[{index}].{field}"), message));
        let (form, source) = match (&param.hidden, &param.tensor_map) {
            (Some(Hidden::TensorMap(map)), _) => match (form_of_host(map), source(metadata, map)) {
                (Ok(form), Ok(source)) => (form, Some(source)),
                (Err(message), _) | (_, Err(message)) => return fail("hidden", message),
            },
            (None, Some(map)) if matches!(param.ty, ParamType::Descriptor { .. }) => {
                if map.interleave != 0 {
                    return fail("tensor_map.interleave", "this runtime makes no interleaved maps".into());
                }
                match form(map.dtype, &map.block_shape, map.swizzle, map.l2_promotion) {
                    Ok(form) => (form, None),
                    Err(message) => return fail("tensor_map", message),
                }
            }
            (None, None) if matches!(param.ty, ParamType::Descriptor { .. }) => {
                return fail("tensor_map", "is missing for a tensor descriptor".into());
            }
            _ => continue,
        };
        let offset = param.offset as usize;
        slots.push(MapSlot { param: index, offset, form, source, known: Mutex::default() });
    }
    Ok(slots.into())
}

fn form_of_host(map: &HostTensorMap) -> std::result::Result<Form, String> {
    // What the hardware fetches at once beside what is asked for; 128 bytes is what every swizzled row has.
    let own = Form { shrinks: map.shrinks, ..form(map.dtype, &map.box_shape, map.swizzle, 128)? };
    if own.shrinks && own.rank < 2 {
        return Err("a box of one dimension has no rows".into());
    }
    let Some(number) = map.data_type else { return Ok(own) };
    let element = ElementType::of(number).filter(|e| e.bytes() == own.element.bytes());
    let element = element.ok_or_else(|| format!("data type {number} does not stand for {}", map.dtype))?;
    Ok(Form { element, ..own })
}

fn form(dtype: DType, shape: &[u32], swizzle: u32, l2_promotion: u32) -> std::result::Result<Form, String> {
    if shape.is_empty() || shape.len() > MAX_RANK {
        return Err(format!("a tensor map has 1 to {MAX_RANK} dimensions, not {}", shape.len()));
    }
    let mut box_dims = [1; MAX_RANK];
    for (to, size) in box_dims.iter_mut().zip(shape.iter().rev()) {
        *to = *size;
    }
    let element = ElementType::for_dtype(dtype).ok_or_else(|| format!("there are no tensor maps of `{dtype}`"))?;
    let form = Form { element, rank: shape.len(), box_dims, swizzle, l2_promotion, shrinks: false };
    // A place that nothing is wrong with, so that only the form is checked.
    let place = Place { address: 0, dims: [1; MAX_RANK], strides: [16; MAX_RANK], nan: false };
    check_tensor_map(&form, &place)?;
    Ok(form)
}

fn source(metadata: &Metadata, map: &HostTensorMap) -> std::result::Result<Source, String> {
    let given = metadata.visible_params();
    let base = given.iter().position(|p| p.name == map.base && p.ty.is_pointer());
    let base = base.ok_or_else(|| format!("`{}` is no pointer argument", map.base))?;
    let number = |expr: &Expr| {
        let at = expr.names().iter().map(|name| {
            let found = given.iter().find(|p| p.name == *name).and_then(integer);
            found.ok_or_else(|| format!("`{name}` is no integer argument"))
        });
        Ok(Number { expr: expr.clone(), at: at.collect::<std::result::Result<_, String>>()? })
    };
    let all = |list: &[Expr]| list.iter().map(number).collect::<std::result::Result<Vec<_>, String>>();
    if map.strides.last() != Some(&Expr::from(1)) {
        return Err("the innermost stride is not 1".into());
    }
    let (shape, strides) = (all(&map.shape)?, all(&map.strides)?);
    let base = (base, given[base].offset as usize);
    Ok(Source { base, start: number(&map.start)?, shape, strides, padding: map.padding })
}

fn integer(param: &Param) -> Option<Place64> {
    match param.ty {
        ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_integer() => {
            Some(Place64 { offset: param.offset as usize, bytes: param.size as usize, signed: dtype.is_signed() })
        }
        _ => None,
    }
}

/// Writes the maps to `params`, where the arguments are.
///
/// Allocates nothing on a GPU unless it fails.
pub(crate) fn pack(
    device: &Device,
    metadata: &Metadata,
    slots: &[MapSlot],
    args: &[Arg<'_>],
    params: &mut [u8],
) -> Result<()> {
    for slot in slots {
        let named = |index: usize, message: String| {
            let param = &metadata.params[index];
            let (kernel, name, ty) = (metadata.kernel.clone(), param.name.clone(), param.ty.clone());
            Error::Argument { kernel, name, ty, message }
        };
        let place = match &slot.source {
            Some(source) => {
                let shape = args.get(source.base.0).and_then(|arg| arg.pointer()?.place()?.shape());
                source.place(&slot.form, params, &metadata.params[slot.param].name, shape)
            }
            None => match args.get(slot.param) {
                Some(Arg::Descriptor(descriptor)) => {
                    slot.form.place_of(descriptor).map_err(|message| (slot.param, message))
                }
                _ => Err((slot.param, "a tensor descriptor is needed".to_owned())),
            },
        };
        let place = place.map_err(|(index, message)| named(index, message))?;
        let mut known = slot.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.maps.iter().flatten().find(|(of, _)| *of == place).map(|(_, map)| *map);
        let map = match found {
            Some(map) => map,
            None => {
                let map = device.backend().encode_tensor_map(&slot.form, &place).map_err(|error| match error {
                    MapError::Refused(message) => named(slot.param, message),
                    MapError::Failed(error) => error,
                })?;
                let next = known.next;
                known.maps[next] = Some((place, map));
                known.next = (next + 1) % KEPT;
                map
            }
        };
        params[slot.offset..slot.offset + MAP_BYTES].copy_from_slice(&map);
    }
    Ok(())
}

impl Form {
    /// Sizes and strides in elements, outermost first, as the map has them.
    fn place(
        &self,
        address: u64,
        sizes: impl Fn(usize) -> i128,
        strides: impl Fn(usize) -> i128,
        padding: Padding,
    ) -> std::result::Result<Place, String> {
        let aligned = "copies of tiles (TMA) need it";
        if !address.is_multiple_of(16) {
            return Err(format!(
                "the tensor begins at {address:#x}, which is not a multiple of 16 bytes; {aligned}: pass a tensor \
                 that begins at one, such as a copy"
            ));
        }
        let nan = padding == Padding::Nan;
        if nan && !self.element.is_float() {
            return Err("integers cannot be padded with NaN; use zero".into());
        }
        let mut place = Place { address, dims: [1; MAX_RANK], strides: [16; MAX_RANK], nan };
        for axis in 0..self.rank {
            let to = self.rank - 1 - axis;
            let (size, stride) = (sizes(axis), strides(axis) * i128::from(self.element.bytes()));
            if !(1..=1 << 32).contains(&size) {
                return Err(format!("dimension {axis} has {size} elements; {aligned} to be 2^32 at most"));
            }
            place.dims[to] = size as u64;
            // The index of a dimension with one element is 0, whatever its stride.
            if to == 0 || size == 1 {
                continue;
            }
            if !(0..1 << 40).contains(&stride) || stride % 16 != 0 {
                return Err(format!(
                    "the stride of dimension {axis} is {stride} bytes; {aligned} to be a multiple of 16 below 2^40: \
                     pad the rows of the tensor, or copy it"
                ));
            }
            place.strides[to] = stride as u64;
        }
        Ok(place)
    }
}

impl Form {
    /// The place of a tensor that was passed.
    fn place_of(&self, descriptor: &TensorDescriptor<'_>) -> std::result::Result<Place, String> {
        let (rank, extents) = (self.rank, &descriptor.extents());
        if extents.ranks != [rank; 2] {
            let [shape, strides] = extents.ranks;
            return Err(format!("the descriptor has {shape} sizes and {strides} strides, the kernel needs {rank}"));
        }
        if extents.strides[rank - 1] != 1 {
            return Err(format!(
                "the innermost stride is {}; copies of tiles (TMA) need 1: pass the tensor with that dimension last",
                extents.strides[rank - 1]
            ));
        }
        // A map has no empty dimension; the kernel keeps to the sizes that it is told.
        let size = |axis: usize| extents.shape[axis].max(1);
        let place = self.place(descriptor.base().address(), size, |axis| extents.strides[axis], extents.padding)?;
        self.check_length(descriptor)?;
        Ok(place)
    }

    /// Whether the memory holds the tensor.
    fn check_length(&self, descriptor: &TensorDescriptor<'_>) -> std::result::Result<(), String> {
        let Some(place) = descriptor.base().place() else { return Ok(()) };
        let extents = descriptor.extents();
        let (shape, strides) = (&extents.shape[..self.rank], &extents.strides[..self.rank]);
        if shape.iter().any(|size| *size < 1) {
            return Ok(());
        }
        let steps = shape.iter().zip(strides).map(|(size, stride)| (size - 1).saturating_mul((*stride).max(0)));
        let last = steps.fold(0, i128::saturating_add);
        let held = i128::from(place.bytes / u64::from(self.element.bytes()));
        if last >= held {
            return Err(format!(
                "the tensor of shape {shape:?} with strides {strides:?} takes {} elements, the slice has {held}; pass a \
                 longer one, or check sizes and strides",
                last.saturating_add(1)
            ));
        }
        Ok(())
    }
}

impl Source {
    /// What the launch makes the map `name` of; an error names the parameter at fault. `buffer` is the shape of the buffer
    /// that was given, if it has one.
    fn place(
        &self,
        form: &Form,
        params: &[u8],
        name: &str,
        buffer: Option<&[usize]>,
    ) -> std::result::Result<Place, (usize, String)> {
        let (param, at) = self.base;
        let fail = |message: String| (param, format!("tensor map `{name}`: {message}"));
        let numbers = |list: &[Number]| {
            let mut values = [0i128; MAX_RANK];
            for (to, number) in values.iter_mut().zip(list) {
                *to = number.value(params).map_err(&fail)?.into();
            }
            Ok(values)
        };
        let (sizes, strides) = (numbers(&self.shape)?, numbers(&self.strides)?);
        let start = self.start.value(params).map_err(&fail)?;
        if let Some(buffer) = buffer.filter(|buffer| buffer.len() == form.rank && form.rank > 1 && start == 0) {
            within(buffer, &sizes[..form.rank], &strides[..form.rank]).map_err(&fail)?;
        }
        let mut address = [0; 8];
        address.copy_from_slice(&params[at..at + 8]);
        let bytes = start.wrapping_mul(form.element.bytes().into());
        let address = u64::from_le_bytes(address).wrapping_add_signed(bytes);
        form.place(address, |axis| sizes[axis].max(1), |axis| strides[axis], self.padding).map_err(fail)
    }
}

/// Whether a launch stays within the shape of a buffer that it goes through by the strides of that shape. With other strides
/// it takes the buffer for something else.
fn within(buffer: &[usize], sizes: &[i128], strides: &[i128]) -> std::result::Result<(), String> {
    let mut stride = 1i128;
    for (size, own) in buffer.iter().zip(strides).rev() {
        if *own != stride {
            return Ok(());
        }
        stride = stride.saturating_mul(*size as i128);
    }
    if sizes.iter().zip(buffer).any(|(size, held)| *size > *held as i128) {
        return Err(format!(
            "the buffer has the shape {buffer:?}, the launch takes it for one of {sizes:?}; check the sizes of the launch"
        ));
    }
    Ok(())
}

impl Number {
    fn value(&self, params: &[u8]) -> std::result::Result<i64, String> {
        self.expr.eval_at(|index| self.at.get(index).and_then(|at| at.read(params))).map_err(|e| e.to_string())
    }
}

impl Place64 {
    /// The value; `None` if 64 bits with a sign do not hold it.
    fn read(self, params: &[u8]) -> Option<i64> {
        let mut bytes = [0; 8];
        bytes[..self.bytes].copy_from_slice(&params[self.offset..self.offset + self.bytes]);
        let bits = u64::from_le_bytes(bytes);
        let unused = 64 - 8 * self.bytes as u32;
        if self.signed { Some((bits << unused) as i64 >> unused) } else { i64::try_from(bits).ok() }
    }
}

//! Arguments of a launch: what the host gives, checked against the kernel's parameters and packed.
//!
//! The layout comes from the metadata. Integers are checked for range, fp32 takes the nearest value, fp16 rounds to
//! nearest even and refuses what overflows, bf16 cuts the low bits of the fp32 value off, as Triton's launcher does.
//! Integers and addresses are checked against the factor that the kernel was compiled for: its code relies on it. Memory
//! that the kernel writes must be given to be written.
//!
//! Each argument is checked twice at most: `quick` knows what nearly all arguments are and takes a few nanoseconds; what it
//! does not take goes to `pack_one`, which knows all rules and says in words which one is broken.

use crate::arg::Arg;
use crate::element;
use crate::pointer::{Kind, Pointer};
use crate::{Device, Error, Result};
use half::f16;
use rtc_abi::{Access, DType, Evaluated, Extents, Hidden, Metadata, Param, ParamType, ValueType};

/// How the bytes of a parameter are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Pointer,
    Bool,
    Int { bits: u32, signed: bool },
    Fp16,
    Bf16,
    Fp32,
    Fp64,
    TensorMap,
}

/// One parameter as packing needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    kind: SlotKind,
    quick: Quick,
    offset: usize,
    /// The factor that the kernel relies on; 1 for none.
    divisible_by: u32,
    /// What a pointer points to.
    pointee: Option<DType>,
    /// Bytes of that; 1 of other parameters.
    element_bytes: u32,
    /// The same as a number of bits, for sizes are powers of two.
    shift: u32,
    /// The number of what is proved of a pointer (`Extents::bound`).
    bound: usize,
    /// Whether the kernel writes behind a pointer.
    writes: bool,
    /// Bits that are 0 of an address or an integer that is aligned as the kernel needs it. Where that takes more than a mask
    /// to tell, all of them.
    mask: u64,
}

/// The kinds that nearly all parameters have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quick {
    Pointer,
    I32,
    I64,
    Fp32,
    No,
}

impl Quick {
    fn of(kind: SlotKind) -> Quick {
        match kind {
            SlotKind::Pointer => Quick::Pointer,
            SlotKind::Int { bits: 32, signed: true } => Quick::I32,
            SlotKind::Int { bits: 64, signed: true } => Quick::I64,
            SlotKind::Fp32 => Quick::Fp32,
            _ => Quick::No,
        }
    }
}

impl Slot {
    /// Where it lies, and bits of an address that are 0.
    #[cfg(feature = "jit")]
    pub(crate) fn address(&self) -> (usize, u64) {
        (self.offset, self.mask)
    }

    /// Bytes of what a pointer points to.
    #[inline]
    pub(crate) fn element_bytes(&self) -> u64 {
        self.element_bytes.into()
    }
}

/// The parameters that take arguments, as packing needs them; an error names what the runtime cannot pass.
pub(crate) fn slots(metadata: &Metadata, extents: &Extents) -> Result<Box<[Slot]>> {
    let slot = |(i, param): (usize, &Param)| {
        let kind = match &param.ty {
            ParamType::Value(ValueType::Pointer { .. }) => SlotKind::Pointer,
            ParamType::Value(ValueType::Scalar(dtype)) => scalar_slot(*dtype).ok_or_else(|| {
                metadata_error(format!("params[{i}].type"), format!("a `{dtype}` cannot be passed by value"))
            })?,
            ParamType::Descriptor { .. } | ParamType::TensorMap => SlotKind::TensorMap,
        };
        let (divisible_by, pointee) = (param.divisible_by.max(1), param.ty.pointee());
        let writes = writes(param);
        // Sizes of elements are powers of two.
        let element_bytes = pointee.map_or(1, DType::bytes);
        let align = element_bytes.max(divisible_by);
        let mask = if divisible_by.is_power_of_two() { u64::from(align) - 1 } else { u64::MAX };
        let (quick, offset) = (Quick::of(kind), param.offset as usize);
        let (shift, bound) = (element_bytes.trailing_zeros(), extents.bound(i));
        Ok(Slot { kind, quick, offset, divisible_by, pointee, element_bytes, shift, bound, writes, mask })
    };
    metadata.visible_params().iter().enumerate().map(slot).collect()
}

/// Whether the kernel is known to write behind a pointer.
pub(crate) fn writes(param: &Param) -> bool {
    matches!(param.access, Some(Access::Write | Access::ReadWrite))
}

fn scalar_slot(dtype: DType) -> Option<SlotKind> {
    Some(match dtype {
        DType::UInt1 => SlotKind::Bool,
        DType::Fp16 => SlotKind::Fp16,
        DType::Bf16 => SlotKind::Bf16,
        DType::Fp32 => SlotKind::Fp32,
        DType::Fp64 => SlotKind::Fp64,
        dtype if dtype.is_integer() => SlotKind::Int { bits: dtype.bits(), signed: dtype.is_signed() },
        _ => return None,
    })
}

/// A parameter that the launch fills by itself: the number of programs along an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridSlot {
    axis: usize,
    offset: usize,
}

/// The hidden parameters that are numbers of programs.
pub(crate) fn grid_slots(metadata: &Metadata) -> Box<[GridSlot]> {
    let visible = metadata.visible_params().len();
    let slot = |param: &Param| match &param.hidden {
        Some(Hidden::Grid(axis)) => Some(GridSlot { axis: *axis as usize, offset: param.offset as usize }),
        Some(Hidden::TensorMap(_)) | None => None,
    };
    metadata.params[visible..].iter().filter_map(slot).collect()
}

/// Writes the numbers of programs to `out`, which has the size of the kernel's parameter buffer.
pub(crate) fn pack_grid(slots: &[GridSlot], grid: [u32; 3], out: &mut [u8]) {
    for slot in slots {
        out[slot.offset..slot.offset + 4].copy_from_slice(&grid[slot.axis].to_le_bytes());
    }
}

/// Checks the arguments and writes them to `out`, which has the size of the kernel's parameter buffer. Their memory must lie
/// on `device`. Says whether each is of the usual kind and, where `lengths` are given, at least as long; if not,
/// `extent::check` has the last word on lengths.
///
/// Allocates nothing unless it fails.
pub(crate) fn pack(
    device: &Device,
    metadata: &Metadata,
    slots: &[Slot],
    args: &[Arg<'_>],
    lengths: Option<&Evaluated>,
    out: &mut [u8],
) -> Result<bool> {
    if args.len() != slots.len() {
        return Err(wrong_count(metadata, slots.len(), args.len()));
    }
    match lengths {
        None => pack_each(device, metadata, slots, args, out, |_, _| true),
        Some(lengths) => {
            let is_long = |slot: &Slot, bytes: u64| lengths.at_most(slot.bound) <= bytes >> slot.shift;
            pack_each(device, metadata, slots, args, out, is_long)
        }
    }
}

#[inline(always)]
fn pack_each(
    device: &Device,
    metadata: &Metadata,
    slots: &[Slot],
    args: &[Arg<'_>],
    out: &mut [u8],
    is_long: impl Fn(&Slot, u64) -> bool,
) -> Result<bool> {
    let mut is_usual = true;
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        if !quick(device, slot, arg, |bytes| is_long(slot, bytes), out) {
            is_usual = false;
            pack_in_full(device, metadata, index, slot, arg, out)?;
        }
    }
    Ok(is_usual)
}

/// Packs an argument of the usual kind that keeps every rule; `is_long` is asked for the bytes of memory. False says nothing of the argument.
#[inline(always)]
fn quick(device: &Device, slot: &Slot, arg: &Arg<'_>, is_long: impl Fn(u64) -> bool, out: &mut [u8]) -> bool {
    let mut put = |bytes: &[u8]| match out.get_mut(slot.offset..slot.offset + bytes.len()) {
        Some(to) => {
            to.copy_from_slice(bytes);
            true
        }
        None => false,
    };
    match (slot.quick, arg) {
        (Quick::Pointer, Arg::Pointer(Pointer(kind @ (Kind::Read(place) | Kind::Write(place))))) => {
            let may_write = matches!(kind, Kind::Write(_));
            place.address & slot.mask == 0
                && slot.pointee == Some(place.dtype)
                && (may_write || !slot.writes)
                && is_long(place.bytes)
                && place.device.is_some_and(|own| own.is_same(device))
                && put(&place.address.to_le_bytes())
        }
        (Quick::I32, Arg::Int(value)) => {
            let low = *value as i32;
            i128::from(low) == *value && low as u64 & slot.mask == 0 && put(&low.to_le_bytes())
        }
        (Quick::I64, Arg::Int(value)) => {
            let low = *value as i64;
            i128::from(low) == *value && low as u64 & slot.mask == 0 && put(&low.to_le_bytes())
        }
        (Quick::Fp32, Arg::Float(value)) => put(&(*value as f32).to_le_bytes()),
        _ => false,
    }
}

#[cold]
fn wrong_count(metadata: &Metadata, expected: usize, given: usize) -> Error {
    let names: Vec<&str> = metadata.visible_params().iter().map(|p| p.name.as_str()).collect();
    Error::ArgumentCount { kernel: metadata.kernel.clone(), expected, given, names: names.join(", ") }
}

/// Packs an argument, or says what is wrong with it.
#[inline(never)]
fn pack_in_full(
    device: &Device,
    metadata: &Metadata,
    index: usize,
    slot: &Slot,
    arg: &Arg<'_>,
    out: &mut [u8],
) -> Result<()> {
    pack_one(device, slot, arg, out).map_err(|wrong| {
        let param = &metadata.params[index];
        let (kernel, name, ty) = (metadata.kernel.clone(), param.name.clone(), param.ty.clone());
        match wrong {
            Wrong::Unfit(message) => Error::Argument { kernel, name, ty, message },
            Wrong::Range(message) => Error::OutOfRange { kernel, name, ty, message },
            Wrong::Promise(what) => Error::Argument { kernel, name, ty, message: broken_promise(param, &what) },
        }
    })
}

/// Why an argument cannot be passed.
pub(crate) enum Wrong {
    /// In words.
    Unfit(String),
    /// The parameter's type does not hold the number; in words.
    Range(String),
    /// This value is no multiple of what the kernel was compiled for.
    Promise(String),
}

impl From<String> for Wrong {
    fn from(message: String) -> Wrong {
        Wrong::Unfit(message)
    }
}

fn pack_one(device: &Device, slot: &Slot, arg: &Arg<'_>, out: &mut [u8]) -> std::result::Result<(), Wrong> {
    if let Some(place) = arg.pointer().and_then(Pointer::place)
        && let Some(own) = place.device
        && !own.is_same(device)
    {
        let message =
            format!("the buffer lies on {own}, the kernel on {device}; load the kernel there, or upload the data here");
        return Err(message.into());
    }
    let mut put = |bytes: &[u8]| out[slot.offset..slot.offset + bytes.len()].copy_from_slice(bytes);
    match (slot.kind, arg) {
        (SlotKind::Pointer, arg) => {
            let address = address(slot.pointee, arg)?;
            if slot.writes && matches!(arg, Arg::Pointer(Pointer(Kind::Read(_)))) {
                let message =
                    "the kernel writes here, the memory was given to be read; pass `&mut buffer` or a `SliceMut`";
                return Err(message.to_owned().into());
            }
            let aligned = match slot.divisible_by {
                factor if factor.is_power_of_two() => address & u64::from(factor - 1) == 0,
                factor => address.is_multiple_of(factor.into()),
            };
            if !aligned {
                return Err(Wrong::Promise(format!("the address {address:#x}")));
            }
            put(&address.to_le_bytes());
        }
        (SlotKind::Bool, Arg::Bool(v)) => put(&[u8::from(*v)]),
        (SlotKind::Bool, Arg::Int(v @ (0 | 1))) => put(&[*v as u8]),
        (SlotKind::Int { bits, signed }, Arg::Int(_) | Arg::Bool(_)) => {
            let v = if let Arg::Int(v) = arg { *v } else { i128::from(matches!(arg, Arg::Bool(true))) };
            if !in_range(v, bits, signed) {
                return Err(Wrong::Range(out_of_range(v, bits, signed)));
            }
            if !is_multiple(v, slot.divisible_by) {
                return Err(Wrong::Promise(v.to_string()));
            }
            let low = v as u64;
            match bits {
                8 => put(&[low as u8]),
                16 => put(&(low as u16).to_le_bytes()),
                32 => put(&(low as u32).to_le_bytes()),
                _ => put(&low.to_le_bytes()),
            }
        }
        (SlotKind::Fp16, arg) => put(&fp16(float(arg)?)?),
        (SlotKind::Bf16, arg) => put(&bf16_truncated(float(arg)?)),
        (SlotKind::Fp32, arg) => put(&(float(arg)? as f32).to_le_bytes()),
        (SlotKind::Fp64, arg) => put(&float(arg)?.to_le_bytes()),
        // `tensor_map.rs` makes it once all other arguments are in their places.
        (SlotKind::TensorMap, Arg::Descriptor(_)) => {}
        (SlotKind::TensorMap, arg) => {
            return Err(format!("a tensor descriptor is needed, {} was given", what(arg)).into());
        }
        (SlotKind::Bool, arg) => return Err(format!("true or false is needed, {} was given", what(arg)).into()),
        (SlotKind::Int { .. }, arg) => return Err(format!("an integer is needed, {} was given", what(arg)).into()),
    }
    Ok(())
}

fn is_multiple(value: i128, factor: u32) -> bool {
    if factor.is_power_of_two() { value as u32 & (factor - 1) == 0 } else { value % i128::from(factor) == 0 }
}

/// What was promised, what came, and what to do.
fn broken_promise(param: &Param, value: &str) -> String {
    let Param { ty, divisible_by: factor, .. } = param;
    format!(
        "{value} is not a multiple of {factor}, but the kernel was compiled for `{ty}:{factor}` and relies on it; \
         pass a multiple of {factor}, or compile the kernel for `{ty}`"
    )
}

type Checked<T> = std::result::Result<T, String>;

/// The address of a pointer argument for a pointer to `wanted`.
fn address(wanted: Option<DType>, arg: &Arg<'_>) -> Checked<u64> {
    let Arg::Pointer(pointer) = arg else {
        return Err(format!(
            "a buffer is needed, {} was given; pass a `Buffer`, a slice of one or a `DeviceAddress`",
            what(arg)
        ));
    };
    match (pointer.0, wanted) {
        (Kind::Read(place) | Kind::Write(place), Some(wanted)) => {
            if wanted != place.dtype && !element::fits(wanted, place.dtype) {
                return Err(format!(
                    "a buffer of {} was given; pass one of {wanted}, or `cast` it if its bytes are meant",
                    place.dtype
                ));
            }
            let align = u64::from(wanted.bytes());
            // Sizes are powers of two.
            if place.address & (align - 1) != 0 {
                return Err(format!(
                    "the address {:#x} is not a multiple of {align}, the size of an element; pass a slice that begins \
                     at a whole element",
                    place.address
                ));
            }
            Ok(place.address)
        }
        _ => Ok(pointer.address()),
    }
}

/// Whether an integer of so many bits, at most 64, holds the value.
fn in_range(value: i128, bits: u32, signed: bool) -> bool {
    let unused = 64 - bits;
    if signed {
        let low = value as i64;
        i128::from(low) == value && low << unused >> unused == low
    } else {
        let low = value as u64;
        i128::from(low) == value && low << unused >> unused == low
    }
}

fn out_of_range(value: i128, bits: u32, signed: bool) -> String {
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    format!("{value} is out of range ({low} to {high})")
}

fn float(arg: &Arg<'_>) -> Checked<f64> {
    match arg {
        Arg::Float(value) => Ok(*value),
        Arg::Int(value) => Ok(*value as f64),
        other => Err(format!("a float is needed, {} was given", what(other))),
    }
}

fn fp16(value: f64) -> std::result::Result<[u8; 2], Wrong> {
    let rounded = f16::from_f64(value);
    if rounded.is_infinite() && value.is_finite() {
        return Err(Wrong::Range(format!("{value} is out of range (at most 65504 in magnitude)")));
    }
    Ok(rounded.to_le_bytes())
}

fn bf16_truncated(value: f64) -> [u8; 2] {
    (((value as f32).to_bits() >> 16) as u16).to_le_bytes()
}

fn what(arg: &Arg<'_>) -> String {
    match arg {
        Arg::Pointer(pointer) => match pointer.0 {
            Kind::Read(_) | Kind::Write(_) => "a buffer".into(),
            Kind::Address(value) => format!("the address {:#x}", value.get()),
        },
        Arg::Int(value) => format!("the integer {value}"),
        Arg::Float(value) => format!("the float {value:?}"),
        Arg::Bool(value) => format!("{value}"),
        Arg::Descriptor(_) => "a tensor descriptor".into(),
        Arg::Tuple(items) => format!("a tuple of {}", items.len()),
        #[cfg(feature = "jit")]
        Arg::NamedTuple(_, items) => format!("a tuple of {}", items.len()),
        #[cfg(feature = "jit")]
        Arg::Constant(constant) => format!("the constant {}", constant.value()),
    }
}

pub(crate) fn metadata_error(field: String, message: String) -> Error {
    Error::Metadata(rtc_abi::MetadataError { field, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceAddress, args};
    use rtc_abi::metadata::lay_out;

    /// Types as signatures have them, with what they promise.
    fn kernel(types: &[&str]) -> Metadata {
        let params = types.iter().enumerate().map(|(i, text)| {
            let (ty, factor) = text.split_once(':').unwrap_or((text, "1"));
            let ty: ParamType = ty.parse().unwrap();
            Param { divisible_by: factor.parse().unwrap(), ..Param::new(format!("p{i}"), ty) }
        });
        crate::test_metadata("k", lay_out(params.collect()))
    }

    fn packed(types: &[&str], args: &[Arg<'_>]) -> Result<Vec<u8>> {
        let metadata = kernel(types);
        let mut out = vec![0; metadata.params_size() as usize];
        let device = args.iter().filter_map(Arg::pointer).find_map(|p| p.place()?.device.cloned());
        let device = device.unwrap_or_else(crate::Device::emulator);
        pack(&device, &metadata, &slots(&metadata, &Extents::default())?, args, None, &mut out)?;
        Ok(out)
    }

    #[test]
    fn every_type_lies_at_its_offset() {
        let buffer = crate::Device::emulator().alloc::<f32>(4).unwrap();
        let types = ["u8", "i16", "*fp32", "fp32", "u1", "bf16", "fp16", "fp64"];
        let args = [
            Arg::from(255u8),
            Arg::from(-2i16),
            Arg::from(&buffer),
            Arg::from(1.5f32),
            Arg::from(true),
            Arg::Float(1.01171875),
            Arg::Float(-2.0),
            Arg::Int(3),
        ];
        let bytes = packed(&types, &args).unwrap();
        assert_eq!(bytes[0], 255);
        assert_eq!(bytes[2..4], (-2i16).to_le_bytes());
        assert_eq!(bytes[8..16], buffer.address().to_le_bytes());
        assert_eq!(bytes[16..20], 1.5f32.to_le_bytes());
        assert_eq!(bytes[20], 1);
        // 1.01171875 lies halfway between two bf16 values; rounding to even would go up.
        assert_eq!(bytes[22..24], 0x3f81u16.to_le_bytes());
        assert_eq!(bytes[24..26], 0xc000u16.to_le_bytes());
        assert_eq!(bytes[32..40], 3f64.to_le_bytes());
    }

    #[test]
    fn ranges_are_checked_at_their_ends() {
        for (ty, low, high) in [
            ("i8", -128i128, 127i128),
            ("i32", i32::MIN.into(), i32::MAX.into()),
            ("u64", 0, u64::MAX.into()),
            ("u16", 0, 65535),
        ] {
            assert!(packed(&[ty], &[Arg::Int(low)]).is_ok());
            assert!(packed(&[ty], &[Arg::Int(high)]).is_ok());
            for bad in [low - 1, high + 1] {
                let error = packed(&[ty], &[Arg::Int(bad)]).unwrap_err();
                assert!(matches!(error, Error::OutOfRange { .. }));
                let text = error.to_string();
                assert_eq!(text, format!("kernel `k`, argument `p0` ({ty}): {bad} is out of range ({low} to {high})"));
            }
        }
        assert!(packed(&["fp16"], &[Arg::Float(65519.0)]).is_ok());
        assert!(packed(&["fp16"], &[Arg::Float(65520.0)]).is_err());
        assert!(packed(&["fp16"], &[Arg::Float(f64::INFINITY)]).is_ok());
        assert_eq!(packed(&["fp32"], &[Arg::Float(1e300)]).unwrap(), f32::INFINITY.to_le_bytes());
    }

    #[test]
    fn mistakes_name_the_argument() {
        let text = |types: &[&str], args: &[Arg<'_>]| packed(types, args).unwrap_err().to_string();
        insta::assert_snapshot!(text(&["i32"], &[Arg::Float(1.0)]), @"kernel `k`, argument `p0` (i32): an integer is needed, the float 1.0 was given");
        insta::assert_snapshot!(text(&["*fp32"], &[Arg::Int(5)]), @"kernel `k`, argument `p0` (*fp32): a buffer is needed, the integer 5 was given; pass a `Buffer`, a slice of one or a `DeviceAddress`");
        let bytes = crate::Device::emulator().upload(&[0u16; 4]).unwrap();
        insta::assert_snapshot!(text(&["*fp32"], &[(&bytes).into()]), @"kernel `k`, argument `p0` (*fp32): a buffer of u16 was given; pass one of fp32, or `cast` it if its bytes are meant");
        let odd = bytes.cast::<u8>().unwrap();
        let text_odd =
            text(&["*fp32"], &[odd.slice(2..).into()]).replace(&format!("{:#x}", odd.address() + 2), "0x..2");
        insta::assert_snapshot!(text_odd, @"kernel `k`, argument `p0` (*fp32): the address 0x..2 is not a multiple of 4, the size of an element; pass a slice that begins at a whole element");
        assert!(packed(&["*fp32"], &[(&odd).into()]).is_ok(), "bytes stand for any type");
        insta::assert_snapshot!(text(&["fp32"], &[Arg::Bool(true)]), @"kernel `k`, argument `p0` (fp32): a float is needed, true was given");
        insta::assert_snapshot!(text(&["u1"], &[Arg::Int(2)]), @"kernel `k`, argument `p0` (u1): true or false is needed, the integer 2 was given");
        insta::assert_snapshot!(text(&["i32", "i32"], &[Arg::Int(2)]), @"kernel `k` takes 2 arguments (p0, p1), the launch gives 1");
        insta::assert_snapshot!(text(&["fp8e5"], &[Arg::Float(2.0)]), @"kernel metadata: field `params[0].type`: a `fp8e5` cannot be passed by value");
    }

    /// What is packed at once is what the rules give.
    #[test]
    fn quick_and_full_agree() {
        let device = crate::Device::emulator();
        let other = crate::Device::emulator().zeros::<f32>(16).unwrap();
        let (x, mut y) = (device.alloc::<f32>(16).unwrap(), device.alloc::<f32>(16).unwrap());
        let whole = device.alloc::<i32>(16).unwrap();
        let (mut quick_ones, mut refused) = (0, 0);
        for text in ["*fp32", "*fp32:16", "*i32", "*fp32:12", "i32", "i32:16", "i64:8", "i64", "fp32", "u32", "i8"] {
            for access in [None, Some(Access::Read), Some(Access::ReadWrite)] {
                let mut metadata = kernel(&[text]);
                metadata.params[0].access = access.filter(|_| text.starts_with('*'));
                let slot = slots(&metadata, &Extents::default()).unwrap()[0];
                let numbers = [0, 1, 8, 16, -16, 1 << 31, i32::MIN.into(), 1 << 32, 1 << 63, i64::MIN.into(), 1 << 70];
                let mut args: Vec<Arg<'_>> = numbers.map(Arg::Int).into();
                args.extend(args![
                    2.5f32,
                    f64::MAX,
                    true,
                    other.slice(..),
                    whole.slice(..),
                    x.slice(1..),
                    x.slice(4..)
                ]);
                args.extend(args![crate::Slice::<f32>::null(), DeviceAddress::NULL]);
                for arg in args.into_iter().chain(args![y.slice_mut(4..)]) {
                    let (mut at_once, mut in_full) = ([0; 8], [0; 8]);
                    let full = pack_one(&device, &slot, &arg, &mut in_full);
                    refused += usize::from(full.is_err());
                    if quick(&device, &slot, &arg, |_| true, &mut at_once) {
                        quick_ones += 1;
                        assert!(full.is_ok() && at_once == in_full, "{text} {access:?} {arg:?}");
                    }
                }
            }
        }
        assert!(quick_ones > 50 && refused > 200, "{quick_ones} {refused}");
    }

    #[test]
    fn promises_are_checked() {
        let device = crate::Device::emulator();
        let buffer = device.alloc::<f32>(16).unwrap();
        for (ty, good, bad) in [
            ("i32:16", vec![0, 16, -32, 1 << 30], vec![1, 17, -8, i128::from(i32::MAX)]),
            ("u64:8", vec![8, 1 << 63], vec![i128::from(u64::MAX), 4]),
            ("i64:12", vec![-24, 36, 0], vec![-6, 16]),
            ("i8:1", vec![1, -1], vec![]),
        ] {
            for value in good {
                assert!(packed(&[ty], &[Arg::Int(value)]).is_ok(), "{ty} {value}");
            }
            for value in bad {
                let error = packed(&[ty], &[Arg::Int(value)]).unwrap_err().to_string();
                assert!(error.contains(&format!("{value} is not a multiple of")), "{ty} {error}");
            }
        }
        assert!(packed(&["*fp32:16"], &[buffer.slice(8..).into()]).is_ok());
        assert!(packed(&["*fp32:16"], &[DeviceAddress::NULL.into()]).is_ok());
        let text = |types: &[&str], args: &[Arg<'_>]| packed(types, args).unwrap_err().to_string();
        insta::assert_snapshot!(text(&["i32:16"], &[17.into()]), @"kernel `k`, argument `p0` (i32): 17 is not a multiple of 16, but the kernel was compiled for `i32:16` and relies on it; pass a multiple of 16, or compile the kernel for `i32`");
        insta::assert_snapshot!(text(&["i32:16"], &[true.into()]), @"kernel `k`, argument `p0` (i32): 1 is not a multiple of 16, but the kernel was compiled for `i32:16` and relies on it; pass a multiple of 16, or compile the kernel for `i32`");
        let error =
            text(&["*fp32:16"], &[buffer.slice(1..).into()]).replace(&format!("{:#x}", buffer.address() + 4), "0x..4");
        insta::assert_snapshot!(error, @"kernel `k`, argument `p0` (*fp32): the address 0x..4 is not a multiple of 16, but the kernel was compiled for `*fp32:16` and relies on it; pass a multiple of 16, or compile the kernel for `*fp32`");
    }
}

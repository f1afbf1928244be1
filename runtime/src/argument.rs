//! Arguments of a launch: what the host gives, checked against the kernel's parameters and packed.
//!
//! The layout comes from the metadata. Integers are checked for range, fp32 takes the nearest value, fp16 rounds to
//! nearest even and refuses what overflows, bf16 cuts the low bits of the fp32 value off, as Triton's launcher does.

use crate::{Buffer, Error, Result};
use half::f16;
use rtc_ptx::Metadata;

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// The start of a buffer.
    Buffer(&'a Buffer),
    /// A place in a buffer, in bytes from its start.
    BufferAt(&'a Buffer, u64),
    /// A device address that the caller vouches for; 0 is the null pointer.
    Address(u64),
    /// An integer of any width.
    Int(i128),
    /// A float of any width.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

/// A pointer argument: a buffer, or a place in one.
#[derive(Clone, Copy, Debug)]
pub struct Pointer<'a>(Arg<'a>);

impl<'a> From<&'a Buffer> for Pointer<'a> {
    fn from(buffer: &'a Buffer) -> Pointer<'a> {
        Pointer(Arg::Buffer(buffer))
    }
}

impl<'a> From<(&'a Buffer, u64)> for Pointer<'a> {
    fn from((buffer, offset): (&'a Buffer, u64)) -> Pointer<'a> {
        Pointer(Arg::BufferAt(buffer, offset))
    }
}

impl<'a> From<Pointer<'a>> for Arg<'a> {
    fn from(pointer: Pointer<'a>) -> Arg<'a> {
        pointer.0
    }
}

impl<'a> From<&'a Buffer> for Arg<'a> {
    fn from(buffer: &'a Buffer) -> Arg<'a> {
        Arg::Buffer(buffer)
    }
}

impl<'a> From<(&'a Buffer, u64)> for Arg<'a> {
    fn from((buffer, offset): (&'a Buffer, u64)) -> Arg<'a> {
        Arg::BufferAt(buffer, offset)
    }
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        Arg::Bool(value)
    }
}

macro_rules! from_numbers {
    ($variant:ident as $wide:ty: $($ty:ty),*) => {
        $(impl From<$ty> for Arg<'_> {
            fn from(value: $ty) -> Self {
                Arg::$variant(<$wide>::from(value))
            }
        })*
    };
}

from_numbers!(Int as i128: i8, i16, i32, i64, u8, u16, u32, u64);
from_numbers!(Float as f64: f32, f64, half::f16, half::bf16);

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
    offset: usize,
}

/// The parameters of a kernel as packing needs them; an error names the parameter that the runtime cannot pass.
pub(crate) fn slots(metadata: &Metadata) -> Result<Box<[Slot]>> {
    let slot = |(i, param): (usize, &rtc_ptx::Param)| {
        let (kind, size) = match param.ty.as_str() {
            _ if param.tensor_map.is_some() => (SlotKind::TensorMap, 128),
            ty if ty.starts_with('*') => (SlotKind::Pointer, 8),
            "i1" | "u1" => (SlotKind::Bool, 1),
            "i8" => (SlotKind::Int { bits: 8, signed: true }, 1),
            "i16" => (SlotKind::Int { bits: 16, signed: true }, 2),
            "i32" => (SlotKind::Int { bits: 32, signed: true }, 4),
            "i64" => (SlotKind::Int { bits: 64, signed: true }, 8),
            "u8" => (SlotKind::Int { bits: 8, signed: false }, 1),
            "u16" => (SlotKind::Int { bits: 16, signed: false }, 2),
            "u32" => (SlotKind::Int { bits: 32, signed: false }, 4),
            "u64" => (SlotKind::Int { bits: 64, signed: false }, 8),
            "fp16" => (SlotKind::Fp16, 2),
            "bf16" => (SlotKind::Bf16, 2),
            "fp32" => (SlotKind::Fp32, 4),
            "fp64" => (SlotKind::Fp64, 8),
            ty => return Err(metadata_error(format!("params[{i}].type"), format!("`{ty}` is not a parameter type"))),
        };
        if param.size != size {
            let message = format!("{} bytes, but `{}` takes {size}", param.size, param.ty);
            return Err(metadata_error(format!("params[{i}].size"), message));
        }
        Ok(Slot { kind, offset: param.offset as usize })
    };
    metadata.params.iter().enumerate().map(slot).collect()
}

/// Checks the arguments and writes them to `out`, which has the size of the kernel's parameter buffer.
///
/// Allocates nothing unless it fails.
pub(crate) fn pack(metadata: &Metadata, slots: &[Slot], args: &[Arg<'_>], out: &mut [u8]) -> Result<()> {
    if args.len() != slots.len() {
        let names: Vec<&str> = metadata.params.iter().map(|p| p.name.as_str()).collect();
        return Err(Error::ArgumentCount {
            kernel: metadata.kernel.clone(),
            expected: slots.len(),
            given: args.len(),
            names: names.join(", "),
        });
    }
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let mut put = |bytes: &[u8]| out[slot.offset..slot.offset + bytes.len()].copy_from_slice(bytes);
        let written = match (slot.kind, *arg) {
            (SlotKind::Pointer, arg) => address(arg).map(|v| put(&v.to_le_bytes())),
            (SlotKind::Bool, Arg::Bool(v)) => {
                put(&[u8::from(v)]);
                Ok(())
            }
            (SlotKind::Bool, Arg::Int(v @ (0 | 1))) => {
                put(&[v as u8]);
                Ok(())
            }
            (SlotKind::Int { bits, signed }, Arg::Int(v)) => {
                int_in_range(v, bits, signed).map(|()| put(&v.to_le_bytes()[..bits as usize / 8]))
            }
            (SlotKind::Int { bits, .. }, Arg::Bool(v)) => {
                put(&u64::from(v).to_le_bytes()[..bits as usize / 8]);
                Ok(())
            }
            (SlotKind::Fp16, arg) => float(arg).and_then(fp16).map(|v| put(&v)),
            (SlotKind::Bf16, arg) => float(arg).map(|v| put(&bf16_truncated(v))),
            (SlotKind::Fp32, arg) => float(arg).map(|v| put(&(v as f32).to_le_bytes())),
            (SlotKind::Fp64, arg) => float(arg).map(|v| put(&v.to_le_bytes())),
            (SlotKind::TensorMap, _) => Err("tensor maps cannot be launched by this runtime yet".to_owned()),
            (SlotKind::Bool, arg) => Err(format!("true or false is needed, {} was given", what(arg))),
            (SlotKind::Int { .. }, arg) => Err(format!("an integer is needed, {} was given", what(arg))),
        };
        written.map_err(|message| {
            let param = &metadata.params[index];
            Error::Argument { kernel: metadata.kernel.clone(), name: param.name.clone(), ty: param.ty.clone(), message }
        })?;
    }
    Ok(())
}

type Checked<T> = std::result::Result<T, String>;

fn address(arg: Arg<'_>) -> Checked<u64> {
    match arg {
        Arg::Buffer(buffer) => Ok(buffer.address()),
        Arg::BufferAt(buffer, offset) if offset <= buffer.len() as u64 => Ok(buffer.address() + offset),
        Arg::BufferAt(buffer, offset) => {
            Err(format!("offset {offset} lies past the end of its buffer of {} bytes", buffer.len()))
        }
        Arg::Address(address) => Ok(address),
        other => Err(format!("a buffer is needed, {} was given", what(other))),
    }
}

fn int_in_range(value: i128, bits: u32, signed: bool) -> Checked<()> {
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if (low..=high).contains(&value) { Ok(()) } else { Err(format!("{value} is out of range ({low} to {high})")) }
}

fn float(arg: Arg<'_>) -> Checked<f64> {
    match arg {
        Arg::Float(value) => Ok(value),
        Arg::Int(value) => Ok(value as f64),
        other => Err(format!("a float is needed, {} was given", what(other))),
    }
}

fn fp16(value: f64) -> Checked<[u8; 2]> {
    let rounded = f16::from_f64(value);
    if rounded.is_infinite() && value.is_finite() {
        return Err(format!("{value} is out of range (at most 65504 in magnitude)"));
    }
    Ok(rounded.to_le_bytes())
}

fn bf16_truncated(value: f64) -> [u8; 2] {
    (((value as f32).to_bits() >> 16) as u16).to_le_bytes()
}

fn what(arg: Arg<'_>) -> String {
    match arg {
        Arg::Buffer(_) | Arg::BufferAt(..) => "a buffer".into(),
        Arg::Address(value) => format!("the address {value:#x}"),
        Arg::Int(value) => format!("the integer {value}"),
        Arg::Float(value) => format!("the float {value:?}"),
        Arg::Bool(value) => format!("{value}"),
    }
}

fn metadata_error(field: String, message: String) -> Error {
    Error::Metadata(rtc_ptx::MetadataError { field, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_ptx::Param;

    fn kernel(types: &[(&str, u32)]) -> Metadata {
        let mut offset = 0;
        let params = types.iter().enumerate().map(|(i, (ty, size))| {
            offset = u32::next_multiple_of(offset, *size);
            offset += size;
            Param { name: format!("p{i}"), ty: (*ty).into(), offset: offset - size, size: *size, tensor_map: None }
        });
        crate::test_metadata("k", params.collect())
    }

    fn packed(types: &[(&str, u32)], args: &[Arg<'_>]) -> Result<Vec<u8>> {
        let metadata = kernel(types);
        let mut out = vec![0; metadata.params_size() as usize];
        pack(&metadata, &slots(&metadata)?, args, &mut out)?;
        Ok(out)
    }

    #[test]
    fn every_type_lies_at_its_offset() {
        let types =
            [("u8", 1), ("i16", 2), ("*fp32", 8), ("fp32", 4), ("u1", 1), ("bf16", 2), ("fp16", 2), ("fp64", 8)];
        let args = [
            Arg::from(255u8),
            Arg::from(-2i16),
            Arg::Address(0x1122334455667788),
            Arg::from(1.5f32),
            Arg::from(true),
            Arg::Float(1.01171875),
            Arg::Float(-2.0),
            Arg::Int(3),
        ];
        let bytes = packed(&types, &args).unwrap();
        assert_eq!(bytes[0], 255);
        assert_eq!(bytes[2..4], (-2i16).to_le_bytes());
        assert_eq!(bytes[8..16], 0x1122334455667788u64.to_le_bytes());
        assert_eq!(bytes[16..20], 1.5f32.to_le_bytes());
        assert_eq!(bytes[20], 1);
        // 1.01171875 lies halfway between two bf16 values; rounding to even would go up.
        assert_eq!(bytes[22..24], 0x3f81u16.to_le_bytes());
        assert_eq!(bytes[24..26], 0xc000u16.to_le_bytes());
        assert_eq!(bytes[32..40], 3f64.to_le_bytes());
    }

    #[test]
    fn ranges_are_checked_at_their_ends() {
        for (ty, size, low, high) in [
            ("i8", 1, -128i128, 127i128),
            ("i32", 4, i32::MIN.into(), i32::MAX.into()),
            ("u64", 8, 0, u64::MAX.into()),
            ("u16", 2, 0, 65535),
        ] {
            assert!(packed(&[(ty, size)], &[Arg::Int(low)]).is_ok());
            assert!(packed(&[(ty, size)], &[Arg::Int(high)]).is_ok());
            for bad in [low - 1, high + 1] {
                let text = packed(&[(ty, size)], &[Arg::Int(bad)]).unwrap_err().to_string();
                assert_eq!(text, format!("kernel `k`, argument `p0` ({ty}): {bad} is out of range ({low} to {high})"));
            }
        }
        assert!(packed(&[("fp16", 2)], &[Arg::Float(65519.0)]).is_ok());
        assert!(packed(&[("fp16", 2)], &[Arg::Float(65520.0)]).is_err());
        assert!(packed(&[("fp16", 2)], &[Arg::Float(f64::INFINITY)]).is_ok());
        assert_eq!(packed(&[("fp32", 4)], &[Arg::Float(1e300)]).unwrap(), f32::INFINITY.to_le_bytes());
    }

    #[test]
    fn mistakes_name_the_argument() {
        let text = |types: &[(&str, u32)], args: &[Arg<'_>]| packed(types, args).unwrap_err().to_string();
        insta::assert_snapshot!(text(&[("i32", 4)], &[Arg::Float(1.0)]), @"kernel `k`, argument `p0` (i32): an integer is needed, the float 1.0 was given");
        insta::assert_snapshot!(text(&[("*fp32", 8)], &[Arg::Int(5)]), @"kernel `k`, argument `p0` (*fp32): a buffer is needed, the integer 5 was given");
        insta::assert_snapshot!(text(&[("fp32", 4)], &[Arg::Bool(true)]), @"kernel `k`, argument `p0` (fp32): a float is needed, true was given");
        insta::assert_snapshot!(text(&[("u1", 1)], &[Arg::Int(2)]), @"kernel `k`, argument `p0` (u1): true or false is needed, the integer 2 was given");
        insta::assert_snapshot!(text(&[("i32", 4), ("i32", 4)], &[Arg::Int(2)]), @"kernel `k` takes 2 arguments (p0, p1), the launch gives 1");
        insta::assert_snapshot!(text(&[("i33", 4)], &[Arg::Int(2)]), @"kernel metadata: field `params[0].type`: `i33` is not a parameter type");
        insta::assert_snapshot!(text(&[("i32", 8)], &[Arg::Int(2)]), @"kernel metadata: field `params[0].size`: 8 bytes, but `i32` takes 4");
    }
}

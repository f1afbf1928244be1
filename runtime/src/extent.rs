//! Lengths: how far a kernel gets from its pointers, against the slices that a launch gives it.

use crate::arg::Arg;
use crate::argument::Slot;
use crate::pointer::{Kind, Pointer};
use crate::{DeviceAddress, Error, Result, TensorDescriptor};
use rtc_abi::{Elements, Evaluated, Extents, Metadata, Param, ParamType};

/// What a launch does about the lengths of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// It leaves them to the caller.
    Trusted,
    /// It refuses those that are not proved to be long enough.
    Proved,
}

/// What the kernel touches in a launch with these arguments.
#[inline]
pub(crate) fn evaluate(extents: &Extents, args: &[Arg<'_>], grid: [u32; 3]) -> Evaluated {
    extents.evaluate(|index| integer(args, index), grid)
}

#[inline]
fn integer(args: &[Arg<'_>], index: usize) -> Option<i64> {
    match args.get(index) {
        Some(Arg::Int(value)) => i64::try_from(*value).ok(),
        Some(Arg::Bool(value)) => Some(i64::from(*value)),
        _ => None,
    }
}

/// Checks that every slice is as long as what the kernel touches of it: each again, for launches of which [`evaluate`] does
/// not tell that.
#[cold]
pub(crate) fn check(
    metadata: &Metadata,
    extents: &Extents,
    slots: &[Slot],
    args: &[Arg<'_>],
    grid: [u32; 3],
) -> Result<()> {
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let bytes = match arg {
            Arg::Pointer(pointer) => held(pointer),
            Arg::Descriptor(descriptor) => {
                descriptor_fits(metadata, &metadata.params[index], descriptor)?;
                continue;
            }
            _ => continue,
        };
        let Some(bytes) = bytes else { continue };
        match extents.elements(index, |index| integer(args, index), grid) {
            Elements::AtMost(elements) => {
                let size = slot.element_bytes();
                if elements.saturating_mul(size) > bytes {
                    return Err(too_short(metadata, &metadata.params[index], elements, bytes / size.max(1)));
                }
            }
            Elements::Unknown(why) => return Err(unproved(metadata, &metadata.params[index], why)),
        }
    }
    Ok(())
}

/// How many bytes lie behind a pointer; `None` where the caller guarantees an address. The null pointer takes no `unsafe`.
fn held(pointer: &Pointer<'_>) -> Option<u64> {
    match pointer.0 {
        Kind::Read(place) | Kind::Write(place) => Some(place.bytes),
        Kind::Address(DeviceAddress::NULL) => Some(0),
        Kind::Address(_) => None,
    }
}

/// Checks that the tensor of a descriptor lies within its memory: copies reach no further than the tensor.
fn descriptor_fits(metadata: &Metadata, param: &Param, descriptor: &TensorDescriptor<'_>) -> Result<()> {
    let ParamType::Descriptor { element, .. } = &param.ty else { return Ok(()) };
    let Some(bytes) = held(descriptor.base()) else { return Ok(()) };
    let (elements, size) = (descriptor.extents().elements(), u64::from(element.bytes()));
    if elements.saturating_mul(size.into()) > bytes.into() {
        let held = bytes / size.max(1);
        let message = format!(
            "the tensor takes {elements} elements, the slice has {held}; pass a longer one, or check shape and strides"
        );
        return Err(refused(metadata, param, message));
    }
    Ok(())
}

#[cold]
fn too_short(metadata: &Metadata, param: &Param, elements: u64, held: u64) -> Error {
    let by = param.extent.as_ref().map_or(String::new(), |extent| format!(" (`{extent}`)"));
    let message = format!(
        "the kernel touches {elements} elements{by}, the slice has {held}; pass a longer one, or check sizes, strides and \
         grid of the launch"
    );
    refused(metadata, param, message)
}

#[cold]
fn unproved(metadata: &Metadata, param: &Param, why: Option<String>) -> Error {
    let why = why.or_else(|| param.extent_unknown.clone()).unwrap_or_else(|| "nothing is proved".into());
    let message = format!(
        "it is not proved how far the kernel gets from this pointer: {why}; where you know that its accesses lie within \
         the slice, call the unsafe function `launch_unchecked`"
    );
    refused(metadata, param, message)
}

fn refused(metadata: &Metadata, param: &Param, message: String) -> Error {
    Error::Argument { kernel: metadata.kernel.clone(), name: param.name.clone(), ty: param.ty.clone(), message }
}

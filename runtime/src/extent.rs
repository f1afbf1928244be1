//! Lengths: how far a kernel gets from its pointers, against the slices that a launch gives it.

use crate::arg::{Arg, Kind, Pointer};
use crate::argument::Slot;
use crate::{Error, Result};
use rtc_abi::{Elements, Evaluated, Extents, Metadata, Param};

/// What a launch does about the lengths of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// It leaves them to the caller.
    Trusted,
    /// It refuses those that are shorter than what is told of the kernel, and leaves the others to the caller.
    Told,
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

/// Checks that every slice is as long as what the kernel touches of it: each anew, for launches of which [`evaluate`] does
/// not tell that.
#[cold]
pub(crate) fn check(
    lengths: Lengths,
    metadata: &Metadata,
    extents: &Extents,
    slots: &[Slot],
    args: &[Arg<'_>],
    grid: [u32; 3],
) -> Result<()> {
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let Arg::Pointer(Pointer(Kind::Read(place) | Kind::Write(place))) = arg else { continue };
        match extents.elements(index, |index| integer(args, index), grid) {
            Elements::AtMost(elements) => {
                let size = slot.element_bytes();
                if elements.saturating_mul(size) > place.bytes {
                    return Err(too_short(metadata, &metadata.params[index], elements, place.bytes / size.max(1)));
                }
            }
            Elements::Unknown(_) if lengths == Lengths::Told => {}
            Elements::Unknown(why) => return Err(unproved(metadata, &metadata.params[index], why)),
        }
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
        "it is not proved how far the kernel gets from this pointer: {why}; where you know that the slice is long enough, \
         launch `kernel()` without this check"
    );
    refused(metadata, param, message)
}

fn refused(metadata: &Metadata, param: &Param, message: String) -> Error {
    Error::Argument { kernel: metadata.kernel.clone(), name: param.name.clone(), ty: param.ty.clone(), message }
}

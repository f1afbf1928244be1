//! Lengths: how far a kernel gets from its pointers, against the slices that a launch gives it.

use crate::arg::{Arg, Kind, Pointer};
use crate::argument::Slot;
use crate::{Error, Result};
use rtc_abi::{Elements, Extents, Metadata, Param};

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

/// Checks that every slice is as long as what the kernel touches of it.
///
/// Allocates nothing unless it fails.
pub(crate) fn check(
    lengths: Lengths,
    metadata: &Metadata,
    extents: &Extents,
    slots: &[Slot],
    args: &[Arg<'_>],
    grid: [u32; 3],
) -> Result<()> {
    let integer = |index: usize| match args.get(index) {
        Some(Arg::Int(value)) => i64::try_from(*value).ok(),
        Some(Arg::Bool(value)) => Some(i64::from(*value)),
        _ => None,
    };
    let evaluated = extents.evaluate(integer, grid);
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let Arg::Pointer(Pointer(Kind::Read(place) | Kind::Write(place))) = arg else { continue };
        // A number of elements that is not proved is none that fits.
        let elements = extents.at_most(&evaluated, index).unwrap_or(u64::MAX);
        if elements.saturating_mul(slot.element_bytes()) > place.bytes {
            match extents.elements(index, integer, grid) {
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

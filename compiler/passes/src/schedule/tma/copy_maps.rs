//! The copies that replace loads, and their maps.
//!
//! ```text
//! load %p     →     copy_desc %map, %buffer, %barrier, (row, column)
//! ```
//!
//! A copy has two maps where its source has NaN or zeros for what lies beside the tensor, as an argument says, or where the last
//! tile has fewer rows (`short_operands.rs`).

use rtc_abi::metadata::Padding;
use rtc_ir::{Builder, Elem, Kernel, Op, OpKind, TFLOAT32, Value};

use super::buffer_boxes::{Boxes, boxes_of};
use super::coordinates::BoxCoordinates;
use super::tensor_maps::{MapForm, MapRows, map_of};
use crate::PassError;
use crate::access::box_access::{BoxAccess, Fill};
use crate::pass::missing;

/// The maps of a copy.
pub(crate) struct CopyMaps {
    /// The map.
    pub map: Value,
    /// One to take instead of it.
    pub other: Option<Other>,
    /// The boxes of both.
    pub boxes: Boxes,
}

/// A second map of a copy.
#[derive(Clone, Copy)]
pub(crate) enum Other {
    /// An argument of the kernel, and the map with NaN beside the tensor to take where it is true.
    Nan(Value, Value),
    /// The map of the last rows, for the last tile.
    LastRows(Value),
}

impl Other {
    /// The map.
    pub fn map(self) -> Value {
        let (Other::Nan(_, map) | Other::LastRows(map)) = self;
        map
    }
}

/// How many rows a box has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BoxRows {
    /// As many as the tile.
    Tile,
    /// As many as the tile, but no more than the tensor.
    Tensor,
    /// As many as the tile, but for the last tile of the tensor those that are left.
    Left,
}

/// The maps of a copy whose boxes have so many rows.
pub(crate) fn copy_maps(
    kernel: &mut Kernel,
    buffer: Value,
    access: &BoxAccess,
    rows: BoxRows,
) -> Result<CopyMaps, PassError> {
    let boxes = boxes_of(kernel, buffer, access).ok_or_else(|| missing("a box"))?;
    let data_type = is_only_multiplied(kernel, buffer).then_some(TFLOAT32);
    let mut map = |padding, rows| map_of(kernel, access, &boxes, MapForm { padding, data_type, rows });
    let own = if rows == BoxRows::Tensor { MapRows::Short } else { MapRows::All };
    let plain = map(if access.fill == Fill::Nan { Padding::Nan } else { Padding::Zero }, own)?;
    let other = match (access.fill, rows) {
        (Fill::Either(flag), _) => Some(Other::Nan(flag, map(Padding::Nan, own)?)),
        (_, BoxRows::Left) => Some(Other::LastRows(map(Padding::Zero, MapRows::Last)?)),
        _ => None,
    };
    Ok(CopyMaps { map: plain, other, boxes })
}

/// Whether a buffer holds floats of 32 bits that only dots read, in tf32: then the copy rounds them to nearest at no
/// cost, while the dot would truncate them.
fn is_only_multiplied(kernel: &Kernel, buffer: Value) -> bool {
    let mut work = vec![buffer];
    let mut multiplied = false;
    while let Some(value) = work.pop() {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::CopyAsync { .. } => {}
                OpKind::SharedTrans { .. } | OpKind::LocalLoad {} => work.push(kernel.result(user, 0)),
                OpKind::Mma {} => multiplied = true,
                _ => return false,
            }
        }
    }
    multiplied && kernel.value_type(buffer).as_shared().is_some_and(|ty| ty.elem == Elem::F32)
}

/// Copies to a buffer; `barrier` receives the bytes.
pub(crate) fn copy_boxes(
    kernel: &mut Kernel,
    before: Op,
    map: Value,
    boxes: &Boxes,
    buffer: Value,
    barrier: Value,
    at: &BoxCoordinates,
) -> Result<(), PassError> {
    for part in &boxes.parts {
        let slice = part_of(kernel, before, buffer, *part, [boxes.ty.shape[0], boxes.ty.shape[1]])?;
        let at = at.moved(kernel, before, *part)?;
        let operands = [map, slice, barrier];
        Builder::before(kernel, before).build(OpKind::CopyDesc {}, &operands, &[], &at, &[], &[])?;
    }
    Ok(())
}

/// A part of a buffer; all of it as it is.
fn part_of(kernel: &mut Kernel, before: Op, buffer: Value, at: [u32; 2], shape: [u32; 2]) -> Result<Value, PassError> {
    let whole = kernel.value_type(buffer).as_shared().is_some_and(|ty| ty.shape[..] == shape);
    if whole { Ok(buffer) } else { Ok(Builder::before(kernel, before).shared_slice_of(buffer, &at, &shape)?) }
}

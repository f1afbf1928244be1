//! The boxes by which TMA fills a buffer in shared memory: as many in both dimensions as it takes.

use rtc_ir::{DescType, Kernel, LARGEST_BOX_SIZE, Scalar, Shape, Value};
use rtc_layout::SharedLayout;

use crate::access::box_access::BoxAccess;

/// The box of one copy, and the parts of a buffer that copies fill: by the dimensions of the buffer, the innermost last.
#[derive(Clone)]
pub(crate) struct Boxes {
    /// The type of the tensor map.
    pub ty: DescType,
    /// Where the parts start.
    pub parts: Vec<[u32; 2]>,
}

/// A swizzled box has so many rows or more: the swizzle repeats after them.
pub(crate) const SWIZZLED_ROWS: u32 = 8;

/// The boxes that a buffer with this layout consists of, if it lies as copies fill it; its dimension 1 is the innermost.
pub(crate) fn boxes(layout: &SharedLayout, elem: Scalar) -> Option<Boxes> {
    let (swizzle, inner) = layout.as_nvmma(elem.bits())?;
    let [rows, columns] = *layout.shape() else { return None };
    // Few rows look alike with and without.
    let is_plain = *layout == SharedLayout::nvmma(&[rows, columns], elem.bits(), 0, &[1, 0]);
    let swizzle = if is_plain && rows < SWIZZLED_ROWS { 0 } else { swizzle };
    let width = if swizzle == 0 { columns } else { swizzle / elem.bytes() };
    let part = [rows.min(LARGEST_BOX_SIZE), width.min(LARGEST_BOX_SIZE)];
    let ty = DescType { elem, shape: Shape::new(&part)?, swizzle };
    ty.check_box().ok()?;
    let parts = ty.parts(&[rows, columns]).iter().map(|start| [start[0], start[1]]).collect();
    (inner == 1 && ty.fills(layout)).then_some(Boxes { ty, parts })
}

/// The boxes of a buffer to which the access is copied.
pub(crate) fn boxes_of(kernel: &Kernel, buffer: Value, access: &BoxAccess) -> Option<Boxes> {
    let ty = kernel.value_type(buffer).as_shared()?;
    let layout = kernel.slot_layout(ty);
    let layout = if access.inner == 0 { layout.transpose(&[1, 0]) } else { layout.into_owned() };
    boxes(&layout, ty.elem.num()?)
}

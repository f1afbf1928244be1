//! Boxes of tensors: which bytes a tensor map and coordinates mean, and how they lie in shared memory.

use std::ops::Range;

use super::State;
use super::bulk::{Destination, Source, Target};
use super::step::Step;
use crate::code::{AtomicOp, Direction, TensorCopy, Window};
use crate::fault::{Access, AccessError, FaultKind};
use crate::memory::Memory;
use crate::tensor_map::{ElementType, Fill, MAP_BYTES, TensorMap, swizzled};
use rtc_ptx::Modifier;

/// A box of a tensor.
pub struct TensorBox {
    /// The tensor.
    pub map: TensorMap,
    /// Coordinates of the first element, innermost first; may lie outside the tensor.
    pub at: Vec<i32>,
}

/// Where a row of a box ends that reaches beyond the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// With the tensor.
    Exact,
    /// Including the 16 bytes in which the tensor ends: copies to global memory write or combine them as a whole, as
    /// observed on an H200.
    Whole,
}

/// Visits the rows of a box in the order of shared memory: the offset there, and the intersection of the row with the
/// tensor: the address of its first element inside, and the bytes inside.
pub fn rows(tensor: &TensorBox, ends: Ends, mut visit: impl FnMut(usize, Option<(u64, Range<usize>)>)) {
    let TensorBox { map, at } = tensor;
    let size = u64::from(map.ty.bytes());
    let width = u64::from(map.box_dims[0]);
    let first = i64::from(at[0]);
    // Elements of a row inside: from `low` to before `high`.
    let low = (-first).clamp(0, width as i64);
    let end = match ends {
        Ends::Exact => map.dims[0],
        Ends::Whole => map.dims[0].next_multiple_of(16 / size),
    };
    let high = (end as i64 - first).clamp(low, width as i64);
    let total: u32 = (1..map.rank()).map(|i| map.moved(i)).product();
    for row in 0..total {
        let mut rest = row;
        let mut inside = low < high;
        let mut address = map.address.wrapping_add(((first + low) as u64).wrapping_mul(size));
        for (i, start) in at.iter().enumerate().skip(1) {
            let index = rest % map.moved(i);
            rest /= map.moved(i);
            let coordinate = i64::from(*start) + i64::from(index * map.element_strides[i]);
            inside &= (0..map.dims[i] as i64).contains(&coordinate);
            address = address.wrapping_add((coordinate as u64).wrapping_mul(map.strides[i - 1]));
        }
        let offset = (u64::from(row) * width * size) as usize;
        let range = (low as u64 * size) as usize..(high as u64 * size) as usize;
        visit(offset, inside.then_some((address, range)));
    }
}

/// The bytes of a box as they lie in shared memory before the swizzle.
pub fn read_box(memory: &Memory, tensor: &TensorBox) -> Result<Vec<u8>, AccessError> {
    let mut data = vec![0; tensor.map.box_bytes() as usize];
    let (ty, fill) = (tensor.map.ty, tensor.map.fill);
    if fill == Fill::Nan {
        let element: &[u8] = match ty.bytes() {
            2 => &[0xff, 0x7f],
            4 => &[0xff, 0xff, 0xff, 0x7f],
            _ => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        };
        data.chunks_exact_mut(element.len()).for_each(|e| e.copy_from_slice(element));
    }
    let mut result = Ok(());
    rows(tensor, Ends::Exact, |offset, inside| {
        let Some((address, range)) = inside else { return };
        match memory.read(address, range.len()) {
            Ok(bytes) => data[offset + range.start..offset + range.end].copy_from_slice(bytes),
            Err(error) => result = Err(error),
        }
    });
    result?;
    convert(&mut data, ty);
    Ok(data)
}

/// The conversion of loaded elements: types with `ftz` lose subnormal numbers, tf32 is rounded to nearest.
fn convert(data: &mut [u8], ty: ElementType) {
    let (ftz, round) = match ty {
        ElementType::F32Ftz => (true, false),
        ElementType::Tf32 => (false, true),
        ElementType::Tf32Ftz => (true, true),
        _ => return,
    };
    for element in data.chunks_exact_mut(4) {
        let mut bits = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
        if ftz && bits & 0x7f80_0000 == 0 {
            bits &= 0x8000_0000;
        }
        if round && bits & 0x7f80_0000 != 0x7f80_0000 {
            bits = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
        }
        element.copy_from_slice(&bits.to_le_bytes());
    }
}

/// Writes data to shared memory, 16 bytes at a time, at swizzled offsets.
pub fn write_swizzled(bytes: &mut [u8], to: u32, data: &[u8], swizzle: u32) {
    for (i, piece) in data.chunks(16).enumerate() {
        let at = swizzled(to + 16 * i as u32, swizzle) as usize;
        if let Some(slot) = bytes.get_mut(at..at + piece.len()) {
            slot.copy_from_slice(piece);
        }
    }
}

/// The inverse of [`write_swizzled`].
pub fn read_swizzled(bytes: &[u8], from: u32, length: u32, swizzle: u32) -> Vec<u8> {
    let mut data = vec![0; length as usize];
    for (i, piece) in data.chunks_mut(16).enumerate() {
        let at = swizzled(from + 16 * i as u32, swizzle) as usize;
        if let Some(slot) = bytes.get(at..at + piece.len()) {
            piece.copy_from_slice(slot);
        }
    }
    data
}

/// The type in which a reduction into a tensor combines elements; `None` if it is not supported.
fn reduction_type(op: AtomicOp, ty: ElementType) -> Option<Modifier> {
    use ElementType::*;
    let bitwise = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
    let counts = matches!(op, AtomicOp::Inc | AtomicOp::Dec);
    Some(match ty {
        U32 => Modifier::U32,
        S32 if !counts => Modifier::S32,
        U64 if !counts => Modifier::U64,
        // Seen on an H200: the others are illegal instructions.
        S64 if matches!(op, AtomicOp::Min | AtomicOp::Max) => Modifier::S64,
        F16 if !bitwise && !counts => Modifier::F16,
        Bf16 if !bitwise && !counts => Modifier::Bf16,
        F32 | F32Ftz if op == AtomicOp::Add => Modifier::F32,
        F64 if op == AtomicOp::Add => Modifier::F64,
        _ => return None,
    })
}

impl Step<'_, '_> {
    /// The tensor map at an address.
    fn tensor_map(&mut self, (window, address): (Window, u64), lane: u32) -> Result<TensorMap, (FaultKind, u32)> {
        super::access::aligned(window, Access::Read, address, 64).map_err(|kind| (kind, lane))?;
        let bytes = self.read((window, address), MAP_BYTES as u32, lane)?;
        TensorMap::decode(bytes).map_err(|e| (FaultKind::InvalidInstruction(e.to_string()), lane))
    }

    pub(super) fn tensor_copy(&mut self, copy: &TensorCopy) -> Result<(), (FaultKind, u32)> {
        let maps = self.addresses(copy.map);
        for lane in self.lanes() {
            let i = lane as usize;
            let fail = |kind| (kind, lane);
            let map = self.tensor_map((copy.map.window, maps[i]), lane)?;
            if map.rank() != copy.at.len() {
                let text = format!("{} coordinates for a tensor of rank {}", copy.at.len(), map.rank());
                return Err(fail(FaultKind::InvalidInstruction(text)));
            }
            let at: Vec<i32> = copy.at.iter().map(|s| self.source(*s)[i] as i32).collect();
            let bytes = map.box_bytes();
            let writes = !matches!(copy.direction, Direction::In { .. } | Direction::Prefetch);
            check_place(&map, &at, writes).map_err(|text| fail(FaultKind::InvalidInstruction(text)))?;
            let tensor = TensorBox { map, at };
            let access = if writes { Access::Write } else { Access::Read };
            let combines = matches!(copy.direction, Direction::Out { reduce: Some(_), .. });
            let ends = if writes { Ends::Whole } else { Ends::Exact };
            check_rows(self.state, &mut self.warp.hint, (&tensor, ends), access).map_err(fail)?;
            let looks_on = self.state.sanitizer.is_some() || self.state.counting.is_some();
            if looks_on && !matches!(copy.direction, Direction::Prefetch) {
                let access = if combines { Access::Atomic } else { access };
                let mut pieces = Vec::new();
                rows(&tensor, ends, |_, inside| pieces.extend(inside));
                let ranges: Vec<(u64, u64)> = pieces.iter().map(|(at, range)| (*at, range.len() as u64)).collect();
                self.count_copy(&ranges, access);
                for (address, range) in pieces {
                    self.inspect_copy(lane, address, range.len() as u64, access);
                }
            }
            match copy.direction {
                Direction::In { to, barrier, mask } => {
                    let to = self.addresses(to)[i];
                    let bar = self.addresses(barrier)[i];
                    let mask = mask.map(|s| self.source(s)[i] as u32);
                    let targets = self.targets(to, (barrier.window, bar), mask, bytes).map_err(fail)?;
                    if self.state.recorder.is_some() {
                        self.record_copy(&targets);
                    }
                    let over = self.start_incoming(lane, Source::Tensor(tensor), targets, 128).map_err(fail)?;
                    self.note_map_use(lane, (copy.map.window, maps[i]), over);
                }
                Direction::Out { from, reduce } => {
                    let from = self.addresses(from)[i] as u32;
                    let reduce = match reduce {
                        None => None,
                        Some(op) => {
                            let ty = tensor.map.ty;
                            let text = || format!("elements of type {} cannot be combined so", ty.text());
                            let combined = reduction_type(op, ty).ok_or_else(|| FaultKind::InvalidInstruction(text()));
                            Some((op, combined.map_err(fail)?))
                        }
                    };
                    if self.state.recorder.is_some() {
                        self.record_copy_out(bytes);
                    }
                    let to = Destination::Tensor(tensor);
                    let over = self.start_outgoing(lane, (from, bytes), to, reduce, 128).map_err(fail)?;
                    self.note_map_use(lane, (copy.map.window, maps[i]), over);
                }
                Direction::Prefetch => {}
            }
        }
        Ok(())
    }

    /// Where a copy goes: one block, or with a mask the same place in several blocks of the cluster.
    pub(super) fn targets(
        &self,
        to: u64,
        (window, barrier): (Window, u64),
        mask: Option<u32>,
        bytes: u32,
    ) -> Result<Vec<Target>, FaultKind> {
        let barrier = self.shared.mbarrier_at(window, barrier)?;
        let (_, to) = super::access::resolve(Window::Generic, to);
        let (block, at) = self.shared.locate(to);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        let Some(mask) = mask else { return Ok(vec![Target { to: (block, at), bytes, barrier }]) };
        if mask == 0 || mask >> self.shared.blocks.len() != 0 {
            let text = format!("the mask {mask:#x} does not fit a cluster of {} blocks", self.shared.blocks.len());
            return Err(FaultKind::InvalidInstruction(text));
        }
        let blocks = (0..self.shared.blocks.len()).filter(|block| mask >> block & 1 == 1);
        Ok(blocks.map(|block| Target { to: (block, at), bytes, barrier: (block, barrier.1) }).collect())
    }
}

/// Whether a box may begin there; why not. Seen on an H200, which takes others for illegal instructions.
fn check_place(map: &TensorMap, at: &[i32], writes: bool) -> Result<(), String> {
    let bytes = i64::from(at[0]) * i64::from(map.ty.bytes());
    if bytes % 16 != 0 {
        return Err(format!("a box begins in a row at byte {bytes}, which is no multiple of 16"));
    }
    if writes && at.iter().any(|place| *place < 0) {
        return Err(format!("a copy to global memory begins before the tensor, at {at:?}"));
    }
    Ok(())
}

/// Checks that what a copy touches of a tensor exists.
fn check_rows(
    state: &mut State<'_>,
    hint: &mut usize,
    (tensor, ends): (&TensorBox, Ends),
    access: Access,
) -> Result<(), FaultKind> {
    let mut result = Ok(());
    rows(tensor, ends, |_, inside| {
        let Some((address, range)) = inside else { return };
        let found = state.memory.accessed(hint, address, range.len(), access);
        if let (Err(error), Ok(())) = (found, &result) {
            result = Err(super::access::global_fault(error));
        }
    });
    result
}

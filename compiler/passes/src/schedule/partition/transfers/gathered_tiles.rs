//! Operands of dots that are no boxes of a tensor but whose rows consist of contiguous pieces, such as rows that a list
//! selects: threads of the producer compute the addresses and copy 16 bytes at a time, beside the copies by TMA of the other
//! operand. So do they with rows of numbers whose addresses follow from loaded tiles, such as scales of listed rows.
//!
//! ```text
//! %a = load %p : tile<128x64xbf16, #l>   →   producer:   copy_async {vector = 8} from %p in a layout of its own, into a slot
//!                                                        of a ring; copy_arrive
//!                                            consumer:   mma of the slot
//! ```
//!
//! Addresses and masks are computed again in the producer, in a layout for its warps, from scalars and loads; a pointer that
//! the loop carries is carried in that layout.

use std::collections::HashSet;

use rtc_abi::SmLimits;
use rtc_ir::{Builder, Kernel, Op, OpKind, Value, constant_bits, regions, view};
use rtc_layout::Layout;

use super::super::operand_sources::is_operand;
use super::scattered_rows::MOST_ELEMENTS;
use crate::access::addresses::{Memory, loads_of_dots, memory};
use crate::laid::rematerialize::{self, Remade, is_cheap};
use crate::pass::missing;
use crate::schedule::operands::operand_layouts::order;
use crate::schedule::operands::staged::copied_width;
use crate::schedule::pipeline::stages::stages;
use crate::work::words::words_of_tile;
use crate::{PassError, matrix_unit};

/// Bytes of a copy: narrower ones take more instructions than a few warps issue beside the dots.
const PIECE: u32 = 16;
/// The most copies of a thread for a slot: each has an address in registers.
const MOST_COPIES: u32 = 16;
/// The most warps of a producer: as many as change their number of registers together.
const MOST_WARPS: u32 = 4;
/// So many copies of a thread hide the other instructions of an iteration, so that more warps would gain nothing.
const ENOUGH_COPIES: u32 = 4;

/// A tile, by the addresses that the load in the loop has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredTile {
    pointer: Value,
    mask: Option<Value>,
    /// The dimension of the tile that is contiguous in memory.
    pub inner: usize,
    /// Elements of a copy.
    pub width: u32,
}

/// The tile that an operation loads, if threads can copy it.
pub(crate) fn tile(kernel: &Kernel, load: Op) -> Option<GatheredTile> {
    let width = copied_width(kernel, load)?;
    let result = kernel.result(load, 0);
    (width * kernel.value_type(result).elem()?.bytes() == PIECE).then_some(())?;
    let inner = *order(kernel.layout_of(result)?, width)?.first()? as usize;
    let load = view::Load::at(kernel, load);
    let tile = GatheredTile { pointer: load.pointer(), mask: load.mask(), inner, width };
    (copies(tile.pieces(kernel)) <= MOST_COPIES && tile.reads(kernel).is_some()).then_some(tile)
}

/// Rows, and bytes of a row, of the smallest tile whose addresses gain by a producer: with smaller
/// ones, what a program does before its loop and the waits of its few warps cost more (fused MoE, H100: 0.5 to 0.9 of the speed).
const LEAST_ROWS: u64 = 128;
const LEAST_ROW_BYTES: u32 = 128;

/// Whether the tile that an operation loads is large enough for that, or the plan says so.
pub(crate) fn pays(kernel: &Kernel, load: Op, plan: Option<bool>) -> bool {
    let ty = kernel.value_type(kernel.result(load, 0));
    let (Some(shape), Some(elem), Some(layout)) = (ty.shape(), ty.elem(), kernel.layout_of(kernel.result(load, 0)))
    else {
        return false;
    };
    let row = order(layout, 1).map_or(0, |order| shape[order[0] as usize]);
    plan.unwrap_or(row * elem.bytes() >= LEAST_ROW_BYTES && shape.numel() / u64::from(row.max(1)) >= LEAST_ROWS)
}

/// Accumulators of all blocks on an SM from which on the copies of all warps are faster than those of a producer: its few warps
/// then issue copies for too many dots. Fused MoE, H200: 1.0 to 1.7 times as fast from 24 Ki on, 0.7 to 1.15 with 16 Ki.
const MANY_SUMS: u64 = 24 << 10;
/// Registers of a thread beside its accumulators where all warps copy.
const BESIDE_COPIES: u32 = 64;

/// Whether a loop that loads such tiles is faster if all warps copy them: without producers, so many blocks run on an SM that
/// it has many accumulators.
pub(crate) fn suits_all_warps(kernel: &Kernel, of: Op, sm: SmLimits) -> bool {
    let bytes = |value: Value| {
        let ty = kernel.value_type(value);
        ty.shape().map_or(0, |shape| shape.numel() as u32) * ty.elem().map_or(0, |elem| elem.bytes())
    };
    let operands = loads_of_dots(kernel, of).into_iter().map(|load| kernel.result(load, 0));
    let shared: u32 = operands.filter(|value| is_operand(kernel, *value)).map(bytes).sum();
    let dots = rtc_ir::walk_block(kernel, kernel.op(of).blocks[0]).into_iter();
    let dots: Vec<Op> = dots.filter(|op| matrix_unit::is_dot(kernel.kind(*op))).collect();
    let words: u32 = dots.iter().map(|dot| words_of_tile(kernel, kernel.result(*dot, 0))).sum();
    let sums: u64 =
        dots.iter().map(|dot| kernel.value_type(kernel.result(*dot, 0)).shape().map_or(0, |s| s.numel())).sum();
    let blocks = sm.occupancy(32 * kernel.options.num_warps, words + BESIDE_COPIES, shared * stages(kernel, of));
    sums * u64::from(blocks) >= MANY_SUMS
}

/// The row of numbers that an operation loads, if threads can copy it one by one.
pub(crate) fn row(kernel: &Kernel, load: Op) -> Option<GatheredTile> {
    let OpKind::Load { volatile: false, .. } = kernel.kind(load) else { return None };
    let (ty, load) = (kernel.value_type(kernel.result(load, 0)), view::Load::at(kernel, load));
    let (shape, elem) = (ty.shape()?, ty.elem()?.num()?);
    let zeros = load.other().is_none_or(|other| constant_bits(kernel, other) == Some(0));
    let is_row = shape.rank() == 1 && shape.numel() <= MOST_ELEMENTS && matches!(elem.bits(), 32 | 64);
    let tile = GatheredTile { pointer: load.pointer(), mask: load.mask(), inner: 0, width: 1 };
    (is_row && zeros && tile.reads(kernel).is_some()).then_some(tile)
}

/// The warps of a producer whose threads copy so many pieces for a slot.
pub(crate) fn warps(pieces: u32) -> u32 {
    (pieces / (32 * ENOUGH_COPIES)).next_power_of_two().clamp(1, MOST_WARPS)
}

/// The copies of each thread.
pub(crate) fn copies(pieces: u32) -> u32 {
    pieces.div_ceil(32 * warps(pieces))
}

impl GatheredTile {
    /// The pieces of the tile.
    pub fn pieces(&self, kernel: &Kernel) -> u32 {
        let shape = kernel.value_type(self.pointer).shape();
        shape.map_or(0, |shape| shape.numel() as u32 / self.width)
    }

    /// Whether nothing that it depends on, nor it, is in memory that the kernel writes.
    pub fn is_unchanged(&self, kernel: &Kernel, written: &HashSet<Memory>) -> bool {
        let reads = |pointer: Value| memory(kernel, pointer).is_some_and(|read| !written.contains(&read));
        reads(self.pointer) && self.reads(kernel).is_some_and(|pointers| pointers.into_iter().all(reads))
    }

    /// The same values by other names.
    pub fn renamed(&self, name: impl Fn(Value) -> Value) -> GatheredTile {
        GatheredTile { pointer: name(self.pointer), mask: self.mask.map(name), ..*self }
    }

    /// Computes the addresses in a layout for so many warps, and copies what is there to a buffer.
    pub fn copy(self, kernel: &mut Kernel, before: Op, buffer: Value, warps: u32) -> Result<(), PassError> {
        let shape = kernel.value_type(self.pointer).shape().ok_or_else(|| missing("a tile"))?;
        let inner = self.inner as u32;
        let order = [inner].into_iter().chain((0..shape.rank() as u32).filter(|axis| *axis != inner));
        let layout = Layout::default_blocked(&shape, warps, &order.collect::<Vec<_>>(), self.width);
        let mut made = Remade::new();
        let mut again = |value: Value| {
            rematerialize::again(kernel, &mut made, before, value, &layout).ok_or_else(|| missing("an address"))
        };
        let (pointer, mask) = (again(self.pointer)?, self.mask.map(again).transpose()?);
        let copy = OpKind::CopyAsync { vector: self.width };
        Builder::before(kernel, before).build(copy, &[pointer, buffer], &[mask], &[], &[], &[])?;
        Ok(())
    }

    /// The pointers through which loads read what the addresses and the mask follow from; `None` if threads of other numbers
    /// cannot compute these again.
    fn reads(&self, kernel: &Kernel) -> Option<Vec<Value>> {
        let mut pointers = Vec::new();
        let mut work: Vec<Value> = [self.pointer].into_iter().chain(self.mask).collect();
        let mut seen = HashSet::new();
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(slot) = regions::slot_of(kernel, value) {
                work.extend(slot.values(kernel));
            } else if let Some(op) = kernel.def_op(value) {
                can_be_repeated(kernel, op).then_some(())?;
                if let OpKind::Load { .. } = kernel.kind(op) {
                    pointers.push(view::Load::at(kernel, op).pointer());
                }
                work.extend(&kernel.op(op).operands);
            }
        }
        Some(pointers)
    }
}

/// Whether an operation gives the same values in another layout.
pub(crate) fn can_be_repeated(kernel: &Kernel, op: Op) -> bool {
    let data = kernel.op(op);
    let tiles = || data.results.iter().chain(&data.operands).any(|value| kernel.value_type(*value).shape().is_some());
    match &data.kind {
        OpKind::Load { volatile, .. } => !volatile,
        OpKind::ConvertLayout {} => true,
        kind => kernel.only_computes(op) && (is_cheap(kind) || !tiles()),
    }
}

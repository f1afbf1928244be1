//! What a producer copies for the loops with dots, by the ways in which it can: boxes of tensors by TMA, rows of numbers by
//! bulk copies, other tiles and other rows by copies of its threads.
//!
//! A way is a variant of [`Source`] and of [`Copies`], whose arms are all in this file, and a file in `transfers` that finds its
//! loads and makes the loops read them from buffers. Rings, barriers and groups (`rings.rs`) do not distinguish the ways.

pub(crate) mod gathered_tiles;
pub(crate) mod row_vectors;
pub(crate) mod scattered_rows;

use std::collections::HashSet;

use rtc_abi::Plan;
use rtc_ir::{Builder, Elem, Kernel, Loc, Op, OpKind, SharedType, Value, place_bytes};

use super::branch::branches;
use crate::PassError;
use crate::access::addresses::{Memory, memory};
use crate::access::box_access::BoxAccess;
use crate::access::box_analysis::BoxAnalysis;
use crate::laid::rematerialize::{self, Remade, is_cheap};
use crate::pass::missing;
use crate::schedule::tma::coordinates::{LastTile, Names};
use crate::schedule::tma::copy_maps::{BoxRows, CopyMaps, Other, copy_boxes, copy_maps};
use gathered_tiles::GatheredTile;
use row_vectors::Row;
use scattered_rows::ScatteredRow;

/// A tile that a loop reads from a buffer, and that a producer brings.
pub(crate) struct Transfer {
    /// The buffer, which a slot of the ring replaces.
    pub buffer: Value,
    /// What is copied to it.
    pub source: Source,
    /// The place of its load in the source, if copies have it.
    pub loc: Option<Loc>,
    /// Whether no result depends on rows of the tile that lie beside the tensor.
    pub dead_beside: bool,
    /// The number of its ring.
    pub ring: usize,
    /// The number of its group. A group has barriers of its own.
    pub group: usize,
}

/// What is copied.
#[derive(Clone)]
pub(crate) enum Source {
    /// A box of a tensor, for dots.
    Box(BoxAccess),
    /// A tile of contiguous pieces, for dots.
    GatheredTile(GatheredTile),
    /// Elements that lie side by side.
    Row(Row),
    /// Elements that lie anywhere.
    ScatteredRow(ScatteredRow),
    /// Elements at places that are loaded.
    GatheredRow(GatheredTile),
}

impl Source {
    /// For operands of dots, which dimension of the tile is innermost in memory, and how many elements are copied at a time, where
    /// threads copy.
    pub fn form(&self) -> Option<(usize, u32)> {
        match self {
            Source::Box(access) => Some((access.inner, 1)),
            Source::GatheredTile(tile) => Some((tile.inner, tile.width)),
            Source::Row(_) | Source::ScatteredRow(_) | Source::GatheredRow(_) => None,
        }
    }

    /// Whether neither it nor what it depends on is in memory that the kernel writes.
    pub fn is_unchanged(&self, kernel: &Kernel, written: &HashSet<Memory>) -> bool {
        match self {
            Source::Box(access) => memory(kernel, access.base).is_some_and(|read| !written.contains(&read)),
            Source::GatheredTile(tile) | Source::GatheredRow(tile) => tile.is_unchanged(kernel, written),
            Source::Row(row) => !written.contains(&Memory::Of(row.base)),
            Source::ScatteredRow(row) => row.is_unchanged(kernel, written),
        }
    }
}

impl Transfer {
    /// A transfer whose ring and group are still to be found.
    fn new(buffer: Value, source: Source, loc: Option<Loc>) -> Transfer {
        Transfer { buffer, source, loc, dead_beside: false, ring: 0, group: 0 }
    }

    /// The transfer of an operand of dots.
    pub fn of_operand(buffer: Value, source: Source, loc: Loc) -> Transfer {
        Transfer::new(buffer, source, Some(loc))
    }

    /// Whether dots take an operand from it.
    pub fn is_operand(&self) -> bool {
        matches!(self.source, Source::Box(_) | Source::GatheredTile(_))
    }

    /// Whether threads copy, which then arrive at the barrier each.
    pub fn is_by_threads(&self) -> bool {
        matches!(self.source, Source::ScatteredRow(_) | Source::GatheredRow(_) | Source::GatheredTile(_))
    }

    /// The pieces of a tile that threads copy.
    pub fn pieces(&self, kernel: &Kernel) -> u32 {
        match &self.source {
            Source::GatheredTile(tile) => tile.pieces(kernel),
            Source::Box(_) | Source::Row(_) | Source::ScatteredRow(_) | Source::GatheredRow(_) => 0,
        }
    }

    /// The box, if it is one.
    pub fn access(&self) -> Option<&BoxAccess> {
        match &self.source {
            Source::Box(access) => Some(access),
            Source::GatheredTile(_) | Source::Row(_) | Source::ScatteredRow(_) | Source::GatheredRow(_) => None,
        }
    }
}

/// The loads in the bodies of loops that no dot takes its operand from, and that a producer can bring nonetheless: those of
/// one way first, each in program order.
#[derive(Default)]
pub(crate) struct OtherLoads(Vec<(Op, Source)>);

impl OtherLoads {
    /// Those of some loops. A producer with `few` registers computes no addresses.
    pub fn find(known: &mut BoxAnalysis<'_>, loops: &[Op], plan: Plan, few: bool) -> OtherLoads {
        if plan.rows == Some(false) {
            return OtherLoads::default();
        }
        let kernel = known.kernel;
        let loads: Vec<Op> = loops.iter().flat_map(|of| kernel.ops(kernel.op(*of).blocks[0])).collect();
        let rows = loads.iter().filter_map(|load| Some((*load, Source::Row(row_vectors::row(known, *load)?))));
        let mut found: Vec<(Op, Source)> = rows.collect();
        let is_free = |load: &&Op| !few && found.iter().all(|(known, _)| known != *load);
        let scattered = loads.iter().filter(is_free);
        let scattered =
            scattered.filter_map(|load| Some((*load, Source::ScatteredRow(scattered_rows::row(kernel, *load)?))));
        let scattered: Vec<(Op, Source)> = scattered.collect();
        found.extend(scattered);
        let is_free = |load: &&Op| !few && found.iter().all(|(known, _)| known != *load);
        let gathered = loads.iter().filter(is_free);
        let gathered =
            gathered.filter_map(|load| Some((*load, Source::GatheredRow(gathered_tiles::row(kernel, *load)?))));
        let gathered: Vec<(Op, Source)> = gathered.collect();
        found.extend(gathered);
        OtherLoads(found)
    }

    /// Makes a loop read those that the kernel does not write from buffers, which the producer fills.
    pub fn stage(&self, kernel: &mut Kernel, of: Op, written: &HashSet<Memory>) -> Result<Vec<Transfer>, PassError> {
        let body = kernel.op(of).blocks[0];
        let mut staged = Vec::new();
        for (load, source) in &self.0 {
            if kernel.op(*load).parent == Some(body) && source.is_unchanged(kernel, written) {
                let (buffer, read) = buffer_before(kernel, of, *load)?;
                read_as_used(kernel, read);
                staged.push(Transfer::new(buffer, source.clone(), None));
            }
        }
        Ok(staged)
    }
}

/// Lets threads read from its buffer what they need of a row, where it was converted to another layout, perhaps behind
/// element-wise operations on it.
fn read_as_used(kernel: &mut Kernel, row: Value) {
    let elements = |kernel: &Kernel, value: Value| kernel.value_type(value).shape().map(|shape| shape.numel());
    let of_row = elements(kernel, row);
    let mut made = Remade::new();
    let mut work = vec![row];
    while let Some(value) = work.pop() {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::ConvertLayout {} => {
                    let Some(layout) = kernel.layout_of(kernel.result(user, 0)).cloned() else { continue };
                    if let Some(read) = rematerialize::again(kernel, &mut made, user, value, &layout) {
                        kernel.replace_op(user, read);
                    }
                }
                OpKind::ExpandDims { .. } | OpKind::Broadcast {} => work.push(kernel.result(user, 0)),
                kind if is_cheap(kind) && elements(kernel, kernel.result(user, 0)) == of_row => {
                    work.push(kernel.result(user, 0));
                }
                _ => {}
            }
        }
    }
}

/// The alignment of the buffers of rows.
const BUFFER_ALIGN: u32 = 16;

/// A buffer before a loop, from which it takes the result of a load instead, and that result.
fn buffer_before(kernel: &mut Kernel, of: Op, load: Op) -> Result<(Value, Value), PassError> {
    let ty = kernel.value_type(kernel.result(load, 0));
    let (shape, elem) = ty.shape().zip(ty.elem()).ok_or_else(|| missing("a row"))?;
    let shared = SharedType { elem, shape, layout: None, slots: 1 };
    let buffer = Builder::before(kernel, of).buffer(shared, BUFFER_ALIGN)?;
    let loaded = Builder::before(kernel, load).local_load_to(buffer, ty)?;
    kernel.replace_op(load, loaded);
    Ok((buffer, loaded))
}

/// The copies of a transfer.
pub(crate) enum Copies<'f> {
    /// By TMA, with the tensor map.
    Boxes(&'f BoxAccess, CopyMaps),
    /// By a bulk copy.
    Bulk(&'f Row),
    /// By the threads of the producer, in pieces.
    Pieces(&'f GatheredTile),
    /// By the threads of the producer.
    Threads(&'f ScatteredRow),
}

impl<'f> Copies<'f> {
    /// The copies of a transfer; their maps become parameters of the kernel, with boxes of so many rows.
    pub fn of(kernel: &mut Kernel, transfer: &'f Transfer, rows: BoxRows) -> Result<Copies<'f>, PassError> {
        match &transfer.source {
            Source::Box(access) => Copies::of_box(kernel, transfer.buffer, access, rows),
            Source::GatheredTile(tile) | Source::GatheredRow(tile) => Ok(Copies::Pieces(tile)),
            Source::Row(row) => Ok(Copies::Bulk(row)),
            Source::ScatteredRow(row) => Ok(Copies::Threads(row)),
        }
    }

    /// The copies of a box.
    pub fn of_box(
        kernel: &mut Kernel,
        buffer: Value,
        access: &'f BoxAccess,
        rows: BoxRows,
    ) -> Result<Copies<'f>, PassError> {
        Ok(Copies::Boxes(access, copy_maps(kernel, buffer, access, rows)?))
    }

    /// The bytes that a barrier receives for a tile in a buffer.
    pub fn bytes(&self, kernel: &Kernel, buffer: Value) -> u32 {
        match self {
            Copies::Boxes(_, maps) => maps.boxes.ty.bytes() * maps.boxes.parts.len() as u32,
            Copies::Bulk(_) => place_bytes(kernel.value_type(buffer)) as u32,
            Copies::Pieces(_) | Copies::Threads(_) => 0,
        }
    }

    /// The tensor maps.
    pub fn maps(&self) -> Vec<Value> {
        match self {
            Copies::Boxes(_, maps) => std::iter::once(maps.map).chain(maps.other.map(Other::map)).collect(),
            Copies::Pieces(_) | Copies::Bulk(_) | Copies::Threads(_) => Vec::new(),
        }
    }

    /// Issues them before an operation; `full` receives the bytes. Threads arrive there later, after all their copies. `last` is
    /// about operands of few rows.
    pub fn issue(
        &self,
        kernel: &mut Kernel,
        before: Op,
        names: &Names<'_>,
        (place, full): (Value, Value),
        last: Option<LastTile>,
    ) -> Result<(), PassError> {
        match self {
            Copies::Boxes(access, maps) => fill(kernel, before, names, (access, maps), (place, full), last),
            Copies::Bulk(row) => {
                let at = names.sum_in(kernel, before, &row.at, Elem::I64)?;
                let mut builder = Builder::before(kernel, before);
                let pointer = builder.addptr(row.base, at)?;
                builder.build(OpKind::CopyBulk {}, &[pointer, place, full], &[], &[], &[], &[])?;
                Ok(())
            }
            Copies::Pieces(tile) => {
                let warps = kernel.group_of(before).warps;
                tile.renamed(|value| names.of(value)).copy(kernel, before, place, warps)
            }
            Copies::Threads(row) => {
                let warps = kernel.group_of(before).warps;
                row.renamed(|value| names.of(value)).copy(kernel, before, place, warps)
            }
        }
    }
}

/// Copies an access to a buffer; `full` receives its bytes.
fn fill(
    kernel: &mut Kernel,
    before: Op,
    names: &Names<'_>,
    (access, maps): (&BoxAccess, &CopyMaps),
    (mut place, full): (Value, Value),
    last: Option<LastTile>,
) -> Result<(), PassError> {
    let filled = kernel.value_type(place).as_shared().ok_or_else(|| missing("a buffer"))?;
    let at = names.place(kernel, before, access, &filled.shape)?;
    if access.inner == 0 {
        place = Builder::before(kernel, before).shared_trans_of(place, &[1, 0])?;
    }
    let map = names.of(maps.map);
    match maps.other {
        None => copy_boxes(kernel, before, map, &maps.boxes, place, full, &at),
        Some(Other::Nan(flag, other)) => {
            let ends = branches(kernel, before, flag)?;
            copy_boxes(kernel, ends[0], names.of(other), &maps.boxes, place, full, &at)?;
            copy_boxes(kernel, ends[1], map, &maps.boxes, place, full, &at)
        }
        Some(Other::LastRows(other)) => {
            let last = last.ok_or_else(|| missing("the last tile"))?;
            let at = at.in_last(kernel, before, last)?;
            let map = Builder::before(kernel, before).select(last.is_last, names.of(other), map)?;
            copy_boxes(kernel, before, map, &maps.boxes, place, full, &at)
        }
    }
}

//! Splits conversions through shared memory into a store and a load, so that the buffer, its layout and the barrier
//! between the two are explicit.
//!
//! ```text
//! %y = convert_layout %x : tile<.., #l1>   →   %b = alloc_shared {align = 16} : shared<.., #s0>
//!                                              local_store %x, %b
//!                                              %y = local_load %b : tile<.., #l1>
//! ```
//!
//! A value from before a loop is stored there, and only loaded in the loop, if it is small or an SM holds as many blocks with a
//! buffer of its own for it.
//!
//! A later conversion of the same value loads from the same buffer if that is no more expensive than a store and a load
//! of its own, and if nothing between the two uses shared memory, so that the longer live range of the buffer costs no
//! space.

use std::collections::HashMap;

use rtc_abi::{Feature, SmLimits};
use rtc_ir::effects::Space;
use rtc_ir::{
    Block, Builder, Kernel, Op, OpKind, Phase, SCRATCH_ALIGN, Value, ValueDef, place_bytes, scratch_bytes, view,
};
use rtc_layout::{
    Conversion, Layout, MatrixInstructions, SharedAccess, SharedLayout, SharedPlan, conversion, shared_plan,
};

use crate::work::registers_or_set;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "split-conversions", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Bytes that a value may take of shared memory throughout a loop, however many blocks an SM holds.
const FEW_BYTES: u64 = 4096;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let matrix = MatrixInstructions { load: true, store: cx.target.has(Feature::Stmatrix) };
    let mut plans: HashMap<(Layout, Layout, u32), SharedPlan> = HashMap::new();
    let mut stored = Stored::default();
    let mut space = None;
    for op in rtc_ir::walk(kernel) {
        stored.enter(kernel, op);
        if !is_split(kernel, op) {
            if touches_shared(kernel, op) {
                stored.here.clear();
            }
            continue;
        }
        let (source, result) = (view::ConvertLayout::at(kernel, op).source(), kernel.result(op, 0));
        let ty = kernel.value_type(result);
        let (Some(from), Some(to), Some(elem)) = (kernel.layout_of(source), kernel.layout_of(result), ty.elem()) else {
            continue;
        };
        let (from, to, bits) = (from.clone(), to.clone(), elem.bytes() * 8);
        let plan =
            plans.entry((from.clone(), to.clone(), bits)).or_insert_with(|| shared_plan(&from, &to, bits, matrix));
        let suits = |layout: &SharedLayout| {
            let load = SharedAccess::least_cost(layout, &to, bits, matrix.load, false);
            load <= plan.store.cost(true) + plan.load.cost(false)
        };
        let buffer = match stored.find(source, suits) {
            Some(buffer) => buffer,
            None => {
                let Some(place) = kernel.shared_type(elem, &plan.shared, 1) else { continue };
                let bytes = place.slot_bytes();
                let outside = before_loops(kernel, op, source).filter(|_| {
                    bytes <= FEW_BYTES || space.get_or_insert_with(|| SharedSpace::of(kernel, cx)).admits(bytes)
                });
                let mut builder = Builder::before(kernel, outside.unwrap_or(op));
                let buffer = builder.buffer(place, SCRATCH_ALIGN)?;
                builder.local_store(source, buffer)?;
                stored.add(outside, source, buffer, plan.shared.clone());
                buffer
            }
        };
        let loaded = Builder::before(kernel, op).local_load_to(buffer, ty)?;
        kernel.replace_op(op, loaded);
    }
    Ok(())
}

/// The buffers whose content is known.
#[derive(Default)]
struct Stored {
    /// Those of the current block: they end with the next use of shared memory by others.
    here: HashMap<Value, (Value, SharedLayout)>,
    /// Those that are stored before a loop, until its end.
    before: Vec<(Op, Value, Value, SharedLayout)>,
    /// The current block.
    within: Option<Block>,
}

impl Stored {
    /// Forgets what is not known at an operation.
    fn enter(&mut self, kernel: &Kernel, op: Op) {
        let block = kernel.op(op).parent;
        if block == self.within {
            return;
        }
        self.here.clear();
        self.within = block;
        let around = |op: &Op| kernel.block(kernel.op(*op).parent?).parent;
        let loops: Vec<Op> = std::iter::successors(Some(op), around).collect();
        self.before.retain(|(of, ..)| loops.contains(of));
    }

    /// The buffer that holds a value in a layout that suits.
    fn find(&self, source: Value, suits: impl Fn(&SharedLayout) -> bool) -> Option<Value> {
        let here = self.here.get(&source).map(|(buffer, layout)| (buffer, layout));
        let before = self.before.iter().filter(|(_, value, ..)| *value == source);
        let mut all = here.into_iter().chain(before.map(|(_, _, buffer, layout)| (buffer, layout)));
        all.find(|(_, layout)| suits(layout)).map(|(buffer, _)| *buffer)
    }

    /// Adds one that is stored now, or before a loop.
    fn add(&mut self, before: Option<Op>, source: Value, buffer: Value, layout: SharedLayout) {
        self.here.clear();
        match before {
            Some(of) => self.before.push((of, source, buffer, layout)),
            None => _ = self.here.insert(source, (buffer, layout)),
        }
    }
}

/// How much shared memory a kernel can take before an SM holds fewer blocks of it.
struct SharedSpace {
    /// The bytes of the buffers that are there.
    buffers: u64,
    /// The bytes of the largest of those that operations need for themselves.
    largest: u64,
    /// The most bytes with which an SM holds as many blocks.
    room: u64,
}

impl SharedSpace {
    fn of(kernel: &Kernel, cx: &PassContext) -> SharedSpace {
        let ops = rtc_ir::walk(kernel);
        let (buffers, largest) = (buffer_bytes(kernel, &ops), most_for_an_operation(kernel, &ops));
        let (sm, threads) = (cx.target.sm, kernel.threads_per_block());
        let bytes = u32::try_from(buffers + largest).unwrap_or(u32::MAX / 2);
        let by_registers = SmLimits::blocks_by_registers(registers_or_set(kernel), threads).max(1);
        let blocks = by_registers.min(sm.blocks_beside_registers(threads, bytes));
        let room = if blocks == 0 { 0 } else { sm.shared_for(blocks).min(cx.target.shared_bytes_max) };
        SharedSpace { buffers, largest, room: room.into() }
    }

    /// Whether there is space for a buffer of its own for a value, which then is taken.
    fn admits(&mut self, bytes: u64) -> bool {
        let fits = self.buffers + bytes + self.largest <= self.room;
        if fits {
            self.buffers += bytes;
        }
        fits
    }
}

/// The bytes of the buffers and barriers that operations allocate.
pub(crate) fn buffer_bytes(kernel: &Kernel, ops: &[Op]) -> u64 {
    let is_place = |op: &&Op| matches!(kernel.kind(**op), OpKind::AllocShared { .. } | OpKind::AllocBarriers { .. });
    ops.iter().filter(is_place).map(|op| place_bytes(kernel.value_type(kernel.result(*op, 0)))).sum()
}

/// The most bytes that one of these operations needs for itself, such as a conversion.
pub(crate) fn most_for_an_operation(kernel: &Kernel, ops: &[Op]) -> u64 {
    let bytes = |op: &Op| match kernel.kind(*op) {
        OpKind::ConvertLayout {} if is_split(kernel, *op) => {
            let ty = kernel.value_type(kernel.result(*op, 0));
            let elements = ty.shape().map_or(0, |shape| shape.numel());
            elements.saturating_mul(ty.elem().map_or(0, |elem| elem.bytes()).into())
        }
        _ => scratch_bytes(kernel, *op).map_or(0, u64::from),
    };
    ops.iter().map(bytes).max().unwrap_or(0)
}

/// The outermost of the loops around a conversion in which its source does not change.
fn before_loops(kernel: &Kernel, conversion: Op, source: Value) -> Option<Op> {
    let around = |op: Op| kernel.block(kernel.op(op).parent?).parent;
    let (mut inner, mut found) = (conversion, None);
    while let Some(of) = around(inner).filter(|of| matches!(kernel.kind(*of), OpKind::ForRange { .. })) {
        let inside = match kernel.value(source).def {
            ValueDef::Result(made, _) => rtc_ir::walk_op(kernel, of).contains(&made),
            ValueDef::Arg(block, _) => kernel.block(block).parent == Some(of),
        };
        if inside {
            break;
        }
        (inner, found) = (of, Some(of));
    }
    found
}

/// Whether an operation is a conversion through shared memory.
pub(crate) fn is_split(kernel: &Kernel, op: Op) -> bool {
    let Some(converted) = view::ConvertLayout::of(kernel, op) else { return false };
    match (kernel.layout_of(converted.source()), kernel.layout_of(kernel.result(op, 0))) {
        (Some(from), Some(to)) => conversion(from, to) == Conversion::Shared,
        _ => false,
    }
}

/// Whether an operation uses shared memory, or will: scratch buffers come later.
fn touches_shared(kernel: &Kernel, op: Op) -> bool {
    let data = kernel.op(op);
    !data.blocks.is_empty()
        || scratch_bytes(kernel, op).is_some()
        || kernel.effects(op).any(|(effect, _)| matches!(effect.space, Space::Shared | Space::Barrier))
}

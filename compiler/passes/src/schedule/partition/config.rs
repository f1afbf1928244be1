//! The form that warp specialization gives a kernel, and what identifies its buffers.

use rtc_ir::{Kernel, Op, OpKind, Value};

use super::transfers::gathered_tiles;

/// What the warps of a partition do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Copy tiles into rings.
    Producer,
    /// Compute and store.
    Consumer,
}

/// A partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionSpec {
    /// What it does.
    pub role: Role,
    /// Its warps that do something.
    pub warps: u32,
    /// Warps that it takes of the block, for numbers of registers are changed by four warps together.
    pub taken: u32,
    /// Registers of a thread.
    pub registers: u32,
}

/// Registers of a thread that copies.
const PRODUCER_REGISTERS: u32 = 40;
/// The same if the consumers need all registers that they can get.
const FEW_REGISTERS: u32 = 24;

/// Registers of a thread for the address of a copy, its mask and what they follow from.
const COPY_REGISTERS: u32 = 4;

/// The partitions beside the consumer; with `few` registers if it needs all that it can get. Threads copy so many `pieces` of
/// tiles for a slot.
pub(crate) fn beside_consumer(few: bool, pieces: u32) -> Vec<PartitionSpec> {
    let least = if few { FEW_REGISTERS } else { PRODUCER_REGISTERS };
    let warps = gathered_tiles::warps(pieces);
    let registers = least + gathered_tiles::copies(pieces) * COPY_REGISTERS;
    vec![PartitionSpec { role: Role::Producer, warps, taken: 4, registers: registers.next_multiple_of(8) }]
}

/// The numbers of the new form.
#[derive(Clone)]
pub(crate) struct PartitionConfig {
    /// The partitions.
    pub partitions: Vec<PartitionSpec>,
    /// Registers that each starts with.
    pub at_start: u32,
    /// Blocks on an SM.
    pub blocks: u32,
    /// Slots of the rings.
    pub slots: u32,
    /// Bytes of results that are stored to shared memory at a time, to be copied from there; `None`: they are stored
    /// directly.
    pub stored: Option<u32>,
    /// Whether results that are stored directly change their layout in pieces.
    pub in_pieces: bool,
    /// Whether that waits for the next program.
    pub deferred: bool,
}

/// The buffer behind a view of one.
pub(crate) fn buffer_of(kernel: &Kernel, value: Value) -> Option<Value> {
    kernel.allocation(value).map(|made| kernel.result(made, 0))
}

/// Whether a buffer is a ring that copies fill.
pub(crate) fn is_ring(kernel: &Kernel, alloc: Op) -> bool {
    let fills = |op: Op| {
        matches!(kernel.kind(op), OpKind::CopyDesc {}) && kernel.allocation(kernel.operand(op, 1)) == Some(alloc)
    };
    matches!(kernel.kind(alloc), OpKind::AllocShared { .. }) && rtc_ir::walk(kernel).into_iter().any(fills)
}

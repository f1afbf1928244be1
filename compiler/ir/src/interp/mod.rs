//! The interpreter: the definition of the operations.
//!
//! It runs the programs of a grid one after the other, axis x fastest, each operation on whole tiles. There are two
//! storages behind one interface ([`Storage`]): whole tiles in row-major order, and from phase `Laid` on the registers
//! of all threads, placed by the layouts, in which shape operations move data only within a thread, so that a wrong
//! layout is detected. Results that a GPU leaves unspecified are defined here:
//!
//! - `reduce` combines element `i` with element `i + n/2` of the axis, then halves `n`, until one is left;
//! - `scan` combines one element after the other;
//! - `dot` adds products to the accumulator in ascending order of K: see `dot.rs`;
//! - stores and atomics of one operation happen in row-major order of the elements;
//! - approximate functions are the correctly rounded ones, up to the platform's `f64` library.
//!
//! A [`Fault`] ends the launch: an access outside of all allocations, a misaligned one, a failed assertion, a broken
//! promise, a limit of steps, an interrupt. A [`Finding`] is recorded, and the launch continues: reads of uninitialized
//! memory, 32-bit overflow in the computation of an address, indices out of range.
//!
//! | file | holds |
//! | --- | --- |
//! | `launch.rs` | arguments, one program after the other |
//! | `machine.rs` | the state of a launch, dispatch over the operations |
//! | `frame.rs`, `control.rs` | the stack of executed blocks; loops and branches |
//! | `scheduler.rs` | warp groups: their order, and their waits |
//! | `value.rs` | values, placement by layouts |
//! | `elementwise.rs` | element-wise operations, with shortcuts for common ones |
//! | `shape.rs`, `reduce.rs`, `dot.rs`, `pick.rs` | operations over several elements |
//! | `access.rs`, `atomics.rs` | global memory |
//! | `mma.rs` | dots with operands in shared memory |
//! | `copies.rs` | asynchronous copies, barriers, waits |
//! | `buffers.rs` | operations on buffers and barriers |
//! | `shared.rs`, `mbarrier.rs` | shared memory, asynchronous copies; barriers |
//! | `message.rs` | prints and assertions |
//! | `open.rs`, `filling.rs`, `overlay.rs` | results that the language leaves unspecified, and kernels that depend on them; launches that change nothing |
//! | `memory.rs`, `fault.rs` | memory of the host; faults and findings |

mod access;
mod atomics;
mod blocks;
mod buffers;
mod control;
mod copies;
mod dot;
mod elementwise;
mod fault;
mod filling;
mod frame;
mod hints;
mod launch;
mod machine;
mod mbarrier;
mod memory;
mod message;
mod mma;
mod open;
mod overflow;
mod overlay;
mod pick;
mod reduce;
mod scheduler;
mod shape;
mod shared;
mod value;

pub use fault::{Fault, FaultKind, Finding, FindingKind, Waiting};
pub use launch::run;
#[cfg(test)]
pub(crate) use launch::traced;
#[cfg(test)]
pub(crate) use machine::Machine;
pub use mbarrier::BarrierError;
pub use memory::{GlobalMemory, HostMemory, MemoryError, Nearest, ReadState};
pub use message::full_prefix;
pub use open::{OpenResult, Reached, leaning};
pub use scheduler::Schedule;
pub use shared::{SharedError, Start};

use crate::Op;
use cranelift_entity::EntitySet;
use std::sync::atomic::AtomicBool;

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchConfig {
    /// Programs along x, y, z.
    pub grid: [u32; 3],
    /// One per parameter of the kernel, in order.
    pub args: Vec<ArgValue>,
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgValue {
    /// An address.
    Pointer(u64),
    /// An integer, reduced to the width of the parameter.
    Int(i64),
    /// A float; rounded to the parameter to nearest even, but truncated for bf16, as launches do.
    Float(f64),
    /// The bits of any value.
    Bits(u64),
    /// A tensor descriptor.
    Desc(DescArg),
}

/// A tensor in global memory; its element type and the box are those of the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DescArg {
    /// Address of the first element.
    pub base: u64,
    /// Sizes, outermost first; as many count as the parameter has dimensions.
    pub shape: [u64; 5],
    /// Bytes from one index to the next, outermost first; the elements of the innermost dimension are neighbours.
    pub strides: [u64; 5],
    /// Whether copies fill with NaN outside of the tensor, not zero.
    pub pads_nan: bool,
    /// Whether copies round floats of 32 bits to `tf32`, to nearest, ties to even.
    pub rounds_tf32: bool,
    /// The rows of the box, where they are not as many as the parameter says; see [`crate::MapSource::shrinks`].
    pub rows: Option<u32>,
}

/// How a launch is run, and what ends it early.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// The most steps of all programs together; an operation on a tile takes one step for each element.
    pub max_steps: u64,
    /// The most operations of one program, after which it is taken to run forever; `None` is no limit. An operation on a
    /// tile counts once for every 32 elements.
    pub max_operations: Option<u64>,
    /// Ends the launch as soon as it is true.
    pub interrupt: Option<&'a AtomicBool>,
    /// How tiles are held.
    pub storage: Storage,
    /// The order of the warp groups of a program.
    pub schedule: Schedule,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            max_steps: 1 << 40,
            max_operations: None,
            interrupt: None,
            storage: Storage::Tiles,
            schedule: Schedule::RoundRobin,
        }
    }
}

/// How tiles are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As whole tiles; layouts play no part.
    Tiles,
    /// In the registers of threads, as the layouts say; from phase `Laid` on.
    Registers,
}

/// The result of a completed launch in addition to memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The output, in order.
    pub printed: String,
    /// The findings, each once per operation.
    pub findings: Vec<Finding>,
    /// Steps taken.
    pub steps: u64,
    /// The operations that were run at least once.
    pub ran: EntitySet<Op>,
}

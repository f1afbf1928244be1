//! Warps against time: what each warp of a cluster did, on the clock of a simple model of an SM.
//!
//! The emulator has no clock. It records the order of a cluster's events and their dependencies exactly (which copy an
//! arrival or a wait refers to, which load a register comes from), and [`Trace::replay`] assigns times by a [`Model`].
//! So the order and the overlap that the program permits are facts, and the lengths are estimates.
//!
//! ```
//! use rtc_emulator::timeline::{BarKind, Model};
//! use rtc_emulator::{LaunchConfig, Memory, Program};
//! let ptx = "
//! .version 8.3
//! .target sm_80
//! .address_size 64
//! .visible .entry copy(.param .u64 x) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<2>;
//!     ld.param.b64 %rd1, [x];
//!     ld.global.b32 %r1, [%rd1];
//!     add.s32 %r2, %r1, 1;
//!     st.global.b32 [%rd1], %r2;
//!     ret;
//! }";
//! let program = Program::load(ptx).expect("legal PTX");
//! let mut memory = Memory::new();
//! let params = memory.alloc(128, 16, "x").to_le_bytes();
//! let config = LaunchConfig { params: &params, records: true, ..LaunchConfig::new("copy") };
//! let trace = program.launch(&mut memory, &config).expect("no fault").trace.expect("it was asked for");
//! let timeline = trace.replay(&Model::SM_90);
//! // The addition waits for the load.
//! assert!(timeline.bars.iter().any(|bar| bar.kind == BarKind::Wait && bar.end - bar.start > 400));
//! ```

mod model;
mod replay;

pub use model::Model;

use crate::SourceLocation;

/// The events of one cluster, warp by warp, with their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Events of each warp, in its order.
    pub(crate) warps: Vec<Vec<Event>>,
    /// The instructions that events name.
    pub(crate) instructions: Vec<Instruction>,
    /// Warps of a block.
    pub(crate) warps_per_block: u32,
    /// Whether events are missing at the end.
    pub(crate) is_truncated: bool,
}

/// An instruction of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its line in the PTX, from 1.
    pub ptx_line: u32,
    /// Its text.
    pub text: String,
    /// Its place in the source, by `.loc`.
    pub location: Option<SourceLocation>,
}

/// An event of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its number in the trace.
    pub id: u32,
    /// Index of its instruction.
    pub instruction: u32,
    /// Instructions of the warp up to this one, since the event before.
    pub issued: u32,
    /// The iteration of the innermost loop around it.
    pub iteration: Option<u32>,
    /// Its effect.
    pub action: Action,
}

/// An object that warps wait for; each has one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A phase of an mbarrier: block, address, number of the phase.
    Phase(u32, u32, u32),
    /// A barrier of a block: block, number of the barrier, number of its use.
    Barrier(u32, u32, u32),
    /// A use of the cluster's barrier.
    Cluster(u32),
}

/// Copies that a wait names together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// A group of `cp.async` of the warp, by number.
    Committed(u32),
    /// Copies that arrive at keys.
    Arriving(Vec<Key>),
}

impl Group {
    /// Where copies arrive.
    pub fn keys(&self) -> &[Key] {
        match self {
            Group::Committed(_) => &[],
            Group::Arriving(keys) => keys,
        }
    }
}

/// The effect of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A load of global or shared memory into registers.
    Load { bytes: u64, is_global: bool },
    /// A store or an atomic.
    Store { bytes: u64, is_global: bool },
    /// An asynchronous copy into shared memory.
    Copy { bytes: u64, to: u32, group: Group },
    /// An asynchronous copy out of shared memory.
    CopyOut { bytes: u64 },
    /// An MMA of the warp: operations in units of 16-bit floats.
    Mma { flops: u64, is_async: bool },
    /// A wait for earlier events of the warp: copies, MMAs, or loads by the use of their registers. With `reads`, only until
    /// copies have read their source.
    After { events: Vec<u32>, reads: bool },
    /// An arrival, after events of the warp.
    Arrive { key: Key, events: Vec<u32> },
    /// A wait for all arrivals of a key.
    Await { key: Key },
    /// An arrival and a wait.
    Meet { key: Key },
    /// The end of the warp.
    End,
}

/// The kind of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BarKind {
    /// Issue of other instructions.
    Compute,
    /// A load into registers, from its issue until the data is there.
    Load,
    /// A store or an atomic.
    Store,
    /// An asynchronous copy into shared memory, from its issue until the data is there.
    Copy,
    /// An asynchronous copy out of shared memory.
    CopyOut,
    /// An MMA on the tensor core.
    Mma,
    /// A wait for a copy, an MMA, a load or an mbarrier.
    Wait,
    /// A wait at a barrier of the block or of the cluster.
    Barrier,
}

impl BarKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            BarKind::Compute => "compute",
            BarKind::Load => "load",
            BarKind::Store => "store",
            BarKind::Copy => "copy",
            BarKind::CopyOut => "copy-out",
            BarKind::Mma => "mma",
            BarKind::Wait => "wait",
            BarKind::Barrier => "barrier",
        }
    }
}

/// A stretch of time of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The warp in the cluster.
    pub warp: u32,
    /// Its kind.
    pub kind: BarKind,
    /// First cycle.
    pub start: u64,
    /// The cycle after the last.
    pub end: u64,
    /// Index of its first instruction in [`Timeline::instructions`].
    pub instruction: u32,
    /// Events in it: copies of one tile are one bar.
    pub events: u32,
    /// Bytes that it moves.
    pub bytes: u64,
    /// The iteration of the innermost loop in which it was issued.
    pub iteration: Option<u32>,
    /// Of a copy into shared memory: the buffer of the ring that it fills.
    pub stage: Option<u32>,
    /// Of a copy into shared memory: the first wait for it.
    pub awaited: Option<Awaited>,
}

/// The first wait for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The warp that waits.
    pub warp: u32,
    /// Its iteration at the wait.
    pub iteration: Option<u32>,
    /// The iterations between that which this warp was in when the copy was issued and the wait.
    pub ahead: Option<u32>,
    /// The cycle at which the wait was over.
    pub end: u64,
}

/// Bars of all warps of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Bars by warp, then by start.
    pub bars: Vec<Bar>,
    /// The instructions that bars name.
    pub instructions: Vec<Instruction>,
    /// Warps of a block.
    pub warps_per_block: u32,
    /// Warps of the cluster.
    pub warps: u32,
    /// Cycles until the last event.
    pub cycles: u64,
    /// Whether events are missing at the end.
    pub is_truncated: bool,
}

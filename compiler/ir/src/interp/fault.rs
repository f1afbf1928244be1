//! The faults and findings of a launch.

use std::fmt;

use rtc_source::Span;

use super::Nearest;
use super::shared::SharedError;
use super::{OpenResult, Reached};
use crate::{HintKind, Kernel, Loc};

/// Why a launch ended early.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Mnemonic of the operation; `None` if the launch did not start.
    pub op: Option<&'static str>,
    /// Where the operation comes from.
    pub span: Option<Span>,
    /// The calls that were inlined on the way there, innermost first.
    pub callers: Vec<Span>,
    /// The program, as x, y, z.
    pub program: [u32; 3],
    /// The element of the tile, for operations on tiles.
    pub element: Option<Vec<u32>>,
    /// The output until then.
    pub printed: String,
    /// Earlier findings: the address of a bad access may have overflowed.
    pub findings: Vec<Finding>,
}

/// The reasons why a launch ends.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An access that lies in no allocation.
    OutOfBounds {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        size: u32,
        /// The allocation closest to it.
        nearest: Option<Nearest>,
    },
    /// An access whose address is no multiple of its size.
    Misaligned {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        size: u32,
    },
    /// A stride of a tensor map that is negative or no multiple of 16 bytes.
    Stride {
        /// The stride.
        bytes: i64,
        /// Its dimension.
        axis: usize,
    },
    /// A write to memory that is read-only.
    ReadOnly {
        /// Its address.
        address: u64,
    },
    /// A failed assertion.
    Assertion {
        /// Its message.
        message: String,
        /// Its file.
        file: String,
        /// Its line.
        line: u32,
    },
    /// A false condition of `assume`.
    BrokenPromise,
    /// A loop with a step that is not positive.
    LoopStep(i128),
    /// The step limit was reached.
    StepLimit(u64),
    /// A program executed more operations than one may: see [`RunOptions`](super::RunOptions).
    OperationLimit(u64),
    /// The launch was interrupted: see [`RunOptions`](super::RunOptions).
    Interrupted,
    /// A use of shared memory that has no defined result.
    Shared(SharedError),
    /// No warp group can go on, now or ever.
    Deadlock(Vec<Waiting>),
    /// Threads that should hold copies of one element hold different values, or data would have to cross threads: the
    /// layouts are wrong.
    Layout(String),
    /// The operation cannot be interpreted.
    Unsupported(String),
    /// The launch does not fit the kernel.
    Launch(String),
}

/// A warp group that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Its number; the one that runs the body of the kernel is 0.
    pub group: u32,
    /// Mnemonic of the operation that waits.
    pub op: &'static str,
    /// Where that comes from.
    pub span: Option<Span>,
    /// The object of the wait.
    pub reason: String,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { group, op, reason, .. } = self;
        match group.checked_sub(1) {
            None => write!(f, "the body")?,
            Some(partition) => write!(f, "partition {partition}")?,
        }
        write!(f, " waits in `{op}` for {reason}")
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { address, size, nearest } => {
                write!(f, "access of {size} bytes at {address:#x} is out of bounds")?;
                match nearest {
                    Some(nearest) => write!(f, ": {}", nearest.relation(*address)),
                    None => Ok(()),
                }
            }
            FaultKind::Misaligned { address, size } => {
                write!(f, "access of {size} bytes at {address:#x} is misaligned")
            }
            FaultKind::Stride { bytes, axis } => {
                let wrong = if *bytes < 0 { "less than 0" } else { "no multiple of 16" };
                write!(f, "the stride of dimension {axis} of a tensor map is {bytes} bytes, {wrong}")
            }
            FaultKind::ReadOnly { address } => write!(f, "write to read-only memory at {address:#x}"),
            FaultKind::Assertion { message, file, line } => {
                write!(f, "{file}:{line}: assertion failed")?;
                if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
            }
            FaultKind::BrokenPromise => f.write_str("the condition of `assume` does not hold"),
            FaultKind::LoopStep(step) => write!(f, "the step of a loop is {step}, not positive"),
            FaultKind::StepLimit(limit) => write!(f, "the limit of {limit} steps is reached"),
            FaultKind::OperationLimit(limit) => {
                write!(f, "endless loop: the program executed more than {limit} operations")
            }
            FaultKind::Interrupted => f.write_str("the launch was interrupted"),
            FaultKind::Shared(error) => error.fmt(f),
            FaultKind::Deadlock(waiting) => {
                f.write_str("deadlock: no warps can go on")?;
                waiting.iter().try_for_each(|group| write!(f, "; {group}"))
            }
            FaultKind::Layout(text) | FaultKind::Unsupported(text) | FaultKind::Launch(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(op) = self.op {
            let [x, y, z] = self.program;
            write!(f, " (in `{op}`, program ({x}, {y}, {z})")?;
            if let Some(element) = &self.element {
                write!(f, ", element {element:?}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// Something that looks wrong but did not end the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// Mnemonic of the operation.
    pub op: &'static str,
    /// Where the operation comes from.
    pub span: Option<Span>,
    /// The calls that were inlined on the way there, innermost first.
    pub callers: Vec<Span>,
    /// The first program that showed it.
    pub program: [u32; 3],
    /// The element of the tile, for operations on tiles.
    pub element: Option<Vec<u32>>,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A read of uninitialized memory.
    UninitializedRead {
        /// Its address.
        address: u64,
    },
    /// A 32-bit operation on the way to an address wrapped.
    AddressOverflow,
    /// A read of uninitialized shared memory.
    UnwrittenShared,
    /// An index of `gather`, or a value of `histogram`, out of range.
    IndexOutOfRange {
        /// The index.
        index: i64,
    },
    /// A promise of `multiple_of`, `max_contiguous` or `max_constancy` that does not hold.
    FalsePromise {
        /// Which.
        kind: HintKind,
        /// The message.
        promised: u32,
        /// The number that breaks it.
        number: i64,
    },
    /// The launch depends on what the language leaves open; only [`leaning`](super::leaning) looks for that.
    Open {
        /// What.
        what: OpenResult,
        /// The output that depends on it.
        reached: Reached,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FindingKind::UninitializedRead { address } => write!(f, "memory at {address:#x} is read but never written"),
            FindingKind::UnwrittenShared => f.write_str("shared memory is read but never written"),
            FindingKind::AddressOverflow => f.write_str("a 32-bit number on the way to an address overflows"),
            FindingKind::IndexOutOfRange { index } => write!(f, "index {index} is out of range"),
            FindingKind::Open { what, reached } => write!(f, "{what}, and {reached}"),
            FindingKind::FalsePromise { kind, promised, number } => {
                let name = match kind {
                    HintKind::MultipleOf => "multiple_of",
                    HintKind::MaxContiguous => "max_contiguous",
                    HintKind::MaxConstancy => "max_constancy",
                };
                write!(f, "the promise `{name}` of {promised} does not hold for {number}")
            }
        }?;
        let [x, y, z] = self.program;
        write!(f, " (in `{}`, program ({x}, {y}, {z})", self.op)?;
        if let Some(element) = &self.element {
            write!(f, ", element {element:?}")?;
        }
        f.write_str(")")
    }
}

/// Where an operation comes from, then the calls on the way there.
pub(super) fn spans(kernel: &Kernel, loc: Loc) -> Vec<Span> {
    let places = std::iter::successors(Some(kernel.loc(loc)), |data| data.caller.map(|loc| kernel.loc(loc)));
    places.flat_map(|data| data.span).collect()
}

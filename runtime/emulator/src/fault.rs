//! Faults of PTX execution, with their location: kernel, block, thread, PTX line, source line.

use std::fmt;

use crate::finding::Finding;
use crate::sanitize::Report;

/// The kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atomic => "atomic access",
        })
    }
}

/// A state space, as far as faults distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory (and constant memory).
    Global,
    /// Shared memory of a block.
    Shared,
    /// A thread's local memory.
    Local,
    /// Kernel or function parameters.
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Param => "parameter",
        })
    }
}

/// The allocation nearest to a bad address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Name given at allocation.
    pub name: String,
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// True if it was freed before the access.
    pub freed: bool,
    /// True for constant memory.
    pub read_only: bool,
}

/// An access to global memory outside every live allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// Read, write or atomic.
    pub access: Access,
    /// First address of the access.
    pub address: u64,
    /// Its size.
    pub bytes: u32,
    /// The nearest allocation, if there is any.
    pub near: Option<Near>,
}

impl std::error::Error for AccessError {}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out-of-bounds {} of {} bytes at {:#x}", self.access, self.bytes, self.address)?;
        write_near(f, self.address, self.bytes, self.near.as_ref())
    }
}

/// Another instruction that a fault names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The instruction as PTX text.
    pub instruction: String,
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// Line in the source, where the PTX has `.loc`.
    pub location: Option<SourceLocation>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at PTX line {}", self.instruction, self.ptx_line)
    }
}

/// The kind of a fault with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside every live allocation or window.
    OutOfBounds {
        /// Read, write or atomic.
        access: Access,
        /// State space of the address.
        space: Space,
        /// First address of the access.
        address: u64,
        /// Its size.
        bytes: u32,
        /// Nearest allocation (global), or the window (shared, local, parameters).
        near: Option<Near>,
    },
    /// An address that is not a multiple of what the access needs.
    Misaligned {
        /// Read, write or atomic.
        access: Access,
        /// State space of the address.
        space: Space,
        /// The address.
        address: u64,
        /// It must be a multiple of this.
        required: u32,
    },
    /// Threads of one warp wait at different barriers or `.sync` instructions, so none can go on.
    DivergentBarrier {
        /// Where each group of lanes waits.
        waiting: String,
    },
    /// All warps left wait for others that never come.
    Deadlock {
        /// Where each warp waits.
        waiting: String,
    },
    /// Shared memory that an asynchronous copy writes was accessed before a wait for the copy.
    NotArrived {
        /// The access.
        access: Access,
        /// First byte concerned, in the block's shared memory.
        address: u64,
        /// The copy.
        copy: Box<Site>,
        /// True if the copy had completed, but not according to the warp's clock.
        arrived: bool,
    },
    /// Shared memory that an asynchronous instruction reads was written before a wait for the reads.
    StillRead {
        /// First byte concerned, in the block's shared memory.
        address: u64,
        /// The reader.
        reader: Box<Site>,
    },
    /// Two warps access shared memory without a barrier in between.
    Unordered {
        /// The later access.
        access: Access,
        /// First byte concerned, in the block's shared memory.
        address: u64,
        /// The earlier access.
        other: Box<Site>,
        /// The access of that one.
        other_access: Access,
    },
    /// An asynchronous instruction reads shared memory that ordinary stores wrote, without `fence.proxy.async` in between.
    MissingProxyFence {
        /// First byte concerned, in the block's shared memory.
        address: u64,
        /// The store.
        write: Box<Site>,
    },
    /// A register that an unfinished `wgmma` uses was accessed.
    RegisterInUse {
        /// The access.
        access: Access,
        /// The register.
        register: String,
        /// The `wgmma`.
        product: Box<Site>,
    },
    /// A `wgmma` uses a register that was written after the last `wgmma.fence`.
    MissingProductFence {
        /// The register.
        register: String,
        /// True if it belongs to D, false if to A.
        accumulator: bool,
    },
    /// An mbarrier is used that was never initialised, or was invalidated.
    NotInitialized {
        /// Its address.
        address: u64,
    },
    /// An mbarrier is used by a thread, or by an asynchronous copy, that need not see its initialisation.
    InitNotVisible {
        /// Its address.
        address: u64,
        /// The initialisation.
        init: Box<Site>,
        /// True if only a fence is missing, false if a barrier is.
        fence: bool,
    },
    /// An mbarrier is used wrongly.
    MbarrierMisuse {
        /// Its address.
        address: u64,
        /// How.
        message: String,
    },
    /// A thread or cluster ended while something asynchronous still used its shared memory or registers.
    PendingAtEnd {
        /// True for copies into shared memory.
        writes: bool,
    },
    /// `__assertfail` was called.
    Assertion {
        /// The asserted text.
        message: String,
        /// Source file given by the program.
        file: String,
        /// Line given by the program.
        line: u32,
        /// Function given by the program.
        function: String,
    },
    /// `trap` was executed.
    Trap,
    /// The launch executed more instructions than it may.
    BudgetExceeded {
        /// The budget in warp instructions.
        budget: u64,
    },
    /// A block executed more instructions than it may.
    BlockBudgetExceeded {
        /// The budget in warp instructions.
        budget: u64,
    },
    /// The launch was interrupted from outside.
    Interrupted,
    /// An instruction whose operands are not valid.
    InvalidInstruction(String),
    /// Something that the emulator does not execute.
    Unsupported(String),
    /// The launch does not fit the kernel.
    Launch(String),
}

/// A position in the source by PTX's `.loc` lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// File name as `.file` spells it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1 (0: unknown).
    pub column: u32,
    /// Call sites this was inlined at, innermost first.
    pub inlined_at: Vec<(String, u32, u32)>,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        for (file, line, column) in &self.inlined_at {
            write!(f, ", inlined at {file}:{line}:{column}")?;
        }
        Ok(())
    }
}

/// A launch that went wrong: what, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// Name of the kernel.
    pub kernel: String,
    /// Block index.
    pub block: [u32; 3],
    /// Thread index in the block: the first thread concerned.
    pub thread: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// Line in the PTX text, from 1 (0: none).
    pub ptx_line: u32,
    /// The instruction as PTX text.
    pub instruction: String,
    /// Line in the source, where the PTX has `.loc`.
    pub location: Option<SourceLocation>,
    /// Earlier findings: the address of a bad access may have overflowed.
    pub findings: Vec<Finding>,
    /// Earlier reports of the sanitizer.
    pub reports: Vec<Report>,
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { access, space, address, bytes, near } => {
                write!(f, "out-of-bounds {access} of {bytes} bytes at {address:#x} in {space} memory")?;
                write_near(f, *address, *bytes, near.as_ref())
            }
            FaultKind::Misaligned { access, space, address, required } => {
                write!(f, "misaligned {access} at {address:#x} in {space} memory: must be a multiple of {required}")
            }
            FaultKind::DivergentBarrier { waiting } => {
                write!(f, "divergent barrier: threads of one warp wait at different places ({waiting})")
            }
            FaultKind::Deadlock { waiting } => write!(f, "deadlock: no warp can go on ({waiting})"),
            FaultKind::Assertion { message, file, line, function } => {
                write!(f, "assertion failed: `{message}` at {file}:{line} in {function}")
            }
            FaultKind::Trap => f.write_str("trap executed"),
            FaultKind::BudgetExceeded { budget } => {
                write!(f, "the launch executed more than its budget of {budget} warp instructions")
            }
            FaultKind::BlockBudgetExceeded { budget } => {
                write!(f, "endless loop: the block executed more than {budget} warp instructions")
            }
            FaultKind::Interrupted => f.write_str("the launch was interrupted"),
            FaultKind::InvalidInstruction(text) => write!(f, "invalid instruction: {text}"),
            FaultKind::Unsupported(text) => write!(f, "not supported by the emulator: {text}"),
            FaultKind::Launch(text) => write!(f, "cannot launch: {text}"),
            kind => write_asynchronous(f, kind),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FaultKind::Launch(text) = &self.kind {
            return write!(f, "cannot launch `{}`: {text}", self.kernel);
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, "{}. Kernel `{}`, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})", self.kind, self.kernel)?;
        write!(f, " (warp {}, lane {})", self.warp, self.lane)?;
        if self.ptx_line > 0 {
            write!(f, ", PTX line {}", self.ptx_line)?;
        }
        if !self.instruction.is_empty() {
            write!(f, " `{}`", self.instruction)?;
        }
        if let Some(location) = &self.location {
            write!(f, ", source {location}")?;
        }
        f.write_str(".")?;
        self.findings.iter().try_for_each(|finding| write!(f, " Before: {finding}"))
    }
}

/// The message of a fault in the use of asynchronous instructions.
fn write_asynchronous(f: &mut fmt::Formatter<'_>, kind: &FaultKind) -> fmt::Result {
    match kind {
        FaultKind::NotArrived { access, address, copy, arrived } => {
            let state = if *arrived { "was not waited for by this warp" } else { "has not arrived" };
            write!(
                f,
                "{access} at {address:#x} in shared memory of what an asynchronous copy writes; the copy {state}: {copy}"
            )
        }
        FaultKind::StillRead { address, reader } => {
            write!(
                f,
                "write at {address:#x} in shared memory under an asynchronous read that was not waited for: {reader}"
            )
        }
        FaultKind::Unordered { access, address, other, other_access } => write!(
            f,
            "{access} at {address:#x} in shared memory is not ordered with the {other_access} of another warp; a barrier \
             or a wait is missing after {other}"
        ),
        FaultKind::MissingProxyFence { address, write } => write!(
            f,
            "asynchronous read at {address:#x} in shared memory: `fence.proxy.async` is missing after the write by {write}"
        ),
        FaultKind::RegisterInUse { access, register, product } => {
            write!(f, "{access} of register {register}, which an unfinished product uses: {product}")
        }
        FaultKind::MissingProductFence { register, accumulator } => {
            let role = if *accumulator { "accumulator" } else { "operand" };
            write!(f, "`wgmma.fence` is missing: the {role} register {register} was written since the last one")
        }
        FaultKind::NotInitialized { address } => write!(f, "there is no initialised mbarrier at {address:#x}"),
        FaultKind::InitNotVisible { address, init, fence } => {
            let missing = if *fence { "`fence.mbarrier_init` or `fence.proxy.async`" } else { "a barrier" };
            write!(
                f,
                "the mbarrier at {address:#x} may not be seen as initialised here; {missing} is missing after {init}"
            )
        }
        FaultKind::MbarrierMisuse { address, message } => write!(f, "mbarrier {address:#x}: {message}"),
        FaultKind::PendingAtEnd { writes: true } => {
            f.write_str("the block ended before a copy into its shared memory had arrived")
        }
        FaultKind::PendingAtEnd { .. } => f.write_str("the thread ended without a wait for what it had begun"),
        _ => Ok(()),
    }
}

fn write_near(f: &mut fmt::Formatter<'_>, address: u64, bytes: u32, near: Option<&Near>) -> fmt::Result {
    let Some(near) = near else {
        return f.write_str("; nothing is allocated near it");
    };
    let (name, size, end) = (&near.name, near.bytes, near.base + near.bytes);
    if near.freed {
        write!(f, "; it was freed: {} bytes into `{name}` ({size} bytes)", address - near.base)
    } else if near.read_only && address >= near.base && address < end {
        write!(f, "; `{name}` is constant")
    } else if address < near.base {
        write!(f, "; {} bytes before `{name}` ({size} bytes)", near.base - address)
    } else if address >= end {
        write!(f, "; {} bytes past the end of `{name}` ({size} bytes)", address - end)
    } else {
        let over = address + u64::from(bytes) - end;
        write!(f, "; the last {over} bytes lie past the end of `{name}` ({size} bytes)")
    }
}

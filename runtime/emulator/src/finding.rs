//! Findings of PTX execution that do not end the launch.

use std::fmt;

use crate::SourceLocation;
use crate::sanitize::{Check, Place, Report};

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// 32-bit arithmetic left its range, and memory was accessed through the result.
    AddressOverflow {
        /// The exact result.
        exact: i64,
    },
}

/// Something that looks wrong: what, and where. Each instruction gives one at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
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
    /// Line of the instruction in the PTX text, from 1.
    pub ptx_line: u32,
    /// The instruction as PTX text.
    pub instruction: String,
    /// Its line in the source, where the PTX has `.loc`.
    pub location: Option<SourceLocation>,
    /// Line in the PTX text of the access.
    pub access_line: u32,
}

impl Finding {
    /// The finding as the sanitizer reports it.
    pub fn report(&self) -> Report {
        let FindingKind::AddressOverflow { exact } = self.kind;
        Report {
            check: Check::Memory,
            code: "address-overflow",
            message: format!(
                "32-bit overflow on the way to an address: {exact} does not fit in 32 bits; accessed in PTX line {}",
                self.access_line
            ),
            kernel: self.kernel.clone(),
            place: Place {
                block: self.block,
                warp: self.warp,
                lane: Some(self.lane),
                thread: Some(self.thread),
                ptx_line: self.ptx_line,
                instruction: self.instruction.clone(),
                location: self.location.clone(),
            },
            related: None,
            count: 1,
            is_fatal: false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        match self.kind {
            FindingKind::AddressOverflow { exact } => {
                write!(f, "32-bit overflow on the way to an address: {exact} does not fit in 32 bits")?;
            }
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            ". Kernel `{}`, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz}), PTX line {} `{}`, accessed in line {}.",
            self.kernel, self.ptx_line, self.instruction, self.access_line
        )
    }
}

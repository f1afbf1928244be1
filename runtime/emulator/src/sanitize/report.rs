//! The reports: one type for all checks, as data.

use std::fmt;

use super::Check;
use crate::SourceLocation;

/// Where something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Block index.
    pub block: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp, where one is known.
    pub lane: Option<u32>,
    /// Thread index in the block, where a lane is known.
    pub thread: Option<[u32; 3]>,
    /// Line in the PTX text, from 1 (0: none).
    pub ptx_line: u32,
    /// The instruction as PTX text.
    pub instruction: String,
    /// Line in the source, where the PTX has `.loc`.
    pub location: Option<SourceLocation>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "block ({x}, {y}, {z}), warp {}", self.warp)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if self.ptx_line > 0 {
            write!(f, ", PTX line {} `{}`", self.ptx_line, self.instruction)?;
        }
        Ok(())
    }
}

/// The other side of a conflict, such as the last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its description, such as `written here before`.
    pub what: String,
    /// Where; block and warp are those of the finding where they are not known.
    pub place: Place,
}

/// Something wrong that a launch did. Each pair of lines in the source gives one at most; `count` says how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which check found it.
    pub check: Check,
    /// Its name, such as `global-race`.
    pub code: &'static str,
    /// The error, as one sentence without a location.
    pub message: String,
    /// The kernel.
    pub kernel: String,
    /// Where it was first seen.
    pub place: Place,
    /// The other side, if there is one.
    pub related: Option<Related>,
    /// How often it was seen.
    pub count: u64,
    /// Whether it ended the launch.
    pub is_fatal: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.place.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "[{}] {}. Kernel `{}`, {}", self.code, self.message, self.kernel, self.place)?;
        if let Some(related) = &self.related {
            write!(f, "; {}: ", related.what)?;
            if let Some(location) = &related.place.location {
                write!(f, "{location}, ")?;
            }
            write!(f, "{}", related.place)?;
        }
        if self.count > 1 {
            write!(f, "; seen {} times", self.count)?;
        }
        f.write_str(".")
    }
}

//! Conflicts that do not end the launch: the sanitizer reports them.

use super::{Conflict, Touch};

/// The reaction to a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing.
    Ignore,
    /// It ends the launch.
    Fail,
    /// It is kept for a report.
    Collect,
}

/// A conflict that is kept for a report.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// The conflict.
    pub conflict: Conflict,
    /// The warp on the other side, in the cluster.
    pub other: Option<u32>,
    /// The block whose shared memory it is, and the byte.
    pub at: (usize, usize),
    /// The access.
    pub touch: Touch,
    /// Whether it writes.
    pub writes: bool,
    /// The lane.
    pub lane: u32,
}

impl Collected {
    /// A conflict at a byte of a range that an access touches from `start` on.
    pub fn new(
        conflict: Conflict,
        other: Option<u32>,
        at: (usize, usize),
        start: usize,
        touch: Touch,
        writes: bool,
    ) -> Collected {
        let lane = touch.lane + ((at.1 - start) as u32).checked_div(touch.stride).unwrap_or(0);
        Collected { conflict, other, at, touch, writes, lane }
    }
}

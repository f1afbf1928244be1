//! Order of accesses of global memory: for each piece its last write and two of the reads since.
//!
//! Two accesses, at least one of them a write, conflict unless one is complete when the other starts (by barriers
//! within a cluster, by release and acquire between clusters) or both are strong: atomics, relaxed and volatile
//! accesses. Of the reads since a write the first and the latest unordered ones are kept: a write that is ordered after
//! both but not after a third is missed; there are no false reports.

use std::collections::HashMap;
use std::ops::Range;

use crate::code::NONE;

/// An access that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The cluster.
    pub cluster: u32,
    /// The warp in the cluster.
    pub agent: u32,
    /// When, in the warp's own count.
    pub time: u32,
    /// The operation; [`NONE`] for no access.
    pub pc: u32,
}

const NO_MARK: Mark = Mark { cluster: 0, agent: 0, time: 0, pc: NONE };

/// How an access takes part.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether it writes.
    pub writes: bool,
    /// Whether other strong accesses are no conflict.
    pub strong: bool,
}

/// A piece of global memory as wide as the narrowest access of the program.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Mark,
    reads: [Mark; 2],
    /// Bit 0: the write is strong; bits 1 and 2: the reads are.
    strong: u8,
}

const EMPTY: Cell = Cell { write: NO_MARK, reads: [NO_MARK; 2], strong: 0 };
/// Cells that are allocated together.
const PAGE: u64 = 1024;

/// The accesses of a launch.
pub struct Accesses {
    pages: HashMap<u64, Box<[Cell]>>,
    shift: u32,
}

impl Accesses {
    /// No access yet; `granule` is the width of the narrowest one in bytes.
    pub fn new(granule: u32) -> Accesses {
        Accesses { pages: HashMap::new(), shift: granule.max(1).trailing_zeros() }
    }

    /// Records an access of bytes by `mark`; `conflict` is called with the address and the other access if there is one
    /// that is not `known` to be complete; true for a write.
    pub fn touch(
        &mut self,
        bytes: Range<u64>,
        mark: Mark,
        manner: Manner,
        known: impl Fn(Mark) -> bool,
        mut conflict: impl FnMut(u64, Mark, bool),
    ) {
        let mut cell = bytes.start >> self.shift;
        let end = (bytes.end + (1 << self.shift) - 1) >> self.shift;
        while cell < end {
            let (number, first) = (cell / PAGE, (cell % PAGE) as usize);
            let count = ((end - cell).min(PAGE - first as u64)) as usize;
            let page = self.pages.entry(number).or_insert_with(|| vec![EMPTY; PAGE as usize].into());
            for (i, piece) in page[first..first + count].iter_mut().enumerate() {
                let address = ((cell + i as u64) << self.shift).max(bytes.start);
                piece.touch(mark, manner, &known, |other, write| conflict(address, other, write));
            }
            cell += count as u64;
        }
    }
}

impl Cell {
    fn touch(
        &mut self,
        mark: Mark,
        manner: Manner,
        known: &impl Fn(Mark) -> bool,
        mut conflict: impl FnMut(Mark, bool),
    ) {
        let open = |other: Mark, strong: bool| other.pc != NONE && !(strong && manner.strong) && !known(other);
        if open(self.write, self.strong & 1 == 1) {
            conflict(self.write, true);
        }
        if manner.writes {
            for (i, read) in self.reads.iter().enumerate() {
                if open(*read, self.strong >> (i + 1) & 1 == 1) {
                    conflict(*read, false);
                }
            }
            *self = Cell { write: mark, strong: manner.strong.into(), ..EMPTY };
            return;
        }
        // The first slot keeps what it has until that is over.
        let free = |read: Mark| read.pc == NONE || known(read);
        let slot = if free(self.reads[0]) { 0 } else { 1 };
        self.reads[slot] = mark;
        let bit = 1 << (slot + 1);
        self.strong = if manner.strong { self.strong | bit } else { self.strong & !bit };
    }
}

//! For each piece of shared memory: who wrote it last, and who read it since.

use std::collections::HashMap;

use super::clock::{Clock, Epoch};

/// A piece of shared memory as wide as the narrowest access of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The last write.
    pub write: Epoch,
    /// Its operation.
    pub pc: u32,
    /// How it was written.
    pub how: How,
    /// The reads since, an index into [`ReadSets`].
    pub reads: u32,
}

/// How memory was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// By a store or `cp.async`.
    #[default]
    Generic,
    /// By an atomic.
    Atomic,
    /// By a bulk copy.
    Bulk,
}

/// A read and its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// When, by whom.
    pub epoch: Epoch,
    /// The operation.
    pub pc: u32,
}

/// Sets after which unused ones are dropped: more than the cells of a block can have.
const MANY: usize = 1 << 19;

/// Sets of reads, each kept once: neighbouring cells mostly have the same.
#[derive(Debug)]
pub struct ReadSets {
    sets: Vec<Vec<Read>>,
    larger: HashMap<(u32, Epoch), u32>,
    /// The last answer, cached for neighbouring cells.
    last: ((u32, Epoch), u32),
}

impl ReadSets {
    /// Only the empty set, number 0.
    pub fn new() -> ReadSets {
        ReadSets { sets: vec![Vec::new()], larger: HashMap::new(), last: ((u32::MAX, Epoch::default()), 0) }
    }

    /// The reads of a set.
    pub fn get(&self, set: u32) -> &[Read] {
        &self.sets[set as usize]
    }

    /// Whether so many sets were made that those of no cell should go.
    pub fn is_large(&self) -> bool {
        self.sets.len() > MANY
    }

    /// Keeps only the sets of cells.
    pub fn compact<'a>(&mut self, cells: impl Iterator<Item = &'a mut Cell>) {
        let old = std::mem::replace(self, ReadSets::new());
        let mut places = HashMap::from([(0, 0)]);
        for cell in cells {
            cell.reads = *places.entry(cell.reads).or_insert_with(|| {
                self.sets.push(old.sets[cell.reads as usize].clone());
                self.sets.len() as u32 - 1
            });
        }
    }

    /// The set with one more read. Reads in the clock of the reader are dropped: a wait for the new read includes them.
    pub fn with(&mut self, set: u32, read: Read, known: &Clock) -> u32 {
        let key = (set, read.epoch);
        if self.last.0 == key {
            return self.last.1;
        }
        if let Some(found) = self.larger.get(&key) {
            self.last = (key, *found);
            return *found;
        }
        let mut list: Vec<Read> = self
            .get(set)
            .iter()
            .copied()
            .filter(|r| r.epoch.agent != read.epoch.agent && !known.covers(r.epoch))
            .collect();
        list.push(read);
        let new = self.sets.len() as u32;
        self.sets.push(list);
        self.larger.insert(key, new);
        self.last = (key, new);
        new
    }
}

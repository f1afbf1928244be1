//! The state and the findings of the sanitizer during a launch.
//!
//! Every check is a file: memory accesses (`access.rs`), order between blocks (`global.rs`) through atomics
//! (`release.rs`), registers (`registers.rs`), barriers and shuffles (`meeting.rs`), tensor maps (`maps.rs`). Shared
//! memory is `exec/hazard`, which collects conflicts for a report (`shared.rs`). A launch without checks has no
//! `Sanitizer`, and costs one test for each access.

mod access;
mod global;
mod maps;
mod meeting;
mod registers;
mod release;
mod shared;

pub use access::Touched;
pub use maps::Maps;
pub use registers::Defined;

use std::collections::HashMap;

use super::Launch;
use crate::code::{Code, Origin};
use crate::sanitize::{Check, Checks};
use global::Accesses;
use release::Released;

/// A finding, before names are looked up.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Which check found it.
    pub check: Check,
    /// Its name.
    pub code: &'static str,
    /// The kind of finding.
    pub message: String,
    /// Where it was first seen.
    pub at: Actor,
    /// The other side, and what it did.
    pub other: Option<(&'static str, Actor)>,
    /// How often it was seen.
    pub count: u64,
}

/// Who did something, by which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The operation.
    pub pc: u32,
    /// The block.
    pub block: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp, where one is known.
    pub lane: Option<u32>,
}

/// The state and the findings of a launch's checks.
pub struct Sanitizer {
    /// The checks.
    pub checks: Checks,
    /// The findings, each pair of lines once.
    pub found: Vec<Raw>,
    numbers: HashMap<(&'static str, u32, u32), usize>,
    /// The identity of each operation in reports: its line in the source, or otherwise itself.
    lines: Vec<u32>,
    accesses: Accesses,
    released: Released,
}

/// Different findings after which no more are kept.
const MOST: usize = 200;

impl Sanitizer {
    /// No findings yet; `None` if no check is enabled.
    pub fn new(launch: &Launch<'_>) -> Option<Box<Sanitizer>> {
        (!launch.checks.is_empty()).then(|| {
            Box::new(Sanitizer {
                checks: launch.checks,
                found: Vec::new(),
                numbers: HashMap::new(),
                lines: lines(launch.code),
                accesses: Accesses::new(launch.code.global_granule),
                released: Released::default(),
            })
        })
    }

    /// Keeps a finding, or counts it if the same lines gave one before.
    pub fn record(
        &mut self,
        (check, code): (Check, &'static str),
        at: Actor,
        other: Option<(&'static str, Actor)>,
        message: impl FnOnce() -> String,
    ) {
        let line = |actor: Actor| self.lines[actor.pc as usize];
        let key = (code, line(at), other.map_or(u32::MAX, |(_, actor)| line(actor)));
        if let Some(number) = self.numbers.get(&key) {
            self.found[*number].count += 1;
        } else if self.found.len() < MOST {
            self.numbers.insert(key, self.found.len());
            self.found.push(Raw { check, code, message: message(), at, other, count: 1 });
        }
    }
}

/// Operations of one line and column are alike; without lines each is its own.
fn lines(code: &Code) -> Vec<u32> {
    let first = code.locations.len() as u32;
    let line = |(pc, origin): (usize, &Origin)| match code.location(origin.location) {
        Some(_) => origin.location,
        None => first + pc as u32,
    };
    code.origins.iter().enumerate().map(line).collect()
}

//! How the registers of a distributed layout are stored to, or loaded from, a given layout in shared memory.
//!
//! A side is a list of steps, each one instruction per thread. The address, in elements, is
//!
//! ```text
//! XOR of lane[i] over the set bits i of the lane  ^  XOR of warp[i] over the set bits of the warp  ^  step.offset
//! ```
//!
//! - *Vector*: `ld/st.shared.v?`: `registers[i]` of a step is the element `i` after the address.
//! - *Matrix*: `ldmatrix` / `stmatrix` of 8 rows of 16 bytes, 1, 2 or 4 at once. The address is that of the row which
//!   the lane supplies (bits 0 to 2 the row, bits 3 and 4 the matrix). `registers` lists, matrix by matrix, the
//!   elements of the thread's 32-bit register, low bits first.
//!
//! The conditions are linear algebra. A vector of 2^v elements needs each of the offsets 1, 2, .., 2^(v-1) to be a sum
//! of the contributions of register bits, and no lane or warp bit to change these low bits. A matrix needs the lane
//! bits 0 and 1 to continue the 32-bit register to a row of 16 bytes (transposed: lane bits 2 to 4 to be a row).

mod form;
mod wavefronts;

use crate::linear::{LANE_BITS, Layout};
use crate::query::Copies;
use crate::shared::SharedLayout;
use form::{Form, Offsets};
use wavefronts::Wavefronts;

/// The instructions of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Loads or stores of vectors of elements.
    Vector,
    /// `ldmatrix` or `stmatrix`, perhaps with `.trans`.
    Matrix {
        /// With `.trans`.
        transposed: bool,
    },
}

/// One instruction of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessStep {
    /// The registers that take part, in the order described at the top of the file.
    pub registers: Vec<u32>,
    /// The constant part of the address, in elements, to be XORed with the thread's part.
    pub offset: u32,
}

/// How a layout's registers go to or come from shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// Which instructions.
    pub kind: AccessKind,
    /// Size of an element in bits.
    pub bits: u32,
    /// Elements of a vector, or of a matrix row.
    pub width: u32,
    /// Matrices per instruction: 1, 2 or 4; 0 for vectors.
    pub matrices: u32,
    /// Address bases of the lane bits, in elements.
    pub lane: [u32; LANE_BITS],
    /// Address bases of the warp bits, in elements.
    pub warp: Vec<u32>,
    /// The instructions.
    pub steps: Vec<AccessStep>,
    /// Threads and registers that hold copies. Steps leave out such registers. A vector store may be predicated to skip
    /// such lanes and warps; without that all of them write the same values.
    pub copies: Copies,
    /// For each register of the layout the register (of a step) that has its value: itself unless it is a copy.
    pub source: Vec<u32>,
}

impl SharedAccess {
    /// The widest vector access, up to 128 bits. Every element of the layout must be in `shared`.
    pub fn vector(shared: &SharedLayout, layout: &Layout, bits: u32) -> SharedAccess {
        let offsets = Offsets::new(shared, layout);
        Form::vector(&offsets, bits).access(&offsets, layout)
    }

    /// The access by `ldmatrix` or `stmatrix` (the conditions are the same), if there is one; `.trans` is for elements
    /// of 16 bits only.
    pub fn matrix(shared: &SharedLayout, layout: &Layout, bits: u32, transposed: bool) -> Option<SharedAccess> {
        let offsets = Offsets::new(shared, layout);
        Some(Form::matrix(&offsets, bits, transposed)?.access(&offsets, layout))
    }

    /// The cheapest access: by matrices where `matrices` allows that and the layouts admit it, else by vectors.
    pub fn best(shared: &SharedLayout, layout: &Layout, bits: u32, matrices: bool, store: bool) -> SharedAccess {
        let offsets = Offsets::new(shared, layout);
        Form::best(&offsets, bits, matrices, store, layout.copies().lanes).1.access(&offsets, layout)
    }

    /// The cost of the cheapest access.
    pub fn least_cost(shared: &SharedLayout, layout: &Layout, bits: u32, matrices: bool, store: bool) -> u32 {
        Form::best(&Offsets::new(shared, layout), bits, matrices, store, layout.copies().lanes).0
    }

    /// The address of a thread for a step, in elements.
    pub fn address(&self, step: &AccessStep, lane: u32, warp: u32) -> u32 {
        let sum = |bases: &[u32], bits: u32| {
            bases.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).fold(0, |sum, (_, &basis)| sum ^ basis)
        };
        sum(&self.lane, lane) ^ sum(&self.warp, warp) ^ step.offset
    }

    /// All bits of an address that depend on the thread. A step whose offset has none of them can be an immediate:
    /// XOR is addition there.
    pub fn thread_bits(&self) -> u32 {
        self.lane.iter().chain(&self.warp).fold(0, |all, basis| all | basis)
    }

    /// Wavefronts (passes over the 32 banks) that one step takes in one warp; the same for every step and warp, since
    /// an XOR permutes banks. Counted address by address; copies are skipped in stores.
    pub fn wavefronts(&self, store: bool) -> u32 {
        self.wavefronts_at(store, |offset| offset * self.bits / 8)
    }

    /// As [`wavefronts`](Access::wavefronts) for the first step, where `place` takes offsets to addresses in bytes.
    pub(crate) fn wavefronts_at(&self, store: bool, place: impl Fn(u32) -> u32) -> u32 {
        self.steps.first().map_or(0, |step| self.lanes(store).count(step.offset, place))
    }

    /// The least number of wavefronts that a step of this width can take.
    pub fn minimum_wavefronts(&self, store: bool) -> u32 {
        if self.steps.is_empty() { 0 } else { self.lanes(store).minimum() }
    }

    /// A measure of time: wavefronts, and the instructions that issue them.
    pub fn cost(&self, store: bool) -> u32 {
        form::cost(self.wavefronts(store), self.steps.len() as u32)
    }

    fn lanes(&self, store: bool) -> Wavefronts {
        Wavefronts::of(self.kind, (self.width, self.bits), self.matrices, self.lane, store, self.copies.lanes)
    }
}

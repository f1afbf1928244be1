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

use crate::gf2::{self, Span};
use crate::linear::{LANE_BITS, LANES, Layout};
use crate::query::Copies;
use crate::shared::SharedLayout;

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
        let max = (128 / bits.max(8)).trailing_zeros();
        let low = (0..=max).rev().find_map(|width| {
            let registers: Option<Vec<u64>> = (0..width).map(|i| offsets.register_at(1 << i)).collect();
            registers.filter(|_| offsets.thread_bits() & ((1 << width) - 1) == 0)
        });
        let low = low.unwrap_or_default();
        let mask = (1u64 << low.len()) - 1;
        let starts = offsets.registers_with_zero(mask);
        let steps = sums(&starts).map(|start| AccessStep {
            registers: (0..1 << low.len()).map(|i| (start ^ gf2::apply(&low, i)) as u32).collect(),
            offset: offsets.of_registers(start),
        });
        SharedAccess {
            kind: AccessKind::Vector,
            bits,
            width: 1 << low.len(),
            matrices: 0,
            lane: offsets.lane.map(|v| v as u32),
            warp: offsets.warp.iter().map(|&v| v as u32).collect(),
            steps: steps.collect(),
            copies: layout.copies(),
            source: offsets.sources(),
        }
    }

    /// The access by `ldmatrix` or `stmatrix` (the conditions are the same), if there is one; `.trans` is for elements
    /// of 16 bits only.
    pub fn matrix(shared: &SharedLayout, layout: &Layout, bits: u32, transposed: bool) -> Option<SharedAccess> {
        if !matches!(bits, 8 | 16 | 32) || (transposed && bits != 16) {
            return None;
        }
        let offsets = Offsets::new(shared, layout);
        let row_bits = (128 / bits).trailing_zeros();
        let row_mask = (1u64 << row_bits) - 1;
        let [lane0, lane1, lane2, lane3, lane4] = offsets.lane;
        let (row, rows) = if transposed {
            ([lane2, lane3, lane4], [lane0, lane1].to_vec())
        } else {
            let pack = row_bits - 2;
            ([lane0 >> pack, lane1 >> pack, 4], [lane2, lane3, lane4].to_vec())
        };
        let in_place = row == [1, 2, 4] && (transposed || (lane0 | lane1) & ((1 << (row_bits - 2)) - 1) == 0);
        let others = rows.iter().chain(&offsets.warp).fold(0, |all, v| all | v);
        if !in_place || others & row_mask != 0 {
            return None;
        }
        // Registers are packed into 32 bits, then spread over matrices, then over steps.
        let free = offsets.registers_with_zero(row_mask);
        let (packed, free) = if transposed {
            let (&first, rest) = free.split_first()?;
            (vec![first], rest.to_vec())
        } else {
            let packed: Option<Vec<u64>> = (0..row_bits - 2).map(|i| offsets.register_at(1 << i)).collect();
            (packed?, free)
        };
        if packed.len() + free.len() != offsets.register_span.rank() {
            return None; // some register lies across rows
        }
        let (select, outer) = free.split_at(free.len().min(2));
        let mut lane: Vec<u64> = if transposed { vec![offsets.sum(packed[0]), lane0, lane1] } else { rows };
        lane.extend(select.iter().map(|&register| offsets.sum(register)));
        lane.resize(LANE_BITS, 0);
        let inner = [&packed[..], select].concat();
        let steps = sums(outer).map(|start| AccessStep {
            registers: sums(&inner).map(|r| (start ^ r) as u32).collect(),
            offset: offsets.of_registers(start),
        });
        Some(SharedAccess {
            kind: AccessKind::Matrix { transposed },
            bits,
            width: 1 << row_bits,
            matrices: 1 << select.len(),
            steps: steps.collect(),
            lane: std::array::from_fn(|i| lane[i] as u32),
            warp: offsets.warp.iter().map(|&v| v as u32).collect(),
            copies: layout.copies(),
            source: offsets.sources(),
        })
    }

    /// The cheapest access: by matrices where `matrices` allows that and the layouts admit it, else by vectors.
    pub fn best(shared: &SharedLayout, layout: &Layout, bits: u32, matrices: bool, store: bool) -> SharedAccess {
        let vector = SharedAccess::vector(shared, layout, bits);
        if !matrices {
            return vector;
        }
        let straight = SharedAccess::matrix(shared, layout, bits, false);
        let transposed = SharedAccess::matrix(shared, layout, bits, true);
        let all = [straight, transposed].into_iter().flatten();
        all.fold(vector, |best, other| if other.cost(store) < best.cost(store) { other } else { best })
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
        let Some(step) = self.steps.first() else { return 0 };
        self.phases(store).map(|lanes| self.conflicts(step, &lanes, &place).max(1)).sum()
    }

    /// The least number of wavefronts that a step of this width can take.
    pub fn minimum_wavefronts(&self, store: bool) -> u32 {
        if self.steps.is_empty() { 0 } else { self.phases(store).count() as u32 }
    }

    /// A measure of time: wavefronts, and the instructions that issue them.
    pub fn cost(&self, store: bool) -> u32 {
        (4 * self.wavefronts(store) + 3) * self.steps.len() as u32
    }

    /// The lanes whose accesses the hardware handles together, without those that a store skips.
    fn phases(&self, store: bool) -> impl Iterator<Item = Vec<u32>> {
        let (lanes, total) = match self.kind {
            AccessKind::Vector => ((128 * 8 / (self.width * self.bits).max(8)).min(LANES), LANES),
            AccessKind::Matrix { .. } => (8, 8 * self.matrices),
        };
        let skip = if store && self.kind == AccessKind::Vector { self.copies.lanes } else { 0 };
        let phase = move |first: u32| (first..first + lanes).filter(|lane| lane & skip == 0).collect::<Vec<u32>>();
        (0..total / lanes).map(move |i| phase(i * lanes)).filter(|lanes| !lanes.is_empty())
    }

    /// The greatest number of different 32-bit words in one bank.
    fn conflicts(&self, step: &AccessStep, lanes: &[u32], place: impl Fn(u32) -> u32) -> u32 {
        let mut words = Vec::with_capacity(LANES as usize);
        for &lane in lanes {
            let first = place(self.address(step, lane, 0));
            let last = first + (self.width * self.bits / 8).max(1) - 1;
            words.extend(first / 4..=last / 4);
        }
        words.sort_unstable();
        words.dedup();
        let mut banks = [0; 32];
        for word in words {
            banks[(word % 32) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    }
}

/// The contribution of each input bit of a layout to the offset in shared memory.
struct Offsets {
    /// The offset of each register bit.
    register: Vec<u64>,
    register_span: Span,
    lane: [u64; LANE_BITS],
    warp: Vec<u64>,
}

impl Offsets {
    fn new(shared: &SharedLayout, layout: &Layout) -> Offsets {
        assert_eq!(shared.shape(), layout.shape(), "a tile and its place in shared memory have the same shape");
        let inverse = shared.inverse();
        let offset = |&basis: &u64| inverse.express(basis).expect("the shared layout holds every element of the tile");
        let register: Vec<u64> = layout.register.iter().map(offset).collect();
        Offsets {
            register_span: Span::of(register.iter().copied()),
            register,
            lane: layout.lane.each_ref().map(offset),
            warp: layout.warp.iter().map(offset).collect(),
        }
    }

    /// The register at an offset from register 0, if that is in every thread.
    fn register_at(&self, offset: u64) -> Option<u64> {
        self.register_span.express(offset)
    }

    fn sum(&self, registers: u64) -> u64 {
        gf2::apply(&self.register, registers)
    }

    fn of_registers(&self, registers: u64) -> u32 {
        self.sum(registers) as u32
    }

    fn thread_bits(&self) -> u64 {
        self.lane.iter().chain(&self.warp).fold(0, |all, v| all | v)
    }

    /// A basis, lowest first, of the registers (none of them copies) whose offset is zero in the bits of `mask`.
    fn registers_with_zero(&self, mask: u64) -> Vec<u64> {
        let mut span = Span::default();
        let bits: Vec<usize> = (0..self.register.len()).filter(|&i| span.insert(self.register[i])).collect();
        let low: Vec<u64> = bits.iter().map(|&i| self.register[i] & mask).collect();
        let spread = |x: u64| (0..bits.len()).filter(|&i| x >> i & 1 == 1).fold(0, |all, i| all | 1u64 << bits[i]);
        gf2::kernel(&low).into_iter().map(spread).collect()
    }

    fn sources(&self) -> Vec<u32> {
        (0..1u64 << self.register.len())
            .map(|r| self.register_at(self.sum(r)).expect("a register's own offset is in the span") as u32)
            .collect()
    }
}

/// All sums of `basis`, in ascending order of the selecting number.
fn sums(basis: &[u64]) -> impl Iterator<Item = u64> {
    (0..1u64 << basis.len()).map(move |i| gf2::apply(basis, i))
}

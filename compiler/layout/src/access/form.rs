//! The form of an access: which registers an instruction takes and which lanes supply which addresses, before the
//! instructions are listed. It is enough to count what the access costs.

use super::wavefronts::Wavefronts;
use super::{AccessKind, AccessStep, SharedAccess};
use crate::gf2::{self, Span};
use crate::linear::{LANE_BITS, Layout};
use crate::shared::SharedLayout;

/// How registers are divided into instructions.
pub(super) struct Form {
    kind: AccessKind,
    bits: u32,
    width: u32,
    matrices: u32,
    lane: [u32; LANE_BITS],
    /// A basis of the registers of an instruction.
    inner: Vec<u64>,
    /// A basis of the first registers of all instructions.
    outer: Vec<u64>,
}

impl Form {
    /// The widest vectors, up to 128 bits.
    pub(super) fn vector(offsets: &Offsets, bits: u32) -> Form {
        let max = (128 / bits.max(8)).trailing_zeros();
        let low = (0..=max).rev().find_map(|width| {
            let registers: Option<Vec<u64>> = (0..width).map(|i| offsets.register_at(1 << i)).collect();
            registers.filter(|_| offsets.thread_bits() & ((1 << width) - 1) == 0)
        });
        let inner = low.unwrap_or_default();
        let width = 1 << inner.len();
        let outer = offsets.registers_with_zero(width - 1);
        let lane = offsets.lane.map(|v| v as u32);
        Form { kind: AccessKind::Vector, bits, width: width as u32, matrices: 0, lane, inner, outer }
    }

    /// Matrices, if the offsets admit them.
    pub(super) fn matrix(offsets: &Offsets, bits: u32, transposed: bool) -> Option<Form> {
        if !matches!(bits, 8 | 16 | 32) || (transposed && bits != 16) {
            return None;
        }
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
        Some(Form {
            kind: AccessKind::Matrix { transposed },
            bits,
            width: 1 << row_bits,
            matrices: 1 << select.len(),
            lane: std::array::from_fn(|i| lane[i] as u32),
            inner: [&packed[..], select].concat(),
            outer: outer.to_vec(),
        })
    }

    /// The cheapest form, and its cost: matrices where `matrices` allows them, else vectors. `skipped`: bits of lanes that
    /// hold copies.
    pub(super) fn best(offsets: &Offsets, bits: u32, matrices: bool, store: bool, skipped: u32) -> (u32, Form) {
        let of_matrices = [false, true].into_iter().filter(|_| matrices);
        let others = of_matrices.filter_map(|transposed| Form::matrix(offsets, bits, transposed));
        let counted = |form: Form| (form.cost(store, skipped), form);
        let vector = counted(Form::vector(offsets, bits));
        others.map(counted).fold(vector, |best, other| if other.0 < best.0 { other } else { best })
    }

    fn cost(&self, store: bool, skipped: u32) -> u32 {
        let wavefronts = Wavefronts::of(self.kind, (self.width, self.bits), self.matrices, self.lane, store, skipped);
        cost(wavefronts.count(0, |offset| offset * self.bits / 8), 1 << self.outer.len())
    }

    /// The access with all instructions.
    pub(super) fn access(self, offsets: &Offsets, layout: &Layout) -> SharedAccess {
        let inner: Vec<u64> = sums(&self.inner).collect();
        let steps = sums(&self.outer).map(|start| AccessStep {
            registers: inner.iter().map(|register| (start ^ register) as u32).collect(),
            offset: offsets.of_registers(start),
        });
        SharedAccess {
            kind: self.kind,
            bits: self.bits,
            width: self.width,
            matrices: self.matrices,
            lane: self.lane,
            warp: offsets.warp.iter().map(|&v| v as u32).collect(),
            steps: steps.collect(),
            copies: layout.copies(),
            source: offsets.sources(),
        }
    }
}

/// A measure of the time of so many instructions of so many wavefronts each.
pub(super) fn cost(wavefronts: u32, steps: u32) -> u32 {
    (4 * wavefronts + 3) * steps
}

/// The contribution of each input bit of a layout to the offset in shared memory.
pub(super) struct Offsets {
    /// The offset of each register bit.
    register: Vec<u64>,
    register_span: Span,
    lane: [u64; LANE_BITS],
    warp: Vec<u64>,
}

impl Offsets {
    pub(super) fn new(shared: &SharedLayout, layout: &Layout) -> Offsets {
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

//! The tree by which a tile is reduced along one axis: registers, then lanes by shuffles, then warps by shared memory.
//!
//! "Forget the axis" after a layout is a linear map from places to coordinates of the result. Places that it takes to
//! the same coordinate must be combined: they differ by its kernel. A kernel vector of register bits only is a step
//! within the thread. One with lane bits is a step by `shfl.xor` (and, if it has register bits too, with another
//! register of the partner). One with warp bits needs shared memory: each warp stores its partial results, and those of
//! all warps are loaded: a few by each thread, more by lanes that hold copies of the result, one by each, which then
//! take further steps between lanes. Redundant bits (copies) are no part of the kernel, or an element would count twice.
//!
//! Example: axis 1 of `blocked(shape [4, 128], size [1, 2], lanes [1, 32], warps [2, 2])` is one register step, five
//! lane steps with masks 16, 8, 4, 2, 1, and 2 partial results by warps. With 16 warps along the axis each lane loads
//! one of the 16 partial results, and four more steps with masks 8, 4, 2 and 1 combine them.
//!
//! Sums of floats depend on the order: within a thread ascending, between lanes and between warps from the farthest partner
//! to the nearest. Triton adds in the same order, so that where layouts agree, sums have the same bits.

use crate::coord::{Coord, Shape};
use crate::gf2::{self, Span};
use crate::linear::{InputBit, Layout};

/// Up to this many partial results each thread loads all, in one access of 16 bytes for four-byte elements: that takes
/// less time than steps between lanes. With more, each lane loads one if possible: the wide accesses of all warps would
/// queue up behind the barrier.
const LOADED_BY_THREAD: u32 = 4;

/// A step between lanes, for all result registers at once:
/// `next[r] = combine(now[r], shfl.xor(now[r ^ register_xor], mask))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceLaneStep {
    /// The partner is `lane ^ mask`.
    pub mask: u32,
    /// Which of the partner's registers; 0 for layouts that do not mix axes.
    pub register_xor: u32,
}

/// The step between warps: store the partial results, synchronize, load them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceWarpStep {
    /// Partial results per element of the result.
    pub count: u32,
    /// The partial results after the lane steps, a tile `[..result, count]`: one element per result register.
    pub partial: Layout,
    /// Partial results per element of the result that one thread loads.
    pub in_thread: u32,
    /// The same tile as it is loaded: register `r * in_thread + i` is a partial result of result register `r`, the i-th
    /// of consecutive ones. Plan the exchange as a conversion from `partial`.
    pub gathered: Layout,
    /// The steps between lanes, in order, for partial results that were loaded by different lanes.
    pub lane_steps: Vec<ReduceLaneStep>,
}

/// How to reduce a tile along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    /// The layout of the result: threads that differed only along the axis hold copies.
    pub result: Layout,
    /// For each result register the registers of the operand to combine, ascending along the axis.
    pub groups: Vec<Vec<u32>>,
    /// The steps between lanes, in order.
    pub lane_steps: Vec<ReduceLaneStep>,
    /// The step between warps, if the axis crosses warps.
    pub warp_step: Option<ReduceWarpStep>,
}

/// The plan for reducing a tile of this layout along `axis`. The axis must not cross the blocks of a cluster.
pub fn reduce_plan(layout: &Layout, axis: usize) -> ReducePlan {
    let result = layout.remove_dim(axis);
    let registers = layout.register.len();
    // Independent bits only; `bits[i]` is column i.
    let mut span = Span::default();
    let mut columns = Vec::new();
    let mut bits = Vec::new();
    for (bit, column) in layout.input_bits().into_iter().zip(layout.columns()) {
        if span.insert(column) {
            bits.push(bit);
            columns.push(column);
        }
    }
    let forget = |v: u64| forget_axis(layout, &result, axis, v);
    let forgotten: Vec<u64> = columns.iter().map(|&v| forget(v)).collect();

    let (mut register_kernel, mut lane_steps, mut warp_pivots) = (Vec::new(), Vec::new(), Vec::new());
    // A register bit that `remove_dim` kept is the basis of the next register bit of the result.
    let kept: Vec<u32> = {
        let mut span = Span::default();
        (0..registers as u32).filter(|&i| span.insert(forget(layout.register[i as usize]))).collect()
    };
    for vector in gf2::kernel(&forgotten) {
        let (mut register, mut lane, mut last) = (0u32, 0u32, bits[0]);
        for (i, &bit) in bits.iter().enumerate().filter(|(i, _)| vector >> i & 1 == 1) {
            last = bits[i];
            match bit {
                InputBit::Register(b) => register |= 1 << b,
                InputBit::Lane(b) => lane |= 1 << b,
                InputBit::Warp(_) => {}
                InputBit::Block(_) => panic!("a reduction across the blocks of a cluster"),
            }
        }
        match last {
            InputBit::Register(_) => register_kernel.push(u64::from(register)),
            InputBit::Lane(_) => {
                let own = |j: &usize| register >> kept[*j] & 1 == 1;
                let register_xor = (0..kept.len()).filter(own).fold(0, |all, j| all | 1 << j);
                lane_steps.push(ReduceLaneStep { mask: lane, register_xor });
            }
            InputBit::Warp(b) => warp_pivots.push(b),
            InputBit::Block(_) => {}
        }
    }

    lane_steps.sort_by_key(|step| std::cmp::Reverse(step.mask));

    let groups = (0..result.registers()).map(|r| {
        let first = (0..kept.len()).filter(|j| r >> j & 1 == 1).fold(0, |all, j| all | 1u32 << kept[j]);
        let sums = (0..1u64 << register_kernel.len()).map(|i| first ^ gf2::apply(&register_kernel, i) as u32);
        let mut group: Vec<u32> = sums.collect();
        group.sort_by_key(|&register| layout.coords(register, 0, 0)[axis]);
        group
    });
    let groups = groups.collect();
    let warp_step = (!warp_pivots.is_empty()).then(|| warp_step(layout, &result, &bits, &columns, &warp_pivots));
    ReducePlan { result, groups, lane_steps, warp_step }
}

fn warp_step(layout: &Layout, result: &Layout, bits: &[InputBit], columns: &[u64], pivots: &[u32]) -> ReduceWarpStep {
    let count_bits = pivots.len();
    let dims = [result.shape(), &[1 << count_bits]].concat();
    let shape = Shape::new(&dims);
    let mut partial = result.map_bases(shape, |v| v << count_bits);
    // The number of a partial result has one bit per pivot. A redundant warp bit counts as the sum it equals.
    let span = Span::of(columns.iter().copied());
    for (warp_bit, &basis) in layout.warp.iter().enumerate() {
        let sum = span.express(basis).expect("the independent columns span all columns");
        let sum = match bits.iter().position(|&bit| bit == InputBit::Warp(warp_bit as u32)) {
            Some(own) => 1 << own,
            None => sum,
        };
        for (j, &pivot) in pivots.iter().enumerate() {
            let column = bits.iter().position(|&bit| bit == InputBit::Warp(pivot));
            if column.is_some_and(|column| sum >> column & 1 == 1) {
                partial.warp[warp_bit] ^= 1 << j;
            }
        }
    }
    // Lanes that hold copies of the result can load different partial results of it.
    let mut gathered = result.map_bases(shape, |v| v << count_bits);
    let copies = (0..gathered.lane.len()).filter(|lane| gathered.lane[*lane] == 0);
    let by_lanes = if 1 << count_bits > LOADED_BY_THREAD { count_bits } else { 0 };
    let shared: Vec<usize> = copies.take(by_lanes).collect();
    let in_thread = count_bits - shared.len();
    gathered.register.splice(0..0, (0..in_thread).map(|bit| 1u64 << bit));
    for (i, lane) in shared.iter().enumerate() {
        gathered.lane[*lane] = 1 << (in_thread + i);
    }
    let lane_steps = shared.iter().rev().map(|lane| ReduceLaneStep { mask: 1 << lane, register_xor: 0 }).collect();
    ReduceWarpStep { count: 1 << count_bits, partial, in_thread: 1 << in_thread, gathered, lane_steps }
}

fn forget_axis(layout: &Layout, result: &Layout, axis: usize, v: u64) -> u64 {
    let from = layout.shape.unflatten(v);
    let mut to = Coord::ZERO;
    for i in 0..result.rank() {
        to[i] = from[if i < axis { i } else { i + 1 }];
    }
    result.shape.flatten(to)
}

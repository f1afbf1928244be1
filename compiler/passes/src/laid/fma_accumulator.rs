//! The layout of accumulators of dots that threads compute by FMAs.
//!
//! Each step along K needs a column of operand A and a row of operand B, so that a thread with a nearly square part of
//! the accumulator loads least. Boxes of 4 x 4 neighbours allow loads of four elements from shared memory, and the
//! lanes are numbered in a zigzag (first along the axis with fewer of them, then along the other): a load of 16 bytes
//! takes half as many wavefronts if neighbouring lanes read the same address, and the zigzag provides such neighbours
//! for both operands.

use rtc_ir::Shape;
use rtc_layout::{Bases, Coord, Layout};

/// The widest box of neighbours along an axis.
const BOX: u32 = 4;

/// How many lanes and warps, as logarithms, lie along one axis.
#[derive(Clone, Copy)]
struct Spread {
    lanes: u32,
    warps: u32,
}

impl Spread {
    /// The logarithm of the elements that each thread has along an axis of 2^`size`.
    fn per_thread(self, size: u32) -> u32 {
        size.saturating_sub(self.lanes + self.warps)
    }
}

/// The layout of the accumulators of a dot of shape `[.., M, N]`.
pub fn fma_accumulator(shape: Shape, warps: u32) -> Layout {
    let rank = shape.rank();
    let (rows, columns) = (shape[rank - 2].trailing_zeros(), shape[rank - 1].trailing_zeros());
    let batches: u32 = (0..rank - 2).map(|axis| shape[axis].trailing_zeros()).sum();
    // Dots of a batch have no operand in common: they go to different warps, and to lanes that are left over.
    let mut warps = warps.trailing_zeros();
    let batch_warps = warps.min(batches);
    warps -= batch_warps;
    let batch_lanes = 5u32.saturating_sub(rows + columns).min(batches - batch_warps);
    let (along_m, along_n) = spread(rows, columns, 5 - batch_lanes, warps);

    let mut axes: Vec<AxisBases> = (0..rank).map(|axis| AxisBases { axis, next: 1, size: shape[axis] }).collect();
    let (batch, inner) = axes.split_at_mut(rank - 2);
    let [m, n] = inner else { return Layout::replicated(&[], 1 << (warps + batch_warps)) };
    let boxed = |spread: Spread, size: u32| spread.per_thread(size).min(BOX.trailing_zeros());
    let mut register = n.take(boxed(along_n, columns));
    register.extend(m.take(boxed(along_m, rows)));
    let mut lanes = zigzag(m, along_m.lanes, n, along_n.lanes);
    lanes.extend(take_of(batch, batch_lanes));
    let mut warp = n.take(along_n.warps);
    warp.extend(m.take(along_m.warps));
    warp.extend(take_of(batch, batch_warps));
    for axis in [n, m].into_iter().chain(batch.iter_mut().rev()) {
        register.extend(axis.rest());
    }
    let mut lane = [Coord::ZERO; 5];
    lane.iter_mut().zip(lanes).for_each(|(to, from)| *to = from);
    let dims: Vec<u32> = shape.iter().copied().collect();
    Layout::from_bases(&dims, &Bases { register, lane, warp, block: Vec::new() })
}

/// The spread of lanes and warps over rows and columns with which a thread loads least.
fn spread(rows: u32, columns: u32, lanes: u32, warps: u32) -> (Spread, Spread) {
    let all = (0..=lanes).flat_map(|lane| (0..=warps).map(move |warp| (lane, warp)));
    let options = all.map(|(lane, warp)| {
        let along_m = Spread { lanes: lane, warps: warp };
        (along_m, Spread { lanes: lanes - lane, warps: warps - warp })
    });
    let cost = |(along_m, along_n): &(Spread, Spread)| {
        let (m, n) = (1 << along_m.per_thread(rows), 1 << along_n.per_thread(columns));
        let loads = u32::div_ceil(m, BOX) + u32::div_ceil(n, BOX);
        // Among equals: few rows per thread, since operand A mostly has contiguous rows, so that a fragment of it
        // covers several steps; then nearly square parts.
        (loads, m + n, m, along_m.lanes.abs_diff(along_n.lanes), along_m.warps.abs_diff(along_n.warps))
    };
    options.min_by_key(cost).unwrap_or((Spread { lanes, warps }, Spread { lanes: 0, warps: 0 }))
}

/// One lane bit along the axis with fewer lanes, up to three along the other, and the rest.
fn zigzag(m: &mut AxisBases, along_m: u32, n: &mut AxisBases, along_n: u32) -> Vec<Coord> {
    let (few, fewer, many, more) = if along_m <= along_n { (m, along_m, n, along_n) } else { (n, along_n, m, along_m) };
    let first = fewer.min(1);
    let middle = more.min(3);
    let mut lanes = few.take(first);
    lanes.extend(many.take(middle));
    lanes.extend(few.take(fewer - first));
    lanes.extend(many.take(more - middle));
    lanes
}

/// `count` bases along several axes, the last axis first.
fn take_of(axes: &mut [AxisBases], count: u32) -> Vec<Coord> {
    let mut bases = Vec::new();
    for axis in axes.iter_mut().rev() {
        let free = (axis.size / axis.next).trailing_zeros();
        bases.extend(axis.take(free.min(count - bases.len() as u32)));
    }
    bases
}

/// An axis whose bases are given out from the lowest; zero once it is used up.
struct AxisBases {
    axis: usize,
    next: u32,
    size: u32,
}

impl AxisBases {
    fn take(&mut self, count: u32) -> Vec<Coord> {
        let mut bases = Vec::new();
        for _ in 0..count {
            if self.next < self.size {
                bases.push(Coord::along(self.axis, self.next));
                self.next *= 2;
            } else {
                bases.push(Coord::ZERO);
            }
        }
        bases
    }

    fn rest(&mut self) -> Vec<Coord> {
        self.take((self.size / self.next).trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sum_has_a_thread_and_squares_are_square() {
        for (dims, warps) in [
            (vec![64, 64], 1),
            (vec![64, 64], 8),
            (vec![1, 16], 4),
            (vec![4, 2], 8),
            (vec![128, 8], 2),
            (vec![4, 16, 32], 8),
            (vec![8, 2, 2], 1),
            (vec![2, 2, 4, 4], 4),
            (vec![1, 1], 4),
        ] {
            let layout = fma_accumulator(Shape::new(&dims).expect("a shape"), warps);
            assert!(layout.covers_tile(), "{dims:?} on {warps} warps");
            assert_eq!(layout.warps(), warps);
            let threads = 32 * warps;
            assert_eq!(
                layout.registers(),
                (dims.iter().product::<u32>() / threads).max(1),
                "{dims:?} on {warps} warps"
            );
        }
        let layout = fma_accumulator(Shape::new(&[128, 128]).expect("a shape"), 8);
        assert_eq!(Layout::fma_operand(&layout, 0, 1).registers(), 8);
        assert_eq!(Layout::fma_operand(&layout, 1, 1).registers(), 8);
    }
}

//! Blocked layouts: each thread a small box, the lanes a grid of boxes, the warps a grid of those.
//!
//! `size [1, 4], lanes [2, 16], warps [4, 1], order [1, 0]` is a box of 1 x 4 elements per thread, 2 x 16 lanes and
//! 4 x 1 warps: 8 x 64 elements at a time. `order` lists the axes, the one that varies fastest first. A larger tile
//! repeats the pattern in more registers, a smaller one leaves lanes and warps with copies.

use crate::coord::Shape;
use crate::linear::{LANE_BITS, LANES, Layout};

impl Layout {
    /// The blocked layout of a tile. All lists have one entry per axis; `lanes` multiply to 32, `warps` to the number
    /// of warps. Registers of a thread that would hold copies are left out.
    pub fn blocked(shape: &[u32], size: &[u32], lanes: &[u32], warps: &[u32], order: &[u32]) -> Layout {
        let shape = Shape::new(shape);
        check_order(order, shape.dims().len());
        for (what, list) in [("size", size), ("lanes", lanes), ("warps", warps)] {
            assert!(
                list.len() == shape.dims().len() && list.iter().all(|n| n.is_power_of_two()),
                "{what} of a blocked layout of shape {shape:?} must be {} powers of two, got {list:?}",
                shape.dims().len()
            );
        }
        assert_eq!(lanes.iter().product::<u32>(), LANES, "lanes of a blocked layout multiply to 32, got {lanes:?}");
        let mut grid = GridBuilder::new(shape);
        let mut register = grid.extend(size, order);
        let lane = grid.extend(lanes, order);
        let warp = grid.extend(warps, order);
        register.extend(grid.rest(order));
        register.retain(|&basis| basis != 0);
        let mut lane_bases = [0; LANE_BITS];
        lane_bases.copy_from_slice(&lane);
        Layout { shape, register, lane: lane_bases, warp, block: Vec::new() }
    }

    /// A blocked layout with `vector` elements per thread along the fastest axis (fewer if the tile has not enough for
    /// all threads), lanes and warps along the fastest axis as far as the tile reaches, then along the next.
    pub fn default_blocked(shape: &[u32], num_warps: u32, order: &[u32], vector: u32) -> Layout {
        let rank = shape.len();
        check_order(order, rank);
        assert!(num_warps.is_power_of_two(), "the number of warps is a power of two, got {num_warps}");
        assert!(vector.is_power_of_two(), "the vector width is a power of two, got {vector}");
        if rank == 0 {
            return Layout::replicated(shape, num_warps);
        }
        let (mut size, mut lanes, mut warps) = (vec![1; rank], vec![1; rank], vec![1; rank]);
        let elements: u32 = shape.iter().product();
        let fastest = order[0] as usize;
        size[fastest] = vector.min(shape[fastest]).min((elements / (LANES * num_warps)).max(1));
        let (mut lanes_left, mut warps_left) = (LANES, num_warps);
        for (i, &axis) in order.iter().enumerate() {
            let axis = axis as usize;
            let last = i + 1 == rank;
            let boxes = shape[axis] / size[axis];
            lanes[axis] = if last { lanes_left } else { boxes.min(lanes_left) };
            lanes_left /= lanes[axis];
            warps[axis] = if last { warps_left } else { (boxes / lanes[axis]).max(1).min(warps_left) };
            warps_left /= warps[axis];
        }
        Layout::blocked(shape, &size, &lanes, &warps, order)
    }
}

/// Hands out the bases of a tile, axis by axis from the low bits; zero once an axis is used up.
pub(crate) struct GridBuilder {
    shape: Shape,
    /// The step of the next basis along each axis.
    next: Vec<u32>,
}

impl GridBuilder {
    pub(crate) fn new(shape: Shape) -> GridBuilder {
        GridBuilder { shape, next: vec![1; shape.dims().len()] }
    }

    /// The basis of the next free bit of `axis`, or zero if the axis is used up.
    pub(crate) fn take(&mut self, axis: usize) -> u64 {
        let step = self.next[axis];
        self.next[axis] *= 2;
        if step < self.shape.dims()[axis] { u64::from(step) << self.shape.shift(axis) } else { 0 }
    }

    /// Bases for a grid of `counts` positions, axes in `order`.
    pub(crate) fn extend(&mut self, counts: &[u32], order: &[u32]) -> Vec<u64> {
        let mut bases = Vec::new();
        for &axis in order {
            for _ in 0..counts[axis as usize].trailing_zeros() {
                bases.push(self.take(axis as usize));
            }
        }
        bases
    }

    /// Bases for all that is left of the tile, axes in `order`.
    pub(crate) fn rest(&mut self, order: &[u32]) -> Vec<u64> {
        let dims = self.shape.dims().to_vec();
        let mut bases = Vec::new();
        for &axis in order {
            while self.next[axis as usize] < dims[axis as usize] {
                bases.push(self.take(axis as usize));
            }
        }
        bases
    }
}

fn check_order(order: &[u32], rank: usize) {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    assert!(
        sorted.iter().copied().eq(0..rank as u32),
        "the order of a layout of rank {rank} must name each axis once, got {order:?}"
    );
}

#[cfg(test)]
mod tests {
    use crate::{Coord, Layout};

    #[test]
    fn matches_division_and_remainder() {
        let layout = Layout::blocked(&[16, 128], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        assert_eq!(layout.registers(), 16);
        for warp in 0..4 {
            for lane in 0..32 {
                for register in 0..16 {
                    let row = lane / 16 + 2 * warp + register / 8 * 8;
                    let column = register % 4 + lane % 16 * 4 + register / 4 % 2 * 64;
                    assert_eq!(layout.coords(register, lane, warp), Coord::from([row, column]));
                }
            }
        }
    }

    #[test]
    fn a_small_tile_leaves_copies() {
        let layout = Layout::blocked(&[16], &[4], &[32], &[4], &[0]);
        assert_eq!(layout.registers(), 4);
        assert_eq!(layout.coords(1, 5, 3), Coord::from([5]));
        assert_eq!(Layout::blocked(&[2], &[4], &[32], &[1], &[0]).registers(), 2);
    }

    #[test]
    fn default_shrinks_the_vector_to_keep_threads_busy() {
        let layout = Layout::default_blocked(&[256], 4, &[0], 4);
        assert_eq!(layout, Layout::blocked(&[256], &[2], &[32], &[4], &[0]));
        let layout = Layout::default_blocked(&[64, 64], 4, &[1, 0], 8);
        assert_eq!(layout, Layout::blocked(&[64, 64], &[1, 8], &[4, 8], &[4, 1], &[1, 0]));
        assert!(Layout::default_blocked(&[1, 1], 4, &[1, 0], 8).covers_tile());
    }
}

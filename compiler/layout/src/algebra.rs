//! Layouts of derived tiles: the layout of a transposed, reshaped, reduced, broadcast or joined tile.
//!
//! Each operation returns the layout of the result if no element leaves its thread. [`Layout::register_map`] gives the
//! source register of each register of the result.

use crate::coord::{Coord, Shape};
use crate::gf2;
use crate::linear::Layout;

impl Layout {
    /// The layout of the tile with `axis` taken away, as by a reduction: threads that differed only along `axis` hold
    /// copies. Registers that would hold copies are dropped.
    ///
    /// `lane [[0, 1], [1, 0], ..]` without axis 1 is `lane [[0], [1], ..]`.
    pub fn remove_dim(&self, axis: usize) -> Layout {
        assert!(axis < self.rank(), "axis {axis} of a tile of rank {}", self.rank());
        let mut dims = self.shape().to_vec();
        dims.remove(axis);
        let shape = Shape::new(&dims);
        self.map_bases(shape, |basis| {
            let mut coord = self.shape.unflatten(basis);
            coord.0[axis..].rotate_left(1);
            coord[crate::MAX_RANK - 1] = 0;
            shape.flatten(coord)
        })
        .without_duplicate_registers()
    }

    /// The layout of the tile with a new axis of size 1 before `axis`.
    pub fn insert_dim(&self, axis: usize) -> Layout {
        assert!(axis <= self.rank(), "a new axis {axis} in a tile of rank {}", self.rank());
        let mut dims = self.shape().to_vec();
        dims.insert(axis, 1);
        self.reshape(&dims)
    }

    /// The layout of the transposed tile: axis `i` of the result is axis `permutation[i]` of this one.
    pub fn transpose(&self, permutation: &[u32]) -> Layout {
        let mut sorted = permutation.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.into_iter().eq(0..self.rank() as u32),
            "{permutation:?} is no permutation of the axes of a tile of rank {}",
            self.rank()
        );
        let dims: Vec<u32> = permutation.iter().map(|&axis| self.shape()[axis as usize]).collect();
        let shape = Shape::new(&dims);
        self.map_bases(shape, |basis| {
            let from = self.shape.unflatten(basis);
            let mut to = Coord::ZERO;
            for (i, &axis) in permutation.iter().enumerate() {
                to[i] = from[axis as usize];
            }
            shape.flatten(to)
        })
    }

    /// The layout of the tile read in row-major order as another shape of the same size. Always possible.
    ///
    /// In `[4, 8]`, `[2, 5]` is element 21, which is `[1, 0, 5]` of `[2, 2, 8]`.
    pub fn reshape(&self, shape: &[u32]) -> Layout {
        let to = Shape::new(shape);
        assert_eq!(to.bits(), self.shape.bits(), "reshape of {:?} to {shape:?} changes the size", self.shape());
        Layout { shape: to, ..self.clone() }
    }

    /// The layout that the operand of a broadcast needs, so that its result has this layout without data movement:
    /// `operand_shape` has size 1 along the axes that are broadcast. Registers that would hold copies are dropped.
    pub fn broadcast_operand(&self, operand_shape: &[u32]) -> Layout {
        let shape = self.check_broadcast(operand_shape, self.shape());
        self.map_bases(shape, |basis| {
            let mut coord = self.shape.unflatten(basis);
            for (axis, &dim) in operand_shape.iter().enumerate() {
                coord[axis] &= dim - 1;
            }
            shape.flatten(coord)
        })
        .without_duplicate_registers()
    }

    /// The layout of this tile broadcast to `result_shape`, where each thread holds all copies of its elements: new
    /// register bits run along the new axes, the last axis fastest.
    pub fn broadcast_result(&self, result_shape: &[u32]) -> Layout {
        self.check_broadcast(self.shape(), result_shape);
        let shape = Shape::new(result_shape);
        let mut layout = self.map_bases(shape, |basis| shape.flatten(self.shape.unflatten(basis)));
        for axis in (0..self.rank()).rev() {
            if self.shape()[axis] < result_shape[axis] {
                let bits = result_shape[axis].trailing_zeros();
                layout.register.extend((0..bits).map(|bit| 1u64 << (bit + shape.shift(axis))));
            }
        }
        layout
    }

    /// The layout of two tiles of this layout joined along a new last axis of size 2: the pair is in registers 2i, 2i+1.
    pub fn join(&self) -> Layout {
        let mut dims = self.shape().to_vec();
        dims.push(2);
        let mut layout = self.map_bases(Shape::new(&dims), |basis| basis << 1);
        layout.register.insert(0, 1);
        layout
    }

    /// The layout of the two halves of this tile along its last axis of size 2; `None` unless one register bit runs
    /// along that axis and nothing else touches it. (Convert to `remove_dim(last).join()` first in that case.)
    pub fn split(&self) -> Option<Layout> {
        if self.shape().last() != Some(&2) {
            return None;
        }
        let register = self.register.iter().position(|&basis| basis == 1)?;
        let mut rest = self.clone();
        rest.register.remove(register);
        if rest.columns().iter().any(|&basis| basis & 1 != 0) {
            return None;
        }
        let dims = &self.shape()[..self.rank() - 1];
        Some(rest.map_bases(Shape::new(dims), |basis| basis >> 1))
    }

    /// The layout of two tiles of this layout laid one after the other along `axis`: the second in the upper registers.
    pub fn concat(&self, axis: usize) -> Layout {
        let mut dims = self.shape().to_vec();
        let size = dims[axis];
        dims[axis] *= 2;
        let shape = Shape::new(&dims);
        let mut layout = self.map_bases(shape, |basis| shape.flatten(self.shape.unflatten(basis)));
        layout.register.push(shape.flatten(Coord::along(axis, size)));
        layout
    }

    /// The same tile without registers that hold copies: register bits whose basis is zero or depends on lower ones
    /// are dropped.
    pub fn without_duplicate_registers(&self) -> Layout {
        Layout { register: gf2::independent(&[], &self.register), ..self.clone() }
    }

    /// The same elements per thread with registers in canonical order: the reduced basis of their span, ascending in
    /// row-major order. Layouts with equal canonical forms differ by a register permutation only if their lanes and
    /// warps agree modulo those registers.
    pub fn canonical_registers(&self) -> Layout {
        let mut reduced: Vec<u64> = Vec::new();
        let mut vectors = gf2::independent(&[], &self.register);
        while let Some(pivot) = vectors.iter().copied().max() {
            let lead = 1u64 << (63 - pivot.leading_zeros());
            let clear = |v: u64| if v & lead != 0 { v ^ pivot } else { v };
            vectors = vectors.into_iter().filter(|&v| v != pivot).map(clear).collect();
            reduced = reduced.into_iter().map(clear).collect();
            reduced.push(pivot);
        }
        reduced.sort_unstable();
        Layout { register: reduced, ..self.clone() }
    }

    fn check_broadcast(&self, operand: &[u32], result: &[u32]) -> Shape {
        assert!(
            operand.len() == result.len() && operand.iter().zip(result).all(|(&o, &r)| o == r || o == 1),
            "a tile of shape {operand:?} does not broadcast to {result:?}"
        );
        Shape::new(operand)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Coord, Layout};

    fn sample() -> Layout {
        Layout::blocked(&[8, 64], &[2, 2], &[2, 16], &[2, 2], &[1, 0])
    }

    /// Checks `derived(place) == map(original(place))` for equal numbers of registers.
    fn check(original: &Layout, derived: &Layout, map: impl Fn(Coord) -> Coord) {
        assert_eq!(original.registers(), derived.registers());
        for warp in 0..original.warps() {
            for lane in 0..32 {
                for r in 0..original.registers() {
                    assert_eq!(derived.coords(r, lane, warp), map(original.coords(r, lane, warp)));
                }
            }
        }
    }

    #[test]
    fn transpose_swaps_coordinates() {
        check(&sample(), &sample().transpose(&[1, 0]), |c| [c[1], c[0]].into());
        let cube = sample().reshape(&[8, 4, 16]);
        check(&cube, &cube.transpose(&[2, 0, 1]), |c| [c[2], c[0], c[1]].into());
    }

    #[test]
    fn reshape_is_row_major() {
        check(&sample(), &sample().reshape(&[16, 32]), |c| {
            let i = c[0] * 64 + c[1];
            [i / 32, i % 32].into()
        });
        check(&sample(), &sample().insert_dim(1), |c| [c[0], 0, c[1]].into());
    }

    #[test]
    fn removing_a_dim_keeps_threads() {
        let layout = sample();
        for axis in 0..2 {
            let reduced = layout.remove_dim(axis);
            assert!(reduced.covers_tile());
            for place in 0..32 * layout.warps() {
                let (lane, warp) = (place % 32, place / 32);
                for r in 0..layout.registers() {
                    let coord = Coord::from([layout.coords(r, lane, warp)[1 - axis]]);
                    assert!((0..reduced.registers()).any(|q| reduced.coords(q, lane, warp) == coord));
                }
            }
        }
        assert_eq!(layout.remove_dim(0).registers(), 2);
    }

    #[test]
    fn broadcasts_need_no_movement() {
        let result = sample();
        let operand = result.broadcast_operand(&[8, 1]);
        assert!(result.register_map(&operand, |c| [c[0], 0].into()).is_some());
        let wide = operand.broadcast_result(&[8, 64]);
        assert!(wide.covers_tile() && wide.register_map(&operand, |c| [c[0], 0].into()).is_some());
    }

    #[test]
    fn join_and_split_are_inverse() {
        let layout = sample();
        let joined = layout.join();
        assert_eq!(joined.split().as_ref(), Some(&layout));
        assert_eq!(joined.coords(3, 7, 1), Coord::from([layout.coords(1, 7, 1)[0], layout.coords(1, 7, 1)[1], 1]));
        assert_eq!(Layout::blocked(&[64, 2], &[1, 1], &[16, 2], &[1, 1], &[1, 0]).split(), None);
    }

    #[test]
    fn concat_adds_the_upper_half() {
        let layout = sample();
        let both = layout.concat(0);
        assert_eq!(both.shape(), [16, 64]);
        assert_eq!(both.coords(layout.registers(), 3, 1), layout.coords(0, 3, 1) ^ Coord::from([8, 0]));
    }

    #[test]
    fn canonical_registers_ignore_order() {
        let a = Layout::blocked(&[16, 16], &[4, 2], &[4, 8], &[1, 1], &[1, 0]);
        let b = Layout::blocked(&[16, 16], &[4, 2], &[4, 8], &[1, 1], &[0, 1]);
        assert_ne!(a.register, b.register);
        assert_eq!(a.canonical_registers().register, b.canonical_registers().register);
    }
}

//! A layout in shared memory for moving a tile from one distributed layout to another: wide accesses, no bank conflicts.
//!
//! The layout is a basis of the tile's space, ordered as offset bits: first the `low` vectors, which form the widest
//! access; then vectors that fill up the 128 bytes of one row of banks; then the rest, the *rows*. Two elements
//! collide when they differ by a sum of rows (and of low vectors) only. The lanes that the hardware serves together
//! span a subspace P for the store and Q for the load, so the rows must span a subspace that meets P and Q (modulo
//! `low`) only in zero. Such a subspace always exists while P and Q fit into a row of banks: with I the intersection,
//! P = I + <p1, p2, ..>, Q = I + <q1, q2, ..>, take the sums p1 ^ q1, p2 ^ q2, .. and any complement of P + Q.
//! (The construction of the Linear Layouts paper.)
//!
//! Several choices of `low` are tried, for plain vectors on both sides and for `ldmatrix` and `stmatrix`; the cheapest
//! plan by counted wavefronts wins.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::access::SharedAccess;
use crate::gf2;
use crate::linear::Layout;
use crate::shared::SharedLayout;

/// Which matrix instructions the target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MatrixInstructions {
    /// `ldmatrix` (sm_75 on).
    pub load: bool,
    /// `stmatrix` (sm_90 on).
    pub store: bool,
}

/// How a tile goes from one distributed layout to another through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Where the elements lie in between.
    pub shared: SharedLayout,
    /// How they get there. A barrier follows.
    pub store: SharedAccess,
    /// How they come back.
    pub load: SharedAccess,
}

impl SharedPlan {
    /// The shared memory needed, in bytes.
    pub fn bytes(&self) -> u32 {
        self.shared.bytes(self.store.bits)
    }

    /// True if every step of both sides takes the least number of wavefronts for its width.
    pub fn is_conflict_free(&self) -> bool {
        self.store.wavefronts(true) == self.store.minimum_wavefronts(true)
            && self.load.wavefronts(false) == self.load.minimum_wavefronts(false)
    }
}

/// How many plans a thread remembers: passes ask for those of a kernel again and again.
const REMEMBERED: usize = 512;

thread_local! {
    static PLANS: RefCell<HashMap<(Layout, Layout, u32, MatrixInstructions), SharedPlan>> = RefCell::default();
}

/// The cheapest plan found for elements of `bits` bits (8 to 128). Both layouts are of the same tile and hold the same
/// elements in each block.
pub fn shared_plan(src: &Layout, dst: &Layout, bits: u32, matrix: MatrixInstructions) -> SharedPlan {
    let key = (src.clone(), dst.clone(), bits, matrix);
    PLANS.with_borrow_mut(|plans| {
        if plans.len() >= REMEMBERED {
            plans.clear();
        }
        plans.entry(key).or_insert_with(|| cheapest_plan(src, dst, bits, matrix)).clone()
    })
}

fn cheapest_plan(src: &Layout, dst: &Layout, bits: u32, matrix: MatrixInstructions) -> SharedPlan {
    assert_eq!(src.shape, dst.shape, "a conversion keeps the shape of the tile");
    assert!(bits.is_power_of_two() && (8..=128).contains(&bits), "elements of {bits} bits do not go to shared memory");
    let mut best: Option<(u32, SharedLayout)> = None;
    for low in low_candidates(src, dst, bits, matrix) {
        for store_phase in phases(src, &low, bits, matrix.store) {
            for load_phase in phases(dst, &low, bits, matrix.load) {
                let shared = layout_with(src, dst, bits, &low, &store_phase, &load_phase);
                let cost = SharedAccess::least_cost(&shared, src, bits, matrix.store, true)
                    + SharedAccess::least_cost(&shared, dst, bits, matrix.load, false);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, shared));
                }
            }
        }
    }
    let (_, shared) = best.expect("the empty choice of low vectors is always tried");
    let store = SharedAccess::best(&shared, src, bits, matrix.store, true);
    let load = SharedAccess::best(&shared, dst, bits, matrix.load, false);
    SharedPlan { shared, store, load }
}

/// A layout in shared memory that is read by `layout` without conflicts and as wide as possible, and contiguous along
/// the fastest axes of `order` for a writer that copies `vector` elements at a time (`cp.async`): the swizzle of rows
/// that suits `layout` best.
pub fn swizzle_for(layout: &Layout, bits: u32, order: &[u32], vector: u32, matrix: bool) -> SharedLayout {
    let shape = layout.shape();
    let row = order.first().map_or(1, |&axis| shape[axis as usize]);
    let mut best: Option<(u32, SharedLayout)> = None;
    let powers = |limit: u32| (0..=limit.trailing_zeros()).map(|i| 1u32 << i);
    // Groups that move together may be wider than what the writer copies at a time.
    for group in powers((row / vector.min(row)).min(4)).map(|wide| wide * vector.min(row)) {
        for max_phase in powers((row / group).min(16)) {
            for per_phase in powers(8) {
                let shared = SharedLayout::swizzled(shape, group, per_phase, max_phase, order);
                let cost = SharedAccess::least_cost(&shared, layout, bits, matrix, false);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, shared));
                }
            }
        }
    }
    best.expect("the plain layout is always tried").1
}

/// Choices of the lowest offset bits.
fn low_candidates(src: &Layout, dst: &Layout, bits: u32, matrix: MatrixInstructions) -> Vec<Vec<u64>> {
    let widest = (128 / bits).trailing_zeros() as usize;
    let threads = |layout: &Layout| [&layout.lane[..], &layout.warp].concat();
    let (src_threads, dst_threads) = (threads(src), threads(dst));
    let all_threads = [&src_threads[..], &dst_threads].concat();
    // Vectors that both sides have in registers, in the order of the load, and that no thread bit reaches.
    let both = gf2::intersection(&dst.register, &src.register);
    let common = truncated(gf2::independent(&all_threads, &ordered(both)), widest);
    let mut candidates = matrix_rows(src, dst, bits, matrix);
    candidates.push(Vec::new());
    if !common.is_empty() {
        candidates.push(common.clone());
    }
    // One side may be wider still: prefer vectors along which the lanes of the other side run.
    for (wide, wide_threads, narrow) in [(src, &src_threads, dst), (dst, &dst_threads, src)] {
        let own = gf2::independent(&[&common[..], wide_threads].concat(), &wide.register);
        let shared_with_lanes = gf2::independent(&common, &ordered(gf2::intersection(&own, &narrow.lane)));
        let extended = gf2::independent(&[], &[&common[..], &shared_with_lanes, &own].concat());
        for width in common.len() + 1..=extended.len().min(widest) {
            candidates.push(extended[..width].to_vec());
        }
    }
    let mut seen = HashSet::new();
    candidates.retain(|low| gf2::rank(low) == low.len() && seen.insert(low.clone()));
    candidates
}

/// The rows of the matrices that `ldmatrix` or `stmatrix` would access. They come before vectors and win ties.
fn matrix_rows(src: &Layout, dst: &Layout, bits: u32, matrix: MatrixInstructions) -> Vec<Vec<u64>> {
    let mut candidates = Vec::new();
    for (layout, allowed) in [(dst, matrix.load), (src, matrix.store)] {
        if allowed && matches!(bits, 8 | 16 | 32) {
            let packed = (32 / bits).trailing_zeros() as usize;
            if layout.register.len() >= packed {
                candidates.push([&layout.register[..packed], &layout.lane[..2]].concat());
            }
            if bits == 16 {
                candidates.push(layout.lane[2..].to_vec());
            }
        }
    }
    candidates
}

/// The subspaces of lanes that may be served together on one side: those of a vector access, and of a matrix access if
/// `low` is a matrix row of the layout.
fn phases(layout: &Layout, low: &[u64], bits: u32, matrix: bool) -> Vec<Vec<u64>> {
    let mut vector_bits = bits;
    let registers = gf2::Span::of(layout.register.iter().copied());
    for _ in low.iter().take_while(|&&v| registers.contains(v)) {
        vector_bits *= 2;
    }
    let lanes = (1024 / vector_bits.clamp(32, 128)).trailing_zeros() as usize;
    let mut list = vec![layout.lane[..lanes].to_vec()];
    let packed = (32 / bits.min(32)).trailing_zeros() as usize;
    if matrix && low.len() == packed + 2 {
        if low[packed..] == layout.lane[..2] && layout.register.starts_with(&low[..packed]) {
            list.push(layout.lane[2..].to_vec());
        }
        if bits == 16 && low == &layout.lane[2..] && !layout.register.is_empty() {
            list.push(vec![layout.register[0], layout.lane[0], layout.lane[1]]);
        }
    }
    list
}

fn layout_with(src: &Layout, dst: &Layout, bits: u32, low: &[u64], store: &[u64], load: &[u64]) -> SharedLayout {
    let space = [&src.lane[..], &src.warp, &dst.lane, &dst.warp, &dst.register, &src.register].concat();
    let total = gf2::rank(&space);
    let in_row = (1024 / bits).trailing_zeros() as usize;
    // Lanes that share a 32-bit word do not conflict: let the lanes of the load fill a word that registers do not.
    let mut low = low.to_vec();
    let word = (32 / bits.min(32)).trailing_zeros() as usize;
    if low.len() < word {
        let fill = gf2::independent(&low, &[load, store].concat());
        low.extend(fill.into_iter().take(word - low.len()));
    }
    // Everything else lives in one complement of `low` that holds the vectors of lanes and warps, so that these do not
    // reach into an access.
    let complement = gf2::independent(&low, &space);
    let basis = gf2::Span::of(low.iter().chain(&complement).copied());
    let project = |&v: &u64| {
        let sum = basis.express(v).expect("the basis spans the tile");
        gf2::apply(&complement, sum >> low.len())
    };
    let p: Vec<u64> = gf2::independent(&[], &store.iter().map(project).collect::<Vec<u64>>());
    let q: Vec<u64> = gf2::independent(&[], &load.iter().map(project).collect::<Vec<u64>>());
    let both = gf2::intersection(&p, &q);
    let (only_p, only_q) = (gf2::independent(&both, &p), gf2::independent(&both, &q));
    let pairs = only_p.iter().zip(&only_q).map(|(a, b)| a ^ b);
    let outside = gf2::independent(&[&p[..], &q].concat(), &complement);
    let rows: Vec<u64> = outside.into_iter().chain(pairs).take(total.saturating_sub(in_row)).collect();
    let banks = gf2::independent(&rows, &complement);
    SharedLayout::from_columns(src.shape, [&low[..], &banks, &rows].concat())
}

fn ordered(mut vectors: Vec<u64>) -> Vec<u64> {
    vectors.sort_unstable();
    vectors
}

fn truncated(mut vectors: Vec<u64>, len: usize) -> Vec<u64> {
    vectors.truncate(len);
    vectors
}

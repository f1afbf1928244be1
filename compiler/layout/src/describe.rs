//! The short name of a layout, for people: `blocked(..)`, `mma_v2(..)`, `mma_operand(..)`, `wgmma(..)`, else its bases.

use crate::linear::Layout;

/// The most bits that a thread loads at once.
const MOST_BITS: u32 = 128;

impl Layout {
    /// A constructor call that gives this layout, if one of the known constructors does, else the canonical text.
    /// [`str::parse`] reads either back to an equal layout.
    pub fn describe(&self) -> String {
        let candidates = self.blocked_candidates().into_iter().chain(self.mma_candidates());
        let matching = |text: &String| text.parse::<Layout>().as_ref() == Ok(self);
        candidates.into_iter().find(matching).unwrap_or_else(|| self.to_string())
    }

    fn blocked_candidates(&self) -> Vec<String> {
        let (shape, rank) = (self.shape(), self.rank());
        if rank == 0 || !self.block.is_empty() {
            return vec![format!("replicated(shape {shape:?}, warps {})", self.warps())];
        }
        let mut candidates = Vec::new();
        // Trailing zero bases of lanes and warps are copies along the slowest axis.
        for order in permutations(rank) {
            let slowest = order[rank - 1];
            let extents = |bases: &[u64]| {
                let mut extents = vec![1u32; rank];
                for &basis in bases {
                    let coord = self.shape.unflatten(basis);
                    extents[(0..rank).find(|&axis| coord[axis] != 0).unwrap_or(slowest as usize)] *= 2;
                }
                extents
            };
            let (lanes, warps) = (extents(&self.lane), extents(&self.warp));
            for own in (0..=self.register.len()).rev() {
                let size = extents(&self.register[..own]);
                candidates.push(format!(
                    "blocked(shape {shape:?}, size {size:?}, lanes {lanes:?}, warps {warps:?}, order {order:?})"
                ));
            }
        }
        // The smallest box that gives the layout, and row-major first.
        candidates.reverse();
        candidates.push(format!("replicated(shape {shape:?}, warps {})", self.warps()));
        candidates
    }

    fn mma_candidates(&self) -> Vec<String> {
        let (shape, rank) = (self.shape(), self.rank());
        let mut candidates = Vec::new();
        if rank < 2 {
            return candidates;
        }
        for m_bits in 0..=self.warp.len() as u32 {
            let (m, n) = (1u32 << m_bits, self.warps() >> m_bits);
            let mut warps = vec![1; rank];
            (warps[rank - 2], warps[rank - 1]) = (m, n);
            candidates.push(format!("mma_v2(shape {shape:?}, warps {warps:?})"));
            candidates.push(format!("mma_f64(shape {shape:?}, warps {warps:?})"));
            if rank == 2 && m >= 4 {
                for n in (3..=8).rev().map(|bits| 1u32 << bits).filter(|&n| n <= shape[1]) {
                    candidates.push(format!("wgmma(shape {shape:?}, n {n}, warps {warps:?})"));
                }
            }
            for operand in 0..2 {
                for bits in [16, 32, 8, 64] {
                    let call = "mma_operand(shape ";
                    let start = format!("{call}{shape:?}, operand {operand}, bits {bits}");
                    candidates.push(format!("{start}, warps {warps:?})"));
                    let k = shape[rank - 1 - operand];
                    let wider = Layout::mma_k_widths(k, bits).take_while(|width| width * bits <= MOST_BITS);
                    candidates.extend(wider.map(|width| format!("{start}, k_width {width}, warps {warps:?})")));
                }
            }
            if rank == 2 && m >= 4 {
                for bits in [16, 32, 8] {
                    candidates.push(format!("wgmma_operand(shape {shape:?}, bits {bits}, warps {warps:?})"));
                }
            }
        }
        candidates
    }
}

/// All orders of `rank` axes.
fn permutations(rank: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for axis in 0..rank as u32 {
        all = all
            .into_iter()
            .flat_map(|order: Vec<u32>| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, axis);
                    longer
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::Layout;

    #[test]
    fn known_layouts_have_names() {
        let blocked = Layout::blocked(&[16, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        assert_eq!(
            blocked.describe(),
            "blocked(shape [16, 64], size [1, 4], lanes [2, 16], warps [4, 1], order [1, 0])"
        );
        assert_eq!(Layout::mma_v2(&[64, 64], &[2, 2]).describe(), "mma_v2(shape [64, 64], warps [2, 2])");
        // With all warps along m the two kinds of accumulator are the same layout.
        assert_eq!(Layout::wgmma(&[64, 64], 64, [4, 1]), Layout::mma_v2(&[64, 64], &[4, 1]));
        let wgmma = Layout::wgmma(&[64, 128], 64, [4, 2]);
        assert_eq!(wgmma.describe(), "wgmma(shape [64, 128], n 64, warps [4, 2])");
        let operand = Layout::mma_operand(&[64, 32], 0, 16, &[2, 2]);
        assert_eq!(operand.describe(), "mma_operand(shape [64, 32], operand 0, bits 16, warps [2, 2])");
        let operand = Layout::mma_operand_wide(&[64, 32], 0, 16, 4, &[2, 2]);
        assert_eq!(operand.describe(), "mma_operand(shape [64, 32], operand 0, bits 16, k_width 4, warps [2, 2])");
        let reduced = blocked.remove_dim(1);
        assert_eq!(reduced.describe().parse(), Ok(reduced));
    }
}

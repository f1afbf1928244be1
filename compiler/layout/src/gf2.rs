//! Linear algebra over GF(2) on vectors of up to 64 bits.
//!
//! A vector is a `u64`, addition is XOR, a matrix is the slice of its columns: `apply(columns, x)` is the XOR of the
//! columns that the bits of `x` select. Everything is deterministic: of several solutions the one that uses the
//! earliest columns is returned, and it is linear in the right-hand side.
//!
//! ```
//! use rtc_layout::gf2;
//! let columns = [0b01, 0b11, 0b10];
//! assert_eq!(gf2::rank(&columns), 2);
//! assert_eq!(gf2::solve(&columns, 0b10), Some(0b011)); // column 0 ^ column 1
//! assert_eq!(gf2::kernel(&columns), vec![0b111]);
//! ```

/// A subspace that grows by vectors, and remembers how each member is a sum of the vectors inserted.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Reduced vectors with distinct leading bits, each with the mask of inserted vectors that it is the sum of.
    rows: Vec<(u64, u64)>,
    inserted: u32,
}

impl Span {
    /// The span of `vectors`.
    pub fn of(vectors: impl IntoIterator<Item = u64>) -> Span {
        let mut span = Span::default();
        for vector in vectors {
            span.insert(vector);
        }
        span
    }

    /// Adds a vector; true if it was not in the span yet.
    pub fn insert(&mut self, vector: u64) -> bool {
        assert!(self.inserted < 64, "a span holds at most 64 inserted vectors");
        let (rest, combination) = self.reduce(vector);
        let own = combination ^ (1 << self.inserted);
        self.inserted += 1;
        if rest == 0 {
            return false;
        }
        self.rows.push((rest, own));
        true
    }

    /// True if `vector` is a sum of inserted vectors.
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The mask of inserted vectors whose sum is `vector`: bit `i` is the `i`-th one inserted.
    pub fn express(&self, vector: u64) -> Option<u64> {
        let (rest, combination) = self.reduce(vector);
        (rest == 0).then_some(combination)
    }

    /// The dimension.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    fn reduce(&self, mut vector: u64) -> (u64, u64) {
        let mut combination = 0;
        for &(row, from) in &self.rows {
            let lead = 1u64 << (63 - row.leading_zeros());
            if vector & lead != 0 {
                vector ^= row;
                combination ^= from;
            }
        }
        (vector, combination)
    }
}

/// The product of a matrix with a vector: the XOR of the columns selected by the bits of `x`.
pub fn apply(columns: &[u64], x: u64) -> u64 {
    let mut sum = 0;
    let mut rest = x;
    while rest != 0 {
        let bit = rest.trailing_zeros() as usize;
        sum ^= columns[bit];
        rest &= rest - 1;
    }
    sum
}

/// The dimension of the span of the columns.
pub fn rank(columns: &[u64]) -> usize {
    Span::of(columns.iter().copied()).rank()
}

/// Some `x` with `apply(columns, x) == value`; it uses only columns that are independent of earlier ones.
pub fn solve(columns: &[u64], value: u64) -> Option<u64> {
    Span::of(columns.iter().copied()).express(value)
}

/// A basis of all `x` with `apply(columns, x) == 0`: one vector for each column that depends on earlier ones.
pub fn kernel(columns: &[u64]) -> Vec<u64> {
    let mut span = Span::default();
    let mut basis = Vec::new();
    for (i, &column) in columns.iter().enumerate() {
        if let Some(sum) = span.express(column) {
            basis.push(sum ^ (1 << i));
        }
        span.insert(column);
    }
    basis
}

/// The columns of the inverse of a square matrix, or `None` if it is singular.
pub fn invert(columns: &[u64]) -> Option<Vec<u64>> {
    let span = Span::of(columns.iter().copied());
    (0..columns.len()).map(|bit| span.express(1 << bit)).collect()
}

/// The vectors of `vectors`, in order, that are independent of `base` and of those before them.
pub fn independent(base: &[u64], vectors: &[u64]) -> Vec<u64> {
    let mut span = Span::of(base.iter().copied());
    vectors.iter().copied().filter(|&vector| !span.contains(vector) && span.insert(vector)).collect()
}

/// A basis of the intersection of the spans of `a` and `b`.
pub fn intersection(a: &[u64], b: &[u64]) -> Vec<u64> {
    let a = independent(&[], a);
    let b = independent(&[], b);
    let both: Vec<u64> = a.iter().chain(&b).copied().collect();
    // a·x == b·y for each kernel vector (x, y) of [a | b].
    let mask = (1u64 << a.len()) - 1;
    kernel(&both).into_iter().map(|pair| apply(&a, pair & mask)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_3x3_matrix_is_solved_or_refused_rightly() {
        for code in 0..512u64 {
            let columns = [code & 7, code >> 3 & 7, code >> 6 & 7];
            let image: Vec<u64> = (0..8).map(|x| apply(&columns, x)).collect();
            for value in 0..8 {
                match solve(&columns, value) {
                    Some(x) => assert_eq!(apply(&columns, x), value),
                    None => assert!(!image.contains(&value)),
                }
            }
            let zeros = (0..8).filter(|&x| image[x] == 0).count();
            assert_eq!(zeros, 1 << kernel(&columns).len());
            assert!(kernel(&columns).iter().all(|&x| apply(&columns, x) == 0));
            match invert(&columns) {
                Some(inverse) => assert!((0..8).all(|x| apply(&inverse, image[x as usize]) == x)),
                None => assert!(rank(&columns) < 3),
            }
        }
    }

    #[test]
    fn intersections_match_brute_force() {
        for code in 0..65536u64 {
            let a = [code & 15, code >> 4 & 15];
            let b = [code >> 8 & 15, code >> 12 & 15];
            let common = intersection(&a, &b);
            let (a, b, common) = (Span::of(a), Span::of(b), Span::of(common));
            assert!((0..16).all(|v| common.contains(v) == (a.contains(v) && b.contains(v))));
        }
    }
}

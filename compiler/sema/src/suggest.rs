//! "Did you mean": the known name that is closest to a wrong one.

/// The closest of `known`, if it is close enough to be meant.
pub fn suggest<'s>(name: &str, known: impl IntoIterator<Item = &'s str>) -> Option<&'s str> {
    let limit = match name.chars().count() {
        0..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    // `BLOCK` is meant by `BLOCK_SIZE`, however long the rest is.
    let begins = |k: &str| k.len() >= 4 && name.len() >= 4 && (name.starts_with(k) || k.starts_with(name));
    known
        .into_iter()
        .filter(|k| *k != name)
        .map(|k| (distance(name, k), k))
        .map(|(d, k)| (if begins(k) { d.min(limit) } else { d }, k))
        .filter(|(d, k)| *d <= limit && *d < k.chars().count())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace, exchange of neighbours) that lead from one text to the other; case counts half.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
            let mut best = (rows[i - 1][j - 1] + usize::from(!same)).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_found_and_far_ones_are_not() {
        assert_eq!(suggest("aragne", ["arange", "zeros"]), Some("arange"));
        assert_eq!(suggest("BLOCK_SZIE", ["BLOCK_SIZE", "BLOCK"]), Some("BLOCK_SIZE"));
        assert_eq!(suggest("program_idx", ["program_id", "num_programs"]), Some("program_id"));
        assert_eq!(suggest("BLOCK_SIZE", ["BLOCK", "x"]), Some("BLOCK"));
        assert_eq!(suggest("open", ["len", "x"]), None);
        assert_eq!(suggest("foo", ["softmax", "x"]), None);
        assert_eq!(suggest("x", ["y"]), None);
    }
}

//! Quantiles of times.

/// A quantile of these values, from 0 for the least to 1 for the largest, by linear interpolation; nothing if there are none.
///
/// ```
/// use rtc_runtime::internal::quantile;
/// assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5), Some(2.5));
/// assert_eq!(quantile(&[], 0.5), None);
/// ```
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = part.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    Some(sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low]))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn they_lie_between_the_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let found = [-1.0, 0.0, 0.2, 0.5, 1.0, 7.0].map(|part| quantile(&values, part));
        assert_eq!(found, [1.0, 1.0, 1.6, 2.5, 4.0, 4.0].map(Some));
        assert_eq!(quantile(&[5.0], 0.9), Some(5.0));
    }
}

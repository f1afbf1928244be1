//! Configurations beyond those that are written: other block sizes, warps, stages.
//!
//! Which parameters are block sizes is told by the configurations (powers of two that a configuration sets) or, where
//! the source has none, by their names (`BLOCK`, `TILE`). A kernel may rely on a size, for example that a row fits
//! one block; so what a configuration of the space computes is compared with what a written one does before it counts.

use rtc_compiler::{ArgKind, Choice, ConstValue, Spec};

/// The least size of a block.
const LEAST: i128 = 16;
/// The most configurations of a space.
const MOST: usize = 4096;

/// The space around the written configurations; the written ones are not in it. `has_dots`: stages matter.
pub(crate) fn space(written: &[Choice], spec: &Spec, has_dots: bool) -> Vec<Choice> {
    let mut bases = written.to_vec();
    if bases.iter().all(|choice| choice.values.is_empty()) {
        let values = spec.args.iter().filter(|arg| is_block_name(&arg.name)).filter_map(|arg| match &arg.kind {
            ArgKind::Constexpr(value) => Some((arg.name.clone(), value.clone())),
            _ => None,
        });
        let options = [("num_warps", spec.options.num_warps), ("num_stages", spec.options.num_stages)];
        bases = vec![Choice {
            values: values.collect(),
            options: options.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Choice::default()
        }];
    }
    let Some(base) = bases.first() else { return Vec::new() };
    let power = |value: &ConstValue| match value {
        ConstValue::Int(n) if *n >= LEAST && n.count_ones() == 1 => Some(*n),
        _ => None,
    };
    // The blocks of descriptors were computed by a hook for the sizes that are written.
    let has_blocks = bases.iter().any(|choice| !choice.blocks.is_empty());
    // A parameter is a block size if all configurations give it a power of two.
    let blocks: Vec<&str> = base
        .values
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|_| !has_blocks)
        .filter(|name| bases.iter().all(|choice| choice.value(name).is_some_and(|value| power(value).is_some())))
        .filter(|name| is_block_name(name) || bases.iter().any(|choice| choice.value(name) != base.value(name)))
        .collect();
    let ceiling: i128 = if blocks.len() > 1 { 256 } else { 65_536 };
    let sizes = |name: &str| {
        let given = bases.iter().filter_map(|choice| choice.value(name).and_then(power));
        let (low, high) = given.fold((i128::MAX, LEAST), |(low, high), n| (low.min(n), high.max(n)));
        let (low, high) = ((low / 2).max(LEAST), (high * 2).min(ceiling.max(high)));
        std::iter::successors(Some(low), |n| Some(n * 2)).take_while(move |n| *n <= high).collect::<Vec<_>>()
    };
    let mut out = vec![base.clone()];
    for name in blocks {
        out = sizes(name)
            .into_iter()
            .flat_map(|size| out.iter().map(move |choice| with_value(choice, name, size)))
            .take(MOST)
            .collect();
    }
    let warps: &[u32] = &[1, 2, 4, 8, 16];
    let stages: &[u32] = if has_dots { &[2, 3, 4, 5] } else { &[] };
    for (name, values) in [("num_warps", warps), ("num_stages", stages)] {
        if values.is_empty() {
            continue;
        }
        out = out.iter().flat_map(|c| values.iter().map(|n| with_option(c, name, *n))).take(MOST).collect();
    }
    out.retain(|choice| !written.contains(choice));
    out
}

pub(crate) fn is_block_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    ["BLOCK", "TILE"].iter().any(|word| upper.contains(word))
}

fn with_value(choice: &Choice, name: &str, size: i128) -> Choice {
    let mut choice = choice.clone();
    if let Some((_, value)) = choice.values.iter_mut().find(|(n, _)| n == name) {
        *value = ConstValue::Int(size);
    }
    choice
}

fn with_option(choice: &Choice, name: &str, value: u32) -> Choice {
    let mut choice = choice.clone();
    match choice.options.iter_mut().find(|(n, _)| n == name) {
        Some(option) => option.1 = value,
        None => choice.options.push((name.to_owned(), value)),
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_compiler::ArgSpec;

    fn choice(values: &[(&str, i128)], warps: u32) -> Choice {
        Choice {
            values: values.iter().map(|(name, n)| ((*name).to_owned(), ConstValue::Int(*n))).collect(),
            options: vec![("num_warps".into(), warps), ("num_stages".into(), 3)],
            ..Choice::default()
        }
    }

    #[test]
    fn sizes_go_beyond_those_that_are_written() {
        let written = [
            choice(&[("BM", 64), ("BN", 128), ("GROUP_M", 8)], 4),
            choice(&[("BM", 128), ("BN", 64), ("GROUP_M", 8)], 8),
        ];
        let space = space(&written, &Spec::default(), true);
        // 32..256 for both, five numbers of warps, four of stages, less the two that are written.
        assert_eq!(space.len(), 4 * 4 * 5 * 4 - 2);
        assert!(space.iter().all(|c| c.value("GROUP_M") == Some(&ConstValue::Int(8)) && !written.contains(c)));
        let plain = super::space(&written, &Spec::default(), false);
        assert_eq!(plain.len(), 4 * 4 * 5 - 2);
    }

    #[test]
    fn without_configurations_names_tell() {
        let constexpr = |name: &str, n| ArgSpec::constexpr(name, ConstValue::Int(n));
        let spec = Spec { args: vec![constexpr("HEAD", 64), constexpr("BLOCK_SIZE", 1024)], ..Spec::default() };
        let space = space(&[Choice::default()], &spec, false);
        assert_eq!(space.len(), 3 * 5);
        assert!(space.iter().all(|c| c.value("HEAD").is_none()));
        assert!(space.iter().any(|c| c.to_string() == "BLOCK_SIZE=2048 num_warps=16 num_stages=3"));
    }
}

//! Every instruction that computes a value must be among those that are compared with a GPU
//! (`runtime/emulator/tests/hardware/forms.txt`).

use std::collections::HashSet;
use std::sync::LazyLock;

/// Operations that move bytes, wait, jump or copy; they have tests of their own (`tests/filetests/async`, `wgmma.rs`
/// and `hand` of the emulator).
const OTHERS: &[&str] = &[
    "ld",
    "st",
    "mov",
    "cvta",
    "bra",
    "brx",
    "call",
    "bar",
    "barrier",
    "fence",
    "membar",
    "mbarrier",
    "cp",
    "setmaxnreg",
    "tensormap",
    "wgmma",
    "nanosleep",
    "prefetch",
    "createpolicy",
    "griddepcontrol",
    "mapa",
    "getctarank",
    "pragma",
];

/// Order, scope and hints: they do not change a value.
const MANNERS: &[&str] =
    &["relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "volatile", "weak"];

static FORMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let forms = include_str!("../../runtime/emulator/tests/hardware/forms.txt");
    let lines = forms.lines().filter_map(|line| line.split_once(": "));
    lines.flat_map(|(_, text)| text.split_whitespace()).map(plain).collect()
});

/// An instruction without its order, scope and hints.
fn plain(word: &str) -> String {
    let kept = |part: &&str| !MANNERS.contains(part) && !part.starts_with("L1::") && !part.starts_with("L2::");
    word.split('.').filter(kept).collect::<Vec<&str>>().join(".")
}

/// Fails if the PTX has an instruction that is not compared.
pub fn check(ptx: &str) -> Result<(), String> {
    let instruction = |line: &str| -> Option<String> {
        let line = line.trim().trim_start_matches(['{', ' ', '\t']);
        let line = if line.starts_with('@') { line.split_once(char::is_whitespace)?.1.trim() } else { line };
        let word = line.split([' ', '\t', ';']).next()?;
        let named = word.starts_with(|c: char| c.is_ascii_lowercase()) && word.contains('.');
        let first = word.split('.').next()?;
        (named && !OTHERS.contains(&first)).then(|| plain(word))
    };
    let missing: Vec<String> = ptx.lines().filter_map(instruction).filter(|word| !FORMS.contains(word)).collect();
    match missing.first() {
        None => Ok(()),
        Some(word) => Err(format!("`{word}` is not compared with a GPU: add it to forms.txt")),
    }
}

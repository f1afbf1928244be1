//! The comparison of two interfaces.

use std::fmt;

use similar::{ChangeTag, TextDiff};

/// An item that is in one of two interfaces only. A changed item is one that was removed and one that was added.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Programs that use it break.
    Removed(String),
    /// Programs may use it from now on.
    Added(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Removed(item) => write!(f, "-{item}"),
            Change::Added(item) => write!(f, "+{item}"),
        }
    }
}

/// The changes from the recorded interface to the present one, in the order of its lines.
pub fn changes(recorded: &str, present: &str) -> Vec<Change> {
    let diff = TextDiff::from_lines(recorded, present);
    let change = |line: similar::Change<&str>| {
        let item = line.value().trim_end().to_owned();
        match line.tag() {
            ChangeTag::Equal => None,
            ChangeTag::Delete => Some(Change::Removed(item)),
            ChangeTag::Insert => Some(Change::Added(item)),
        }
    };
    diff.iter_all_changes().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "pub fn a::one(u32)\npub fn a::two()\npub struct a::S\n";

    #[test]
    fn the_same_has_no_changes() {
        assert_eq!(changes(RECORDED, RECORDED), []);
    }

    #[test]
    fn a_changed_item_is_removed_and_added() {
        let present = RECORDED.replace("u32", "u64");
        let [was, is] = ["pub fn a::one(u32)", "pub fn a::one(u64)"].map(str::to_owned);
        assert_eq!(changes(RECORDED, &present), [Change::Removed(was), Change::Added(is)]);
    }

    #[test]
    fn new_and_missing_items_are_told_apart() {
        let present = RECORDED.replace("pub fn a::two()\n", "");
        assert_eq!(changes(RECORDED, &present), [Change::Removed("pub fn a::two()".into())]);
        assert_eq!(changes(&present, RECORDED), [Change::Added("pub fn a::two()".into())]);
    }
}

//! The file of an entry.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | `rtccache` |
//! | 8..12 | format version |
//! | 12..44 | key |
//! | 44..52 | length of the content |
//! | 52..84 | SHA-256 of all of that, the kind and the content |
//! | 84.. | content |
//!
//! Numbers are little-endian. Kind and key are in the checksum, so that a file in the wrong place is refused, too.

use crate::Key;
use sha2::{Digest, Sha256};

/// Version of this format and of the directories around it.
pub(crate) const FORMAT: u32 = 1;

/// Bytes before the content.
pub(crate) const HEADER: usize = 84;

const MAGIC: &[u8; 8] = b"rtccache";

/// Where the checksum lies.
const CHECKSUM: std::ops::Range<usize> = 52..84;

/// The header before the content.
pub(crate) fn header(kind: &str, key: &Key, content: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..44].copy_from_slice(key.as_bytes());
    header[44..52].copy_from_slice(&(content.len() as u64).to_le_bytes());
    let checksum = checksum(kind, &header, content);
    header[CHECKSUM].copy_from_slice(&checksum);
    header
}

fn checksum(kind: &str, header: &[u8], content: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(&header[..CHECKSUM.start]);
    hash.update((kind.len() as u64).to_le_bytes());
    hash.update(kind);
    hash.update(content);
    hash.finalize().into()
}

/// Checks a file; returns its problem, if it has one.
pub(crate) fn check(kind: &str, key: &Key, file: &[u8]) -> Result<(), &'static str> {
    let Some((header, content)) = file.split_at_checked(HEADER) else {
        return Err("it is cut off");
    };
    if header[..8] != MAGIC[..] || header[8..12] != FORMAT.to_le_bytes() {
        return Err("it does not begin as an entry does");
    }
    if header[12..44] != key.as_bytes()[..] {
        return Err("it holds the entry of another key");
    }
    match (content.len() as u64).cmp(&u64::from_le_bytes(header[44..52].try_into().unwrap_or_default())) {
        std::cmp::Ordering::Less => return Err("it is cut off"),
        std::cmp::Ordering::Greater => return Err("it is too long"),
        std::cmp::Ordering::Equal => {}
    }
    if header[CHECKSUM] != checksum(kind, header, content) {
        return Err("its checksum is wrong");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyBuilder;

    #[test]
    fn every_bit_counts() {
        let key = KeyBuilder::new("k").finish();
        let content = b"some content";
        let file = [&header("kernel", &key, content)[..], content].concat();
        assert_eq!(check("kernel", &key, &file), Ok(()));
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check("kernel", &key, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..file.len() {
            assert_eq!(check("kernel", &key, &file[..length]), Err("it is cut off"), "{length}");
        }
        assert_eq!(check("kernel", &key, &[&file[..], b"x"].concat()), Err("it is too long"));
        assert!(check("tuning", &key, &file).is_err());
        assert!(check("kernel", &KeyBuilder::new("l").finish(), &file).is_err());
    }

    #[test]
    fn content_may_be_empty() {
        let key = KeyBuilder::new("k").finish();
        assert_eq!(check("kernel", &key, &header("kernel", &key, b"")), Ok(()));
    }
}

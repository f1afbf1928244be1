//! Keys: hashes of everything that a cached thing depends on.

use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// Names an entry: 32 bytes, a SHA-256 of canonical bytes.
///
/// ```
/// use rtc_cache::Key;
/// let key = Key::from_bytes([7; 32]);
/// assert_eq!(key.to_string().parse::<Key>(), Ok(key));
/// assert_eq!(key.as_bytes()[0], 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// A key that was made elsewhere, as a cryptographic hash.
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Key, String> {
        let wrong = || format!("`{text}` is not a key: those have 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Key(bytes))
    }
}

/// Hashes named fields to a key.
///
/// Every field goes in with its name, its type and its length, so that no two sequences of fields give the same bytes.
///
/// ```
/// use rtc_cache::KeyBuilder;
/// let key = |a, b| KeyBuilder::new("example/1").text("name", a).text("name", b).finish();
/// assert_ne!(key("ab", "c"), key("a", "bc"));
/// assert_eq!(key("a", "b").to_string().len(), 64);
/// assert_ne!(KeyBuilder::new("example/1").bytes("name", b"ab").finish(), KeyBuilder::new("example/1").text("name", "ab").finish());
/// ```
#[derive(Clone, Debug)]
pub struct KeyBuilder {
    hash: Sha256,
}

impl KeyBuilder {
    /// Begins a key; `schema` says what the fields mean, and changes with it, such as `kernel/1`.
    pub fn new(schema: &str) -> KeyBuilder {
        KeyBuilder { hash: Sha256::new() }.field(b's', "schema", schema.as_bytes())
    }

    /// Adds bytes.
    pub fn bytes(self, name: &str, value: &[u8]) -> KeyBuilder {
        self.field(b'b', name, value)
    }

    /// Adds a text.
    pub fn text(self, name: &str, value: &str) -> KeyBuilder {
        self.field(b't', name, value.as_bytes())
    }

    /// Adds an integer.
    pub fn number(self, name: &str, value: impl Into<i128>) -> KeyBuilder {
        self.field(b'n', name, &value.into().to_le_bytes())
    }

    /// The key.
    pub fn finish(self) -> Key {
        Key(self.hash.finalize().into())
    }

    fn field(mut self, tag: u8, name: &str, value: &[u8]) -> KeyBuilder {
        self.hash.update([tag]);
        for part in [name.as_bytes(), value] {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let new = || KeyBuilder::new("k");
        let keys = [
            new().finish(),
            KeyBuilder::new("l").finish(),
            new().text("a", "b").finish(),
            new().bytes("a", b"b").finish(),
            new().text("ab", "").finish(),
            new().text("a", "").text("b", "").finish(),
            new().number("a", 1).finish(),
            new().number("a", 1).number("a", 1).finish(),
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
    }

    #[test]
    fn keys_have_a_text_form() {
        let key = KeyBuilder::new("k").finish();
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "00", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
    }

    /// A change of the keys invalidates every cache: this value must not change by chance.
    #[test]
    fn keys_are_the_same_on_every_machine() {
        let key = KeyBuilder::new("k/1").text("a", "b").bytes("c", &[1, 2]).number("d", -3).finish();
        assert_eq!(key.to_string(), "df8ef4e93a3228b76759331b71c8a7bdc967590e865175f041e94c721159bb8d");
    }
}

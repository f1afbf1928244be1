//! How a kernel with dots in loops gets their operands.

use std::fmt;
use std::str::FromStr;

/// How a kernel with dots in loops gets their operands. A structure that is not applicable, or does not fit, is
/// replaced by the next simpler one.
///
/// # Examples
///
/// ```
/// use rtc_abi::{WarpSpecialization, ResultStores, Structure};
///
/// let forced: Structure = "specialized-2-copied".parse()?;
/// assert_eq!(forced, Structure::Specialized(WarpSpecialization { blocks: Some(2), stores: Some(ResultStores::Copied) }));
/// assert_eq!(forced.to_string(), "specialized-2-copied");
/// assert_eq!(forced.warp_specialization().and_then(|given| given.stores), Some(ResultStores::ALL[1]));
/// assert_eq!((forced.without_warp_specialization(), Structure::Plain.stages()), (Structure::Pipelined, false));
/// let error = "ring".parse::<Structure>().unwrap_err();
/// assert!(error.to_string().contains(Structure::EXPECTED));
/// # Ok::<(), rtc_abi::UnknownStructure>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Structure {
    /// The compiler's choice.
    #[default]
    Auto,
    /// Every iteration loads its own operands, and no dot runs while others are prepared; atomic operations are
    /// instructions of each thread.
    Plain,
    /// All warps do the same, and copy operands ahead of the dots by `cp.async`.
    Pipelined,
    /// Producer warps copy by TMA, consumer warps compute, and blocks loop over programs.
    Specialized(WarpSpecialization),
}

/// The given properties of a warp-specialized kernel; `None`: the compiler's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WarpSpecialization {
    /// Blocks on an SM at a time, from 1 to 3.
    pub blocks: Option<u32>,
    /// How results are stored.
    pub stores: Option<ResultStores>,
}

/// How the results of a warp-specialized kernel get to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultStores {
    /// By TMA, while the next program is computed.
    Deferred,
    /// By TMA.
    Copied,
    /// As in the source.
    Direct,
}

impl ResultStores {
    /// All of them, the one that overlaps most first.
    pub const ALL: [ResultStores; 3] = [ResultStores::Deferred, ResultStores::Copied, ResultStores::Direct];

    fn name(self) -> &'static str {
        match self {
            ResultStores::Deferred => "deferred",
            ResultStores::Copied => "copied",
            ResultStores::Direct => "direct",
        }
    }
}

impl Structure {
    /// The accepted spellings of a structure, for messages.
    pub const EXPECTED: &'static str = "auto, plain, pipelined or specialized[-BLOCKS][-STORES] with 1 to 3 blocks and deferred, copied or direct stores";

    /// Whether operands may be copied into shared memory ahead of the dots.
    pub fn stages(self) -> bool {
        self != Structure::Plain
    }

    /// The given properties, if warp specialization is allowed.
    pub fn warp_specialization(self) -> Option<WarpSpecialization> {
        match self {
            Structure::Auto => Some(WarpSpecialization::default()),
            Structure::Specialized(given) => Some(given),
            Structure::Plain | Structure::Pipelined => None,
        }
    }

    /// The same without warp specialization.
    pub fn without_warp_specialization(self) -> Structure {
        if self.warp_specialization().is_some() { Structure::Pipelined } else { self }
    }
}

/// A text that names no structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no structure is called `{0}`; there are {expected}", expected = Structure::EXPECTED)]
pub struct UnknownStructure(
    /// The text.
    pub String,
);

impl FromStr for Structure {
    type Err = UnknownStructure;

    fn from_str(text: &str) -> Result<Structure, UnknownStructure> {
        let unknown = || UnknownStructure(text.to_owned());
        let mut parts = text.split('-').peekable();
        let structure = match parts.next() {
            Some("auto") => Structure::Auto,
            Some("plain") => Structure::Plain,
            Some("pipelined") => Structure::Pipelined,
            Some("specialized") => {
                let blocks = parts.peek().and_then(|part| part.parse().ok()).filter(|blocks| (1..=3).contains(blocks));
                if blocks.is_some() {
                    parts.next();
                }
                let stores = match parts.next() {
                    None => None,
                    Some(name) => {
                        Some(ResultStores::ALL.into_iter().find(|stores| stores.name() == name).ok_or_else(unknown)?)
                    }
                };
                Structure::Specialized(WarpSpecialization { blocks, stores })
            }
            _ => return Err(unknown()),
        };
        if parts.next().is_some() { Err(unknown()) } else { Ok(structure) }
    }
}

impl TryFrom<String> for Structure {
    type Error = UnknownStructure;

    fn try_from(text: String) -> Result<Structure, UnknownStructure> {
        text.parse()
    }
}

impl From<Structure> for String {
    fn from(structure: Structure) -> String {
        structure.to_string()
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Structure::Auto => f.write_str("auto"),
            Structure::Plain => f.write_str("plain"),
            Structure::Pipelined => f.write_str("pipelined"),
            Structure::Specialized(WarpSpecialization { blocks, stores }) => {
                f.write_str("specialized")?;
                if let Some(blocks) = blocks {
                    write!(f, "-{blocks}")?;
                }
                stores.map_or(Ok(()), |stores| write!(f, "-{}", stores.name()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_reads_back() {
        let specialized = [None, Some(1), Some(2), Some(3)].into_iter().flat_map(|blocks| {
            std::iter::once(None)
                .chain(ResultStores::ALL.map(Some))
                .map(move |stores| Structure::Specialized(WarpSpecialization { blocks, stores }))
        });
        for structure in [Structure::Auto, Structure::Plain, Structure::Pipelined].into_iter().chain(specialized) {
            assert_eq!(structure.to_string().parse(), Ok(structure));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "Specialized",
            "specialized-0",
            "specialized-4",
            "specialized-2-slow",
            "specialized-copied-2",
            "auto-1",
            "plain-",
        ] {
            assert_eq!(text.parse::<Structure>(), Err(UnknownStructure(text.to_owned())), "{text}");
        }
    }
}

//! The result of a compilation as bytes, for caches.
//!
//! Three parts, each after its length (8 bytes, little-endian): a JSON text with the compiler's messages, the metadata,
//! the PTX. The cache checks their integrity, and [`fingerprint`](crate::fingerprint) identifies the compilation.

use crate::{Artifact, Compiled, Metadata};
use rtc_source::{Diagnostic, SourceMap};
use serde::{Deserialize, Serialize};

/// A result that was packed.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The kernel and its warnings.
    pub compiled: Compiled,
    /// The output of `static_print`, line by line.
    pub prints: Vec<String>,
}

/// The compiler's messages, and their files.
#[derive(Serialize, Deserialize)]
struct Said {
    /// The names of the source files.
    names: Vec<String>,
    warnings: Vec<Diagnostic>,
    prints: Vec<String>,
}

/// Packs a result for these files.
pub fn pack(sources: &SourceMap, packed: &Packed) -> Vec<u8> {
    let Packed { compiled, prints } = packed;
    let said = Said { names: names(sources), warnings: compiled.warnings.clone(), prints: prints.clone() };
    let said = serde_json::to_string(&said).expect("structs of strings and numbers are always JSON");
    let mut bytes = Vec::new();
    for part in [&said, &compiled.artifact.metadata.to_json(), &compiled.artifact.ptx] {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part.as_bytes());
    }
    bytes
}

/// Reads a result that was packed for files of the same [fingerprint](crate::fingerprint), and gives the files in its
/// PTX the names that they have in `sources`. None if the bytes are of another form.
pub fn unpack(sources: &SourceMap, bytes: &[u8]) -> Option<Packed> {
    let [said, metadata, ptx] = parts(bytes)?;
    let said: Said = serde_json::from_str(said).ok()?;
    let metadata = Metadata::from_json(metadata).ok()?;
    let ptx = renamed(ptx, &said.names, &names(sources))?;
    let compiled = Compiled { artifact: Artifact { ptx, metadata }, warnings: said.warnings };
    Some(Packed { compiled, prints: said.prints })
}

/// The metadata of a packed result. None if the bytes are of another form.
pub fn packed_metadata(bytes: &[u8]) -> Option<Metadata> {
    let [_, metadata, _] = parts(bytes)?;
    Metadata::from_json(metadata).ok()
}

fn parts(mut bytes: &[u8]) -> Option<[&str; 3]> {
    let mut parts = [""; 3];
    for part in &mut parts {
        let (length, after) = bytes.split_first_chunk::<8>()?;
        let (text, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        *part = std::str::from_utf8(text).ok()?;
        bytes = after;
    }
    bytes.is_empty().then_some(parts)
}

fn names(sources: &SourceMap) -> Vec<String> {
    sources.files().map(|(_, file)| file.name.clone()).collect()
}

/// The PTX with other names in its `.file` lines.
fn renamed(ptx: &str, old: &[String], new: &[String]) -> Option<String> {
    if old == new {
        return Some(ptx.to_owned());
    }
    if old.len() != new.len() {
        return None;
    }
    let rename = |line: &str| {
        let quoted = line.trim_start().strip_prefix(".file")?.split_once('"')?.1.trim_end().strip_suffix('"')?;
        let index = old.iter().position(|name| name == quoted)?;
        Some(line.replacen(quoted, &new[index], 1))
    };
    Some(ptx.split_inclusive('\n').map(|line| rename(line).unwrap_or_else(|| line.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LaunchOptions, Program, Silent, Source, Specialization};
    use rtc_abi::ValueType;
    use rtc_abi::spec::{ArgSpec, ConstValue};
    use rtc_source::{Level, Levels};

    const TEXT: &str = "from helper import twice\n@triton.jit\ndef k(x_ptr, N: tl.constexpr):\n    tl.static_print(\"N\", N)\n    \
        i = tl.arange(0, N)\n    tl.store(x_ptr + i, twice(tl.load(x_ptr + i).to(tl.float32)))\n";
    const HELPER: &str = "@triton.jit\ndef twice(x):\n    return x / (x + 2)\n";

    fn program(directory: &str) -> Program {
        let file = |name: &str, text| Source::new(format!("{directory}{name}"), text);
        let mut levels = Levels::default();
        levels.set("narrowing-store", Level::Warn).unwrap();
        Program::parse(&[file("k.rt", TEXT), file("helper.rt", HELPER)]).with_levels(levels)
    }

    fn compile(program: &Program) -> Packed {
        let pointer = ValueType::parse("*fp16").unwrap();
        let args = vec![ArgSpec::value("x_ptr", pointer, Some(16)), ArgSpec::constexpr("N", ConstValue::Int(128))];
        let spec = Specialization { kernel: "k".into(), args, options: LaunchOptions::default() };
        let hash = crate::source_hash(program, &spec, "sm_80");
        let compiled = crate::compile(program, &spec, "sm_80", hash, &mut Silent).unwrap();
        Packed { compiled, prints: vec!["N 128".into()] }
    }

    #[test]
    fn a_result_is_the_same_after_packing() {
        let program = program("");
        let packed = compile(&program);
        assert!(!packed.compiled.warnings.is_empty());
        let bytes = pack(program.sources(), &packed);
        assert_eq!(unpack(program.sources(), &bytes), Some(packed));
        for length in 0..bytes.len() {
            assert_eq!(unpack(program.sources(), &bytes[..length]), None);
        }
        assert_eq!(unpack(program.sources(), &[&bytes[..], b"x"].concat()), None);
    }

    /// As if it had been compiled there.
    #[test]
    fn files_get_the_names_of_the_reader() {
        let directories = ["", "./", "some/where/", "/else/where/", "../up/"].map(program);
        let results = directories.each_ref().map(compile);
        for (from, packed) in directories.iter().zip(&results) {
            let bytes = pack(from.sources(), packed);
            for (to, expected) in directories.iter().zip(&results) {
                assert_eq!(unpack(to.sources(), &bytes).as_ref(), Some(expected));
            }
        }
        assert!(results[2].compiled.artifact.ptx.contains("\"some/where/helper.rt\""));
    }
}

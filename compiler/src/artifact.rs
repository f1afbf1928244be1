//! What a compilation gives: PTX and its metadata.

use crate::spec::const_to_json;
use crate::{Program, Spec};
use rtc_abi::Metadata;
use rtc_abi::spec::{ArgKind, Specialization};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// PTX text.
    pub ptx: String,
    /// What a launch needs to know.
    pub metadata: Metadata,
}

/// Version of the compiler, as metadata and cache keys carry it.
pub const COMPILER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A hash of everything that the result depends on.
pub fn source_hash(program: &Program, spec: &Spec, arch: &str) -> String {
    let spec = format!("{spec:?}");
    let bitcode = program.libdevice().map(|bitcode| hex(&Sha256::digest(bitcode)));
    let sources = program.sources().files().flat_map(|(_, source)| [source.name.as_str(), source.text.as_str()]);
    hash_of([COMPILER_VERSION, arch, &spec].into_iter().chain(bitcode.as_deref()).chain(sources))
}

/// A hash of texts and of where each of them ends.
pub(crate) fn hash_of<'t>(parts: impl Iterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The constexprs of a specialization as metadata writes them.
pub(crate) fn constexprs(specialization: &Specialization) -> Map<String, Value> {
    let value = |arg: &rtc_abi::spec::ArgSpec| match &arg.kind {
        ArgKind::Constexpr(value) => Some((arg.name.clone(), const_to_json(value))),
        _ => None,
    };
    specialization.args.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn the_hash_depends_on_every_part() {
        let program = |name: &str, text: &str| Program::parse(&[Source::new(name, text)]);
        let base = source_hash(&program("a.rt", "x"), &Spec::default(), "sm_80");
        assert_eq!(base, source_hash(&program("a.rt", "x"), &Spec::default(), "sm_80"));
        assert_eq!(base.len(), 64);
        let mut spec = Spec::default();
        spec.options.num_warps = 8;
        for other in [
            source_hash(&program("a.rt", "x"), &Spec::default(), "sm_90a"),
            source_hash(&program("a.rt", "x"), &spec, "sm_80"),
            source_hash(&program("a.rt", "y"), &Spec::default(), "sm_80"),
            source_hash(&program("a.r", "tx"), &Spec::default(), "sm_80"),
        ] {
            assert_ne!(base, other);
        }
    }
}

//! What a compilation gives: PTX and its metadata.

use crate::spec::const_to_json;
use crate::{Program, Spec};
use rtc_ptx::{Metadata, Param};
use rtc_sema::spec::{ArgKind, Specialization, ValueType};
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
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        // Lengths keep neighbouring parts apart.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    part(COMPILER_VERSION);
    part(arch);
    part(&format!("{spec:?}"));
    if let Some(bitcode) = program.libdevice() {
        part(&Sha256::digest(bitcode).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    for (_, source) in program.sources().files() {
        part(&source.name);
        part(&source.text);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lays the run-time parameters out as the kernel's `.param` list does: each at a multiple of its size.
///
/// `params` are names with types as signatures spell them.
pub(crate) fn lay_out<'a>(params: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Vec<Param>, String> {
    let mut end = 0u32;
    let mut laid = Vec::new();
    for (name, ty) in params {
        let size = ValueType::parse(ty).map(ValueType::param_bytes);
        let size = size.ok_or_else(|| format!("parameter `{name}` has type `{ty}`, which has no place in memory"))?;
        let offset = end.next_multiple_of(size);
        end = offset + size;
        laid.push(Param { name: name.to_owned(), ty: ty.to_owned(), offset, size, tensor_map: None });
    }
    Ok(laid)
}

/// The constexprs of a specialization as metadata writes them.
pub(crate) fn constexprs(specialization: &Specialization) -> Map<String, Value> {
    let value = |arg: &rtc_sema::spec::ArgSpec| match &arg.kind {
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
    fn parameters_lie_at_multiples_of_their_size() {
        let params = lay_out([("a", "u1"), ("x", "*fp32"), ("h", "fp16"), ("n", "i32"), ("m", "i64")]).unwrap();
        let places: Vec<(u32, u32)> = params.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(places, [(0, 1), (8, 8), (16, 2), (20, 4), (24, 8)]);
        assert!(lay_out([("x", "fp33")]).unwrap_err().contains("fp33"));
    }

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

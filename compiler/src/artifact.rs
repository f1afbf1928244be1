//! The result of a compilation: PTX and its metadata.

use crate::const_to_json;
use rtc_abi::Metadata;
use rtc_abi::spec::{ArgKind, Specialization};
use serde_json::{Map, Value};

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// PTX text.
    pub ptx: String,
    /// The information for a launch.
    pub metadata: Metadata,
}

/// The constexprs of a specialization as metadata writes them.
pub(crate) fn constexprs(specialization: &Specialization) -> Map<String, Value> {
    let value = |arg: &rtc_abi::spec::ArgSpec| match &arg.kind {
        ArgKind::Constexpr(value) => Some((arg.name.clone(), const_to_json(value))),
        _ => None,
    };
    specialization.args.iter().filter_map(value).collect()
}

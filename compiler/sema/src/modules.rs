//! Modules as values.

use std::fmt;

use rtc_syntax::ast::Symbol;

/// A source file or a file of the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(pub u32);

/// A module as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModuleRef {
    Triton,
    Language,
    Libdevice,
    Extra,
    Cuda,
    TargetInfo,
    PropagateNan,
    PyMath,
    Prim,
    Helpers,
    File(ModuleId),
    /// Something that kernels cannot use, by its path.
    Unknown(Symbol),
}

impl fmt::Display for ModuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModuleRef::Triton => "triton",
            ModuleRef::Language => "tl",
            ModuleRef::Libdevice => "libdevice",
            ModuleRef::Extra => "tl.extra",
            ModuleRef::Cuda => "tl.extra.cuda",
            ModuleRef::TargetInfo => "tl.target_info",
            ModuleRef::PropagateNan => "tl.PropagateNan",
            ModuleRef::PyMath => "math",
            ModuleRef::Prim => "prim",
            ModuleRef::Helpers => "triton_helpers",
            ModuleRef::File(_) => "another kernel file",
            ModuleRef::Unknown(path) => path,
        })
    }
}

//! The stages of a compilation, by name.

use std::fmt;
use std::str::FromStr;

/// A stage whose text `rtc emit` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The syntax tree.
    Ast,
    /// Tile IR as the semantic analysis leaves it.
    Tile,
    /// The same with pointers instead of descriptors, and a comment below each load and store of a tile: the box of a
    /// tensor that it accesses, or the reason why it is none.
    Accesses,
    /// Tile IR after the cleanups.
    TileOpt,
    /// Tile IR with layouts.
    Laid,
    /// Tile IR with shared memory and barriers.
    Scheduled,
    /// The outline of that: loops, partitions, copies, dots and waits.
    Plan,
    /// Thread-level MLIR.
    Mlir,
    /// MLIR in the LLVM dialect.
    LlvmDialect,
    /// LLVM IR after its optimizations.
    Llvm,
    /// PTX.
    Ptx,
}

impl Stage {
    /// All stages in order.
    pub const ALL: &[Stage] = &[
        Stage::Ast,
        Stage::Tile,
        Stage::Accesses,
        Stage::TileOpt,
        Stage::Laid,
        Stage::Scheduled,
        Stage::Plan,
        Stage::Mlir,
        Stage::LlvmDialect,
        Stage::Llvm,
        Stage::Ptx,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Ast => "ast",
            Stage::Tile => "tile",
            Stage::Accesses => "accesses",
            Stage::TileOpt => "tile-opt",
            Stage::Laid => "laid",
            Stage::Scheduled => "scheduled",
            Stage::Plan => "plan",
            Stage::Mlir => "mlir",
            Stage::LlvmDialect => "llvm-dialect",
            Stage::Llvm => "llvm",
            Stage::Ptx => "ptx",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Stage, String> {
        Stage::ALL.iter().copied().find(|stage| stage.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
            format!("`{text}` is not a stage; stages are {}", names.join(", "))
        })
    }
}

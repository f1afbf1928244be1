//! Machine code for a build script that wants it.

use crate::{Assembler, Error, error};
use rtc_compiler::Artifact;
use rtc_compiler::source::{Code, Level};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Assembles the kernels of one build, and warns once of an assembler that is known to make wrong code.
pub(crate) struct Cubins {
    named: Option<PathBuf>,
    level: Level,
    has_warned: Cell<bool>,
}

impl Cubins {
    /// By the `ptxas` that was named, or by the one that is found.
    pub(crate) fn new(named: Option<&Path>, level: Level) -> Cubins {
        Cubins { named: named.map(Path::to_owned), level, has_warned: Cell::new(level == Level::Allow) }
    }

    /// The machine code of a kernel.
    pub(crate) fn of(&self, artifact: &Artifact) -> Result<Vec<u8>, Error> {
        let metadata = &artifact.metadata;
        let assembler = self.assembler(&metadata.arch);
        if !self.has_warned.get()
            && let Some(text) = assembler.defect(&metadata.kernel, &metadata.arch, &artifact.ptx)
        {
            if self.level == Level::Deny {
                return Err(error(format!("error[{}]: {text}", Code::ASSEMBLER_DEFECT)));
            }
            self.has_warned.set(true);
            println!("cargo::warning=warning[{}]: {text}", Code::ASSEMBLER_DEFECT);
        }
        let made = assembler.assemble(&artifact.ptx, &metadata.kernel, &metadata.arch);
        made.map_err(|e| error(e.to_string()))
    }

    fn assembler(&self, arch: &str) -> Assembler {
        if let Some(path) = &self.named {
            return Assembler::new(path);
        }
        println!("cargo::rerun-if-env-changed=RTC_PTXAS");
        // One that cannot be called says so by its error.
        let named = std::env::var_os("RTC_PTXAS").filter(|name| !name.is_empty());
        match named {
            Some(path) => Assembler::new(path),
            None => Assembler::find_for(arch).unwrap_or_else(|| Assembler::new("ptxas")),
        }
    }
}

//! The option `--debug`: what profilers and debuggers are given of the source.

use clap::{Args, ValueEnum};
use rtc_compiler::LaunchOptions;
use std::path::Path;

/// What a kernel has for profilers and debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebugInfo {
    /// Lines with absolute paths, for ncu, compute-sanitizer and cuda-gdb; the code does not change
    Lines,
    /// Lines and variables, for cuda-gdb; NVIDIA's assembler does not optimize such code
    Variables,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct DebugArguments {
    /// Add debug information for profilers and debuggers
    #[arg(long, value_enum, value_name = "INFO", num_args = 0..=1, require_equals = true, default_missing_value = "lines")]
    pub(crate) debug: Option<DebugInfo>,
}

impl DebugArguments {
    /// The name of a source file in the kernel. Tools of NVIDIA look for a relative one in the folder where they run.
    pub(crate) fn name_of(self, path: &Path) -> String {
        let absolute = || std::path::absolute(path).ok().filter(|_| !crate::input::is_standard_input(path));
        let absolute = self.debug.and_then(|_| absolute());
        absolute.map_or_else(|| crate::input::name_of(path), |path| path.display().to_string())
    }

    /// Sets the launch option.
    pub(crate) fn apply(self, options: &mut LaunchOptions) {
        options.debug_info |= self.debug == Some(DebugInfo::Variables);
    }
}

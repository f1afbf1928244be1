//! The arguments of `rtc explain-speed`.

use crate::arguments::LevelArguments;
use clap::{Args, ValueEnum};
use rtc_runtime::DeviceKind;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Printed are the least time that each part of the GPU needs for the launch (tensor cores, device memory, L2 cache,\n\
    shared memory, issue slots, the longest chain of operations), the one that bounds it, and the change of the\n\
    configuration, the signature or the source that would help most. Changes are compiled and evaluated by the cost model;\n\
    where the launch is counted the best ones are launched in the emulator, too, and dropped if they write other results.\n\n\
    Examples:\n  \
    rtc explain-speed softmax.rt --launch launch.json\n  \
    rtc explain-speed matmul.py --launch launch.json --arch sm_80 --json\n  \
    rtc explain-speed matmul.rt --launch launch.json --device cuda\n  \
    rtc explain-speed matmul.rt --launch launch.json --measured-us 512.3 --counters never"
)]
pub(crate) struct ExplainSpeedArguments {
    /// Source file: .rt, or a .py file with Triton kernels; `-` reads a source from standard input
    pub(crate) file: PathBuf,
    /// The launch: grid, arguments and tensors
    #[arg(long, value_name = "LAUNCH.json")]
    pub(crate) launch: PathBuf,
    /// The kernel [default: that of the spec]
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Target [default: that of --device; elsewhere that of the spec, else sm_90a]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Also time the launch on this GPU, cuda or cuda:N, whose number of SMs the cost model takes
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<DeviceKind>,
    /// How long the launch takes on a GPU, in microseconds, where it was measured before
    #[arg(long, value_name = "US", value_parser = microseconds, conflicts_with = "device")]
    pub(crate) measured_us: Option<f64>,
    /// Whether the emulator counts the work of the launch, which takes long for large ones; otherwise it is estimated
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) counters: When,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Compile without reading or writing the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Directory to look for imported files in, after that of FILE
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) levels: LevelArguments,
}

/// When the work of a launch is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// If the launch is small enough to take a few seconds in the emulator
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A number of microseconds.
fn microseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if time > 0.0 && time <= 1e12 => Ok(time),
        _ => Err(format!("`{text}` is not a number of microseconds")),
    }
}

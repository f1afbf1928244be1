//! The arguments of `rtc explore`.

use crate::arguments::KernelArguments;
use crate::instrument::InstrumentArguments;
use clap::Args;
use rtc_runtime::DeviceKind;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "The page is one file and needs no network. A click on a line of the source, the tile IR, the PTX or the\n\
    SASS (if ptxas and nvdisasm are found) highlights the corresponding lines of the others. With --launch\n\
    the kernel runs in the emulator, and the page shows counts by line, findings of the sanitizer, a\n\
    roofline and the timeline of the first block.\n\n\
    Examples:\n  \
    rtc explore softmax.rt --launch launch.json\n  \
    rtc explore matmul.py --signature '*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, 128, 128, 64' \\\n              \
    --arch sm_90a -o matmul.html\n  \
    rtc explore matmul.rt --launch launch.json --trace matmul.perfetto.json\n  \
    rtc explore matmul.rt --launch launch.json --instrument --device cuda\n  \
    rtc explore program.py --timeline traces/matmul.perfetto.json\n  \
    rtc explore matmul.rt --launch launch.json --serve\n  \
    rtc explore softmax.py --serve --edit"
)]
pub(crate) struct ExploreArguments {
    #[command(flatten)]
    pub(crate) kernels: KernelArguments,
    /// A launch to run in the emulator. Its spec replaces the signature
    #[arg(long, value_name = "LAUNCH.json", conflicts_with_all = ["signature", "spec"])]
    pub(crate) launch: Option<PathBuf>,
    /// Write the page to this file [default: the name of FILE with the extension .html, in the current directory]
    #[arg(short, long, value_name = "PAGE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Write the data of the page as JSON instead, to the file of -o or to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the timeline for Perfetto (ui.perfetto.dev) and Chrome
    #[arg(long, value_name = "TRACE.json")]
    pub(crate) trace: Option<PathBuf>,
    /// With --launch: have the warps of the first blocks record when they come to copies, waits and dots. The timeline is then
    /// that record, of the emulator or of a GPU, and the page shows the kernel with the records
    #[arg(long, conflicts_with = "edit")]
    pub(crate) instrument: bool,
    #[command(flatten)]
    pub(crate) records: InstrumentArguments,
    /// With --instrument: where to record
    #[arg(long, default_value = "auto", value_name = "DEVICE", requires = "instrument")]
    pub(crate) device: DeviceKind,
    /// Show the timeline of this trace, which `python -m rtc --instrument` wrote, beside the kernel for which it was recorded
    #[arg(long, value_name = "TRACE.json", conflicts_with_all = ["launch", "signature", "spec", "arch", "instrument", "edit"])]
    pub(crate) timeline: Option<PathBuf>,
    /// Do not check the launch with the sanitizer
    #[arg(long)]
    pub(crate) no_sanitize: bool,
    /// Serve the page on this machine instead of writing it, and reload it when a file changes
    #[arg(long, conflicts_with_all = ["output", "json", "trace"])]
    pub(crate) serve: bool,
    /// With --serve: an editor in the page, which checks and runs the kernel during editing
    #[arg(long, requires = "serve", conflicts_with = "spec")]
    pub(crate) edit: bool,
    /// With --edit: time limit of a run [default: 20]
    #[arg(long, value_name = "SECONDS", default_value_t = 20, hide_default_value = true, requires = "edit", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) time_limit: u64,
    /// With --edit: limit of the memory that a run may write [default: 4]
    #[arg(long, value_name = "GIB", default_value_t = 4, hide_default_value = true, requires = "edit", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory_limit: u64,
    /// One run of --edit: the text and the inputs are read from standard input
    #[arg(long, hide = true, requires = "json")]
    pub(crate) edited: bool,
    /// The port of --serve [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, requires = "serve")]
    pub(crate) port: u16,
}

//! The arguments of `rtc tune`.

use crate::arguments::LevelArguments;
use crate::problem::Problem;
use clap::Args;
use rtc_build::Assembler;
use rtc_runtime::DeviceKind;
use rtc_source::Code;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "The configurations are those of `@triton.autotune` and `@triton.heuristics` above the kernel; the spec of the\n\
    LAUNCH.json leaves out what they set. The grid depends on them, so its sizes may be expressions:\n\n  \
    \"grid\": [\"cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)\", 1, 1]\n\n\
    All configurations are compiled in parallel, ordered by a cost model, and timed by successive halving on all GPUs of\n\
    the host that are alike; the tensors are put back. Results are kept in the cache (RTC_CACHE_DIR) by device, kernel and key, where `rtc run`\n\
    finds them. On the emulator the cost model alone decides.\n\n\
    Examples:\n  \
    rtc tune matmul.rt --launch launch.json\n  \
    rtc tune matmul.rt --launch launch.json --budget 5 -o tuned.json --plot matmul.svg\n  \
    rtc tune softmax.rt --launch launch.json --space"
)]
pub(crate) struct TuneArguments {
    /// Source file: .rt, or a .py file with Triton kernels
    pub(crate) file: PathBuf,
    /// The launch: grid, arguments and tensors
    #[arg(long, value_name = "LAUNCH.json")]
    pub(crate) launch: PathBuf,
    /// Where to launch it; a GPU that is named here tunes alone
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceKind,
    /// GPUs that share the work, such as 0,1: each configuration is timed on one of them
    /// [default: all that are of the model of the first]
    #[arg(long, value_name = "all|N,N..", conflicts_with = "device")]
    pub(crate) devices: Option<Ordinals>,
    /// Add the results to this file
    #[arg(short, long, value_name = "TUNED.json")]
    pub(crate) output: Option<PathBuf>,
    /// Print the result as JSON: the winner, how it was found, how sure that is, and all configurations
    #[arg(long)]
    pub(crate) json: bool,
    /// The longest time to take; the cost model's favourites are timed first
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) budget: Option<f64>,
    /// Look beyond the written configurations: other block sizes, warps, stages
    #[arg(long)]
    pub(crate) space: bool,
    /// Draw the configurations
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// The assembler of the configurations: `auto` (NVIDIA's ptxas if there is one, otherwise the driver, which
    /// compiles one kernel at a time), `driver`, or the path of a ptxas
    #[arg(long, value_name = "auto|driver|PATH", default_value = "auto")]
    pub(crate) assembler: AssemblerChoice,
    /// Time all configurations again, also those whose times are in the cache
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Neither read nor write the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Target where no GPU is used [default: sm_90a]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Directory to look for imported files in, after that of FILE
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) levels: LevelArguments,
}

/// Which GPUs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ordinals {
    /// All that are of the model of the first.
    All,
    /// These.
    Some(Vec<usize>),
}

impl std::str::FromStr for Ordinals {
    type Err = String;

    fn from_str(text: &str) -> Result<Ordinals, String> {
        if text == "all" {
            return Ok(Ordinals::All);
        }
        let numbers = text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<usize>>>();
        numbers.map(Ordinals::Some).ok_or_else(|| format!("`{text}` is neither `all` nor numbers of GPUs such as 0,1"))
    }
}

/// The assembler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AssemblerChoice {
    /// The `ptxas` that is found, else the driver.
    Auto,
    /// The driver.
    Driver,
    /// This `ptxas`.
    Path(PathBuf),
}

impl AssemblerChoice {
    /// The assembler; none for the driver.
    pub(crate) fn choose(&self) -> Result<Option<Assembler>, Problem> {
        match self {
            AssemblerChoice::Auto => Ok(Assembler::find_for("sm_90a")),
            AssemblerChoice::Driver => Ok(None),
            AssemblerChoice::Path(path) => {
                let assembler = Assembler::new(path);
                assembler.check().map_err(|error| Problem::input(Code::IO, error.to_string()))?;
                Ok(Some(assembler))
            }
        }
    }
}

impl std::str::FromStr for AssemblerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<AssemblerChoice, String> {
        Ok(match text {
            "auto" => AssemblerChoice::Auto,
            "driver" => AssemblerChoice::Driver,
            path => AssemblerChoice::Path(path.into()),
        })
    }
}

/// A number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err(format!("`{text}` is not a number of seconds")),
    }
}

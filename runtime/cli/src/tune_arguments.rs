//! The arguments of `rtc tune`.

use crate::arguments::LevelArguments;
use crate::problem::Problem;
use clap::{Args, ValueEnum};
use rtc_build::Assembler;
use rtc_runtime::DeviceKind;
use rtc_source::Code;
use rtc_tune::Shard;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    override_usage = "rtc tune [OPTIONS] --launch <LAUNCH.json> <FILE>\n       rtc tune [OPTIONS] --merge <SHARD.json>...",
    after_help = "The configurations are those of `@triton.autotune` and `@triton.heuristics` above the kernel; the\n\
    spec of the LAUNCH.json omits the parameters that they set. The sizes of the grid may be expressions\n\
    over these parameters:\n\n  \
    \"grid\": [\"cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)\", 1, 1]\n\n\
    The configurations are compiled in parallel, ordered by a cost model, and timed by successive halving on\n\
    all GPUs of the host that are of one model; the tensors are restored after each launch. Results are\n\
    cached (RTC_CACHE_DIR) by device, kernel and key, and used by `rtc run`. On the emulator the cost model\n\
    decides, or with --clock counters the counted instructions and memory traffic.\n\n\
    Examples:\n  \
    rtc tune matmul.rt --launch launch.json\n  \
    rtc tune matmul.rt --launch launch.json --budget 5 -o tuned.json --plot matmul.svg\n  \
    rtc tune softmax.rt --launch launch.json --space\n  \
    rtc tune softmax.rt --launch launch.json --shard 2/8 -o 2.json   (on one of eight machines)\n  \
    rtc tune --merge 1.json 2.json 3.json 4.json 5.json 6.json 7.json 8.json -o tuned.json\n  \
    rtc tune softmax.rt --launch launch.json --cluster auto -o tuned.json"
)]
pub(crate) struct TuneArguments {
    /// Source file: .rt, or a .py file with Triton kernels
    #[arg(required_unless_present = "merge")]
    pub(crate) file: Option<PathBuf>,
    /// The launch: grid, arguments and tensors
    #[arg(long, value_name = "LAUNCH.json", required_unless_present = "merge")]
    pub(crate) launch: Option<PathBuf>,
    /// Where to launch the kernel. A GPU named here is the only one that is used
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceKind,
    /// GPUs that share the work, such as 0,1: each configuration is timed on one of them
    /// [default: all GPUs of the same model as the first]
    #[arg(long, value_name = "all|N,N..", conflicts_with = "device")]
    pub(crate) devices: Option<Ordinals>,
    /// Time one of N disjoint parts of the configurations, such as 2/8, and write its results to the file of -o
    #[arg(long, value_name = "I/N", requires = "output", conflicts_with_all = ["plot", "merge", "cluster"])]
    pub(crate) shard: Option<Shard>,
    /// Only compile the configurations into the cache, for a store that machines share (RTC_CACHE_REMOTE). Needs no GPU
    #[arg(long, conflicts_with_all = ["plot", "merge", "cluster", "no_cache"])]
    pub(crate) compile_only: bool,
    /// Merge the results of all shards, separately for each GPU model: print them, cache them, add them to the file of -o
    #[arg(long, value_name = "SHARD.json", num_args = 1.., conflicts_with_all = ["file", "launch", "plot", "space", "cluster", "clock"])]
    pub(crate) merge: Vec<PathBuf>,
    /// Tune on the GPUs of the Ray cluster with this address, or `auto` for the cluster of this machine. Needs a Python
    /// with the packages rtc-triton and ray
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["plot", "devices", "device"])]
    pub(crate) cluster: Option<String>,
    /// The Python of --cluster [default: that of $VIRTUAL_ENV, otherwise python3 or python on PATH]
    #[arg(long, value_name = "PYTHON", requires = "cluster")]
    pub(crate) python: Option<PathBuf>,
    /// With --cluster: stop a part of the configurations after this time and try it on another node
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "cluster")]
    pub(crate) part_limit: Option<f64>,
    /// Clock for launches: events of the GPU, or the counters of the emulator with the cost model
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "events")]
    pub(crate) clock: Clock,
    /// Add the results to this file
    #[arg(short, long, value_name = "TUNED.json")]
    pub(crate) output: Option<PathBuf>,
    /// Print the result as JSON: the winner, how it was decided, its confidence, and all configurations
    #[arg(long)]
    pub(crate) json: bool,
    /// Time limit. The best configurations by the cost model are timed first
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) budget: Option<f64>,
    /// Also try block sizes, warps and stages that the source does not list
    #[arg(long)]
    pub(crate) space: bool,
    /// Plot the times of the configurations
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// The assembler of the configurations: `auto` (NVIDIA's ptxas if there is one, otherwise the driver, which
    /// compiles one kernel at a time), `driver`, or the path of a ptxas
    #[arg(long, value_name = "auto|driver|PATH", default_value = "auto")]
    pub(crate) assembler: AssemblerChoice,
    /// Time all configurations again, even if their times are cached
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Neither read nor write the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Target where no GPU is used [default: sm_90a]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Directory to search for imported files, after that of FILE
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

/// What times launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// The events of a GPU
    Events,
    /// The counters of the emulator: the same on every machine
    Counters,
}

//! The arguments of the commands, and the help that explains them.

use crate::completions::{CompletionsArguments, ManArguments};
use crate::debug_arguments::DebugArguments;
use crate::devices::DevicesArguments;
use crate::explain_speed_arguments::ExplainSpeedArguments;
use crate::explore_arguments::ExploreArguments;
use crate::host_arguments::{HostArguments, VerifyArguments};
use crate::instrument::InstrumentArguments;
use crate::mcp::McpArguments;
use crate::plan::PlanArguments;
use crate::tune_arguments::TuneArguments;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use rtc_compiler::Stage;
use rtc_runtime::DeviceKind;
use rtc_runtime::sanitize::Checks;
use rtc_testing::Tolerance;
use std::path::PathBuf;

/// Compiler for the Triton kernel language: compiles .rt and .py files to PTX, and runs them.
#[derive(Debug, Parser)]
#[command(
    name = "rtc",
    version,
    max_term_width = 110,
    after_help = "Exit status: 0 success, 1 error in the input, 2 error in the command line, 3 internal error,\n\
                  141 broken pipe.\n\
                  Start with: rtc build --help, rtc run --help"
)]
pub(crate) struct Arguments {
    /// Format of diagnostics on standard error. json also prints results as JSON, like `--json` of a command
    #[arg(long, global = true, value_enum, default_value_t = MessageFormat::Human)]
    pub(crate) message_format: MessageFormat,
    /// Whether errors are colored.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Print remarks: whether and how each loop is pipelined, and which promise or option would improve it; the cost of
    /// layout conversions; registers, shared memory and occupancy; the time of each stage of the compilation
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How errors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// Text with a picture of the source.
    Human,
    /// One JSON object per line.
    Json,
}

/// When to color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The languages of `rtc build --emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitLanguage {
    /// A header and a source file in C.
    C,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile kernels: writes DIR/<symbol>.ptx and DIR/<symbol>.json
    Build(BuildArguments),
    /// Print one stage of the compilation of one kernel
    Emit(EmitArguments),
    /// Compile a kernel, launch it as a LAUNCH.json describes, and write or check the results
    Run(RunArguments),
    /// List, verify or clear the cache of compiled kernels
    Cache(CacheArguments),
    /// Find the fastest configuration of a kernel for a LAUNCH.json
    Tune(Box<TuneArguments>),
    /// Compare the kernel of a Python file with its reference, or replay recorded results without Python
    Verify(VerifyArguments),
    /// Time the kernel of a Python file and its reference
    Bench(HostArguments),
    /// Measure the precision of the kernel of a Python file
    Precision(HostArguments),
    /// Rewrite block pointers, which Triton has removed, as pointers with masks
    Fix(FixArguments),
    /// Explain a diagnostic's code or a function of the language, or list all codes
    Explain(ExplainArguments),
    /// Explain what bounds the speed of a launch, and which change would help most
    ExplainSpeed(Box<ExplainSpeedArguments>),
    /// Serve an editor as a language server, on standard input and output
    Lsp(LspArguments),
    /// Show a kernel as one HTML page: source, tile IR after each pass, PTX, layouts, counters, timeline
    Explore(Box<ExploreArguments>),
    /// Check this machine's driver, GPUs, assembler, cache and Python, with a remedy for each problem
    Doctor(DoctorArguments),
    /// List the devices that kernels can run on: the GPUs with their memory and capability, and the emulator
    Devices(DevicesArguments),
    /// Serve tools for agents that write kernels: the Model Context Protocol on standard input and output
    Mcp(McpArguments),
    /// Print the completions of a shell
    Completions(CompletionsArguments),
    /// Print the manual page of a command, or write all of them
    Man(ManArguments),
    /// Compile what a build script with rtc-build asks for on standard input
    #[command(hide = true)]
    Embed,
}

/// Which warnings are shown and which are errors. A code counts more than a group, and `--deny` more than `--warn` more
/// than `--allow`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LevelArguments {
    /// Do not show this warning, e.g. --allow deprecated; a code, `warnings` (all that are on) or `all`
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// Show this warning, even if it is off by default, e.g. --warn index-may-overflow
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) warn: Vec<String>,
    /// Make this warning an error, e.g. --deny warnings
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
}

/// The kernels of a file, and the arguments to compile them for.
#[derive(Clone, Debug, Args)]
pub(crate) struct KernelArguments {
    /// Source file: .rt, .py with Triton kernels, or .tir with a kernel in tile IR; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The kernel. Optional if only one kernel of the file is not called by another. Repeat it once per signature
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Vec<String>,
    /// One entry per parameter, in order: a type makes a run-time argument, a value a constexpr
    #[arg(long, value_name = "SIGNATURE", allow_hyphen_values = true)]
    pub(crate) signature: Vec<String>,
    /// The signature and the launch options as a file
    #[arg(long, value_name = "SPEC.json")]
    pub(crate) spec: Vec<PathBuf>,
    /// Targets, separated by commas [default: that of the spec, otherwise sm_80, whose PTX runs on all later GPUs]
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    pub(crate) arch: Vec<String>,
    /// Warps per program [default: that of the spec, otherwise 4]
    #[arg(long, value_name = "N")]
    pub(crate) num_warps: Option<u32>,
    /// Depth of software pipelines [default: that of the spec, otherwise 3]
    #[arg(long, value_name = "N")]
    pub(crate) num_stages: Option<u32>,
    /// Refuse kernels with more than N instructions per thread (estimated) [default: that of the spec, otherwise 500000]
    #[arg(long, value_name = "N")]
    pub(crate) max_instructions: Option<u32>,
    /// Any launch option, such as maxnreg=128 or enable_fp_fusion=false
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) option: Vec<String>,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Use NVIDIA's libdevice (libdevice.10.bc of the CUDA toolkit), for the same bits
    #[arg(long, value_name = "FILE.bc")]
    pub(crate) libdevice: Option<PathBuf>,
    /// Directory to search for imported files, after that of FILE
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) debug: DebugArguments,
    #[command(flatten)]
    pub(crate) levels: LevelArguments,
}

const SIGNATURES: &str = "Signatures have one entry per parameter:\n  \
    *fp32  i32  fp32  *bf16          run-time arguments; the types are i1, i8 to i64, u8 to u64,\n                                   \
    fp16, bf16, fp32, fp64, fp8e5 and fp8e4nv\n  \
    *fp32:16  i32:16                 address or number divisible by 16: allows wide accesses\n  \
    i32:1                            the constant 1\n  \
    1024  0.5  True  None  \"gelu\"    constexprs\n  \
    tl.float16  leaky_relu           a dtype, a function of the file\n  \
    BLOCK=1024                       by name";

#[derive(Debug, Args)]
#[command(after_help = format!("{SIGNATURES}\n\n\
    Examples:\n  \
    rtc build softmax.rt --signature '*fp32:16, *fp32:16, i32, i32, i32, BLOCK=1024' -o out\n  \
    rtc build softmax.rt --spec spec.json --arch sm_90a -o out\n  \
    rtc build kernels.py --kernel add --signature '*fp32:16, *fp32:16, i32, 1024' \\\n                       \
    --kernel scale --signature '*fp32, fp32, i32, 256' --arch sm_80,sm_90a\n\n\
    Output: DIR/<symbol>.ptx, and DIR/<symbol>.json with the metadata of a launch. With several targets\n\
    the names include the target, <symbol>.sm_80.ptx; with several signatures of one kernel a number,\n\
    <symbol>.2.ptx. The paths of the PTX files are printed, one per line.\n\n\
    --rust writes DIR/<file>.rs instead: PTX, metadata and a typed launch for each kernel, as rtc-build\n\
    generates them. --emit c writes DIR/<file>.h and DIR/<file>.c, which use the CUDA driver."))]
pub(crate) struct BuildArguments {
    #[command(flatten)]
    pub(crate) kernels: KernelArguments,
    /// Write a Rust module for the file
    #[arg(long, conflicts_with = "emit")]
    pub(crate) rust: bool,
    /// Write the source of a program instead of PTX
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) emit: Option<EmitLanguage>,
    /// Compile without reading or writing the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Output directory, created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Stages, in order:\n  \
    ast            the syntax tree\n  \
    tile           tile IR as the semantic analysis leaves it\n  \
    accesses       ... with the tensor box of each load and store, or the reason why it has none\n  \
    tile-opt       ... after the cleanups\n  \
    laid           ... with layouts: which thread holds which element\n  \
    scheduled      ... with shared memory and barriers\n  \
    plan           an outline of that: loops, copies, dots and waits\n  \
    mlir           thread-level MLIR\n  \
    llvm-dialect   MLIR in the LLVM dialect\n  \
    llvm           LLVM IR, optimized\n  \
    ptx            PTX\n\n\
    Examples:\n  \
    rtc emit add.rt --signature '*fp32:16, *fp32:16, i32, 1024' --stage laid\n  \
    rtc emit add.rt --spec spec.json --print-after licm\n  \
    rtc emit add.rt --stage ast")]
pub(crate) struct EmitArguments {
    #[command(flatten)]
    pub(crate) kernels: KernelArguments,
    /// The stage to print [default: ptx, or nothing with --print-after]
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Option<Stage>,
    /// Print the kernel after this pass
    #[arg(long, value_name = "PASS")]
    pub(crate) print_after: Vec<String>,
    /// Print the kernel after every pass
    #[arg(long)]
    pub(crate) print_after_all: bool,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Checks the compiler, the CUDA driver, the GPUs, the assemblers and their known defects, the cache, the\n\
    shared store and Python. Compiles a small kernel and runs it on each device. Exit status 1 if no\n\
    device runs it."
)]
pub(crate) struct DoctorArguments {
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "A LAUNCH.json describes the compilation and the launch:\n\n  \
    {\"spec\": {\"args\": [{\"name\": \"x\", \"type\": \"*fp32\", \"divisible_by\": 16},\n                    \
    {\"name\": \"n\", \"type\": \"i32\"},\n                    \
    {\"name\": \"BLOCK\", \"constexpr\": 1024}], \"options\": {\"num_warps\": 4}},\n   \
    \"grid\": [4, 1, 1],\n   \
    \"args\": {\"x\": {\"tensor\": \"a\"}, \"n\": 4000},\n   \
    \"tensors\": \"inputs.safetensors\"}\n\n\
    The path of the tensors file is relative to the LAUNCH.json. OUT.safetensors holds all tensors after the\n\
    launch.\n\n\
    Devices: auto (the first GPU, otherwise the emulator), cuda:N, emulator (executes the PTX on the CPU),\n\
    interpreter (executes the tile IR; reports accesses out of bounds with their line).\n\n\
    Examples:\n  \
    rtc run softmax.rt --launch launch.json -o out.safetensors\n  \
    rtc run softmax.rt --launch launch.json --device emulator --check golden.safetensors --tolerance 2ulp")]
pub(crate) struct RunArguments {
    /// Source file: .rt, .py with Triton kernels, .tir with a kernel in tile IR, or .ptx of any compiler; `-` reads
    /// standard input
    pub(crate) file: PathBuf,
    /// The launch: grid, arguments and tensors
    #[arg(long, value_name = "LAUNCH.json")]
    pub(crate) launch: PathBuf,
    /// Where to launch it
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceKind,
    /// Write all tensors after the launch to this file
    #[arg(short, long, value_name = "OUT.safetensors")]
    pub(crate) output: Option<PathBuf>,
    /// Compare the tensors after the launch with those of this file; exit status 1 if they differ
    #[arg(long, value_name = "GOLDEN.safetensors")]
    pub(crate) check: Option<PathBuf>,
    /// Check the launch on the emulator: memory (bounds, rows, alignment), init (reads of uninitialized memory), race
    /// (missing order between warps or blocks), sync (barriers, shuffles, deadlocks, endless loops), promise (false
    /// promises of the source), or all; several separated by commas. all,open also finds kernels that depend on
    /// unspecified results. Any finding is exit status 1
    #[arg(long, value_name = "LIST")]
    pub(crate) sanitize: Option<Checks>,
    /// With --sanitize sync: report an endless loop after N instructions of a block, counted once per warp [default:
    /// $RTC_STEPS, otherwise 1000000000]
    #[arg(long, value_name = "N", requires = "sanitize")]
    pub(crate) instructions: Option<u64>,
    /// Print the results as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Count instructions, memory traffic, bank conflicts and divergence on the emulator, and estimate the least time
    #[arg(long)]
    pub(crate) counters: bool,
    /// Have the warps of the first blocks record when they come to copies, waits and dots, and write the timeline for Perfetto
    /// (ui.perfetto.dev) and Chrome; on a GPU or the emulator
    #[arg(long, value_name = "TRACE.json")]
    pub(crate) instrument: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) records: InstrumentArguments,
    /// Tolerance for floats: T means |x - y| <= T + T*|y|; or a number of ulp, such as 2ulp
    /// [default: 1e-5 for fp32 and fp64, 2e-3 for fp16, 1.6e-2 for bf16, 0.13 for fp8]
    #[arg(long, value_name = "TOLERANCE", requires = "check")]
    pub(crate) tolerance: Option<Tolerance>,
    /// Target [default: that of the GPU; without one that of the spec, otherwise sm_90a]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Compile without reading or writing the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Also write the PTX and its metadata to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Launch N more times and print the median time (GPU)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) repeat: u32,
    /// Use NVIDIA's libdevice (libdevice.10.bc of the CUDA toolkit), for the same bits. The interpreter still uses the
    /// standard library
    #[arg(long, value_name = "FILE.bc")]
    pub(crate) libdevice: Option<PathBuf>,
    /// Directory to search for imported files, after that of FILE
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) debug: DebugArguments,
    #[command(flatten)]
    pub(crate) levels: LevelArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "RTC_CACHE_DIR names the directory [default: the platform's directory for caches, such as ~/.cache/rtc].\n\
    RTC_CACHE_LIMIT limits its size in bytes, such as 500M [default: 2G]; the least recently used entries\n\
    are removed first. `rtc build` and `rtc run` use the cache unless --no-cache is given; -v reports hits."
)]
pub(crate) struct CacheArguments {
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the entries, the most recently used first
    List,
    /// Read all entries and remove corrupt ones; exit status 1 if there were any
    Verify,
    /// Remove all entries
    Clear,
}

#[derive(Debug, Args)]
pub(crate) struct LspArguments {
    /// No effect: standard input and output are always used. Editors pass it by convention
    #[arg(long)]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// A code, as in `error[shape-mismatch]`, or a name, as in `tl.load`
    pub(crate) name: Option<String>,
    /// Print one JSON object: `codes`, or `name` and `text`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FixArguments {
    /// Python files. Code that cannot be rewritten safely is left unchanged and reported with line and reason
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the changes to the files instead of showing them
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Show the changes as a unified diff, also with --write or --check
    #[arg(long)]
    pub(crate) diff: bool,
    /// Write nothing. Exit status 1 if a file would change or has block pointers that cannot be rewritten
    #[arg(long)]
    pub(crate) check: bool,
}

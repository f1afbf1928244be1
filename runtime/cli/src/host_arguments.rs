//! The command-line arguments of `verify`, `bench` and `precision`.

use clap::Args;
use rtc_runtime::DeviceKind;
use std::path::PathBuf;

/// The arguments for the Python package.
#[derive(Clone, Debug, Args)]
pub(crate) struct HostArguments {
    /// The Python to run the file in [default: that of $VIRTUAL_ENV, otherwise python3 or python on PATH]
    #[arg(long, value_name = "PYTHON")]
    pub(crate) python: Option<PathBuf>,
    /// A file that defines kernel_fn, reference_fn and get_inputs, followed by options; FILE.py --help lists them
    #[arg(value_name = "FILE.py", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "FILE.py is run by a Python with the package rtc-triton. --golden replays, without Python, the launches that\n\
    `rtc verify FILE.py --record DIR` recorded. Exit status 1 if a result is wrong."
)]
pub(crate) struct VerifyArguments {
    /// The Python to run the file in [default: that of $VIRTUAL_ENV, otherwise python3 or python on PATH]
    #[arg(long, value_name = "PYTHON", conflicts_with = "golden")]
    pub(crate) python: Option<PathBuf>,
    /// Replay the launches recorded in this directory and compare their results
    #[arg(long, value_name = "DIR")]
    pub(crate) golden: Option<PathBuf>,
    /// Where to replay them
    #[arg(long, default_value = "auto", value_name = "DEVICE", requires = "golden")]
    pub(crate) device: DeviceKind,
    /// Write one JSON object to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// A file that defines kernel_fn, reference_fn and get_inputs, followed by options; FILE.py --help lists them
    #[arg(
        value_name = "FILE.py",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "golden",
        conflicts_with = "golden"
    )]
    pub(crate) words: Vec<String>,
}

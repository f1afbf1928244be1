//! `rtc mcp`: tools for agents.

use crate::host;
use crate::problem::Problem;
use clap::Args;
use rtc_mcp::{Limits, Setup};
use rtc_runtime::DeviceKind;
use rtc_source::Code;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "An agent starts the server, for example by {\"command\": \"rtc\", \"args\": [\"mcp\"]} in its list of servers.\n\
    Each call runs in its own process. With --reference, a client can change neither the reference nor the\n\
    inputs."
)]
pub(crate) struct McpArguments {
    /// The Python for kernels [default: that of $VIRTUAL_ENV, otherwise python3 or python on PATH]
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Use reference_fn and get_inputs of this file, and only the kernel of a client
    #[arg(long, value_name = "FILE.py")]
    reference: Option<PathBuf>,
    /// With --reference: a size that must not be varied, because the reference accepts no other; repeatable
    #[arg(long, value_name = "SIZE", requires = "reference")]
    fixed: Vec<u64>,
    /// Where kernels run [default: where their tensors are]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<String>,
    /// Time limit of a call
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Limit of the memory that a process of a call may write
    #[arg(long, value_name = "GIB", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory_limit: u64,
}

/// A device as `--device` of other commands names it.
fn device(text: &str) -> Result<String, String> {
    text.parse::<DeviceKind>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Serves until the client ends.
pub(crate) fn mcp(arguments: &McpArguments) -> Result<(), Problem> {
    let failed = |error: std::io::Error| Problem::input(Code::IO, error.to_string());
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(failed);
    // A word without a folder is looked for on the PATH.
    let python = arguments.python.as_ref().map(|path| match path.components().count() {
        1 => Ok(path.clone()),
        _ => absolute(path),
    });
    let python = python.transpose()?;
    rtc_mcp::serve(Setup {
        command: host::own_command(python.as_deref()).map_err(failed)?,
        python: python.filter(|_| !host::is_in_python()),
        reference: arguments.reference.as_ref().map(absolute).transpose()?,
        fixed: arguments.fixed.clone(),
        device: arguments.device.clone(),
        limits: Limits { time: Duration::from_secs(arguments.time_limit), memory: arguments.memory_limit << 30 },
    })
    .map_err(failed)
}

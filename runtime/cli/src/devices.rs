//! `rtc devices`: the devices that kernels can run on.

use crate::output::{out, outln};
use crate::problem::Problem;
use crate::report::Reporter;
use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The first column is what --device takes; without it the first GPU is used, or else the emulator.\n\
    With --json the fields are the same on a machine without a driver; those of the driver and of GPUs are null there.\n\
    `rtc doctor` also runs a kernel on each device."
)]
pub(crate) struct DevicesArguments {
    /// Print the devices as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the devices.
pub(crate) fn devices(arguments: &DevicesArguments, reporter: &Reporter) -> Result<(), Problem> {
    let list = rtc_doctor::devices();
    match arguments.json || reporter.is_json() {
        true => outln!("{:#}", list.to_json()),
        false => out!("{list}"),
    }
}

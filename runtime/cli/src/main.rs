//! The executable `rtc`; `lib.rs` has the commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rtc_cli::run(std::env::args_os()))
}

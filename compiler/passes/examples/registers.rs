//! Reads kernels in tile IR, each from a file whose name is a line of standard input, and prints for each the estimate of
//! the registers of a thread, and those that the kernel sets, or 0. `scripts/register_estimates` compares them with the
//! assembler.

use std::io::BufRead;
use std::process::ExitCode;

use rtc_passes::work::{Scope, estimate};

fn main() -> ExitCode {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let read = std::fs::read_to_string(&line).map_err(|error| error.to_string());
        match read.and_then(|text| rtc_ir::text::parse(&text).map_err(|error| error.to_string())) {
            Ok(kernel) => {
                let set = kernel.registers_at_start().or(kernel.options.maxnreg).unwrap_or(0);
                println!("{} {set}", estimate(&kernel, Scope::Kernel));
            }
            Err(error) => {
                eprintln!("{line}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

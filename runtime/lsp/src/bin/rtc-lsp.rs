//! The language server on its own, without the compiler's back end: `rtc lsp` is the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    match rtc_lsp::serve_stdio() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

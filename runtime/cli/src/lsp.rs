//! `rtc lsp`: the language server for editors.

use crate::problem::Problem;
use rtc_source::Code;

/// Serves an editor on standard input and output until it ends.
pub(crate) fn lsp() -> Result<(), Problem> {
    rtc_lsp::serve_stdio().map_err(|message| Problem::input(Code::IO, message))
}

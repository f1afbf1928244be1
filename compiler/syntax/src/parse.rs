//! Entry point of the parser.

use crate::ast::Module;
use rtc_source::{Code, Diagnostic, Diagnostics, FileId, Span};

/// Reads a whole file.
pub fn parse(file: FileId, _text: &str) -> (Module, Diagnostics) {
    let pending = Diagnostic::error(Code::INTERNAL, Span::new(file, 0, 0), "the parser is not in place yet");
    (Module { file, body: Vec::new() }, vec![pending])
}

//! Draws diagnostics for people and as JSON.

use crate::{Diagnostic, SourceMap};

/// Draws one diagnostic: `error[code]: text`, then the picture.
pub fn render(_sources: &SourceMap, diagnostic: &Diagnostic, _color: bool) -> String {
    format!("error[{}]: {}\n", diagnostic.code, diagnostic.message)
}

/// One diagnostic as a line of JSON.
pub fn render_json(_sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    format!("{{\"code\":\"{}\"}}", diagnostic.code)
}

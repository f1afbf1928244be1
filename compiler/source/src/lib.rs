//! Source text, positions in it, and diagnostics as data.
//!
//! A [`Span`] is a byte range of one file of a [`SourceMap`]. Every stage reports user mistakes as
//! [`Diagnostic`]s, which hold data only; [`render`] draws them.

mod codes;
mod diagnostic;
pub mod json_fields;
mod levels;
mod map;
mod render;
mod span;

pub use codes::{CODES, Code};
pub use diagnostic::{Diagnostic, Diagnostics, Edit, Label, Severity};
pub use levels::{Level, Levels, UnknownCode, WARNINGS};
pub use map::{Position, SourceFile, SourceMap};
pub use render::{render, render_json};
pub use span::{FileId, Span};

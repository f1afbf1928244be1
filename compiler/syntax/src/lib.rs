//! Source text to syntax tree.
//!
//! The language is Python's, as far as kernels and the host code beside them use it. [`parse`] never fails: what cannot
//! be read becomes a diagnostic if it is kernel code, and is skipped if it is host code.
//!
//! No type of the lexer and parser generators leaves this crate.

pub mod ast;
mod parse;

pub use parse::parse;

//! Source text to syntax tree.
//!
//! The language is Python's, as far as kernels and the host code in their files use it. [`parse`] never fails: text
//! that cannot be read becomes a diagnostic if it is kernel code, and is skipped if it is host code. [`print()`] shows
//! a tree as text.
//!
//! ```text
//! text ──lexer──► tokens with layout ──parse: cut into blocks──► grammar, actions ──► ast
//!                                                   └─ explain: a refused block as a diagnostic
//! ```
//!
//! No type of the lexer and parser generators leaves this crate.

mod actions;
pub mod ast;
mod explain;
pub mod fix;
mod lexer;
mod parse;
mod print;
mod token;

#[allow(clippy::all, clippy::unwrap_used, missing_docs, unused)]
mod grammar {
    include!(concat!(env!("OUT_DIR"), "/grammar.rs"));
}

pub use parse::parse;
pub use print::print;

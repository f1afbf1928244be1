//! Semantic analysis: from the syntax tree to the tile IR.
//!
//! [`compile_kernel`] runs a kernel function symbolically: constants are computed, run-time values become operations of
//! the tile IR, every call of a jit function is inlined. Mistakes come back as diagnostics, several at a time.
//!
//! | file | holds |
//! | --- | --- |
//! | `entry.rs` | the kernel function and its parameters |
//! | `resolve.rs`, `library.rs` | names: files, imports; the standard library |
//! | `stmt.rs`, `control.rs`, `loops.rs` | statements, branches, loops |
//! | `expr.rs`, `operators.rs`, `attrs.rs`, `subscript.rs`, `call.rs` | expressions, operators, attributes, subscripts, calls |
//! | `values.rs`, `types.rs`, `const_eval.rs` | what an expression can be |
//! | `promote.rs`, `cast.rs`, `broadcast.rs` | types and shapes that meet |
//! | `builtins/` | the functions of the language, one row each |
//! | `reference.rs` | what the language offers, as data for the reference pages |
//! | `cx.rs` | the context: kernel under construction, frames, findings |

mod assertion;
mod attrs;
mod broadcast;
mod builtins;
mod call;
mod cast;
mod const_eval;
mod construct;
mod control;
mod cx;
mod declared;
mod dictionary;
mod emitter;
mod entry;
mod evaluator;
mod expect;
mod expr;
mod frames;
mod library;
mod library_call;
mod loops;
mod modules;
mod operators;
mod promote;
pub mod reference;
mod reshape;
mod resolve;
mod stmt;
mod subscript;
mod suggest;
mod tensor_views;
mod types;
mod values;
mod world;

pub use emitter::TargetInfo;
pub use entry::{Analysis, compile_kernel};
pub use rtc_abi::spec;
pub use suggest::suggest;
pub use world::ModuleAst;

//! Semantic analysis: from the syntax tree to the tile IR.
//!
//! [`compile_kernel`] runs a kernel function symbolically: constants are computed, run-time values become operations of
//! the tile IR, every call of a jit function is inlined. Mistakes come back as diagnostics, several at a time.
//!
//! The files form layers; each imports its own and those below (`tests/tidy.rs`):
//!
//! | layer | file | holds |
//! | --- | --- | --- |
//! | entry | `entry.rs` | the kernel function and its parameters |
//! | | `tuning.rs`, `hooks.rs` | the configurations in the decorators of a kernel |
//! | | `reference.rs` | the functions of the language, as data for the reference pages |
//! | evaluation | `evaluator.rs` | the state of evaluation: files, globals, limits |
//! | | `resolve.rs`, `globals.rs` | the values of names: globals, imports, members of modules |
//! | | `stmt.rs`, `control.rs`, `loops.rs` | statements, branches, loops |
//! | | `expr.rs`, `dictionary.rs`, `attrs.rs`, `subscript.rs` | expressions, attributes, subscripts |
//! | | `call.rs`, `construct.rs`, `class_names.rs` | calls, values and constants of classes |
//! | built-ins | `builtins/` | the functions of the language: a declaration in `NAME.rt`, a row of code in `NAME.rs` |
//! | context | `cx.rs` | the interface for built-ins and operators: the emitter, and a few methods of the evaluator |
//! | | `operators.rs` | operators on run-time values |
//! | emission | `emitter.rs` | the kernel under construction, the stack of calls, the diagnostics |
//! | | `cast.rs`, `broadcast.rs`, `reshape.rs` | casts, broadcasting, reshaping |
//! | | `tensor_views.rs` | descriptors and block pointers as values |
//! | | `facts.rs` | the values of expressions, for editors |
//! | | `expect.rs`, `library_call.rs`, `assertion.rs` | checks of arguments; assertions at run time |
//! | values | `values.rs`, `types.rs`, `const_eval.rs`, `promote.rs` | the values of expressions, and their types |
//! | | `declared.rs` | names, parameters and defaults of built-ins, as the build script reads them |
//! | | `world.rs`, `library.rs`, `modules.rs`, `frames.rs` | files, the standard library, modules, the stack of calls |
//! | | `definitions.rs`, `changes.rs`, `bound_names.rs` | the globals of a module: their definitions in order, and other possible changes |
//! | | `suggest.rs`, `counterparts.rs` | the known name that is closest to a wrong one; replacements for names of Python, NumPy and PyTorch |

mod assertion;
mod attrs;
mod bound_names;
mod broadcast;
mod builtins;
mod call;
mod cast;
mod changes;
mod class_names;
mod const_eval;
mod construct;
mod control;
mod counterparts;
mod cx;
mod declared;
mod definitions;
mod dictionary;
mod emitter;
mod entry;
mod evaluator;
mod expect;
mod expr;
mod facts;
mod frames;
mod globals;
mod hooks;
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
mod tuning;
mod types;
mod values;
mod world;

pub use emitter::TargetInfo;
pub use entry::{Analysis, Inspection, compile_kernel, inspect_kernel};
pub use facts::{Fact, FactValue, Refers};
pub use rtc_abi::spec;
pub use suggest::suggest;
pub use tuning::tuning;
pub use world::ModuleAst;

//! Lowers verified tile IR to PTX: tile IR → thread-level MLIR → LLVM dialect →
//! LLVM IR → PTX.
//!
//! This is the only crate that links LLVM, and no type of MLIR or LLVM leaves it. Lowering decides nothing: layouts,
//! shared-memory addresses, barriers and strategies are in the IR already.

mod check;
mod compile;
mod context;
mod debug;
mod emit;
mod error;
mod lower;
#[cfg(test)]
mod ptxas;
mod translate;

pub use compile::{CodegenOptions, Library, Output, compile};
pub use error::{CodegenError, Result};
pub use translate::llvm_version;

//! Executes PTX on the CPU.

pub mod fault;
pub mod launch;
pub mod memory;
mod program;

pub use fault::{Access, AccessError, Fault, FaultKind, Near, SourceLocation, Space};
pub use launch::{LaunchConfig, LaunchReport};
pub use memory::Memory;
pub use program::{LoadError, Program};

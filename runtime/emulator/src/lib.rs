//! Executes PTX on the CPU.

pub mod fault;
pub mod launch;
pub mod memory;
#[allow(dead_code)]
mod numeric;
mod program;

pub use fault::{Access, AccessError, Fault, FaultKind, Near, SourceLocation, Space};
pub use launch::{LaunchConfig, LaunchReport};
pub use memory::Memory;
pub use program::{LoadError, Program};

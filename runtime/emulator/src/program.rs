//! PTX made ready to execute.

use crate::{Fault, FaultKind, LaunchConfig, LaunchReport, Memory};

/// PTX that cannot be executed: where and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {message}")]
pub struct LoadError {
    /// Line in the PTX text, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

/// A PTX module, decoded for execution.
#[derive(Clone, Debug)]
pub struct Program {}

impl Program {
    /// Reads PTX text and resolves every name in it.
    pub fn load(ptx: &str) -> Result<Program, LoadError> {
        let line = ptx.lines().count() as u32;
        Err(LoadError { line, message: "no instruction can be executed yet".to_string() })
    }

    /// Runs a kernel to its end.
    pub fn launch(&self, memory: &mut Memory, config: &LaunchConfig<'_>) -> Result<LaunchReport, Fault> {
        let _ = memory;
        Err(Fault {
            kind: FaultKind::Launch("there is no such kernel in the PTX".to_string()),
            kernel: config.kernel.to_string(),
            block: [0; 3],
            thread: [0; 3],
            ptx_line: 0,
            instruction: String::new(),
            location: None,
        })
    }
}

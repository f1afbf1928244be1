//! A foreign judge: NVIDIA's assembler, where it is installed.

use rtc_abi::Target;

use crate::ptxas;

/// Assembles the PTX; no registers may go to memory.
pub fn check(ptx: &str, target: &Target, may_spill: bool) -> Result<(), String> {
    let Some(message) = ptxas::assemble(ptx, target.name)? else { return Ok(()) };
    let spilled = message.lines().find(|l| l.contains("bytes spill stores") && !l.contains(" 0 bytes spill stores"));
    match spilled.filter(|_| !may_spill) {
        Some(line) => Err(format!("ptxas spills registers: {}", line.trim())),
        None => Ok(()),
    }
}

//! A foreign judge: NVIDIA's assembler, where it is installed.

use rtc_abi::Target;

use crate::ptxas;

/// Assembles the PTX; no registers may go to memory, and no products may be serialized, unless it is
/// known of the kernel.
pub fn check(ptx: &str, target: &Target, may_spill: bool, may_serialize: bool) -> Result<(), String> {
    let Some(message) = ptxas::assemble(ptx, target.name)? else { return Ok(()) };
    // C7510 to C7519: products wait for each other although the program does not say so.
    // Where registers may be spilled, there may be too few for products in flight.
    let is_known = |line: &str| may_serialize || may_spill && line.contains("insufficient register resources");
    if let Some(line) = message.lines().find(|line| line.contains("(C75") && !is_known(line)) {
        return Err(format!("ptxas serializes products: {}", line.trim()));
    }
    let spilled = message.lines().find(|l| l.contains("bytes spill stores") && !l.contains(" 0 bytes spill stores"));
    match spilled.filter(|_| !may_spill) {
        Some(line) => Err(format!("ptxas spills registers: {}", line.trim())),
        None => Ok(()),
    }
}

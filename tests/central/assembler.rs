//! A foreign judge: NVIDIA's assembler, where it is installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rtc_abi::Target;

/// The assembler: what `RTC_PTXAS` names, else what `scripts/setup` has installed, else the one on the path.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("RTC_PTXAS") {
        return named.into();
    }
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let installed = root.join(".tools/bin/ptxas");
    if installed.exists() { installed } else { Path::new("ptxas").into() }
}

/// Assembles the PTX; no registers may go to memory, and no products may be serialized, unless it is
/// known of the kernel. Does nothing where there is no assembler, or where it is of
/// another time than the PTX version or the target.
pub fn check(ptx: &str, target: &Target, may_spill: bool, may_serialize: bool) -> Result<(), String> {
    let spawned = Command::new(program())
        .args(["-v", &format!("-arch={}", target.name), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else { return Ok(()) };
    if let Some(mut input) = child.stdin.take() {
        input.write_all(ptx.as_bytes()).map_err(|e| format!("ptxas does not read: {e}"))?;
    }
    let output = child.wait_with_output().map_err(|e| format!("ptxas: {e}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    if message.contains("Unsupported .version") || message.contains("is not defined for option") {
        return Ok(());
    }
    if !output.status.success() {
        return Err(format!("ptxas rejects the PTX:\n{message}\n{ptx}"));
    }
    // C7510 to C7519: products wait for each other although the program does not say so.
    if let Some(line) = message.lines().find(|line| line.contains("(C75") && !may_serialize) {
        return Err(format!("ptxas serializes products: {}", line.trim()));
    }
    let spilled = message.lines().find(|l| l.contains("bytes spill stores") && !l.contains(" 0 bytes spill stores"));
    match spilled.filter(|_| !may_spill) {
        Some(line) => Err(format!("ptxas spills registers: {}", line.trim())),
        None => Ok(()),
    }
}

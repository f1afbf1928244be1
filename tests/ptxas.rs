//! NVIDIA's assembler, where it is installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rtc_test_needs::{Need, missing};

/// The assembler: what `RTC_PTXAS` names, else what `scripts/setup` has installed, else the one on the path.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("RTC_PTXAS") {
        return named.into();
    }
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let installed = root.join(".tools/bin/ptxas");
    if installed.exists() { installed } else { Path::new("ptxas").into() }
}

/// Assembles the PTX for an architecture and gives what the assembler says of the registers. Nothing where there is no
/// assembler, or where it is of another time than the PTX version or the target.
pub fn assemble(ptx: &str, arch: &str) -> Result<Option<String>, String> {
    let spawned = Command::new(program())
        .args(["-v", &format!("-arch={arch}"), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        missing(Need::Ptxas);
        return Ok(None);
    };
    if let Some(mut input) = child.stdin.take() {
        input.write_all(ptx.as_bytes()).map_err(|e| format!("ptxas does not read: {e}"))?;
    }
    let output = child.wait_with_output().map_err(|e| format!("ptxas: {e}"))?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if message.contains("Unsupported .version") || message.contains("is not defined for option") {
        missing(Need::Ptxas);
        return Ok(None);
    }
    if !output.status.success() {
        return Err(format!("ptxas rejects the PTX:\n{message}\n{ptx}"));
    }
    Ok(Some(message))
}

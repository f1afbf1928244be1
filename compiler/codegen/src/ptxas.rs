//! A foreign judge for tests: NVIDIA's assembler, where it is installed.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use rtc_abi::Target;
use rtc_test_needs::{Need, missing};

/// Assembles the PTX with the `ptxas` that `RTC_PTXAS` names, or the one on the path, and fails the test if it
/// objects. Skips where there is none, or where it is of another time than the PTX version or the target.
pub(crate) fn check(ptx: &str, target: &Target) {
    let program = std::env::var("RTC_PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    let spawned = Command::new(&program)
        .args(["-v", &format!("-arch={}", target.name), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else { return missing(Need::Ptxas) };
    let mut input = child.stdin.take().expect("the input is a pipe");
    input.write_all(ptx.as_bytes()).expect("ptxas reads its input");
    drop(input);
    let output = child.wait_with_output().expect("ptxas ends");
    let message = String::from_utf8_lossy(&output.stderr);
    // Warnings C7500 to C7599: ptxas waits after each product of `wgmma`, because it does not see that it need not.
    assert!(!message.contains("(C75"), "ptxas serializes wgmma for {}:\n{message}\n{ptx}", target.name);
    if message.contains("Unsupported .version") || message.contains("is not defined for option") {
        return missing(Need::Ptxas);
    }
    assert!(output.status.success(), "ptxas rejects the PTX for {}:\n{message}\n{ptx}", target.name);
}

//! A foreign judge for tests: NVIDIA's assembler, where it is installed.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use rtc_abi::Target;

/// Assembles the PTX with the `ptxas` that `RTC_PTXAS` names, or the one on the path, and fails the test if it
/// objects. Does nothing where there is none, or where it is too old for the PTX version.
pub(crate) fn check(ptx: &str, target: &Target) {
    let program = std::env::var("RTC_PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    let spawned = Command::new(&program)
        .args(["-v", &format!("-arch={}", target.name), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        return;
    };
    let mut input = child.stdin.take().expect("the input is a pipe");
    input.write_all(ptx.as_bytes()).expect("ptxas reads its input");
    drop(input);
    let output = child.wait_with_output().expect("ptxas ends");
    let message = String::from_utf8_lossy(&output.stderr);
    // Warnings C7500 to C7599: ptxas waits after each product of `wgmma`, because it does not see that it need not.
    assert!(!message.contains("(C75"), "ptxas serializes products for {}:\n{message}\n{ptx}", target.name);
    let too_old = message.contains("Unsupported .version") || message.contains("is not defined for option");
    assert!(output.status.success() || too_old, "ptxas rejects the PTX for {}:\n{message}\n{ptx}", target.name);
}

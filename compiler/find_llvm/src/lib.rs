//! Looks for LLVM and MLIR before the crates that bind them do: their build scripts come minutes later and do not say what
//! to install. The build script of this crate, on which the one that links LLVM depends, asks it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables by which the crates that bind LLVM and MLIR look for them.
pub const VARIABLES: [&str; 3] = ["MLIR_SYS_220_PREFIX", "LLVM_SYS_221_PREFIX", "TABLEGEN_220_PREFIX"];

/// The version that the compiler is built with.
const MAJOR: &str = "22";

/// The missing part and its remedy, if there is one. `value` looks up variables.
pub fn problem(value: impl Fn(&str) -> Option<OsString>) -> Option<Vec<String>> {
    let missing: Vec<String> = VARIABLES.iter().filter_map(|name| missing(name, value(name).as_deref())).collect();
    if missing.is_empty() {
        return None;
    }
    let all = VARIABLES.join(", ");
    let mut lines = vec![format!("the compiler of rtc links LLVM and MLIR {MAJOR}, which were not found")];
    lines.extend(missing);
    lines.extend([
        format!(
            "install them: `apt-get install llvm-{MAJOR}-dev libmlir-{MAJOR}-dev libpolly-{MAJOR}-dev mlir-{MAJOR}-tools \
             libclang1-{MAJOR} libclang-common-{MAJOR}-dev` (Debian, Ubuntu; newest versions from apt.llvm.org)"
        ),
        format!(
            "then set {all} to where they are, say `/usr/lib/llvm-{MAJOR}`, in the environment or under `[env]` in \
             .cargo/config.toml"
        ),
        "without the feature `jit` of rtc-runtime or `linked` of rtc-build no LLVM is needed: kernels are then compiled by \
         the executable `rtc`"
            .to_owned(),
    ]);
    Some(lines)
}

/// The problem with one of the variables.
fn missing(name: &str, prefix: Option<&std::ffi::OsStr>) -> Option<String> {
    let (tools, shown) = match prefix {
        Some(prefix) => {
            (vec![Path::new(prefix).join("bin/llvm-config")], format!("{name}={}", Path::new(prefix).display()))
        }
        // On the path `llvm-sys` also looks for this name, the others do not.
        None if name.starts_with("LLVM_SYS") => {
            (vec![format!("llvm-config-{MAJOR}").into(), "llvm-config".into()], format!("{name} is not set"))
        }
        None => (vec![PathBuf::from("llvm-config")], format!("{name} is not set")),
    };
    let Some((tool, version)) = tools.iter().find_map(|tool| Some((tool, told(tool, "--version")?))) else {
        return Some(format!("{shown}: there is no `{}` that runs", tools[0].display()));
    };
    if version.split('.').next() != Some(MAJOR) {
        return Some(format!("{shown}: `{}` is of version {version}", tool.display()));
    }
    let header = PathBuf::from(told(tool, "--includedir").unwrap_or_default()).join("mlir-c/IR.h");
    (!header.is_file()).then(|| format!("{shown}: MLIR is missing, there is no {}", header.display()))
}

fn told(tool: &Path, argument: &str) -> Option<String> {
    let output = Command::new(tool).arg(argument).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! The compiler as another process: how the `rtc` executable is found and asked.

use crate::{Error, Request, error};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What helps where there is no fitting executable.
const REMEDY: &str = "\
Either install one, `cargo install --path runtime/cli` in the repository of rtc, and put it on PATH or set RTC to its path;
or have the compiler linked into the build script, `rtc-build = { .., features = [\"linked\"] }`: this needs LLVM and MLIR 22,
and MLIR_SYS_220_PREFIX, LLVM_SYS_221_PREFIX and TABLEGEN_220_PREFIX set to where they are, such as /usr/lib/llvm-22.";

/// Has an `rtc` executable do what the request says.
pub(crate) fn compile(request: &Request) -> Result<(), Error> {
    let executable = match &request.config.executable {
        Some(path) => path.clone(),
        None => {
            println!("cargo::rerun-if-env-changed=RTC");
            println!("cargo::rerun-if-env-changed=PATH");
            find(std::env::var_os("RTC").as_deref(), std::env::var_os("PATH").as_deref())?
        }
    };
    println!("cargo::rerun-if-changed={}", executable.display());
    check_version(&executable)?;
    let text = serde_json::to_string(request).map_err(|e| error(format!("cannot write the request for rtc: {e}")))?;
    let cannot = |e: std::io::Error| error(format!("cannot run `{}`: {e}", executable.display()));
    let mut command = Command::new(&executable);
    command.arg("embed").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(cannot)?;
    if let Some(mut stdin) = process.stdin.take() {
        // Where rtc ended early, its exit status says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = process.wait_with_output().map_err(cannot)?;
    // Lines for cargo: what the result depends on, and warnings.
    print!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim_end();
    Err(error(if said.is_empty() { format!("`{}`: {}", executable.display(), output.status) } else { said.to_owned() }))
}

/// The executable that the variable `RTC` names, or the first `rtc` on the path.
fn find(named: Option<&OsStr>, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(error(format!("the variable RTC names `{}`, where there is no file\n{REMEDY}", named.display())))
        };
    }
    let name = format!("rtc{}", std::env::consts::EXE_SUFFIX);
    let found = std::env::split_paths(path.unwrap_or_default()).map(|folder| folder.join(&name)).find(|f| f.is_file());
    found.ok_or_else(|| {
        error(format!("kernels are compiled by the executable `rtc`, and there is none on PATH\n{REMEDY}"))
    })
}

/// An executable of another version may write other modules than this version of the runtime reads.
fn check_version(executable: &Path) -> Result<(), Error> {
    let shown = executable.display();
    let output = Command::new(executable).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|e| error(format!("cannot run `{shown}`: {e}\n{REMEDY}")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.trim().strip_prefix("rtc ");
    match version {
        Some(env!("CARGO_PKG_VERSION")) => Ok(()),
        Some(version) => Err(error(format!(
            "`{shown}` is rtc {version}, rtc-build is {}: both must be the same\n{REMEDY}",
            env!("CARGO_PKG_VERSION")
        ))),
        None => Err(error(format!("`{shown}` is not the compiler rtc: `--version` does not say so\n{REMEDY}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rtc-build-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// An executable that says this.
    #[cfg(unix)]
    fn script(folder: &Path, says: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("rtc");
        std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_variable_comes_before_the_path() {
        let folder = scratch("find");
        let name = format!("rtc{}", std::env::consts::EXE_SUFFIX);
        let (on_path, other) = (folder.join(name), folder.join("other"));
        for file in [&on_path, &other] {
            std::fs::write(file, "").unwrap();
        }
        let path = std::env::join_paths([Path::new("/nowhere"), &folder]).unwrap();
        assert_eq!(find(None, Some(&path)), Ok(on_path.clone()));
        assert_eq!(find(Some("".as_ref()), Some(&path)), Ok(on_path));
        assert_eq!(find(Some(other.as_os_str()), Some(&path)), Ok(other));
        let text = find(Some("/nowhere/rtc".as_ref()), Some(&path)).unwrap_err().to_string();
        assert!(text.starts_with("the variable RTC names `/nowhere/rtc`, where there is no file\n"), "{text}");
        let text = find(None, None).unwrap_err().to_string();
        for part in ["none on PATH", "cargo install", "linked", "TABLEGEN_220_PREFIX"] {
            assert!(text.contains(part), "{text}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn only_the_same_version_will_do() {
        let folder = scratch("version");
        let said = |says: &str| check_version(&script(&folder, says)).map_err(|e| e.to_string());
        assert_eq!(said(concat!("rtc ", env!("CARGO_PKG_VERSION"))), Ok(()));
        assert!(said("rtc 0.0.1").unwrap_err().contains("is rtc 0.0.1, rtc-build is"));
        assert!(said("Wrong tool 3").unwrap_err().contains("is not the compiler rtc"));
        assert!(check_version(&folder.join("missing")).unwrap_err().to_string().starts_with("cannot run"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}

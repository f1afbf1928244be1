//! Programs that stand in for tools of which a test needs several versions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Makes `folder` and in it a `ptxas` that reports this version; its machine code is the text of the version.
///
/// # Panics
/// Where it cannot be written.
pub fn ptxas(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join("ptxas");
    // The Python tests take the same file.
    let text = include_str!("ptxas.sh").replace("VERSION", version);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
    let written = written.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    if let Err(error) = written {
        panic!("{}: {error}", path.display());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_assembler_answers_as_its_version() {
        let folder = std::env::temp_dir().join(format!("rtc-stubs-{}", std::process::id()));
        let path = ptxas(&folder, "12.8");
        let answer = Command::new(&path).arg("--version").output().expect("it starts").stdout;
        assert_eq!(String::from_utf8_lossy(&answer), "Cuda compilation tools, release 12.8, V12.8.1\n");
        let code = folder.join("code");
        let assembled = Command::new(&path).args(["-arch=sm_90a", "k.ptx", "-o"]).arg(&code).status();
        assert!(assembled.expect("it starts").success());
        assert_eq!(fs::read_to_string(code).expect("it was written"), "12.8\n");
        fs::remove_dir_all(folder).expect("it was made above");
    }
}

//! Machine code of PTX, by NVIDIA's assembler.

use crate::{Error, error};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What helps where there is no assembler.
const REMEDY: &str = "it comes with the CUDA toolkit and with the Python package nvidia-cuda-nvcc; put it on PATH, set \
                      RTC_PTXAS to it, or build without cubins";

/// Assembles PTX for a target; gives the content of the cubin.
pub(crate) fn assemble(assembler: Option<&Path>, ptx: &str, kernel: &str, arch: &str) -> Result<Vec<u8>, Error> {
    let assembler = match assembler {
        Some(path) => path.to_owned(),
        None => {
            println!("cargo::rerun-if-env-changed=RTC_PTXAS");
            let named = std::env::var_os("RTC_PTXAS").filter(|name| !name.is_empty());
            named.map_or_else(|| PathBuf::from("ptxas"), PathBuf::from)
        }
    };
    let shown = assembler.display();
    let folder = Folder::new().map_err(|e| error(format!("cannot make a temporary folder for `{shown}`: {e}")))?;
    let (source, target) = (folder.0.join("kernel.ptx"), folder.0.join("kernel.cubin"));
    std::fs::write(&source, ptx).map_err(|e| error(format!("cannot write {}: {e}", source.display())))?;
    let output = Command::new(&assembler).arg(format!("-arch={arch}")).arg(&source).arg("-o").arg(&target).output();
    let output = output.map_err(|e| error(format!("cannot run the assembler `{shown}`: {e}; {REMEDY}")))?;
    if !output.status.success() {
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(error(format!("`{shown}` refuses kernel `{kernel}` for {arch}:\n{}", said.trim_end())));
    }
    std::fs::read(&target).map_err(|e| error(format!("`{shown}` wrote no {}: {e}", target.display())))
}

/// A folder that is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        static LATEST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = LATEST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rtc-cubin-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is removed with the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! Where a `ptxas` may be.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the CUDA toolkit is, besides the directories of these variables.
const TOOLKIT: &str = "/usr/local/cuda";
const TOOLKIT_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];

/// Environments of Python, by the variables that name the active one.
const PYTHON_VARIABLES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// Folders of Python packages that the program named.
static PACKAGES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Also looks for a `ptxas` in these folders of Python packages (`sys.path`), where nvidia-cuda-nvcc or Triton may be.
///
/// ```
/// rtc_assembler::look_in([std::path::PathBuf::from("/opt/python/site-packages")]);
/// ```
pub fn look_in(folders: impl IntoIterator<Item = PathBuf>) {
    let mut packages = PACKAGES.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders {
        if !packages.contains(&folder) {
            packages.push(folder);
        }
    }
}

/// The value of a variable that is set to something.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// That on the path, and those of the toolkits that variables name or that is installed: what a user expects to be called.
pub(crate) fn usual() -> impl Iterator<Item = PathBuf> {
    let toolkits = TOOLKIT_VARIABLES.iter().filter_map(|name| variable(name)).chain([TOOLKIT.into()]);
    [PathBuf::from("ptxas")].into_iter().chain(toolkits.map(|toolkit| toolkit.join("bin/ptxas")))
}

/// Further ones: of toolkits that are installed side by side, and of Python packages.
pub(crate) fn others() -> impl Iterator<Item = PathBuf> {
    let beside = matching(Path::new("/usr/local"), "cuda-").into_iter().map(|toolkit| toolkit.join("bin/ptxas"));
    let named = PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let environments = PYTHON_VARIABLES.iter().filter_map(|name| variable(name));
    let of_environments = environments
        .flat_map(|environment| matching(&environment.join("lib"), "python"))
        .map(|python| python.join("site-packages"));
    beside.chain(named.into_iter().chain(of_environments).flat_map(|folder| in_packages(&folder)))
}

/// Those in a folder of Python packages.
fn in_packages(folder: &Path) -> Vec<PathBuf> {
    let nvidia = matching(&folder.join("nvidia"), "").into_iter().map(|package| package.join("bin/ptxas"));
    let triton = matching(&folder.join("triton/backends/nvidia/bin"), "ptxas");
    nvidia.chain(triton).filter(|path| path.is_file()).collect()
}

/// The entries of a folder with this prefix, the last name first: mostly the newest version.
fn matching(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let begins =
        |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(beginning));
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(begins).collect();
    found.sort();
    found.reverse();
    found
}

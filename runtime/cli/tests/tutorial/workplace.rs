//! A folder with the files of the tutorial, in which commands find `rtc` and a Python with the package.

use std::path::{Path, PathBuf};
use std::process::Command;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Python with numpy: that of the environment, that of `scripts/setup`, or the one on the PATH.
pub fn python() -> Option<PathBuf> {
    let asked = std::env::var_os("RTC_TEST_PYTHON").map(PathBuf::from);
    let own = manifest().join("../../.tools/python/bin/python3");
    let has_numpy = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", "import numpy"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    asked.into_iter().chain([own, PathBuf::from("python3")]).find(has_numpy)
}

/// The extension module of the package, which cargo builds as `rtc-python` is a dependency of this test.
fn module() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let found = [folder.join("librtc_python.so"), folder.join("../librtc_python.so")];
    std::fs::canonicalize(found.into_iter().find(|path| path.exists()).expect("cargo built the module")).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && !path.ends_with("__pycache__") && !path.ends_with("target") {
            copy(&path, &target);
        } else if path.is_file() && path.extension().is_none_or(|ending| ending != "so") {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Where the commands of one page run.
pub struct Workplace {
    folder: PathBuf,
}

impl Workplace {
    /// A new folder with a copy of `code`.
    pub fn new(page: &str, python: &Path, code: &Path) -> Workplace {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial").join(page);
        let _ = std::fs::remove_dir_all(&folder);
        copy(code, &folder.join("code"));
        copy(&manifest().join("../python/python/rtc"), &folder.join("package/rtc"));
        let programs = folder.join("bin");
        std::fs::create_dir_all(&programs).unwrap();
        let python = std::path::absolute(python).unwrap();
        let script = format!("#!/bin/sh\nexec '{}' -B \"$@\"\n", python.display());
        for name in ["python", "python3"] {
            std::fs::write(programs.join(name), &script).unwrap();
            make_executable(&programs.join(name));
        }
        link(Path::new(env!("CARGO_BIN_EXE_rtc")), &programs.join("rtc"));
        link(&module(), &folder.join("package/rtc/_rtc.abi3.so"));
        Workplace { folder }
    }

    /// The exit status of a shell command, and all that it prints but the lines on the cache and on compile times.
    pub fn run(&self, words: &str) -> (Option<i32>, String) {
        let path = std::env::join_paths(
            [self.folder.join("bin")].into_iter().chain(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from)),
        );
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{words}")])
            .current_dir(self.folder.join("code"))
            .env("PATH", path.unwrap())
            .env("PYTHONPATH", self.folder.join("package"))
            .env("PYTHONUNBUFFERED", "1")
            .env("RTC_CACHE_DIR", self.folder.join("cache"))
            // As on a machine without an assembler and without a GPU.
            .env("RTC_PTXAS", "/nonexistent")
            .env("CUDA_VISIBLE_DEVICES", "")
            .envs([("LC_ALL", "C"), ("NO_COLOR", "1")])
            .env_remove("RTC_DEVICE")
            .env_remove("RTC_SANITIZE")
            .env_remove("VIRTUAL_ENV")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let is_volatile = |line: &&str| line.starts_with("cache: ") || line.contains(" ms, together ");
        let lines = text.lines().filter(|line| !is_volatile(line));
        (output.status.code(), lines.map(|line| line.trim_end().to_owned() + "\n").collect())
    }

    /// The content of a file as it is now.
    pub fn file(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(self.folder.join("code").join(name)).map_err(|error| format!("code/{name}: {error}"))
    }
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}

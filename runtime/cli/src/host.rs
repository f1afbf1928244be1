//! Commands that Python runs: `rtc bench FILE.py` is `python -m rtc bench FILE.py` of a Python that has the package rtc-triton.

use crate::host_arguments::HostArguments;
use crate::problem::Problem;
use rtc_source::Code;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The Python whose package this command is a part of.
static OWN: OnceLock<PathBuf> = OnceLock::new();

/// Has this Python run the commands that need one.
pub(crate) fn set_own(python: PathBuf) {
    // A process has one Python.
    let _ = OWN.set(python);
}

/// The words that start `rtc` once more, as it was started: by a Python, of which another may be named, or as an executable.
pub(crate) fn own_command(python: Option<&Path>) -> std::io::Result<Vec<OsString>> {
    Ok(match OWN.get() {
        Some(own) => vec![python.unwrap_or(own).into(), "-m".into(), "rtc".into()],
        None => vec![std::env::current_exe()?.into()],
    })
}

/// Whether Python runs this command.
pub(crate) fn is_in_python() -> bool {
    OWN.get().is_some()
}

/// Runs a command of the package; its exit status is that of the process.
pub(crate) fn run(command: &str, arguments: &HostArguments) -> Result<(), Problem> {
    let (named, words) = without_python(&arguments.words)?;
    let python = match named.or_else(|| arguments.python.clone()) {
        Some(python) => python,
        None => find()?,
    };
    check(&python)?;
    wait(&python, Command::new(&python).args(["-m", "rtc", command]).args(words))
}

/// Waits for a Python; its exit status is that of the process.
pub(crate) fn wait(python: &Path, command: &mut Command) -> Result<(), Problem> {
    let status = command.status().map_err(|error| cannot_start(python, &error))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Problem::Said(u8::try_from(code).unwrap_or(1))),
        None => Err(Problem::input(Code::PYTHON, format!("{} ended by a signal ({status})", python.display()))),
    }
}

/// The Python that is named behind the file, and the words that the package is given.
fn without_python(words: &[String]) -> Result<(Option<PathBuf>, Vec<&String>), Problem> {
    let (mut python, mut others, mut rest) = (None, Vec::new(), words.iter());
    while let Some(word) = rest.next() {
        if word == "--python" {
            let missing = || Problem::Usage("a value is required for `--python <PYTHON>`".into());
            python = Some(PathBuf::from(rest.next().ok_or_else(missing)?));
        } else if let Some(path) = word.strip_prefix("--python=") {
            python = Some(PathBuf::from(path));
        } else {
            others.push(word);
        }
    }
    Ok((python, others))
}

/// The Python that runs this command; else that of the active environment, or the first on the PATH.
pub(crate) fn find() -> Result<PathBuf, Problem> {
    if let Some(own) = OWN.get() {
        return Ok(own.clone());
    }
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV") {
        let python = Path::new(&environment).join("bin/python");
        if python.exists() {
            return Ok(python);
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found =
        ["python3", "python"].iter().find_map(|name| folders.iter().map(|f| f.join(name)).find(|p| p.is_file()));
    found.ok_or_else(|| {
        let message = "there is no Python: $VIRTUAL_ENV is not set and PATH has no python3; name one by --python, or replay \
                       recorded results with `rtc verify --golden DIR`";
        Problem::input(Code::NO_PYTHON, message)
    })
}

/// Whether a Python has the package.
pub(crate) fn check(python: &Path) -> Result<(), Problem> {
    let output =
        Command::new(python).args(["-c", "import rtc"]).output().map_err(|error| cannot_start(python, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or_default();
    let message = format!(
        "{} cannot import the package `rtc` ({last}); install it there with `{} -m pip install rtc-triton`",
        python.display(),
        python.display()
    );
    Err(Problem::input(Code::NO_PACKAGE, message))
}

fn cannot_start(python: &Path, error: &std::io::Error) -> Problem {
    Problem::input(
        Code::NO_PYTHON,
        format!("{} cannot be started: {error}; name a Python by --python", python.display()),
    )
}

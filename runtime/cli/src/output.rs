//! Writing to standard output, which a reader may close, and files: whole or not at all.

use crate::problem::Problem;
use rtc_source::Code;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes to standard output; a `Problem` where that cannot be written.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}

/// The same with a line end.
macro_rules! outln {
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes a line to standard error. A failure cannot be reported.
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::tell(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use {errln, out, outln};

/// Writes to standard output. Where its reader is gone, as that of `rtc explain | head` is, the command ends.
pub(crate) fn print(text: Arguments<'_>) -> Result<(), Problem> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_fmt(text).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Problem::NobodyReads,
        _ => Problem::input(Code::IO, format!("cannot write to standard output: {error}")),
    })
}

/// Writes to standard error.
pub(crate) fn tell(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// Writes a file through a temporary one in the same directory, so that no reader sees a partial file. Links and
/// special files (`/dev/null`, a pipe) are kept: the content is written to them.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Problem> {
    if std::fs::symlink_metadata(path).is_ok_and(|data| !data.is_file()) {
        return std::fs::write(path, content)
            .map_err(|error| Problem::file(Code::IO, path, format!("cannot write the file: {error}")));
    }
    replace(path, content).map_err(|error| {
        // The error names the temporary file.
        let reason = match error.kind() {
            ErrorKind::NotFound => format!("there is no directory {}", folder_of(path).display()),
            _ => error.to_string(),
        };
        Problem::file(Code::IO, path, format!("cannot write the file: {reason}"))
    })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces `path` by a file with that content. The temporary file has an unpredictable name, and is removed on
/// failure.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".rtc-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As of any new file; the umask takes its part away.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(folder_of(path))?;
    temporary.write_all(content)?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

/// Makes a directory with its parents.
pub(crate) fn make_directory(path: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(path)
        .map_err(|error| Problem::file(Code::IO, path, format!("cannot make the directory: {error}")))
}

/// Writes `DIR/<stem>.ptx` and `DIR/<stem>.json`; gives the path of the PTX.
pub(crate) fn write_artifact(
    directory: &Path,
    stem: &str,
    artifact: &rtc_compiler::Artifact,
) -> Result<PathBuf, Problem> {
    make_directory(directory)?;
    let ptx = directory.join(format!("{stem}.ptx"));
    write(&ptx, artifact.ptx.as_bytes())?;
    write(&directory.join(format!("{stem}.json")), artifact.metadata.to_json().as_bytes())?;
    Ok(ptx)
}

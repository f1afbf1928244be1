//! Common code of the tests of faults: other processes, a small disk, a read-only directory.

use rtc_test_needs::{Need, missing};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The purpose of a test's process, if a test started it.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Writes until it is killed.
    Writer,
    /// Requests entries that others request, too.
    Maker,
    /// No file of it may grow beyond 16 blocks of 512 or 1024 bytes.
    Limited,
}

const ROLE: &str = "RTC_CACHE_TEST_ROLE";
const DIRECTORY: &str = "RTC_CACHE_TEST_DIRECTORY";

impl Role {
    /// The directory of the test, if this process has this role.
    pub fn is_mine(self) -> Option<PathBuf> {
        let directory = std::env::var_os(DIRECTORY)?;
        (std::env::var(ROLE).as_deref() == Ok(&format!("{self:?}"))).then(|| directory.into())
    }

    /// Starts this program again for the test `name` alone.
    pub fn start(self, name: &str, directory: &Path) -> Child {
        let program = std::env::current_exe().unwrap();
        let mut command = match self {
            Role::Writer | Role::Maker => Command::new(program),
            Role::Limited => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]).arg(program);
                shell
            }
        };
        command.args(["--exact", name, "--quiet"]).env(ROLE, format!("{self:?}")).env(DIRECTORY, directory);
        command.spawn().unwrap()
    }
}

/// Appends to a file in one write.
pub fn append(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// A file system in memory, unmounted at the end.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// One of that size; none, with a line that says so, where nothing may be mounted.
    pub fn mount(size: &str) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], directory.path());
        if !mounted {
            missing(Need::Mount);
            return None;
        }
        Some(SmallDisk(directory))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

fn mount(options: &[&str], directory: &Path) -> bool {
    Command::new("mount").args(options).arg(directory).output().is_ok_and(|output| output.status.success())
}

/// A directory that may only be read.
pub enum ReadOnly {
    /// By its rights.
    Rights(tempfile::TempDir),
    /// By its file system, for a user whom rights do not stop.
    Mounted(SmallDisk),
}

impl ReadOnly {
    /// Fills a directory and takes the right to write away; none, with a line that says so, where neither works.
    pub fn prepare(fill: impl Fn(&Path)) -> Option<ReadOnly> {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        set_rights(directory.path(), true);
        if fs::write(directory.path().join("probe"), "").is_err() {
            return Some(ReadOnly::Rights(directory));
        }
        set_rights(directory.path(), false);
        let disk = SmallDisk::mount("1m")?;
        fill(disk.path());
        mount(&["-o", "remount,ro"], disk.path()).then_some(ReadOnly::Mounted(disk))
    }

    pub fn path(&self) -> &Path {
        match self {
            ReadOnly::Rights(directory) => directory.path(),
            ReadOnly::Mounted(disk) => disk.path(),
        }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        if let ReadOnly::Rights(directory) = self {
            set_rights(directory.path(), false);
        }
    }
}

/// Directories and their contents.
fn set_rights(path: &Path, read_only: bool) {
    let mut rights = fs::metadata(path).unwrap().permissions();
    if !read_only {
        allow_writing(&mut rights);
        fs::set_permissions(path, rights.clone()).unwrap();
    }
    if path.is_dir() {
        for item in fs::read_dir(path).unwrap() {
            set_rights(&item.unwrap().path(), read_only);
        }
    }
    if read_only {
        rights.set_readonly(true);
        fs::set_permissions(path, rights).unwrap();
    }
}

#[cfg(unix)]
fn allow_writing(rights: &mut fs::Permissions) {
    use std::os::unix::fs::PermissionsExt;
    rights.set_mode(rights.mode() | 0o200);
}

#[cfg(not(unix))]
fn allow_writing(rights: &mut fs::Permissions) {
    rights.set_readonly(false);
}

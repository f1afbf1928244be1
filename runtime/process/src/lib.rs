//! Commands in processes of their own, with limits of time and memory: a server runs nothing of a source itself.
//!
//! ```
//! use rtc_process::{Group, Limits, command};
//! use std::time::Duration;
//! let limits = Limits { time: Duration::from_secs(5), memory: 1 << 30 };
//! let mut child = command(&["sleep".into(), "60".into()], limits).spawn()?;
//! Group::of(child.id()).end();
//! assert_eq!(child.wait()?.code(), None); // a signal has ended it
//! # Ok::<(), std::io::Error>(())
//! ```

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Limits of a command.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take. Who starts the command waits no longer; of the time of a processor it has four times as much,
    /// for several threads.
    pub time: Duration,
    /// Bytes of writable memory of each of its processes.
    pub memory: u64,
}

/// The command of these words within limits, in a group of processes of its own, which leaves no core dump.
pub fn command(words: &[OsString], limits: Limits) -> Command {
    let mut command = Command::new("sh");
    // The shell sets the limits and is replaced by the command.
    command.arg("-c").arg(r#"ulimit -c 0 && ulimit -d "$1" && ulimit -t "$2" && shift 2 && exec "$@""#);
    command.arg("sh").arg((limits.memory >> 10).to_string()).arg((4 * limits.time.as_secs()).max(1).to_string());
    command.args(words).process_group(0);
    command
}

/// A process that [`command`] has started, and its own processes.
#[derive(Clone, Copy, Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group of a process with this number.
    pub fn of(process: u32) -> Group {
        Group(i32::try_from(process).ok().and_then(Pid::from_raw))
    }

    /// Ends all of them, also those that the process has left behind.
    pub fn end(self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    fn output(script: &str, memory: u64) -> String {
        let limits = Limits { time: Duration::from_secs(20), memory };
        let words = ["sh", "-c", script].map(OsString::from);
        let output = command(&words, limits).output().expect("a shell");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn limits_are_those_of_the_command() {
        assert_eq!(output("ulimit -d; ulimit -t; ulimit -c", 64 << 20), "65536\n80\n0\n");
    }

    #[test]
    fn memory_is_limited() {
        let script = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
        assert!(!output(script, 64 << 20).contains("200000000"));
    }

    #[test]
    fn a_group_ends_with_what_it_has_started() {
        let limits = Limits { time: Duration::from_secs(20), memory: 1 << 30 };
        let words = ["sh", "-c", "sleep 600 & echo begun; wait"].map(OsString::from);
        let mut child = command(&words, limits).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut pipe = child.stdout.take().expect("it is a pipe");
        let mut word = [0; 6];
        pipe.read_exact(&mut word).expect("it has begun");
        Group::of(child.id()).end();
        assert_eq!(child.wait().expect("it ends").code(), None);
        // The inner command has the pipe open as long as it lives.
        assert_eq!(pipe.read(&mut word).expect("the end"), 0);
    }
}

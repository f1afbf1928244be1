//! A command in a process of its own, with limits of time and memory: nothing of a source runs in the server.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most bytes that are read of an output.
const OUTPUT: u64 = 64 << 20;

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// Bytes of writable memory.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(20), memory: 4 << 30 }
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit status; `None` after a signal, or at the time limit.
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) is_late: bool,
}

/// A process that has started.
pub(crate) struct Started {
    child: Child,
    deadline: Instant,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

/// Ends a process, and its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopper(Option<Pid>);

impl Stopper {
    pub(crate) fn stop(self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Starts a command with a text as its standard input.
pub(crate) fn start(words: &[OsString], input: String, limits: Limits) -> io::Result<Started> {
    let mut command = Command::new("sh");
    // The shell sets the limits and is replaced by the command.
    command.arg("-c").arg(r#"ulimit -c 0 && ulimit -d "$1" && ulimit -t "$2" && shift 2 && exec "$@""#);
    command.arg("sh").arg((limits.memory >> 10).to_string()).arg((4 * limits.time.as_secs()).max(1).to_string());
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A process that ends early does not read it all.
        std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    }
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    Ok(Started { child, deadline: Instant::now() + limits.time, out, err })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return String::new() };
        let mut bytes = Vec::new();
        let _ = (&mut pipe).take(OUTPUT).read_to_end(&mut bytes);
        // The process must not wait for a reader.
        let _ = io::copy(&mut pipe, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Started {
    /// Ends it from another thread.
    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(i32::try_from(self.child.id()).ok().and_then(Pid::from_raw))
    }

    /// Waits for its end, at most as long as it may take.
    pub(crate) fn wait(mut self) -> io::Result<Ended> {
        let mut is_late = false;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() >= self.deadline {
                is_late = true;
                self.stopper().stop();
                break self.child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(4));
        };
        let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
        let status = status.code().filter(|_| !is_late);
        Ok(Ended { status, out: text(self.out), err: text(self.err), is_late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limits: Limits) -> Ended {
        let words = ["sh", "-c", script].map(OsString::from);
        start(&words, "text".into(), limits).and_then(Started::wait).expect("a shell")
    }

    #[test]
    fn a_command_reads_its_input() {
        let ended = run("cat; echo wrong >&2; exit 3", Limits::default());
        assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(3), "text", "wrong\n"));
    }

    #[test]
    fn the_time_of_a_command_is_limited() {
        let began = Instant::now();
        let ended = run("sleep 60", Limits { time: Duration::from_millis(200), ..Limits::default() });
        assert!(ended.is_late && ended.status.is_none());
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn the_memory_of_a_command_is_limited() {
        let limits = Limits { memory: 64 << 20, ..Limits::default() };
        let ended = run("x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}", limits);
        assert!(!ended.out.contains("200000000"), "{ended:?}");
    }
}

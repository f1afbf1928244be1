//! A command in a process of its own, with limits of time and memory: nothing of a source runs in the server.

use rtc_process::{Group, Limits, command};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most bytes that are read of an output.
const OUTPUT: u64 = 64 << 20;

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

/// Starts a command with a text as its standard input.
pub(crate) fn start(words: &[OsString], input: String, limits: Limits) -> io::Result<Started> {
    let mut command = command(words, limits);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
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
    pub(crate) fn group(&self) -> Group {
        Group::of(self.child.id())
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
                self.group().end();
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

    fn run(script: &str, time: Duration) -> Ended {
        let limits = Limits { time, memory: 4 << 30 };
        let words = ["sh", "-c", script].map(OsString::from);
        start(&words, "text".into(), limits).and_then(Started::wait).expect("a shell")
    }

    #[test]
    fn a_command_reads_its_input() {
        let ended = run("cat; echo wrong >&2; exit 3", Duration::from_secs(20));
        assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(3), "text", "wrong\n"));
    }

    #[test]
    fn the_time_of_a_command_is_limited() {
        let began = Instant::now();
        let ended = run("sleep 60", Duration::from_millis(200));
        assert!(ended.is_late && ended.status.is_none());
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

//! Commands of `rtc` in processes of their own, with limits of time and memory.

use rtc_process::{Group, Limits};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// Most bytes that are read of an output.
const OUTPUT: u64 = 16 << 20;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit status; `None` after a signal, or at the time limit.
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    /// The diagnostics of standard error, which are objects in JSON.
    pub(crate) diagnostics: Vec<Value>,
    /// The other lines of standard error.
    pub(crate) text: String,
    pub(crate) is_late: bool,
    pub(crate) seconds: f64,
}

/// Runs a command in a folder.
pub(crate) async fn run(words: &[OsString], folder: &Path, limits: Limits) -> std::io::Result<Ended> {
    let began = Instant::now();
    let mut command = Command::from(rtc_process::command(words, limits));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let group = child.id().map(Group::of);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let whole = async { tokio::join!(read(out), read(err), child.wait()) };
    let finished = tokio::time::timeout(limits.time, whole).await;
    // Its own processes end with it, also those that it left behind.
    if let Some(group) = group {
        group.end();
    }
    let seconds = began.elapsed().as_secs_f64();
    let Ok((out, err, status)) = finished else {
        let (out, text, diagnostics) = Default::default();
        return Ok(Ended { status: None, out, diagnostics, text, is_late: true, seconds });
    };
    let (mut diagnostics, mut text) = (Vec::new(), String::new());
    for line in err?.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(object) if object.get("severity").is_some() => diagnostics.push(object),
            _ => text = text + line + "\n",
        }
    }
    Ok(Ended { status: status?.code(), out: out?, diagnostics, text, is_late: false, seconds })
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(OUTPUT).read_to_end(&mut bytes).await?;
        // The process must not wait for a reader.
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

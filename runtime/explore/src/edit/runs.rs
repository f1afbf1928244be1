//! Runs: one at a time. A new one ends the one before.

use super::process::{self, Ended};
use super::{body, json_answer, refuse};
use crate::html;
use rtc_process::{Group, Limits};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tiny_http::Request;

/// The state of the runs.
pub(crate) struct Runs {
    command: Vec<OsString>,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last run that was begun.
    number: u64,
    /// The run in progress.
    running: Option<Group>,
    /// The data of the last run that gave a page.
    page: Option<Value>,
}

impl Runs {
    pub(crate) fn new(command: Vec<OsString>, limits: Limits) -> Runs {
        Runs { command, limits, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what a request has, on a thread of its own, which answers it.
    pub(crate) fn begin(self: &Arc<Runs>, mut request: Request) {
        let wanted = match body(&mut request) {
            Ok(wanted) => wanted,
            Err(refusal) => return refuse(request, refusal),
        };
        let number = {
            let mut state = self.state();
            state.number += 1;
            if let Some(run) = state.running.take() {
                run.end();
            }
            state.number
        };
        let runs = self.clone();
        std::thread::spawn(move || json_answer(request, &runs.run(number, wanted)));
    }

    fn run(&self, number: u64, wanted: String) -> Value {
        let failed = |error: std::io::Error| json!({"error": format!("cannot start the run: {error}")});
        let started = {
            let mut state = self.state();
            if state.number != number {
                return superseded();
            }
            match process::start(&self.command, wanted, self.limits) {
                Ok(started) => {
                    state.running = Some(started.group());
                    started
                }
                Err(error) => return failed(error),
            }
        };
        let ended = started.wait();
        let mut state = self.state();
        if state.number != number {
            return superseded();
        }
        state.running = None;
        match ended {
            Ok(ended) => match self.data(&ended) {
                Ok(data) => {
                    state.page = Some(data.clone());
                    data
                }
                Err(message) => json!({"error": message}),
            },
            Err(error) => failed(error),
        }
    }

    /// The data that a run printed, or why it printed none.
    fn data(&self, ended: &Ended) -> Result<Value, String> {
        let Limits { time, memory } = self.limits;
        let error = match ended.status {
            Some(0) => {
                return serde_json::from_str(&ended.out).map_err(|error| format!("the run gave no data: {error}"));
            }
            _ if ended.is_late => format!("stopped: the run took more than {} s (--time-limit)", time.as_secs_f64()),
            Some(_) => ended.err.trim().to_owned(),
            None => format!("stopped: {}", ended.err.trim().lines().last().unwrap_or("by a signal")),
        };
        let is_memory =
            ["memory allocation", "Cannot allocate", "out of memory"].iter().any(|words| ended.err.contains(words));
        let more = if is_memory { format!(" (--memory-limit is {} GiB)", memory >> 30) } else { String::new() };
        Err(error + &more)
    }

    /// The page of the last run.
    pub(crate) fn page(&self) -> String {
        match &self.state().page {
            Some(data) => html::of_data(data),
            None => html::waiting(),
        }
    }
}

fn superseded() -> Value {
    json!({"error": "a later run has taken its place"})
}

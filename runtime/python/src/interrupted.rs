//! Launches on the CPU, which Ctrl-C ends.
//!
//! Python runs the handlers of signals on its main thread, between two instructions of its own. A launch from there runs on
//! another thread, while the main one asks for signals; if a handler raises an exception, as that of Ctrl-C does, the launch is
//! interrupted and the exception is the result. Launches from other threads run where they are.

use crate::compiled::STACK_BYTES;
use crate::host::detached;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rtc_runtime::Interrupt;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often the main thread asks for signals.
const EVERY: Duration = Duration::from_millis(50);

/// Launches without Python's lock, so that other threads of Python go on.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, launch: impl FnOnce() -> T + Send) -> PyResult<T> {
    let threading = py.import("threading")?;
    let thread = threading.call_method0("current_thread")?;
    if !thread.is(threading.call_method0("main_thread")?) {
        return Ok(detached(py, launch));
    }
    detached(py, || {
        let interrupt = Interrupt::new();
        std::thread::scope(|scope| {
            let (done, result) = channel();
            let work = || {
                // If there is no receiver, the main thread has panicked.
                let _ = done.send(interrupt.during(launch));
                drop(done);
            };
            let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            let worker = worker
                .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread to launch on: {error}")))?;
            let mut raised = None;
            let result = loop {
                match result.recv_timeout(EVERY) {
                    Ok(result) => break result,
                    Err(RecvTimeoutError::Timeout) => {
                        if raised.is_none()
                            && let Err(error) = Python::attach(|py| py.check_signals())
                        {
                            raised = Some(error);
                            interrupt.raise();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => resume_unwind(panic),
                        Ok(()) => return Err(PyRuntimeError::new_err("a launch ended without a result")),
                    },
                }
            };
            raised.map_or(Ok(result), Err)
        })
    })
}

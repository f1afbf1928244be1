//! `RTC_LOG`: the spans of compilation, cache, tuning and launches, on standard error.

use crate::problem::Problem;
use std::io::stderr;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::{layer, time};
use tracing_subscriber::prelude::*;

/// Starts to log if `RTC_LOG` asks for it. Without it no subscriber is there, and a span costs the load of a number.
pub(crate) fn start() -> Result<(), Problem> {
    let Some(wanted) = std::env::var_os("RTC_LOG").filter(|value| !value.is_empty()) else { return Ok(()) };
    let wanted = wanted.to_string_lossy();
    let filter: Targets = wanted.parse().map_err(|error| {
        let form = "a level (error, warn, info, debug, trace, off), or levels of crates, such as rtc_cache=debug,rtc_runtime=trace";
        Problem::Usage(format!("RTC_LOG is `{wanted}`: {error}; it is {form}"))
    })?;
    let lines = layer()
        .with_writer(stderr)
        .with_ansi(false)
        .with_timer(time::uptime())
        .with_span_events(FmtSpan::CLOSE)
        .with_filter(filter);
    // A process that runs several command lines keeps the first one's.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    Ok(())
}

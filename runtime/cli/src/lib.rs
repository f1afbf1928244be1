//! `rtc`: the compiler on the command line, for the executable and for the Python package, which has the command, too.
//!
//! One file per command (`build.rs`, `emit.rs`, `run.rs`, `tune.rs`, `verify.rs`, `cache.rs`, `doctor.rs`,
//! `devices.rs`, `completions.rs`, `explain.rs`, `explain_speed.rs`, `instrument.rs` for records of a launch, `explore.rs` with `explore_launch.rs` and `explore_trace.rs`, and `explore_edit.rs` and `explore_inputs.rs` for its editor, `fix.rs`, `lsp.rs`, `mcp.rs`, `embed.rs`), `arguments.rs` for their arguments, `host.rs` for
//! commands that Python runs,
//! `input.rs` and `output.rs` for files, `sanitize.rs` for findings of the sanitizer, `report.rs` for all output on
//! stderr.
//!
//! Exit status: 0 success, 1 error in the input, 2 wrong usage, 3 internal error, 141 broken pipe on standard output.
//! No input ends the process in another way: the work runs on a thread with a large stack, and a panic there becomes
//! status 3.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod build;
mod cache;
mod completions;
mod counters;
mod debug_arguments;
mod decided;
mod devices;
mod doctor;
mod embed;
mod emit;
mod explain;
mod explain_speed;
mod explain_speed_arguments;
mod explore;
mod explore_arguments;
mod explore_edit;
mod explore_inputs;
mod explore_launch;
mod explore_trace;
mod fix;
mod host;
mod host_arguments;
mod input;
mod instrument;
mod log;
mod lsp;
mod mcp;
mod output;
mod plan;
mod problem;
mod ptx;
mod report;
mod results;
mod run;
mod sanitize;
mod tile_ir;
mod trusted;
mod tune;
mod tune_arguments;
mod tune_cluster;
mod tune_shards;
mod verify;

use arguments::{Arguments, Color, Command, MessageFormat};
use clap::Parser;
use problem::Problem;
use report::Reporter;
use rtc_source::Code;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Deeply nested sources recurse deeply; the stack is only reserved, not used.
const STACK_BYTES: usize = 256 << 20;

/// The message of the panic hook, for the report.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs a command line, whose first word is the name of the program; returns the exit status. It assumes that it owns
/// the process: output goes to the standard streams, and panics are kept from them.
/// ```
/// assert_eq!(rtc_cli::run(["rtc", "explain", "shape-mismatch"]), 0);
/// assert_eq!(rtc_cli::run(["rtc", "explain", "no-such-code"]), 1);
/// assert_eq!(rtc_cli::run(["rtc", "explian"]), 2);
/// ```
pub fn run<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> u8 {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error, &words),
    };
    let reporter = Reporter::new(arguments.message_format, arguments.color, arguments.verbose);
    reporter.hear_warnings();
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
    }));
    let work =
        || catch_unwind(AssertUnwindSafe(|| log::start().and_then(|()| dispatch(&arguments.command, &reporter))));
    let result = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        match worker {
            Ok(worker) => worker.join().unwrap_or_else(Err),
            Err(error) => Ok(Err(Problem::input(Code::IO, format!("cannot start a thread: {error}")))),
        }
    });
    let problem = match result {
        Ok(Ok(())) => return 0,
        Ok(Err(problem)) => problem,
        Err(_) => {
            let heard = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
            Problem::bug("panic", heard.unwrap_or_else(|| "a panic without a message".into()))
        }
    };
    reporter.problem(&problem);
    problem.status()
}

/// The same in a Python that has the package `rtc`: this Python runs the commands that need one.
pub fn run_in_python<W: Into<OsString>>(python: PathBuf, words: impl IntoIterator<Item = W>) -> u8 {
    host::set_own(python);
    run(words)
}

/// Ends the command for an invalid command line, or one that requests help.
fn refuse(error: &clap::Error, words: &[OsString]) -> u8 {
    let is_json = words.iter().any(|word| word == "--message-format=json")
        || words.windows(2).any(|pair| pair == ["--message-format", "json"]);
    if !error.use_stderr() || !is_json {
        // Help on standard output, errors on standard error. A reader that is gone needs neither.
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(2);
    }
    let text = error.render().to_string();
    // The first line is `error: ..`; the usage after it is of no use to a program.
    let message = text.split("\n\nUsage:").next().unwrap_or(&text).trim().trim_start_matches("error: ").to_owned();
    let problem = Problem::Usage(message);
    Reporter::new(MessageFormat::Json, Color::Never, false).problem(&problem);
    problem.status()
}

fn dispatch(command: &Command, reporter: &Reporter) -> Result<(), Problem> {
    match command {
        Command::Build(arguments) => build::build(arguments, reporter),
        Command::Emit(arguments) => emit::emit(arguments, reporter),
        Command::Run(arguments) => run::run(arguments, reporter),
        Command::Cache(arguments) => cache::manage(arguments, reporter),
        Command::Tune(arguments) => tune::tune(arguments, reporter),
        Command::Verify(arguments) => verify::verify(arguments, reporter),
        Command::Bench(arguments) => host::run("bench", arguments),
        Command::Precision(arguments) => host::run("precision", arguments),
        Command::Fix(arguments) => fix::fix(arguments, reporter),
        Command::Explain(arguments) => explain::explain(arguments, reporter),
        Command::ExplainSpeed(arguments) => explain_speed::explain_speed(arguments, reporter),
        // The flag changes nothing.
        Command::Lsp(_) => lsp::lsp(),
        Command::Explore(arguments) => explore::explore(arguments, reporter),
        Command::Doctor(arguments) => doctor::doctor(arguments, reporter),
        Command::Devices(arguments) => devices::devices(arguments, reporter),
        Command::Mcp(arguments) => mcp::mcp(arguments),
        Command::Completions(arguments) => completions::completions(arguments),
        Command::Man(arguments) => completions::man(arguments),
        Command::Embed => embed::embed(),
    }
}

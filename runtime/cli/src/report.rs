//! The output on stderr: errors, warnings, progress, times.
//!
//! The first line of every error is `error[code]: text`, also for errors without a place in the source; with
//! `--message-format json` every error is one object per line with the same keys.

use crate::arguments::{Color, MessageFormat};
use crate::output::{self, errln};
use crate::problem::Problem;
use anstyle::{AnsiColor, Style};
use rtc_compiler::Observer;
use rtc_source::{Code, Diagnostic, Severity, SourceMap, render, render_json};
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Writes to stderr in the wanted form.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    format: MessageFormat,
    color: bool,
    pub(crate) verbose: bool,
}

/// Whether stderr is a terminal that takes more than plain lines.
fn draws() -> bool {
    std::io::stderr().is_terminal() && takes_escapes(std::env::var_os("TERM").as_deref())
}

/// Whether a terminal of this type takes colors and moves of the cursor.
fn takes_escapes(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term != "dumb")
}

impl Reporter {
    pub(crate) fn new(format: MessageFormat, color: Color, verbose: bool) -> Reporter {
        let color = match color {
            Color::Auto => std::env::var_os("NO_COLOR").is_none() && draws(),
            Color::Always => true,
            Color::Never => false,
        };
        Reporter { format, color, verbose }
    }

    /// Whether messages are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format == MessageFormat::Json
    }

    /// Whether progress bars can be drawn: they are for people.
    pub(crate) fn shows_progress(&self) -> bool {
        self.format == MessageFormat::Human
    }

    /// Reports why the command failed.
    pub(crate) fn problem(&self, problem: &Problem) {
        match problem {
            Problem::Diagnostics { sources, list } => {
                self.diagnostics(sources, list);
                let errors = list.iter().filter(|d| d.severity == Severity::Error).count();
                if errors > 1 && self.format == MessageFormat::Human {
                    errln!("{errors} errors");
                }
            }
            Problem::Input { code, message, place } => self.error(*code, message, place.as_deref(), &[]),
            Problem::NobodyReads | Problem::Said(_) => {}
            Problem::Rendered(text) if self.is_json() => self.error(Code::EMBED, text.trim_end(), None, &[]),
            Problem::Rendered(text) => errln!("{}", text.trim_end()),
            Problem::Usage(message) => self.error(Code::USAGE, message, None, &["For help, try `--help`.".into()]),
            Problem::Bug { stage, message, ir } => {
                let mut notes = vec![format!("it happened in: {stage}")];
                if let Some(ir) = ir {
                    notes.push(format!("the kernel at this point:\n{ir}"));
                }
                notes.push(format!(
                    "this is a bug of rtc {}; please report it with this message, the source file and the command line",
                    rtc_compiler::COMPILER_VERSION
                ));
                self.error(Code::INTERNAL, message, None, &notes);
            }
        }
    }

    /// Shows diagnostics; remarks only with `-v`.
    pub(crate) fn diagnostics(&self, sources: &SourceMap, list: &[Diagnostic]) {
        for diagnostic in list.iter().filter(|d| self.verbose || d.severity != Severity::Note) {
            match self.format {
                MessageFormat::Human => errln!("{}", render(sources, diagnostic, self.color).trim_end()),
                MessageFormat::Json => errln!("{}", render_json(sources, diagnostic)),
            }
        }
    }

    /// Shows what the sanitizer found; `facts` are further keys of the JSON form.
    pub(crate) fn finding(&self, sources: &SourceMap, diagnostic: &Diagnostic, facts: serde_json::Value) {
        if self.format == MessageFormat::Human {
            errln!("{}", render(sources, diagnostic, self.color).trim_end());
            return;
        }
        let mut json: serde_json::Value = serde_json::from_str(&render_json(sources, diagnostic)).unwrap_or_default();
        json["sanitizer"] = facts;
        errln!("{json}");
    }

    /// A message that is printed only with `-v`.
    pub(crate) fn verbose(&self, message: &str) {
        if self.verbose {
            note(self.format, message);
        }
    }

    /// Has warnings of the runtime come here.
    pub(crate) fn hear_warnings(&self) {
        let own = self.clone();
        rtc_runtime::on_warning(move |warning| own.warning(Code(warning.code), &warning.message));
    }

    /// Something that looks wrong but does not end the command.
    pub(crate) fn warning(&self, code: Code, message: &str) {
        self.message("warning", AnsiColor::Yellow, code, message, None, &[]);
    }

    /// Something for information that has no place in a source.
    pub(crate) fn note(&self, code: Code, message: &str) {
        self.message("note", AnsiColor::Cyan, code, message, None, &[]);
    }

    fn error(&self, code: Code, message: &str, place: Option<&str>, notes: &[String]) {
        self.message("error", AnsiColor::Red, code, message, place, notes);
    }

    fn message(
        &self,
        severity: &str,
        color: AnsiColor,
        code: Code,
        message: &str,
        place: Option<&str>,
        notes: &[String],
    ) {
        let colored = self.color && self.format == MessageFormat::Human;
        let style = |style: Style| if colored { style.bold() } else { Style::new() };
        let (head, bold) = (style(color.on_default()), style(Style::new()));
        let mut text = format!("{head}{severity}[{code}]{head:#}{bold}: {message}{bold:#}\n");
        if let Some(place) = place {
            text.push_str(&format!(" --> {place}\n"));
        }
        for note in notes {
            text.push_str(&format!(" = note: {note}\n"));
        }
        match self.format {
            MessageFormat::Human => output::tell(format_args!("{text}")),
            MessageFormat::Json => {
                let json = serde_json::json!({
                    "severity": severity, "code": code, "message": message, "file": place, "labels": [], "notes": notes,
                    "help": null, "rendered": text,
                });
                errln!("{json}");
            }
        }
    }

    /// Follows one long piece of work, such as the compilation of a kernel.
    pub(crate) fn follow(&self, what: impl Into<String>) -> Progress {
        Progress::start(what.into(), self.verbose, self.format)
    }
}

/// Something that is neither an error nor a warning. Among JSON it is an object, too, so that every line can be read.
fn note(format: MessageFormat, message: &str) {
    match format {
        MessageFormat::Human => errln!("{message}"),
        MessageFormat::Json => {
            let json = serde_json::json!({
                "severity": "note", "code": null, "message": message, "file": null, "labels": [], "notes": [], "help": null,
                "rendered": format!("{message}\n"),
            });
            errln!("{json}");
        }
    }
}

/// Times the stages of one piece of work and shows on a terminal what it is at.
///
/// Nothing is shown of work that takes less than a second. Where stderr is no terminal, there is a line every ten
/// seconds.
pub(crate) struct Progress {
    what: String,
    stages: Vec<(&'static str, Instant)>,
    verbose: bool,
    format: MessageFormat,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    stage: Mutex<&'static str>,
    /// About how many instructions a thread of a long kernel has.
    instructions: AtomicU64,
    done: AtomicBool,
}

impl Progress {
    fn start(what: String, verbose: bool, format: MessageFormat) -> Progress {
        let shared =
            Arc::new(Shared { stage: Mutex::new(""), instructions: AtomicU64::new(0), done: AtomicBool::new(false) });
        let thread = (format == MessageFormat::Human).then(|| {
            let (shared, what) = (shared.clone(), what.clone());
            std::thread::spawn(move || show(&shared, &what))
        });
        Progress { what, stages: Vec::new(), verbose, format, shared, thread }
    }

    /// The work is done; with `-v` the times are shown.
    pub(crate) fn finish(mut self) {
        self.stop();
        if !self.verbose {
            return;
        }
        let end = Instant::now();
        let ends = self.stages.iter().skip(1).map(|s| s.1).chain([end]);
        let mut text = format!("{}:", self.what);
        for ((stage, start), end) in self.stages.iter().zip(ends) {
            text.push_str(&format!(" {stage} {:.1} ms,", (end - *start).as_secs_f64() * 1e3));
        }
        let total = self.stages.first().map_or(Duration::ZERO, |s| end - s.1);
        note(self.format, &format!("{text} together {:.1} ms", total.as_secs_f64() * 1e3));
    }

    fn stop(&mut self) {
        self.shared.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only draws; if it panicked there is nothing to undo.
            let _ = thread.join();
        }
    }
}

impl Observer for Progress {
    fn static_print(&mut self, line: &str) {
        note(self.format, line);
    }

    fn long(&mut self, instructions: u64) {
        self.shared.instructions.store(instructions, Ordering::Relaxed);
    }

    fn enter(&mut self, stage: &'static str) {
        self.stages.push((stage, Instant::now()));
        *self.shared.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop();
    }
}

fn show(shared: &Shared, what: &str) {
    let (start, terminal) = (Instant::now(), draws());
    let period = Duration::from_millis(if terminal { 200 } else { 10_000 });
    let mut next = if terminal { Duration::from_secs(1) } else { period };
    let mut drawn = false;
    while !shared.done.load(Ordering::Relaxed) {
        let elapsed = start.elapsed();
        if elapsed < next {
            std::thread::park_timeout(next - elapsed);
            continue;
        }
        next = elapsed + period;
        let stage = *shared.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let size = match shared.instructions.load(Ordering::Relaxed) {
            0 => String::new(),
            instructions => format!(", about {instructions} instructions in each thread; -v says where"),
        };
        let line = format!("{what}: {stage} ({:.0} s{size})", elapsed.as_secs_f64());
        let mut stderr = std::io::stderr().lock();
        // A failed write to stderr cannot be reported.
        let _ = if terminal { write!(stderr, "\r\x1b[K{line}") } else { writeln!(stderr, "{line}") };
        let _ = stderr.flush();
        drawn = true;
    }
    if drawn && terminal {
        output::tell(format_args!("\r\x1b[K"));
    }
}

#[cfg(test)]
mod tests {
    use super::takes_escapes;
    use std::ffi::OsStr;

    #[test]
    fn dumb_terminals_get_plain_lines() {
        assert!(!takes_escapes(Some(OsStr::new("dumb"))));
        assert!(takes_escapes(Some(OsStr::new("xterm-256color"))) && takes_escapes(None));
    }
}

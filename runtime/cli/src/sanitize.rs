//! `rtc run --sanitize`: what the sanitizer found, with the source under it.

use crate::arguments::RunArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::trusted;
use rtc_runtime::sanitize::{Check, Checks, Place, Report};
use rtc_runtime::{Device, DeviceKind, Error, Kernel};
use rtc_source::{Code, Diagnostic, FileId, Label, Severity, SourceMap, Span};
use rtc_testing::{LaunchFile, Tensors};
use serde_json::json;

/// The device of a launch: with checks or counters the emulator.
pub(crate) fn device(arguments: &RunArguments) -> Result<Device, Problem> {
    let (kind, checks) = (arguments.device, arguments.sanitize);
    if checks.is_none() && !arguments.counters {
        return Ok(Device::open(kind)?);
    }
    if !matches!(kind, DeviceKind::Auto | DeviceKind::Emulator) {
        return Err(Problem::Usage("--sanitize and --counters run on the emulator; leave out --device".into()));
    }
    let mut device = Device::emulator();
    if let Some(checks) = checks {
        device = device.sanitize_within(checks, arguments.instructions)?;
    }
    Ok(if arguments.counters { device.with_counters()? } else { device })
}

/// Findings of the interpreter: promises of the source that do not hold, and dependence on unspecified results.
pub(crate) fn interpreted(kernel: &Kernel, launch: &LaunchFile, tensors: &Tensors, reporter: &Reporter) -> Vec<Report> {
    match launch.run(&trusted::in_bounds(kernel), tensors) {
        Err(rtc_testing::Error::Runtime(Error::Sanitizer(found))) => found.into(),
        Err(error) => {
            reporter.verbose(&format!("promises and open results were not checked further: {error}"));
            Vec::new()
        }
        Ok(_) => Vec::new(),
    }
}

/// Those of the checks that the interpreter makes.
pub(crate) fn of_interpreter(checks: Checks) -> Checks {
    checks.iter().filter(|check| matches!(check, Check::Promise | Check::Open)).collect()
}

/// Shows the findings; returns the problem that ends the command.
pub(crate) fn report(found: &[Report], sources: &SourceMap, reporter: &Reporter) -> Problem {
    for report in found {
        let facts = json!({
            "check": report.check.name(),
            "kernel": report.kernel,
            "count": report.count,
            "fatal": report.is_fatal,
            "at": place(&report.place),
            "other": report.related.as_ref().map(|related| {
                let mut json = place(&related.place);
                json["what"] = related.what.clone().into();
                json
            }),
        });
        reporter.finding(sources, &diagnostic(report, sources), facts);
    }
    let (number, ending) = (found.len(), if found.len() == 1 { "" } else { "s" });
    Problem::input(Code::SANITIZER, format!("{number} finding{ending}"))
}

fn place(place: &Place) -> serde_json::Value {
    let location = place.location.as_ref();
    json!({
        "block": place.block,
        "warp": place.warp,
        "lane": place.lane,
        "thread": place.thread,
        "file": location.map(|at| &at.file),
        "line": location.map(|at| at.line),
        "column": location.map(|at| at.column),
        "ptx_line": place.ptx_line,
        "instruction": place.instruction,
    })
}

/// A finding as the compiler shows its own.
fn diagnostic(report: &Report, sources: &SourceMap) -> Diagnostic {
    let mut labels = Vec::new();
    let first = spans(&report.place, sources);
    if let Some((span, callers)) = first.split_first() {
        labels.push(Label { span: *span, text: String::new(), primary: true });
        labels.extend(callers.iter().map(|span| Label { span: *span, text: "called here".into(), primary: false }));
    }
    if let Some(related) = &report.related
        && let Some(span) = spans(&related.place, sources).first()
    {
        match labels.iter_mut().find(|label| label.span == *span) {
            Some(label) => label.text.clone_from(&related.what),
            None => labels.push(Label { span: *span, text: related.what.clone(), primary: false }),
        }
    }
    let mut notes = Vec::new();
    if report.place.ptx_line > 0 {
        notes.push(format!("kernel `{}`, {}", report.kernel, report.place));
    }
    if let Some(related) = &report.related {
        notes.push(format!("{}: {}", related.what, related.place));
    }
    if report.count > 1 {
        notes.push(format!("seen {} times; this is the first", report.count));
    }
    Diagnostic {
        severity: Severity::Error,
        code: Code(report.code),
        message: report.message.clone(),
        labels,
        notes,
        help: help(report).map(str::to_owned),
        edits: Vec::new(),
    }
}

/// The remedy, if there is a typical one.
fn help(report: &Report) -> Option<&'static str> {
    let same_block = report.related.as_ref().is_some_and(|related| related.place.block == report.place.block);
    match report.code {
        "global-race" if same_block => Some(
            "`tl.debug_barrier()` in between orders the threads of a program; a tile with fewer elements than the program has \
             threads is loaded by several of its warps",
        ),
        "global-race" => Some(
            "use `tl.atomic_*` where programs share memory, or hand it on by an atomic with `sem=\"release\"` and one with \
             `sem=\"acquire\"`",
        ),
        "uninitialized-global" => Some("clear or upload the memory before the launch, or store to it first"),
        "open-result" => Some(
            "a GPU or another compiler may give something else there: give the load `other=`, or keep such elements out of results \
             by `tl.where`",
        ),
        "address-overflow" => Some("compute the offset in 64 bits: `row.to(tl.int64) * stride`"),
        _ => None,
    }
}

/// The expression at a place, and the calls that it was inlined at.
fn spans(place: &Place, sources: &SourceMap) -> Vec<Span> {
    let Some(location) = &place.location else { return Vec::new() };
    let at = |file: &str, line, column| {
        let (id, file) = sources.files().find(|(_, known)| known.name == file)?;
        expression(id, &file.text, line, column)
    };
    let own = at(&location.file, location.line, location.column);
    let callers = location.inlined_at.iter().map(|(file, line, column)| at(file, *line, *column));
    std::iter::once(own).chain(callers).flatten().collect()
}

/// The token at a line and a column: a name with its call, index or attribute, otherwise one character.
fn expression(file: FileId, text: &str, line: u32, column: u32) -> Option<Span> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)? as usize).map(str::len).sum();
    let row = text[start..].lines().next()?;
    let skipped: usize = row.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
    let rest = &row[skipped..];
    let mut depth = 0;
    let mut end = 0;
    for (i, c) in rest.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            _ if depth > 0 || c == '.' || c == '_' || c.is_alphanumeric() => {}
            _ => break,
        }
        end = i + c.len_utf8();
    }
    let end = end.max(rest.chars().next().map_or(0, char::len_utf8));
    Some(Span::new(file, start + skipped, start + skipped + end))
}

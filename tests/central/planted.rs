//! The expected reports of the sanitizer: `tests/filetests/planted/*.rt` are cases like those of `language/`, with
//! bugs. A line ends in `# BUG CODE` for each report that it must get; there must be no other report.

use std::collections::BTreeSet;

use rtc_emulator::sanitize::Report;
use rtc_ir::interp::Storage;
use rtc_ir::{Kernel, Op, print_errors, verify};

use crate::case::Case;
use crate::judge::{expected, interpret};

/// The prefix of report names.
pub const MARK: &str = "# BUG ";

/// Names of reports, with their lines.
pub type Marks = BTreeSet<(u32, String)>;

/// The marks of a source.
pub fn marks(source: &str) -> Marks {
    let lines = source.lines().zip(1..).filter_map(|(line, number)| Some((number, line.split_once(MARK)?.1)));
    lines.flat_map(|(number, codes)| codes.split_whitespace().map(move |code| (number, code.to_string()))).collect()
}

/// Compares the reports with the marks.
pub fn compare(marks: &Marks, reports: &[Report]) -> Result<(), String> {
    let line = |report: &Report| {
        // A function of the standard library is called somewhere in the case.
        let at = report.place.location.as_ref()?;
        Some(at.inlined_at.last().map_or(at.line, |(_, line, _)| *line))
    };
    let found: Marks = reports.iter().map(|r| (line(r).unwrap_or(0), r.code.to_string())).collect();
    if found == *marks {
        return Ok(());
    }
    let missed: Vec<_> = marks.difference(&found).collect();
    let others: Vec<_> = found.difference(marks).collect();
    let all: Vec<String> = reports.iter().map(ToString::to_string).collect();
    Err(format!("not found: {missed:?}; found besides: {others:?}\n{}", all.join("\n")))
}

/// Reports of a right kernel must be among those that its header names.
pub fn allowed(codes: &[String], reports: &[Report]) -> Result<(), String> {
    match reports.iter().find(|report| !codes.iter().any(|code| code == report.code)) {
        Some(report) => Err(format!("the sanitizer: {report}")),
        None => Ok(()),
    }
}

/// Plants the mistake that these operations are missing; the interpreter must find it.
pub fn without(case: &Case, kernel: &mut Kernel, name: &str) -> Result<(), String> {
    let all = rtc_ir::walk(kernel).into_iter().filter(|op| kernel.kind(*op).spec().mnemonic == name);
    let all: Vec<Op> = all.collect();
    if all.is_empty() {
        return Err(format!("the finished kernel has no `{name}`"));
    }
    all.into_iter().for_each(|op| kernel.erase(op));
    let verified = verify(kernel).map_err(|e| print_errors(kernel, &e))?;
    let found = interpret(case, verified, Storage::Registers, None);
    expected(case, &found, true).map_err(|e| format!("the interpreter, without `{name}`: {e}"))
}

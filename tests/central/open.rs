//! Kernels that lean on what the language leaves open: `tests/filetests/open/*.rt` are cases as those of `planted/`. A line that
//! ends in `# BUG open-result` must be found, and no other.

use rtc_compiler::Program;
use rtc_ir::interp::Finding;

use crate::language::{self, Part};
use crate::{judge, planted};

/// Runs a case.
pub fn check(part: &Part, file: &str) -> Result<(), String> {
    let (program, kernel, case) = language::made(part, file, "sm_90a")?;
    let found = judge::leaning(&case, &kernel)?;
    let found: planted::Marks =
        found.iter().map(|finding| (line(finding, &program), "open-result".to_string())).collect();
    let wanted = planted::marks(&part.source);
    if found == wanted { Ok(()) } else { Err(format!("marked {wanted:?}, found {found:?}")) }
}

/// The line in the case where something was found, or where the function is called that has it.
fn line(finding: &Finding, program: &Program) -> u32 {
    let span = finding.callers.last().or(finding.span.as_ref());
    span.map_or(0, |span| program.sources().position(*span).line)
}

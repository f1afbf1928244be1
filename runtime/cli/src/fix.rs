//! `rtc fix`: programs rewritten for versions of Triton without block pointers.

use std::fs;
use std::path::Path;

use crate::arguments::FixArguments;
use crate::input;
use crate::output::out;
use crate::problem::Problem;
use crate::report::Reporter;
use rtc_source::Code;

/// Shows what would change, or changes it.
pub(crate) fn fix(arguments: &FixArguments, reporter: &Reporter) -> Result<(), Problem> {
    let (mut changed, mut left) = (0, 0);
    if arguments.write && arguments.files.iter().any(|path| input::is_standard_input(path)) {
        return Err(Problem::Usage(
            "standard input cannot be changed; leave out --write, which shows the changes".into(),
        ));
    }
    for path in &arguments.files {
        let fixed = read(path)?;
        if fixed.is_changed() {
            changed += 1;
            if arguments.write {
                fs::write(path, &fixed.text).map_err(|error| Problem::file(Code::IO, path, error.to_string()))?;
            }
            if arguments.diff || !(arguments.write || arguments.check) {
                out!("{}", fixed.diff())?;
            }
        }
        reporter.diagnostics(&fixed.sources, &fixed.left);
        left += fixed.left.len();
    }
    let verb = if arguments.write { "rewritten" } else { "would be rewritten" };
    let files = |n: usize| if n == 1 { "1 file".to_owned() } else { format!("{n} files") };
    let uses = if left == 1 { "1 use".to_owned() } else { format!("{left} uses") };
    let summary = format!("{} {verb}, {uses} of block pointers left", files(changed));
    if arguments.check && (changed > 0 || left > 0) {
        return Err(Problem::input(Code::UNSUPPORTED, summary));
    }
    reporter.verbose(&summary);
    Ok(())
}

fn read(path: &Path) -> Result<rtc_compiler::Fix, Problem> {
    Ok(rtc_compiler::fix(&input::name_of(path), &input::read_text(path)?))
}

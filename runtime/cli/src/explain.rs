//! `rtc explain`: what a code means, or what the reference says of a name.

use crate::arguments::ExplainArguments;
use crate::output::out;
use crate::problem::Problem;
use rtc_source::Code;

/// Prints the page of a code or the entries of a name, or the list of all codes.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<(), Problem> {
    match rtc_compiler::explain(arguments.name.as_deref()) {
        Ok(text) => out!("{text}"),
        Err(message) => Err(Problem::input(Code::UNKNOWN_CODE, message)),
    }
}

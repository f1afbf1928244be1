//! `rtc explain`: what a code means, or what the reference says of a name.

use crate::arguments::ExplainArguments;
use crate::output::{out, outln};
use crate::problem::Problem;
use crate::report::Reporter;
use rtc_source::{CODES, Code, Level, WARNINGS};
use serde_json::{Value, json};

/// Prints the page of a code or the entries of a name, or the list of all codes.
pub(crate) fn explain(arguments: &ExplainArguments, reporter: &Reporter) -> Result<(), Problem> {
    let is_json = arguments.json || reporter.is_json();
    match (rtc_compiler::explain(arguments.name.as_deref()), &arguments.name) {
        (Ok(_), None) if is_json => outln!("{}", json!({ "codes": codes() })),
        (Ok(text), Some(name)) if is_json => outln!("{}", json!({"name": name, "text": text})),
        (Ok(text), _) => out!("{text}"),
        (Err(message), _) => Err(Problem::input(Code::UNKNOWN_CODE, message)),
    }
}

/// All codes, each with the first line of its page, and as a warning with its default level.
fn codes() -> Vec<Value> {
    let of = |(code, page): &(Code, &str)| {
        let level = WARNINGS.iter().find(|(warning, _)| warning == code).map(|(_, level)| match level {
            Level::Allow => "allow",
            Level::Warn => "warn",
            Level::Deny => "deny",
        });
        json!({"code": code, "meaning": page.trim().lines().next().unwrap_or_default(), "level": level})
    };
    CODES.iter().map(of).collect()
}

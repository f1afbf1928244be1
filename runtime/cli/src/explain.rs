//! `rtc explain`: what a code means.

use crate::arguments::ExplainArguments;
use crate::problem::Problem;
use rtc_source::CODES;

/// Prints the page of a code, or the list of all.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<(), Problem> {
    match &arguments.code {
        None => {
            for (code, page) in CODES {
                println!("{:24} {}", code.0, page.trim().lines().next().unwrap_or_default());
            }
            Ok(())
        }
        Some(wanted) => match CODES.iter().find(|(code, _)| code.0 == wanted) {
            Some((_, page)) => {
                page.trim().lines().for_each(|line| println!("{}", line.strip_prefix(' ').unwrap_or(line)));
                Ok(())
            }
            None => {
                Err(Problem::input("unknown-code", format!("there is no code `{wanted}`; `rtc explain` lists all")))
            }
        },
    }
}

//! `rtc embed`: compiles for a build script; the crate rtc-build calls it.

use crate::problem::Problem;
use rtc_source::Code;
use std::io::Read;

/// Does what the request on standard input says.
pub(crate) fn embed() -> Result<(), Problem> {
    let mut request = String::new();
    let read = std::io::stdin().read_to_string(&mut request);
    read.map_err(|error| Problem::input(Code::IO, format!("cannot read the request: {error}")))?;
    rtc_build::internal::serve(&request).map_err(|error| Problem::Rendered(error.to_string()))
}

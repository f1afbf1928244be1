//! `rtc doctor`: the state of this machine, as far as rtc depends on it.

use crate::arguments::DoctorArguments;
use crate::output::{out, outln};
use crate::problem::Problem;
use crate::{host, report::Reporter};
use rtc_doctor::Check;

/// Prints the report. Exit status 1 where no device runs kernels.
pub(crate) fn doctor(arguments: &DoctorArguments, reporter: &Reporter) -> Result<(), Problem> {
    let report = rtc_doctor::examine(vec![python()]);
    match arguments.json || reporter.is_json() {
        true => outln!("{:#}", report.to_json())?,
        false => out!("{report}")?,
    }
    if report.works() { Ok(()) } else { Err(Problem::Said(1)) }
}

/// The Python that runs `rtc verify`, `bench` and `precision`.
fn python() -> Check {
    let found = host::find().and_then(|python| host::check(&python).map(|()| python));
    match found {
        Ok(python) => Check::ok("python", format!("{} has the package `rtc`", python.display())),
        Err(Problem::Input { message, .. }) => {
            let remedy = "it is needed only for `rtc verify`, `rtc bench` and `rtc precision`; install Python 3.10 or later and the \
                          package rtc-triton, or name a Python that has it by --python";
            Check::warning("python", message, remedy)
        }
        Err(_) => Check::warning("python", "Python cannot be examined", "name a Python by --python"),
    }
}

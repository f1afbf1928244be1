//! `rtc doctor`: what this machine has that rtc needs, and what to do where something is missing; `rtc devices`: the devices.
//!
//! [`examine`] looks at the compiler, the driver, the GPUs, the assemblers and the caches. On each device it compiles and runs a
//! small kernel, so that a line without a complaint means that launches work there.
//!
//! ```
//! let report = rtc_doctor::examine(Vec::new());
//! assert!(report.works(), "the emulator needs nothing:\n{report}");
//! assert!(report.checks.iter().any(|check| check.topic == "driver"));
//! ```

mod assembler;
mod cache;
mod devices;
mod list;

pub use list::{DeviceInfo, DeviceList, Driver, devices};

use serde::Serialize;
use std::fmt;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing to do.
    Ok,
    /// Something is missing or has a known defect, and rtc works without it.
    Warning,
    /// Something does not work.
    Error,
}

/// The state of one part of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The part, such as `driver`.
    pub topic: &'static str,
    /// How the check ended.
    pub status: Status,
    /// The state, in one sentence.
    pub text: String,
    /// The remedy, if the status is not [`Status::Ok`].
    pub remedy: Option<String>,
    /// Whether kernels run on this device; nothing for parts that are no device.
    pub runs_kernels: Option<bool>,
}

impl Check {
    /// A part that is as it should be.
    pub fn ok(topic: &'static str, text: impl Into<String>) -> Check {
        Check { topic, status: Status::Ok, text: text.into(), remedy: None, runs_kernels: None }
    }

    /// A part that is missing or has a known defect, without which rtc works.
    pub fn warning(topic: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { status: Status::Warning, remedy: Some(remedy.into()), ..Check::ok(topic, text) }
    }

    /// A part that does not work.
    pub fn error(topic: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { status: Status::Error, remedy: Some(remedy.into()), ..Check::ok(topic, text) }
    }

    fn of_device(self, runs_kernels: bool) -> Check {
        Check { runs_kernels: Some(runs_kernels), ..self }
    }
}

/// All checks, in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The checks.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether kernels run on some device.
    pub fn works(&self) -> bool {
        self.checks.iter().any(|check| check.runs_kernels == Some(true))
    }

    /// The report as JSON: `works`, and `checks` with the fields of [`Check`].
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "works": self.works(), "checks": self.checks })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let status = match check.status {
                Status::Ok => "ok",
                Status::Warning => "warning",
                Status::Error => "error",
            };
            writeln!(f, "{status:8} {:12} {}", check.topic, check.text)?;
            if let Some(remedy) = &check.remedy {
                writeln!(f, "{:8} {:12} remedy: {remedy}", "", "")?;
            }
        }
        match self.works() {
            true => writeln!(f, "kernels can run on this machine"),
            false => writeln!(f, "kernels cannot run on any device of this machine"),
        }
    }
}

/// Examines this machine; `others` are checks of the caller, which come last.
pub fn examine(others: Vec<Check>) -> Report {
    let mut checks = vec![Check::ok(
        "compiler",
        format!("rtc {}, with LLVM {} linked into it", rtc_compiler::COMPILER_VERSION, rtc_compiler::llvm_version()),
    )];
    let found = devices::checks();
    let has_hopper = found.archs.iter().any(|arch| arch == "sm_90a");
    checks.extend(found.checks);
    checks.extend(assembler::checks(found.driver, has_hopper));
    checks.extend(cache::checks());
    checks.extend(others);
    Report { checks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(runs: bool) -> Check {
        Check::ok("emulator", "..").of_device(runs)
    }

    #[test]
    fn a_machine_works_if_a_device_runs_kernels() {
        let driver = Check::warning("driver", "no CUDA driver was found", "install it");
        let report = Report { checks: vec![driver.clone(), device(true)] };
        assert!(report.works());
        let report = Report { checks: vec![driver, device(false)] };
        assert!(!report.works());
        assert_eq!(report.to_json()["works"], false);
        let text = report.to_string();
        assert!(text.contains("warning  driver       no CUDA driver was found\n"), "{text}");
        assert!(
            text.contains("remedy: install it\n") && text.ends_with("cannot run on any device of this machine\n"),
            "{text}"
        );
    }

    #[test]
    fn whatever_is_not_ok_has_a_remedy() {
        for check in examine(Vec::new()).checks {
            assert_eq!(check.status == Status::Ok, check.remedy.is_none(), "{check:?}");
        }
    }
}

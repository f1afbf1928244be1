//! `rtc verify`: a Python file by Python, recorded results without.

use crate::arguments::{LevelArguments, RunArguments};
use crate::debug_arguments::DebugArguments;
use crate::host_arguments::{HostArguments, VerifyArguments};
use crate::instrument::InstrumentArguments;
use crate::output::outln;
use crate::plan::PlanArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::results::Results;
use crate::{host, input, run};
use rtc_source::Code;
use rtc_source::json_fields::{self, Field, FieldError};
use rtc_testing::Tolerance;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Verifies.
pub(crate) fn verify(arguments: &VerifyArguments, reporter: &Reporter) -> Result<(), Problem> {
    match &arguments.golden {
        Some(folder) => {
            let done = replay(folder, arguments, reporter);
            if let (true, Err(Problem::Input { code, message, .. })) = (arguments.json, &done)
                && *code != Code::WRONG_RESULT
            {
                outln!("{}", json!({"error": {"code": code, "message": message}}))?;
            }
            done
        }
        None => {
            let mut words = arguments.words.clone();
            if arguments.json {
                words.push("--json".into());
            }
            host::run("verify", &HostArguments { python: arguments.python.clone(), words })
        }
    }
}

/// Replays all launches of a directory, each in a folder of its own.
fn replay(folder: &Path, arguments: &VerifyArguments, reporter: &Reporter) -> Result<(), Problem> {
    let unreadable = |error: std::io::Error| Problem::file(Code::GOLDEN, folder, error.to_string());
    let mut launches = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let launch = entry.map_err(unreadable)?.path().join("LAUNCH.json");
        if launch.is_file() {
            launches.push(launch);
        }
    }
    launches.sort();
    if launches.is_empty() {
        let message = "no folder in it has a LAUNCH.json; `rtc verify FILE.py --record DIR` writes them";
        return Err(Problem::file(Code::GOLDEN, folder, message));
    }
    let is_json = arguments.json || reporter.is_json();
    let (mut checked, mut wrong, mut objects) = (0, Vec::new(), Vec::new());
    for launch in &launches {
        let Some((expected, tolerance)) = golden(launch)? else { continue };
        checked += 1;
        let mut results = Results::new(is_json);
        let done = run::launched(&replayed(launch, expected, tolerance, arguments), reporter, &mut results);
        if let Some(object) = results.into_object() {
            let head = [
                ("launch".to_owned(), json!(launch.display().to_string())),
                ("correct".to_owned(), json!(done.is_ok())),
            ];
            objects.push(head.into_iter().chain(object).collect::<Map<String, Value>>());
        }
        match done {
            Ok(()) => {}
            Err(Problem::Input { code, message, .. }) if code == Code::WRONG_RESULT => {
                wrong.push(format!("{}: {message}", launch.display()));
            }
            Err(other) => return Err(other),
        }
    }
    if is_json {
        outln!("{}", json!({"correct": wrong.is_empty(), "launches": launches.len(), "replayed": objects}))?;
    }
    if !wrong.is_empty() {
        return Err(Problem::file(Code::WRONG_RESULT, folder, wrong.join("; ")));
    }
    if !is_json {
        outln!("golden     {checked} of {} launches have expected results; all are right", launches.len())?;
    }
    Ok(())
}

/// The reference of a launch, and the tolerance; `None` for launches without recorded results.
fn golden(launch: &Path) -> Result<Option<(PathBuf, Tolerance)>, Problem> {
    let text = input::read_text(launch)?;
    let wrong = |error: FieldError| Problem::file(Code::LAUNCH_FILE, launch, error.to_string());
    let json = json_fields::parse(&text).map_err(wrong)?;
    let read = || -> Result<Option<(String, Tolerance)>, FieldError> {
        let Some(golden) = Field::root(&json).get("golden")? else { return Ok(None) };
        let number = |name| {
            let field = golden.required(name)?;
            field.value().as_f64().filter(|bound| *bound >= 0.0).ok_or_else(|| field.expected("a number, 0 or above"))
        };
        let tolerance = Tolerance::Close { relative: number("rtol")?, absolute: number("atol")? };
        Ok(Some((golden.required("file")?.string()?.to_owned(), tolerance)))
    };
    let found = read().map_err(wrong)?;
    let beside = launch.parent().unwrap_or(Path::new(""));
    Ok(found.map(|(file, tolerance)| (beside.join(file), tolerance)))
}

/// The same as `rtc run` with these arguments.
fn replayed(launch: &Path, expected: PathBuf, tolerance: Tolerance, arguments: &VerifyArguments) -> RunArguments {
    RunArguments {
        instrument: None,
        records: InstrumentArguments { instrument_blocks: None },
        file: launch.with_file_name("rtc_m0.py"),
        launch: launch.to_owned(),
        device: arguments.device,
        output: None,
        check: Some(expected),
        sanitize: None,
        counters: false,
        json: false,
        debug: DebugArguments::default(),
        plan: PlanArguments::default(),
        instructions: None,
        tolerance: Some(tolerance),
        arch: None,
        no_cache: false,
        keep: None,
        repeat: 0,
        libdevice: None,
        include: Vec::new(),
        levels: LevelArguments::default(),
    }
}

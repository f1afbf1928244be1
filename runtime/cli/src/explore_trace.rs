//! `rtc explore --timeline`: a launch that another program recorded, beside its kernel.

use crate::explore::Subject;
use crate::input;
use crate::problem::Problem;
use crate::run::Input;
use rtc_compiler::{Artifact, Program, Spec};
use rtc_explore::{LaunchInput, NotATrace, Recording, TraceOf};
use rtc_runtime::counters::Counters;
use rtc_runtime::timeline::Model;
use rtc_source::Code;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A trace.
pub(crate) struct Trace {
    path: PathBuf,
    content: Value,
    of: TraceOf,
    recording: Recording,
}

/// The kernel of a trace, compiled with records as for that launch.
pub(crate) fn subject(program: Program, path: &Path) -> Result<Subject, Problem> {
    let wrong = |message: String| Problem::file(Code::TRACE, path, message);
    let content = serde_json::from_str(&input::read_text(path)?);
    let content: Value = content.map_err(|error| wrong(format!("it is no JSON: {error}")))?;
    let (of, recording) = rtc_explore::trace_of(&content).map_err(|error| wrong(error.to_string()))?;
    let mut spec = Spec::parse(&of.spec).map_err(|error| wrong(error.to_string()))?;
    spec.kernel = Some(of.kernel.clone());
    spec.options.instrument = of.instrument;
    let specialization = spec.specialize(&program).map_err(|failure| Problem::compile(program.sources(), failure))?;
    Ok(Subject {
        input: Input::Source(Box::new((program, specialization))),
        spec,
        arch: of.arch.clone(),
        launch: None,
        interprets: false,
        inputs: None,
        trace: Some(Trace { path: path.to_owned(), content, of, recording }),
    })
}

impl Trace {
    /// The launch for the page: its timeline, and nothing else.
    pub(crate) fn launch(&self, artifact: &Artifact) -> Result<LaunchInput, Problem> {
        let wrong = |error: NotATrace| Problem::file(Code::TRACE, &self.path, error.to_string());
        Ok(LaunchInput {
            executor: "program",
            grid: self.of.grid,
            counters: Counters::default(),
            timeline: rtc_explore::trace_timeline(&self.content, &artifact.ptx).map_err(wrong)?,
            recording: Some(self.recording.clone()),
            model: Model::of_arch(&self.of.arch).name,
            outputs: Vec::new(),
            findings: Vec::new(),
            fault: None,
        })
    }
}

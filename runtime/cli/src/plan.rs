//! `--plan`: decisions about the schedule that a file gives.

use crate::input;
use crate::problem::Problem;
use clap::Args;
use rtc_abi::{InvalidPlan, Plan};
use rtc_compiler::LaunchOptions;
use rtc_source::{Code, Diagnostic, SourceMap, Span};
use std::path::PathBuf;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlanArguments {
    /// Schedule the kernel by the decisions of this file, such as `ring=4 rows=no`, for experiments; the compiler makes those
    /// that are left out. Results do not change. -v reports decisions that are not applicable
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
}

impl PlanArguments {
    /// Sets the launch option.
    pub(crate) fn apply(&self, options: &mut LaunchOptions) -> Result<(), Problem> {
        let Some(path) = &self.plan else { return Ok(()) };
        let text = input::read_text(path)?;
        options.plan = text.parse::<Plan>().map_err(|InvalidPlan { at, message }| {
            let mut sources = SourceMap::new();
            let file = sources.add(input::name_of(path), text.clone());
            // Files of 4 GiB and more have no spans.
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let span = Span { file, start: number(at.start), end: number(at.end) };
            Problem::Diagnostics { sources, list: vec![Diagnostic::error(Code::PLAN, span, message)] }
        })?;
        Ok(())
    }
}

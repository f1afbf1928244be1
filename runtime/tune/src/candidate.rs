//! Configurations and what is found out about each.

use crate::halving::RunTimes;
use crate::machine::Machine;
use crate::model::{self, Prediction, Resources};
use rtc_compiler::work::{Launch, Work};
use rtc_compiler::{Choice, Failure, Metadata, Program, Spec};
use rtc_runtime::KernelUsage;

/// A configuration and what is known of it.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// Parameters and options.
    pub choice: Choice,
    /// It stands in the source; others are of the wider space.
    pub is_written: bool,
    /// Programs.
    pub grid: [u32; 3],
    /// What one program does.
    pub(crate) work: Option<Work>,
    /// What it takes of an SM.
    pub resources: Option<Resources>,
    /// What the cost model says.
    pub prediction: Option<Prediction>,
    /// Why it was not timed.
    pub dropped: Option<String>,
    /// The number of another one that compiles to the same code for the same grid, and shares its times.
    pub same_as: Option<usize>,
    /// What it took.
    pub times: RunTimes,
    /// The median of a tuning before this one.
    pub stored_milliseconds: Option<f64>,
    /// Of how many runs that is.
    pub(crate) stored_runs: u32,
    /// It belongs to another shard, and is here to compare what other configurations compute.
    pub(crate) is_reference: bool,
    /// Its parameters and what it needs, but for what only the back end knows.
    pub(crate) metadata: Option<Metadata>,
}

impl Candidate {
    /// One that stands in the source.
    pub fn written(choice: Choice) -> Candidate {
        Candidate { choice, is_written: true, ..Candidate::default() }
    }

    /// The median of its times, now or of a tuning before.
    pub fn milliseconds(&self) -> Option<f64> {
        self.times.median().or(self.stored_milliseconds)
    }

    /// A hash of its code; empty where the passes refuse it.
    pub(crate) fn code(&self) -> &str {
        self.metadata.as_ref().map_or("", |metadata| &metadata.source_hash)
    }

    /// What tells it from those that compile to the same code for the same grid, and take the same options; nothing where that
    /// is not known.
    pub(crate) fn same(&self) -> Option<String> {
        let metadata = self.metadata.as_ref()?;
        // The number of warps and the stages are in the code as far as they count.
        let of_code = ["num_stages", "num_warps"];
        let options: Vec<_> =
            self.choice.options.iter().filter(|(name, _)| !of_code.contains(&name.as_str())).collect();
        Some(format!("{} {:?} {:?} {options:?}", metadata.source_hash, metadata.threads_per_block, self.grid))
    }

    /// Runs the passes on it and asks the cost model.
    pub(crate) fn estimate(&mut self, what: &Estimated<'_>) {
        let spec = what.spec.with_choice(&self.choice);
        let launch = Launch { grid: self.grid, integers: what.integers.to_vec() };
        let estimated = spec
            .specialize(what.program)
            .and_then(|specialization| rtc_compiler::estimate(what.program, &specialization, what.arch, &launch));
        match estimated {
            Ok((work, metadata)) => {
                let resources = Resources {
                    threads: metadata.threads_per_block,
                    shared_bytes: metadata.shared_bytes,
                    registers: self.choice.option("maxnreg").map_or(work.registers, |n| n.min(work.registers)),
                    local_bytes: 0,
                };
                self.dropped = model::misfit(&resources, what.machine).map(|why| format!("does not fit: {why}"));
                self.resources = Some(resources);
                self.work = Some(work);
                self.metadata = Some(metadata);
                self.predict(what.machine, what.tensors);
            }
            Err(failure) => self.dropped = Some(reason(&failure)),
        }
    }

    /// What the assembler made of it replaces the estimate.
    pub(crate) fn assembled(&mut self, usage: KernelUsage, machine: &Machine, tensors: Option<f64>) {
        if let Some(resources) = &mut self.resources {
            resources.registers = usage.registers;
            resources.local_bytes = usage.local_bytes;
        }
        self.predict(machine, tensors);
    }

    fn predict(&mut self, machine: &Machine, tensors: Option<f64>) {
        if let (Some(work), Some(resources)) = (&self.work, &self.resources) {
            let blocks = self.grid.iter().map(|n| u64::from(*n)).product();
            self.prediction = Some(model::predict(work, resources, blocks, tensors, machine));
        }
    }
}

/// What estimates of all configurations have in common.
pub(crate) struct Estimated<'p> {
    pub program: &'p Program,
    pub spec: &'p Spec,
    pub arch: &'p str,
    pub integers: &'p [(String, i64)],
    pub machine: &'p Machine,
    pub tensors: Option<f64>,
}

/// The numbers of the candidates that can be timed, those first that the cost model expects to be fast.
pub(crate) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).filter(|i| candidates[*i].dropped.is_none()).collect();
    let expected = |i: &usize| candidates[*i].prediction.map_or(f64::INFINITY, |p| p.milliseconds);
    order.sort_by(|a, b| expected(a).total_cmp(&expected(b)));
    order
}

/// Why a configuration cannot be compiled, in one line.
pub(crate) fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Diagnostics(list) => {
            let first = list.iter().find(|d| d.severity == rtc_compiler::source::Severity::Error).or(list.first());
            first.map_or_else(|| "does not compile".into(), |d| format!("does not compile: {}", d.message))
        }
        Failure::Request { message, .. } => format!("does not compile: {message}"),
        Failure::Internal { message, stage, .. } => format!("does not compile: {message} (in {stage}; a bug of rtc)"),
    }
}

//! What came out of a tuning: the winner, and a table of all configurations.

use crate::candidate::Candidate;
use crate::counted::CounterClock;
use crate::load::arguments;
use crate::shard::ShardPlan;
use crate::tuned::{Entry, Record, Setting};
use rtc_compiler::{Metadata, Spec};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The cost model.
    Model,
    /// A tuning before this one.
    Stored,
    /// The clock.
    Timed,
}

/// How long each step of a tuning took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Looking at all configurations by the cost model.
    pub estimating: Duration,
    /// Compiling and loading; on several devices also copying the tensors, at the same time.
    pub compiling: Duration,
    /// Keeping the tensors as they were, and what else stands before the first run.
    pub preparing: Duration,
    /// Timing all configurations.
    pub timing: Duration,
    /// Comparing the fastest once more, as a launch gets them.
    pub comparing: Duration,
}

/// What came out of a tuning.
///
/// ```
/// use rtc_compiler::{Program, Signature, Source, Spec};
/// use rtc_tune::{Candidate, Decision, GridFn, Machine, Phases, TuningReport, Tuner};
/// let text = "@triton.autotune([triton.Config({'B': b}) for b in (32, 1024)], key=['n'])\n\
///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
///             tl.store(x + i, 1.0, mask=i < n)\n";
/// let program = Program::parse(&[Source::new("fill.rt", text)]);
/// let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
/// let tuner = Tuner::new(&program, spec).integer("n", 1 << 20).grid(GridFn::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]));
/// let report: TuningReport = tuner.predict_on("sm_90a", &Machine::of_arch("sm_90a").with_sm_count(66))?;
/// assert_eq!((report.decision, report.phases), (Decision::Model, Phases::default()));
/// let best: &Candidate = &report.candidates[report.ranked()[0]];
/// assert_eq!(Some(&best.choice), report.winner().map(|winner| &winner.choice));
/// assert_eq!(report.expected_place(report.ranked()[0]), Some(1));
/// let names = |metadata: &rtc_compiler::Metadata| metadata.params.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
/// assert_eq!(report.arguments().map(|arguments| names(&arguments)), report.metadata().map(names));
/// assert!(report.winning_spec().is_some_and(|spec| spec.args.len() == 3));
/// // Nothing was timed: no times of this tuning or of one before, and nothing to be stored.
/// assert_eq!((report.milliseconds(0), best.milliseconds()), (None, None));
/// assert!(report.entry().records.is_empty() && report.to_svg().starts_with("<svg "));
/// assert!(Candidate::written(best.choice.clone()).is_written);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TuningReport {
    /// The kernel.
    pub kernel: String,
    /// Name of the device; empty where none was asked.
    pub device: String,
    /// Target.
    pub arch: String,
    /// Whether the source has an `autotune`.
    pub is_tuned: bool,
    /// What the best configuration depends on.
    pub key: Map<String, Value>,
    /// All configurations, those of the source first.
    pub candidates: Vec<Candidate>,
    /// Who decided.
    pub decision: Decision,
    /// Whether the budget ended the tuning.
    pub is_cut: bool,
    /// How many devices timed.
    pub devices: usize,
    /// Whether `ptxas` assembled the configurations; the fastest were then timed once more as the driver compiles them.
    pub is_assembled: bool,
    /// How long the steps took.
    pub phases: Phases,
    /// Time in all.
    pub elapsed: Duration,
    /// What else is to be said.
    pub notes: Vec<String>,
    /// What the configurations have in common.
    pub(crate) spec: Spec,
    /// Which of the configurations these are, where they are not all.
    pub(crate) shard: Option<ShardPlan>,
    /// The clock of devices without one.
    pub(crate) clock: Option<CounterClock>,
    winner: Option<usize>,
}

impl TuningReport {
    pub(crate) fn new(kernel: String, arch: &str, candidates: Vec<Candidate>) -> TuningReport {
        TuningReport {
            kernel,
            device: String::new(),
            arch: arch.to_owned(),
            is_tuned: false,
            key: Map::new(),
            candidates,
            decision: Decision::Model,
            is_cut: false,
            devices: 1,
            is_assembled: false,
            phases: Phases::default(),
            elapsed: Duration::ZERO,
            notes: Vec::new(),
            spec: Spec::default(),
            shard: None,
            clock: None,
            winner: None,
        }
    }

    pub(crate) fn decide(&mut self, winner: Option<usize>, decision: Decision) {
        if winner.is_some() {
            self.winner = winner;
            self.decision = decision;
        }
    }

    /// The chosen configuration; none if none can run.
    pub fn winner(&self) -> Option<&Candidate> {
        self.candidates.get(self.winner?)
    }

    /// The parameters of the kernel, which are the same in all configurations.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.candidates.iter().find_map(|c| c.metadata.as_ref())
    }

    /// The arguments that [`Tuner::tune`](crate::Tuner::tune) takes, as parameters: those of the kernel, but that a tensor
    /// descriptor is one argument.
    pub fn arguments(&self) -> Option<Metadata> {
        let metadata = self.metadata()?;
        Some(Metadata { params: arguments(metadata, &self.spec), ..metadata.clone() })
    }

    /// The spec of the chosen configuration.
    pub fn winning_spec(&self) -> Option<Spec> {
        Some(self.spec.with_choice(&self.winner()?.choice))
    }

    /// What the configurations have in common, as text.
    pub(crate) fn signature(&self) -> String {
        let args: Vec<String> = self.spec.args.iter().map(|arg| format!("{}={}", arg.name, arg.kind)).collect();
        let options = serde_json::to_string(&self.spec.options).unwrap_or_default();
        format!("{} {options}", args.join(", "))
    }

    /// The results as an entry of `tuned.json`.
    pub fn entry(&self) -> Entry {
        let record = |c: &Candidate| {
            let times = c.same_as.map_or(&c.times, |other| &self.candidates[other].times);
            // So many digits that a reader of the file gets the same number.
            let milliseconds = (times.median().or(c.stored_milliseconds)? * 1e9).round() / 1e9;
            let runs = if times.milliseconds.is_empty() { c.stored_runs } else { times.milliseconds.len() as u32 };
            Some(Record { setting: Setting::of(&c.choice), milliseconds, runs, code: c.code().to_owned() })
        };
        Entry {
            kernel: self.kernel.clone(),
            device: self.device.clone(),
            arch: self.arch.clone(),
            signature: self.signature(),
            key: self.key.clone(),
            winner: self.winner().map(|c| Setting::of(&c.choice)).unwrap_or_default(),
            records: self.candidates.iter().filter(|c| !c.is_reference).filter_map(record).collect(),
        }
    }

    /// The numbers of the configurations that can run, the fastest first: by their times, then by the cost model.
    pub fn ranked(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            (0..self.candidates.len()).filter(|i| self.candidates[*i].dropped.is_none()).collect();
        let of = |i: &usize| {
            let time = self.milliseconds(*i).unwrap_or(f64::INFINITY);
            let expected = self.candidates[*i].prediction.map_or(f64::INFINITY, |p| p.milliseconds);
            (Some(*i) != self.winner, time, expected)
        };
        all.sort_by(|a, b| of(a).partial_cmp(&of(b)).unwrap_or(a.cmp(b)));
        all
    }

    /// The place that the cost model gave a configuration before anything was timed, from 1 on.
    pub fn expected_place(&self, number: usize) -> Option<usize> {
        crate::candidate::order(&self.candidates).iter().position(|i| *i == number).map(|place| place + 1)
    }

    /// The median time of a configuration, or of the one that compiles to the same code.
    pub fn milliseconds(&self, number: usize) -> Option<f64> {
        let candidate = self.candidates.get(number)?;
        candidate.same_as.map_or(candidate, |other| &self.candidates[other]).milliseconds()
    }
}

/// A table; the winner comes first.
impl fmt::Display for TuningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranked = self.ranked();
        let width = ranked.iter().map(|i| self.candidates[*i].choice.to_string().len()).max().unwrap_or(0);
        writeln!(
            f,
            "  {:width$}  {:>10}  {:>5}  {:>10}  {:>4}  {:>7}  {:>5}",
            "configuration", "ms", "runs", "model, ms", "regs", "shared", "waves"
        )?;
        for number in ranked {
            let c = &self.candidates[number];
            let mark = if Some(number) == self.winner { '*' } else { ' ' };
            let number_or = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.4}"));
            let runs =
                c.same_as.map_or(c.times.milliseconds.len(), |other| self.candidates[other].times.milliseconds.len());
            let resources = c.resources.map_or(("-".into(), "-".into()), |r| {
                let spilled = if r.local_bytes > 0 { "+" } else { "" };
                (format!("{}{spilled}", r.registers), r.shared_bytes.to_string())
            });
            writeln!(
                f,
                "{mark} {:width$}  {:>10}  {runs:>5}  {:>10}  {:>4}  {:>7}  {:>5}",
                c.choice.to_string(),
                number_or(self.milliseconds(number)),
                number_or(c.prediction.map(|p| p.milliseconds)),
                resources.0,
                resources.1,
                c.prediction.map_or("-".into(), |p| format!("{:.1}", p.waves)),
            )?;
        }
        for c in self.candidates.iter().filter(|c| c.is_written && c.dropped.is_some()) {
            writeln!(f, "  {:width$}  {}", c.choice.to_string(), c.dropped.as_deref().unwrap_or_default())?;
        }
        let wide = self.candidates.iter().filter(|c| !c.is_written && c.dropped.is_some()).count();
        if wide > 0 {
            writeln!(f, "  {wide} further configurations of the space cannot run or compute something else")?;
        }
        Ok(())
    }
}

/// The GPU of an entry, as messages name it.
pub(crate) fn place(entry: &Entry) -> String {
    match entry.device.as_str() {
        "" => entry.arch.clone(),
        device => format!("{device} ({})", entry.arch),
    }
}

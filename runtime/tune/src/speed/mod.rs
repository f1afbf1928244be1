//! What bounds the speed of a launch, how near it is to that bound, and the change that would help most.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Explainer`], [`Explanation`] |
//! | `bound.rs` | the least time of each part of the GPU, and which of them bounds the launch |
//! | `variants.rs` | the changes of the configuration that are tried |
//! | `evaluate.rs` | the time of each by the cost model, and by the counters of a launch |
//! | `lines.rs` | source lines whose accesses cost more than their bytes |
//! | `show.rs` | all of it as text and as JSON |

mod bound;
mod evaluate;
mod lines;
mod show;
mod variants;

pub use bound::{Bound, Limit};

use crate::counted::counted;
use crate::model::{self, Prediction, Resources};
use crate::{Error, GridFn, Machine};
use rtc_compiler::source::Diagnostic;
use rtc_compiler::work::{Launch, Work};
use rtc_compiler::{ArgKind, Choice, ConstValue, HostValue, Metadata, Program, Spec, estimate};
use rtc_runtime::counters::Counters;
use std::time::Duration;

/// By how much a change has to shorten the time to be worth a mention.
const LEAST_GAIN: f64 = 1.03;

/// Explains the speed of a launch.
///
/// ```
/// use rtc_compiler::{HostValue, Program, Signature, Source, Spec};
/// use rtc_tune::speed::{Basis, Bound, Change, Explainer, Explanation, Limit, Subject};
/// use rtc_tune::{GridFn, Machine};
/// use std::time::Duration;
/// let text = "@triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
///             tl.store(x + i, 1.0, mask=i < n)\n";
/// let program = Program::parse(&[Source::new("fill.rt", text)]);
/// let args = Signature::parse("*fp32, i32:16, 64")?.bind(&["x", "n", "B"])?;
/// let explainer = Explainer::new(&program, Spec { args, ..Spec::default() }, "sm_90a")
///     .machine(Machine::of_arch("sm_90a")) // the usual one, as without it
///     .grid(GridFn::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]))
///     .argument("n", HostValue::Value((1 << 28).into()))
///     .is_multiple_of_16("x") // which the signature could promise
///     .usage(24, 0) // as the assembler reports
///     .show_progress();
/// // Too many to count in the emulator.
/// assert!(explainer.instructions()? > 1e7);
/// let explained: Explanation = explainer.clone().measured(Duration::from_millis(1)).explain(None, &mut |_| None)?;
/// assert_eq!(explained.milliseconds(), 1.0);
/// let Limit { part, milliseconds } = explained.limits[0];
/// assert_eq!(explained.nearness(), milliseconds);
/// println!("{}: {} of 1 ms; {}", part.words(), milliseconds, explained.sentence());
/// let bound: Bound = explained.bound;
/// assert_eq!(explained.to_json()["bound"], bound.name());
/// let larger: &Change = explained.change.as_ref().ok_or("larger blocks are faster")?;
/// assert_eq!((larger.subject, larger.basis), (Subject::Block, Basis::Model));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Explainer<'p> {
    program: &'p Program,
    spec: Spec,
    arch: String,
    machine: Machine,
    grid: GridFn,
    arguments: Vec<(String, HostValue)>,
    multiples: Vec<String>,
    usage: Option<(u32, u32)>,
    measured: Option<f64>,
    shows_progress: bool,
}

/// What bounds a launch, and what would change that.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub arch: String,
    /// Programs of the launch.
    pub grid: [u32; 3],
    /// The GPU of the cost model.
    pub machine: Machine,
    /// What a block takes of an SM.
    pub resources: Resources,
    /// Whether the registers are those of the assembler, not an estimate.
    pub is_assembled: bool,
    /// Whether the work was counted in the emulator, not estimated from the code.
    pub is_counted: bool,
    /// Whether the trip count of each loop is known; always so where the work was counted.
    pub is_certain: bool,
    /// What the cost model predicts.
    pub prediction: Prediction,
    /// How long the launch took on a GPU.
    pub measured_milliseconds: Option<f64>,
    /// What bounds it.
    pub bound: Bound,
    /// The least time of each part of the GPU, the longest first.
    pub limits: Vec<Limit>,
    /// The resources that limit the occupancy.
    pub limited_by: Vec<&'static str>,
    /// The change that would help most.
    pub change: Option<Change>,
    /// Further changes that would help, the better first.
    pub others: Vec<Change>,
    /// How many changes were evaluated.
    pub tried: usize,
    /// What could not be looked at, and why.
    pub notes: Vec<String>,
}

/// What a change changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Launch options.
    Option,
    /// Block sizes, perhaps with launch options.
    Block,
    /// What the signature promises of arguments.
    Promise,
    /// The source.
    Source,
}

/// How the effect of a change was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The changed kernel was launched in the emulator, wrote the same results, and its counts went into the cost model.
    Counters,
    /// The cost model, on the estimated work of the changed kernel, or on the counts less those that the change avoids.
    Model,
    /// A remark of the compiler, which has no time.
    Remark,
}

/// A change that would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it changes.
    pub subject: Subject,
    /// The change in words.
    pub what: String,
    /// How its effect was found.
    pub basis: Basis,
    /// Milliseconds after the change.
    pub milliseconds: Option<f64>,
    /// The time now divided by that after the change.
    pub gain: Option<f64>,
    /// The file and the line of the source.
    pub place: Option<(String, u32)>,
    /// The code of the remark.
    pub code: Option<String>,
}

/// What is known of one variant of the kernel.
#[derive(Clone, Debug)]
struct Estimate {
    work: Work,
    resources: Resources,
    metadata: Metadata,
    grid: [u32; 3],
}

impl Estimate {
    fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product::<u64>().max(1)
    }

    fn predict(&self, tensors: Option<f64>, machine: &Machine) -> Prediction {
        model::predict(&self.work, &self.resources, self.blocks(), tensors, machine)
    }

    /// The same with the counts of a launch.
    fn counted(&self, counters: &Counters) -> Estimate {
        let work = counted(&self.work, counters, self.blocks() as f64);
        Estimate { work: Work { is_certain: true, ..work }, ..self.clone() }
    }
}

impl<'p> Explainer<'p> {
    /// For a kernel, all of whose parameters `spec` has, on the usual GPU of a target.
    pub fn new(program: &'p Program, spec: Spec, arch: &str) -> Explainer<'p> {
        Explainer {
            program,
            spec,
            arch: arch.to_owned(),
            machine: Machine::of_arch(arch),
            grid: GridFn::new([1.into(), 1.into(), 1.into()]),
            arguments: Vec::new(),
            multiples: Vec::new(),
            usage: None,
            measured: None,
            shows_progress: false,
        }
    }

    /// The sizes of the grid.
    pub fn grid(mut self, grid: GridFn) -> Self {
        self.grid = grid;
        self
    }

    /// The value of an argument.
    pub fn argument(mut self, name: &str, value: HostValue) -> Self {
        self.arguments.push((name.to_owned(), value));
        self
    }

    /// A pointer whose address is a multiple of 16 in this launch, whether or not the signature promises that.
    pub fn is_multiple_of_16(mut self, name: &str) -> Self {
        self.multiples.push(name.to_owned());
        self
    }

    /// Another GPU than the usual one.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = machine;
        self
    }

    /// What the assembler made of the kernel: registers, and bytes of local memory of a thread.
    pub fn usage(mut self, registers: u32, local_bytes: u32) -> Self {
        self.usage = Some((registers, local_bytes));
        self
    }

    /// How long the launch took on a GPU.
    pub fn measured(mut self, time: Duration) -> Self {
        self.measured = Some(time.as_secs_f64() * 1e3);
        self
    }

    /// A progress bar where standard error is a terminal.
    pub fn show_progress(mut self) -> Self {
        self.shows_progress = true;
        self
    }

    /// About how many instructions the warps of the launch execute, MMAs by the time that the emulator takes for them: how
    /// long it would take to count them.
    ///
    /// # Errors
    ///
    /// [`Error::Compiler`] if the kernel does not compile, [`Error::Grid`] if the grid cannot be computed.
    pub fn instructions(&self) -> Result<f64, Error> {
        let estimate = self.estimate(&self.spec)?;
        // The emulator computes a dot operation by operation.
        Ok((estimate.work.instructions + estimate.work.dot_operations() / 64.0) * estimate.blocks() as f64)
    }

    /// Explains it. `counters` are those of the launch in the emulator. `count` launches the kernel of another specification
    /// there; it returns the counters if the launch wrote the same results, and nothing if it did not, or if the work is
    /// estimated.
    ///
    /// # Errors
    ///
    /// As for [`Explainer::instructions`].
    pub fn explain(
        &self,
        counters: Option<&Counters>,
        count: &mut dyn FnMut(&Spec) -> Option<Counters>,
    ) -> Result<Explanation, Error> {
        let estimate = self.estimate(&self.spec)?;
        let mut now = counters.map_or_else(|| estimate.clone(), |counters| estimate.counted(counters));
        if let Some(usage) = self.usage {
            (now.resources.registers, now.resources.local_bytes) = usage;
        }
        let prediction = now.predict(self.tensors(), &self.machine);
        let limits = bound::limits(&now, self.tensors(), &self.machine);
        let mut notes = Vec::new();
        if !now.work.is_certain {
            notes.push(
                "the trip count of a loop is not known, so that times are uncertain; count the launch".to_owned(),
            );
        }
        let (mut changes, tried) = self.evaluated(&estimate, &now, counters.is_some(), count, &mut notes);
        changes.extend(counters.map_or_else(Vec::new, |counters| self.lines(counters, &now)));
        changes.sort_by(|a, b| b.gain.partial_cmp(&a.gain).unwrap_or(std::cmp::Ordering::Equal));
        // What the compiler remarks has no time: it comes after all that has one.
        changes.extend(self.remarks()?);
        let change = (!changes.is_empty()).then(|| changes.remove(0));
        Ok(Explanation {
            kernel: now.metadata.kernel.clone(),
            arch: self.arch.clone(),
            grid: now.grid,
            machine: self.machine,
            resources: now.resources,
            is_assembled: self.usage.is_some(),
            is_counted: counters.is_some(),
            is_certain: now.work.is_certain,
            prediction,
            measured_milliseconds: self.measured,
            bound: bound::of(&now, &limits, self.tensors(), &self.machine),
            limits,
            limited_by: model::limited_by(&now.resources, &self.machine),
            change,
            others: changes,
            tried,
            notes,
        })
    }

    /// The estimated work of a launch with this specification.
    fn estimate(&self, spec: &Spec) -> Result<Estimate, Error> {
        let grid = self.grid.sizes(&choice_of(spec), &self.integers(spec))?;
        let launch = Launch { grid, integers: self.integers(spec) };
        let specialization = spec.specialize(self.program)?;
        let (work, metadata) = estimate(self.program, &specialization, &self.arch, &launch)?;
        let most = spec.options.maxnreg.unwrap_or(u32::MAX);
        let resources = Resources {
            threads: metadata.threads_per_block,
            shared_bytes: metadata.shared_bytes,
            registers: work.registers.min(most),
            // What `maxnreg` leaves no register for is spilled.
            local_bytes: work.registers.saturating_sub(most) * 4,
        };
        Ok(Estimate { work, resources, metadata, grid })
    }

    /// The integers of the launch by the name of the parameter.
    fn integers(&self, spec: &Spec) -> Vec<(String, i64)> {
        let integer = |value: &ConstValue| match value {
            ConstValue::Int(n) => i64::try_from(*n).ok(),
            ConstValue::Bool(b) => Some((*b).into()),
            _ => None,
        };
        let constants = spec.args.iter().filter_map(|arg| match &arg.kind {
            ArgKind::Constexpr(value) => Some((arg.name.clone(), integer(value)?)),
            _ => None,
        });
        let given = self.arguments.iter().filter_map(|(name, value)| match value {
            HostValue::Value(value) => Some((name.clone(), integer(value)?)),
            _ => None,
        });
        // Those of the specification come first: a variant has other values than the launch.
        constants.chain(given).collect()
    }

    /// Bytes of all tensors, if all sizes are known.
    fn tensors(&self) -> Option<f64> {
        let bytes = |(_, value): &(String, HostValue)| match value {
            HostValue::Tensor { dtype, shape } | HostValue::Descriptor { dtype, shape, .. } => {
                Some((shape.as_ref()?.iter().product::<u64>() * u64::from(dtype.bytes())) as f64)
            }
            _ => Some(0.0),
        };
        let is_tensor = |(_, value): &(String, HostValue)| !matches!(value, HostValue::Value(_));
        self.arguments.iter().any(is_tensor).then(|| self.arguments.iter().map(bytes).sum()).flatten()
    }

    /// The remarks about loops that have a remedy.
    fn remarks(&self) -> Result<Vec<Change>, Error> {
        let specialization = self.spec.specialize(self.program)?;
        let decided = rtc_compiler::decisions(self.program, &specialization, &self.arch)?;
        let change = |remark: &Diagnostic| {
            let help = remark.help.as_ref()?;
            let position = self.program.sources().position(remark.span());
            let file = self.program.sources().file(remark.span().file).name.clone();
            Some(Change {
                subject: Subject::Source,
                what: format!("{}: {help}", remark.message),
                basis: Basis::Remark,
                milliseconds: None,
                gain: None,
                place: Some((file, position.line)),
                code: Some(remark.code.to_string()),
            })
        };
        Ok(decided.loops.iter().filter_map(change).collect())
    }
}

/// The constexprs and options of a specification, on which the grid may depend.
fn choice_of(spec: &Spec) -> Choice {
    let values = spec.args.iter().filter_map(|arg| match &arg.kind {
        ArgKind::Constexpr(value) => Some((arg.name.clone(), value.clone())),
        _ => None,
    });
    let options = [("num_warps", spec.options.num_warps), ("num_stages", spec.options.num_stages)];
    Choice {
        values: values.collect(),
        options: options.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Choice::default()
    }
}

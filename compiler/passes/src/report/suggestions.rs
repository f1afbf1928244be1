//! Changes by the user that may change the decisions about a loop: promises of arguments, values that are constants,
//! options. Whether one does is found by trial.

use std::collections::HashSet;

use rtc_abi::spec::LaunchOptions;
use rtc_abi::{ParamType, Structure, ValueType};
use rtc_ir::analysis::{Affine, Ranges, Symbol};
use rtc_ir::{Builder, Kernel, Literal, LoopHints, Op, OpKind, Value, ValueDef, regions};
use rtc_source::Span;

use super::places::loops_at;
use super::{Decision, Grade, reads, reasons, sentences};
use crate::schedule::pipeline::stages::stages;
use crate::{PassContext, PassError, matrix_unit};

/// Promises are of multiples of so much.
const MULTIPLE: u32 = 16;
/// Stages to try where there is one.
const STAGES: u32 = 3;
/// Warps to try where `wgmma` dots have too few.
const WARPS: u32 = 4;

/// Something that a user can say otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suggestion {
    /// An option of the launch: its name and value.
    Option(&'static str, String),
    /// `num_stages` of the loop itself.
    StagesOfLoop(Span, u32),
    /// An argument is a multiple of 16: its name and type.
    Multiple(String, String),
    /// An argument is the constant 1.
    One(String),
}

/// The changes worth trying for the loops that come from one source loop.
pub(super) fn of_loop(kernel: &Kernel, loops: &[Op], cx: &PassContext) -> Vec<Suggestion> {
    let mut levers = Vec::new();
    let dots = loops.iter().any(|of| reasons::has_dots(kernel, *of));
    if dots {
        levers.extend(options(kernel, loops, cx));
    }
    // Whether the warps are divided is decided for all loops with dots together.
    let all: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(|op| regions::is_loop(kernel.kind(*op))).collect();
    let others = all.into_iter().filter(|of| dots && reasons::has_dots(kernel, *of));
    let mut loads: Vec<Op> = loops.iter().copied().chain(others).flat_map(|of| reads::own_ops(kernel, of)).collect();
    loads.retain(|op| {
        matches!(kernel.kind(*op), OpKind::Load { .. }) && kernel.value_type(kernel.result(*op, 0)).shape().is_some()
    });
    levers.extend(promises(kernel, &loads));
    levers.extend(ones(kernel, &loads));
    levers.sort();
    levers.dedup();
    levers
}

fn options(kernel: &Kernel, loops: &[Op], cx: &PassContext) -> Vec<Suggestion> {
    let mut levers = Vec::new();
    for of in loops.iter().filter(|of| stages(kernel, **of) < 2) {
        levers.push(match (kernel.kind(*of), kernel.loc(kernel.op(*of).loc).span) {
            (OpKind::ForRange { hints: LoopHints { num_stages: Some(_), .. }, .. }, Some(span)) => {
                Suggestion::StagesOfLoop(span, STAGES)
            }
            _ => Suggestion::Option("num_stages", STAGES.to_string()),
        });
    }
    let has_partitions = matrix_unit::has_async(cx.target);
    if has_partitions && cx.structure.warp_specialization().is_none() {
        levers.push(Suggestion::Option("warp_specialize", "true".into()));
    }
    if cx.structure != Structure::Auto {
        levers.push(Suggestion::Option("structure", "auto".into()));
    }
    if has_partitions && !kernel.options.num_warps.is_multiple_of(WARPS) {
        levers.push(Suggestion::Option("num_warps", WARPS.to_string()));
    }
    levers
}

/// The arguments in the backward slices of addresses and masks of these loads whose promises are too weak.
fn promises(kernel: &Kernel, loads: &[Op]) -> Vec<Suggestion> {
    let mut work: Vec<Value> = Vec::new();
    for load in loads {
        work.push(kernel.operand(*load, 0));
        work.extend(kernel.mask(*load));
    }
    let mut seen: HashSet<Value> = HashSet::new();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match kernel.value(value).def {
            ValueDef::Result(op, _) if kernel.op(op).blocks.is_empty() => work.extend(&kernel.op(op).operands),
            _ => work.extend(regions::sources(kernel, value)),
        }
    }
    let open = kernel.params.iter().filter(|param| {
        let counts = match &param.ty {
            ParamType::Value(ValueType::Scalar(dtype)) => dtype.is_integer() && dtype.bits() >= 32,
            ParamType::Value(ty) => ty.to_string().starts_with('*'),
            _ => false,
        };
        counts && param.hidden.is_none() && !param.divisible_by.is_multiple_of(MULTIPLE) && seen.contains(&param.value)
    });
    open.map(|param| Suggestion::Multiple(param.name.clone(), param.ty.to_string())).collect()
}

/// The arguments that are strides from one column of a tile to the next.
fn ones(kernel: &Kernel, loads: &[Op]) -> Vec<Suggestion> {
    let ranges = Ranges::new(kernel);
    let mut affine = Affine::new(kernel, &ranges);
    let mut levers = Vec::new();
    for load in loads {
        let mask = kernel.mask(*load).map(|mask| affine.bounds(mask));
        let Some(address) = affine.address(kernel.operand(*load, 0), mask.as_ref()) else { continue };
        let Some([term]) = address.axes.last().map(|axis| axis.stride.terms()) else { continue };
        let ([Symbol::Scalar(value)], 1) = (&term.symbols[..], term.factor) else { continue };
        let param = kernel.params.iter().find(|param| param.value == *value && param.hidden.is_none());
        levers.extend(param.map(|param| Suggestion::One(param.name.clone())));
    }
    levers
}

impl Suggestion {
    /// Changes a kernel as the semantic analysis gives it, and the options, to what they are if the user says so.
    pub fn apply(&self, kernel: &mut Kernel, options: &mut LaunchOptions) -> Result<(), PassError> {
        match self {
            Suggestion::Option("num_stages", value) => {
                options.num_stages = value.parse().unwrap_or(options.num_stages);
                kernel.options.num_stages = options.num_stages;
            }
            Suggestion::Option("num_warps", value) => {
                options.num_warps = value.parse().unwrap_or(options.num_warps);
                kernel.options.num_warps = options.num_warps;
            }
            Suggestion::Option("warp_specialize", _) => options.warp_specialize = true,
            Suggestion::Option(..) => options.structure = Structure::Auto,
            Suggestion::StagesOfLoop(span, stages) => {
                for of in loops_at(kernel, *span) {
                    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
                        hints.num_stages = Some(*stages);
                    }
                }
            }
            Suggestion::Multiple(name, _) => {
                for param in kernel.params.iter_mut().filter(|param| param.name == *name) {
                    param.divisible_by = MULTIPLE;
                }
            }
            Suggestion::One(name) => {
                let value = kernel.params.iter().find(|param| param.name == *name).map(|param| param.value);
                let (Some(value), Some(first)) = (value, kernel.first_op(kernel.body())) else { return Ok(()) };
                let ty = kernel.value_type(value);
                let one = Builder::before(kernel, first).constant_of(Literal::Int(1), ty)?;
                kernel.replace_uses(value, one);
            }
        }
        Ok(())
    }
}

/// Gives the decision about the same loop if all these levers are used, if that can be compiled.
pub type Attempt<'a> = &'a mut dyn FnMut(&[Suggestion]) -> Result<Option<Decision>, PassError>;

/// The help text: what would change a decision.
pub fn helps(decision: &Decision, attempt: Attempt<'_>) -> Result<Option<String>, PassError> {
    let only = |wanted: fn(&Suggestion) -> bool| -> Vec<Suggestion> {
        decision.levers.iter().filter(|l| wanted(l)).cloned().collect()
    };
    let is_option = |lever: &Suggestion| matches!(lever, Suggestion::Option(..) | Suggestion::StagesOfLoop(..));
    let promises = only(|lever| matches!(lever, Suggestion::Multiple(..)));
    let of_arguments = only(|lever| matches!(lever, Suggestion::Multiple(..) | Suggestion::One(..)));
    let options = decision.levers.iter().filter(|lever| is_option(lever)).map(|lever| vec![lever.clone()]);
    let groups: Vec<Vec<Suggestion>> =
        options.chain([promises, of_arguments, decision.levers.clone()]).filter(|group| !group.is_empty()).collect();
    let (mut best, mut said): (Grade, Vec<String>) = (decision.grade(), Vec::new());
    let mut tried: Vec<Vec<Suggestion>> = Vec::new();
    for group in groups {
        if tried.contains(&group) {
            continue;
        }
        tried.push(group.clone());
        let Some(found) = attempt(&group)?.filter(|found| found.grade() > best) else { continue };
        let (levers, found) = fewest(group, found, attempt)?;
        best = found.grade();
        said.push(sentence(&levers, &decision.change(&found)));
    }
    Ok((!said.is_empty()).then(|| said.join("; or ")))
}

/// Drops changes that an equally good decision does not need.
fn fewest(
    mut levers: Vec<Suggestion>,
    mut found: Decision,
    attempt: Attempt<'_>,
) -> Result<(Vec<Suggestion>, Decision), PassError> {
    for lever in levers.clone() {
        let fewer: Vec<Suggestion> = levers.iter().filter(|other| **other != lever).cloned().collect();
        if fewer.is_empty() {
            break;
        }
        if let Some(other) = attempt(&fewer)?.filter(|other| other.grade() >= found.grade()) {
            (levers, found) = (fewer, other);
        }
    }
    Ok((levers, found))
}

/// The missing promises, the remedies, and their effect.
fn sentence(levers: &[Suggestion], change: &str) -> String {
    // Names of arguments by the text that a user has to write for them.
    let mut written: Vec<(String, &str, Vec<String>)> = Vec::new();
    let mut remedies = Vec::new();
    for lever in levers {
        let (text, missing, name) = match lever {
            Suggestion::Option(name, value) => {
                remedies.push(format!("`{name}={value}`"));
                continue;
            }
            Suggestion::StagesOfLoop(_, stages) => {
                remedies.push(format!("`num_stages={stages}` of the loop"));
                continue;
            }
            Suggestion::Multiple(name, ty) if ty.starts_with('*') => (format!("{ty}:{MULTIPLE}"), OF_BYTES, name),
            Suggestion::Multiple(name, ty) => (format!("{ty}:{MULTIPLE}"), OF_NUMBERS, name),
            Suggestion::One(name) => ("1".to_owned(), OF_STRIDES, name),
        };
        let name = format!("`{name}`");
        match written.iter_mut().find(|(other, ..)| *other == text) {
            Some((.., names)) => names.push(name),
            None => written.push((text, missing, vec![name])),
        }
    }
    written.sort();
    let named = |missing: &str| -> Vec<String> {
        let of = written.iter().filter(|(_, other, _)| *other == missing);
        of.flat_map(|(.., names)| names.clone()).collect()
    };
    let missing: Vec<String> = [OF_BYTES, OF_NUMBERS, OF_STRIDES]
        .into_iter()
        .filter_map(|missing| match &named(missing)[..] {
            [] => None,
            [one] => Some(format!("{one} is {}", missing.replace("multiples", "a multiple"))),
            several => Some(format!("{} are {missing}", sentences::listed(several))),
        })
        .collect();
    remedies.extend(written.iter().map(|(text, _, names)| format!("`{text}` for {}", sentences::listed(names))));
    let with = format!("with {} instead, {change}", remedies.join(", "));
    match missing.is_empty() {
        true => with,
        false => format!("{}: {with}", missing.join(", and ")),
    }
}

/// The missing promises of pointers, of numbers, and of strides.
const OF_BYTES: &str = "not promised to be multiples of 16 bytes";
const OF_NUMBERS: &str = "not promised to be multiples of 16";
const OF_STRIDES: &str = "not known to be 1";

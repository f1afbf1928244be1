//! Finds kernels whose outcome depends on unspecified results.
//!
//! The launch is run again with other values in place of such results, and in other orders where the order is
//! unspecified; memory, messages and completion must stay the same. If they do not, each operation is tried alone, so
//! that the finding names the responsible one. Sums of floats keep their order, since every other one rounds
//! differently.

use std::fmt;

use super::overlay::{Overlay, Pages, difference};
use super::{Fault, Finding, FindingKind, GlobalMemory, LaunchConfig, Report, RunOptions};
use crate::{Op, Verified};

/// Which result is left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenResult {
    /// A load without `other`, where the mask is false or the block lies outside of the tensor.
    MaskedLoad,
    /// An atomic where the mask is false.
    MaskedAtomic,
    /// A division of integers by zero.
    DivisionByZero,
    /// A shift by the width or more.
    ShiftCount,
    /// A cast of a float that the integer cannot hold.
    CastRange,
    /// An index outside of a gathered tile.
    GatherIndex,
    /// A number outside of the bins of a histogram.
    HistogramBin,
    /// The place of NaN among sorted numbers.
    SortedNan,
    /// Which of several values stored to one place stays.
    StoredTwice,
    /// The order of the elements of `cat`.
    CatOrder,
    /// The order in which a reduction or a scan combines.
    CombineOrder,
}

impl fmt::Display for OpenResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenResult::MaskedLoad => "what a load without `other` gives where nothing is loaded is open",
            OpenResult::MaskedAtomic => "what an atomic gives where its mask is false is open",
            OpenResult::DivisionByZero => "a division of integers by zero is open",
            OpenResult::ShiftCount => "a shift by the width or more is open",
            OpenResult::CastRange => "a float that is out of range for an integer becomes any number",
            OpenResult::GatherIndex => "what an index outside of the tile gathers is open",
            OpenResult::HistogramBin => "where a number outside of the bins is counted is open",
            OpenResult::SortedNan => "where NaN stands among sorted numbers is open",
            OpenResult::StoredTwice => "which of several values stored to one place stays is open",
            OpenResult::CatOrder => "the order of the elements of `cat` is open",
            OpenResult::CombineOrder => "the order in which elements are combined is open",
        })
    }
}

/// The effect of an unspecified result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The memory at this address.
    Memory(u64),
    /// The output.
    Printed,
    /// Whether and how the launch ends: an address, an assertion, a loop.
    End,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reached::Memory(address) => write!(f, "memory at {address:#x} depends on it"),
            Reached::Printed => f.write_str("what is printed depends on it"),
            Reached::End => f.write_str("whether the launch ends well depends on it"),
        }
    }
}

/// The replacement of unspecified results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// The interpreter's usual value.
    Usual,
    /// NaN, or a pattern of bits; orders as usual.
    Nan,
    /// A very small number; reversed orders.
    Low,
    /// A number far above; other orders.
    High,
}

/// How a launch treats open results.
pub(crate) struct Opening {
    pub(super) filling: Filling,
    /// Only this operation.
    pub(super) only: Option<Op>,
    /// The first of each operation.
    pub(super) seen: Vec<Seen>,
}

/// An operation with an open result, and the first program and element that showed it.
pub(super) type Seen = (Op, OpenResult, [u32; 3], Option<Vec<u32>>);

/// The outcome of a launch.
struct Outcome {
    pages: Pages,
    /// The report, or the fault that ended the launch.
    report: Result<Report, Box<Fault>>,
    seen: Vec<Seen>,
}

/// More operations with open results than that are not tried one by one.
const MOST_TRIED: usize = 64;

/// The unspecified results that a launch depends on, each once per operation. Memory is unchanged. A launch that faults
/// anyway returns that.
/// ```
/// use rtc_ir::interp::{ArgValue, FindingKind, HostMemory, LaunchConfig, OpenResult, RunOptions, leaning};
/// let kernel = rtc_ir::text::parse(
///     "kernel @k(%x: ptr<i32> {sig = \"*i32\"}, %n: i32 {sig = \"i32\"}) warps 1 phase tile {
///        %q = divsi %n, %n : i32
///        store %x, %q
///        ret
///      }",
/// )?;
/// let mut memory = HostMemory::new();
/// let x = memory.alloc_uninit("x", 4);
/// let mut of = |n| {
///     let launch = LaunchConfig { grid: [1, 1, 1], args: vec![ArgValue::Pointer(x), ArgValue::Int(n)] };
///     leaning(rtc_ir::verify(&kernel).expect("it is well-formed"), &mut memory, &launch, &RunOptions::default())
/// };
/// assert!(of(3)?.is_empty());
/// assert!(matches!(of(0)?[0].kind, FindingKind::Open { what: OpenResult::DivisionByZero, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// There is one fault per launch: its size does not matter.
#[allow(clippy::result_large_err)]
pub fn leaning(
    kernel: Verified<'_>,
    memory: &mut dyn GlobalMemory,
    launch: &LaunchConfig,
    options: &RunOptions,
) -> Result<Vec<Finding>, Fault> {
    let usual = outcome(kernel, memory, launch, options, Filling::Usual, None);
    let steps = match usual.report {
        Ok(ref report) => report.steps,
        Err(fault) => return Err(*fault),
    };
    let options = RunOptions { max_steps: options.max_steps.min(steps.saturating_mul(4) + 100_000), ..*options };
    let mut found: Vec<(Op, OpenResult, Reached)> = Vec::new();
    for filling in [Filling::Nan, Filling::Low, Filling::High] {
        if usual.seen.is_empty() {
            break;
        }
        let all = outcome(kernel, memory, launch, &options, filling, None);
        let Some(together) = reached(memory, &usual, &all) else {
            continue;
        };
        let before = found.len();
        let tried = if usual.seen.len() <= MOST_TRIED { &usual.seen[..] } else { &[] };
        for (op, what, ..) in tried {
            let alone = outcome(kernel, memory, launch, &options, filling, Some(*op));
            if let Some(alone) = reached(memory, &usual, &alone)
                && found.iter().all(|(known, ..)| known != op)
            {
                found.push((*op, *what, alone));
            }
        }
        // Only several of them together make a difference: the first represents all.
        if found.is_empty() && before == 0 {
            found.push((usual.seen[0].0, usual.seen[0].1, together));
        }
    }
    let kernel = kernel.kernel();
    let finding = |(op, what, reached): (Op, OpenResult, Reached)| {
        let (program, element) =
            usual.seen.iter().find(|seen| seen.0 == op).map(|seen| (seen.2, seen.3.clone())).unwrap_or_default();
        let data = kernel.op(op);
        let mut spans = super::fault::spans(kernel, data.loc).into_iter();
        let (span, callers) = (spans.next(), spans.collect());
        let kind = FindingKind::Open { what, reached };
        Finding { kind, op: data.kind.spec().mnemonic, span, callers, program, element }
    };
    Ok(found.into_iter().map(finding).collect())
}

fn outcome(
    kernel: Verified<'_>,
    memory: &mut dyn GlobalMemory,
    launch: &LaunchConfig,
    options: &RunOptions,
    filling: Filling,
    only: Option<Op>,
) -> Outcome {
    let mut overlay = Overlay { under: memory, pages: Pages::new() };
    let mut opening = Some(Opening { filling, only, seen: Vec::new() });
    let report = super::launch::run_open(kernel, &mut overlay, launch, options, &mut opening).map_err(Box::new);
    Outcome { pages: overlay.pages, report, seen: opening.map(|opening| opening.seen).unwrap_or_default() }
}

/// The difference between two launches, the first of which completed.
fn reached(memory: &mut dyn GlobalMemory, usual: &Outcome, other: &Outcome) -> Option<Reached> {
    let (Ok(a), Ok(b)) = (&usual.report, &other.report) else { return Some(Reached::End) };
    if let Some(address) = difference(memory, &usual.pages, &other.pages) {
        return Some(Reached::Memory(address));
    }
    (a.printed != b.printed).then_some(Reached::Printed)
}

//! Which atomic operations on tiles became TMA reductions, and why others did not.

use std::collections::HashSet;

use rtc_abi::Feature;
use rtc_ir::analysis::Ranges;
use rtc_ir::{Kernel, MemSemantic, Op, OpKind};
use rtc_source::{Code, Diagnostic, Span};

use super::places;
use crate::PassContext;
use crate::access::box_analysis::BoxAnalysis;
use crate::access::refusal::Refusal;
use crate::schedule::tma::tma_reductions;

/// Whether each atomic operation on a tile can be a TMA reduction. Found before warps are specialized, as barriers and copies
/// of partitions order accesses.
#[derive(Clone, Debug, Default)]
pub struct Reductions(Vec<Reduction>);

/// Whether one can be.
#[derive(Clone, Debug)]
struct Reduction {
    /// Its place in the source.
    span: Span,
    /// Why it cannot.
    refusal: Option<Refusal>,
    /// Whether the kernel must make the tensor map, which only partitions do.
    needs_partition: bool,
}

impl Reduction {
    fn of(known: &mut BoxAnalysis<'_>, op: Op) -> Reduction {
        let kernel = known.kernel;
        let needs_partition = known.access(op, kernel.mask(op)).is_ok_and(|access| access.is_made);
        Reduction { span: span_of(kernel, op), refusal: tma_reductions::access(known, op).err(), needs_partition }
    }

    /// Why it cannot be one in the scheduled kernel.
    fn refusal(&self, scheduled: &Kernel) -> Option<Refusal> {
        match self.refusal {
            None | Some(Refusal::AtomicSign) if self.needs_partition && scheduled.specialization().is_none() => {
                Some(Refusal::BaseNotArgument)
            }
            refusal => refusal,
        }
    }
}

impl Reductions {
    /// Those of a kernel with layouts.
    pub fn of(kernel: &Kernel, cx: &PassContext) -> Reductions {
        let is_candidate = |op: &Op| cx.target.has(Feature::Tma) && is_relaxed_on_tile(kernel, *op);
        let atomics: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(is_candidate).collect();
        if atomics.is_empty() {
            return Reductions::default();
        }
        let ranges = Ranges::new(kernel);
        let mut known = BoxAnalysis::new(kernel, &ranges);
        Reductions(atomics.into_iter().map(|op| Reduction::of(&mut known, op)).collect())
    }

    /// The remarks which atomic operations of the scheduled kernel became TMA reductions, and why others did not.
    pub fn remarks(&self, kernel: &Kernel, cx: &PassContext) -> Vec<Diagnostic> {
        let mut remarks = Vec::new();
        let mut seen = HashSet::new();
        for op in rtc_ir::walk(kernel) {
            let span = span_of(kernel, op);
            let (message, help) = match kernel.kind(op) {
                OpKind::CopyDescReduce { .. } => ("a TMA reduction combines the tile with the tensor".to_owned(), None),
                _ if cx.target.has(Feature::Tma) && is_relaxed_on_tile(kernel, op) => {
                    let refusal = self.0.iter().filter(|of| of.span == span).find_map(|of| of.refusal(kernel));
                    let (reason, help) = match refusal {
                        _ if !cx.structure.stages() => ("disabled by `structure`".to_owned(), None),
                        Some(refusal) => (format!("{} [{}]", refusal.message(), refusal.code()), Some(refusal.help())),
                        None => ("there is not enough shared memory".to_owned(), None),
                    };
                    (format!("each thread has atomics of its own instead of a TMA reduction: {reason}"), help)
                }
                _ => continue,
            };
            if seen.insert((span, message.clone())) {
                let remark = Diagnostic::remark(Code::COST, span, message);
                remarks.push(match help {
                    Some(help) => remark.help(format!("to make it one, {help}")),
                    None => remark,
                });
            }
        }
        remarks
    }
}

fn span_of(kernel: &Kernel, op: Op) -> Span {
    places::span_of(kernel, op).unwrap_or_default()
}

/// Whether an operation is an atomic one on a tile, without an order of other accesses.
fn is_relaxed_on_tile(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::AtomicRmw { sem: MemSemantic::Relaxed, .. })
        && kernel.value_operand(op).is_some_and(|value| kernel.value_type(value).shape().is_some())
}

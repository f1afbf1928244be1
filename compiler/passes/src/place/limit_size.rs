//! Refuses kernels whose code would take too long to compile.
//!
//! Tiles are unrolled over registers: an operation on a tile becomes at least one instruction per register of each
//! thread. So the length of the code is known before lowering, from the layouts, and a kernel that would keep LLVM and
//! `ptxas` busy for minutes is refused, unless the option `max_instructions` allows it. The body of a loop counts once.
//! A kernel that takes more than about a second gets a remark.
//!
//! Measured on two slow cores (processor time; optimized build): 52,000 instructions of a chain of dots take LLVM 0.7 s
//! and ptxas 3 s, 205,000 of them 3.7 s and 11 s. 302,000 of `exp` and `sin` take LLVM 12 s and 0.4 GB, 1,209,000 take 47 s
//! and 1.5 GB, and the PTX has 46 MB; for both, ptxas took more than the 25 s that it was given, and up to 2.7 GB.
//! 600 loops take LLVM 1.2 s, 2,000 more than 49 s, so that each loop counts more the more there are. The default limit
//! of 500,000 is where a kernel takes LLVM about 20 s and ptxas a minute or more.
//!
//! ```text
//! %z = addf %x, %y : tile<1048576xf32, #l0>   →   an error: 8192 registers in each of 128 threads
//! ```

use std::collections::HashMap;

use rtc_ir::{Kernel, Op, OpKind, Phase, regions};
use rtc_source::{Code, Diagnostic, Span};

use crate::work::instructions::{BRANCH, LOOP, instructions};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "limit-size", needs: Phase::Laid, leaves: Phase::Laid, run };

/// A kernel with more instructions in a thread takes more than about a second: a remark says so.
const LONG: u64 = 50_000;

/// As many operations of one place come from unrolling rather than from the block's size.
const MANY: u64 = 32;

/// With so many loops the looking takes as long again as the loops themselves.
const CROWD: u64 = 500;

/// How to compile it all the same.
const RAISE: &str = "the option `max_instructions` raises the limit: `--max-instructions N` on the command line";

/// The cost of one place of the source.
struct SourceCost {
    cost: u64,
    copies: u64,
    op: Op,
}

/// How long a kernel is, and where that comes from.
#[derive(Clone, Debug)]
pub struct Size {
    /// About how many instructions each thread has.
    pub instructions: u64,
    span: Span,
    /// About the place that takes most.
    largest: String,
    help: String,
}

impl Size {
    /// The remark that the compilation takes long, and why.
    pub fn remark(&self) -> Diagnostic {
        let message =
            format!("the kernel takes long to compile: about {} instructions in each thread", self.instructions);
        Diagnostic::remark(Code::COST, self.span, message).primary(self.largest.clone()).help(self.help.clone())
    }
}

/// The size of a kernel that takes more than about a second to compile.
pub fn long_kernel(kernel: &Kernel) -> Option<Size> {
    let (ops, costs, total) = estimate(kernel);
    if total > LONG { size(kernel, &ops, &costs, total) } else { None }
}

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let (ops, costs, total) = estimate(kernel);
    let limit = cx.max_instructions;
    if total <= limit {
        return Ok(());
    }
    if let Some(diagnostic) = too_branchy(kernel, &ops, total) {
        return Err(PassError::Diagnostic(Box::new(diagnostic)));
    }
    let Some(size) = size(kernel, &ops, &costs, total) else { return Ok(()) };
    let message = format!(
        "the kernel is too large to compile: about {total} instructions in each thread, more than the {limit} that are \
         allowed"
    );
    let diagnostic =
        Diagnostic::error(Code::OUT_OF_RESOURCES, size.span, message).primary(size.largest).help(size.help).note(RAISE);
    Err(PassError::Diagnostic(Box::new(diagnostic)))
}

/// All operations, about how many instructions each takes, and their sum.
fn estimate(kernel: &Kernel) -> (Vec<Op>, Vec<u64>, u64) {
    let ops = rtc_ir::walk(kernel);
    let costs: Vec<u64> = ops.iter().map(|op| instructions(kernel, *op)).collect();
    let loops = ops.iter().filter(|op| regions::is_loop(kernel.kind(**op))).count() as u64;
    let total = costs.iter().sum::<u64>() + crowding(loops);
    (ops, costs, total)
}

fn size(kernel: &Kernel, ops: &[Op], costs: &[u64], total: u64) -> Option<Size> {
    // Operations of one place of the source belong together: unrolling makes many of it.
    let mut places: HashMap<Option<Span>, SourceCost> = HashMap::new();
    for (op, cost) in ops.iter().zip(costs) {
        let span = kernel.loc(kernel.op(*op).loc).span;
        let place = places.entry(span).or_insert(SourceCost { cost: 0, copies: 0, op: *op });
        place.cost += cost;
        place.copies += u64::from(*cost > 0);
    }
    // Operations are numbered, so that of equal places the same one is named each time.
    let (span, SourceCost { cost, copies, op }) =
        places.into_iter().max_by_key(|(_, place)| (place.cost, std::cmp::Reverse(place.op)))?;
    let by = if copies > 1 { format!(" by {copies} operations") } else { String::new() };
    let largest = format!("about {cost} of them come from here{by}{}", extent(kernel, op));
    let help = if copies > MANY {
        "replace `tl.static_range` by `range` or `tl.range`, or use smaller blocks".to_owned()
    } else {
        let warps = kernel.group_of(op).warps;
        let more = if warps < 32 { format!(", or more warps than {warps}") } else { String::new() };
        format!("use smaller blocks and a loop over them{more}")
    };
    Some(Size { instructions: total, span: span.unwrap_or_default(), largest, help })
}

/// The error of a kernel that is more control flow than anything else.
fn too_branchy(kernel: &Kernel, ops: &[Op], total: u64) -> Option<Diagnostic> {
    let of = |wanted: fn(&OpKind) -> bool| ops.iter().filter(move |op| wanted(kernel.kind(**op)));
    let is_loop: fn(&OpKind) -> bool = |kind| regions::is_loop(kind);
    let is_branch: fn(&OpKind) -> bool = |kind| !regions::flow(kind).is_empty() && !regions::is_loop(kind);
    let (loops, branches) = (of(is_loop).count(), of(is_branch).count());
    if loops as u64 * LOOP + crowding(loops as u64) + branches as u64 * BRANCH <= total / 2 {
        return None;
    }
    let last = of(is_loop).chain(of(is_branch)).max()?;
    let span = kernel.loc(kernel.op(*last).loc).span.unwrap_or_default();
    let message = format!("the kernel is too large to compile: {loops} loops and {branches} branches");
    Some(
        Diagnostic::error(Code::OUT_OF_RESOURCES, span, message)
            .primary("the last of them is here")
            .help("make a loop of what repeats, or several kernels")
            .note(RAISE),
    )
}

/// The cost of each of many loops beyond [`LOOP`].
fn crowding(loops: u64) -> u64 {
    loops * loops / CROWD * LOOP
}

/// How the largest tile of an operation is spread, in words.
fn extent(kernel: &Kernel, op: Op) -> String {
    let data = kernel.op(op);
    let tiles = data.results.iter().chain(&data.operands).filter_map(|v| Some((kernel.layout_of(*v)?, *v)));
    let Some((layout, value)) = tiles.max_by_key(|(layout, _)| layout.registers()) else { return String::new() };
    let Some(shape) = kernel.value_type(value).shape() else { return String::new() };
    format!(
        ": {} elements, {} registers in each of {} threads",
        shape.numel(),
        layout.registers(),
        32 * kernel.group_of(op).warps
    )
}

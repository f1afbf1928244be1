//! From where to where the values of a kernel are live, in program order.
//!
//! A value from outside of a loop lives through all of it. An element-wise operation is done in place of an operand that dies;
//! if there is none, its elements are computed one after the other where they are used, and what they are made of lives until
//! then: unless threads meet between, or dots, loops and branches lie there, over which the assembler moves nothing.

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;
use rtc_ir::effects::{EffectKind, Space};
use rtc_ir::{Block, Kernel, Op, OpKind, Value, ValueDef, regions, walk};

use super::words::{Words, hands_on};
use crate::matrix_unit;

/// The registers that values take of a thread over a kernel.
pub(super) struct LiveRanges {
    number: HashMap<Op, usize>,
    /// The last operation within each one that has nested blocks.
    end: Vec<usize>,
    /// The registers at each operation.
    live: Vec<f64>,
}

impl LiveRanges {
    /// The ranges of a kernel, perhaps without what only copies to shared memory need.
    pub fn of(kernel: &Kernel, with_copies: bool) -> LiveRanges {
        let ops = walk(kernel);
        let number: HashMap<Op, usize> = ops.iter().enumerate().map(|(at, op)| (*op, at)).collect();
        let mut end: Vec<usize> = (0..ops.len()).collect();
        for (at, op) in ops.iter().enumerate().rev() {
            if let Some(around) = kernel.op(*op).parent.and_then(|block| kernel.block(block).parent) {
                end[number[&around]] = end[number[&around]].max(end[at]);
            }
        }
        let mut ranges = LiveRanges { number, end, live: Vec::new() };
        let uses = Uses::of(kernel, &ops, &ranges, with_copies);
        ranges.live = ranges.add(kernel, &ops, &uses);
        ranges
    }

    /// The most registers at a time.
    pub fn most(&self) -> f64 {
        self.live.iter().copied().fold(0.0, f64::max)
    }

    /// The same within a loop.
    pub fn most_in(&self, of: Op) -> f64 {
        let first = self.number[&of];
        self.live[first..=self.end[first]].iter().copied().fold(0.0, f64::max)
    }

    /// The registers at each operation, from the last uses of all values.
    fn add(&self, kernel: &Kernel, ops: &[Op], uses: &Uses<'_>) -> Vec<f64> {
        let mut change = vec![0.0f64; ops.len() + 1];
        let mut live = |value: Value, from: usize| {
            let elements = uses.in_parts.contains(&value);
            let words = if elements { uses.words.of_elements(value) } else { uses.words.of(value) };
            let last = uses.last[value].unwrap_or(from).max(from);
            change[from] += words;
            // A result takes the registers of an operand that dies.
            change[last + usize::from(last == from)] -= words;
        };
        for (at, op) in ops.iter().enumerate() {
            // The scalars of a combination are registers of its operands.
            if kernel.op(*op).parent.and_then(|block| kernel.block(block).parent).is_some_and(|op| combines(kernel, op))
            {
                continue;
            }
            let used = kernel.op(*op).results.iter().filter(|value| !uses.dead.contains(value));
            used.for_each(|value| live(*value, self.end[at]));
            if !combines(kernel, *op) {
                let args = kernel.op(*op).blocks.iter().flat_map(|block| &kernel.block(*block).args);
                args.for_each(|value| live(*value, at));
            }
        }
        let sum = |now: &mut f64, step: f64| {
            *now += step;
            Some(*now)
        };
        change.into_iter().scan(0.0, sum).collect()
    }
}

/// Where values are used last.
struct Uses<'k> {
    kernel: &'k Kernel,
    words: Words<'k>,
    last: SecondaryMap<Value, Option<usize>>,
    /// The same as found before.
    before: Option<SecondaryMap<Value, Option<usize>>>,
    /// Values whose elements are computed where they are used.
    in_parts: HashSet<Value>,
    /// Values that nothing needs.
    dead: HashSet<Value>,
}

impl<'k> Uses<'k> {
    fn of(kernel: &'k Kernel, ops: &[Op], ranges: &LiveRanges, with_copies: bool) -> Uses<'k> {
        let words = Words::new(kernel);
        let sources = sources(kernel, ops);
        // How many operations before each place nothing is moved over.
        let mut fixed = vec![0; ops.len() + 1];
        for (at, op) in ops.iter().enumerate() {
            fixed[at + 1] = fixed[at] + u32::from(is_fixed(kernel, *op));
        }
        let (last, in_parts, dead) = Default::default();
        let mut uses = Uses { kernel, words, last, before: None, in_parts, dead };
        uses.find(ops, ranges, &sources, &fixed, with_copies);
        // What operations before use may live longer than was known: they are asked again with that.
        uses.before = Some(std::mem::take(&mut uses.last));
        uses.in_parts.clear();
        uses.find(ops, ranges, &sources, &fixed, with_copies);
        uses
    }

    /// Goes through the operations from the last one on.
    fn find(
        &mut self,
        ops: &[Op],
        ranges: &LiveRanges,
        sources: &HashMap<Value, Vec<Value>>,
        fixed: &[u32],
        with_copies: bool,
    ) {
        let (kernel, uses) = (self.kernel, self);
        for (at, op) in ops.iter().enumerate().rev() {
            let is_copy = matches!(kernel.kind(*op), OpKind::CopyAsync { .. });
            let results = &kernel.op(*op).results;
            let unused = kernel.only_computes(*op) && results.iter().all(|value| uses.last[*value].is_none());
            if !with_copies && (is_copy || unused) {
                uses.dead.extend(results);
                continue;
            }
            let mut place = at;
            if let Some(result) = results.first().copied() {
                let last = uses.last[result].unwrap_or(at).max(at);
                if hands_on(kernel, *op) {
                    place = last;
                } else if is_elementwise(kernel, *op)
                    && last > at
                    && fixed[last] == fixed[at + 1]
                    && uses.dying(&sources[&result], *op, at) < uses.words.of(result)
                {
                    uses.in_parts.insert(result);
                    place = last;
                }
            }
            for operand in &kernel.op(*op).operands {
                let place = through_loops(kernel, ranges, *operand, *op, place);
                uses.last[*operand] = uses.last[*operand].max(Some(place));
            }
        }
    }

    /// The registers of those values of the operation's block that nothing needs behind it.
    fn dying(&self, sources: &[Value], op: Op, at: usize) -> f64 {
        let last = self.before.as_ref().unwrap_or(&self.last);
        let dies = |value: &&Value| {
            last[**value].is_none_or(|last| last <= at) && home(self.kernel, **value) == self.kernel.op(op).parent
        };
        sources.iter().filter(dies).map(|value| self.words.of(*value)).sum()
    }
}

/// The block in which a value is made.
fn home(kernel: &Kernel, value: Value) -> Option<Block> {
    match kernel.value(value).def {
        ValueDef::Result(op, _) => kernel.op(op).parent,
        ValueDef::Arg(block, _) => Some(block),
    }
}

/// The place of a use, or the end of the outermost loop around it that the value is from outside of.
fn through_loops(kernel: &Kernel, ranges: &LiveRanges, value: Value, user: Op, place: usize) -> usize {
    let home = home(kernel, value);
    let (mut last, mut at) = (place, user);
    while let Some(block) = kernel.op(at).parent.filter(|block| Some(*block) != home) {
        let Some(around) = kernel.block(block).parent else { break };
        if regions::is_loop(kernel.kind(around)) {
            last = last.max(ranges.end[ranges.number[&around]]);
        }
        at = around;
    }
    last
}

/// What the values of element-wise operations are made of through others of the kind.
fn sources(kernel: &Kernel, ops: &[Op]) -> HashMap<Value, Vec<Value>> {
    let mut sources: HashMap<Value, Vec<Value>> = HashMap::new();
    for op in ops.iter().filter(|op| is_elementwise(kernel, **op) || hands_on(kernel, **op)) {
        let mut own: Vec<Value> = Vec::new();
        for operand in &kernel.op(*op).operands {
            let of = sources.get(operand).map_or(std::slice::from_ref(operand), Vec::as_slice);
            let new: Vec<Value> = of.iter().copied().filter(|value| !own.contains(value)).collect();
            own.extend(new);
        }
        sources.insert(kernel.result(*op, 0), own);
    }
    sources
}

/// Whether an operation computes the elements of a tile one by one.
fn is_elementwise(kernel: &Kernel, op: Op) -> bool {
    let is_tile = || kernel.layout_of(kernel.result(op, 0)).is_some();
    kernel.op(op).results.len() == 1 && kernel.only_computes(op) && is_tile()
}

/// Whether the blocks of an operation combine elements.
fn combines(kernel: &Kernel, op: Op) -> bool {
    !kernel.op(op).blocks.is_empty() && regions::flow(kernel.kind(op)).is_empty()
}

/// Whether the assembler moves nothing over an operation.
fn is_fixed(kernel: &Kernel, op: Op) -> bool {
    let mut effects = kernel.effects(op);
    matrix_unit::is_dot(kernel.kind(op))
        || !kernel.op(op).blocks.is_empty()
        || matches!(kernel.kind(op), OpKind::ConvertLayout {})
        || effects.any(|(effect, _)| effect.space == Space::Outside || effect.access == EffectKind::Exchange)
}

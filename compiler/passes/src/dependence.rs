//! What in a loop's iteration depends on what: the operations that values follow from, and the dots that follow from others.
//! Schedules follow from the dependences of dots, not from how many there are.

use std::collections::{BTreeSet, HashMap, HashSet};

use rtc_ir::{Block, Kernel, Op, Value, ValueDef};

use crate::matrix_unit::is_dot;

/// The operations of a loop's body that values follow from, through what the loop carries, too.
pub(crate) fn slice(kernel: &Kernel, body: Block, roots: Vec<Value>) -> HashSet<Op> {
    let yields = kernel.terminator(body).map(|end| kernel.variadic(end).to_vec()).unwrap_or_default();
    let (mut ops, mut carried, mut work) = (HashSet::new(), HashSet::new(), roots);
    while let Some(value) = work.pop() {
        match kernel.value(value).def {
            ValueDef::Result(op, _) if kernel.op(op).parent == Some(body) && ops.insert(op) => {
                work.extend(operands(kernel, op));
            }
            ValueDef::Arg(block, index) if block == body && index > 0 && carried.insert(index) => {
                work.push(yields[index as usize - 1]);
            }
            _ => {}
        }
    }
    ops
}

/// The operands of an operation, and of those in its blocks.
pub(crate) fn operands(kernel: &Kernel, op: Op) -> impl Iterator<Item = Value> {
    rtc_ir::walk_op(kernel, op).into_iter().flat_map(|op| kernel.op(op).operands.iter().copied())
}

/// The dots of an iteration, in program order, with those before them that they depend on.
pub(crate) struct DotDependences {
    /// The dots.
    pub dots: Vec<Op>,
    /// The numbers of the dots that their first two operands follow from.
    operands: Vec<BTreeSet<usize>>,
    /// The same of their accumulators.
    accs: Vec<BTreeSet<usize>>,
}

impl DotDependences {
    /// Those of a loop's body, also of the blocks in it.
    pub fn of(kernel: &Kernel, body: Block) -> DotDependences {
        let mut found = DotDependences { dots: Vec::new(), operands: Vec::new(), accs: Vec::new() };
        found.visit(kernel, body, &mut HashMap::new());
        found
    }

    /// Goes on with a block; `sources` are the dots that values follow from.
    fn visit(&mut self, kernel: &Kernel, block: Block, sources: &mut HashMap<Value, BTreeSet<usize>>) {
        for op in kernel.ops(block) {
            let data = kernel.op(op);
            let mut follows = sources_of(sources, &data.operands);
            if is_dot(kernel.kind(op)) {
                self.operands.push(sources_of(sources, &data.operands[..2]));
                self.accs.push(sources_of(sources, &data.operands[2..]));
                follows.insert(self.dots.len());
                self.dots.push(op);
            }
            for inner in &data.blocks {
                let args = if follows.is_empty() { &[] } else { &kernel.block(*inner).args[..] };
                sources.extend(args.iter().map(|arg| (*arg, follows.clone())));
                self.visit(kernel, *inner, sources);
            }
            // The results follow from all that is done in blocks.
            for inner in rtc_ir::walk_nested(kernel, op) {
                follows.extend(sources_of(sources, &kernel.op(inner).operands));
            }
            if !follows.is_empty() {
                sources.extend(data.results.iter().map(|result| (*result, follows.clone())));
            }
        }
    }

    /// Whether dots alternate with other work, as in attention: one takes an operand that is made of the result of another.
    pub fn alternate(&self) -> bool {
        self.operands.iter().any(|sources| !sources.is_empty())
    }

    /// Whether the last dot alone takes such an operand, so that those before it may overlap the last one of the iteration
    /// before.
    pub fn are_chained(&self) -> bool {
        self.operands
            .split_last()
            .is_some_and(|(last, others)| !last.is_empty() && others.iter().all(BTreeSet::is_empty))
    }

    /// Whether a dot after the first one can be begun together with it.
    pub fn begin_early(&self) -> bool {
        let of_first = |sources: &BTreeSet<usize>| sources.contains(&0);
        self.operands.iter().zip(&self.accs).skip(1).any(|(operands, accs)| !of_first(operands) && !of_first(accs))
    }
}

fn sources_of(sources: &HashMap<Value, BTreeSet<usize>>, values: &[Value]) -> BTreeSet<usize> {
    values.iter().filter_map(|value| sources.get(value)).flatten().copied().collect()
}

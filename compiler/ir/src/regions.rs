//! How operations with nested blocks pass values: the one owner of that knowledge.
//!
//! An operation with nested blocks is a small graph. Its nodes are the blocks and the outside; an edge says that control
//! may go from one to the other ([`flow`]). Along an edge a list of values is handed over: from the outside the variadic
//! operands of the operation, from a block those of its terminator; they become the arguments of the block that is
//! entered, or the results.
//!
//! ```text
//! for_range    outside → body, body → body, body → outside, outside → outside (no iteration)
//! while_loop   outside → first, first → second, second → first, first → outside
//! if_else      outside → then, outside → else, then → outside, else → outside
//! warp_specialize    outside → partition, partition → outside, for each partition: nothing is handed over, and all of them run
//! ```
//!
//! From the edges follow the [`Slot`]s: what can hold the same value at different times. In
//! `%r = for_range .., (%x) ^(%i, %a) { .. yields (%y) }` the argument `%a` and the result `%r` are the targets of one
//! slot, the operands `%x` and `%y` its sources. Targets of a slot have one type and one layout.
//!
//! Arguments that no edge fills are given by the operation itself: the index of a loop, the elements that a reduction
//! combines. Operations without edges (`reduce`, `scan`, `map_elements`) run their block as a function of elements.

use smallvec::{SmallVec, smallvec};

use crate::{Block, Kernel, MAX_PARTITIONS, Op, OpKind, Traits, Type, Value, ValueDef};

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionPoint {
    /// Before or after the operation.
    Outside,
    /// In nested block number `.0`.
    Block(usize),
}

use RegionPoint::{Block as In, Outside};

/// The edges of an operation's graph; empty if it has no nested blocks or runs them as functions.
pub fn flow(kind: &OpKind) -> &'static [(RegionPoint, RegionPoint)] {
    match kind {
        OpKind::ForRange { .. } => &[(Outside, In(0)), (In(0), In(0)), (In(0), Outside), (Outside, Outside)],
        OpKind::WhileLoop {} => &[(Outside, In(0)), (In(0), In(1)), (In(1), In(0)), (In(0), Outside)],
        OpKind::WarpSpecialize { warps, .. } => &PARTITIONS[..2 * warps.len().min(MAX_PARTITIONS)],
        OpKind::IfElse {} => &[(Outside, In(0)), (Outside, In(1)), (In(0), Outside), (In(1), Outside)],
        _ => &[],
    }
}

/// The edges of `warp_specialize` with as many partitions as there can be.
const PARTITIONS: [(RegionPoint, RegionPoint); 2 * MAX_PARTITIONS] = {
    let mut edges = [(Outside, Outside); 2 * MAX_PARTITIONS];
    let mut partition = 0;
    while partition < MAX_PARTITIONS {
        edges[2 * partition] = (Outside, In(partition));
        edges[2 * partition + 1] = (In(partition), Outside);
        partition += 1;
    }
    edges
};

/// Whether the nested blocks run at the same time, each on warps of its own.
pub fn is_concurrent(kind: &OpKind) -> bool {
    matches!(kind, OpKind::WarpSpecialize { .. })
}

/// How many arguments at the start of nested block `block` the operation itself gives.
fn given_args(kind: &OpKind, block: usize) -> usize {
    match (kind, block) {
        (OpKind::ForRange { .. }, 0) => 1,
        _ => 0,
    }
}

/// The mnemonic of the terminator of nested block `block`.
pub fn terminator(kind: &OpKind, block: usize) -> &'static str {
    match (kind, block) {
        (OpKind::WhileLoop {}, 0) => "condition",
        _ => "yields",
    }
}

/// The targets of the values that nested block `block` yields; `None` if the operation runs it as a function.
pub fn handed_to(kernel: &Kernel, op: Op, block: usize) -> Option<&[Value]> {
    let (_, to) = flow(kernel.kind(op)).iter().find(|(from, _)| *from == In(block))?;
    Some(received(kernel, op, *to))
}

/// Whether the operation can run some nested block more than once.
pub fn is_loop(kind: &OpKind) -> bool {
    (0..2).any(|block| repeats(kind, block))
}

/// Whether there is a loop nested in an operation.
pub fn has_loops(kernel: &Kernel, op: Op) -> bool {
    crate::walk_nested(kernel, op).into_iter().any(|op| is_loop(kernel.kind(op)))
}

/// The innermost loop around an operation.
pub fn loop_around(kernel: &Kernel, mut op: Op) -> Option<Op> {
    loop {
        op = kernel.op(op).parent.and_then(|block| kernel.block(block).parent)?;
        if is_loop(kernel.kind(op)) {
            return Some(op);
        }
    }
}

/// Whether nested block `block` can run again after it has run.
pub fn repeats(kind: &OpKind, block: usize) -> bool {
    let mut reached: SmallVec<[RegionPoint; 4]> = smallvec![In(block)];
    let mut next = 0;
    while let Some(place) = reached.get(next).copied() {
        next += 1;
        for (_, to) in flow(kind).iter().filter(|(from, to)| *from == place && *to != Outside) {
            if *to == In(block) {
                return true;
            }
            if !reached.contains(to) {
                reached.push(*to);
            }
        }
    }
    false
}

/// Whether the operation may not terminate, which is an effect.
pub fn may_not_end(kind: &OpKind) -> bool {
    matches!(kind, OpKind::WhileLoop {})
}

/// Whether a value is defined outside of the blocks of an operation in which, or under which, it is used.
pub fn is_outside(kernel: &Kernel, value: Value, of: Op) -> bool {
    let mut block = match kernel.value(value).def {
        ValueDef::Result(op, _) => kernel.op(op).parent,
        ValueDef::Arg(block, _) => Some(block),
    };
    while let Some(inner) = block {
        match kernel.block(inner).parent {
            Some(around) if around == of => return false,
            around => block = around.and_then(|around| kernel.op(around).parent),
        }
    }
    true
}

/// Places that hold the same value at different times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The operation.
    pub op: Op,
    /// Block arguments and results that get the value.
    pub targets: SmallVec<[Value; 2]>,
    /// The places the value comes from: an operation, and the number of its operand among all. The one from outside is
    /// first.
    pub sources: SmallVec<[(Op, usize); 2]>,
}

impl Slot {
    /// The values that come in.
    pub fn values<'k>(&'k self, kernel: &'k Kernel) -> impl DoubleEndedIterator<Item = Value> + 'k {
        self.sources.iter().map(|(op, index)| kernel.op(*op).operands[*index])
    }
}

/// All slots of an operation.
pub fn slots(kernel: &Kernel, op: Op) -> Vec<Slot> {
    let mut out: Vec<Slot> = Vec::new();
    for to in places(kernel, op) {
        for (index, target) in received(kernel, op, to).iter().enumerate() {
            let sources = sources_of(kernel, op, to, index);
            match out.iter_mut().find(|slot| slot.sources == sources) {
                Some(slot) => slot.targets.push(*target),
                None => out.push(Slot { op, targets: smallvec![*target], sources }),
            }
        }
    }
    out
}

/// The slot that a value is a target of.
pub fn slot_of(kernel: &Kernel, value: Value) -> Option<Slot> {
    let (op, to, index) = match kernel.value(value).def {
        ValueDef::Result(op, index) => (op, Outside, index as usize),
        ValueDef::Arg(block, index) => {
            let op = kernel.block(block).parent?;
            let data = kernel.op(op);
            let nested = data.blocks.iter().position(|b| *b == block)?;
            (op, In(nested), (index as usize).checked_sub(given_args(&data.kind, nested))?)
        }
    };
    let sources = sources_of(kernel, op, to, index);
    if sources.is_empty() {
        return None;
    }
    // Places with equal sources are filled from the same edges.
    let same = |place: &RegionPoint| sources_of(kernel, op, *place, index) == sources;
    let filled = places(kernel, op).into_iter().filter(same);
    let targets = filled.filter_map(|place| received(kernel, op, place).get(index).copied()).collect();
    Some(Slot { op, targets, sources })
}

/// The values that may become `value` by entering or leaving a nested block; none if something else makes it.
pub fn sources(kernel: &Kernel, value: Value) -> SmallVec<[Value; 2]> {
    slot_of(kernel, value).map(|slot| slot.values(kernel).collect()).unwrap_or_default()
}

/// The targets that operand `index` of `op` is a source of.
pub fn targets(kernel: &Kernel, op: Op, index: usize) -> SmallVec<[Value; 2]> {
    let (around, from) = match leaves(kernel, op) {
        Some(place) => place,
        None => (op, Outside),
    };
    let Some(slot) = index.checked_sub(first_handed(kernel, op)) else { return SmallVec::new() };
    let edges = flow(kernel.kind(around)).iter().filter(|edge| edge.0 == from);
    edges.filter_map(|(_, to)| received(kernel, around, *to).get(slot).copied()).collect()
}

/// Whether operand `index` of `op` is handed to or by a nested block.
pub fn is_handed(kernel: &Kernel, op: Op, index: usize) -> bool {
    let around = leaves(kernel, op).map_or(op, |(around, _)| around);
    !flow(kernel.kind(around)).is_empty() && index >= first_handed(kernel, op)
}

/// The nodes that edges of `op` go to.
fn places(kernel: &Kernel, op: Op) -> SmallVec<[RegionPoint; 4]> {
    let mut out: SmallVec<[RegionPoint; 4]> = SmallVec::new();
    for (_, to) in flow(kernel.kind(op)) {
        if !out.contains(to) {
            out.push(*to);
        }
    }
    out
}

/// The targets of the values passed along edges to `to`.
fn received(kernel: &Kernel, op: Op, to: RegionPoint) -> &[Value] {
    let data = kernel.op(op);
    match to {
        Outside => &data.results,
        In(block) => kernel.block(data.blocks[block]).args.get(given_args(&data.kind, block)..).unwrap_or_default(),
    }
}

/// The operation whose variadic operands are handed over along edges from `from`.
fn hander(kernel: &Kernel, op: Op, from: RegionPoint) -> Option<Op> {
    match from {
        Outside => Some(op),
        In(block) => kernel.terminator(kernel.op(op).blocks[block]),
    }
}

fn first_handed(kernel: &Kernel, op: Op) -> usize {
    kernel.op(op).operands.len() - kernel.variadic(op).len()
}

/// The operation and block that a terminator leaves.
fn leaves(kernel: &Kernel, op: Op) -> Option<(Op, RegionPoint)> {
    let data = kernel.op(op);
    if !data.kind.spec().traits.has(Traits::TERMINATOR) {
        return None;
    }
    let block = data.parent?;
    let around = kernel.block(block).parent?;
    let number = kernel.op(around).blocks.iter().position(|b| *b == block)?;
    Some((around, In(number)))
}

fn sources_of(kernel: &Kernel, op: Op, to: RegionPoint, index: usize) -> SmallVec<[(Op, usize); 2]> {
    let mut out: SmallVec<[(Op, usize); 2]> = SmallVec::new();
    for (from, _) in flow(kernel.kind(op)).iter().filter(|edge| edge.1 == to) {
        let Some(hander) = hander(kernel, op, *from) else { continue };
        let operand = first_handed(kernel, hander) + index;
        if operand < kernel.op(hander).operands.len() {
            out.push((hander, operand));
        }
    }
    out.sort_by_key(|(hander, _)| *hander != op);
    out
}

impl Kernel {
    /// Adds a slot next to an existing one: the same points get further values of type `ty`, from `sources` in the
    /// order of the existing ones. Returns the new targets in the order of the old.
    pub fn add_slot(&mut self, like: &Slot, ty: Type, sources: &[Value]) -> Vec<Value> {
        let name = like.targets.iter().find_map(|value| self.value(*value).name.clone());
        let mut targets = Vec::new();
        for target in &like.targets {
            targets.push(match self.value(*target).def {
                ValueDef::Result(op, _) => self.add_result(op, ty),
                ValueDef::Arg(block, _) => self.add_arg(block, ty, name.clone()),
            });
        }
        for ((op, _), value) in like.sources.iter().zip(sources) {
            self.push_operand(*op, *value);
        }
        targets
    }

    /// Carries one more value through a loop or a branch: its initial value is `start`, and it is passed on unchanged.
    /// Returns the value inside (in the second block of a loop with a condition) and after; `None` for other
    /// operations. To change its next value, set the last operand of a terminator.
    pub fn carry(&mut self, op: Op, start: Value) -> Option<(Value, Value)> {
        let ty = self.value_type(start);
        let blocks = self.op(op).blocks.clone();
        let within = match self.kind(op) {
            OpKind::ForRange { .. } => {
                self.push_operand(op, start);
                self.add_arg(blocks[0], ty, None)
            }
            OpKind::IfElse {} => start,
            OpKind::WhileLoop {} => {
                self.push_operand(op, start);
                let asked = self.add_arg(blocks[0], ty, None);
                let condition = self.terminator(blocks[0])?;
                self.push_operand(condition, asked);
                let within = self.add_arg(blocks[1], ty, None);
                let end = self.terminator(blocks[1])?;
                self.push_operand(end, within);
                return Some((within, self.add_result(op, ty)));
            }
            _ => return None,
        };
        for block in blocks {
            let end = self.terminator(block)?;
            self.push_operand(end, within);
        }
        Some((within, self.add_result(op, ty)))
    }

    /// Removes a slot whose targets have no users that stay. Those after it move up.
    pub fn remove_slot(&mut self, slot: &Slot) {
        for (op, index) in &slot.sources {
            self.remove_operand(*op, *index);
        }
        for target in &slot.targets {
            match self.value(*target).def {
                ValueDef::Result(op, index) => self.remove_result(op, index as usize),
                ValueDef::Arg(block, index) => self.remove_arg(block, index as usize),
            }
        }
    }
}

/// Follows a state through the blocks nested in `op`, until it no longer changes. `join` adds the second state to the
/// first; `visit` takes the state at the start of a block to that at its end. Gives the state after the operation.
pub fn follow<S: Clone + PartialEq>(
    kernel: &Kernel,
    op: Op,
    entry: S,
    join: impl Fn(&mut S, &S),
    mut visit: impl FnMut(Block, S) -> S,
) -> S {
    let data = kernel.op(op);
    let edges = flow(&data.kind);
    if edges.is_empty() {
        return entry;
    }
    let mut before: Vec<Option<S>> = vec![None; data.blocks.len()];
    let mut after: Vec<Option<S>> = vec![None; data.blocks.len()];
    let arriving = |to: RegionPoint, after: &[Option<S>]| {
        let mut state: Option<S> = None;
        for (from, _) in edges.iter().filter(|edge| edge.1 == to) {
            let coming = match from {
                Outside => Some(&entry),
                In(block) => after[*block].as_ref(),
            };
            match (&mut state, coming) {
                (Some(state), Some(coming)) => join(state, coming),
                (None, Some(coming)) => state = Some(coming.clone()),
                (_, None) => {}
            }
        }
        state
    };
    loop {
        let mut changed = false;
        for (number, block) in data.blocks.iter().enumerate() {
            let Some(state) = arriving(In(number), &after) else { continue };
            if before[number].as_ref() == Some(&state) {
                continue;
            }
            before[number] = Some(state.clone());
            after[number] = Some(visit(*block, state));
            changed = true;
        }
        if !changed {
            return arriving(Outside, &after).unwrap_or(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    const NESTED: &str = "kernel @k(%n: i32, %c: i1, %x: f32) warps 1 phase tile {
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %r = for_range %zero, %n, %one, (%x) : f32 ^(%i: i32, %a: f32) {
    %w, %v = while_loop (%a, %i) : f32, i32 ^(%p: f32, %q: i32) {
      condition %c, (%p, %q)
    } ^(%s: f32, %t: i32) {
      yields (%s, %i)
    }
    %e = if_else %c : f32 ^() {
      yields (%w)
    } ^() {
      yields (%x)
    }
    yields (%e)
  }
  ret
}
";

    fn named(kernel: &Kernel, name: &str) -> Value {
        let ops = crate::walk(kernel);
        let args = ops.iter().flat_map(|op| &kernel.op(*op).blocks).flat_map(|b| &kernel.block(*b).args);
        let results = ops.iter().flat_map(|op| &kernel.op(*op).results);
        let mut all = results.chain(args).chain(&kernel.block(kernel.body()).args);
        *all.find(|v| kernel.value(**v).name.as_deref() == Some(name)).expect("it is named")
    }

    fn op_of(kernel: &Kernel, mnemonic: &str) -> Op {
        crate::walk(kernel).into_iter().find(|op| kernel.kind(*op).spec().mnemonic == mnemonic).expect("it is there")
    }

    #[test]
    fn slots_of_loops_and_branches() {
        let kernel = parse(NESTED).expect("the form is right");
        let value = |name| named(&kernel, name);
        let slot = slot_of(&kernel, value("a")).expect("it is carried");
        assert_eq!(slot.targets[..], [value("a"), value("r")]);
        assert_eq!(slot.values(&kernel).collect::<Vec<_>>(), [value("x"), value("e")]);
        assert_eq!(slot_of(&kernel, value("r")), Some(slot));
        assert_eq!(slot_of(&kernel, value("i")), None, "the loop itself gives its index");
        let first = slot_of(&kernel, value("p")).expect("it is carried");
        assert_eq!(first.targets[..], [value("p")]);
        assert_eq!(first.values(&kernel).collect::<Vec<_>>(), [value("a"), value("s")]);
        let second = slot_of(&kernel, value("t")).expect("it is handed on");
        assert_eq!(second.targets[0], value("t"));
        assert_eq!(second.targets.len(), 2, "the block and the result");
        assert_eq!(second.values(&kernel).collect::<Vec<_>>(), [value("q")]);
        let chosen = sources(&kernel, value("e"));
        assert_eq!(chosen[1], value("x"));
        assert_eq!(slots(&kernel, op_of(&kernel, "while_loop")).len(), 4);
        assert_eq!(slots(&kernel, op_of(&kernel, "if_else")).len(), 1);
    }

    #[test]
    fn operands_and_their_targets() {
        let kernel = parse(NESTED).expect("the form is right");
        let whole = op_of(&kernel, "for_range");
        assert!(!is_handed(&kernel, whole, 2) && is_handed(&kernel, whole, 3));
        assert_eq!(targets(&kernel, whole, 3)[..], [named(&kernel, "a"), named(&kernel, "r")]);
        let condition = op_of(&kernel, "condition");
        assert!(!is_handed(&kernel, condition, 0));
        assert_eq!(targets(&kernel, condition, 1)[0], named(&kernel, "s"));
    }

    #[test]
    fn which_blocks_repeat() {
        let kernel = parse(NESTED).expect("the form is right");
        let kind = |mnemonic| kernel.kind(op_of(&kernel, mnemonic)).clone();
        assert!(repeats(&kind("for_range"), 0));
        assert!(repeats(&kind("while_loop"), 0) && repeats(&kind("while_loop"), 1));
        assert!(!is_loop(&kind("if_else")));
    }

    #[test]
    fn a_state_is_followed_round_a_loop() {
        let kernel = parse(NESTED).expect("the form is right");
        let whole = op_of(&kernel, "for_range");
        let mut visits = 0;
        let join = |a: &mut u32, b: &u32| *a = (*a).max(*b);
        let after = follow(&kernel, whole, 0, join, |_, state| {
            visits += 1;
            (state + 1).min(3)
        });
        assert_eq!((after, visits), (3, 4), "the state grows until it stays");
    }
}

//! Expands a loop whose operations have stages into a prologue, a steady state and an epilogue.
//!
//! ```text
//! for_range 0, n {      Ends::Masked                       Ends::Peeled
//!   %x = load i    0      %x0 = load 0  if 0 < n             if_else 0 < n {
//!   use %x, i      1      for_range 0, n, (%x = %x0) {         load 0
//! }                         %y = load i + 1  if i + 1 < n      for_range 1, n, (%x, %j) {
//!                           use %x, i                            %y = load i
//!                           yields %y                            use %x, %j
//!                         }                                      yields %y, i
//!                                                              }
//!                                                              use %x, n - 1
//!                                                            }
//! ```
//!
//! In each step of the pipeline, an operation of stage `s` is executed for the iteration `s` before that of stage 0. A value
//! used in a later stage than its own is carried by the loop, once for each iteration between. An operation that has several
//! stages is repeated in each, as are addresses of copies, so that its result is not carried.

mod ends;
mod masks;
mod staged_loop;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashMap;

use rtc_ir::{Block, Builder, Kernel, Loc, Op, OpKind, Position, Predicate, Type, Value, ValueMap, fold, view};

use masks::{is_maskable, less, mask};
use staged_loop::Carried;
pub(crate) use staged_loop::{Ends, StagedLoop};

use crate::PassError;
use crate::access::addresses::small_step;
use crate::pass::missing;

/// The expanded loop.
pub(crate) struct Expanded {
    /// The steady state.
    pub of: Op,
    /// What the prologue executes, each with the operation of the loop that it is a copy of.
    pub before: Vec<(Op, Op)>,
    /// The same for the epilogue.
    pub after: Vec<(Op, Op)>,
    /// What replaces the results of the loop.
    pub results: Vec<Value>,
    /// What the steady state carries, and its results for it.
    carried: Vec<(Carried, Value)>,
}

impl Expanded {
    /// What was computed for a value in the iterations that are not complete after the loop, the last one first.
    pub fn in_flight(&self, value: Value) -> Vec<Value> {
        let own = self.carried.iter().filter(|(of, _)| of.value == value && of.age > 0);
        own.map(|(_, result)| *result).collect()
    }
}

/// A step of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// One before the loop, from 0 on.
    Before(u32),
    /// The steady state.
    Steady,
    /// One after the loop, from 1 on.
    After(u32),
}

/// The place for operations, and their location in the source.
#[derive(Clone, Copy)]
enum Place {
    Before(Op),
    End(Block, Loc),
}

impl Place {
    pub(super) fn builder(self, kernel: &mut Kernel) -> Builder<'_> {
        match self {
            Place::Before(op) => Builder::before(kernel, op),
            Place::End(block, loc) => {
                let mut builder = Builder::at_end(kernel, block);
                builder.set_loc(loc);
                builder
            }
        }
    }

    fn position(self) -> Position {
        match self {
            Place::Before(op) => Position::Before(op),
            Place::End(block, _) => Position::End(block),
        }
    }
}

/// Whether an iteration exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exists {
    Always,
    Never,
    If(Value),
}

/// Expands a loop. The results of the loop are replaced.
pub(crate) fn expand(kernel: &mut Kernel, staged: StagedLoop) -> Result<Expanded, PassError> {
    let trips = rtc_ir::trip_count(kernel, staged.of);
    let step = match staged.ends {
        Ends::Masked => small_step(kernel, staged.of).ok_or_else(|| missing("a known step"))?,
        Ends::Peeled => 0,
    };
    let carried = staged.carried(kernel)?;
    let steady = kernel.new_block();
    let index = kernel.add_arg(steady, kernel.value_type(staged.args[0]), name(kernel, staged.args[0]));
    let range = view::ForRange::at(kernel, staged.of);
    let (lower, upper) = (range.lower(), range.upper());
    let loc = kernel.op(staged.of).loc;
    let expansion = Expansion {
        trips,
        step,
        lower,
        upper,
        loc,
        steady,
        index,
        begin: lower,
        several: None,
        made: HashMap::new(),
        indices: HashMap::new(),
        exists: HashMap::new(),
        within: HashMap::new(),
        results: HashMap::new(),
        guard: None,
        kernel,
        staged,
    };
    expansion.run(&carried)
}

fn name(kernel: &Kernel, value: Value) -> Option<String> {
    kernel.value(value).name.clone()
}

/// A loop on the way.
struct Expansion<'k> {
    kernel: &'k mut Kernel,
    staged: StagedLoop,
    trips: Option<u64>,
    step: i64,
    lower: Value,
    upper: Value,
    loc: Loc,
    /// The body of the steady state, and its index.
    steady: Block,
    index: Value,
    /// The first index of the steady state.
    begin: Value,
    /// With [`Ends::Peeled`], whether the loop has a second iteration.
    several: Option<Value>,
    /// What a stage computed in a step.
    made: HashMap<(Value, u32, Step), Value>,
    /// The index of a stage in a step.
    indices: HashMap<(u32, Step), Value>,
    /// Whether there is an iteration for a stage in a step.
    exists: HashMap<(u32, Step), Exists>,
    /// What the steady state carries, within it and after it.
    within: HashMap<Carried, Value>,
    results: HashMap<Carried, Value>,
    /// The branch that operations of this stage are put into, for as long as they follow each other.
    guard: Option<(u32, Block)>,
}

impl Expansion<'_> {
    fn run(mut self, carried: &[Carried]) -> Result<Expanded, PassError> {
        let of = self.staged.of;
        let branch = if self.staged.ends == Ends::Peeled { Some(self.peel()?) } else { None };
        let mut before = Vec::new();
        for step in 0..self.prologue() {
            before.extend(self.execute(Step::Before(step))?);
        }
        if branch.is_some() && self.prologue() > 0 {
            self.begin_with_second()?;
        }
        let starts = carried.iter().map(|value| self.start(*value)).collect::<Result<Vec<Value>, _>>()?;
        for (value, start) in carried.iter().zip(&starts) {
            let name = name(self.kernel, value.value);
            let arg = self.kernel.add_arg(self.steady, self.kernel.value_type(*start), name);
            self.within.insert(*value, arg);
        }
        self.execute(Step::Steady)?;
        let next = carried.iter().map(|value| self.next(*value)).collect::<Result<Vec<Value>, _>>()?;
        Place::End(self.steady, self.loc).builder(self.kernel).yield_values(&next)?;
        let new = self.build_loop(&starts)?;
        let carried: Vec<(Carried, Value)> =
            carried.iter().enumerate().map(|(number, value)| (*value, self.kernel.result(new, number))).collect();
        self.results.extend(carried.iter().copied());

        let mut after = Vec::new();
        let results = match branch {
            Some((around, block)) => {
                for step in 1..=self.staged.last {
                    after.extend(self.execute(Step::After(step))?);
                }
                let values = self.last_values()?;
                Place::End(block, self.loc).builder(self.kernel).yield_values(&values)?;
                self.kernel.op(around).results.to_vec()
            }
            None => {
                let values = self.last_values()?;
                for (number, value) in values.iter().enumerate() {
                    self.kernel.replace_value(self.kernel.result(of, number), *value);
                }
                values
            }
        };
        for (value, result) in &carried {
            if let Some(name) = name(self.kernel, value.value) {
                self.kernel.name_value(*result, &name);
            }
        }
        self.kernel.erase(of);
        before.reverse();
        before.retain(|(_, copy)| !self.erase_unused(*copy));
        Ok(Expanded { of: new, before, after, results, carried })
    }

    /// Erases what was computed for nothing in the prologue, such as operands of constants.
    fn erase_unused(&mut self, op: Op) -> bool {
        let is_used = self.kernel.op(op).results.iter().any(|value| self.kernel.is_used(*value));
        let is_idle = self.kernel.only_computes(op) && !is_used;
        if is_idle {
            self.kernel.erase(op);
        }
        is_idle
    }

    /// The steps before the loop.
    fn prologue(&self) -> u32 {
        match self.staged.ends {
            Ends::Masked => self.staged.last,
            Ends::Peeled => self.staged.last.min(1),
        }
    }

    /// Moves the loop into a branch that is taken if it has an iteration; gives the branch and its block.
    fn peel(&mut self) -> Result<(Op, Block), PassError> {
        let of = self.staged.of;
        let inits = self.kernel.variadic(of).to_vec();
        let olds = self.kernel.op(of).results.clone();
        let types: Vec<Type> = olds.iter().map(|value| self.kernel.value_type(*value)).collect();
        let less = less(self.kernel, of);
        let runs = Builder::before(self.kernel, of).cmpi(self.lower, self.upper, less)?;
        let [some, none] = [self.kernel.new_block(), self.kernel.new_block()];
        Place::End(none, self.loc).builder(self.kernel).yield_values(&inits)?;
        let mut builder = Builder::before(self.kernel, of);
        let around = builder.build(OpKind::IfElse {}, &[runs], &[], &[], &[some, none], &types)?;
        for (number, old) in olds.into_iter().enumerate() {
            let new = self.kernel.result(around, number);
            self.kernel.replace_value(old, new);
        }
        self.kernel.move_op(of, Position::End(some));
        Ok((around, some))
    }

    /// Lets the loop begin with the second iteration. Where there is none, the sum of the first index and the step might have
    /// overflowed.
    fn begin_with_second(&mut self) -> Result<(), PassError> {
        let of = self.staged.of;
        let step = view::ForRange::at(self.kernel, of).step();
        let mut builder = Builder::before(self.kernel, of);
        let second = builder.addi(self.lower, step)?;
        let left = builder.subi(self.upper, self.lower)?;
        let several = builder.cmpi(left, step, Predicate::Ugt)?;
        self.begin = builder.select(several, second, self.upper)?;
        self.several = Some(several);
        Ok(())
    }

    fn build_loop(&mut self, starts: &[Value]) -> Result<Op, PassError> {
        let of = self.staged.of;
        let (kind, step) = (self.kernel.kind(of).clone(), view::ForRange::at(self.kernel, of).step());
        let types: Vec<Type> = starts.iter().map(|value| self.kernel.value_type(*value)).collect();
        let bounds = [self.begin, self.upper, step];
        Ok(Builder::before(self.kernel, of).build(kind, &bounds, &[], starts, &[self.steady], &types)?)
    }

    /// Executes the operations of a step; gives each with its copy.
    fn execute(&mut self, step: Step) -> Result<Vec<(Op, Op)>, PassError> {
        let mut copies = Vec::new();
        for (op, stage) in self.staged.order.clone() {
            let executes = match step {
                Step::Before(step) => stage <= step,
                Step::Steady => true,
                Step::After(step) => stage >= step,
            };
            if executes && let Some(copy) = self.put(op, stage, step)? {
                copies.push((op, copy));
            }
        }
        self.close_guard()?;
        Ok(copies)
    }

    /// Puts in a copy of an operation, unless it would do nothing.
    fn put(&mut self, op: Op, stage: u32, step: Step) -> Result<Option<Op>, PassError> {
        let exists = self.exists(stage, step)?;
        if let (OpKind::CopyAsync { .. }, Exists::Never) = (self.kernel.kind(op), exists) {
            return Ok(None);
        }
        let place = match (self.staged.ends, exists) {
            (Ends::Peeled, Exists::If(condition)) => self.open_guard(stage, step, condition)?,
            _ => {
                self.close_guard()?;
                self.place(step)
            }
        };
        let mut map = ValueMap::new();
        for inner in rtc_ir::walk_op(self.kernel, op) {
            for value in self.kernel.op(inner).operands.clone() {
                map.insert(value, self.value(value, stage, step)?);
            }
        }
        let copy = self.kernel.clone_whole(op, &mut map);
        self.kernel.insert_op(copy, place.position());
        for value in self.kernel.op(op).results.clone() {
            self.made.insert((value, stage, step), map[&value]);
        }
        if let (Step::Before(_), Some(literal)) = (step, fold(self.kernel, copy)) {
            self.kernel.make_constant(copy, literal);
        }
        if self.staged.ends == Ends::Masked && stage < self.staged.last {
            if !is_maskable(self.kernel, copy) {
                return Err(PassError::Internal("an operation with effects is ahead of its iteration".into()));
            }
            if let Exists::If(runs) = exists {
                mask(self.kernel, copy, runs)?;
            }
        }
        Ok(Some(copy))
    }

    fn place(&self, step: Step) -> Place {
        match step {
            Step::Before(_) | Step::After(_) => Place::Before(self.staged.of),
            Step::Steady => Place::End(self.steady, self.loc),
        }
    }
}

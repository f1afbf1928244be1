//! The stack of executed blocks: each warp group has its own, so that it can be suspended between any two operations
//! and resumed.
//!
//! An operation with nested blocks pushes a [`Frame`] ([`Machine::enter`]), whose [`Exit`] specifies the continuation
//! after the block; [`Machine::turn`] runs the top frame. Blocks that are evaluated like functions, many times and
//! without suspension (those of `reduce`, `scan`, `map_elements`), go through [`Machine::evaluate`].

use smallvec::SmallVec;

use super::FaultKind;
use super::control::Range;
use super::copies::Pending;
use super::machine::{Machine, Stop};
use super::scheduler::Wait;
use super::value::Data;
use crate::{Block, Kernel, Op, Traits, Value, view};

/// The arguments or results of a block.
pub(crate) type BlockValues = SmallVec<[Data; 4]>;

/// A block that is being run.
#[derive(Clone, Debug)]
struct Frame {
    /// The operation that comes next; `None` after the last one of a block without terminator.
    next: Option<Op>,
    exit: Exit,
}

/// The continuation after the last operation of a block.
#[derive(Clone, Debug)]
pub(crate) enum Exit {
    /// Nothing on this stack: the body of the kernel, the block of a warp group, a block that was evaluated.
    Return,
    /// The operation after the `if_else`.
    Branch(Op),
    /// The rest of the range of the `for_range`.
    Iterate(Op, Range),
    /// The second block of the `while_loop`, or the operation after it.
    Condition(Op),
    /// The first block of the `while_loop` again.
    Repeat(Op),
}

/// Warps that run one sequence of operations.
#[derive(Clone, Debug)]
pub(crate) struct WarpGroup {
    /// Its number; those of a program differ.
    pub(crate) id: u32,
    /// The operation being run, innermost.
    pub(crate) current: Option<Op>,
    /// The condition for which it waits.
    pub(crate) wait: Option<Wait>,
    /// The asynchronous work that it has started and not waited for.
    pub(crate) pending: Pending,
    /// The values.
    pub(crate) values: Vec<Data>,
    /// The blocks being run, innermost last.
    frames: Vec<Frame>,
}

impl WarpGroup {
    /// One that has nothing to do.
    pub(crate) fn new(id: u32, values: Vec<Data>) -> WarpGroup {
        WarpGroup { id, current: None, wait: None, pending: Pending::default(), values, frames: Vec::new() }
    }

    /// Pushes `block`, whose arguments are set.
    pub(crate) fn push(&mut self, kernel: &Kernel, block: Block, exit: Exit) {
        self.frames.push(Frame { next: kernel.first_op(block), exit });
    }
}

/// Why a warp group stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// The block that was to be run is done.
    Done,
    /// The warp group waits, see [`WarpGroup::wait`].
    Blocked,
    /// It took as many operations as it was given.
    Paused,
}

impl Machine<'_> {
    /// Runs the current warp group for up to `budget` operations.
    pub(crate) fn turn(&mut self, budget: u64) -> Result<RunOutcome, Stop> {
        let kernel = self.kernel;
        for _ in 0..budget {
            let Some(frame) = self.group.frames.last_mut() else { return Ok(RunOutcome::Done) };
            let next = frame.next;
            frame.next = next.and_then(|op| kernel.next_op(op));
            match next {
                Some(op) if !kernel.kind(op).spec().traits.has(Traits::TERMINATOR) => {
                    self.group.current = Some(op);
                    self.report.ran.insert(op);
                    self.op(op)?;
                    if self.open.is_some() {
                        self.fill_open(op)?;
                    }
                    if self.group.wait.is_some() {
                        return Ok(RunOutcome::Blocked);
                    }
                }
                end => {
                    if let Some(op) = end {
                        self.group.current = end;
                        self.report.ran.insert(op);
                        self.tick(1)?;
                    }
                    if self.leave(end)? {
                        return Ok(RunOutcome::Done);
                    }
                }
            }
        }
        Ok(RunOutcome::Paused)
    }

    /// Goes into a nested block with `values` as `args`.
    pub(crate) fn enter(&mut self, block: Block, args: &[Value], values: BlockValues, exit: Exit) {
        self.set_all(args, values);
        self.group.push(self.kernel, block, exit);
    }

    /// Comes out of the innermost block, which `end` ends; gives whether nothing follows.
    fn leave(&mut self, end: Option<Op>) -> Result<bool, Stop> {
        let Some(Frame { exit, .. }) = self.group.frames.pop() else { return Ok(true) };
        if let Exit::Return = exit {
            return Ok(true);
        }
        let handed = end.map(|end| self.all(self.kernel.variadic(end))).unwrap_or_default();
        match exit {
            Exit::Return => {}
            Exit::Branch(op) => self.set_results(op, handed),
            Exit::Iterate(op, range) => self.iterate(op, range, handed)?,
            Exit::Condition(op) => {
                let go_on = end.is_some_and(|end| self.scalar(view::Condition::at(self.kernel, end).go_on()) & 1 != 0);
                self.decide(op, go_on, handed);
            }
            Exit::Repeat(op) => self.repeat(op, handed)?,
        }
        Ok(false)
    }

    /// The contents of these values.
    pub(crate) fn all(&self, values: &[Value]) -> BlockValues {
        values.iter().map(|v| self.get(*v)).collect()
    }

    /// Gives these values what they hold.
    pub(crate) fn set_all(&mut self, values: &[Value], all: BlockValues) {
        for (value, data) in values.iter().zip(all) {
            self.set(*value, data);
        }
    }

    /// Gives all results of an operation what they hold.
    pub(crate) fn set_results(&mut self, op: Op, all: BlockValues) {
        let kernel = self.kernel;
        self.set_all(&kernel.op(op).results, all);
    }
}

impl<'a> Machine<'a> {
    /// Runs a block whose arguments are set, up to its end; returns the values that it yields.
    pub(crate) fn evaluate(&mut self, block: Block) -> Result<&'a [Value], Stop> {
        self.group.push(self.kernel, block, Exit::Return);
        match self.turn(u64::MAX)? {
            RunOutcome::Done => {
                Ok(self.kernel.terminator(block).map(|end| self.kernel.variadic(end)).unwrap_or_default())
            }
            RunOutcome::Blocked | RunOutcome::Paused => {
                let message = "an operation cannot wait in a block that is evaluated for each element";
                Err(self.stop(FaultKind::Unsupported(message.into())))
            }
        }
    }
}

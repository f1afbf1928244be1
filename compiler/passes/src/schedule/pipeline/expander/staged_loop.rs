//! A loop whose operations have stages: which value an operation sees, and which values cross iterations.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use rtc_ir::{Block, Kernel, Op, Type, Value, ValueDef};

use crate::PassError;
use crate::pass::missing;

/// How the first and the last iterations are executed, which have no earlier or later ones to overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The loop has all iterations, and its index is that of the last stage. Earlier stages access no memory for iterations
    /// that do not exist.
    Masked,
    /// Stage 0 of the first iteration is before the loop, later stages of the last iterations are after it. The index of the
    /// loop is that of stage 0.
    Peeled,
}

/// A loop with a stage for each operation.
pub(crate) struct StagedLoop {
    /// The loop.
    pub of: Op,
    /// What an iteration of the steady state executes, in order: an operation of stage `s` for the iteration `s` before that
    /// of stage 0. An operation may have several stages, and is then repeated in each.
    pub order: Vec<(Op, u32)>,
    /// The ends.
    pub ends: Ends,
    /// The last stage.
    pub last: u32,
    pub(super) body: Block,
    /// The arguments of the body, the index first.
    pub(super) args: Vec<Value>,
    pub(super) yields: Vec<Value>,
    stages: HashMap<Op, Vec<u32>>,
}

/// Where an operation finds a value that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Outside of the loop.
    Outside,
    /// The index.
    Index,
    /// The loop-carried value `number`, as stage `stage` computes it.
    Arg { number: usize, stage: u32 },
    /// An operation of this stage.
    Result { stage: u32 },
}

/// A value that the steady state carries: what stage `stage` computed for the iteration `age` before its current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Carried {
    pub age: u32,
    pub value: Value,
    pub stage: u32,
}

impl StagedLoop {
    /// The loop `of` with these stages, which name each operation of its body but the terminator.
    pub fn new(kernel: &Kernel, of: Op, order: Vec<(Op, u32)>, ends: Ends) -> Option<StagedLoop> {
        let body = *kernel.op(of).blocks.first()?;
        let mut stages: HashMap<Op, Vec<u32>> = HashMap::new();
        for (op, stage) in &order {
            stages.entry(*op).or_default().push(*stage);
        }
        let (args, end) = (kernel.block(body).args.clone(), kernel.terminator(body)?);
        let yields = kernel.variadic(end).to_vec();
        let last = order.iter().map(|(_, stage)| *stage).max().unwrap_or(0);
        Some(StagedLoop { of, order, ends, last, body, args: args.to_vec(), yields, stages })
    }

    /// Where an operation of stage `stage` finds a value.
    pub(super) fn source(&self, kernel: &Kernel, value: Value, stage: u32) -> Result<Source, PassError> {
        match kernel.value(value).def {
            ValueDef::Result(op, _) if kernel.op(op).parent == Some(self.body) => {
                let computed = self.stages.get(&op).into_iter().flatten().copied().filter(|own| *own <= stage).max();
                let stage = computed.ok_or_else(|| missing("a value before its stage"))?;
                Ok(Source::Result { stage })
            }
            ValueDef::Arg(block, 0) if block == self.body => Ok(Source::Index),
            ValueDef::Arg(block, index) if block == self.body => {
                let number = index as usize - 1;
                Ok(Source::Arg { number, stage: self.stage_of_arg(kernel, number, stage)? })
            }
            _ => Ok(Source::Outside),
        }
    }

    /// The stage that computes the next value of a loop-carried value, as stage `stage` sees it.
    fn stage_of_arg(&self, kernel: &Kernel, number: usize, stage: u32) -> Result<u32, PassError> {
        let (mut next, mut seen) = (self.yields[number], HashSet::new());
        while let ValueDef::Arg(block, index) = kernel.value(next).def
            && block == self.body
            && index > 0
            && seen.insert(index)
        {
            next = self.yields[index as usize - 1];
        }
        match kernel.value(next).def {
            ValueDef::Result(..) => match self.source(kernel, next, stage)? {
                Source::Result { stage } => Ok(stage),
                _ => Ok(stage),
            },
            ValueDef::Arg(block, 0) if block == self.body && self.ends == Ends::Peeled => Ok(0),
            ValueDef::Arg(..) => Ok(stage),
        }
    }

    /// What the result of the loop for a loop-carried value follows from. In a masked loop, early stages are beyond the last
    /// iteration in the end.
    pub(super) fn carried_arg(&self, kernel: &Kernel, number: usize) -> Result<Carried, PassError> {
        let stage = self.stage_of_arg(kernel, number, self.last)?;
        let age = if self.ends == Ends::Masked { self.last - stage } else { 0 };
        Ok(Carried { age, value: self.args[number + 1], stage })
    }

    /// The values that the steady state carries, in the order of the loop's body.
    pub(super) fn carried(&self, kernel: &Kernel) -> Result<Vec<Carried>, PassError> {
        let mut all: HashSet<Carried> = HashSet::new();
        let mut work: Vec<(Value, u32)> = Vec::new();
        for (op, stage) in &self.order {
            let within = rtc_ir::walk_op(kernel, *op).into_iter();
            work.extend(within.flat_map(|op| kernel.op(op).operands.clone()).map(|value| (value, *stage)));
        }
        for number in 0..self.yields.len() {
            let own = self.carried_arg(kernel, number)?;
            work.push((own.value, own.stage + own.age));
        }
        while let Some((value, user)) = work.pop() {
            let (stage, least) = match self.source(kernel, value, user)? {
                Source::Result { stage } => (stage, 1),
                Source::Index if self.ends == Ends::Peeled => (0, 1),
                Source::Outside | Source::Index => continue,
                Source::Arg { number, stage } => {
                    if all.insert(Carried { age: 0, value, stage }) {
                        work.push((self.yields[number], stage));
                    }
                    (stage, 1)
                }
            };
            all.extend((least..=user - stage).map(|age| Carried { age, value, stage }));
        }
        let places: HashMap<Op, usize> = kernel.ops(self.body).enumerate().map(|(place, op)| (op, place)).collect();
        let place = |value: Value| match kernel.value(value).def {
            ValueDef::Arg(_, number) => (0, number as usize),
            ValueDef::Result(op, number) => (1 + places.get(&op).copied().unwrap_or(0), number as usize),
        };
        let mut all: Vec<Carried> = all.into_iter().collect();
        all.sort_by_key(|of| (of.age, place(of.value), Reverse(of.stage)));
        Ok(all)
    }

    /// Whether the stages can be executed: no value is used before its stage, and what crosses iterations fits in registers
    /// or is a token. In a peeled loop, the prologue has only stage 0, and a branch is around stage 2.
    pub fn is_valid(&self, kernel: &Kernel) -> bool {
        let fits = |of: &Carried| {
            let is_arg = matches!(kernel.value(of.value).def, ValueDef::Arg(..));
            let is_known = self.ends == Ends::Masked || of.stage <= u32::from(is_arg);
            is_known && !matches!(kernel.value_type(of.value), Type::Shared(_) | Type::Barrier { .. })
        };
        let few = self.ends == Ends::Masked || self.last <= 2;
        few && self.carried(kernel).is_ok_and(|carried| carried.iter().all(fits))
    }
}

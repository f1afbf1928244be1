//! Which programs a block of a persistent kernel executes, and in which order.
//!
//! Block `b` of `n` executes the programs `b`, `b + n`, `b + 2 n` and so on. Where programs take unequally long and `n` is a
//! multiple of a size of the grid, that gives some blocks the long ones alone: causal attention was half as fast so. There
//! every second round goes backwards: `b`, `2 n - 1 - b`, `2 n + b`, ..
//!
//! Where programs may end at once, as those above the diagonal of a symmetric product, how many of them a block has to execute
//! is anybody's guess. Then each program gets a block of its own, if another one runs beside it: the hardware starts the next where one
//! is over.
//!
//! Neighbours along axis 0 mostly read the same tiles, and are best started side by side: with four heads of attention in turn, or
//! with the longest programs of all heads first, it was slower by up to a sixth on an H200.

use std::collections::HashSet;

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Predicate, Type, Value, ValueDef, regions};

use super::candidate::Candidate;
use crate::PassError;

/// The loop over the programs of a block.
pub(super) struct Programs {
    /// From where to where it counts, and by how much.
    pub bounds: [Value; 3],
    /// The number of the block and how many there are, where every second round goes backwards.
    turning: Option<[Value; 2]>,
}

impl Programs {
    /// The programs of this block out of so many.
    pub fn new(builder: &mut Builder<'_>, programs: Value, unequal: bool) -> Result<Programs, PassError> {
        let block = builder.program_id(0)?;
        let blocks = builder.num_programs(0)?;
        if !unequal {
            return Ok(Programs { bounds: [block, programs, blocks], turning: None });
        }
        let [zero, one] = [0, 1].map(|n| builder.constant_of(Literal::Int(n), Type::Scalar(Elem::I32)));
        let rounds = builder.divsi(programs, blocks)?;
        let rest = builder.remsi(programs, blocks)?;
        let place = place(builder, rounds, [block, blocks])?;
        let more = builder.cmpi(place, rest, Predicate::Lt)?;
        let more = builder.extui(more, Elem::I32)?;
        let end = builder.addi(rounds, more)?;
        Ok(Programs { bounds: [zero?, end, one?], turning: Some([block, blocks]) })
    }

    /// The number of the program of an iteration.
    pub fn number(&self, builder: &mut Builder<'_>, iteration: Value) -> Result<Value, PassError> {
        let Some([block, blocks]) = self.turning else { return Ok(iteration) };
        let place = place(builder, iteration, [block, blocks])?;
        let before = builder.muli(iteration, blocks)?;
        Ok(builder.addi(before, place)?)
    }
}

/// Which program of a round the block executes.
fn place(builder: &mut Builder<'_>, round: Value, [block, blocks]: [Value; 2]) -> Result<Value, PassError> {
    let [zero, one] = [0, 1].map(|n| builder.constant_of(Literal::Int(n), Type::Scalar(Elem::I32)));
    let (zero, one) = (zero?, one?);
    let odd = builder.andi(round, one)?;
    let forward = builder.cmpi(odd, zero, Predicate::Eq)?;
    let after = builder.subi(blocks, block)?;
    let backward = builder.subi(after, one)?;
    Ok(builder.select(forward, block, backward)?)
}

/// Whether programs take unequally long: the number of iterations of a loop follows from which program it is.
pub(super) fn are_unequal(kernel: &Kernel, found: &Candidate) -> bool {
    let loops = found.loops.iter().flat_map(|of| &of.path);
    let loops = loops.filter(|op| matches!(kernel.kind(**op), OpKind::ForRange { .. }));
    follow_from_program(kernel, loops.flat_map(|op: &Op| [0, 1].map(|place| kernel.operand(*op, place))).collect())
}

/// More than any launch has for each multiprocessor, so that there is a block for each program.
const BLOCK_EACH: u32 = 1 << 15;

/// How many blocks are started on a multiprocessor, where so many run at once.
pub(super) fn started(kernel: &Kernel, found: &Candidate, at_once: u32) -> u32 {
    let branches = found.loops.iter().flat_map(|of| &of.path);
    let branches = branches.filter(|op| matches!(kernel.kind(**op), OpKind::IfElse {}));
    let branches = branches.filter(|op| regions::loop_around(kernel, **op).is_none());
    let skipped = follow_from_program(kernel, branches.map(|op: &Op| kernel.operand(*op, 0)).collect());
    if skipped && at_once > 1 { BLOCK_EACH } else { at_once }
}

/// What `-v` says of so many blocks that are started.
pub(super) fn described(started: u32) -> String {
    match started {
        BLOCK_EACH => "a block for each program".into(),
        1 => "1 block on a multiprocessor loop over the programs".into(),
        more => format!("{more} blocks on a multiprocessor loop over the programs"),
    }
}

/// Whether values follow from which program it is, or from memory.
fn follow_from_program(kernel: &Kernel, mut work: Vec<Value>) -> bool {
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        let ValueDef::Result(op, _) = kernel.value(value).def else { continue };
        if matches!(kernel.kind(op), OpKind::ProgramId { .. } | OpKind::Load { .. }) {
            return true;
        }
        if seen.insert(op) {
            work.extend(&kernel.op(op).operands);
        }
    }
    false
}

//! The order in which a block of a persistent kernel executes programs.
//!
//! Block `b` of `n` executes the programs `b`, `b + n`, `b + 2 n` and so on. If programs differ in length and `n` is a
//! multiple of a size of the grid, some blocks get only long ones: causal attention took twice as long. In this case
//! every second pass over the blocks runs backwards: `b`, `2 n - 1 - b`, `2 n + b`, ..
//!
//! If programs may end immediately, such as those above the diagonal of a symmetric matrix product, the number of
//! programs that a block should execute is not statically known. Then each program gets a block of its own, if another
//! block is resident at the same time: the hardware starts the next block when one ends. So does each program whose
//! trip counts come from memory if dots alternate with other work: attention within documents of 700 rows took
//! 1.4 times as long in persistent blocks on an H100, other masks 0.9 to 1.05 times. With one block on an SM all
//! blocks that fit are started, though fewer might need as many passes (`Persistent::uneven`): of a fused MoE with 192
//! programs, 64 of them without tokens, no block of 132 has two programs with tokens, but some of 96 have.
//!
//! Neighbours along axis 0 mostly read the same tiles, so they should start together: interleaving four heads of
//! attention, or starting the longest programs of all heads first, was slower by up to a sixth on an H200.

use std::collections::HashSet;

use rtc_abi::Persistent;
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Predicate, Type, Value, ValueDef, regions};

use super::candidate::Candidate;
use crate::PassError;

/// The loop over the programs of a block.
pub(crate) struct Programs {
    /// From where to where it counts, and by how much.
    pub bounds: [Value; 3],
    /// The block's index and the number of blocks, if every second pass over the blocks runs backwards.
    turning: Option<[Value; 2]>,
}

impl Programs {
    /// The programs of this block, given their total number.
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

/// The program of a pass over the blocks that the block executes.
fn place(builder: &mut Builder<'_>, round: Value, [block, blocks]: [Value; 2]) -> Result<Value, PassError> {
    let [zero, one] = [0, 1].map(|n| builder.constant_of(Literal::Int(n), Type::Scalar(Elem::I32)));
    let (zero, one) = (zero?, one?);
    let odd = builder.andi(round, one)?;
    let forward = builder.cmpi(odd, zero, Predicate::Eq)?;
    let after = builder.subi(blocks, block)?;
    let backward = builder.subi(after, one)?;
    Ok(builder.select(forward, block, backward)?)
}

/// Whether programs differ in length: the trip count of a loop depends on the program id.
pub(crate) fn are_unequal(kernel: &Kernel, found: &Candidate) -> bool {
    follow_from_program(kernel, bounds(kernel, found))
}

/// The values between which the loops count.
fn bounds(kernel: &Kernel, found: &Candidate) -> Vec<Value> {
    let loops = found.loops.iter().flat_map(|of| &of.path);
    let loops = loops.filter(|op| matches!(kernel.kind(**op), OpKind::ForRange { .. }));
    loops.flat_map(|op: &Op| [0, 1].map(|place| kernel.operand(*op, place))).collect()
}

/// More than any launch has for each SM, so that there is one block per program.
const BLOCK_EACH: u32 = 1 << 15;

/// How many blocks are started on an SM, where so many run at once.
pub(crate) fn started(kernel: &Kernel, found: &Candidate, at_once: u32) -> Persistent {
    let from_memory = |bounds| follow_from(kernel, bounds, &|kind| matches!(kind, OpKind::Load { .. }));
    if found.has_work_between(kernel) && from_memory(bounds(kernel, found)) {
        return Persistent { blocks_per_multiprocessor: BLOCK_EACH, uneven: false };
    }
    let branches = found.loops.iter().flat_map(|of| &of.path);
    let branches = branches.filter(|op| matches!(kernel.kind(**op), OpKind::IfElse {}));
    let branches = branches.filter(|op| regions::loop_around(kernel, **op).is_none());
    let skipped = follow_from_program(kernel, branches.map(|op: &Op| kernel.operand(*op, 0)).collect());
    let blocks_per_multiprocessor = if skipped && at_once > 1 { BLOCK_EACH } else { at_once };
    Persistent { blocks_per_multiprocessor, uneven: skipped && at_once == 1 }
}

/// The part of the remark about the number of blocks.
pub(crate) fn described(started: u32) -> String {
    match started {
        BLOCK_EACH => "one block per program".into(),
        1 => "1 block per SM loops over the programs".into(),
        more => format!("{more} blocks per SM loop over the programs"),
    }
}

/// Whether values depend on the program id, or on memory.
fn follow_from_program(kernel: &Kernel, work: Vec<Value>) -> bool {
    follow_from(kernel, work, &|kind| matches!(kind, OpKind::ProgramId { .. } | OpKind::Load { .. }))
}

/// Whether values depend on such an operation.
fn follow_from(kernel: &Kernel, mut work: Vec<Value>, is_source: &dyn Fn(&OpKind) -> bool) -> bool {
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        let ValueDef::Result(op, _) = kernel.value(value).def else { continue };
        if is_source(kernel.kind(op)) {
            return true;
        }
        if seen.insert(op) {
            work.extend(&kernel.op(op).operands);
        }
    }
    false
}

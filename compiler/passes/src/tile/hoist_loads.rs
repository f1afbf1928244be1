//! Hoists loads of scalars with invariant addresses out of loops over tiles. The loop is then guarded by a branch,
//! since only a loop that runs may read.
//!
//! ```text
//! while_loop (%x) ^(%i) { condition %go, (%i) } ^(%j) {      %go = ..
//!   %p = load %pointers                                  →   if_else %go ^() {
//!   for_range .. { dot .. }                                    %p = load %pointers
//! }                                                            while_loop (%x) ^(%i) { condition %go, (%i) } ^(%j) {
//!                                                                for_range .. { dot .. }
//!                                                              }
//!                                                            } ^() { }
//! ```
//!
//! Kernels for grouped matmuls load the addresses and sizes of a group from memory, and may do so for each of its
//! tiles. Values computed from them, such as tensor maps, are then known before the loop over tiles. Loads of innermost
//! loops are left alone.

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Position, Predicate, Traits, Type, ValueMap, regions, view};

use super::licm;
use crate::access::addresses::is_unchanged;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "hoist-loads", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for of in rtc_ir::walk(kernel) {
        let Some(body) = body_of_tiles(kernel, of) else { continue };
        let loads = movable(kernel, of, body);
        if loads.is_empty() || !guard(kernel, of)? {
            continue;
        }
        for load in loads {
            kernel.move_op(load, Position::Before(of));
        }
        licm::hoist(kernel, of, body);
    }
    Ok(())
}

/// The block of a loop with loops in it that each iteration goes through.
fn body_of_tiles(kernel: &Kernel, of: Op) -> Option<Block> {
    let body = match kernel.kind(of) {
        OpKind::ForRange { hints, .. } if !hints.disable_licm => kernel.op(of).blocks[0],
        OpKind::WhileLoop {} => kernel.op(of).blocks[1],
        _ => return None,
    };
    rtc_ir::walk_block(kernel, body).into_iter().any(|op| regions::is_loop(kernel.kind(op))).then_some(body)
}

/// The loads that read the same in each iteration.
fn movable(kernel: &Kernel, of: Op, body: Block) -> Vec<Op> {
    let is_load = |op: &Op| {
        matches!(kernel.kind(*op), OpKind::Load { volatile: false, .. })
            && matches!(kernel.value_type(kernel.result(*op, 0)), Type::Scalar(_))
            && kernel.op(*op).operands.iter().all(|value| regions::is_outside(kernel, *value, of))
            && is_unchanged(kernel, of, view::Load::at(kernel, *op).pointer())
    };
    kernel.ops(body).filter(is_load).collect()
}

/// Puts a loop into a branch that is taken if it has a first iteration; `false` if the condition cannot be computed
/// beforehand.
fn guard(kernel: &mut Kernel, of: Op) -> Result<bool, PassError> {
    let (runs, skipped) = match *kernel.kind(of) {
        OpKind::ForRange { unsigned, .. } => {
            let predicate = if unsigned { Predicate::Ult } else { Predicate::Lt };
            let range = view::ForRange::at(kernel, of);
            let (lower, upper) = (range.lower(), range.upper());
            let skipped = kernel.variadic(of).to_vec();
            (Builder::before(kernel, of).cmpi(lower, upper, predicate)?, skipped)
        }
        _ => {
            let first = kernel.op(of).blocks[0];
            let end = kernel.terminator(first);
            let pure = |op: Op| {
                let traits = kernel.kind(op).spec().traits;
                Some(op) == end || traits.has(Traits::PURE) && !traits.has(Traits::CONVERGENT)
            };
            if !kernel.ops(first).all(pure) {
                return Ok(false);
            }
            let args = kernel.block(first).args.iter().copied();
            let mut map: ValueMap = args.zip(kernel.variadic(of).iter().copied()).collect();
            kernel.clone_ops(first, &mut map, Position::Before(of));
            let asked =
                kernel.previous_op(of).ok_or_else(|| PassError::Internal("a loop without a condition".into()))?;
            let (runs, skipped) = (view::Condition::at(kernel, asked).go_on(), kernel.variadic(asked).to_vec());
            kernel.erase(asked);
            (runs, skipped)
        }
    };
    let results = kernel.op(of).results.to_vec();
    let types: Vec<Type> = results.iter().map(|value| kernel.value_type(*value)).collect();
    let blocks = [kernel.new_block(), kernel.new_block()];
    let branch = Builder::before(kernel, of).build(OpKind::IfElse {}, &[runs], &[], &[], &blocks, &types)?;
    for (number, result) in results.iter().enumerate() {
        let new = kernel.result(branch, number);
        kernel.replace_uses(*result, new);
    }
    let end = Builder::at_end(kernel, blocks[0]).yield_values(&results)?;
    Builder::at_end(kernel, blocks[1]).yield_values(&skipped)?;
    kernel.move_op(of, Position::Before(end));
    Ok(true)
}

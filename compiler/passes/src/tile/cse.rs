//! Common-subexpression elimination: a pure operation with the same kind, operands and types as an earlier one in scope
//! is replaced by it.
//!
//! ```text
//! %a = muli %x, %y : i32
//! %b = muli %x, %y : i32        →   uses of %b become %a
//! ```
//!
//! So is a load, unless it is volatile, if the earlier one is in the same block and everything between the two is pure or
//! loads. Lowering does not do that: loads under masks are assembly. Blocks with dots keep theirs, since how an operand is
//! brought depends on what else uses it.

use rtc_ir::{Block, CacheModifier, Kernel, Op, OpKind, Phase, Traits, Type, Value};
use rustc_hash::FxHashMap;

use crate::matrix_unit;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "cse", needs: Phase::Tile, leaves: Phase::Tile, run };

type Key = (OpKind, Vec<Value>, u8, Vec<Type>);

pub(crate) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut copies = Vec::new();
    let body = kernel.body();
    visit(kernel, body, &mut FxHashMap::default(), &mut copies);
    for copy in copies {
        kernel.erase(copy);
    }
    Ok(())
}

/// `seen` has the operations in scope; entries of a nested block are removed at its end. `copies` collects the
/// operations that were replaced.
fn visit(kernel: &mut Kernel, block: Block, seen: &mut FxHashMap<Key, Op>, copies: &mut Vec<Op>) {
    let mut added: Vec<Key> = Vec::new();
    let mut loads: FxHashMap<Key, Op> = FxHashMap::default();
    let has_dots = || rtc_ir::walk_block(kernel, block).into_iter().any(|op| matrix_unit::is_dot(kernel.kind(op)));
    let merges_loads = kernel.phase == Phase::Tile && !has_dots();
    for op in kernel.ops(block).collect::<Vec<_>>() {
        let data = kernel.op(op);
        let traits = data.kind.spec().traits;
        let loaded = is_load(&data.kind);
        if merges_loads && !only_reads(kernel, op) {
            loads.clear();
        }
        if (traits.has(Traits::PURE) || loaded && merges_loads) && data.blocks.is_empty() {
            let types = data.results.iter().map(|v| kernel.value_type(*v)).collect();
            let mut operands = data.operands.to_vec();
            if traits.has(Traits::COMMUTATIVE) {
                operands[..2].sort();
            }
            let key = (data.kind.clone(), operands, data.optional, types);
            match if loaded { loads.get(&key) } else { seen.get(&key) } {
                Some(first) => {
                    let (old, new) = (data.results.clone(), kernel.op(*first).results.clone());
                    old.iter().zip(&new).for_each(|(old, new)| kernel.replace_uses(*old, *new));
                    copies.push(op);
                }
                None if loaded => {
                    loads.insert(key, op);
                }
                None => {
                    seen.insert(key.clone(), op);
                    added.push(key);
                }
            }
        }
        for nested in kernel.op(op).blocks.clone() {
            visit(kernel, nested, seen, copies);
        }
    }
    for key in added {
        seen.remove(&key);
    }
}

/// A load that reads the same as another of the same address, as far as this thread can tell.
fn is_load(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Load { volatile: false, cache, .. } if *cache != CacheModifier::Cv)
}

/// Whether an operation and those in it compute and load, and do nothing else.
fn only_reads(kernel: &Kernel, op: Op) -> bool {
    rtc_ir::walk_op(kernel, op).into_iter().all(|op| {
        let kind = kernel.kind(op);
        kind.spec().traits.has(Traits::PURE) || is_load(kind)
    })
}

//! Common-subexpression elimination: a pure operation with the same kind, operands and types as an earlier one in scope
//! is replaced by it.
//!
//! ```text
//! %a = muli %x, %y : i32
//! %b = muli %x, %y : i32        →   uses of %b become %a
//! ```

use rtc_ir::{Block, Kernel, Op, OpKind, Phase, Traits, Type, Value};
use rustc_hash::FxHashMap;

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
    for op in kernel.ops(block).collect::<Vec<_>>() {
        let data = kernel.op(op);
        let traits = data.kind.spec().traits;
        if traits.has(Traits::PURE) && data.blocks.is_empty() {
            let types = data.results.iter().map(|v| kernel.value_type(*v)).collect();
            let mut operands = data.operands.to_vec();
            if traits.has(Traits::COMMUTATIVE) {
                operands[..2].sort();
            }
            let key = (data.kind.clone(), operands, data.optional, types);
            match seen.get(&key) {
                Some(first) => {
                    let (old, new) = (data.results.clone(), kernel.op(*first).results.clone());
                    old.iter().zip(&new).for_each(|(old, new)| kernel.replace_uses(*old, *new));
                    copies.push(op);
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

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
//!
//! And so is `map_elements`, if its block consists of the same operations as that of the earlier one: the sine and the cosine of
//! one angle reduce it once.

use rtc_ir::{Block, CacheModifier, Kernel, Op, OpKind, Phase, Traits, Type, Value};
use rustc_hash::FxHashMap;

use crate::matrix_unit;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "cse", needs: Phase::Tile, leaves: Phase::Tile, run };

/// An operation, its operands, which of the optional ones it has, the types of its results, and its blocks.
type Key = (OpKind, Vec<Value>, u8, Vec<Type>, Vec<Part>);

/// A part of a nested block, in which what the block defines has numbers: blocks that compute the same have the same parts.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Begin(Vec<Type>),
    Op(OpKind, Vec<Source>, u8, Vec<Type>),
    End,
}

/// An operand in a nested block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Around(Value),
    Inside(usize),
}

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
        let parts = match data.kind {
            OpKind::MapElements {} => parts(kernel, op),
            _ => (data.blocks.is_empty() && (traits.has(Traits::PURE) || loaded && merges_loads)).then(Vec::new),
        };
        if let Some(parts) = parts {
            let mut operands = data.operands.to_vec();
            if traits.has(Traits::COMMUTATIVE) {
                operands[..2].sort();
            }
            let key = (data.kind.clone(), operands, data.optional, types(kernel, &data.results), parts);
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

fn types(kernel: &Kernel, values: &[Value]) -> Vec<Type> {
    values.iter().map(|value| kernel.value_type(*value)).collect()
}

/// The blocks of an operation, if they only compute.
fn parts(kernel: &Kernel, op: Op) -> Option<Vec<Part>> {
    let (mut inside, mut parts) = (FxHashMap::default(), Vec::new());
    kernel.op(op).blocks.iter().try_for_each(|block| add_parts(kernel, *block, &mut inside, &mut parts))?;
    Some(parts)
}

fn add_parts(kernel: &Kernel, block: Block, inside: &mut FxHashMap<Value, usize>, parts: &mut Vec<Part>) -> Option<()> {
    let args = &kernel.block(block).args;
    parts.push(Part::Begin(types(kernel, args)));
    for arg in args {
        inside.insert(*arg, inside.len());
    }
    for op in kernel.ops(block) {
        let data = kernel.op(op);
        let traits = data.kind.spec().traits;
        if !traits.has(Traits::PURE) && !traits.has(Traits::TERMINATOR) && data.blocks.is_empty() {
            return None;
        }
        let source = |value: &Value| inside.get(value).map_or(Source::Around(*value), |number| Source::Inside(*number));
        let operands = data.operands.iter().map(source).collect();
        parts.push(Part::Op(data.kind.clone(), operands, data.optional, types(kernel, &data.results)));
        data.blocks.iter().try_for_each(|nested| add_parts(kernel, *nested, inside, parts))?;
        for result in &data.results {
            inside.insert(*result, inside.len());
        }
    }
    parts.push(Part::End);
    Some(())
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

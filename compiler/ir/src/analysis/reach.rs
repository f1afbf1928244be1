//! Through which parameters a kernel gets to global memory, and whether it reads or writes there.
//!
//! A pointer is followed from its parameter through sums, shapes, selections and nested blocks. Where it becomes something
//! else (a number, a value in memory, an operand of inline assembly), nothing is known of the memory behind it any more.

use rtc_abi::Access;

use crate::ops::effects::{self, On, Space};
use crate::{Elem, Hidden, Kernel, Op, OpKind, Type, Value, ValueDef, regions, walk};

/// The accesses of a kernel to the memory of its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// For each parameter the operations that read or write there, each once.
    pub uses: Vec<Vec<Op>>,
    /// For each parameter its accesses; `None` if they are not known.
    pub access: Vec<Option<Access>>,
    /// Why some parameters are given up: the use of their pointer.
    pub lost: Vec<Option<&'static str>>,
    /// The kernel also accesses memory by other means than parameters.
    pub elsewhere: Option<&'static str>,
}

/// The possible sources of a pointer.
#[derive(Clone, Debug, Default)]
struct Roots {
    /// Numbers of parameters.
    params: Vec<usize>,
    /// Something else, too.
    other: bool,
}

/// Follows the pointers of a kernel.
pub fn reach(kernel: &Kernel) -> Reach {
    let count = kernel.params.len();
    let mut out =
        Reach { uses: vec![Vec::new(); count], access: vec![None; count], lost: vec![None; count], elsewhere: None };
    let mut seen: Vec<[bool; 2]> = vec![[false; 2]; count];
    for op in walk(kernel) {
        for (effect, through) in kernel.effects(op).filter(|(effect, _)| effect.space == Space::Global) {
            let through = match (effect.on, kernel.kind(op)) {
                (On::Operand(_), _) => through,
                (_, OpKind::CopyDesc {} | OpKind::CopyDescStore {} | OpKind::CopyDescReduce { .. }) => {
                    kernel.op(op).operands.first().copied()
                }
                _ => None,
            };
            let Some(pointer) = through else { continue };
            let roots = roots(kernel, pointer);
            if roots.other {
                out.elsewhere.get_or_insert("the kernel uses pointers that are no arguments");
            }
            for param in roots.params {
                if !out.uses[param].contains(&op) {
                    out.uses[param].push(op);
                }
                match effect.access {
                    effects::EffectKind::Read => seen[param][0] = true,
                    effects::EffectKind::Write => seen[param][1] = true,
                    effects::EffectKind::Exchange => seen[param] = [true; 2],
                }
            }
        }
        if let OpKind::InlineAsm { pure: false, .. } = kernel.kind(op) {
            out.elsewhere.get_or_insert("the kernel has inline assembly with effects");
        }
        for (index, operand) in kernel.op(op).operands.iter().enumerate() {
            let is_pointer = matches!(kernel.value_type(*operand).elem(), Some(Elem::Ptr(_)));
            if let Some(why) = loses(kernel, op, index).filter(|_| is_pointer) {
                roots(kernel, *operand).params.into_iter().for_each(|param| out.lost[param] = Some(why));
            }
        }
    }
    for (param, [read, write]) in seen.into_iter().enumerate() {
        out.access[param] = match (read, write) {
            _ if out.lost[param].is_some() => None,
            (true, true) => Some(Access::ReadWrite),
            (false, true) => Some(Access::Write),
            // An unused parameter is not written either.
            _ => Some(Access::Read),
        };
    }
    out
}

/// The use of a pointer as operand `index` of an operation, if it cannot be followed.
fn loses(kernel: &Kernel, op: Op, index: usize) -> Option<&'static str> {
    let spec = kernel.kind(op).spec();
    let named = spec.operands.get(index);
    let through = spec.effects.iter().any(|effect| matches!(effect.on, On::Operand(name) if Some(&name) == named));
    let is_followed = through
        || passes(kernel.kind(op)).contains(&index)
        || regions::is_handed(kernel, op, index)
        || matches!(kernel.kind(op), OpKind::CmpI { .. } | OpKind::Print { .. });
    match kernel.kind(op) {
        _ if is_followed => None,
        OpKind::PtrToInt {} => Some("its address becomes a number"),
        OpKind::InlineAsm { .. } => Some("inline assembly takes it"),
        OpKind::Store { .. } | OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. } | OpKind::AtomicStore { .. } => {
            Some("it is stored to memory")
        }
        _ => Some("it is used by an operation through which it is not followed"),
    }
}

/// The operands from which an operation's pointer result comes.
fn passes(kind: &OpKind) -> &'static [usize] {
    match kind {
        OpKind::AddPtr {} | OpKind::Bitcast { .. } | OpKind::Split {} => &[0],
        kind if kind.forwards().is_some() => &[0],
        OpKind::Join {} | OpKind::Cat {} => &[0, 1],
        OpKind::Select {} => &[1, 2],
        _ => &[],
    }
}

/// The possible sources of a pointer, or of a tensor map.
fn roots(kernel: &Kernel, pointer: Value) -> Roots {
    let (mut out, mut work, mut seen) = (Roots::default(), vec![pointer], vec![pointer]);
    while let Some(value) = work.pop() {
        if let Some(number) = kernel.params.iter().position(|p| p.value == value) {
            let base = match &kernel.params[number].hidden {
                Some(Hidden::TensorMap(map)) => kernel.params.iter().position(|p| p.name == map.base),
                _ => None,
            };
            out.params.push(number);
            out.params.extend(base);
            continue;
        }
        let from: Vec<Value> = match kernel.value(value).def {
            ValueDef::Result(op, _) if !passes(kernel.kind(op)).is_empty() => {
                passes(kernel.kind(op)).iter().map(|index| kernel.op(op).operands[*index]).collect()
            }
            _ => regions::sources(kernel, value).to_vec(),
        };
        let is_place = |v: &Value| {
            matches!(kernel.value_type(*v), Type::Desc(_)) || matches!(kernel.value_type(*v).elem(), Some(Elem::Ptr(_)))
        };
        out.other |= from.is_empty() || !from.iter().all(is_place);
        for value in from {
            if is_place(&value) && !seen.contains(&value) {
                seen.push(value);
                work.push(value);
            }
        }
    }
    out
}

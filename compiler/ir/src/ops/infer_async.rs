//! Type rules of asynchronous operations, and of products with operands in shared memory.

use super::InferContext;
use super::infer::{Inferred, expect, one};
use crate::wgmma::{mma_elements, operand_shape};
use crate::{Elem, OpKind, Type};

/// A tile or buffer `[M, K]`, a buffer `[K, N]` and a tile `[M, N]`, which is the result's type; `use_acc` is an `i1`.
pub(super) fn mma(cx: &InferContext<'_>) -> Inferred {
    let [lhs, rhs, acc, ..] = cx.operands else { return Err("needs three operands".into()) };
    for buffer in [lhs, rhs].into_iter().filter_map(|ty| ty.as_shared()) {
        expect(buffer.slots == 1, || format!("{} has {} slots; take one of them", Type::Shared(buffer), buffer.slots))?;
    }
    let shapes = [operand_shape(*lhs), rhs.as_shared().map(|b| b.shape), acc.shape()];
    let [Some(a), Some(b), Some(c)] = shapes else { return Err(format!("no product of {lhs} and {rhs} into {acc}")) };
    let fits = [a, b, c].iter().all(|s| s.rank() == 2 && s.iter().all(|d| d.is_power_of_two()))
        && a[1] == b[0]
        && c[..] == [a[0], b[1]];
    expect(fits, || format!("shapes {a}, {b}, {c} do not fit"))?;
    let scalars = [lhs, rhs, acc].map(|ty| ty.elem().and_then(Elem::num));
    let known = matches!(scalars, [Some(l), Some(r), Some(c)] if mma_elements(l, r, c));
    expect(known, || format!("no product of {lhs} and {rhs} into {acc}"))?;
    if let Some(flag) = cx.optional(0) {
        expect(flag == Type::Scalar(Elem::I1), || format!("`use_acc` is {flag}, not i1"))?;
    }
    let is_async = !matches!(cx.kind, OpKind::Mma {});
    expect(!is_async || acc.elem().is_some_and(|elem| elem.bits() == 32), || {
        format!("an accumulator under way has elements of 32 bits, not {acc}")
    })?;
    one(*acc)
}

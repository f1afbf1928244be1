//! Operations executed for iterations that a loop may not have.

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Predicate, Type, Value, constant_bits, view};

use super::Place;
use crate::PassError;

/// Whether the loop `of` has an iteration `more` beyond its first one, `lower`.
pub(super) fn has_iteration(
    kernel: &mut Kernel,
    of: Op,
    place: Place,
    lower: Value,
    more: i64,
) -> Result<Value, PassError> {
    let (upper, less) = (view::ForRange::at(kernel, of).upper(), less(kernel, of));
    if more == 0 {
        return Ok(place.builder(kernel).cmpi(lower, upper, less)?);
    }
    let distance = constant(kernel, of, more)?;
    let mut builder = place.builder(kernel);
    let begins = builder.cmpi(lower, upper, less)?;
    let left = builder.subi(upper, lower)?;
    let goes_on = builder.cmpi(left, distance, Predicate::Ugt)?;
    Ok(builder.andi(begins, goes_on)?)
}

/// Whether the loop `of` has an iteration `more` beyond one that it has. The sum itself might overflow.
pub(super) fn goes_on(kernel: &mut Kernel, of: Op, place: Place, index: Value, more: i64) -> Result<Value, PassError> {
    let upper = view::ForRange::at(kernel, of).upper();
    let more = constant(kernel, of, more)?;
    let mut builder = place.builder(kernel);
    let left = builder.subi(upper, index)?;
    Ok(builder.cmpi(left, more, Predicate::Ugt)?)
}

/// A distance of iterations, before the loop.
fn constant(kernel: &mut Kernel, of: Op, more: i64) -> Result<Value, PassError> {
    let ty = kernel.value_type(view::ForRange::at(kernel, of).step());
    Ok(Builder::before(kernel, of).constant_of(Literal::Int(more), ty)?)
}

/// The comparison of a loop's index with its upper bound.
pub(super) fn less(kernel: &Kernel, of: Op) -> Predicate {
    match kernel.kind(of) {
        OpKind::ForRange { unsigned: true, .. } => Predicate::Ult,
        _ => Predicate::Lt,
    }
}

/// Whether an operation may be executed for an iteration that does not exist, if [`mask`] is applied to it.
pub(super) fn is_maskable(kernel: &Kernel, op: Op) -> bool {
    match kernel.kind(op) {
        OpKind::Load { volatile, .. } => !volatile,
        OpKind::CopyAsync { .. } | OpKind::CopyGroup {} | OpKind::ConvertLayout {} => true,
        _ => kernel.only_computes(op),
    }
}

/// Lets an operation do nothing unless its iteration `runs`: nothing is read or copied, and divisors are 1, as a division by
/// zero is undefined even if the quotient is unused.
pub(super) fn mask(kernel: &mut Kernel, op: Op, runs: Value) -> Result<(), PassError> {
    match kernel.kind(op) {
        OpKind::Load { .. } | OpKind::CopyAsync { .. } => {
            let ty = kernel.value_type(kernel.operand(op, 0));
            let own = kernel.mask(op);
            let everywhere = fill(kernel, op, runs, ty)?;
            let mask = match own {
                Some(own) => Builder::before(kernel, op).andi(own, everywhere)?,
                None => everywhere,
            };
            kernel.set_optional(op, 0, mask);
        }
        OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {} => {
            let divisor = kernel.operand(op, 1);
            if constant_bits(kernel, divisor).is_none_or(|bits| bits == 0) {
                let ty = kernel.value_type(divisor);
                let one = Builder::before(kernel, op).constant_of(Literal::Int(1), ty)?;
                let runs = fill(kernel, op, runs, ty)?;
                let divisor = Builder::before(kernel, op).select(runs, divisor, one)?;
                kernel.set_operand(op, 1, divisor);
            }
        }
        _ => {}
    }
    Ok(())
}

/// A condition in each place of a tile of type `ty`.
fn fill(kernel: &mut Kernel, before: Op, condition: Value, ty: Type) -> Result<Value, PassError> {
    if ty.shape().is_none() {
        return Ok(condition);
    }
    Ok(Builder::before(kernel, before).splat_to(condition, ty.with_elem(Elem::I1))?)
}

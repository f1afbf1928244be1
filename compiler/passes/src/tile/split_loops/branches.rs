//! Masks of scores under a branch, where the loop stays one: its dots overlap from the first iteration to the last.
//!
//! ```text
//! for_range 0, %n, 128 ^(%i) {             %full = ..  as where a loop is split
//!   %s = dot %q, %k                        for_range 0, %n, 128 ^(%i) {
//!   %m = cmpi %rows, %i + arange ge    →     %s = dot %q, %k
//!   %t = select %m, %s, %other               %t = if_else %i < %full { yields %s }
//! }                                                ^() { %m = ..;  yields select %m, %s, %other }
//!                                          }
//! ```
//!
//! Two loops cost attention the time in which the dots of the first loop end and those of the second begin with nothing beside
//! them, once for each program; a branch costs each iteration two instructions.
//!
//! Scores that are scaled before the selection are scaled behind it, so that the scaling can still be fused with the subtraction
//! of the maximum in iterations without masks: `select %m, %x * %c, -inf` is `(select %m, %x, -inf) * %c` for a positive, finite
//! factor. For any other factor the scores are multiplied under a branch, and then by one.

use std::collections::HashSet;

use rtc_ir::{
    Builder, Elem, Kernel, Literal, Op, OpKind, Position, Predicate, Traits, Type, Value, ValueMap, constant_bits, view,
};

use super::guards::{add_masks, selects_many};
use super::{SplitPlan, middle};
use crate::access::addresses::loads_of_dots;
use crate::access::specializable::may_specialize;
use crate::dependence::DotDependences;
use crate::pass::missing;
use crate::{PassContext, PassError};

/// Whether the dots of a loop will likely overlap with those of the next iteration, and its selections can be put under a branch
/// at no cost in iterations without masks.
pub(super) fn suits(kernel: &Kernel, cx: &PassContext, op: Op, plan: &SplitPlan) -> Result<bool, PassError> {
    let body = kernel.op(op).blocks[0];
    let is_cheap = |select: Op| {
        let sides = view::Select::at(kernel, select);
        let chosen = kernel.def_op(sides.lhs());
        let is_bias =
            chosen.is_some_and(|made| matches!(kernel.kind(made), OpKind::Constant { .. } | OpKind::Splat {}));
        let is_product = chosen.is_some_and(|made| matches!(kernel.kind(made), OpKind::MulF {}));
        !is_bias && (!is_product || Scaled::of(kernel, select).is_some())
    };
    let mut selects =
        kernel.ops(body).filter(|inner| selects_many(kernel, *inner) && is_by_masks(kernel, *inner, plan));
    let suits = DotDependences::of(kernel, body).are_chained() && selects.all(is_cheap);
    Ok(suits && may_specialize(kernel, cx, &loads_of_dots(kernel, op))?)
}

/// Scores that are scaled and then replaced by minus infinity where a mask is false.
struct Scaled {
    scores: Value,
    /// The factor, as a tile, and its scalar if it is no positive constant.
    by: Value,
    unknown: Option<Value>,
}

impl Scaled {
    fn of(kernel: &Kernel, select: Op) -> Option<Scaled> {
        let sides = view::Select::at(kernel, select);
        let infinite = u64::from(f32::NEG_INFINITY.to_bits());
        let is_single = kernel.value_type(sides.lhs()).elem() == Some(Elem::F32);
        let is_infinite = constant_bits(kernel, sides.rhs()) == Some(infinite);
        (is_single && is_infinite && kernel.users(sides.lhs()) == [select]).then_some(())?;
        let product = view::MulF::defining(kernel, sides.lhs())?;
        [(product.lhs(), product.rhs()), (product.rhs(), product.lhs())].into_iter().find_map(|(scores, by)| {
            let unknown = match constant_bits(kernel, by).map(|bits| f32::from_bits(bits as u32)) {
                Some(factor) => (factor > 0.0 && factor.is_finite()).then_some(None)?,
                None => Some(view::Splat::defining(kernel, by)?.scalar()),
            };
            Some(Scaled { scores, by, unknown })
        })
    }

    /// The scores, and what they are to be multiplied by after the selection: a positive number.
    fn split(&self, kernel: &mut Kernel, select: Op) -> Result<[Value; 2], PassError> {
        let Some(factor) = self.unknown else { return Ok([self.scores, self.by]) };
        let (scalar, ty) = (Type::Scalar(Elem::F32), kernel.value_type(self.scores));
        let blocks = [kernel.new_block(), kernel.new_block()];
        let mut builder = Builder::before(kernel, select);
        let [zero, one, infinity] =
            [0.0, 1.0, f64::INFINITY].map(|number| builder.constant_of(Literal::float(number), scalar));
        let above = builder.cmpf(factor, zero?, Predicate::Gt)?;
        let below = builder.cmpf(factor, infinity?, Predicate::Lt)?;
        let is_positive = builder.andi(above, below)?;
        let positive = builder.select(is_positive, factor, one?)?;
        let by = builder.splat_to(positive, ty)?;
        let branch = builder.build(OpKind::IfElse {}, &[is_positive], &[], &[], &blocks, &[ty])?;
        Builder::at_end(kernel, blocks[0]).yield_values(&[self.scores])?;
        let mut builder = Builder::at_end(kernel, blocks[1]);
        let scaled = builder.mulf(self.scores, self.by)?;
        builder.yield_values(&[scaled])?;
        Ok([kernel.result(branch, 0), by])
    }
}

/// Puts the selections by the masks of a plan under a branch; false if its bounds do not allow it.
pub(super) fn apply(kernel: &mut Kernel, op: Op, plan: &SplitPlan) -> Result<bool, PassError> {
    let Some(full) = middle(&mut Builder::before(kernel, op), plan)? else { return Ok(false) };
    let body = kernel.op(op).blocks[0];
    let index = kernel.block(body).args[0];
    let Some(start) = kernel.first_op(body) else { return Ok(false) };
    let holds = Builder::before(kernel, start).cmpi(index, full, Predicate::Lt)?;
    let ops: Vec<Op> = kernel.ops(body).collect();
    for (place, select) in ops.iter().enumerate() {
        if selects_many(kernel, *select) && is_by_masks(kernel, *select, plan) {
            let makers = makers(kernel, &ops[..place], view::Select::at(kernel, *select).condition());
            put_under_branch(kernel, *select, &makers, holds)?;
        }
    }
    Ok(true)
}

/// Whether a selection takes the first operand wherever the masks of a plan hold.
fn is_by_masks(kernel: &Kernel, select: Op, plan: &SplitPlan) -> bool {
    let mut masks = Vec::new();
    add_masks(kernel, view::Select::at(kernel, select).condition(), &mut masks);
    masks.iter().all(|mask| plan.guards.iter().any(|guard| guard.holds && guard.mask == *mask))
}

/// Those of some operations, in program order, that a condition is computed by.
fn makers(kernel: &Kernel, ops: &[Op], condition: Value) -> Vec<Op> {
    let mut needed = HashSet::from([condition]);
    let mut makers = Vec::new();
    for op in ops.iter().rev().filter(|op| kernel.kind(**op).spec().traits.has(Traits::PURE)) {
        if kernel.op(*op).results.iter().any(|value| needed.contains(value)) {
            needed.extend(&kernel.op(*op).operands);
            makers.push(*op);
        }
    }
    makers.reverse();
    makers
}

fn put_under_branch(kernel: &mut Kernel, select: Op, makers: &[Op], holds: Value) -> Result<(), PassError> {
    let result = kernel.result(select, 0);
    let scaled = Scaled::of(kernel, select).map(|scaled| scaled.split(kernel, select)).transpose()?;
    if let Some([scores, by]) = scaled {
        kernel.set_operand(select, 1, scores);
        let product = Builder::after(kernel, select).mulf(result, by)?;
        kernel.replace_uses(result, product);
        let product = kernel.def_op(product).ok_or_else(|| missing("a product"))?;
        kernel.set_operand(product, 0, result);
    }
    let whole = view::Select::at(kernel, select).lhs();
    let blocks = [kernel.new_block(), kernel.new_block()];
    let ty = kernel.value_type(result);
    let mut builder = Builder::before(kernel, select);
    let branch = builder.build(OpKind::IfElse {}, &[holds], &[], &[], &blocks, &[ty])?;
    kernel.replace_uses(result, kernel.result(branch, 0));
    Builder::at_end(kernel, blocks[0]).yield_values(&[whole])?;
    let mut map = ValueMap::new();
    for maker in makers {
        let copy = kernel.clone_whole(*maker, &mut map);
        kernel.insert_op(copy, Position::End(blocks[1]));
    }
    let chosen = kernel.clone_whole(select, &mut map);
    kernel.insert_op(chosen, Position::End(blocks[1]));
    let chosen = kernel.result(chosen, 0);
    Builder::at_end(kernel, blocks[1]).yield_values(&[chosen])?;
    kernel.erase(select);
    Ok(())
}

//! Takes the greatest (or least) value of a row before it is multiplied by a positive number, as in the scores of attention:
//! one multiplication for each row instead of one for each element. Rounding keeps the order of products, so that the result
//! has the same bits.
//!
//! ```text
//! %s = mulf %x, %c                   %p = %c > 0 and %c < inf
//! %m = reduce maxnum (%s)            %m = if_else %p ^() { %r = reduce maxnum (%x);  yields (%r * %c) }
//! %d = subf %s, %b             →              ^() { %s = mulf %x, %c;  %r = reduce maxnum (%s);  yields (%r) }
//!                                    %d = fma %x, %c, -%b
//! ```
//!
//! With a constant factor there is no branch. The products must be used by sums and differences alone, which become fused
//! operations; otherwise the multiplications would stay. That is where the option `enable_fp_fusion` allows it. The pass runs
//! when no pass before it would have to look into the branch.

use rtc_ir::{
    Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Predicate, Type, Value, ValueMap, constant_bits, view,
};

use crate::pass::missing;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "scale-maxima", needs: Phase::Laid, leaves: Phase::Laid, run };

/// A thread has at least so many times more elements than results.
const LEAST: u32 = 8;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    if !kernel.options.fp_fusion {
        return Ok(());
    }
    let found: Vec<ScaledMaximum> =
        rtc_ir::walk(kernel).into_iter().filter_map(|op| ScaledMaximum::of(kernel, op)).collect();
    for maximum in found {
        let product = maximum.product;
        maximum.replace(kernel)?;
        kernel.erase(product);
    }
    Ok(())
}

/// The maximum (or minimum) of products with a number.
struct ScaledMaximum {
    reduce: Op,
    product: Op,
    /// The factor that has elements, and the one that is the same for all.
    of: Value,
    by: Value,
    /// The scalar of `by`, if it is not a positive constant.
    unknown: Option<Value>,
    /// The sums and differences that use the products.
    users: Vec<Op>,
}

impl ScaledMaximum {
    fn of(kernel: &Kernel, reduce: Op) -> Option<ScaledMaximum> {
        let OpKind::Reduce { .. } = kernel.kind(reduce) else { return None };
        let [source] = kernel.variadic(reduce)[..] else { return None };
        (kernel.value_type(source).elem() == Some(Elem::F32) && is_extremum(kernel, reduce)).then_some(())?;
        let registers = |value| kernel.layout_of(value).map_or(1, |layout| layout.registers());
        (registers(source) >= LEAST * registers(kernel.result(reduce, 0))).then_some(())?;

        let product = kernel.def_op(source)?;
        let sides = view::MulF::of(kernel, product)?;
        let (of, by, scalar) = match (same_for_all(kernel, sides.rhs()), same_for_all(kernel, sides.lhs())) {
            (Some(scalar), _) => (sides.lhs(), sides.rhs(), scalar),
            (None, Some(scalar)) => (sides.rhs(), sides.lhs(), scalar),
            (None, None) => return None,
        };
        let unknown = match constant_bits(kernel, by).map(|bits| f32::from_bits(bits as u32)) {
            Some(factor) => (factor > 0.0 && factor.is_finite()).then_some(None)?,
            None => Some(scalar?),
        };
        let users: Vec<Op> = kernel.users(source).into_iter().filter(|user| *user != reduce).collect();
        users.iter().all(|user| adds(kernel, *user, source).is_some()).then_some(())?;
        Some(ScaledMaximum { reduce, product, of, by, unknown, users })
    }

    fn replace(self, kernel: &mut Kernel) -> Result<(), PassError> {
        let (source, result) = (kernel.result(self.product, 0), kernel.result(self.reduce, 0));
        for user in &self.users {
            let fused = self.fused(kernel, *user, source)?;
            kernel.replace_op(*user, fused);
        }
        let mut map: ValueMap = [(source, self.of)].into_iter().collect();
        let unscaled = kernel.clone_whole(self.reduce, &mut map);
        let Some(factor) = self.unknown.filter(|factor| !is_positive(kernel, *factor)) else {
            kernel.insert_op(unscaled, rtc_ir::Position::Before(self.reduce));
            let scaled = scaled(&mut Builder::after(kernel, unscaled), unscaled, self.by, self.unknown)?;
            kernel.replace_uses(result, scaled);
            kernel.erase(self.reduce);
            return Ok(());
        };
        let blocks = [kernel.new_block(), kernel.new_block()];
        let mut builder = Builder::before(kernel, self.reduce);
        let scalar = Type::Scalar(Elem::F32);
        let (zero, infinity) = (
            builder.constant_of(Literal::float(0.0), scalar)?,
            builder.constant_of(Literal::float(f64::INFINITY), scalar)?,
        );
        let (above, below) =
            (builder.cmpf(factor, zero, Predicate::Gt)?, builder.cmpf(factor, infinity, Predicate::Lt)?);
        let is_positive = builder.andi(above, below)?;
        let ty = builder.kernel().value_type(result);
        let branch = builder.build(OpKind::IfElse {}, &[is_positive], &[], &[], &blocks, &[ty])?;
        kernel.replace_uses(result, kernel.result(branch, 0));

        kernel.insert_op(unscaled, rtc_ir::Position::End(blocks[0]));
        let value = scaled(&mut Builder::at_end(kernel, blocks[0]), unscaled, self.by, Some(factor))?;
        Builder::at_end(kernel, blocks[0]).yield_values(&[value])?;
        let ty = kernel.value_type(source);
        let own = kernel.clone_op(self.product, &[self.of, self.by], &[ty]);
        kernel.insert_op(own, rtc_ir::Position::End(blocks[1]));
        let mut map: ValueMap = [(source, kernel.result(own, 0))].into_iter().collect();
        let plain = kernel.clone_whole(self.reduce, &mut map);
        kernel.insert_op(plain, rtc_ir::Position::End(blocks[1]));
        let value = kernel.result(plain, 0);
        Builder::at_end(kernel, blocks[1]).yield_values(&[value])?;
        kernel.erase(self.reduce);
        Ok(())
    }

    /// A sum or difference of the products, fused.
    fn fused(&self, kernel: &mut Kernel, user: Op, source: Value) -> Result<Value, PassError> {
        let Sum { other, product_is_negative, other_is_negative } =
            adds(kernel, user, source).ok_or_else(|| missing("a sum"))?;
        let mut builder = Builder::before(kernel, user);
        let by = if product_is_negative { builder.negf(self.by)? } else { self.by };
        let other = if other_is_negative { builder.negf(other)? } else { other };
        Ok(builder.fma(self.of, by, other)?)
    }
}

/// Whether a scalar is chosen so that it is positive and finite: `select %c > 0 and %c < inf, %c, 1`.
fn is_positive(kernel: &Kernel, scalar: Value) -> bool {
    let Some(chosen) = view::Select::defining(kernel, scalar) else { return false };
    let bounds = view::AndI::defining(kernel, chosen.condition()).map(|both| [both.lhs(), both.rhs()]);
    let holds = |side: Value, than: f32, kind: Predicate| {
        let sides = view::CmpF::defining(kernel, side);
        sides.is_some_and(|sides| {
            sides.lhs() == chosen.lhs()
                && constant_bits(kernel, sides.rhs()) == Some(u64::from(than.to_bits()))
                && matches!(kernel.def_op(side).map(|op| kernel.kind(op)), Some(OpKind::CmpF { predicate }) if *predicate == kind)
        })
    };
    let other = constant_bits(kernel, chosen.rhs()).map(|bits| f32::from_bits(bits as u32));
    bounds.is_some_and(|[above, below]| holds(above, 0.0, Predicate::Gt) && holds(below, f32::INFINITY, Predicate::Lt))
        && other.is_some_and(|other| other > 0.0 && other.is_finite())
}

/// The results of a reduction times a number.
fn scaled(builder: &mut Builder<'_>, reduce: Op, by: Value, factor: Option<Value>) -> Result<Value, PassError> {
    let value = builder.kernel().result(reduce, 0);
    let ty = builder.kernel().value_type(value);
    let by = match (factor, constant_bits(builder.kernel(), by)) {
        (Some(factor), _) if ty.shape().is_none() => factor,
        (Some(factor), _) => builder.splat_to(factor, ty)?,
        (None, Some(bits)) => builder.constant_of(Literal::float(f32::from_bits(bits as u32).into()), ty)?,
        (None, None) => return Err(missing("a factor")),
    };
    Ok(builder.mulf(value, by)?)
}

/// Whether a reduction takes the greatest or the least value.
fn is_extremum(kernel: &Kernel, reduce: Op) -> bool {
    let ops: Vec<Op> = kernel.ops(kernel.op(reduce).blocks[0]).collect();
    let [only, end] = ops[..] else { return false };
    let takes =
        matches!(kernel.kind(only), OpKind::MaxNum {} | OpKind::MinNum {} | OpKind::Maximum {} | OpKind::Minimum {});
    takes && kernel.op(end).operands[..] == kernel.op(only).results[..]
}

/// The scalar that a tile is filled with, `None` within for a constant.
fn same_for_all(kernel: &Kernel, value: Value) -> Option<Option<Value>> {
    match kernel.kind(kernel.def_op(value)?) {
        OpKind::Constant { .. } => Some(None),
        OpKind::Splat {} => Some(Some(view::Splat::at(kernel, kernel.def_op(value)?).scalar())),
        _ => None,
    }
}

/// A sum or difference of a product and another value.
struct Sum {
    other: Value,
    product_is_negative: bool,
    other_is_negative: bool,
}

/// How an operation adds something to a product, which is one of its operands.
fn adds(kernel: &Kernel, op: Op, product: Value) -> Option<Sum> {
    let (lhs, rhs, subtracts) = match (view::AddF::of(kernel, op), view::SubF::of(kernel, op)) {
        (Some(sum), _) => (sum.lhs(), sum.rhs(), false),
        (_, Some(difference)) => (difference.lhs(), difference.rhs(), true),
        _ => return None,
    };
    match (lhs == product, rhs == product) {
        (true, false) => Some(Sum { other: rhs, product_is_negative: false, other_is_negative: subtracts }),
        (false, true) => Some(Sum { other: lhs, product_is_negative: subtracts, other_is_negative: false }),
        _ => None,
    }
}

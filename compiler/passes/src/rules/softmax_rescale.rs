//! Computes one exponential instead of two where one of both is that of zero.
//!
//! ```text
//! %m = maxnum %a, %b                 →   %m = maxnum %a, %b
//! %x = exp2 ((%a - %m) * c)              %e = exp2 (-|%a - %b| * c)
//! %y = exp2 ((%b - %m) * c)              %1 = fma %m, 0, 1
//!                                        %x = select %m == %a, %1, %e
//!                                        %y = select %m == %a, %e, %1
//! ```
//!
//! Loops that keep a running maximum and a sum of exponentials for each element do this at each step, and exponentials are
//! what they wait for: an SM makes 16 in a cycle. The results are the same bit by bit, but for the bits of a NaN:
//! the difference is the same number with the other sign, an exponential of zero is one, and an infinite maximum, for which
//! both subtractions may give NaN, makes a NaN of `%1`.

use rtc_ir::{Elem, Kernel, Literal, Op, OpKind, Predicate, Value, constant_bits, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "softmax-rescale", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::MaxNum {} | OpKind::Maximum {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some([a, b]) = rewriter.sides(op) else { return Ok(false) };
    if a == b || rewriter.value_type(a).elem() != Some(Elem::F32) {
        return Ok(false);
    }
    let (Some(of_a), Some(of_b)) = (exponential(rewriter, op, a), exponential(rewriter, op, b)) else {
        return Ok(false);
    };
    let alike = of_a.factor == of_b.factor && of_a.ftz == of_b.ftz;
    if alike {
        share(rewriter, op, [a, b], [&of_a, &of_b])?;
    }
    Ok(alike)
}

/// An exponential of a value less the maximum.
struct Exponential {
    result: Value,
    /// The bits of the constant that the difference is multiplied by.
    factor: Option<u32>,
    ftz: bool,
}

/// The exponential of `value` less what `maximum` gives, if nothing else uses the difference.
fn exponential(kernel: &Kernel, maximum: Op, value: Value) -> Option<Exponential> {
    let m = kernel.result(maximum, 0);
    let beside = |op: &Op| kernel.op(*op).parent == kernel.op(maximum).parent;
    let is_difference =
        |op: &&Op| view::SubF::of(kernel, **op).is_some_and(|sides| sides.lhs() == value && sides.rhs() == m);
    let difference = *kernel.users(m).iter().find(is_difference)?;
    let only_user = |value: Value| match kernel.users(value)[..] {
        [user] if beside(&user) => Some(user),
        _ => None,
    };
    let mut user = only_user(kernel.result(difference, 0)).filter(|_| beside(&difference))?;
    let mut factor = None;
    if let Some(product) = view::MulF::of(kernel, user) {
        factor = Some(constant_bits(kernel, product.rhs())? as u32);
        user = only_user(kernel.result(user, 0))?;
    }
    let OpKind::Exp2 { ftz } = *kernel.kind(user) else { return None };
    Some(Exponential { result: kernel.result(user, 0), factor, ftz })
}

/// Computes both with one exponential.
fn share(rewriter: &mut Rewriter<'_>, maximum: Op, [a, b]: [Value; 2], of: [&Exponential; 2]) -> Result<(), PassError> {
    let m = rewriter.result(maximum, 0);
    let ty = rewriter.value_type(m);
    let mut builder = rewriter.after(maximum);
    let difference = builder.subf(a, b)?;
    let size = builder.absf(difference)?;
    let mut power = builder.negf(size)?;
    if let Some(bits) = of[0].factor {
        let factor = builder.constant_of(Literal::float(f32::from_bits(bits).into()), ty)?;
        power = builder.mulf(power, factor)?;
    }
    let smaller = builder.exp2(power, of[0].ftz)?;
    let zero = builder.constant_of(Literal::float(0.0), ty)?;
    let one = builder.constant_of(Literal::float(1.0), ty)?;
    let larger = builder.fma(m, zero, one)?;
    let first = builder.cmpf(m, a, Predicate::Eq)?;
    let of_a = builder.select(first, larger, smaller)?;
    let of_b = builder.select(first, smaller, larger)?;
    rewriter.replace_uses(of[0].result, of_a);
    rewriter.replace_uses(of[1].result, of_b);
    Ok(())
}

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

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Predicate, Value, constant_bits, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "fold-softmax-rescale", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let is_maximum = matches!(kernel.kind(op), OpKind::MaxNum {} | OpKind::Maximum {});
        let m = if is_maximum { kernel.result(op, 0) } else { continue };
        let Some([a, b]) = kernel.sides(op) else { continue };
        if a == b || kernel.value_type(m).elem() != Some(Elem::F32) {
            continue;
        }
        let (Some(of_a), Some(of_b)) = (exponential(kernel, op, a), exponential(kernel, op, b)) else { continue };
        if of_a.factor == of_b.factor && of_a.ftz == of_b.ftz {
            rewrite(kernel, op, [&of_a, &of_b])?;
        }
    }
    Ok(())
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

fn rewrite(kernel: &mut Kernel, maximum: Op, of: [&Exponential; 2]) -> Result<(), PassError> {
    let m = kernel.result(maximum, 0);
    let missing = || PassError::Internal("a maximum without sides".into());
    let [a, b] = kernel.sides(maximum).ok_or_else(missing)?;
    let ty = kernel.value_type(m);
    let mut builder = Builder::after(kernel, maximum);
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
    kernel.replace_uses(of[0].result, of_a);
    kernel.replace_uses(of[1].result, of_b);
    Ok(())
}

//! Masks of a loop's body that hold in all places while the index of the loop is small.

use rtc_ir::{Elem, Kernel, Op, OpKind, Predicate, Type, Value, regions, view};

/// `scale * index + reach < bound`, a bound of none being 0: the mask holds everywhere while that is so.
pub(super) struct Guard {
    pub(super) mask: Value,
    pub(super) scale: i64,
    pub(super) reach: i64,
    pub(super) bound: Option<Value>,
}

/// `scale * index + r + sign * value`, `r` in `least..=most`.
#[derive(Clone, Copy, Default)]
struct GuardForm {
    scale: i64,
    least: i64,
    most: i64,
    value: Option<Value>,
}

/// The guards of a loop's body that hold in a first part of its iterations: comparisons of the index and a range of
/// numbers with a value from outside of the loop.
pub(super) fn of_loop(kernel: &Kernel, op: Op) -> Vec<Guard> {
    let body = kernel.op(op).blocks[0];
    let index = kernel.block(body).args[0];
    let from_zero = rtc_ir::constant_bits(kernel, view::ForRange::at(kernel, op).lower())
        .is_some_and(|bits| bits as u32 as i32 >= 0);
    let mut guards = Vec::new();
    for inner in kernel.ops(body) {
        let OpKind::CmpI { predicate } = kernel.kind(inner) else { continue };
        let sides = view::CmpI::at(kernel, inner);
        let (small, large) = match predicate {
            Predicate::Lt => (sides.lhs(), sides.rhs()),
            Predicate::Gt => (sides.rhs(), sides.lhs()),
            _ => continue,
        };
        let side = |value: Value| form(kernel, value, index, op);
        let (Some(small), Some(large)) = (side(small), side(large)) else { continue };
        // The bound is a value minus a constant, or a constant; an addition to a value could overflow.
        if small.value.is_some() || large.value.is_some() && large.least > 0 {
            continue;
        }
        let scale = small.scale - large.scale;
        // In 32 bits the sides are what they are without them: they lie between 0 and the bound. (A scale of one needs no
        // start from zero on the side of the range: from the least integer on, the sum with a number that is not negative
        // fits up to the bound.)
        let fits = small.least >= 0 && (from_zero || (small.scale == 1 && large.scale == 0));
        if scale > 0 && small.scale >= 0 && large.scale <= 0 && fits {
            guards.push(Guard {
                mask: kernel.result(inner, 0),
                scale,
                reach: small.most - large.least,
                bound: large.value,
            });
        }
    }
    guards
}

/// A 32-bit integer or a tile of them as a linear form of the loop's index; `None` if it is not one.
fn form(kernel: &Kernel, value: Value, index: Value, of: Op) -> Option<GuardForm> {
    if value == index {
        return Some(GuardForm { scale: 1, ..GuardForm::default() });
    }
    if kernel.value_type(value).elem() != Some(Elem::I32) {
        return None;
    }
    if let Some(bits) = rtc_ir::constant_bits(kernel, value) {
        let number = i64::from(bits as u32 as i32);
        return Some(GuardForm { least: number, most: number, ..GuardForm::default() });
    }
    if let Type::Scalar(_) = kernel.value_type(value)
        && regions::is_outside(kernel, value, of)
    {
        return Some(GuardForm { value: Some(value), ..GuardForm::default() });
    }
    let op = kernel.def_op(value)?;
    let side = |at: usize| form(kernel, kernel.operand(op, at), index, of);
    match kernel.kind(op) {
        kind if kind.forwards().is_some() => side(0),
        OpKind::Arange { start, end } => Some(GuardForm { least: *start, most: end - 1, ..GuardForm::default() }),
        OpKind::AddI {} => side(0)?.plus(side(1)?, 1),
        OpKind::SubI {} => side(0)?.plus(side(1)?, -1),
        OpKind::MulI {} => side(0)?.times(side(1)?).or_else(|| side(1)?.times(side(0)?)),
        _ => None,
    }
}

impl GuardForm {
    fn plus(self, other: GuardForm, sign: i64) -> Option<GuardForm> {
        let (least, most) = if sign > 0 { (other.least, other.most) } else { (-other.most, -other.least) };
        let value = match (self.value, other.value) {
            (value, None) => value,
            (None, value) if sign > 0 => value,
            _ => return None,
        };
        Some(GuardForm {
            scale: self.scale.checked_add(sign * other.scale)?,
            least: self.least.checked_add(least)?,
            most: self.most.checked_add(most)?,
            value,
        })
    }

    /// The dot with a constant that is not negative.
    fn times(self, constant: GuardForm) -> Option<GuardForm> {
        let factor = constant.least;
        let is_constant = constant.scale == 0 && constant.value.is_none() && constant.most == factor && factor >= 0;
        if !is_constant || self.value.is_some() {
            return None;
        }
        Some(GuardForm {
            scale: self.scale.checked_mul(factor)?,
            least: self.least.checked_mul(factor)?,
            most: self.most.checked_mul(factor)?,
            value: None,
        })
    }
}

//! Quotients and remainders by a loop-invariant divisor: the part that depends on the divisor alone is hoisted.
//!
//! ```text
//!                                    %r = divui 2^32 - 1, (maxui %d, 1)
//! for_range .. {                     for_range .. {
//!   %q = divui %x, %d                  %below = mulhui %x, %r
//!   ..                          →      %rest = subi %x, (muli %below, %d)
//! }                                    %q = select (cmpi %rest, %d {uge}), (addi %below, 1), %below
//!                                      ..
//!                                    }
//! ```
//!
//! With `r` the whole part of `(2^n - 1) / d`, `x * r / 2^n` is less than `x / d` by less than one for all `x` below
//! `2^n`: the high half of the product is the quotient or one less, which the remainder decides. Signed operands use
//! their absolute values, the greatest of which is such an `x`, and the sign of the result. NVIDIA's assembler divides
//! by a reciprocal of `f32`, which it leaves in loops of any size, and corrects twice.
//!
//! Only in innermost loops: around others the reciprocal would hold registers for a division that is rare. A divisor of
//! zero is possible only if the loop does not run, so the reciprocal is then that of one.

use std::cell::LazyCell;
use std::collections::HashMap;

use rtc_ir::analysis::Ranges;
use rtc_ir::{
    Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Predicate, Type, Value, ValueDef, constant_bits, regions,
};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "invariant-divisors", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let found: Vec<Division> = {
        // Few kernels have such a division.
        let ranges = LazyCell::new(|| Ranges::new(kernel));
        let is_natural = |value| ranges.of(value).low >= 0;
        rtc_ir::walk(kernel).into_iter().filter_map(|op| Division::of(kernel, op, &is_natural)).collect()
    };
    let mut made: HashMap<(Op, Type, Value, bool), Divisor> = HashMap::new();
    for division in found {
        let ty = kernel.value_type(kernel.result(division.op, 0));
        let key = (division.before, ty, division.divisor, division.absolute());
        let divisor = match made.get(&key) {
            Some(divisor) => *divisor,
            None => *made.entry(key).or_insert(Divisor::before(kernel, &division, ty)?),
        };
        let result = division.written_out(kernel, divisor, ty)?;
        kernel.replace_op(division.op, result);
    }
    Ok(())
}

/// A quotient or a remainder in a loop.
struct Division {
    op: Op,
    /// The number by which all elements are divided.
    divisor: Value,
    /// The outermost loop that the divisor comes from outside of.
    before: Op,
    /// Whether the remainder is used.
    remainder: bool,
    /// Whether the dividend and the divisor may be negative.
    signs: [bool; 2],
}

impl Division {
    fn of(kernel: &Kernel, op: Op, is_natural: &impl Fn(Value) -> bool) -> Option<Division> {
        let (signed, remainder) = match kernel.kind(op) {
            OpKind::DivSI {} => (true, false),
            OpKind::RemSI {} => (true, true),
            OpKind::DivUI {} => (false, false),
            OpKind::RemUI {} => (false, true),
            _ => return None,
        };
        let given = kernel.operand(op, 1);
        let divisor = scalar(kernel, given)?;
        let is_wide = matches!(kernel.value_type(divisor).elem(), Some(Elem::I32 | Elem::I64));
        if !is_wide || constant_bits(kernel, divisor).is_some() {
            return None;
        }
        let before = loop_without(kernel, op, divisor)?;
        let signs = [kernel.operand(op, 0), divisor].map(|value| signed && !is_natural(value));
        Some(Division { op, divisor, before, remainder, signs })
    }

    /// Whether the divisor is needed without its sign.
    fn absolute(&self) -> bool {
        self.signs[1]
    }

    /// The result, from operations before the division.
    fn written_out(&self, kernel: &mut Kernel, divisor: Divisor, ty: Type) -> Result<Value, PassError> {
        let given = [0, 1].map(|place| kernel.operand(self.op, place));
        let mut builder = Builder::before(kernel, self.op);
        let dividend = if self.signs[0] { builder.absi(given[0])? } else { given[0] };
        let below = builder.mulhui(dividend, divisor.reciprocal)?;
        let product = builder.muli(below, divisor.magnitude)?;
        let rest = builder.subi(dividend, product)?;
        let is_less = builder.cmpi(rest, divisor.magnitude, Predicate::Uge)?;
        let (now, other) = if self.remainder {
            (rest, builder.subi(rest, divisor.magnitude)?)
        } else {
            let one = builder.constant_of(Literal::Int(1), ty)?;
            (below, builder.addi(below, one)?)
        };
        let result = builder.select(is_less, other, now)?;
        // A remainder has the sign of the dividend.
        let sign = match self.signs {
            [true, true] if !self.remainder => builder.xori(given[0], given[1])?,
            [true, _] => given[0],
            [false, true] if !self.remainder => given[1],
            _ => return Ok(result),
        };
        let zero = builder.constant_of(Literal::Int(0), ty)?;
        let is_negative = builder.cmpi(sign, zero, Predicate::Lt)?;
        let negative = builder.subi(zero, result)?;
        Ok(builder.select(is_negative, negative, result)?)
    }
}

/// The hoisted values of divisions by a number.
#[derive(Clone, Copy)]
struct Divisor {
    magnitude: Value,
    reciprocal: Value,
}

impl Divisor {
    /// Puts it before the loop, each as a tile where the division is one of tiles.
    fn before(kernel: &mut Kernel, division: &Division, ty: Type) -> Result<Divisor, PassError> {
        let mut builder = Builder::before(kernel, division.before);
        let scalar = builder.kernel().value_type(division.divisor);
        let magnitude = if division.absolute() { builder.absi(division.divisor)? } else { division.divisor };
        let one = builder.constant_of(Literal::Int(1), scalar)?;
        let all = builder.constant_of(Literal::Int(-1), scalar)?;
        let nonzero = builder.maxui(magnitude, one)?;
        let reciprocal = builder.divui(all, nonzero)?;
        if ty.shape().is_none() {
            return Ok(Divisor { magnitude, reciprocal });
        }
        Ok(Divisor { magnitude: builder.splat_to(magnitude, ty)?, reciprocal: builder.splat_to(reciprocal, ty)? })
    }
}

/// The number that a value is, or that a tile is filled with.
fn scalar(kernel: &Kernel, mut value: Value) -> Option<Value> {
    while kernel.value_type(value).shape().is_some() {
        let op = kernel.def_op(value)?;
        match kernel.kind(op) {
            OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ExpandDims { .. } | OpKind::ConvertLayout {} => {
                value = kernel.operand(op, 0);
            }
            _ => return None,
        }
    }
    Some(value)
}

/// The outermost loop around an operation in which a value is invariant, if the operation's own loop contains no other.
/// Operations in functions or partitions are left alone.
fn loop_without(kernel: &Kernel, op: Op, value: Value) -> Option<Op> {
    let home = match kernel.value(value).def {
        ValueDef::Result(op, _) => kernel.op(op).parent?,
        ValueDef::Arg(block, _) => block,
    };
    let (mut at, mut found) = (op, None);
    loop {
        let block = kernel.op(at).parent?;
        let Some(around) = kernel.block(block).parent.filter(|_| block != home) else { return found };
        match kernel.kind(around) {
            kind if regions::is_loop(kind) => {
                if found.is_none() && regions::has_loops(kernel, around) {
                    return None;
                }
                found = Some(around);
            }
            OpKind::IfElse {} => {}
            _ => return found,
        }
        at = around;
    }
}

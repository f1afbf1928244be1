//! Tiles of indices that a loop advances by a number are computed of a number that the loop carries.
//!
//! ```text
//! %t0 = addi splat(%start), arange(0, 64)             for_range .., (%start) ^(%i, %s) {
//! for_range .., (%t0) ^(%i, %t) {                 →     %t = addi arange(0, 64), splat(%s)
//!   %next = addi %t, splat(%by)                         %sum = addi %s, %by
//!   yields (%next) }                                    yields (%sum) }
//! ```
//!
//! A carried tile takes registers in the whole loop, as many as a thread has columns in the layout of a dot: 32 for 128
//! keys of an attention kernel that goes from one listed block to another. Only tiles whose start is computed of `arange`:
//! others would take as many registers before the loop.

use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Type, Value, constant_bits, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "carry-offsets", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for of in rtc_ir::walk(kernel) {
        if !matches!(kernel.kind(of), OpKind::ForRange { .. }) {
            continue;
        }
        let carried = kernel.op(of).results.len();
        let found: Vec<Advance> = (0..carried).filter_map(|number| Advance::of(kernel, of, number)).collect();
        for advance in found {
            advance.apply(kernel, of)?;
        }
    }
    Ok(())
}

/// A carried tile that each iteration adds a number to.
struct Advance {
    /// Which of the carried values.
    number: usize,
    /// The sum.
    next: Op,
    /// What is added.
    by: Number,
}

/// A number that all elements of a tile are.
#[derive(Clone, Copy)]
enum Number {
    Scalar(Value),
    Constant(u64),
}

impl Number {
    /// That of a tile.
    fn of(kernel: &Kernel, tile: Value) -> Option<Number> {
        if let Some(bits) = constant_bits(kernel, tile) {
            return Some(Number::Constant(bits));
        }
        let made = kernel.def_op(tile)?;
        match kernel.kind(made) {
            OpKind::Splat {} => Some(Number::Scalar(view::Splat::at(kernel, made).scalar())),
            OpKind::Broadcast {} => Number::of(kernel, view::Broadcast::at(kernel, made).source()),
            OpKind::ExpandDims { .. } => Number::of(kernel, view::ExpandDims::at(kernel, made).source()),
            _ => None,
        }
    }

    fn value(self, builder: &mut Builder<'_>, elem: Elem) -> Result<Value, PassError> {
        match self {
            Number::Scalar(value) => Ok(value),
            Number::Constant(bits) => Ok(builder.constant_of(Literal::Int(bits.cast_signed()), Type::Scalar(elem))?),
        }
    }
}

impl Advance {
    fn of(kernel: &Kernel, of: Op, number: usize) -> Option<Advance> {
        let body = kernel.op(of).blocks[0];
        let tile = kernel.block(body).args[1 + number];
        let ty = kernel.value_type(tile);
        let is_index = ty.shape().is_some() && ty.elem().is_some_and(|elem| elem.is_int() && elem.bits() >= 32);
        let next = kernel.def_op(kernel.variadic(kernel.terminator(body)?)[number])?;
        let adds = matches!(kernel.kind(next), OpKind::AddI {}) && kernel.op(next).parent == Some(body);
        (is_index && adds && is_of_arange(kernel, kernel.variadic(of)[number], MOST_STEPS)).then_some(())?;
        let other = match kernel.op(next).operands[..] {
            [a, b] if a == tile => b,
            [a, b] if b == tile => a,
            _ => return None,
        };
        Some(Advance { number, next, by: Number::of(kernel, other)? })
    }

    fn apply(&self, kernel: &mut Kernel, of: Op) -> Result<(), PassError> {
        let missing = || PassError::Internal("carrying offsets: a loop".into());
        let body = kernel.op(of).blocks[0];
        let (tile, next, after) =
            (kernel.block(body).args[1 + self.number], kernel.result(self.next, 0), kernel.result(of, self.number));
        let (ty, end) = (kernel.value_type(tile), kernel.terminator(body).ok_or_else(missing)?);
        let elem = ty.elem().ok_or_else(missing)?;
        let start = kernel.variadic(of)[self.number];
        let mut builder = Builder::before(kernel, of);
        let (rest, start) = apart(&mut builder, start)?;
        let start = start.unwrap_or(Number::Constant(0)).value(&mut builder, elem)?;
        let (within, result) = kernel.carry(of, start).ok_or_else(missing)?;
        let sum = |mut builder: Builder<'_>, number: Value| {
            let number = builder.splat_to(number, ty)?;
            Ok::<_, PassError>(builder.addi(rest, number)?)
        };

        let mut builder = Builder::before(kernel, self.next);
        let by = self.by.value(&mut builder, elem)?;
        let sum_of_numbers = builder.addi(within, by)?;
        let last = kernel.op(end).operands.len() - 1;
        kernel.set_operand(end, last, sum_of_numbers);
        let now = sum(Builder::at_start(kernel, body), within)?;
        let then = sum(Builder::before(kernel, self.next), sum_of_numbers)?;
        let finally = sum(Builder::after(kernel, of), result)?;
        for (old, new) in [(tile, now), (next, then), (after, finally)] {
            if let Some(name) = kernel.value(old).name.clone() {
                kernel.name_value(new, &name);
            }
            kernel.replace_uses(old, new);
        }
        // The tile is handed on unchanged, and DCE removes it.
        let handed = last + 1 + self.number - kernel.variadic(of).len();
        kernel.set_operand(end, handed, tile);
        Ok(())
    }
}

/// Starts computed in more steps are not looked through.
const MOST_STEPS: u32 = 8;

/// Whether a tile is computed of `arange` and numbers alone.
fn is_of_arange(kernel: &Kernel, tile: Value, steps: u32) -> bool {
    let Some(made) = kernel.def_op(tile).filter(|_| steps > 0) else { return false };
    let is_free = |value: &Value| Number::of(kernel, *value).is_some() || is_of_arange(kernel, *value, steps - 1);
    match kernel.kind(made) {
        OpKind::Arange { .. } => true,
        OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} => kernel.op(made).operands.iter().all(is_free),
        OpKind::ExpandDims { .. } | OpKind::Broadcast {} | OpKind::ExtSI { .. } | OpKind::Hint { .. } => {
            kernel.op(made).operands.iter().all(is_free)
        }
        _ => false,
    }
}

/// A tile without a number that is added to it, and that number.
fn apart(builder: &mut Builder<'_>, tile: Value) -> Result<(Value, Option<Number>), PassError> {
    let kernel = builder.kernel();
    let Some(made) = kernel.def_op(tile) else { return Ok((tile, None)) };
    match *kernel.kind(made) {
        OpKind::AddI {} => {
            let [a, b] = kernel.op(made).operands[..] else { return Ok((tile, None)) };
            let numbers = [a, b].map(|operand| Number::of(kernel, operand));
            Ok(match numbers {
                [Some(number), _] => (b, Some(number)),
                [_, Some(number)] => (a, Some(number)),
                [None, None] => (tile, None),
            })
        }
        OpKind::ExpandDims { axis } => {
            let (rest, number) = apart(builder, view::ExpandDims::at(builder.kernel(), made).source())?;
            Ok(if number.is_some() { (builder.expand_dims(rest, axis)?, number) } else { (tile, None) })
        }
        OpKind::Broadcast {} => {
            let ty = kernel.value_type(tile);
            let (rest, number) = apart(builder, view::Broadcast::at(builder.kernel(), made).source())?;
            Ok(if number.is_some() { (builder.broadcast_to(rest, ty)?, number) } else { (tile, None) })
        }
        _ => Ok((tile, None)),
    }
}

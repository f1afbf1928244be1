//! Computes 64-bit integers that are cast to floats in 32 bits where these suffice.
//!
//! ```text
//! %z = load %p : tile<32x64xi8>                         %z = load %p : tile<32x64xi8>
//! %w = extui %z {to = i64}                              %w = extui %z {to = i32}
//! %s = shrui %w, %count : tile<32x64xi64>          →    %c = trunci %count {to = i32}
//! %b = andi %s, 15                                      %s = shrui %w, %c : tile<32x64xi32>
//! %f = sitofp %b {to = f32}                             %b = andi %s, 15
//!                                                       %f = sitofp %b {to = f32}
//! ```
//!
//! Values unpacked by shifts whose counts depend on addresses are as wide as addresses. Instructions on 64 bits are two
//! or more, and each element takes two registers. The low half of a sum, difference, dot or bitwise operation
//! depends on the low halves of its operands; that of a shift does if the shifted value has no other half and the count
//! fits.

use std::collections::{HashMap, HashSet};

use rtc_ir::analysis::{Interval, Ranges};
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Position, Value, constant_bits, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "narrow-casts", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let casts: Vec<Op> = rtc_ir::walk(kernel)
        .into_iter()
        .filter(|op| matches!(kernel.kind(*op), OpKind::SIToFp { .. } | OpKind::UIToFp { .. }))
        .filter(|op| kernel.value_operand(*op).is_some_and(|value| is_wide(kernel, value)))
        .collect();
    if casts.is_empty() {
        return Ok(());
    }
    let ranges = Ranges::new(kernel);
    let casts: Vec<Op> = casts
        .into_iter()
        .filter(|op| {
            let Some(range) = kernel.value_operand(*op).map(|value| ranges.of(value)) else { return false };
            fits(range) && (range.low >= 0 || matches!(kernel.kind(*op), OpKind::SIToFp { .. }))
        })
        .collect();
    let shifts = rtc_ir::walk(kernel).into_iter().filter(|op| is_shift_of_halves(kernel, &ranges, *op)).collect();
    let mut halves = Halves { shifts, made: HashMap::new() };
    for op in casts {
        let Some(value) = kernel.value_operand(op) else { continue };
        let low = halves.low(kernel, value, op)?;
        kernel.set_operand(op, 0, low);
    }
    Ok(())
}

fn is_wide(kernel: &Kernel, value: Value) -> bool {
    kernel.value_type(value).elem() == Some(Elem::I64)
}

fn fits(range: Interval) -> bool {
    i32::try_from(range.low).is_ok() && i32::try_from(range.high).is_ok()
}

/// Whether the low half of a shift follows from those of its operands. A count that is negative or reaches 32 gives zero then
/// as it does in 64 bits.
fn is_shift_of_halves(kernel: &Kernel, ranges: &Ranges<'_>, op: Op) -> bool {
    let is_low = |range: Interval| range.low >= 0 && range.high <= u32::MAX.into();
    match kernel.kind(op) {
        OpKind::ShlI {} => fits(ranges.of(view::ShlI::at(kernel, op).rhs())),
        OpKind::ShrUI {} => {
            let shift = view::ShrUI::at(kernel, op);
            fits(ranges.of(shift.rhs())) && is_low(ranges.of(shift.lhs()))
        }
        _ => false,
    }
}

/// The low halves of values.
struct Halves {
    /// Shifts that can be done on halves.
    shifts: HashSet<Op>,
    made: HashMap<Value, Value>,
}

impl Halves {
    /// The low half of a value, for use at `at`.
    fn low(&mut self, kernel: &mut Kernel, value: Value, at: Op) -> Result<Value, PassError> {
        if let Some(known) = self.made.get(&value) {
            return Ok(*known);
        }
        let ty = kernel.value_type(value).with_elem(Elem::I32);
        let Some(op) = kernel.def_op(value) else {
            return Ok(Builder::before(kernel, at).trunci(value, Elem::I32)?);
        };
        let kind = kernel.kind(op).clone();
        let low = match kind {
            OpKind::Constant { .. } => {
                let bits = constant_bits(kernel, value).unwrap_or(0);
                Builder::after(kernel, op).constant_of(Literal::Int((bits as i32).into()), ty)?
            }
            OpKind::ExtSI { .. } | OpKind::ExtUI { .. } => {
                let narrow = kernel.operand(op, 0);
                match kernel.value_type(narrow).elem().map_or(0, Elem::bits) {
                    32 => narrow,
                    _ if matches!(kind, OpKind::ExtSI { .. }) => Builder::after(kernel, op).extsi(narrow, Elem::I32)?,
                    _ => Builder::after(kernel, op).extui(narrow, Elem::I32)?,
                }
            }
            _ if self.is_of_halves(op, &kind) => {
                let operands = kernel.op(op).operands.clone();
                let operands: Vec<Value> = operands
                    .iter()
                    .map(
                        |operand| if is_wide(kernel, *operand) { self.low(kernel, *operand, op) } else { Ok(*operand) },
                    )
                    .collect::<Result<_, _>>()?;
                let new = kernel.clone_op(op, &operands, &[ty]);
                kernel.insert_op(new, Position::After(op));
                kernel.result(new, 0)
            }
            _ => Builder::after(kernel, op).trunci(value, Elem::I32)?,
        };
        self.made.insert(value, low);
        Ok(low)
    }

    /// Whether the low half of the result follows from the low halves of the operands, by the same operation.
    fn is_of_halves(&self, op: Op, kind: &OpKind) -> bool {
        match kind {
            OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} => true,
            OpKind::AndI {} | OpKind::OrI {} | OpKind::XorI {} | OpKind::Select {} => true,
            // A promise need not hold for half of the bits.
            OpKind::Hint { .. } => false,
            kind => kind.forwards().is_some() || self.shifts.contains(&op),
        }
    }
}

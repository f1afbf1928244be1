//! Prints and assertions.

use std::fmt::Write;

use super::FaultKind;
use super::machine::{Machine, Stop};
use crate::ops::eval::{decode, sign_extend};
use crate::{Elem, Op, view};

/// The prefix of a print as it appears: it starts with a space and, before a value, ends with a colon and a space.
pub fn full_prefix(prefix: &str, has_operands: bool) -> String {
    let mut out = prefix.to_string();
    if has_operands {
        if !out.ends_with(' ') {
            out.push(' ');
        }
        if !out.ends_with(": ") {
            out.pop();
            out.push_str(": ");
        }
    }
    if out.len() > 2 && !out.starts_with(' ') {
        out.insert(0, ' ');
    }
    out
}

impl Machine<'_> {
    /// `print`: a line per element, `pid (x, y, z) idx (i, ..) prefix: value`.
    pub(crate) fn print(&mut self, op: Op, prefix: &str, hex: bool, signed: &[u32]) -> Result<(), Stop> {
        let kernel = self.kernel;
        let operands = kernel.variadic(op);
        let prefix = full_prefix(prefix, !operands.is_empty());
        let [x, y, z] = self.program;
        if operands.is_empty() {
            let _ = writeln!(self.report.printed, "pid ({x}, {y}, {z}){prefix}");
        }
        for (number, operand) in operands.iter().enumerate() {
            let ty = kernel.value_type(*operand);
            let elem = ty.elem().unwrap_or(Elem::I64);
            let elements = self.elements(*operand)?;
            self.tick(elements.len())?;
            let which = if operands.len() > 1 { format!("(operand {number}) ") } else { String::new() };
            let signed = signed.get(number).is_none_or(|s| *s != 0);
            for (i, bits) in elements.iter().enumerate() {
                let index: Vec<String> = match ty.shape() {
                    Some(shape) => crate::layout_rules::unflatten(i as u32, &shape).0[..shape.rank()]
                        .iter()
                        .map(u32::to_string)
                        .collect(),
                    None => Vec::new(),
                };
                let value = number_text(*bits, elem, hex, signed);
                let index = index.join(", ");
                let _ = writeln!(self.report.printed, "pid ({x}, {y}, {z}) idx ({index}){prefix}{which}{value}");
            }
        }
        Ok(())
    }

    /// `assertion`: the condition holds in all slots whose mask is true.
    pub(crate) fn assertion(&mut self, op: Op, message: &str, file: &str, line: u32) -> Result<(), Stop> {
        let kernel = self.kernel;
        let asserted = view::Assertion::at(kernel, op);
        let ty = kernel.value_type(asserted.condition());
        let (holds, mask) = (self.get(asserted.condition()), asserted.mask().map(|v| self.get(v)));
        let count = self.slots(ty);
        self.tick(count)?;
        let fails = |i: &usize| holds.slot(*i) & 1 == 0 && mask.as_ref().is_none_or(|m| m.slot(*i) & 1 != 0);
        match (0..count).find(fails) {
            None => Ok(()),
            Some(slot) => {
                let kind = FaultKind::Assertion { message: message.into(), file: file.into(), line };
                Err(Stop { kind, element: self.coordinate(ty, slot) })
            }
        }
    }
}

/// A number as C's `printf` shows it by `%f`, `%i`, `%u`, or in hexadecimal digits of its full width.
fn number_text(bits: u64, elem: Elem, hex: bool, signed: bool) -> String {
    match elem {
        _ if hex => format!("0x{bits:0width$x}", width = (elem.bits().div_ceil(4)) as usize),
        Elem::Ptr(_) => format!("0x{bits:016x}"),
        Elem::Num(scalar) if scalar.is_float() => {
            let x = decode(bits, scalar);
            if x.is_nan() {
                "nan".into()
            } else if x.is_infinite() {
                if x > 0.0 { "inf".into() } else { "-inf".into() }
            } else {
                format!("{x:.6}")
            }
        }
        Elem::Num(crate::Scalar::I1) => (bits & 1).to_string(),
        Elem::Num(_) if signed => sign_extend(bits, elem).to_string(),
        Elem::Num(_) => bits.to_string(),
    }
}

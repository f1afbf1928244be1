//! `wgmma` to operations.

use rtc_ptx::module::{Instruction, Operand};
use rtc_ptx::types::bits;
use rtc_ptx::{Modifier, Opcode};

use super::{Decoder, Result};
use crate::code::{Kind, MatrixA, Product};
use Modifier::*;

impl Decoder {
    /// Decodes an instruction of the `wgmma` family.
    pub(super) fn product(&mut self, instruction: &Instruction) -> Result<()> {
        let kind = match instruction.opcode {
            Opcode::WgmmaFence => Kind::ProductFence,
            Opcode::WgmmaCommit => Kind::ProductCommit,
            Opcode::WgmmaWait => Kind::ProductWait(self.small(&instruction.operands[0])?),
            _ => Kind::Product(Box::new(self.multiply(instruction)?)),
        };
        self.push(kind);
        Ok(())
    }

    fn multiply(&mut self, instruction: &Instruction) -> Result<Product> {
        let types: Vec<Modifier> = instruction.modifiers.iter().copied().filter(|ty| bits(*ty).is_some()).collect();
        let [d_type, a_type, b_type] = types[..] else { return self.invalid("three types are needed") };
        // `m64n256k16`; the table lists every shape.
        let shape = instruction.modifiers.iter().find_map(|m| {
            let (n, k) = m.text().strip_prefix("m64n")?.split_once('k')?;
            Some((n.parse::<u32>().ok()?, k.parse::<u32>().ok()?))
        });
        let Some((n, k)) = shape else { return self.invalid("a shape is needed") };
        let integers = d_type == S32;
        if integers && n > 24 && !n.is_multiple_of(16) && n != 8 {
            return self.invalid(format!("n = {n} is not a shape of integers"));
        }
        let [d, a, b, scale_d, rest @ ..] = instruction.operands.as_slice() else {
            return self.invalid("four operands are needed");
        };
        let Operand::Vector(d) = d else { return self.invalid("a vector of accumulators is needed") };
        let wanted = if d_type == F16 { n / 4 } else { n / 2 };
        if d.len() != wanted as usize {
            return self.invalid(format!("{wanted} accumulators are needed"));
        }
        let d = self.destinations(d, B32)?;
        let halves = matches!(a_type, F16 | Bf16);
        let in_registers = matches!(a, Operand::Vector(_));
        let signs = if integers { 0 } else { 2 };
        let flags = match (halves, in_registers) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        if rest.len() != signs + flags {
            return self.invalid(format!("{} immediates are needed after scale-d", signs + flags));
        }
        let mut sign = 1.0;
        for operand in &rest[..signs] {
            match operand {
                Operand::Immediate(rtc_ptx::module::Immediate::Integer { bits: 1, .. }) => {}
                Operand::Immediate(rtc_ptx::module::Immediate::Integer { bits: u64::MAX, .. }) => sign = -sign,
                _ => return self.invalid("the scales of A and B must be 1 or -1"),
            }
        }
        let mut transposed = Vec::new();
        for operand in &rest[signs..] {
            transposed.push(match self.small(operand)? {
                0 => false,
                1 => true,
                _ => return self.invalid("a transpose flag must be 0 or 1"),
            });
        }
        let b_transposed = transposed.last().copied().unwrap_or(false);
        let a = match a {
            Operand::Vector(list) if list.len() == 4 => {
                let sources = self.source_list(list, B32, false)?;
                if sources.iter().any(|s| s & crate::code::CONSTANT != 0) {
                    return self.invalid("A must be in registers");
                }
                MatrixA::Registers(sources)
            }
            Operand::Vector(_) => return self.invalid("A needs 4 registers"),
            one => MatrixA::Shared(self.source(one, B64, false)?, transposed.first().copied().unwrap_or(false)),
        };
        Ok(Product {
            n,
            k,
            d_type,
            a_type,
            b_type,
            saturate: instruction.has(Satfinite),
            d,
            a,
            b: self.source(b, B64, false)?,
            b_transposed,
            scale_d: self.source(scale_d, Pred, false)?,
            sign,
        })
    }
}

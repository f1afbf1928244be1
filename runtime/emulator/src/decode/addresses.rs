//! Which operations compute addresses: the only ones that `exec/wrap.rs` follows.

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::Opcode;
use rtc_ptx::module::{Instruction, Operand};

use crate::code::{AddressOperand, CONSTANT, Code, Kind, NONE, Reg, Src, Window, WrapRule};

/// How an instruction treats exact values; `None` where its result is a new number.
pub(super) fn rule(instruction: &Instruction) -> Option<WrapRule> {
    let plain = |operand: &Operand| !matches!(operand, Operand::Vector(_) | Operand::Pair(..));
    if !instruction.operands.iter().all(plain) || instruction.has(Cc) || instruction.has(Sat) {
        return None;
    }
    let narrow = instruction.one_of(&[S32, U32, B32]);
    let wide = instruction.one_of(&[S64, U64, B64]).is_some();
    match instruction.opcode {
        Opcode::Cvta => Some(WrapRule::Wide),
        Opcode::Mov => (wide || narrow.is_some()).then_some(WrapRule::Move),
        Opcode::Selp => (wide || narrow.is_some()).then_some(WrapRule::Select),
        Opcode::Cvt => extension(instruction),
        Opcode::Mul | Opcode::Mad if instruction.has(Wide) => match narrow {
            Some(S32) => Some(WrapRule::ExtendSigned),
            Some(U32) => Some(WrapRule::ExtendUnsigned),
            _ => None,
        },
        Opcode::Mul | Opcode::Mad if instruction.has(Hi) => None,
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Mad | Opcode::Shl if wide => Some(WrapRule::Wide),
        Opcode::Add if narrow.is_some() => Some(WrapRule::Add),
        Opcode::Sub if narrow.is_some() => Some(WrapRule::Sub),
        Opcode::Neg if narrow.is_some() => Some(WrapRule::Neg),
        Opcode::Mul if narrow.is_some() => Some(WrapRule::Mul),
        Opcode::Mad if narrow.is_some() => Some(WrapRule::Mad),
        Opcode::Shl if narrow.is_some() => Some(WrapRule::Shl),
        Opcode::Or if narrow.is_some() => Some(WrapRule::Or),
        _ => None,
    }
}

/// `cvt` from 32 to 64 bits.
fn extension(instruction: &Instruction) -> Option<WrapRule> {
    let types: Vec<Modifier> =
        instruction.modifiers.iter().copied().filter(|m| rtc_ptx::types::bits(*m).is_some()).collect();
    match types[..] {
        [S64 | U64 | B64, S32] => Some(WrapRule::ExtendSigned),
        [S64 | U64 | B64, U32 | B32] => Some(WrapRule::ExtendUnsigned),
        [S64 | U64 | B64, S64 | U64 | B64] => Some(WrapRule::Wide),
        _ => None,
    }
}

/// Takes the rules from operations that no address is computed from.
pub(super) fn keep_addresses(code: &mut Code) {
    let mut starts: Vec<(usize, usize)> =
        code.functions.iter().map(|f| (f.start as usize, f.registers as usize)).collect();
    starts.sort_unstable();
    for (i, (start, registers)) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(code.ops.len(), |next| next.0);
        let Some(ops) = code.ops.get_mut(*start..end) else { continue };
        let mut marked = vec![false; *registers];
        let mark = |marked: &mut Vec<bool>, source: Src| match marked.get_mut(source as usize) {
            Some(slot) if source & CONSTANT == 0 => !std::mem::replace(slot, true),
            _ => false,
        };
        for op in ops.iter() {
            if let Some(address) = address(&op.kind) {
                mark(&mut marked, address.base);
            }
        }
        let is_marked = |marked: &[bool], to: Reg| to != NONE && marked.get(to as usize).copied().unwrap_or(false);
        let mut changed = true;
        while changed {
            changed = false;
            for op in ops.iter().rev() {
                if let (Kind::Alu(_, to, sources), Some(_)) = (&op.kind, op.wrap)
                    && is_marked(&marked, *to)
                {
                    for source in sources {
                        changed |= mark(&mut marked, *source);
                    }
                }
            }
        }
        for op in ops.iter_mut() {
            if !matches!(&op.kind, Kind::Alu(_, to, _) if is_marked(&marked, *to)) {
                op.wrap = None;
            }
        }
    }
}

/// The address in global memory that an operation accesses.
fn address(kind: &Kind) -> Option<AddressOperand> {
    let address = match kind {
        Kind::Load(load) => load.address,
        Kind::Store(store) => store.address,
        Kind::Atomic(atomic) => atomic.address,
        Kind::CopyAsync(copy) => copy.from,
        _ => return None,
    };
    matches!(address.window, Window::Global | Window::Generic).then_some(address)
}

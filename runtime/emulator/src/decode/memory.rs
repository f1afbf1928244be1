//! Loads, stores, atomics, copies and address conversion to operations.

use rtc_ptx::module::{Instruction, Operand};
use rtc_ptx::types::{bits, is_signed};
use rtc_ptx::{Modifier, Opcode};

use super::{Decoder, Result, Symbol};
use crate::alu::f2;
use crate::code::{
    AddressOperand, Atomic, AtomicOp, CopyAsync, Kind, LOCAL_WINDOW, Load, NONE, Order, PARAM_WINDOW, SHARED_WINDOW,
    Store, Window,
};
use Modifier::*;

impl Decoder {
    /// The window that an instruction's state space names.
    pub(super) fn window(&self, instruction: &Instruction) -> Window {
        let spaces = [Global, Const, Shared, SharedCta, SharedCluster, Local, Param, ParamEntry, ParamFunc];
        match instruction.one_of(&spaces) {
            Some(Global | Const) => Window::Global,
            Some(Shared | SharedCta | SharedCluster) => Window::Shared,
            Some(Local) => Window::Local,
            // A device function's parameters lie in its frame.
            Some(_) if !self.frame.entry => Window::Local,
            Some(_) => Window::Param,
            None => Window::Generic,
        }
    }

    pub(super) fn address(&mut self, operand: &Operand, window: Window) -> Result<AddressOperand> {
        let Operand::Address(address) = operand else { return self.invalid("an address is needed") };
        let Some(name) = &address.base else {
            return Ok(AddressOperand { base: self.constant(0), offset: address.offset, mask: u64::MAX, window });
        };
        let found = match self.find(name) {
            Some(Symbol::Frame(..)) => Window::Local,
            Some(Symbol::Param(_)) => Window::Param,
            Some(Symbol::Shared(_)) => Window::Shared,
            Some(Symbol::Global(_)) => Window::Global,
            Some(Symbol::Register(_, width)) => {
                if width < 32 {
                    return self.invalid(format!("`{name}` is too narrow for an address"));
                }
                let ty = if width == 32 { B32 } else { B64 };
                let base = self.source(&Operand::Name(name.clone()), ty, false)?;
                let mask = if width == 32 { u32::MAX.into() } else { u64::MAX };
                return Ok(AddressOperand { base, offset: address.offset, mask, window });
            }
            _ => return self.invalid(format!("unknown name `{name}`")),
        };
        if window != found && window != Window::Generic && !(window == Window::Param && found == Window::Local) {
            return self.invalid(format!("`{name}` is not in the state space of the instruction"));
        }
        let base = self.source(&Operand::Name(name.clone()), B64, true)?;
        Ok(AddressOperand { base, offset: address.offset, mask: u64::MAX, window: found })
    }

    pub(super) fn cvta(&mut self, instruction: &Instruction) -> Result<()> {
        let ty = instruction.modifiers.last().copied().unwrap_or(U64);
        if ty != U64 {
            return self.invalid("32-bit generic addresses are not supported");
        }
        let (to, _) = self.destination(&instruction.operands[0], U64, false)?;
        let source = self.source(&instruction.operands[1], U64, false)?;
        let start = match self.window(instruction) {
            Window::Shared => SHARED_WINDOW,
            Window::Local => LOCAL_WINDOW,
            Window::Param => PARAM_WINDOW,
            Window::Global | Window::Generic => 0,
        };
        let start = self.constant(start);
        let sources = self.sources(&[source, start]);
        let function = if instruction.has(To) { f2!(|a, b| a.wrapping_sub(b)) } else { f2!(|a, b| a.wrapping_add(b)) };
        self.push(Kind::Alu(function, to, sources));
        Ok(())
    }

    fn elements<'o>(&self, operand: &'o Operand, instruction: &Instruction) -> Result<&'o [Operand]> {
        let count = match instruction.one_of(&[V2, V4, V8]) {
            Some(V2) => 2,
            Some(V4) => 4,
            Some(_) => 8,
            None => 1,
        };
        let list = match operand {
            Operand::Vector(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        if list.len() == count { Ok(list) } else { self.invalid(format!("{count} elements are needed")) }
    }

    fn element_type(&self, instruction: &Instruction) -> Result<Modifier> {
        match instruction.modifiers.last() {
            Some(ty) if *ty != Pred && bits(*ty).is_some_and(|n| (8..=64).contains(&n)) => Ok(*ty),
            _ => self.invalid("accesses of this type are not supported"),
        }
    }

    pub(super) fn load(&mut self, instruction: &Instruction) -> Result<()> {
        let ty = self.element_type(instruction)?;
        let window = self.window(instruction);
        let address = self.address(&instruction.operands[1], window)?;
        let mut registers = Vec::new();
        let mut width = 0;
        for operand in self.elements(&instruction.operands[0], instruction)? {
            if *operand == Operand::Sink {
                registers.push(NONE);
                continue;
            }
            let (register, bits) = self.destination(operand, ty, true)?;
            registers.push(register);
            width = bits;
        }
        let bits = bits(ty).unwrap_or(64);
        let sign_bits = if is_signed(ty) && width > bits { bits } else { 0 };
        let order = order(instruction, false);
        let load = Load { address, bytes: bits / 8, sign_bits, width, order, registers };
        self.push(Kind::Load(Box::new(load)));
        Ok(())
    }

    pub(super) fn store(&mut self, instruction: &Instruction) -> Result<()> {
        let ty = self.element_type(instruction)?;
        let window = self.window(instruction);
        let address = self.address(&instruction.operands[0], window)?;
        let list = self.elements(&instruction.operands[1], instruction)?;
        let sources = self.source_list(list, ty, true)?;
        let store = Store { address, bytes: bits(ty).unwrap_or(64) / 8, sources, order: order(instruction, false) };
        self.push(Kind::Store(Box::new(store)));
        Ok(())
    }

    pub(super) fn atomic(&mut self, instruction: &Instruction) -> Result<()> {
        let ty = self.element_type(instruction)?;
        let op = match instruction.one_of(&[Add, Min, Max, And, Or, Xor, Inc, Dec, Exch, Cas]) {
            Some(Add) => AtomicOp::Add,
            Some(Min) => AtomicOp::Min,
            Some(Max) => AtomicOp::Max,
            Some(And) => AtomicOp::And,
            Some(Or) => AtomicOp::Or,
            Some(Xor) => AtomicOp::Xor,
            Some(Inc) => AtomicOp::Inc,
            Some(Dec) => AtomicOp::Dec,
            Some(Exch) => AtomicOp::Exch,
            _ => AtomicOp::Cas,
        };
        let window = self.window(instruction);
        let returns = instruction.opcode == Opcode::Atom;
        let first = usize::from(returns);
        let address = self.address(&instruction.operands[first], window)?;
        let registers = if returns {
            let list = self.elements(&instruction.operands[0], instruction)?;
            self.destinations(list, ty)?
        } else {
            Vec::new()
        };
        let Some(operand) = instruction.operands.get(first + 1) else { return self.invalid("an operand is missing") };
        let list = self.elements(operand, instruction)?;
        let sources = self.source_list(list, ty, false)?;
        let swap = match (op, instruction.operands.get(first + 2)) {
            (AtomicOp::Cas, Some(operand)) => Some(self.source(operand, ty, false)?),
            (AtomicOp::Cas, None) => return self.invalid("the new value is missing"),
            _ => None,
        };
        let bytes = bits(ty).unwrap_or(64) / 8;
        let order = order(instruction, true);
        self.push(Kind::Atomic(Box::new(Atomic { address, op, ty, bytes, registers, sources, swap, order })));
        Ok(())
    }

    pub(super) fn copy_async(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let to = self.address(&operands[0], Window::Shared)?;
        let from = self.address(&operands[1], Window::Global)?;
        let Operand::Immediate(rtc_ptx::module::Immediate::Integer { bits: bytes, .. }) = operands[2] else {
            return self.invalid("the size must be an immediate");
        };
        if !matches!(bytes, 4 | 8 | 16) || (instruction.has(Cg) && bytes != 16) {
            return self.invalid(format!("{bytes} bytes cannot be copied"));
        }
        let (mut size, mut ignore) = (None, None);
        let mut rest = &operands[3..];
        if instruction.has(L2CacheHint) {
            rest = &rest[..rest.len().saturating_sub(1)];
        }
        if let Some(operand) = rest.first() {
            let is_predicate = match operand {
                Operand::Name(name) => matches!(self.find(name), Some(Symbol::Register(_, 1))),
                Operand::Not(_) => true,
                _ => false,
            };
            if is_predicate {
                ignore = Some(self.source(operand, Pred, false)?);
            } else {
                size = Some(self.source(operand, B32, false)?);
            }
        }
        self.push(Kind::CopyAsync(Box::new(CopyAsync { to, from, bytes: bytes as u32, size, ignore })));
        Ok(())
    }
}

/// The memory order of an access; an atomic without one is relaxed.
fn order(instruction: &Instruction, atomic: bool) -> Order {
    let word = instruction.one_of(&[Relaxed, Acquire, Release, AcqRel, Volatile]);
    Order {
        strong: atomic || word.is_some(),
        acquire: matches!(word, Some(Acquire | AcqRel)),
        release: matches!(word, Some(Release | AcqRel)),
        block_only: instruction.has(Cta),
    }
}

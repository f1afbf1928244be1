//! mbarriers, bulk copies and tensor maps to operations.

use rtc_ptx::module::{Instruction, Operand};
use rtc_ptx::types::bits;
use rtc_ptx::{Modifier, Opcode};

use super::{Decoder, Result};
use crate::alu::f1;
use crate::code::{
    AtomicOp, BulkCopy, Direction, Kind, MbarrierAction, MbarrierOp, MbarrierTest, NONE, Src, TensorCopy,
    TensormapReplace, Window,
};
use crate::tensor_map::{MAX_RANK, field};
use Modifier::*;

impl Decoder {
    /// Decodes an operation on mbarriers.
    pub(super) fn mbarrier(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let window = self.window(instruction);
        match instruction.opcode {
            Opcode::MbarrierPendingCount => {
                let (to, _) = self.destination(&operands[0], B32, false)?;
                let state = self.source(&operands[1], B64, false)?;
                let sources = self.sources(&[state]);
                self.push(Kind::Alu(f1!(|a| a & 0xffff_ffff), to, sources));
                return Ok(());
            }
            Opcode::MbarrierTestWait | Opcode::MbarrierTryWait => {
                let parity = instruction.has(Parity);
                let (to, _) = self.destination(&operands[0], Pred, false)?;
                let address = self.address(&operands[1], window)?;
                let value = self.source(&operands[2], if parity { B32 } else { B64 }, false)?;
                let relaxed = instruction.has(Relaxed);
                self.push(Kind::MbarrierTest(Box::new(MbarrierTest { to, address, value, parity, relaxed })));
                return Ok(());
            }
            _ => {}
        }
        let action = match instruction.opcode {
            Opcode::MbarrierInit => MbarrierAction::Init,
            Opcode::MbarrierInval => MbarrierAction::Inval,
            Opcode::MbarrierExpectTx => MbarrierAction::ExpectTx,
            Opcode::MbarrierCompleteTx => MbarrierAction::CompleteTx,
            Opcode::MbarrierArrive => MbarrierAction::Arrive,
            _ => MbarrierAction::ArriveDrop,
        };
        let (state, rest) = match operands.as_slice() {
            [first @ (Operand::Name(_) | Operand::Sink), rest @ ..] => {
                let state = if *first == Operand::Sink { NONE } else { self.destination(first, B64, false)?.0 };
                (state, rest)
            }
            rest => (NONE, rest),
        };
        let [address, rest @ ..] = rest else { return self.invalid("an address is needed") };
        let address = self.address(address, window)?;
        let number = rest.first().map(|operand| self.source(operand, B32, false)).transpose()?;
        let counts_bytes =
            instruction.has(ExpectTx) || matches!(action, MbarrierAction::ExpectTx | MbarrierAction::CompleteTx);
        let (count, bytes) = if counts_bytes { (None, number) } else { (number, None) };
        if number.is_none() && (counts_bytes || instruction.has(NoComplete)) {
            return self.invalid("a count is needed");
        }
        let (no_complete, relaxed) = (instruction.has(NoComplete), instruction.has(Relaxed));
        let op = MbarrierOp { action, address, count, bytes, state, no_complete, relaxed };
        self.push(Kind::Mbarrier(Box::new(op)));
        Ok(())
    }

    /// Decodes a bulk copy, a wait for bulk copies, or a change of a tensor map.
    pub(super) fn bulk(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        match instruction.opcode {
            Opcode::CpAsyncArrive => {
                let address = self.address(&operands[0], self.window(instruction))?;
                self.push(Kind::CopyArrive(address, instruction.has(Noinc)));
            }
            Opcode::BulkCommit => self.push(Kind::BulkCommit),
            Opcode::BulkWait => {
                let groups = self.small(&operands[0])?;
                self.push(Kind::BulkWait(groups, instruction.has(Read)));
            }
            Opcode::BulkCopy | Opcode::BulkReduce => self.linear(instruction)?,
            Opcode::TensormapReplace => self.replace(instruction)?,
            Opcode::TensormapCopy => {
                let to = self.address(&operands[0], Window::Global)?;
                let from = self.address(&operands[1], Window::Shared)?;
                if self.small(&operands[2])? != 128 {
                    return self.invalid("a tensor map has 128 bytes");
                }
                self.push(Kind::TensormapCopy(to, from));
            }
            _ => self.tensor(instruction)?,
        }
        Ok(())
    }

    /// `fence.proxy.tensormap::generic`; one with `release` has no effect here, as all writes are visible anyway.
    pub(super) fn tensormap_fence(&mut self, instruction: &Instruction) -> Result<()> {
        if instruction.has(Modifier::Acquire) {
            let map = self.address(&instruction.operands[0], Window::Generic)?;
            if self.small(&instruction.operands[1])? != 128 {
                return self.invalid("a tensor map has 128 bytes");
            }
            self.push(Kind::TensormapAcquire(map));
        }
        Ok(())
    }

    fn reduction(&self, instruction: &Instruction) -> AtomicOp {
        match instruction.one_of(&[Add, Min, Max, And, Or, Xor, Inc]) {
            Some(Add) => AtomicOp::Add,
            Some(Min) => AtomicOp::Min,
            Some(Max) => AtomicOp::Max,
            Some(And) => AtomicOp::And,
            Some(Or) => AtomicOp::Or,
            Some(Xor) => AtomicOp::Xor,
            Some(Inc) => AtomicOp::Inc,
            _ => AtomicOp::Dec,
        }
    }

    /// The mask of a multicast among the operands at the end.
    fn mask(&mut self, instruction: &Instruction, rest: &[Operand]) -> Result<Option<Src>> {
        let wanted = usize::from(instruction.has(Multicast)) + usize::from(instruction.has(L2CacheHint));
        if rest.len() != wanted {
            return self.invalid(format!("{wanted} operands are needed at the end"));
        }
        if instruction.has(Multicast) { self.source(&rest[0], B16, false).map(Some) } else { Ok(None) }
    }

    fn linear(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let reduce = (instruction.opcode == Opcode::BulkReduce).then(|| {
            let ty = instruction.modifiers.last().copied().unwrap_or(B32);
            (self.reduction(instruction), ty)
        });
        let inward = instruction.has(CompleteTxBytes);
        let from_shared = instruction.has(SharedCta) && !(instruction.has(Global) && inward);
        let windows = match (inward, from_shared) {
            (true, false) => (Window::Shared, Window::Global),
            (true, true) => (Window::Shared, Window::Shared),
            (false, _) => (Window::Global, Window::Shared),
        };
        if reduce.is_some() && inward {
            return self.invalid("reductions into shared memory are not supported");
        }
        let to = self.address(&operands[0], windows.0)?;
        let from = self.address(&operands[1], windows.1)?;
        let bytes = self.source(&operands[2], B32, false)?;
        let mut rest = &operands[3..];
        let mut barrier = None;
        if inward {
            let [first, others @ ..] = rest else { return self.invalid("an mbarrier is needed") };
            barrier = Some(self.address(first, Window::Shared)?);
            rest = others;
        }
        let mask = self.mask(instruction, rest)?;
        self.push(Kind::Bulk(Box::new(BulkCopy { to, from, bytes, barrier, mask, reduce })));
        Ok(())
    }

    fn tensor(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let tensor = operands.iter().position(|o| matches!(o, Operand::TensorAddress(..)));
        let Some(Operand::TensorAddress(map, at)) = tensor.map(|i| &operands[i]) else {
            return self.invalid("a tensor is needed");
        };
        let rank = match instruction.one_of(&[D1, D2, D3, D4, D5]) {
            Some(D1) => 1,
            Some(D2) => 2,
            Some(D3) => 3,
            Some(D4) => 4,
            _ => 5,
        };
        if at.len() != rank {
            return self.invalid(format!("{rank} coordinates are needed"));
        }
        let map = self.address(&Operand::Address(map.clone()), Window::Generic)?;
        let at = self.source_list(at, B32, false)?;
        let direction = match (instruction.opcode, operands.as_slice()) {
            (Opcode::TensorPrefetch, _) => Direction::Prefetch,
            (Opcode::TensorCopy, [to @ Operand::Address(_), _, barrier, rest @ ..])
                if instruction.has(CompleteTxBytes) =>
            {
                let to = self.address(to, Window::Shared)?;
                let barrier = self.address(barrier, Window::Shared)?;
                Direction::In { to, barrier, mask: self.mask(instruction, rest)? }
            }
            (_, [Operand::TensorAddress(..), from, rest @ ..]) if instruction.has(BulkGroup) => {
                self.mask(instruction, rest)?;
                let from = self.address(from, Window::Shared)?;
                let reduce = (instruction.opcode == Opcode::TensorReduce).then(|| self.reduction(instruction));
                Direction::Out { from, reduce }
            }
            _ => return self.invalid("the operands do not fit the direction"),
        };
        self.push(Kind::Tensor(Box::new(TensorCopy { map, at, direction })));
        Ok(())
    }

    fn replace(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let window = self.window(instruction);
        let address = self.address(&operands[0], window)?;
        let name = instruction.one_of(&[
            GlobalAddress,
            GlobalStride,
            Rank,
            BoxDim,
            GlobalDim,
            ElementStride,
            Elemtype,
            InterleaveLayout,
            SwizzleMode,
            FillMode,
        ]);
        let indexed = matches!(name, Some(BoxDim | GlobalDim | GlobalStride | ElementStride));
        let [index, value] = match (&operands[1..], indexed) {
            ([index, value], true) => [Some(index), Some(value)],
            ([value], false) => [None, Some(value)],
            _ => return self.invalid("the operands do not fit the field"),
        };
        let index = index.map_or(Ok(0), |operand| self.small(operand))? as usize;
        if index >= MAX_RANK - usize::from(name == Some(GlobalStride)) {
            return self.invalid(format!("there is no dimension {index}"));
        }
        let (place, less_one) = match name {
            Some(GlobalAddress) => ((field::ADDRESS, 8), false),
            Some(GlobalStride) => ((field::STRIDES + 8 * index, 8), false),
            // The operand is the rank less one already.
            Some(Rank) => ((field::RANK, 1), false),
            Some(BoxDim) => ((field::BOX + 2 * index, 2), false),
            Some(GlobalDim) => ((field::DIMS + 4 * index, 4), true),
            Some(ElementStride) => ((field::ELEMENT_STRIDES + index, 1), false),
            Some(Elemtype) => ((field::TYPE, 1), false),
            Some(InterleaveLayout) => ((field::INTERLEAVE, 1), false),
            Some(SwizzleMode) => ((field::SWIZZLE, 1), false),
            _ => ((field::FILL, 1), false),
        };
        let ty = if place.1 == 8 { B64 } else { B32 };
        let Some(value) = value else { return self.invalid("a value is needed") };
        let value = match (name, value) {
            // PTX numbers the types differently from `CUtensorMapDataType` after f32.
            (Some(Elemtype), operand) => {
                let code = self.small(operand)?;
                let Some(ours) = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12].get(code as usize) else {
                    return self.invalid(format!("there is no element type {code}"));
                };
                self.constant(*ours)
            }
            (_, operand) => self.source(operand, ty, false)?,
        };
        self.push(Kind::TensormapReplace(Box::new(TensormapReplace { address, field: place, less_one, value })));
        Ok(())
    }

    /// Decodes `mapa` and `getctarank`.
    pub(super) fn other_block(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let ty = instruction.modifiers.last().copied().unwrap_or(U64);
        let generic = !instruction.has(SharedCluster);
        if generic && bits(ty) != Some(64) {
            return self.invalid("32-bit generic addresses are not supported");
        }
        if instruction.opcode == Opcode::Mapa {
            let (to, _) = self.destination(&operands[0], ty, false)?;
            let address = self.source(&operands[1], ty, false)?;
            let rank = self.source(&operands[2], B32, false)?;
            self.push(Kind::MapShared(to, address, rank, generic));
        } else {
            let (to, _) = self.destination(&operands[0], B32, false)?;
            let address = self.source(&operands[1], ty, false)?;
            self.push(Kind::RankOf(to, address, generic));
        }
        Ok(())
    }
}

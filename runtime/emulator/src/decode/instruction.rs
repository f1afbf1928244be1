//! Arithmetic, moves and warp instructions to operations.

use rtc_ptx::module::{Immediate, Instruction, Operand};
use rtc_ptx::types::{bits, is_signed};
use rtc_ptx::{Modifier, Opcode};

use super::{Decoder, Result, Symbol};
use crate::alu::{self, Form, f1, f2, f4};
use crate::code::{AtomicOp, FenceKind, Kind, Mma, NEGATED, NONE, Reg, ShuffleMode, Src, WarpOp};
use Modifier::*;

impl Decoder {
    /// Decodes one instruction.
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<()> {
        self.frame.line = instruction.line;
        self.frame.instruction = self.code.instructions.len() as u32;
        self.code.instructions.push(shorten(instruction.to_string().trim_end_matches(';')));
        self.frame.guard = NONE;
        if let Some(guard) = &instruction.guard {
            match self.find(&guard.register) {
                Some(Symbol::Register(register, 1)) => {
                    self.frame.guard = register | if guard.negated { NEGATED } else { 0 };
                }
                _ => return self.invalid(format!("`{}` is not a predicate", guard.register)),
            }
        }
        let before = self.code.ops.len();
        self.operation(instruction)?;
        if self.code.ops.len() == before {
            self.push(Kind::Nothing);
        }
        if let Some(op) = self.code.ops.last_mut()
            && matches!(op.kind, Kind::Alu(..))
        {
            op.wrap = super::addresses::rule(instruction);
        }
        self.finish_instruction();
        self.frame.guard = NONE;
        Ok(())
    }

    fn operation(&mut self, instruction: &Instruction) -> Result<()> {
        use Opcode::*;
        let operands = &instruction.operands;
        match instruction.opcode {
            Add | Sub | Mul | Mul24 | Mad | Fma | Div | Rem | Abs | Neg | Min | Max | Sad | Dp4a | Dp2a | Rcp
            | Sqrt | Rsqrt | Ex2 | Lg2 | Sin | Cos | Tanh | Copysign | Testp | And | Or | Xor | Not | Cnot | Shl
            | Shr | Shf | Lop3 | Prmt | Bfe | Bfi | Bfind | Brev | Clz | Popc | Setp | Set | Selp | Slct | Cvt
            | CvtPack | Addc | Subc | Madc => self.arithmetic(instruction),
            Mov => self.mov(instruction),
            Cvta => self.cvta(instruction),
            Isspacep => {
                let (to, _) = self.destination(&operands[0], Pred, false)?;
                let source = self.source(&operands[1], U64, false)?;
                let window = self.window(instruction);
                self.push(Kind::IsSpace(window, to, source));
                Ok(())
            }
            Mapa | Getctarank => self.other_block(instruction),
            Ld | Ldu => self.load(instruction),
            St => self.store(instruction),
            Atom | Red => self.atomic(instruction),
            Prefetch | Prefetchu | Discard | Brkpt | Pmevent | Griddepcontrol | BulkPrefetch => Ok(()),
            FenceTensormap => self.tensormap_fence(instruction),
            Membar | Fence | FenceProxy => {
                let kind = match () {
                    () if instruction.has(Modifier::MbarrierInit) => FenceKind::MbarrierInit,
                    () if instruction.has(Async) && !instruction.has(Global) => FenceKind::Proxy,
                    () => FenceKind::Ordinary,
                };
                self.push(Kind::Fence(kind));
                Ok(())
            }
            Setmaxnreg => {
                let count = self.small(&operands[0])?;
                if !count.is_multiple_of(8) || !(24..=256).contains(&count) {
                    return self.invalid(format!("{count} registers are not a multiple of 8 from 24 to 256"));
                }
                self.push(Kind::MaxRegisters);
                Ok(())
            }
            CpAsyncArrive | BulkCopy | BulkReduce | BulkCommit | BulkWait | TensorCopy | TensorReduce
            | TensorPrefetch | TensormapReplace | TensormapCopy => self.bulk(instruction),
            Opcode::MbarrierInit
            | MbarrierInval
            | MbarrierExpectTx
            | MbarrierCompleteTx
            | MbarrierArrive
            | MbarrierArriveDrop
            | MbarrierTestWait
            | MbarrierTryWait
            | MbarrierPendingCount => self.mbarrier(instruction),
            Wgmma | WgmmaFence | WgmmaCommit | WgmmaWait => self.product(instruction),
            Createpolicy => {
                let (to, _) = self.destination(&operands[0], B64, false)?;
                let zero = self.constant(0);
                let sources = self.sources(&[zero]);
                self.push(Kind::Alu(f1!(|a| a), to, sources));
                Ok(())
            }
            CpAsync => self.copy_async(instruction),
            CpAsyncCommitGroup => {
                self.push(Kind::CopyCommit);
                Ok(())
            }
            CpAsyncWaitGroup => {
                let groups = self.small(&operands[0])?;
                self.push(Kind::CopyWait(Some(groups)));
                Ok(())
            }
            CpAsyncWaitAll => {
                self.push(Kind::CopyWait(None));
                Ok(())
            }
            Bra | Brx | Call | Ret | Exit | Trap | Nanosleep | Bar | BarCta | Barrier | BarrierCta | BarRed
            | BarrierRed | BarrierCluster => self.control(instruction),
            BarWarp => {
                let mask = self.source(&operands[0], B32, false)?;
                self.push(Kind::Warp(Box::new(WarpOp::Barrier), mask));
                Ok(())
            }
            Shfl => self.shuffle(instruction),
            Vote | Match | Redux | Elect => self.collective(instruction),
            Activemask => {
                let (to, _) = self.destination(&operands[0], B32, false)?;
                self.push(Kind::ActiveMask(to));
                Ok(())
            }
            Opcode::Mma => self.mma(instruction),
            Ldmatrix => {
                let Operand::Vector(list) = &operands[0] else { return self.invalid("a vector is needed") };
                let registers = self.destinations(list, B32)?;
                let address = self.address(&operands[1], self.window(instruction))?;
                self.check_count(registers.len(), instruction)?;
                self.push(Kind::LoadMatrix(registers.into(), address, instruction.has(Trans)));
                Ok(())
            }
            Stmatrix => {
                let Operand::Vector(list) = &operands[1] else { return self.invalid("a vector is needed") };
                let sources = self.source_list(list, B32, false)?;
                let address = self.address(&operands[0], self.window(instruction))?;
                self.check_count(sources.len(), instruction)?;
                self.push(Kind::StoreMatrix(sources.into(), address, instruction.has(Trans)));
                Ok(())
            }
        }
    }

    /// An immediate that fits in 32 bits.
    pub(super) fn small(&self, operand: &Operand) -> Result<u32> {
        match operand {
            Operand::Immediate(Immediate::Integer { bits, .. }) if u32::try_from(*bits).is_ok() => Ok(*bits as u32),
            _ => self.invalid(format!("`{operand}` must be a small immediate")),
        }
    }

    fn check_count(&self, count: usize, instruction: &Instruction) -> Result<()> {
        let wanted = match instruction.one_of(&[X1, X2, X4]) {
            Some(X1) => 1,
            Some(X2) => 2,
            _ => 4,
        };
        if count == wanted { Ok(()) } else { self.invalid(format!("{wanted} registers are needed")) }
    }

    pub(super) fn destinations(&mut self, list: &[Operand], ty: Modifier) -> Result<Vec<Reg>> {
        list.iter().map(|operand| Ok(self.destination(operand, ty, false)?.0)).collect()
    }

    pub(super) fn source_list(&mut self, list: &[Operand], ty: Modifier, wider: bool) -> Result<Vec<Src>> {
        list.iter().map(|operand| self.source(operand, ty, wider)).collect()
    }

    fn arithmetic(&mut self, instruction: &Instruction) -> Result<()> {
        let Some(form) = alu::form(instruction) else {
            return self.invalid("this form is not supported");
        };
        let cvt = matches!(instruction.opcode, Opcode::Cvt);
        let mut sources = Vec::with_capacity(4);
        for (operand, ty) in instruction.operands[1..].iter().zip(&form.sources) {
            sources.push(self.source(operand, *ty, cvt)?);
        }
        if sources.len() != form.sources.len() || instruction.operands.len() != form.sources.len() + 1 {
            return self.invalid(format!("{} sources are needed", form.sources.len()));
        }
        if instruction.has(Cc) || matches!(instruction.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc) {
            return self.with_carry(instruction, &form, sources);
        }
        let all = self.with_flags(&form, &sources);
        if let Operand::Pair(first, second) = &instruction.operands[0] {
            // Both are computed before either is written: a source may be a destination too.
            let inverse = alu::setp_second(&form);
            let inverse_sources = self.with_flags(&inverse, &sources);
            let p = self.compute(form.function, all);
            let q = self.compute(inverse.function, inverse_sources);
            let (to_p, _) = self.destination(first, Pred, false)?;
            let (to_q, _) = self.destination(second, Pred, false)?;
            let guard = self.frame.guard & !NEGATED;
            let order = if guard == to_p { [(to_q, q), (to_p, p)] } else { [(to_p, p), (to_q, q)] };
            for (to, from) in order {
                let sources = self.sources(&[from]);
                self.push(Kind::Alu(f1!(|a| a), to, sources));
            }
            return Ok(());
        }
        let (to, width) = self.destination(&instruction.operands[0], form.destination, cvt)?;
        let from = bits(form.destination).unwrap_or(64);
        if width > from && is_signed(form.destination) {
            let narrow = self.compute(form.function, all);
            let sources = self.sources(&[narrow]);
            let extended = self.compute(alu::sign_extend(from), sources);
            let sources = self.sources(&[extended]);
            self.push(Kind::Alu(alu::zero_extend(width), to, sources));
        } else {
            self.push(Kind::Alu(form.function, to, all));
        }
        Ok(())
    }

    fn with_flags(&mut self, form: &Form, sources: &[Src]) -> [Src; 4] {
        let mut all = self.sources(sources);
        if sources.len() < 4 {
            all[3] = self.constant(form.flags.0);
        }
        all
    }

    /// Instructions that read or write the carry flag, a hidden register of the function.
    fn with_carry(&mut self, instruction: &Instruction, form: &Form, mut sources: Vec<Src>) -> Result<()> {
        let carry = match self.frame.carry {
            Some(register) => register,
            None => self.temporary(),
        };
        self.frame.carry = Some(carry);
        let reads = matches!(instruction.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc);
        let zero = self.constant(0);
        sources.push(if reads { carry } else { zero });
        let all = self.sources(&sources);
        let (to, _) = self.destination(&instruction.operands[0], form.destination, false)?;
        let out = if instruction.has(Cc) {
            let Some(function) = alu::carry(instruction) else {
                return self.invalid("this form is not supported");
            };
            Some(self.compute(function, all))
        } else {
            None
        };
        self.push(Kind::Alu(form.function, to, all));
        if let Some(out) = out {
            let sources = self.sources(&[out]);
            self.push(Kind::Alu(f1!(|a| a), carry, sources));
        }
        Ok(())
    }

    fn mov(&mut self, instruction: &Instruction) -> Result<()> {
        let [ty] = instruction.modifiers[..] else { return self.invalid("one type is needed") };
        let width = bits(ty).unwrap_or(64);
        if width > 64 {
            return self.invalid("128-bit moves are not supported");
        }
        let part = |n: usize| -> Option<Modifier> {
            Some(match width / n as u32 {
                8 => B8,
                16 => B16,
                32 => B32,
                64 => B64,
                _ => return None,
            })
        };
        match (&instruction.operands[0], &instruction.operands[1]) {
            (Operand::Vector(to), from) => {
                let Some(part_type) = part(to.len()) else { return self.invalid("the vector does not fit") };
                let source = self.source(from, ty, false)?;
                let part_width = u64::from(width) / to.len() as u64;
                // The source may be overwritten by its own parts only if it is as narrow as they are: never.
                for (i, operand) in to.iter().enumerate().filter(|(_, o)| **o != Operand::Sink) {
                    let (register, _) = self.destination(operand, part_type, true)?;
                    let (shift, mask) = (
                        self.constant(i as u64 * part_width),
                        self.constant(crate::numeric::convert::mask(part_width as u32)),
                    );
                    let sources = self.sources(&[source, shift, mask]);
                    self.push(Kind::Alu(crate::alu::f3!(|a, b, c| (a >> b) & c), register, sources));
                }
                Ok(())
            }
            (to, Operand::Vector(from)) => {
                let Some(part_type) = part(from.len()) else { return self.invalid("the vector does not fit") };
                let parts = self.source_list(from, part_type, true)?;
                let (register, _) = self.destination(to, ty, false)?;
                let all = self.sources(&parts);
                let function = match (from.len(), width) {
                    (2, 64) => f2!(|a, b| a as u32 as u64 | b << 32),
                    (2, 32) => f2!(|a, b| a as u16 as u64 | (b as u16 as u64) << 16),
                    (2, 16) => f2!(|a, b| a as u8 as u64 | (b as u8 as u64) << 8),
                    (4, 64) => f4!(|a, b, c, d| {
                        a as u16 as u64 | (b as u16 as u64) << 16 | (c as u16 as u64) << 32 | d << 48
                    }),
                    (4, 32) => f4!(|a, b, c, d| {
                        a as u8 as u64 | (b as u8 as u64) << 8 | (c as u8 as u64) << 16 | (d as u8 as u64) << 24
                    }),
                    _ => return self.invalid("the vector does not fit"),
                };
                self.push(Kind::Alu(function, register, all));
                Ok(())
            }
            (to, from) => {
                let source = self.source(from, ty, false)?;
                let (register, _) = self.destination(to, ty, false)?;
                let sources = self.sources(&[source]);
                self.push(Kind::Alu(f1!(|a| a), register, sources));
                Ok(())
            }
        }
    }

    fn shuffle(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let mode = match instruction.one_of(&[Up, Down, Bfly, Idx]) {
            Some(Up) => ShuffleMode::Up,
            Some(Down) => ShuffleMode::Down,
            Some(Bfly) => ShuffleMode::Butterfly,
            _ => ShuffleMode::Index,
        };
        let (to, predicate) = self.pair(&operands[0], B32)?;
        let a = self.source(&operands[1], B32, false)?;
        let b = self.source(&operands[2], B32, false)?;
        let c = self.source(&operands[3], B32, false)?;
        let mask = self.source(&operands[4], B32, false)?;
        self.push(Kind::Warp(Box::new(WarpOp::Shuffle(mode, to, predicate, [a, b, c])), mask));
        Ok(())
    }

    /// `d` or `d|p`; [`NONE`] for the missing half.
    fn pair(&mut self, operand: &Operand, ty: Modifier) -> Result<(Reg, Reg)> {
        match operand {
            Operand::Pair(first, second) => {
                Ok((self.destination(first, ty, false)?.0, self.destination(second, Pred, false)?.0))
            }
            _ => Ok((self.destination(operand, ty, false)?.0, NONE)),
        }
    }

    fn collective(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        let ty = instruction.modifiers.last().copied().unwrap_or(B32);
        let (op, mask) = match instruction.opcode {
            Opcode::Vote => {
                let (to, _) = self.destination(&operands[0], ty, false)?;
                let source = self.source(&operands[1], Pred, false)?;
                (WarpOp::Vote(instruction.modifiers[0], to, source), &operands[2])
            }
            Opcode::Match => {
                let (to, predicate) = self.pair(&operands[0], B32)?;
                let source = self.source(&operands[1], ty, false)?;
                (WarpOp::Match(instruction.has(All), to, predicate, source), &operands[2])
            }
            Opcode::Redux => {
                let (to, _) = self.destination(&operands[0], ty, false)?;
                let source = self.source(&operands[1], ty, false)?;
                let op = match instruction.modifiers[0] {
                    Modifier::Add => AtomicOp::Add,
                    Modifier::Min => AtomicOp::Min,
                    Modifier::Max => AtomicOp::Max,
                    Modifier::And => AtomicOp::And,
                    Modifier::Or => AtomicOp::Or,
                    _ => AtomicOp::Xor,
                };
                (WarpOp::Reduce(op, ty == S32, to, source), &operands[2])
            }
            _ => {
                let (to, predicate) = self.pair(&operands[0], B32)?;
                (WarpOp::Elect(to, predicate), &operands[1])
            }
        };
        let mask = self.source(mask, B32, false)?;
        self.push(Kind::Warp(Box::new(op), mask));
        Ok(())
    }

    fn mma(&mut self, instruction: &Instruction) -> Result<()> {
        let (m, n, k) = match instruction.modifiers.get(1) {
            Some(M16n8k4) => (16, 8, 4),
            Some(M16n8k8) => (16, 8, 8),
            Some(M16n8k16) => (16, 8, 16),
            Some(M16n8k32) => (16, 8, 32),
            Some(M8n8k4) => (8, 8, 4),
            Some(M8n8k16) => (8, 8, 16),
            _ => return self.invalid("this shape is not supported"),
        };
        let types: Vec<Modifier> = instruction.modifiers.iter().copied().filter(|ty| bits(*ty).is_some()).collect();
        let [d_type, a_type, b_type, c_type] = types[..] else { return self.invalid("four types are needed") };
        if (m, n, k) == (8, 8, 4) && a_type != F64 {
            return self.invalid("m8n8k4 of f16 is not supported");
        }
        let vectors: Vec<&[Operand]> = instruction
            .operands
            .iter()
            .map(|operand| match operand {
                Operand::Vector(list) => list.as_slice(),
                one => std::slice::from_ref(one),
            })
            .collect();
        let [d, a, b, c] = vectors[..] else { return self.invalid("four operands are needed") };
        let register = |ty: Modifier| match ty {
            F64 => F64,
            F32 => F32,
            _ => B32,
        };
        // Elements per lane, in registers: each lane holds 1/32 of a matrix.
        let per_lane = |elements: u32, ty: Modifier| {
            let width = if ty == Tf32 { 32 } else { bits(ty).unwrap_or(32) };
            (elements / 32 * width).div_ceil(if ty == F64 { 64 } else { 32 }) as usize
        };
        let wanted =
            [per_lane(m * n, d_type), per_lane(m * k, a_type), per_lane(k * n, b_type), per_lane(m * n, c_type)];
        if wanted != [d.len(), a.len(), b.len(), c.len()] {
            return self.invalid(format!("the vectors must have {wanted:?} registers"));
        }
        let mma = Mma {
            m,
            n,
            k,
            d_type,
            a_type,
            b_type,
            c_type,
            saturate: instruction.has(Satfinite),
            d: self.destinations(d, register(d_type))?,
            a: self.source_list(a, register(a_type), false)?,
            b: self.source_list(b, register(b_type), false)?,
            c: self.source_list(c, register(c_type), false)?,
        };
        self.push(Kind::Mma(Box::new(mma)));
        Ok(())
    }
}

/// The text of an instruction for messages: of a long vector the first and the last element.
fn shorten(text: &str) -> String {
    let Some((start, end)) = text.find('{').zip(text.find('}')) else { return text.to_string() };
    let elements: Vec<&str> = text.get(start + 1..end).unwrap_or("").split(", ").collect();
    match elements[..] {
        [first, .., last] if elements.len() > 8 => {
            format!("{}{first}, .., {last}{}", &text[..=start], &text[end..])
        }
        _ => text.to_string(),
    }
}

//! Jumps, calls and barriers to operations.

use rtc_ptx::module::{Instruction, Operand};
use rtc_ptx::{Modifier, Opcode};

use super::{Decoder, Result, Symbol};
use crate::code::{BarrierReduce, BlockBarrier, Call, Callee, Kind};
use Modifier::*;

impl Decoder {
    /// Decodes a jump, a call or a barrier.
    pub(super) fn control(&mut self, instruction: &Instruction) -> Result<()> {
        let operands = &instruction.operands;
        match instruction.opcode {
            Opcode::Bra => {
                let label = self.label(&operands[0])?;
                self.frame.fixups.push((self.code.ops.len(), label));
                self.push(Kind::Branch(0));
            }
            Opcode::Brx => {
                let index = self.source(&operands[0], U32, false)?;
                let Operand::Name(name) = &operands[1] else { return self.invalid("a list of labels is needed") };
                let Some(Symbol::Targets(targets)) = self.find(name) else {
                    return self.invalid(format!("`{name}` is not a list of labels"));
                };
                let labels: Result<Vec<u32>> =
                    targets.iter().map(|target| Ok(self.label(&Operand::Name(target.clone()))? as u32)).collect();
                self.frame.fixups.push((self.code.ops.len(), 0));
                let table = labels?.into();
                self.push(Kind::BranchTable(index, table));
            }
            Opcode::Call => self.call(instruction)?,
            Opcode::Ret => self.push(Kind::Return),
            Opcode::Exit => self.push(Kind::Exit),
            Opcode::Trap => self.push(Kind::Trap),
            Opcode::Nanosleep => self.push(Kind::Pause),
            Opcode::BarrierCluster if instruction.has(Wait) => self.push(Kind::ClusterWait),
            Opcode::BarrierCluster => self.push(Kind::ClusterArrive(instruction.has(Relaxed))),
            _ => self.barrier(instruction)?,
        }
        Ok(())
    }

    fn label(&self, operand: &Operand) -> Result<usize> {
        match operand {
            Operand::Name(name) => match self.find(name) {
                Some(Symbol::Label(label)) => Ok(label),
                _ => self.invalid(format!("unknown label `{name}`")),
            },
            _ => self.invalid("a label is needed"),
        }
    }

    fn barrier(&mut self, instruction: &Instruction) -> Result<()> {
        let reduces = matches!(instruction.opcode, Opcode::BarRed | Opcode::BarrierRed);
        let mut operands = instruction.operands.as_slice();
        let mut reduce = None;
        if reduces {
            let ty = instruction.modifiers.last().copied().unwrap_or(Pred);
            let kind = match instruction.one_of(&[Popc, And, Or]) {
                Some(And) => BarrierReduce::And,
                Some(Or) => BarrierReduce::Or,
                _ => BarrierReduce::Count,
            };
            let (to, _) = self.destination(&operands[0], ty, false)?;
            let [middle @ .., last] = &operands[1..] else { return self.invalid("a predicate is missing") };
            let source = self.source(last, Pred, false)?;
            reduce = Some((kind, to, source));
            operands = middle;
        }
        let [id, rest @ ..] = operands else { return self.invalid("the barrier is missing") };
        let id = self.source(id, U32, false)?;
        let count = rest.first().map(|operand| self.source(operand, U32, false)).transpose()?;
        let arrive_only = instruction.has(Arrive);
        if arrive_only && count.is_none() {
            return self.invalid("`arrive` needs the number of threads");
        }
        let aligned =
            instruction.has(Aligned) || matches!(instruction.opcode, Opcode::Bar | Opcode::BarCta | Opcode::BarRed);
        self.push(Kind::Barrier(Box::new(BlockBarrier { id, count, arrive_only, aligned, reduce })));
        Ok(())
    }

    fn call(&mut self, instruction: &Instruction) -> Result<()> {
        let mut operands = instruction.operands.iter().peekable();
        let list = |operands: &mut std::iter::Peekable<std::slice::Iter<'_, Operand>>| match operands.peek() {
            Some(Operand::List(list)) => {
                operands.next();
                list.clone()
            }
            _ => Vec::new(),
        };
        let results = list(&mut operands);
        let Some(Operand::Name(name)) = operands.next() else { return self.invalid("a function is needed") };
        let arguments = list(&mut operands);
        let slots = |decoder: &Decoder, list: &[Operand]| -> Result<Vec<(u32, u32)>> {
            list.iter()
                .map(|operand| match operand {
                    Operand::Name(name) => match decoder.find(name) {
                        Some(Symbol::Frame(offset, size)) => Ok((offset, size)),
                        _ => decoder.invalid(format!("`{name}` is not a .param variable of the function")),
                    },
                    _ => decoder.invalid("only .param variables can be passed"),
                })
                .collect()
        };
        let (arguments, results) = (slots(self, &arguments)?, slots(self, &results)?);
        let plain = |list: &[(u32, u32)]| list.iter().map(|(at, size)| (*at, 0, *size)).collect::<Vec<_>>();
        let call = match self.functions.get(name.as_str()) {
            Some(index) => {
                let function = &self.code.functions[*index];
                if function.params.len() != arguments.len() || function.results.len() != results.len() {
                    return self.invalid(format!("`{name}` has another number of parameters or results"));
                }
                let join = |mine: &[(u32, u32)], theirs: &[(u32, u32)]| {
                    mine.iter().zip(theirs).map(|(a, b)| (a.0, b.0, a.1.min(b.1))).collect::<Vec<_>>()
                };
                Call {
                    callee: Callee::Function(*index),
                    arguments: join(&arguments, &function.params),
                    results: join(&results, &function.results),
                }
            }
            None => {
                let (callee, wanted) = match name.as_str() {
                    "vprintf" => (Callee::Printf, 2),
                    "__assertfail" => (Callee::AssertFail, 5),
                    _ => (Callee::Missing(name.clone()), arguments.len()),
                };
                if arguments.len() != wanted {
                    return self.invalid(format!("`{name}` takes {wanted} arguments"));
                }
                Call { callee, arguments: plain(&arguments), results: plain(&results) }
            }
        };
        self.push(Kind::Call(Box::new(call)));
        Ok(())
    }
}

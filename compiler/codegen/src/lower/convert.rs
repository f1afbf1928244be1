//! Layout conversions within warps: a renaming of registers, or shuffles. A pass has split the others.

use rtc_abi::Feature;
use rtc_ir::{Op, view};
use rtc_layout::{Conversion, LaneXor, MatrixInstructions, ShufflePlan, conversion};

use super::{Lowering, Registers};
use crate::{
    emit::{Cmpi, ShuffleKind, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn convert_layout(&self, op: Op) -> Result<()> {
        let (source, result) = (view::ConvertLayout::at(self.kernel, op).source(), self.kernel.result(op, 0));
        let (from, to) = (self.layout(source)?, self.layout(result)?);
        let registers = self.get(source)?;
        match conversion(from, to) {
            Conversion::Identity => self.define(op, registers.to_vec()),
            Conversion::Registers(list) => self.pick(op, &list)?,
            Conversion::Shuffles(plan) => {
                let moved = self.shuffle_tile(&plan, &registers);
                self.define(op, moved);
            }
            Conversion::Shared => {
                return Err(CodegenError::lowering("a conversion through shared memory that was not split"));
            }
        }
        Ok(())
    }

    /// The matrix instructions of the target.
    pub(super) fn matrix_instructions(&self) -> MatrixInstructions {
        MatrixInstructions { load: true, store: self.target.has(Feature::Stmatrix) }
    }

    fn shuffle_tile(&self, plan: &ShufflePlan, registers: &Registers<'c>) -> Vec<Value<'c>> {
        let e = self.e;
        let sent = self.exchange(plan.send, registers.to_vec());
        let source = self.spot(&plan.source_lane);
        let received: Vec<_> = plan
            .rounds
            .iter()
            .map(|round| {
                let value = sent[round.register as usize];
                match plan.butterfly(*round) {
                    Some(0) => value,
                    Some(mask) => e.shuffle(ShuffleKind::Butterfly, value, e.i32(mask as i32)),
                    None => e.shuffle(ShuffleKind::Index, value, self.at(source, round.lane)),
                }
            })
            .collect();
        let received = self.exchange(plan.receive, received);
        plan.slot.iter().map(|slot| received[*slot as usize]).collect()
    }

    /// Swaps registers so that register `r` takes the value of `r ^ xor(lane)`.
    fn exchange(&self, xor: LaneXor, mut registers: Vec<Value<'c>>) -> Vec<Value<'c>> {
        let e = self.e;
        for (lanes, flip) in xor.stages() {
            let swap = self.parity(lanes);
            let before = registers.clone();
            for (index, register) in registers.iter_mut().enumerate() {
                *register = e.select(swap, before[index ^ flip as usize], before[index]);
            }
        }
        registers
    }

    /// Whether an odd number of the lane bits in `mask` is set.
    fn parity(&self, mask: u32) -> Value<'c> {
        let bases: Vec<u32> = (0..5).map(|bit| mask >> bit & 1).collect();
        let bit = self.at(self.spot(&bases), 0);
        self.e.cmpi(Cmpi::Ne, bit, self.e.i32(0))
    }
}

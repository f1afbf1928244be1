//! Products with operands in shared memory.

use std::rc::Rc;

use super::FindingKind;
use super::machine::{Machine, Stop};
use crate::{Op, Precision, Type, Value};

impl Machine<'_> {
    /// `mma`.
    pub(crate) fn mma(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let operands = [0, 1, 2].map(|i| kernel.operand(op, i));
        let lhs = self.operand_elements(op, operands[0])?;
        let rhs = self.operand_elements(op, operands[1])?;
        let keep = kernel.optional(op, 0).is_none_or(|flag| self.scalar(flag) & 1 != 0);
        let acc = match self.elements(operands[2])? {
            acc if keep => acc.to_vec(),
            acc => vec![0; acc.len()],
        };
        let sums = self.product(operands, &lhs, &rhs, acc, Precision::Tf32)?;
        let placed = self.place(self.result_type(op), sums);
        self.set_result(op, placed);
        Ok(())
    }

    /// The elements of an operand, a tile or a buffer, in row-major order.
    fn operand_elements(&mut self, op: Op, value: Value) -> Result<Rc<Vec<u64>>, Stop> {
        let Some((slot, at)) = self.positions(value)? else { return self.elements(value) };
        let ty = self.whole(value);
        let loaded = self.shared.load_async(slot, &at).map_err(|refused| self.refuse(ty, refused))?;
        if let Some(position) = loaded.unwritten {
            self.find(op, FindingKind::UnwrittenShared, ty, position);
        }
        Ok(Rc::new(loaded.bits))
    }

    /// The type of a buffer's content as a whole tile, for reports.
    pub(crate) fn whole(&self, value: Value) -> Type {
        match self.kernel.value_type(value) {
            Type::Shared(buffer) => Type::tile(buffer.elem, buffer.shape),
            ty => ty,
        }
    }
}

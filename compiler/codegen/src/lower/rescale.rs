//! `rescale`: a product that warps skip where all their factors are one.

use rtc_ir::{Op, view};

use super::Lowering;
use crate::emit::{Cmpf, type_of};
use crate::error::{CodegenError, Result};

impl Lowering<'_, '_> {
    pub(super) fn rescale(&self, op: Op) -> Result<()> {
        let e = self.e;
        let rescale = view::Rescale::at(self.kernel, op);
        let values = self.get(rescale.value())?;
        let factors = self.get(rescale.factor())?;
        // A thread's factors repeat: an accumulator has a factor for each row.
        let mut distinct = Vec::new();
        for factor in factors.iter() {
            if !distinct.contains(factor) {
                distinct.push(*factor);
            }
        }
        let one = e.float_constant(e.ty.f32, u64::from(1f32.to_bits()));
        let changes = distinct.iter().map(|factor| e.cmpf(Cmpf::Une, *factor, one)).reduce(|a, b| e.ori(a, b));
        let Some(changes) = changes else {
            self.define(op, Vec::new());
            return Ok(());
        };
        let any = e.intrinsic("llvm.nvvm.vote.any.sync", &[e.i32(-1), changes], e.ty.i1);
        let types: Vec<_> = values.iter().map(|value| type_of(*value)).collect();
        let products =
            || Ok(values.iter().zip(factors.iter()).map(|(value, factor)| e.mulf(*value, *factor, false)).collect());
        let result = e.if_else::<CodegenError>(any, &types, products, || Ok(values.to_vec()))?;
        self.define(op, result);
        Ok(())
    }
}

//! Elects one warp to load a tile of which several warps hold copies, if the copies are only stored.
//!
//! All warps of a program hold a tile that is smaller than they are. Only the first warp stores it, so if it is also
//! written through the same argument, the copies of the others would have to be loaded before that: a barrier in each
//! iteration of a loop that updates its elements in place. The copies are not needed if their users are element-wise
//! operations and stores alone.
//!
//! ```text
//! %v = load %p : tile<32xf32, #l0>              →   %v = load %p {once = true} : tile<32xf32, #l0>
//! %w = addf %v, %v : tile<32xf32, #l0>              %w = addf %v, %v : tile<32xf32, #l0>
//! store %p, %w                                      store %p, %w
//! ```

use std::collections::HashSet;

use rtc_ir::effects::{EffectKind, Space};
use rtc_ir::{Kernel, Op, OpKind, Phase, Value};

use super::pending::loaded_by_several;
use crate::access::addresses;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "elect-redundant-loads", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let ops = rtc_ir::walk(kernel);
    let written: HashSet<Value> = ops.iter().flat_map(|op| written(kernel, *op)).collect();
    for load in ops {
        let loaded = loaded_by_several(kernel, load).filter(|base| written.contains(base));
        if loaded.is_some()
            && kernel.layout_of(kernel.result(load, 0)).is_some()
            && kernel.is_for_stores_alone(load)
            && let OpKind::Load { volatile: false, once, .. } = kernel.kind_mut(load)
        {
            *once = true;
        }
    }
    Ok(())
}

/// The arguments through which an operation writes.
fn written(kernel: &Kernel, op: Op) -> Vec<Value> {
    let effects =
        kernel.effects(op).filter(|(effect, _)| effect.space == Space::Global && effect.access != EffectKind::Read);
    effects.filter_map(|(_, value)| addresses::base(kernel, value?)).collect()
}

//! Replaces loop-carried values that never change by their initial values, and results of branches that yield the same
//! value on both sides by that value. Bases, shapes and strides of block pointers are such values; constants among them
//! become visible.
//!
//! ```text
//! %r = for_range .., (%x) ^(%i: i32, %a: i32) { .. yields (%a) }   →   uses of %a and %r become %x
//! ```

use rtc_ir::{Kernel, Phase, Value, regions};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "remove-invariant-iter-args", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    // Inner loops first: what they carry unchanged may be carried unchanged by the outer ones too.
    for op in rtc_ir::walk(kernel).into_iter().rev() {
        // The slots themselves go with the dead code.
        for slot in regions::slots(kernel, op) {
            let Some(value) = only_source(kernel, &slot) else { continue };
            if regions::is_outside(kernel, value, op) {
                slot.targets.iter().for_each(|target| kernel.replace_uses(*target, value));
            }
        }
    }
    Ok(())
}

/// The one value that comes into a slot from elsewhere.
fn only_source(kernel: &Kernel, slot: &regions::Slot) -> Option<Value> {
    let mut from_elsewhere = slot.values(kernel).filter(|value| !slot.targets.contains(value));
    let first = from_elsewhere.next()?;
    from_elsewhere.all(|value| value == first).then_some(first)
}

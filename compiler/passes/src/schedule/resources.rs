//! Shared memory and registers of a kernel as scheduled.

use rtc_ir::Kernel;

use super::insert_waits;
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::work::{Scope, estimate};
use crate::{PassContext, PassError};

/// By how many registers an estimate may be above those that there are: the assembler takes more than it needs, and computes
/// values again before it spills. Not those of results that wait beside what a loop computes.
pub(crate) const SPARE_REGISTERS: u32 = 20;

/// Bytes of results per warp that go through shared memory at a time.
pub(crate) const STORED_BYTES: u32 = 4096;

/// Whether a thread with so many registers holds what a loop needs.
pub(crate) fn holds(kernel: &Kernel, scope: Scope<'_>, registers: u32) -> bool {
    estimate(kernel, scope) <= registers + SPARE_REGISTERS
}

/// The shared memory that a kernel takes; `None` if it is too much.
pub(crate) fn shared_bytes(kernel: &Kernel, cx: &PassContext) -> Result<Option<u32>, PassError> {
    let mut trial = kernel.clone();
    for pass in [insert_waits::PASS, split_conversions::PASS, place_scratch::PASS, allocate_shared::PASS] {
        match (pass.run)(&mut trial, cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(trial.shared_bytes))
}

//! Shared memory and registers of a kernel as scheduled.

use rtc_ir::Kernel;

use super::insert_waits;
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::{PassContext, PassError};

/// The registers of a thread in addition to all tiles of a loop.
pub(crate) const SCALAR_REGISTERS: u32 = 16;

/// The registers of a thread in addition to its accumulators.
pub(crate) const OTHER_REGISTERS: u32 = 56;

/// Bytes of results per warp that go through shared memory at a time.
pub(crate) const STORED_BYTES: u32 = 4096;

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

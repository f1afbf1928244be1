//! Shared memory and registers of a kernel as scheduled.

use rtc_ir::{BARRIER_BYTES, Kernel, OpKind, place_bytes, scratch_align, scratch_bytes, walk};

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

/// Whether a kernel takes at most `most` bytes of shared memory.
pub(crate) fn fits_shared(kernel: &Kernel, cx: &PassContext, most: u32) -> Result<bool, PassError> {
    if apart_bytes(kernel).is_some_and(|bytes| bytes <= u64::from(most)) {
        return Ok(true);
    }
    Ok(shared_bytes(kernel, cx)?.is_some_and(|bytes| bytes <= most))
}

/// The shared memory that a kernel takes if its buffers lie one behind the other, a bound that is quick to compute; `None` if
/// conversions have no buffers yet.
fn apart_bytes(kernel: &Kernel) -> Option<u64> {
    let mut end = 0u64;
    for op in walk(kernel) {
        let bytes = || place_bytes(kernel.value_type(kernel.result(op, 0)));
        let (align, bytes) = match kernel.kind(op) {
            OpKind::AllocShared { align, .. } => (u64::from(*align), bytes()),
            OpKind::AllocBarriers { .. } => (u64::from(BARRIER_BYTES), bytes()),
            OpKind::ConvertLayout {} if split_conversions::is_split(kernel, op) => return None,
            kind => match scratch_bytes(kernel, op) {
                Some(bytes) => (u64::from(scratch_align(kind)), u64::from(bytes)),
                None => continue,
            },
        };
        end = end.next_multiple_of(align.max(1)) + bytes;
    }
    Some(end)
}

/// The shared memory that a kernel takes; `None` if it is too much.
fn shared_bytes(kernel: &Kernel, cx: &PassContext) -> Result<Option<u32>, PassError> {
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

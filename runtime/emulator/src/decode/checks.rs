//! Which programs are checked for order in shared memory, and how finely.

use crate::code::{Code, FenceKind, Kind, Window};

/// Decides what is checked: everything in programs with asynchronous instructions.
pub(super) fn choose(code: &mut Code) {
    let asynchronous = |kind: &Kind| {
        matches!(
            kind,
            Kind::CopyAsync(_)
                | Kind::CopyArrive(..)
                | Kind::Mbarrier(_)
                | Kind::MbarrierTest(_)
                | Kind::Tensor(_)
                | Kind::Bulk(_)
                | Kind::Product(_)
                | Kind::Fence(FenceKind::Proxy)
        )
    };
    code.products = code.ops.iter().any(|op| matches!(op.kind, Kind::Product(_)));
    if code.ops.iter().any(|op| asynchronous(&op.kind)) {
        // Copies and matrices move at least 4 bytes at once.
        code.granule = Some(code.ops.iter().filter_map(|op| width(&op.kind)).min().unwrap_or(16).min(16));
    }
}

/// Bytes that one lane accesses in shared memory.
fn width(kind: &Kind) -> Option<u32> {
    let (address, bytes) = match kind {
        Kind::Load(load) => (load.address, load.bytes * load.registers.len() as u32),
        Kind::Store(store) => (store.address, store.bytes * store.sources.len() as u32),
        Kind::Atomic(atomic) => (atomic.address, atomic.bytes * atomic.sources.len() as u32),
        Kind::CopyAsync(copy) => (copy.to, copy.bytes),
        _ => return None,
    };
    matches!(address.window, Window::Shared | Window::Generic).then_some(bytes.next_power_of_two())
}

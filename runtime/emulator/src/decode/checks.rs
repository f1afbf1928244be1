//! Which programs are checked for order in shared memory, and how finely.

use crate::code::{Code, FenceKind, Kind, Window};

/// Decides on the checks: all of them for programs with asynchronous instructions.
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
    code.asynchronous = code.ops.iter().any(|op| asynchronous(&op.kind));
    // Copies and matrices move at least 4 bytes at once.
    let narrowest = |window: Window| {
        let widths = code.ops.iter().filter_map(|op| width(&op.kind, window));
        widths.min().unwrap_or(16).min(16)
    };
    (code.granule, code.global_granule) = (narrowest(Window::Shared), narrowest(Window::Global));
}

/// Bytes that one lane accesses in a window.
fn width(kind: &Kind, window: Window) -> Option<u32> {
    let (address, bytes) = match kind {
        Kind::Load(load) => (load.address, load.bytes * load.registers.len() as u32),
        Kind::Store(store) => (store.address, store.bytes * store.sources.len() as u32),
        Kind::Atomic(atomic) => (atomic.address, atomic.bytes * atomic.sources.len() as u32),
        Kind::CopyAsync(copy) if window == Window::Shared => (copy.to, copy.bytes),
        Kind::CopyAsync(copy) => (copy.from, copy.bytes),
        Kind::Tensor(_) if window == Window::Global => return Some(1),
        _ => return None,
    };
    (address.window == window || address.window == Window::Generic).then_some(bytes.next_power_of_two())
}

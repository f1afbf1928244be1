//! A dot of a consumer with the barriers around it, and the operations that may change places with it.

use rtc_ir::{Kernel, Op, OpKind, Traits, Type, regions, view};

/// A dot, with the wait for what it reads before it and the arrival that frees it after.
#[derive(Clone, Copy)]
pub(super) struct GuardedMma {
    /// The wait.
    pub wait: Op,
    /// The dot.
    pub mma: Op,
    /// The arrival.
    pub arrive: Op,
}

impl GuardedMma {
    /// Those around a dot, if only views of rings lie between them.
    pub fn of(kernel: &Kernel, mma: Op) -> Option<GuardedMma> {
        let mut wait = kernel.previous_op(mma)?;
        while is_view(kernel, wait) {
            wait = kernel.previous_op(wait)?;
        }
        let arrive = kernel.next_op(mma)?;
        let guarded = matches!(kernel.kind(wait), OpKind::BarrierWait {})
            && matches!(kernel.kind(arrive), OpKind::BarrierArrive { .. });
        guarded.then_some(GuardedMma { wait, mma, arrive })
    }

    /// All three.
    pub fn all(&self) -> [Op; 3] {
        [self.wait, self.mma, self.arrive]
    }

    /// The slots of the ring that the operands come through.
    pub fn slots(&self, kernel: &Kernel) -> u32 {
        let barrier = view::BarrierWait::at(kernel, self.wait).barrier();
        match kernel.allocation(barrier).map(|made| kernel.value_type(kernel.result(made, 0))) {
            Some(Type::Barrier { slots }) => slots,
            _ => 0,
        }
    }
}

/// Whether an operation can be done in another order with the dots.
pub(super) fn is_movable(kernel: &Kernel, op: Op) -> bool {
    let pure = |op: Op| {
        let traits = kernel.kind(op).spec().traits;
        traits.has(Traits::PURE)
            || matches!(kernel.kind(op), OpKind::ConvertLayout {})
            || traits.has(Traits::TERMINATOR)
            || matches!(kernel.kind(op), OpKind::Load { volatile: false, .. })
    };
    let loops = regions::is_loop(kernel.kind(op));
    let combines = kernel.kind(op).spec().traits.has(Traits::NESTED) && !loops;
    (combines || pure(op)) && rtc_ir::walk_nested(kernel, op).into_iter().all(pure)
}

/// Whether an operation reads row vectors that the producer has copied, waits for them or frees them; these stay in
/// order.
pub(super) fn reads_row(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::LocalLoad {} | OpKind::BarrierWait {} | OpKind::BarrierArrive {})
}

/// Whether an operation is a view of a ring.
pub(crate) fn is_view(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    matches!(kind, OpKind::Slot {} | OpKind::SharedTrans { .. } | OpKind::SharedSlice { .. } | OpKind::SharedView {})
}

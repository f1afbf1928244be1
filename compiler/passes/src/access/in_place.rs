//! Loops that store through the pointers that they load through, and go on to other addresses with each iteration: what an
//! iteration stores no later one loads.
//!
//! ```text
//! for_range .. (%p) {
//!   %x = load %p               1024 elements from %start + 4096 * round on:
//!   store %p, %s               the loads of later iterations may be begun before this
//!   %next = addptr %p, 4096
//!   yields (%next)
//! }
//! ```

use rtc_ir::analysis::{Affine, AffineForm, Interval, Poly, Ranges, Symbol, Wraps};
use rtc_ir::{Kernel, Op, OpKind, Value, regions};

/// Whether no iteration of a loop loads through `pointer` what has been written by `store` before, in it or in an earlier one.
pub(crate) fn is_ahead_of(kernel: &Kernel, of: Op, pointer: Value, store: Op) -> bool {
    let body = kernel.op(of).blocks[0];
    let reads = |user: &Op| matches!(kernel.kind(*user), OpKind::Load { .. } | OpKind::CopyAsync { .. });
    let loads: Vec<Op> = kernel.users(pointer).into_iter().filter(reads).collect();
    let written = kernel.operand(store, 0);
    let elem = |value: Value| kernel.value_type(value).elem().and_then(|elem| elem.pointee());
    let within = loads.iter().chain([&store]).all(|op| kernel.op(*op).parent == Some(body));
    if !within || elem(pointer) != elem(written) {
        return false;
    }
    let ranges = Ranges::new(kernel);
    let mut affine = Affine::exact(kernel, &ranges);
    let [read, write] = [pointer, written].map(|value| Places::of(kernel, of, &affine.of(value)?, value));
    let (Some(read), Some(write)) = (read, write) else { return false };
    let load_first = loads.iter().all(|load| kernel.is_before(*load, store));
    read.are_ahead_of(&write, load_first).unwrap_or(false)
}

/// The elements that a tile of pointers leads to.
struct Places {
    pointer: Value,
    /// Where it begins.
    start: Poly,
    /// From one iteration to the next.
    step: i128,
    /// From the start.
    extent: Interval,
}

impl Places {
    fn of(kernel: &Kernel, of: Op, form: &AffineForm, value: Value) -> Option<Places> {
        (form.wraps == Wraps::Never).then_some(())?;
        let (step, mut start) = form.poly.split(Symbol::Round(of))?;
        let mut extent = Interval::constant(0);
        for (axis, size) in kernel.value_type(value).shape().iter().flat_map(|shape| shape.iter()).enumerate() {
            let (stride, rest) = start.split(Symbol::Dim(u8::try_from(axis).ok()?))?;
            let last = stride.value()? * (i128::from(*size) - 1);
            extent = Interval::new(extent.low + last.min(0), extent.high + last.max(0));
            start = rest;
        }
        // A number that changes within the loop may be another one in each iteration.
        let changes = |symbol| match symbol {
            Symbol::Scalar(value) => !regions::is_outside(kernel, value, of),
            Symbol::Program(_) | Symbol::Programs(_) => false,
            Symbol::Round(_) | Symbol::Rounds(_) | Symbol::Dim(_) | Symbol::Wrap(_) => true,
        };
        let pointer = form.pointer.filter(|pointer| regions::is_outside(kernel, *pointer, of))?;
        (!start.mentions(changes)).then_some(())?;
        Some(Places { pointer, start, step: step.value()?, extent })
    }

    /// Whether these are others than those of each earlier iteration of the loop and, unless they come first there, of the
    /// same one.
    fn are_ahead_of(&self, earlier: &Places, come_first: bool) -> Option<bool> {
        (self.pointer == earlier.pointer && self.step == earlier.step).then_some(())?;
        let apart = self.start.plus(&earlier.start, -1)?.value()?;
        let (low, high) = (apart + self.extent.low, apart + self.extent.high);
        let (above, below) = (|by: i128| by + low > earlier.extent.high, |by: i128| by + high < earlier.extent.low);
        let later = self.step > 0 && above(self.step) || self.step < 0 && below(self.step);
        Some(later && (come_first || above(0) || below(0)))
    }
}

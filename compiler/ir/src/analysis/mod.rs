//! Analyses that passes and lints share. Each visits a kernel once and answers per value.
//!
//! | analysis | answers |
//! | --- | --- |
//! | `ranges.rs`, `interval.rs` | the range of an integer; whether an operation can overflow |
//! | `affine.rs`, `induction.rs`, `poly.rs` | a value as a polynomial of program ids, loop indices, indices in the tile, arguments |
//! | `bounds.rs` | a mask as a conjunction of `offset < bound` along one dimension each |
//! | `address.rs` | a tile of addresses: pointer, and stride and start per dimension |
//! | `reach.rs` | through which parameters memory is read and written |
//! | `extent.rs`, `launch_range.rs`, `sum.rs` | how many elements are accessed behind each pointer, as a polynomial of arguments and the grid |
//! | `axis_info.rs`, `axis.rs` | along each dimension of a tile: runs that grow by one, runs of equal values, divisors |
//! | `steps.rs` | the step of an address for each bit of an index in a tile, as an estimate |
//!
//! An analysis follows values through nested blocks by the slots of `regions.rs`, a bounded number of times around each
//! loop. Each has a printer for tests ([`annotated`]) and annotated kernels under `tests/filetests/analysis/`.

mod address;
mod affine;
mod axis;
mod axis_info;
mod bounds;
mod extent;
mod induction;
mod interval;
mod launch_range;
mod ordered;
mod poly;
mod ranges;
mod reach;
mod steps;
mod sum;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::text::print::{PrintOptions, Printer, indent};
use crate::{Kernel, Op, Value};

pub use address::{Address, AddressAxis};
pub use affine::{Affine, AffineForm, Wrap};
pub use axis::Axis;
pub use axis_info::{AxisInfo, AxisInfos, axis_info};
pub use bounds::{Bound, BoundSide, Mask, Part, conjunction};
pub use extent::{Extent, ParamAccess, print as print_touched, touched};
pub use interval::Interval;
pub use launch_range::{LaunchRange, LaunchRanges};
pub use poly::{Poly, Symbol, Term};
pub use ranges::{Growth, Ranges, Wraps};
pub use reach::{Reach, reach};
pub use steps::{Step, Steps};
pub use sum::Sum;

/// The names of values in the text of a kernel, for printers.
pub type NameOf<'a> = &'a dyn Fn(Value) -> String;

/// The text of a kernel with a comment below each operation: what `value` says of its results and of the arguments of
/// its blocks, and what `op` says of the operation itself.
pub fn annotated(
    kernel: &Kernel,
    value: &dyn Fn(Value, NameOf<'_>) -> Option<String>,
    op: &dyn Fn(Op, NameOf<'_>) -> Option<String>,
) -> String {
    let printer = Printer::new(kernel, PrintOptions::default());
    let name = |value: Value| format!("%{}", printer.name(value));
    let mut out = String::new();
    let line = |out: &mut String, depth: usize, of: Value| {
        if let Some(text) = value(of, &name) {
            indent(out, depth);
            let _ = writeln!(out, "// {}: {text}", name(of));
        }
    };
    for param in &kernel.params {
        line(&mut out, 0, param.value);
    }
    let _ = printer.kernel(&mut out, &mut |out, at, depth| {
        let data = kernel.op(at);
        let inside = data.blocks.iter().flat_map(|block| &kernel.block(*block).args);
        inside.chain(&data.results).for_each(|value| line(out, depth + 1, *value));
        if let Some(text) = op(at, &name) {
            indent(out, depth + 1);
            let _ = writeln!(out, "// {text}");
        }
        Ok(())
    });
    out
}

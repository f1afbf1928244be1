//! The layout conversions of a kernel: their number and kind, how many bytes go through shared memory, and which is the
//! most expensive. Computed before `split_conversions`, which leaves no conversion through shared memory.

use rtc_ir::{Kernel, Op, OpKind, Value, view};
use rtc_layout::conversion;
use rtc_source::{Code, Diagnostic};

use super::weight::{loop_depth, weight};

/// The conversions of a kernel, each counted once however often a loop runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Those through shared memory.
    pub shared: u32,
    /// The bytes of the tiles that go through shared memory.
    pub shared_bytes: u64,
    /// The part of these bytes that conversions in loops move.
    pub looped_bytes: u64,
    /// Those by shuffles within warps.
    pub shuffles: u32,
    /// Those that only rename registers.
    pub registers: u32,
}

/// The conversions of a kernel that has layouts.
pub fn conversions(kernel: &Kernel) -> Conversions {
    let mut found = Conversions::default();
    for op in rtc_ir::walk(kernel) {
        match conversion_of(kernel, op) {
            Some(rtc_layout::Conversion::Shared) => {
                found.shared += 1;
                found.shared_bytes += bytes(kernel, op);
                if kernel.op(op).parent.is_some_and(|block| loop_depth(kernel, block) > 0) {
                    found.looped_bytes += bytes(kernel, op);
                }
            }
            Some(rtc_layout::Conversion::Shuffles(_)) => found.shuffles += 1,
            Some(rtc_layout::Conversion::Registers(_)) => found.registers += 1,
            Some(rtc_layout::Conversion::Identity) | None => {}
        }
    }
    found
}

/// The remark about conversions through shared memory, with the most expensive one.
pub fn conversions_remark(kernel: &Kernel) -> Option<Diagnostic> {
    let found = conversions(kernel);
    let through_shared = |op: &Op| conversion_of(kernel, *op) == Some(rtc_layout::Conversion::Shared);
    let all: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(through_shared).collect();
    // The first of equal ones.
    let most_expensive = *all.iter().rev().max_by_key(|op| bytes(kernel, **op) * weight(kernel, **op))?;
    let count = |n: u32, what: &str| format!("{n} layout conversion{} {what}", if n == 1 { "" } else { "s" });
    let mut message = count(found.shared, &format!("through shared memory, {} bytes", found.shared_bytes));
    if found.looped_bytes > 0 {
        message += &format!(", {} of them in loops", found.looped_bytes);
    }
    if found.shuffles > 0 {
        message += &format!("; {}", count(found.shuffles, "by shuffles"));
    }
    let mnemonic = |op: Option<Op>| op.map_or("a loop", |op| kernel.kind(op).spec().mnemonic);
    let (source, result) = (view::ConvertLayout::at(kernel, most_expensive).source(), kernel.result(most_expensive, 0));
    let user = kernel.users(result).first().copied();
    let label = format!(
        "the most expensive moves {} bytes, a {} from `{}` to `{}`",
        bytes(kernel, most_expensive),
        tile(kernel, result),
        mnemonic(kernel.def_op(source)),
        mnemonic(user)
    );
    let place = user.unwrap_or(most_expensive);
    let span = kernel.loc(kernel.op(place).loc).span.unwrap_or_default();
    Some(Diagnostic::remark(Code::COST, span, message).primary(label))
}

/// A tile in words.
fn tile(kernel: &Kernel, value: Value) -> String {
    let ty = kernel.value_type(value);
    let sides: Vec<String> = ty.shape().iter().flat_map(|s| s.iter()).map(u32::to_string).collect();
    format!("tile of {} elements of {} bytes", sides.join(" x "), ty.elem().map_or(0, |e| e.bytes()))
}

/// How a conversion moves its tile; `None` for other operations.
pub(crate) fn conversion_of(kernel: &Kernel, op: Op) -> Option<rtc_layout::Conversion> {
    let data = kernel.op(op);
    let OpKind::ConvertLayout {} = data.kind else { return None };
    Some(conversion(
        kernel.layout_of(view::ConvertLayout::at(kernel, op).source())?,
        kernel.layout_of(data.results[0])?,
    ))
}

/// The size of the tile that an operation gives.
fn bytes(kernel: &Kernel, op: Op) -> u64 {
    let ty = kernel.value_type(kernel.result(op, 0));
    ty.shape().map_or(1, |s| s.numel()) * ty.elem().map_or(0, |e| u64::from(e.bytes()))
}

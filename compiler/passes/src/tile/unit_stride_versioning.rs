//! Versioning of a kernel for strides that happen to be 1.
//!
//! ```text
//! {program}   →   if_else (%stride == 1) ^() { {program with 1 for %stride} } ^() { {program} }
//! ```
//!
//! A stride without a promise, such as a 64-bit argument that no launcher specializes, makes contiguous elements look
//! distant: each is an access of its own, and a warp touches a sector for each. The version is made if a load or store
//! of a loop would then have full width, and if runs of neighbours are at least four times longer; if other strides
//! prevent that, the branch would gain nothing. There is at most one such version of a kernel, for all these strides
//! together, and none of a kernel that has versions already.

use std::collections::HashSet;

use rtc_abi::{ParamType, ValueType};
use rtc_ir::analysis::{Step, Steps, axis_info};
use rtc_ir::{Builder, Kernel, Literal, Op, OpKind, Phase, Value};

use super::alignment_versioning::{Ask, MOST_OPERATIONS, WIDEST, asked_of, is_reached, reached, split};
use crate::access::addresses::{innermost_loops, loads_of_dots};
use crate::access::specializable::may_specialize;
use crate::access::vector_width::{pointee_bytes, vector_width};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "unit-stride-versioning", needs: Phase::Tile, leaves: Phase::Tile, run };

/// Bytes that memory is read in.
const SECTOR: u64 = 32;
/// How many times fewer sectors are worth a second version.
const FEWER: u64 = 4;
/// Bytes of a tile that a warp's widest access takes.
const WARP: u64 = 32 * WIDEST;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let all = rtc_ir::walk(kernel);
    let has_versions = all.iter().any(|op| asked_of(kernel, *op).is_some());
    if has_versions || all.len() > MOST_OPERATIONS || kernel.specialization().is_some() {
        return Ok(());
    }
    let loops = innermost_loops(kernel);
    let mut accesses: Vec<Op> =
        loops.iter().flat_map(|of| rtc_ir::walk_block(kernel, kernel.op(*of).blocks[0])).collect();
    accesses.retain(|op| is_large(kernel, *op));
    let params = open(kernel, &accesses);
    if params.is_empty() {
        return Ok(());
    }
    let now = runs(kernel, &accesses);
    let mut left: Vec<usize> = (0..accesses.len()).collect();
    let mut needed = Vec::new();
    for param in params {
        let then = runs(&with_one(kernel, param)?, &accesses);
        let before = left.len();
        left.retain(|access| !then[*access].is_profitable(&now[*access]));
        if left.len() < before {
            needed.push(param);
        }
    }
    let dots: Vec<Op> = loops.into_iter().flat_map(|of| loads_of_dots(kernel, of)).collect();
    if needed.is_empty() || !dots.is_empty() && may_specialize(kernel, cx, &dots)? {
        return Ok(());
    }
    split(kernel, &needed, Ask::One)?;
    // Multiplications by one, and their users.
    (super::simplify::PASS.run)(kernel, cx)
}

/// Whether an operation accesses a tile in memory that is not smaller than the widest access of a warp.
fn is_large(kernel: &Kernel, op: Op) -> bool {
    let (OpKind::Load { .. } | OpKind::Store { .. }) = kernel.kind(op) else { return false };
    let Some(pointer) = kernel.pointer(op) else { return false };
    let bytes = pointee_bytes(kernel, pointer);
    kernel.value_type(pointer).shape().is_some_and(|shape| shape.numel() * bytes >= WARP)
}

/// The integer parameters without promises that addresses of these accesses depend on, if the parameter is a distance
/// between neighbours.
fn open(kernel: &Kernel, accesses: &[Op]) -> Vec<usize> {
    let pointers = |of: &dyn Fn(Value) -> bool| {
        let all = accesses.iter().filter_map(|access| kernel.pointer(*access));
        reached(kernel, all.filter(|pointer| of(*pointer)).collect())
    };
    let open = |seen: &HashSet<Value>| -> Vec<usize> {
        let is_open = |number: &usize| {
            let param = &kernel.params[*number];
            let is_integer = matches!(&param.ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_integer());
            is_integer && is_reached(param, seen) && param.divisible_by <= 1
        };
        (0..kernel.params.len()).filter(is_open).collect()
    };
    // Few kernels have any.
    if open(&pointers(&|_| true)).is_empty() {
        return Vec::new();
    }
    let infos = axis_info(kernel);
    let steps = Steps::new(kernel, &infos);
    let is_neighbours = |pointer: Value| {
        let bytes = pointee_bytes(kernel, pointer) as i64;
        steps.of(pointer).contains(&Step::Times(bytes))
    };
    open(&pointers(&is_neighbours))
}

/// How an access takes its tile.
struct AccessPattern {
    /// Bytes that lie side by side.
    together: u64,
    /// Bytes of a thread at once.
    width: u64,
}

impl AccessPattern {
    fn is_profitable(&self, now: &AccessPattern) -> bool {
        self.width >= WIDEST && self.together.min(SECTOR) >= FEWER * now.together
    }
}

fn runs(kernel: &Kernel, accesses: &[Op]) -> Vec<AccessPattern> {
    let infos = axis_info(kernel);
    let of = |access: &Op| {
        let (pointer, mask) = (kernel.pointer(*access)?, kernel.mask(*access));
        let rank = kernel.value_type(pointer).shape().map_or(0, |shape| shape.rank());
        let bytes = pointee_bytes(kernel, pointer);
        let most = |of: &dyn Fn(usize) -> u64| (0..rank).map(of).max().unwrap_or(1) * bytes;
        Some(AccessPattern {
            together: most(&|axis| infos.axis(pointer, axis).contiguity),
            width: most(&|axis| vector_width(kernel, &infos, pointer, mask, axis)),
        })
    };
    accesses.iter().filter_map(of).collect()
}

/// The kernel with 1 for a parameter.
fn with_one(kernel: &Kernel, param: usize) -> Result<Kernel, PassError> {
    let mut trial = kernel.clone();
    let (value, body) = (trial.params[param].value, trial.body());
    let ty = trial.value_type(value);
    let one = Builder::at_start(&mut trial, body).constant_of(Literal::Int(1), ty)?;
    trial.replace_uses(value, one);
    Ok(trial)
}

//! Loads that read the same address several times in a row along a dimension read it once.
//!
//! ```text
//! %p = .. (32 * %i + arange(0, 32)) // 128 ..                    %q = .. (32 * %i + 0) // 128 ..
//! %s = load %p : tile<32x64xf16>                            →    %t = load %q : tile<1x64xf16>
//!                                                                %s = broadcast %t : tile<32x64xf16>
//!
//! %p = .. arange(0, 32) // 2 ..                                  %q = .. (2 * arange(0, 16)) // 2 ..
//! %b = load %p : tile<32x64xi8>                             →    %c = load %q : tile<16x64xi8>
//!                                                                %d = expand_dims %c, broadcast : tile<16x2x64xi8>
//!                                                                %b = reshape %d : tile<32x64xi8>
//! ```
//!
//! Scales of groups of elements and bytes that hold two elements are loaded so. `axis_info` proves that the address, the mask
//! and the value for masked elements are the same; they are computed again for one element of each run, by the same
//! operations on smaller tiles. An operand that goes from memory to a dot unchanged keeps its runs: it can be copied to shared
//! memory asynchronously. So does a tile that would leave threads without an element, as distributing one element to several
//! threads costs more than equal addresses in a warp; except where it is broadcast to a tile that has an element for every
//! thread, such as the scales of an accumulator's columns; and where addresses are computed from it, whose chain gets shorter:
//! attention with block tables of 16 rows took 11 to 13 % less time on an H100.

mod runs;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Builder, Kernel, Op, OpKind, Phase, Position, Type, Value};

use crate::access::addresses::is_part_of_address;
use crate::{Pass, PassContext, PassError};
use runs::{Narrow, Runs, can_narrow};

/// The pass.
pub const PASS: Pass = Pass { name: "narrow-loads", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let loads: Vec<Op> = rtc_ir::walk(kernel)
        .into_iter()
        .filter(|op| matches!(kernel.kind(*op), OpKind::Load { volatile: false, .. }))
        .filter(|op| kernel.value_type(kernel.result(*op, 0)).shape().is_some())
        .collect();
    if loads.is_empty() {
        return Ok(());
    }
    let infos = axis_info(kernel);
    let found: Vec<(Op, Vec<Runs>)> = loads.into_iter().map(|op| (op, repeated(kernel, &infos, op))).collect();
    let mut narrow = Narrow::default();
    for (load, all) in found {
        let mut made = load;
        let mut taken = Vec::new();
        for runs in all {
            let operands = kernel.op(made).operands.clone();
            if can_narrow(kernel, &operands, runs) {
                let operands: Vec<Value> =
                    operands.iter().map(|value| narrow.of(kernel, *value, runs)).collect::<Result<_, PassError>>()?;
                let ty = runs.narrowed(kernel.value_type(kernel.result(made, 0)))?;
                made = kernel.clone_op(made, &operands, &[ty]);
                kernel.insert_op(made, Position::Before(load));
                taken.push(runs);
            }
        }
        if made != load {
            let wide = widened(kernel, load, made, &taken)?;
            kernel.replace_uses(kernel.result(load, 0), wide);
            kernel.erase(load);
        }
    }
    Ok(())
}

/// The dimensions along which all operands of a load have runs of equal elements.
fn repeated(kernel: &Kernel, infos: &AxisInfos, load: Op) -> Vec<Runs> {
    let result = kernel.result(load, 0);
    let Some(shape) = kernel.value_type(result).shape() else { return Vec::new() };
    let is_operand = kernel.users(result).into_iter().any(|op| matches!(kernel.kind(op), OpKind::Dot { .. }));
    let threads = u64::from(kernel.options.num_warps) * 32;
    let is_index = is_part_of_address(kernel, result);
    // Threads that hold a row or a column of a larger tile have their elements of a vector that is broadcast to it.
    let held = broadcast_to(kernel, result).unwrap_or(shape.numel());
    let runs = |axis: usize| {
        let constancy = kernel.op(load).operands.iter().map(|value| infos.axis(*value, axis).constancy).min()?;
        let size = shape[axis];
        // A power of two that divides the runs.
        let length = if constancy >= u64::from(size) { size } else { 1 << constancy.trailing_zeros() };
        let is_whole = length == size;
        let is_worth = !is_operand && (is_index || held / u64::from(length) >= threads);
        (length > 1 && (is_whole || is_worth)).then_some(Runs { axis, length })
    };
    (0..shape.rank()).filter_map(runs).collect()
}

/// The elements of the smallest tile that a vector is broadcast to, if it is used only so.
fn broadcast_to(kernel: &Kernel, value: Value) -> Option<u64> {
    let sizes = kernel.users(value).into_iter().map(|user| match kernel.kind(user) {
        OpKind::ExpandDims { .. } => broadcast_to(kernel, kernel.result(user, 0)),
        OpKind::Broadcast {} => kernel.value_type(kernel.result(user, 0)).shape().map(|shape| shape.numel()),
        _ => None,
    });
    sizes.collect::<Option<Vec<u64>>>()?.into_iter().min()
}

/// The elements of `load` from those of `made`, which has one of each run.
fn widened(kernel: &mut Kernel, load: Op, made: Op, taken: &[Runs]) -> Result<Value, PassError> {
    let ty = kernel.value_type(kernel.result(load, 0));
    let mut value = kernel.result(made, 0);
    let mut builder = Builder::before(kernel, load);
    // From the last dimension on, as each step puts a dimension behind its own.
    for Runs { axis, length } in taken.iter().rev() {
        let Some(tile) = builder.kernel().value_type(value).as_tile() else { continue };
        if tile.shape[*axis] == 1 {
            continue;
        }
        let count = tile.shape[*axis];
        let apart = builder.expand_dims(value, *axis as u32 + 1)?;
        let repeated = tile.shape.with(axis + 1, *length);
        let whole = tile.shape.without(*axis).with(*axis, count * length);
        let (Some(repeated), Some(whole)) = (repeated, whole) else {
            return Err(PassError::Internal("a tile of too many dimensions".into()));
        };
        let repeated = builder.broadcast_to(apart, Type::tile(tile.elem, repeated))?;
        value = builder.reshape_to(repeated, Type::tile(tile.elem, whole), false)?;
    }
    if builder.kernel().value_type(value) == ty { Ok(value) } else { Ok(builder.broadcast_to(value, ty)?) }
}

//! Replaces loop-carried induction variables that equal the loop's index by the index.
//!
//! ```text
//! for_range %start, %n, %step, (%before) ^(%tile, %last) {      for_range %start, %n, %step, (%before) ^(%tile, %last) {
//!   %this = addi %last, %step                              →      (uses of %this are uses of %tile)
//! ```
//!
//! Persistent kernels count the tile that they store separately from the one that they load; values derived from the
//! two are then computed once. If two loop-carried integers are equal, but not equal to the index, the earlier one
//! replaces the other.

use rtc_ir::analysis::{Affine, Poly, Ranges, Symbol};
use rtc_ir::{Kernel, Op, OpKind, Phase, Type, Value};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "unify-induction-variables", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for (value, same) in found(kernel) {
        kernel.replace_uses(value, same);
    }
    Ok(())
}

/// Sums in the bodies of loops that equal the counter or an earlier sum, and that.
fn found(kernel: &Kernel) -> Vec<(Value, Value)> {
    let is_loop = |op: &Op| matches!(kernel.kind(*op), OpKind::ForRange { .. });
    let loops: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(is_loop).collect();
    let mut out = Vec::new();
    if loops.iter().all(|of| kernel.op(*of).results.is_empty()) {
        return out;
    }
    let ranges = Ranges::new(kernel);
    let mut affine = Affine::new(kernel, &ranges);
    for of in loops {
        let body = kernel.op(of).blocks[0];
        let counter = kernel.block(body).args[0];
        let Some(wanted) = affine.of(counter) else { continue };
        if !wanted.poly.mentions(|symbol| symbol == Symbol::Round(of)) {
            continue;
        }
        let mut sums: Vec<(Value, Poly)> = Vec::new();
        for op in kernel.ops(body) {
            let (OpKind::AddI {} | OpKind::SubI {}) = kernel.kind(op) else { continue };
            let value = kernel.result(op, 0);
            let alike = matches!(kernel.value_type(value), Type::Scalar(_))
                && kernel.value_type(value) == kernel.value_type(counter);
            // Equal polynomials are equal in as many bits as both represent.
            let width = kernel.value_type(counter).elem().map_or(0, |elem| elem.bits());
            let Some(form) = affine.of(value).filter(|form| alike && form.bits >= width) else { continue };
            if form.poly == wanted.poly && wanted.bits >= width {
                out.push((value, counter));
                continue;
            }
            let carried = |operand: &Value| kernel.block(body).args[1..].contains(operand);
            let runs = form.poly.mentions(|symbol| symbol == Symbol::Round(of));
            if !runs || !kernel.op(op).operands.iter().any(carried) {
                continue;
            }
            match sums.iter().find(|(_, poly)| *poly == form.poly) {
                Some((earlier, _)) => out.push((value, *earlier)),
                None => sums.push((value, form.poly)),
            }
        }
    }
    out
}

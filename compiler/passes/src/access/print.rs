//! The accesses of a kernel as text, for tests and for people: each as a box of a tensor, or why it is none.
//!
//! ```text
//! // box of %a: [pid0 * 64 of %m, stride %k] [i of %k], zeros outside
//! // no box [mask-form]: a mask is not a conjunction of `index < size` comparisons
//! ```

use std::cell::RefCell;

use rtc_ir::analysis::{NameOf, Poly, Ranges, annotated};
use rtc_ir::{Kernel, Op, OpKind};

use super::box_access::{BoxAccess, BoxAxis, Fill};
use super::box_analysis::BoxAnalysis;

/// The kernel with a comment below each load, store and atomic operation on a tile.
///
/// ```
/// let kernel = rtc_ir::text::parse(
///     "kernel @copy(%x: ptr<f32> {sig = \"*fp32\", align = 16}) warps 4 phase tile {
///        %i = arange {start = 0, end = 64} : tile<64xi32>
///        %p = splat %x : tile<64xptr<f32>>
///        %q = addptr %p, %i : tile<64xptr<f32>>
///        %v = load %q : tile<64xf32>
///        ret
///      }",
/// )?;
/// assert!(rtc_passes::print_accesses(&kernel).contains("// no box [not-matrix]: the tile is not a 2-D numeric tile"));
/// # Ok::<(), rtc_ir::text::ParseError>(())
/// ```
pub fn print_accesses(kernel: &Kernel) -> String {
    let ranges = Ranges::new(kernel);
    let known = RefCell::new(BoxAnalysis::new(kernel, &ranges));
    let text = |op: Op, name: NameOf<'_>| {
        let pointer = || kernel.value_type(kernel.operand(op, 0)).shape().is_some();
        let mut known = known.borrow_mut();
        let access = match kernel.kind(op) {
            OpKind::Load { .. } if pointer() => known.load(op),
            OpKind::Store { .. } if pointer() => known.stored(op),
            OpKind::AtomicRmw { .. } if pointer() => known.access(op, kernel.mask(op)),
            _ => return None,
        };
        Some(match access {
            Ok(access) => shown(&known, &access, name),
            Err(refusal) => format!("no box [{}]: {}", refusal.code(), refusal.message()),
        })
    };
    annotated(kernel, &|_, _| None, &text)
}

fn shown(known: &BoxAnalysis<'_>, access: &BoxAccess, name: NameOf<'_>) -> String {
    let poly = |poly: &Poly| known.affine.poly_text(poly, name);
    let mut out = format!("box of {}", name(access.base));
    if access.start.value() != Some(0) {
        out.push_str(&format!(" + {}", poly(&access.start)));
    }
    let sizes = |sizes: &[Poly]| -> String {
        let all: Vec<String> = sizes.iter().map(&poly).collect();
        if all.is_empty() { String::new() } else { format!(" of {}", all.join(" and ")) }
    };
    out.push(':');
    let sign = |from_zero: bool| if from_zero { "" } else { ", may be negative" };
    for BoxAxis { index, stride, sizes: ends, from_zero, .. } in &access.outer {
        out.push_str(&format!(" [{}{}{}, stride {}, one]", poly(index), sizes(ends), sign(*from_zero), poly(stride)));
    }
    for (axis, BoxAxis { index, stride, sizes: ends, modulus, from_zero }) in access.axes.iter().enumerate() {
        let stride = if axis == access.inner { String::new() } else { format!(", stride {}", poly(stride)) };
        let modulus = modulus.as_ref().map_or(String::new(), |modulus| format!(" modulo {}", poly(modulus)));
        out.push_str(&format!(" [{}{modulus}{}{}{stride}]", poly(index), sizes(ends), sign(*from_zero)));
    }
    match access.fill {
        Fill::Zero => {}
        Fill::Nan => out.push_str(", NaN outside"),
        Fill::Either(flag) => out.push_str(&format!(", NaN outside if {}", name(flag))),
    }
    if access.descriptor.is_some() {
        out.push_str(", of a descriptor among the arguments");
    }
    if access.is_made {
        out.push_str(", its map made in the kernel");
    }
    out
}

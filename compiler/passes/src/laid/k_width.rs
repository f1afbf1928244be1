//! How many neighbours along the axis summed over a thread has in the operands of `mma.sync`.
//!
//! An operand that is cast lies in shared memory with elements of another size than the instruction takes. In the plain
//! layout a thread would read 2 bytes of an operand made of bytes at once; with a greater *k width*, which both operands
//! must have, it reads 4 or more, or `ldmatrix` does. The operand that is not cast may pay for that: its elements no
//! longer lie as `ldmatrix` wants them. So the reads of both are counted, and the cheapest width is taken.
//!
//! ```text
//! %b = load .. : tile<64x64xf8e4m3>                 mma_operand(.., bits 16, ..): 2 bytes at a time
//! %h = castf %b : tile<64x64xf16>            →      mma_operand(.., bits 16, k_width 4, ..): 4 bytes at a time
//! %s = dot %a, %h, ..
//! ```

use std::collections::HashSet;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Kernel, Op, OpKind, Traits, Value};
use rtc_layout::{Access, Layout, swizzle_for};

use super::rematerialize::is_cheap;

/// Bits that a copy brings, and that a thread loads, at once.
const WIDEST: u32 = 128;

/// How many operations between an operand and memory are looked at.
const BUDGET: usize = 32;

/// A tile of an operand's size from which it is computed, with elements of `bits` bits.
struct Source {
    bits: u32,
    /// The axis along which it lies in memory.
    inner: usize,
}

/// The layouts of both operands of a product, `[M, K]` and `[K, N]`, with the k width that suits their sources.
pub fn operands(kernel: &Kernel, op: Op, bits: u32, warps: &[u32]) -> [Layout; 2] {
    let values = [0, 1].map(|index| kernel.operand(op, index));
    let shape = |index: usize| kernel.value_type(values[index]).shape().map_or(Vec::new(), |shape| shape.to_vec());
    let shapes = [shape(0), shape(1)];
    let plain = [0, 1].map(|index| Layout::mma_operand(&shapes[index], index as u32, bits, warps));
    let Some(sources) = cast_sources(kernel, values, bits) else { return plain };
    let cost = |layouts: &[Layout; 2]| -> u32 {
        let of = |index: usize| sources[index].iter().map(|source| read(&layouts[index], source)).sum::<u32>();
        of(0) + of(1)
    };
    let narrowest = sources.iter().flatten().map(|source| source.bits).min().unwrap_or(bits);
    let widths = Layout::mma_k_widths(shapes[1][0], bits).take_while(|width| width * narrowest <= WIDEST);
    let wide = |width| [0, 1].map(|index| Layout::mma_operand_wide(&shapes[index], index as u32, bits, width, warps));
    let all = [plain].into_iter().chain(widths.map(wide));
    // The first of equal ones.
    all.min_by_key(cost).expect("the plain layouts are always tried")
}

/// From what two operands are computed, where either is cast; `None` where that does not matter: all elements have the
/// size that the instruction takes, or an operand comes out of registers.
fn cast_sources(kernel: &Kernel, operands: [Value; 2], bits: u32) -> Option<[Vec<Source>; 2]> {
    if kernel.value_type(operands[0]).shape()?.rank() != 2 {
        return None;
    }
    let mut found = Vec::new();
    let loads = operands.map(|operand| loads(kernel, operand));
    let [Some(lhs), Some(rhs)] = loads else { return None };
    let is_cast = |(load, _): &(Op, bool)| element_bits(kernel, *load) != Some(bits);
    if !lhs.iter().chain(&rhs).any(is_cast) {
        return None;
    }
    let infos = axis_info(kernel);
    for of in [lhs, rhs] {
        let source = |(load, turned): (Op, bool)| {
            let inner = innermost(kernel, &infos, load);
            Some(Source { bits: element_bits(kernel, load)?, inner: if turned { 1 - inner } else { inner } })
        };
        found.push(of.into_iter().filter_map(source).collect());
    }
    found.try_into().ok()
}

fn element_bits(kernel: &Kernel, load: Op) -> Option<u32> {
    kernel.value_type(kernel.result(load, 0)).elem().map(|elem| elem.bytes() * 8)
}

/// The loads of tiles of an operand's size from which it is computed element by element, and whether it has them turned;
/// `None` if it is also computed from something else.
fn loads(kernel: &Kernel, operand: Value) -> Option<Vec<(Op, bool)>> {
    let size = kernel.value_type(operand).shape()?.numel();
    let mut seen = HashSet::new();
    let mut open = vec![(operand, false)];
    let mut found = Vec::new();
    while let Some((value, turned)) = open.pop() {
        // A splat, or a counter of a loop: no data.
        let Some(shape) = kernel.value_type(value).shape() else { continue };
        if shape.numel() < size || !seen.insert(value) {
            continue;
        }
        if seen.len() > BUDGET {
            return None;
        }
        let op = kernel.def_op(value)?;
        let data = kernel.op(op);
        match &data.kind {
            OpKind::Load { .. } if shape.rank() == 2 => found.push((op, turned)),
            OpKind::Trans { .. } => open.push((data.operands[0], !turned)),
            kind if is_cheap(kind) || kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => {
                open.extend(data.operands.iter().map(|operand| (*operand, turned)));
            }
            _ => return None,
        }
    }
    Some(found)
}

/// The axis along which a load's elements lie in memory: the last one if nothing is known.
fn innermost(kernel: &Kernel, infos: &AxisInfos, load: Op) -> usize {
    let [along_0, along_1] = [0, 1].map(|axis| infos.axis(kernel.operand(load, 0), axis).contiguity);
    if along_0 > along_1 { 0 } else { 1 }
}

/// What reading a source from shared memory costs in an operand's layout.
fn read(layout: &Layout, source: &Source) -> u32 {
    let order = [source.inner as u32, 1 - source.inner as u32];
    let shared = swizzle_for(layout, source.bits, &order, WIDEST / source.bits, true);
    Access::best(&shared, layout, source.bits, true, false).cost(false)
}

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
use rtc_layout::{Access, Layout, MmaShape, swizzle_for};

use super::cost::weight;
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
    /// How often it is loaded.
    often: u64,
}

/// The layouts of both operands of a product, `[M, K]` and `[K, N]`, with the k width that suits their sources.
pub fn operands(kernel: &Kernel, op: Op, bits: u32, warps: &[u32]) -> [Layout; 2] {
    let values = [0, 1].map(|index| kernel.operand(op, index));
    let shapes = values.map(|value| kernel.value_type(value).shape().map_or(Vec::new(), |shape| shape.to_vec()));
    let plain = [0, 1].map(|index| Layout::mma_operand(&shapes[index], index as u32, bits, warps));
    let Some(sources) = cast_sources(kernel, values, bits) else { return plain };
    let steps = shapes[1][0];
    let plain_width = 32 / bits;
    // What comes in several loads is waited for longer, in more registers.
    let largest = sources.iter().flatten().map(|source| source.bits).max().unwrap_or(bits);
    let wider = Layout::mma_k_widths(steps, bits).take_while(|width| width * largest <= WIDEST);
    let cost = |width: &u32| -> u64 {
        let of = |index: usize| {
            let fragments = u64::from(plain[index].registers() / fragment(steps, index, bits, *width).registers());
            let reads = sources[index].iter().map(|source| source.often * read(steps, index, bits, *width, source));
            fragments * reads.sum::<u64>()
        };
        of(0) + of(1)
    };
    // The first of equal ones.
    let width = [plain_width].into_iter().chain(wider).min_by_key(cost).unwrap_or(plain_width);
    [0, 1].map(|index| Layout::mma_operand_wide(&shapes[index], index as u32, bits, width, warps))
}

/// From what two operands are computed, where either is cast; `None` where a k width changes nothing: all elements that lie
/// along K in memory have the size that the instruction takes, or an operand comes out of registers.
fn cast_sources(kernel: &Kernel, operands: [Value; 2], bits: u32) -> Option<[Vec<Source>; 2]> {
    if kernel.value_type(operands[0]).shape()?.rank() != 2 {
        return None;
    }
    let [Some(lhs), Some(rhs)] = operands.map(|operand| loads(kernel, operand)) else { return None };
    if lhs.iter().chain(&rhs).all(|(load, _)| element_bits(kernel, *load) == Some(bits)) {
        return None;
    }
    let infos = axis_info(kernel);
    let sources = [lhs, rhs].map(|of| {
        let source = |(load, turned): (Op, bool)| {
            let inner = innermost(kernel, &infos, load);
            let inner = if turned { 1 - inner } else { inner };
            Some(Source { bits: element_bits(kernel, load)?, inner, often: weight(kernel, load) })
        };
        of.into_iter().filter_map(source).collect::<Vec<_>>()
    });
    let along_k = |k_axis: usize, of: &[Source]| of.iter().any(|source| source.bits != bits && source.inner == k_axis);
    (along_k(1, &sources[0]) || along_k(0, &sources[1])).then_some(sources)
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
            // Where the neighbours of another shape are is not followed.
            OpKind::Reshape { .. } => return None,
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

/// An operand that is one instruction wide, for one warp.
fn fragment(steps: u32, operand: usize, bits: u32, width: u32) -> Layout {
    let shape = MmaShape::for_bits(bits);
    let size = if operand == 0 { [shape.m, steps] } else { [steps, shape.n] };
    Layout::mma_operand_wide(&size, operand as u32, bits, width, &[1, 1])
}

/// What it costs to read the part of a source that makes such an operand from shared memory.
fn read(steps: u32, operand: usize, bits: u32, width: u32, source: &Source) -> u64 {
    let layout = fragment(steps, operand, bits, width);
    let order = [source.inner as u32, 1 - source.inner as u32];
    let shared = swizzle_for(&layout, source.bits, &order, WIDEST / source.bits, true);
    u64::from(Access::best(&shared, &layout, source.bits, true, false).cost(false))
}

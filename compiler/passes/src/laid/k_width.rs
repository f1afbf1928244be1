//! The number of neighbours along K that a thread has in the operands of `mma.sync`.
//!
//! A cast operand is in shared memory with elements of another size than the instruction takes. In the plain layout a
//! thread would read 2 bytes at once of an operand made of bytes; with a larger *k width*, which both operands must
//! share, it reads 4 or more, or `ldmatrix` does. The operand without a cast may become more expensive: its elements
//! are no longer where `ldmatrix` expects them. So may one that is the result of another dot, whose elements are in the
//! right threads in the plain layout. Therefore the reads and conversions of both operands are counted, and the
//! cheapest width is chosen.
//!
//! ```text
//! %b = load .. : tile<64x64xf8e4m3>                 mma_operand(.., bits 16, ..): 2 bytes at a time
//! %h = castf %b : tile<64x64xf16>            →      mma_operand(.., bits 16, k_width 4, ..): 4 bytes at a time
//! %s = dot %a, %h, ..
//! ```

use std::collections::HashSet;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Kernel, Op, OpKind, Traits, Value, view};
use rtc_layout::{Layout, MmaShape, SharedAccess, swizzle_for};

use super::accelerate_dot::mma_warps;
use super::cost::{Costs, matrix_instructions};
use super::rematerialize::is_cheap;
use super::weight::weight;
use crate::PassContext;

/// Bits that a copy transfers, and that a thread loads, at once.
const WIDEST: u32 = 128;

/// How many operations between an operand and memory are looked at.
const BUDGET: usize = 32;

/// From where the elements of an operand come.
struct OperandSource {
    place: OperandHome,
    /// How often.
    often: u64,
}

enum OperandHome {
    /// A tile of its size in memory, with elements of `bits` bits and this axis innermost.
    Memory { bits: u32, inner: usize },
    /// Threads, where they are taken to lie as the accumulators of a dot do.
    Threads(Layout),
}

/// A dot whose operands get a layout.
pub struct DotOperands<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The dot.
    pub op: Op,
    /// The size of the elements that the instruction takes.
    pub bits: u32,
    /// How the warps divide the accumulators.
    pub warps: &'a [u32],
    /// Whether dots follow upon each other in registers.
    pub chained: bool,
}

impl DotOperands<'_> {
    /// The layouts of both operands, `[M, K]` and `[K, N]`, with the k width that suits their sources.
    pub fn operands(&self, cx: &PassContext) -> [Layout; 2] {
        let (bits, plain) = (self.bits, 32 / self.bits);
        let dot = view::Dot::at(self.kernel, self.op);
        let shapes = [dot.lhs(), dot.rhs()].map(|value| {
            let shape = self.kernel.value_type(value).shape();
            shape.map_or(Vec::new(), |shape| shape.to_vec())
        });
        let layout =
            |index: usize, width: u32| Layout::mma_operand_wide(&shapes[index], index as u32, bits, width, self.warps);
        let Some(sources) = self.cast_sources() else { return [layout(0, plain), layout(1, plain)] };
        let steps = shapes[1][0];
        // Several loads have a longer latency and take more registers.
        let sizes = sources.iter().flatten().map(|source| match source.place {
            OperandHome::Memory { bits, .. } => bits,
            OperandHome::Threads(_) => 0,
        });
        let largest = sizes.max().unwrap_or(bits);
        let wider = Layout::mma_k_widths(steps, bits).take_while(|width| width * largest <= WIDEST);
        let mut costs = Costs::new(matrix_instructions(cx.target));
        let mut cost = |width: &u32| -> u64 {
            let mut acc = 0;
            for (index, of) in sources.iter().enumerate() {
                let whole = layout(index, *width);
                let part = fragment(steps, index, bits, *width);
                let parts = u64::from(whole.registers() / part.registers());
                for source in of {
                    acc += source.often
                        * match &source.place {
                            OperandHome::Memory { bits, inner } => parts * read(&part, *bits, *inner),
                            OperandHome::Threads(from) => costs.conversion(from, &whole, bits / 8),
                        };
                }
            }
            acc
        };
        // The first of equal ones.
        let width = [plain].into_iter().chain(wider).min_by_key(&mut cost).unwrap_or(plain);
        [layout(0, width), layout(1, width)]
    }

    /// From what both operands are computed, where either is cast; `None` where a k width changes nothing: all elements
    /// that lie along K in memory have the size that the instruction takes.
    fn cast_sources(&self) -> Option<[Vec<OperandSource>; 2]> {
        let kernel = self.kernel;
        let dot = view::Dot::at(kernel, self.op);
        let values = [dot.lhs(), dot.rhs()];
        if kernel.value_type(dot.lhs()).shape()?.rank() != 2 {
            return None;
        }
        let [Some(lhs), Some(rhs)] = values.map(|value| origins(kernel, value)) else { return None };
        let is_cast = |origin: &Origin| origin.load.is_some_and(|load| element_bits(kernel, load) != Some(self.bits));
        if !lhs.iter().chain(&rhs).any(is_cast) {
            return None;
        }
        let infos = axis_info(kernel);
        let sources = [lhs, rhs].map(|of| {
            let source = |origin: &Origin| self.source(&infos, origin);
            of.iter().filter_map(source).collect::<Vec<_>>()
        });
        let along_k = |k_axis: usize, of: &[OperandSource]| {
            of.iter().any(|source| match source.place {
                OperandHome::Memory { bits, inner } => bits != self.bits && inner == k_axis,
                OperandHome::Threads(_) => false,
            })
        };
        (along_k(1, &sources[0]) || along_k(0, &sources[1])).then_some(sources)
    }

    fn source(&self, infos: &AxisInfos, origin: &Origin) -> Option<OperandSource> {
        let kernel = self.kernel;
        if let Some(load) = origin.load {
            let inner = innermost(kernel, infos, load);
            let inner = if origin.transposed { 1 - inner } else { inner };
            let place = OperandHome::Memory { bits: element_bits(kernel, load)?, inner };
            return Some(OperandSource { place, often: weight(kernel, load) });
        }
        let shape = kernel.value_type(origin.value).shape()?;
        let warps = kernel.group_of(self.op).warps;
        let accs = Layout::mma_v2(&shape, &mma_warps(shape, warps, self.chained, [false; 2]));
        let place = OperandHome::Threads(if origin.transposed { accs.transpose(&[1, 0]) } else { accs });
        Some(OperandSource { place, often: weight(kernel, self.op) })
    }
}

/// Whether an operand is computed from a load of elements of another size than the `bits` that the instruction takes.
pub(super) fn is_cast(kernel: &Kernel, operand: Value, bits: u32) -> bool {
    let all = origins(kernel, operand).into_iter().flatten();
    all.filter_map(|origin| element_bits(kernel, origin.load?)).any(|of_load| of_load != bits)
}

fn element_bits(kernel: &Kernel, load: Op) -> Option<u32> {
    kernel.value_type(kernel.result(load, 0)).elem().map(|elem| elem.bytes() * 8)
}

/// A tile of an operand's size from which the operand is computed element by element.
struct Origin {
    value: Value,
    /// The load that gives it.
    load: Option<Op>,
    /// Whether the operand is its transpose.
    transposed: bool,
}

/// The sources of an operand; `None` if they are not known.
fn origins(kernel: &Kernel, operand: Value) -> Option<Vec<Origin>> {
    let size = kernel.value_type(operand).shape()?.numel();
    let mut seen = HashSet::new();
    let mut open = vec![(operand, false)];
    let mut found = Vec::new();
    while let Some((value, transposed)) = open.pop() {
        // A splat, or rows of scales: nothing of this size.
        let Some(shape) = kernel.value_type(value).shape() else { continue };
        if shape.numel() < size || !seen.insert(value) {
            continue;
        }
        if seen.len() > BUDGET || shape.rank() != 2 {
            return None;
        }
        let Some(op) = kernel.def_op(value) else {
            found.push(Origin { value, load: None, transposed });
            continue;
        };
        let data = kernel.op(op);
        match &data.kind {
            OpKind::Load { .. } => found.push(Origin { value, load: Some(op), transposed }),
            OpKind::Trans { .. } => open.push((view::Trans::at(kernel, op).source(), !transposed)),
            // Where the neighbours of another shape are is not followed.
            OpKind::Reshape { .. } => return None,
            kind if is_cheap(kind) || kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => {
                open.extend(data.operands.iter().map(|operand| (*operand, transposed)));
            }
            _ => found.push(Origin { value, load: None, transposed }),
        }
    }
    Some(found)
}

/// The axis along which a load's elements lie in memory: the last one if nothing is known.
fn innermost(kernel: &Kernel, infos: &AxisInfos, load: Op) -> usize {
    let pointer = view::Load::at(kernel, load).pointer();
    let [along_0, along_1] = [0, 1].map(|axis| infos.axis(pointer, axis).contiguity);
    if along_0 > along_1 { 0 } else { 1 }
}

/// An operand that is one instruction wide, for one warp.
fn fragment(steps: u32, operand: usize, bits: u32, width: u32) -> Layout {
    let shape = MmaShape::for_bits(bits);
    let size = if operand == 0 { [shape.m, steps] } else { [steps, shape.n] };
    Layout::mma_operand_wide(&size, operand as u32, bits, width, &[1, 1])
}

/// The cost of reading such a part from a tile in shared memory with elements of `bits` bits and `inner` innermost.
fn read(part: &Layout, bits: u32, inner: usize) -> u64 {
    let order = [inner as u32, 1 - inner as u32];
    let shared = swizzle_for(part, bits, &order, WIDEST / bits, true);
    u64::from(SharedAccess::least_cost(&shared, part, bits, true, false))
}

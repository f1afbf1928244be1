//! The conditions on the body of a loop that is split without a hint, and how many iterations are taken at a time.

use rtc_ir::{Kernel, Op, OpKind, Type, Value, regions, view};

use super::MAX_COPIES;
use crate::dependence::slice;

/// Elements of the widest load in a thread up to which two iterations are taken at a time although they are ordered.
/// Found with LayerNorm on an H200: with 8 it gains, with 16 it loses.
const FEW_ELEMENTS: u64 = 8;

/// Registers of a thread for the loads of iterations that are taken at a time, where loads can be issued early. Found with
/// sums, products and online softmax over rows on an H200: with 16, loops that the assembler unrolls by itself are better;
/// with 64, loops with two loads lose a third.
const LOADED_REGISTERS: u64 = 32;

/// The most iterations that are taken at a time.
const MOST_AT_A_TIME: u64 = 8;

/// The most iterations that are taken at a time where loads depend on loads of their iteration: how many iterations there are is
/// often loaded, too, and small. Found with a product of a sparse matrix and a vector on an H200.
const MOST_GATHERS_AT_A_TIME: u64 = 4;

/// The most iterations of a loop that are all taken at once where it is known that there are no more.
const FEW_ITERATIONS: i64 = 8;

/// The most operations of a thread, estimated, that all iterations of such a loop may have together.
const FEW_COPIES: u64 = 400;

/// The most operations in the body of a loop with dots that is split where its masks hold.
const DOT_LOOP_OPERATIONS: usize = 250;

/// Whether a loop is an innermost one with dots, short enough to be there twice.
pub(super) fn of_dots(kernel: &Kernel, op: Op) -> bool {
    let ops = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]);
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { .. });
    let is_loop = |op: &Op| regions::is_loop(kernel.kind(*op));
    ops.len() <= DOT_LOOP_OPERATIONS && ops.iter().any(is_dot) && !ops.iter().any(is_loop)
}

/// The body of a loop without dots.
pub(super) struct Body {
    /// Operations of a thread, estimated.
    cost: u64,
    /// Elements of the widest load in a thread.
    elements: u64,
    /// Registers of a thread for all that an iteration loads.
    registers: u64,
    /// Whether loads of a later iteration cannot be issued early: something is written that they might read, or a reduction
    /// or the like may need a barrier.
    is_ordered: bool,
    /// Whether addresses follow from what an iteration loads.
    gathers: bool,
}

impl Body {
    /// That of an innermost loop that loads tiles and has no dots in it.
    pub fn of(kernel: &Kernel, op: Op) -> Option<Body> {
        let threads = u64::from(kernel.group_of(op).threads());
        let gathers = gathers(kernel, op);
        let mut body = Body { cost: 0, elements: 0, registers: 0, is_ordered: false, gathers };
        for inner in rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]) {
            let data = kernel.op(inner);
            if regions::is_loop(&data.kind) || matches!(data.kind, OpKind::Dot { .. }) {
                return None;
            }
            let numel = data.results.iter().chain(&data.operands).map(|v| numel(kernel, *v)).max();
            body.cost += numel.map_or(1, |numel| numel.div_ceil(threads));
            body.is_ordered |= !data.blocks.is_empty() || kernel.effects(inner).any(|(effect, _)| effect.lasts());
            if let OpKind::Load { .. } = data.kind
                && let Type::Tile(tile) = kernel.value_type(data.results[0])
            {
                let elements = tile.shape.numel().div_ceil(threads);
                body.elements = body.elements.max(elements);
                body.registers += (elements * u64::from(tile.elem.bits())).div_ceil(32);
            }
        }
        (body.elements > 0).then_some(body)
    }

    /// How many iterations are taken at a time; no more than two if loads `come_early` anyway.
    pub fn factor(&self, come_early: bool) -> i64 {
        let mut factor = if self.is_short() { 2 } else { 1 };
        if !self.is_ordered && !come_early {
            let most = if self.gathers { MOST_GATHERS_AT_A_TIME } else { MOST_AT_A_TIME };
            let more = |factor: u64| factor <= most && factor * self.registers <= LOADED_REGISTERS;
            while more(2 * factor) && self.may_be_copied(2 * factor) {
                factor *= 2;
            }
        }
        factor as i64
    }

    /// Whether masks stay in the iterations that are taken at a time. Where loads wait for loads, their latency decides, and the
    /// last iteration, which a mask cuts off, would wait alone.
    pub fn keeps_masks(&self) -> bool {
        self.gathers && !self.is_ordered
    }

    /// Whether two iterations are few enough elements and operations.
    pub fn is_short(&self) -> bool {
        self.elements <= FEW_ELEMENTS && self.may_be_copied(2)
    }

    /// Whether so many copies are not too many operations.
    pub fn may_be_copied(&self, copies: u64) -> bool {
        copies * self.cost <= MAX_COPIES
    }

    /// Whether all iterations may be taken at once.
    pub fn has_few(&self, iterations: i64) -> bool {
        let copies = iterations as u64;
        iterations <= FEW_ITERATIONS && copies * self.elements <= 2 * FEW_ELEMENTS && copies * self.cost <= FEW_COPIES
    }
}

/// Whether a load of a loop's body takes its addresses from another load of the body.
fn gathers(kernel: &Kernel, op: Op) -> bool {
    let body = kernel.op(op).blocks[0];
    let is_load = |op: &Op| matches!(kernel.kind(*op), OpKind::Load { .. });
    let loads = || kernel.ops(body).filter(is_load);
    loads().any(|load| slice(kernel, body, vec![view::Load::at(kernel, load).pointer()]).iter().any(is_load))
}

fn numel(kernel: &Kernel, value: Value) -> u64 {
    kernel.value_type(value).shape().map_or(1, |shape| shape.numel())
}

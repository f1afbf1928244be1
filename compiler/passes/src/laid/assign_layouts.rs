//! Gives every tile a layout.
//!
//! Memory accesses and dots determine layouts (`coalesce.rs`, `accelerate_dot.rs`); from there layouts propagate
//! forward to users and backward to defining operations, through loops and branches, until all tiles have one. Where an
//! operand's layout differs from the required one, a `convert_layout` is inserted; `remove_conversions` removes most of
//! them. Where several layouts meet, the first to arrive wins, unless `components.rs` finds a cheaper one.
//!
//! ```text
//! %x = load %p : tile<1024xf32>      →   %x = load %p1 : tile<1024xf32, #l0>
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use rtc_ir::regions::{self, Slot};
use rtc_ir::{Builder, DotKind, Kernel, Op, OpKind, Phase, Type, Value, view};
use rtc_layout::Layout;

use super::components::{ComponentContext, better_layouts};
use super::computed_operand::ComputedOperand;
use super::cost::{Costs, matrix_instructions};
use super::{accelerate_dot, coalesce};
use crate::{Pass, PassContext, PassError};
use rtc_ir::analysis::{AxisInfos, axis_info};

/// The pass.
pub const PASS: Pass = Pass { name: "assign-layouts", needs: Phase::Tile, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    accelerate_dot::choose_kinds(kernel, cx)?;
    let mut assignment = Assignment::new(kernel, cx.target);
    assignment.solve(cx);
    let Assignment { ops, slots, infos, fixed, .. } = &assignment;
    let around = ComponentContext { kernel, ops, slots, infos, fixed };
    let better = better_layouts(&around, &assignment.decided, &mut Costs::new(matrix_instructions(cx.target)));
    if !better.is_empty() {
        assignment.decided = LayoutAssignment::default();
        for value in sorted(&better).into_iter().map(|(value, _)| *value) {
            assignment.assign(value, better[&value].clone());
        }
        assignment.solve(cx);
    }
    let decided = assignment.decided;
    rewrite(kernel, decided)
}

/// The layouts that were assigned.
#[derive(Default)]
pub struct LayoutAssignment {
    /// The layouts of all tiles.
    pub layouts: HashMap<Value, Layout>,
    /// The layouts that operands must have where the operation decides: memory operations and dots.
    pub demands: HashMap<(Op, usize), Layout>,
}

struct Assignment<'k> {
    kernel: &'k Kernel,
    ops: Vec<Op>,
    slots: Vec<Slot>,
    /// The slots of an operation.
    slots_of_op: HashMap<Op, Range<usize>>,
    /// The slot that a value is a target of, by its index.
    slot_of: HashMap<Value, usize>,
    decided: LayoutAssignment,
    accesses: HashMap<Op, Layout>,
    infos: AxisInfos,
    changed: bool,
    /// Tiles whose layouts follow from the dot that they are computed for.
    fixed: HashSet<Value>,
}

impl<'k> Assignment<'k> {
    fn new(kernel: &'k Kernel, target: &rtc_abi::Target) -> Assignment<'k> {
        let ops = rtc_ir::walk(kernel);
        let infos = axis_info(kernel);
        let decided = LayoutAssignment::default();
        let mut slots: Vec<Slot> = Vec::new();
        let mut slots_of_op = HashMap::new();
        for op in &ops {
            let first = slots.len();
            slots.extend(regions::slots(kernel, *op));
            slots_of_op.insert(*op, first..slots.len());
        }
        let accesses = coalesce::access_layouts(kernel, &infos, target, &ops, &slots);
        let targets = slots.iter().enumerate().flat_map(|(i, slot)| slot.targets.iter().map(move |value| (*value, i)));
        let slot_of = targets.collect();
        Assignment {
            kernel,
            ops,
            slots,
            slots_of_op,
            slot_of,
            decided,
            accesses,
            infos,
            changed: false,
            fixed: HashSet::new(),
        }
    }

    /// Gives each tile a layout that has none yet.
    fn solve(&mut self, cx: &PassContext) {
        // Accesses first: an accumulator that is loaded keeps the layout of its load and is converted for the dot.
        self.anchor_accesses();
        self.anchor_dots(cx);
        loop {
            self.spread();
            let Some(value) = self.first_without() else { return };
            let layout = self.fallback(value);
            self.assign(value, layout);
        }
    }

    fn is_tile(&self, value: Value) -> bool {
        self.kernel.value_type(value).shape().is_some()
    }

    fn assign(&mut self, value: Value, layout: Layout) {
        if !self.is_tile(value) || self.decided.layouts.contains_key(&value) {
            return;
        }
        self.changed = true;
        // The places that one slot fills have one layout, whichever of them gets it first.
        if let Some(slot) = self.slot_of.get(&value) {
            for target in &self.slots[*slot].targets {
                self.decided.layouts.insert(*target, layout.clone());
            }
        } else {
            self.decided.layouts.insert(value, layout);
        }
    }

    fn get(&self, value: Value) -> Option<Layout> {
        self.decided.layouts.get(&value).cloned()
    }

    fn anchor_dots(&mut self, cx: &PassContext) {
        let chained = accelerate_dot::is_chained(self.kernel);
        for op in accelerate_dot::dots(self.kernel) {
            let computed = ComputedOperand::of(self.kernel, op);
            let Some(layouts) = accelerate_dot::layouts(self.kernel, cx, op, chained, computed.as_ref()) else {
                continue;
            };
            if let (Some(of), Some(lhs), OpKind::Dot { kind: DotKind::Wgmma, .. }) =
                (computed, &layouts.lhs, self.kernel.kind(op))
            {
                self.compute_in(lhs, &of);
            }
            for (index, layout) in [layouts.lhs, layouts.rhs].into_iter().enumerate() {
                if let Some(layout) = layout {
                    self.decided.demands.insert((op, index), layout);
                }
            }
            self.decided.demands.insert((op, 2), layouts.acc.clone());
            self.assign(self.kernel.result(op, 0), layouts.acc.clone());
            self.assign(view::Dot::at(self.kernel, op).acc(), layouts.acc);
        }
    }

    /// Gives what an operand is computed from the layout that the dot takes it in: tiles are read so from shared memory.
    fn compute_in(&mut self, layout: &Layout, of: &ComputedOperand) {
        for (value, transposed) in &of.tiles {
            self.assign(*value, if *transposed { layout.transpose(&[1, 0]) } else { layout.clone() });
            self.fixed.insert(*value);
        }
    }

    fn anchor_accesses(&mut self) {
        for op in self.ops.clone() {
            let Some(layout) = self.accesses.get(&op).cloned() else { continue };
            let data = self.kernel.op(op);
            for (index, operand) in data.operands.iter().enumerate() {
                if self.is_tile(*operand) {
                    self.decided.demands.insert((op, index), layout.clone());
                }
            }
            if let Some(result) = data.results.first() {
                self.assign(*result, layout);
            }
        }
    }

    /// Spreads layouts until nothing changes: first forward, since data should stay where it is; then back to makers.
    fn spread(&mut self) {
        loop {
            self.changed = false;
            for op in self.ops.clone() {
                self.forward(op);
                self.tie_sources(op);
            }
            if self.changed {
                continue;
            }
            for op in self.ops.clone().into_iter().rev() {
                self.backward(op);
                self.tie_sources(op);
            }
            if !self.changed {
                return;
            }
        }
    }

    fn forward(&mut self, op: Op) {
        let data = self.kernel.op(op);
        // A broadcast is laid out by its users: from its operand it would fill each thread with copies.
        if matches!(data.kind, OpKind::Broadcast {}) {
            return;
        }
        let open = data.results.iter().any(|v| self.is_tile(*v) && self.get(*v).is_none());
        if !open {
            return;
        }
        for (index, operand) in data.operands.iter().enumerate() {
            let Some(layout) = self.get(*operand) else { continue };
            if let Some(found) = rtc_ir::result_layout_from_operand(self.kernel, op, index, &layout) {
                for result in &data.results {
                    self.assign(*result, found.clone());
                }
                return;
            }
        }
    }

    fn backward(&mut self, op: Op) {
        let data = self.kernel.op(op);
        for (index, operand) in data.operands.iter().enumerate() {
            if !self.is_tile(*operand) || self.get(*operand).is_some() {
                continue;
            }
            let wanted = self.decided.demands.get(&(op, index)).cloned().or_else(|| {
                let result = self.get(*data.results.first()?)?;
                rtc_ir::required_operand_layout(self.kernel, op, index, &result)
            });
            if let Some(layout) = wanted {
                self.assign(*operand, layout);
            }
        }
    }

    /// Values that go around a loop or out of a branch keep their layout where nothing speaks against it.
    fn tie_sources(&mut self, op: Op) {
        for index in self.slots_of_op.get(&op).cloned().unwrap_or_default() {
            let slot = self.slots[index].clone();
            let values: Vec<Value> = slot.values(self.kernel).collect();
            // The value that comes back decides before the one that goes in: sums start from a constant.
            let mut all = slot.targets.iter().chain(values.iter().rev());
            let Some(layout) = all.find_map(|value| self.get(*value)) else { continue };
            for value in values.into_iter().chain([slot.targets[0]]) {
                self.assign(value, layout.clone());
            }
        }
    }

    fn first_without(&self) -> Option<Value> {
        let args = self.ops.iter().flat_map(|op| &self.kernel.op(*op).blocks).flat_map(|b| &self.kernel.block(*b).args);
        let results = self.ops.iter().flat_map(|op| &self.kernel.op(*op).results);
        results.chain(args).copied().find(|v| self.is_tile(*v) && self.get(*v).is_none())
    }

    fn fallback(&self, value: Value) -> Layout {
        let shape = self.kernel.value_type(value).shape();
        let shape: Vec<u32> = shape.iter().flat_map(|s| s.iter().copied()).collect();
        if let Some(gather) = view::Gather::defining(self.kernel, value)
            && let Some(layout) = self.get(gather.index())
        {
            return layout;
        }
        let order: Vec<u32> = (0..shape.len() as u32).rev().collect();
        Layout::default_blocked(&shape, self.kernel.group_of_value(value).warps, &order, 1)
    }
}

fn rewrite(kernel: &mut Kernel, decided: LayoutAssignment) -> Result<(), PassError> {
    for (value, layout) in &sorted(&decided.layouts) {
        let id = kernel.intern_layout((*layout).clone());
        let ty = kernel.value_type(**value).with_layout(Some(id));
        kernel.set_type(**value, ty);
    }
    for op in rtc_ir::walk(kernel) {
        for index in 0..kernel.op(op).operands.len() {
            let operand = kernel.op(op).operands[index];
            let Some(has) = kernel.layout_of(operand) else { continue };
            let wanted = decided.demands.get(&(op, index)).cloned().or_else(|| wanted_layout(kernel, op, index));
            if let Some(wanted) = wanted.filter(|w| w != has) {
                let new = convert(kernel, op, operand, wanted)?;
                kernel.set_operand(op, index, new);
            }
        }
        fix_result(kernel, op)?;
    }
    Ok(())
}

/// In the order of values, so that equal inputs give equal outputs.
fn sorted(layouts: &HashMap<Value, Layout>) -> Vec<(&Value, &Layout)> {
    let mut all: Vec<_> = layouts.iter().collect();
    all.sort_by_key(|(v, _)| **v);
    all
}

fn convert(kernel: &mut Kernel, before: Op, value: Value, layout: Layout) -> Result<Value, PassError> {
    let id = kernel.intern_layout(layout);
    let ty = kernel.value_type(value).with_layout(Some(id));
    Ok(Builder::before(kernel, before).convert_to(value, ty)?)
}

/// The layout that operand `index` must have, given the layouts of the results or of the other operands.
fn wanted_layout(kernel: &Kernel, op: Op, index: usize) -> Option<Layout> {
    if let Some(target) = regions::targets(kernel, op, index).first() {
        return kernel.layout_of(*target).cloned();
    }
    let data = kernel.op(op);
    match &data.kind {
        // All operands of a reduction share the layout of the first.
        OpKind::Reduce { .. } | OpKind::Assertion { .. } => kernel.layout_of(*data.operands.first()?).cloned(),
        // A scan walks registers, then lanes, then warps: layouts that mix them are no use.
        OpKind::Scan { axis, .. } => {
            let first = kernel.layout_of(*data.operands.first()?)?;
            if first.is_scan_order(*axis as usize) {
                return Some(first.clone());
            }
            let order: Vec<u32> = (0..first.rank() as u32).rev().collect();
            Some(Layout::default_blocked(first.shape(), kernel.group_of(op).warps, &order, 1))
        }
        OpKind::InlineAsm { .. } => kernel.layout_of(*data.results.first()?).cloned(),
        OpKind::Histogram { .. } => kernel.layout_of(view::Histogram::at(kernel, op).source()).cloned(),
        OpKind::Cat {} => kernel.layout_of(view::Cat::at(kernel, op).lhs()).cloned(),
        _ => {
            let result = kernel.layout_of(*data.results.first()?)?.clone();
            let required = rtc_ir::required_operand_layout(kernel, op, index, &result);
            // A result that no pair of tiles can be joined to is converted afterwards; the pair must agree all the same.
            required.or_else(|| match &data.kind {
                OpKind::Join {} => kernel.layout_of(view::Join::at(kernel, op).lhs()).cloned(),
                _ => None,
            })
        }
    }
}

/// Where the layout of a result follows from the operand, but was chosen otherwise, the operation gives what it can
/// and a conversion follows.
fn fix_result(kernel: &mut Kernel, op: Op) -> Result<(), PassError> {
    let data = kernel.op(op);
    let follows = match &data.kind {
        OpKind::Reduce { .. } | OpKind::Scan { .. } | OpKind::Split {} | OpKind::Join {} | OpKind::Cat {} => {
            let first = kernel.layout_of(*data.operands.first().ok_or_else(|| no_operand(kernel, op))?).cloned();
            first.and_then(|l| rtc_ir::result_layout_from_operand(kernel, op, 0, &l))
        }
        _ => None,
    };
    let Some(natural) = follows else { return Ok(()) };
    for result in kernel.op(op).results.clone() {
        let Some(chosen) = kernel.layout_of(result).cloned().filter(|l| *l != natural) else { continue };
        let id = kernel.intern_layout(natural.clone());
        let ty: Type = kernel.value_type(result).with_layout(Some(id));
        kernel.set_type(result, ty);
        let id = kernel.intern_layout(chosen);
        let wanted = ty.with_layout(Some(id));
        let new = Builder::after(kernel, op).convert_to(result, wanted)?;
        let conversion = kernel.def_op(new);
        kernel.replace_uses_except(result, new, conversion);
    }
    Ok(())
}

fn no_operand(kernel: &Kernel, op: Op) -> PassError {
    PassError::Internal(format!("`{}` has no operand", kernel.kind(op).spec().mnemonic))
}

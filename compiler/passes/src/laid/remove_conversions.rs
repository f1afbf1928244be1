//! Takes conversions out where the value can be rematerialized in the layout that is asked for.
//!
//! Index arithmetic, masks, constants and splats cost little next to moving data between threads; so does a counter that
//! a loop carries or a branch yields, which is then carried or yielded twice.
//!
//! ```text
//! %i = arange .. : tile<64xi32, #l0>
//! %j = convert_layout %i : tile<64xi32, #l1>      →   %j = arange .. : tile<64xi32, #l1>
//! ```

use std::collections::HashMap;

use rtc_ir::{Kernel, LayoutId, Op, OpData, OpKind, Phase, Position, Traits, Value, regions};
use rtc_layout::Layout;

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "remove-conversions", needs: Phase::Laid, leaves: Phase::Laid, run };

/// How many operations may be computed anew for one conversion.
const BUDGET: usize = 64;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut made: HashMap<(Value, LayoutId), Value> = HashMap::new();
    for op in rtc_ir::walk(kernel) {
        if !matches!(kernel.kind(op), OpKind::ConvertLayout {}) {
            continue;
        }
        let (source, result) = (kernel.operand(op, 0), kernel.result(op, 0));
        let Some(layout) = kernel.layout_of(result).cloned() else { continue };
        if kernel.layout_of(source) == Some(&layout) {
            kernel.replace_uses(result, source);
            kernel.erase(op);
            continue;
        }
        let mut plan = Plan { kernel, wanted: HashMap::new(), cost: 0 };
        if !plan.visit(source, &layout) {
            continue;
        }
        let remade = (Remake { kernel, made: &mut made }).value(source, &layout);
        if let Some(new) = remade {
            kernel.replace_uses(result, new);
            kernel.erase(op);
        }
    }
    Ok(())
}

/// Finds out whether a value can be made in another layout at small cost.
struct Plan<'k> {
    kernel: &'k Kernel,
    wanted: HashMap<(Value, Layout), ()>,
    cost: usize,
}

impl Plan<'_> {
    fn visit(&mut self, value: Value, layout: &Layout) -> bool {
        let kernel = self.kernel;
        let Some(has) = kernel.layout_of(value) else { return true };
        if has == layout || self.wanted.contains_key(&(value, layout.clone())) {
            return true;
        }
        self.wanted.insert((value, layout.clone()), ());
        self.cost += 1;
        if self.cost > BUDGET {
            return false;
        }
        if let Some(slot) = regions::slot_of(kernel, value) {
            return slot.values(kernel).all(|source| self.visit(source, layout));
        }
        kernel.def_op(value).is_some_and(|op| self.visit_op(op, layout))
    }

    fn visit_op(&mut self, op: Op, layout: &Layout) -> bool {
        let data = self.kernel.op(op);
        if !is_cheap(&data.kind) {
            return false;
        }
        if matches!(data.kind, OpKind::ConvertLayout {}) {
            return self.visit(data.operands[0], layout);
        }
        data.operands.iter().enumerate().all(|(i, operand)| {
            if self.kernel.value_type(*operand).shape().is_none() {
                return true;
            }
            rtc_ir::required_operand_layout(self.kernel, op, i, layout).is_some_and(|l| self.visit(*operand, &l))
        })
    }
}

/// Whether computing it again costs less than moving its result.
fn is_cheap(kind: &OpKind) -> bool {
    match kind {
        OpKind::Constant { .. } | OpKind::Arange { .. } | OpKind::Splat {} | OpKind::ConvertLayout {} => true,
        OpKind::ExpandDims { .. } | OpKind::Broadcast {} | OpKind::Trans { .. } => true,
        OpKind::Reshape { reorder } => !reorder,
        // Long instruction sequences.
        OpKind::DivF {} | OpKind::DivFRn {} | OpKind::SqrtRn {} => false,
        kind => kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)),
    }
}

struct Remake<'k> {
    kernel: &'k mut Kernel,
    made: &'k mut HashMap<(Value, LayoutId), Value>,
}

impl Remake<'_> {
    /// `value` in `layout`; the plan has said that it can be had.
    fn value(&mut self, value: Value, layout: &Layout) -> Option<Value> {
        let Some(has) = self.kernel.layout_of(value) else { return Some(value) };
        if has == layout {
            return Some(value);
        }
        let id = self.kernel.intern_layout(layout.clone());
        if let Some(new) = self.made.get(&(value, id)) {
            return Some(*new);
        }
        match regions::slot_of(self.kernel, value) {
            Some(slot) => self.slot(&slot, value, layout, id),
            None => self.op(self.kernel.def_op(value)?, value, layout, id),
        }
    }

    /// A slot beside `slot` that holds the same values in another layout.
    fn slot(&mut self, slot: &regions::Slot, value: Value, layout: &Layout, id: LayoutId) -> Option<Value> {
        let ty = self.kernel.value_type(value).with_layout(Some(id));
        // What comes in may depend on the new slot itself, so it is there first, with the old values.
        let old: Vec<Value> = slot.values(self.kernel).collect();
        let new = self.kernel.add_slot(slot, ty, &old);
        for (target, new) in slot.targets.iter().zip(&new) {
            self.made.insert((*target, id), *new);
        }
        let added = regions::slot_of(self.kernel, new[0])?;
        for ((user, index), old) in added.sources.iter().zip(old) {
            let source = self.value(old, layout)?;
            self.kernel.set_operand(*user, *index, source);
        }
        self.made.get(&(value, id)).copied()
    }

    fn op(&mut self, op: Op, value: Value, layout: &Layout, id: LayoutId) -> Option<Value> {
        let data: OpData = self.kernel.op(op).clone();
        if matches!(data.kind, OpKind::ConvertLayout {}) {
            return self.value(data.operands[0], layout);
        }
        let mut operands = data.operands.clone();
        for (i, operand) in operands.iter_mut().enumerate() {
            if self.kernel.value_type(*operand).shape().is_some() {
                let wanted = rtc_ir::required_operand_layout(self.kernel, op, i, layout)?;
                *operand = self.value(*operand, &wanted)?;
            }
        }
        let ty = self.kernel.value_type(value).with_layout(Some(id));
        let new = self.kernel.clone_op(op, &operands, &[ty]);
        self.kernel.insert_op(new, Position::After(op));
        let made = self.kernel.result(new, 0);
        if let Some(name) = self.kernel.value(value).name.clone() {
            self.kernel.name_value(made, &name);
        }
        self.made.insert((value, id), made);
        Some(made)
    }
}

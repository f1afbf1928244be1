//! Values recomputed in another layout: whether that can be had for little, and how it is done.
//!
//! Index arithmetic, masks, constants and splats cost little next to moving data between threads; so does a counter that
//! a loop carries or a branch yields, which is then carried or yielded twice.

use std::collections::{HashMap, HashSet};

use rtc_ir::{Builder, Kernel, LayoutId, Op, OpKind, Position, Traits, Value, ValueDef, regions, view};
use rtc_layout::Layout;

use super::cost;
use super::search::{Choice, Choices};

/// How many operations may be recomputed for one conversion.
const BUDGET: usize = 64;

/// Finds out whether a value can be made in another layout at small cost.
pub struct RematPlan<'k> {
    kernel: &'k Kernel,
    wanted: HashSet<(Value, Layout)>,
    operations: usize,
    work: u64,
}

impl RematPlan<'_> {
    /// The cost of computing `value` in `layout` from values without data; `None` if that takes more than a few
    /// operations.
    pub fn work(kernel: &Kernel, value: Value, layout: &Layout) -> Option<u64> {
        let mut plan = RematPlan { kernel, wanted: HashSet::new(), operations: 0, work: 0 };
        plan.visit(value, layout).then_some(plan.work)
    }

    fn visit(&mut self, value: Value, layout: &Layout) -> bool {
        let kernel = self.kernel;
        let Some(has) = kernel.layout_of(value) else { return true };
        if has == layout || !self.wanted.insert((value, layout.clone())) {
            return true;
        }
        self.operations += 1;
        if self.operations > BUDGET {
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
        self.work += cost::compute(&data.kind, layout);
        if let Some(conversion) = view::ConvertLayout::of(self.kernel, op) {
            return self.visit(conversion.source(), layout);
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
pub fn is_cheap(kind: &OpKind) -> bool {
    match kind {
        // A join only renames registers.
        OpKind::Constant { .. } | OpKind::Arange { .. } | OpKind::Join {} => true,
        // A scalar has no layout, and what any permutation gives depends on the layout.
        OpKind::Unsplat {} | OpKind::Reshape { reorder: true } => false,
        // Long instruction sequences.
        OpKind::DivF {} | OpKind::DivFRn {} | OpKind::SqrtRn {} => false,
        kind => kind.forwards().is_some() || kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)),
    }
}

/// The values computed so far right after their originals, by the original and the layout.
pub type Remade = HashMap<(Value, LayoutId), Value>;

/// `value` in `layout`, made of cheap operations and loads right after those that make the original; `None` if it takes others.
/// `made` has what is there already.
pub fn again(kernel: &mut Kernel, made: &mut Remade, root: Op, value: Value, layout: &Layout) -> Option<Value> {
    let choices = Choices::new();
    let mut remake = Remake { kernel, made, choices: &choices, root, late: false, here: Remade::new() };
    remake.value(value, layout)
}

/// Makes values in other layouts for one operation.
pub struct Remake<'k> {
    /// The kernel.
    pub kernel: &'k mut Kernel,
    /// The existing ones.
    pub made: &'k mut Remade,
    /// The decisions about values that do not consist of cheap operations alone.
    pub choices: &'k Choices,
    /// The user.
    pub root: Op,
    /// Whether cheap values are computed just before the root, so that they take no registers until then.
    pub late: bool,
    /// The values computed just before the root; they cannot be used before it.
    pub here: Remade,
}

impl Remake<'_> {
    /// `value` in `layout`; a plan or a search has said that it can be had.
    pub fn value(&mut self, value: Value, layout: &Layout) -> Option<Value> {
        let Some(has) = self.kernel.layout_of(value) else { return Some(value) };
        if has == layout {
            return Some(value);
        }
        let id = self.kernel.intern_layout(layout.clone());
        if let Some(new) = self.here.get(&(value, id)) {
            return Some(*new);
        }
        let choice = self.choices.get(&(value, layout.clone())).copied();
        let is_slot = regions::slot_of(self.kernel, value).is_some();
        let made = match (choice, self.kernel.def_op(value)) {
            (Some(Choice::Convert), _) => {
                let ty = self.kernel.value_type(value).with_layout(Some(id));
                let at = self.last_place(value)?;
                Builder::before(self.kernel, at).convert_to(value, ty).ok()?
            }
            (Some(Choice::Move), Some(op)) => self.op_before_root(op, value, layout, id)?,
            (None, Some(op)) if self.late && !is_slot => self.op_before_root(op, value, layout, id)?,
            _ => return self.beside(value, layout),
        };
        self.here.insert((value, id), made);
        Some(made)
    }

    fn op_before_root(&mut self, op: Op, value: Value, layout: &Layout, id: LayoutId) -> Option<Value> {
        if let Some(conversion) = view::ConvertLayout::of(self.kernel, op) {
            return self.value(conversion.source(), layout);
        }
        let mut operands = self.kernel.op(op).operands.clone();
        for (i, operand) in operands.iter_mut().enumerate() {
            if self.kernel.value_type(*operand).shape().is_some() {
                let wanted = operand_layout(self.kernel, op, i, layout)?;
                *operand = self.value(*operand, &wanted)?;
            }
        }
        let at = Position::Before(self.last_place(value)?);
        Some(self.insert(op, &operands, value, id, at))
    }

    /// The last operation in the block of `value` before which the copy must exist for the root: operations that wait
    /// for data should come late.
    fn last_place(&self, value: Value) -> Option<Op> {
        let kernel = &*self.kernel;
        let block = match kernel.value(value).def {
            ValueDef::Result(op, _) => kernel.op(op).parent,
            ValueDef::Arg(block, _) => Some(block),
        };
        let mut at = self.root;
        while kernel.op(at).parent != block {
            at = kernel.block(kernel.op(at).parent?).parent?;
        }
        Some(at)
    }

    /// `value` in `layout`, made of cheap operations right after those that make the original.
    fn beside(&mut self, value: Value, layout: &Layout) -> Option<Value> {
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
            None => self.op_beside(self.kernel.def_op(value)?, value, layout, id),
        }
    }

    /// A slot next to `slot` that holds the same values in another layout.
    fn slot(&mut self, slot: &regions::Slot, value: Value, layout: &Layout, id: LayoutId) -> Option<Value> {
        let ty = self.kernel.value_type(value).with_layout(Some(id));
        // Incoming values may depend on the new slot itself, so the slot is added first, with the old values.
        let old: Vec<Value> = slot.values(self.kernel).collect();
        let new = self.kernel.add_slot(slot, ty, &old);
        for (target, new) in slot.targets.iter().zip(&new) {
            self.made.insert((*target, id), *new);
        }
        let added = regions::slot_of(self.kernel, new[0])?;
        for ((user, index), old) in added.sources.iter().zip(old) {
            let source = self.beside(old, layout)?;
            self.kernel.set_operand(*user, *index, source);
        }
        self.made.get(&(value, id)).copied()
    }

    fn op_beside(&mut self, op: Op, value: Value, layout: &Layout, id: LayoutId) -> Option<Value> {
        if let Some(conversion) = view::ConvertLayout::of(self.kernel, op) {
            return self.beside(conversion.source(), layout);
        }
        let mut operands = self.kernel.op(op).operands.clone();
        for (i, operand) in operands.iter_mut().enumerate() {
            if self.kernel.value_type(*operand).shape().is_some() {
                let wanted = operand_layout(self.kernel, op, i, layout)?;
                *operand = self.beside(*operand, &wanted)?;
            }
        }
        let made = self.insert(op, &operands, value, id, Position::After(op));
        self.made.insert((value, id), made);
        Some(made)
    }

    /// A copy of an operation with other operands, whose result has the name of the original.
    fn insert(&mut self, op: Op, operands: &[Value], value: Value, id: LayoutId, at: Position) -> Value {
        let ty = self.kernel.value_type(value).with_layout(Some(id));
        let new = self.kernel.clone_op(op, operands, &[ty]);
        // How wide an access is follows from its layout.
        if let OpKind::Load { vector, .. } = self.kernel.kind_mut(new) {
            *vector = None;
        }
        self.kernel.insert_op(new, at);
        let made = self.kernel.result(new, 0);
        if let Some(name) = self.kernel.value(value).name.clone() {
            self.kernel.name_value(made, &name);
        }
        made
    }
}

/// The layout that an operand must have for a result in `layout`; loads have one layout throughout, and conversions
/// are gone through.
pub fn operand_layout(kernel: &Kernel, op: Op, index: usize, layout: &Layout) -> Option<Layout> {
    match kernel.kind(op) {
        OpKind::Load { .. } | OpKind::ConvertLayout {} => Some(layout.clone()),
        _ => rtc_ir::required_operand_layout(kernel, op, index, layout),
    }
}

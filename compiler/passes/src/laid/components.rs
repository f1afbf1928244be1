//! One layout for each connected component, chosen by cost.
//!
//! A *component* is a set of values of one shape that element-wise operations, loops and branches connect, none of
//! which is cheap to recompute, and which need no conversions if all have one layout. The neighbours of a component are
//! *anchors* with layouts of their own: dots, whose instruction determines the layout; memory accesses; results of
//! other operations. Each layout of an anchor is a proposal. The cost of a proposal is that of the conversions between
//! the anchors and the component, minus the anchor's own conversion if a store or load prefers the component's layout,
//! plus the registers that the component's operations process. The propagated layouts are the first proposal, and are
//! kept if no other is cheaper.
//!
//! Components that feed a reduction or scan are left alone: another layout would change the order of additions.
//!
//! ```text
//! %a = load .. : #columns      %s = addf %a, %b : #columns       %s = addf %a, %b : #rows
//! %b = load .. : #rows    →    a conversion of %b         or     a conversion of %a
//! store .., %s : #rows         and one of %s
//! ```

use std::collections::{HashMap, HashSet};

use rtc_ir::regions::{self, Slot};
use rtc_ir::{Kernel, Op, OpKind, Value};
use rtc_layout::Layout;

use super::assign_layouts::LayoutAssignment;
use super::cost::{self, Costs};
use super::rematerialize::is_cheap;
use super::ties::{is_shape, is_tie, tied};
use super::weight::weight;
use rtc_ir::analysis::AxisInfos;

/// How many layouts are weighed for one component.
const PROPOSALS: usize = 4;

/// The operations, slots and addresses of a kernel.
pub struct ComponentContext<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its operations.
    pub ops: &'a [Op],
    /// The slots of its loops and branches.
    pub slots: &'a [Slot],
    /// How addresses run.
    pub infos: &'a AxisInfos,
    /// Values whose layouts are not chosen by cost.
    pub fixed: &'a HashSet<Value>,
}

/// The values whose layouts should be others than those that were decided, with the better ones.
pub fn better_layouts(
    around: &ComponentContext<'_>,
    decided: &LayoutAssignment,
    costs: &mut Costs,
) -> HashMap<Value, Layout> {
    let data = data_values(around);
    let mut better = HashMap::new();
    let is_free = |component: &Component| component.members.iter().all(|value| !around.fixed.contains(value));
    for component in components(around, &data).into_iter().filter(is_free) {
        if let Some(layout) = component.choose(around, decided, costs) {
            better.extend(component.members.iter().map(|value| (*value, layout.clone())));
        }
    }
    better
}

/// Values that come from memory, dots or other threads, so that they cannot be computed again for little.
fn data_values(around: &ComponentContext<'_>) -> HashSet<Value> {
    let kernel = around.kernel;
    let mut data = HashSet::new();
    // Values that flow around a loop's back edge appear after one iteration; their users after another.
    for _ in 0..2 {
        for op in around.ops {
            let of = kernel.op(*op);
            if regions::flow(&of.kind).is_empty()
                && (!is_cheap(&of.kind) || of.operands.iter().any(|v| data.contains(v)))
            {
                data.extend(of.results.iter().filter(|v| kernel.value_type(**v).shape().is_some()));
            }
        }
        for slot in around.slots {
            if slot.values(kernel).any(|value| data.contains(&value)) {
                data.extend(slot.targets.iter().copied());
            }
        }
    }
    data
}

/// An edge between a component and an anchor.
struct Edge {
    /// The value that crosses it.
    value: Value,
    /// The value of the component at this edge: the anchor's value itself or one derived from it.
    member: Value,
    /// The anchor.
    op: Op,
    /// The operand index at the anchor; `None` for a result.
    operand: Option<usize>,
}

/// Values that should share a layout, and their edges to anchors.
#[derive(Default)]
struct Component {
    members: Vec<Value>,
    /// The operations within.
    ops: Vec<Op>,
    edges: Vec<Edge>,
    /// Whether its layout determines an order of additions.
    ordered: bool,
}

fn components(around: &ComponentContext<'_>, data: &HashSet<Value>) -> Vec<Component> {
    let kernel = around.kernel;
    let mut members: HashSet<Value> = HashSet::new();
    for op in around.ops.iter().filter(|op| is_tie(kernel, **op)) {
        members.extend(kernel.op(*op).results.iter().filter(|v| data.contains(v)));
    }
    let slots = || around.slots.iter().filter(|slot| slot.targets.iter().all(|v| data.contains(v)));
    members.extend(slots().flat_map(|slot| slot.targets.iter().copied()));
    let mut sets = tied(kernel, around.ops, around.slots, |value| members.contains(&value));
    let mut sorted: Vec<Value> = members.iter().copied().collect();
    sorted.sort_unstable();
    let mut found: Vec<Component> = Vec::new();
    let mut index: HashMap<Value, usize> = HashMap::new();
    for value in sorted {
        let at = *index.entry(sets.of(value)).or_insert_with(|| {
            found.push(Component::default());
            found.len() - 1
        });
        found[at].members.push(value);
    }
    let mut of = |value: Value| members.contains(&value).then(|| index[&sets.of(value)]);
    for op in around.ops {
        let op_data = kernel.op(*op);
        let own = op_data.results.first().and_then(|v| of(*v)).filter(|_| is_tie(kernel, *op));
        if let Some(at) = own {
            found[at].ops.push(*op);
        }
        for (operand, value) in op_data.operands.iter().enumerate() {
            match (own, of(*value)) {
                // Edges from anchors into the component.
                (Some(at), None) if data.contains(value) => {
                    let member = op_data.results[0];
                    found[at].edges.extend(Edge::from(kernel, *value, member));
                }
                (None, Some(at)) if !regions::is_handed(kernel, *op, operand) => {
                    found[at].ordered |= matches!(op_data.kind, OpKind::Reduce { .. } | OpKind::Scan { .. });
                    found[at].edges.push(Edge { value: *value, member: *value, op: *op, operand: Some(operand) });
                }
                _ => {}
            }
        }
    }
    for slot in slots() {
        let Some(at) = slot.targets.first().and_then(|v| of(*v)) else { continue };
        for value in slot.values(kernel).filter(|v| data.contains(v)) {
            if of(value).is_none() {
                found[at].edges.extend(Edge::from(kernel, value, slot.targets[0]));
            }
        }
    }
    found
}

impl Component {
    /// A layout for all members that is cheaper than the assigned ones.
    fn choose(&self, around: &ComponentContext<'_>, decided: &LayoutAssignment, costs: &mut Costs) -> Option<Layout> {
        let layouts: HashSet<&Layout> = self.members.iter().filter_map(|v| decided.layouts.get(v)).collect();
        let mut proposals: Vec<&Layout> = Vec::new();
        // A later anchor is as good as an earlier one; of equal costs the first wins.
        for edge in &self.edges {
            if let Some(layout) = edge.layout(decided)
                && !proposals.contains(&layout)
                && proposals.len() < PROPOSALS
            {
                proposals.push(layout);
            }
        }
        let only = layouts.len() <= 1 && proposals.iter().all(|layout| layouts.contains(layout));
        if self.ordered || only {
            return None;
        }
        let now = self.cost(around, decided, costs, None);
        let best = proposals.into_iter().map(|layout| (self.cost(around, decided, costs, Some(layout)), layout));
        // The first of equal ones.
        let (cost, layout) = best.min_by_key(|(cost, _)| *cost)?;
        (cost < now).then(|| layout.clone())
    }

    /// The cost of one layout for all members, or of those that were decided.
    fn cost(
        &self,
        around: &ComponentContext<'_>,
        decided: &LayoutAssignment,
        costs: &mut Costs,
        all: Option<&Layout>,
    ) -> u64 {
        let kernel = around.kernel;
        let layout_of = |value: &Value| all.or_else(|| decided.layouts.get(value));
        let mut sum = 0;
        for edge in &self.edges {
            let Some(inside) = layout_of(&edge.member) else { continue };
            sum += edge.cost(around, decided, costs, inside);
        }
        for op in &self.ops {
            let data = kernel.op(*op);
            let Some(layout) = layout_of(&data.results[0]) else { continue };
            sum += cost::compute(&data.kind, layout) * weight(kernel, *op);
            for operand in data.operands.iter().filter(|v| all.is_none() && self.members.binary_search(v).is_ok()) {
                if let Some(has) = decided.layouts.get(operand).filter(|has| *has != layout) {
                    let bytes = kernel.value_type(*operand).elem().map_or(4, |e| e.bytes());
                    sum += costs.conversion(has, layout, bytes) * weight(kernel, *op);
                }
            }
        }
        sum
    }
}

impl Edge {
    /// From the operation that makes `value`.
    fn from(kernel: &Kernel, value: Value, member: Value) -> Option<Edge> {
        kernel.def_op(value).map(|op| Edge { value, member, op, operand: None })
    }

    /// The layout that the anchor provides or requires; the assigned one if it has no preference.
    fn layout<'d>(&self, decided: &'d LayoutAssignment) -> Option<&'d Layout> {
        let demand = self.operand.and_then(|index| decided.demands.get(&(self.op, index)));
        demand.or_else(|| decided.layouts.get(&self.value))
    }

    /// The cost if the anchor provides or requires one layout and the component has another.
    fn cost(
        &self,
        around: &ComponentContext<'_>,
        decided: &LayoutAssignment,
        costs: &mut Costs,
        inside: &Layout,
    ) -> u64 {
        let kernel = around.kernel;
        // A value behind a broadcast or a change of shape is moved before it.
        let (mut value, mut inside) = (self.value, inside.clone());
        while self.operand.is_none()
            && let Some(op) = kernel.def_op(value).filter(|op| is_shape(kernel.kind(*op)))
            && let Some(layout) = rtc_ir::required_operand_layout(kernel, op, 0, &inside)
        {
            (value, inside) = (kernel.operand(op, 0), layout);
        }
        let anchor = if value == self.value { self.layout(decided) } else { decided.layouts.get(&value) };
        let (Some(anchor), inside) = (anchor, &inside) else { return 0 };
        if anchor == inside {
            return 0;
        }
        let often = weight(kernel, self.op);
        let bytes = kernel.value_type(value).elem().map_or(4, |elem| elem.bytes());
        let (from, to) = if self.operand.is_some() { (inside, anchor) } else { (anchor, inside) };
        let converted = costs.conversion(from, to, bytes);
        let access = match kernel.kind(self.op) {
            OpKind::Store { .. } if self.operand == Some(1) => true,
            _ if self.operand.is_some() => false,
            _ => cost::may_be_relaid(kernel, around.infos, self.op, inside) && kernel.users(self.value).len() == 1,
        };
        let spared = access.then(|| cost::extra_cost(kernel, around.infos, self.op, anchor, inside));
        spared.map_or(converted, |spared| spared.min(converted)) * often
    }
}

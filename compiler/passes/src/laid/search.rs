//! Looks for the cheapest way to a value in another layout: where on its way from loads and dots the data should be
//! moved between threads.

use std::collections::HashMap;

use rtc_ir::{Kernel, Op, OpKind, Traits, Value, ValueDef, regions, view};
use rtc_layout::Layout;

use super::cost::{self, Costs};
use super::dot_users::multiplies;
use super::rematerialize::{RematPlan, is_cheap, operand_layout};
use super::weight::{loop_depth, often, weight};
use rtc_ir::analysis::AxisInfos;

/// How many values one search looks at.
const BUDGET: usize = 24;

/// Registers that a value may take more of in the new layout where it waits for a loop.
const MORE_REGISTERS: u32 = 8;

/// More often than anything runs.
const NEVER: u64 = 1 << 32;

/// The decision about a value that is required in another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is computed from cheap operations, in addition to the original.
    Make,
    /// Its operation is done in the other layout, just before the value is needed.
    Move,
    /// It is converted.
    Convert,
}

/// Choices by value and wanted layout.
pub type Choices = HashMap<(Value, Layout), Choice>;

/// A search for one conversion.
pub struct Search<'a> {
    kernel: &'a Kernel,
    infos: &'a AxisInfos,
    costs: &'a mut Costs,
    root: Op,
    /// Whether loads may get the wanted layout.
    loads: bool,
    budget: usize,
    known: HashMap<(Value, Layout), (i64, Choice)>,
}

impl<'a> Search<'a> {
    /// For a conversion.
    pub fn new(kernel: &'a Kernel, infos: &'a AxisInfos, costs: &'a mut Costs, root: Op) -> Search<'a> {
        // The fragments of operands are spread over threads such that neighbours in memory lie apart.
        let loads = !feeds_dot(kernel, kernel.result(root, 0), BUDGET);
        Search { kernel, infos, costs, root, loads, budget: BUDGET, known: HashMap::new() }
    }

    /// The replacement of the conversion, if it is cheaper.
    pub fn cheaper(mut self) -> Option<Choices> {
        let (source, result) =
            (view::ConvertLayout::at(self.kernel, self.root).source(), self.kernel.result(self.root, 0));
        let layout = self.kernel.layout_of(result)?.clone();
        let now = signed(self.costs.conversion_of(self.kernel, source, &layout) * weight(self.kernel, self.root));
        let dies = self.kernel.users(source).len() == 1;
        let best = self.best(source, &layout, dies);
        (best < now).then(|| self.known.into_iter().map(|(key, (_, choice))| (key, choice)).collect())
    }

    /// The least cost of `value` in `layout`, minus the cost that disappears. `dies`: the original has no other users.
    fn best(&mut self, value: Value, layout: &Layout, dies: bool) -> i64 {
        let kernel = self.kernel;
        if kernel.layout_of(value).is_none_or(|has| has == layout) {
            return 0;
        }
        let key = (value, layout.clone());
        if let Some((cost, _)) = self.known.get(&key) {
            return *cost;
        }
        let convert = signed(self.costs.conversion_of(kernel, value, layout) * self.often(value, layout));
        self.known.insert(key.clone(), (convert, Choice::Convert));
        // Conversions are looked through even at the end: the source of a conversion often has the required layout.
        if self.budget == 0 && view::ConvertLayout::defining(kernel, value).is_none() {
            return convert;
        }
        self.budget = self.budget.saturating_sub(1);
        match self.make(value, layout, dies) {
            Some((cost, choice)) if cost < convert => {
                self.known.insert(key, (cost, choice));
                cost
            }
            _ => convert,
        }
    }

    fn make(&mut self, value: Value, layout: &Layout, dies: bool) -> Option<(i64, Choice)> {
        let kernel = self.kernel;
        if let Some(conversion) = view::ConvertLayout::defining(kernel, value).filter(|_| dies) {
            // Another conversion, which goes with this one.
            let (source, often) = (conversion.source(), weight(kernel, conversion.op()));
            let paid = self.costs.conversion_of(kernel, source, kernel.layout_of(value)?) * often;
            let instead = self.best(source, layout, kernel.users(source).len() == 1);
            return Some((instead - signed(paid), Choice::Move));
        }
        if let Some(work) = RematPlan::work(kernel, value, layout) {
            return Some((signed(work), Choice::Make));
        }
        if regions::slot_of(kernel, value).is_some() {
            return None;
        }
        let op = kernel.def_op(value)?;
        let data = kernel.op(op);
        let often = weight(kernel, op);
        let tiles = (0..data.operands.len()).filter(|i| kernel.layout_of(data.operands[*i]).is_some());
        match &data.kind {
            OpKind::Load { .. } if self.loads && dies && cost::may_be_relaid(kernel, self.infos, op, layout) => {
                let has = kernel.layout_of(value)?;
                let mut cost = cost::extra_cost(kernel, self.infos, op, has, layout) * often;
                for index in tiles {
                    cost += RematPlan::work(kernel, data.operands[index], layout)?;
                }
                Some((signed(cost), Choice::Make))
            }
            kind if is_cheap(kind) || (dies && kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE))) => {
                let mut cost = if dies { 0 } else { signed(cost::compute(kind, layout) * often) };
                for index in tiles {
                    let operand = data.operands[index];
                    // Both operands of `join %x, %x` are moved once.
                    if data.operands[..index].contains(&operand) {
                        continue;
                    }
                    let wanted = operand_layout(kernel, op, index, layout)?;
                    cost += self.best(operand, &wanted, dies && kernel.users(operand).len() == 1);
                }
                Some((cost, Choice::Move))
            }
            _ => None,
        }
    }

    /// How often a conversion of `value` would run: as often as the value is made, unless that would keep many more
    /// registers through a loop.
    fn often(&self, value: Value, layout: &Layout) -> u64 {
        let kernel = self.kernel;
        let here = weight(kernel, self.root);
        let there = match kernel.value(value).def {
            ValueDef::Result(op, _) => weight(kernel, op),
            ValueDef::Arg(block, _) => often(loop_depth(kernel, block)),
        };
        let bytes = kernel.value_type(value).elem().map_or(4, |elem| elem.bytes());
        let words = |layout: &Layout| (layout.registers() * bytes).div_ceil(4);
        let grows = kernel.layout_of(value).is_some_and(|has| words(layout) > words(has) + MORE_REGISTERS);
        if there < here && grows { NEVER } else { there }
    }
}

fn signed(cost: u64) -> i64 {
    i64::try_from(cost).unwrap_or(i64::MAX)
}

/// Whether a dot gets this value, perhaps cast or seen as another shape.
fn feeds_dot(kernel: &Kernel, value: Value, budget: usize) -> bool {
    let mut open = vec![value];
    let mut looked = 0;
    while let Some(value) = open.pop() {
        for user in kernel.users(value) {
            looked += 1;
            match kernel.kind(user) {
                OpKind::Dot { .. } if multiplies(kernel, user, value) => return true,
                kind if is_cheap(kind) && kernel.op(user).operands.len() == 1 && looked < budget => {
                    open.extend(kernel.op(user).results.iter());
                }
                _ => {}
            }
        }
    }
    false
}

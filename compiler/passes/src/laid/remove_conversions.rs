//! Removes conversions where the alternative is cheaper (`cost.rs`).
//!
//! A value that is cheap to compute is recomputed in the required layout. A store takes its tile in the layout that it
//! has, and a load produces it in the required layout, if the accesses get no more expensive than the conversion was.
//! Necessary conversions are placed where the tile is smallest: before a cast to a wider type or a broadcast, and
//! outside of loops.
//!
//! ```text
//! %i = arange .. : tile<64xi32, #l0>
//! %j = convert_layout %i : tile<64xi32, #l1>      →   %j = arange .. : tile<64xi32, #l1>
//! ```

use rtc_ir::{Kernel, Op, OpKind, Phase, Value, view};

use super::cost::{self, Costs, matrix_instructions};
use super::rematerialize::{Remade, Remake, RematPlan};
use super::search::{Choices, Search};
use super::weight::weight;
use crate::{Pass, PassContext, PassError};
use rtc_ir::analysis::{AxisInfos, axis_info};

/// The pass.
pub const PASS: Pass = Pass { name: "remove-conversions", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Up to so many registers the addresses of a store may wait for it, as they do in the layout that they have.
const FEW_REGISTERS: u32 = 8;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let mut removal = Removal { costs: Costs::new(matrix_instructions(cx.target)), infos: None, made: Remade::new() };
    for op in rtc_ir::walk(kernel) {
        match kernel.kind(op) {
            OpKind::ConvertLayout {} => removal.conversion(kernel, op),
            OpKind::Store { .. } => removal.store(kernel, op),
            _ => {}
        }
    }
    Ok(())
}

struct Removal {
    costs: Costs,
    /// The steps of addresses, computed on demand.
    infos: Option<AxisInfos>,
    made: Remade,
}

impl Removal {
    fn conversion(&mut self, kernel: &mut Kernel, op: Op) {
        let (source, result) = (view::ConvertLayout::at(kernel, op).source(), kernel.result(op, 0));
        let Some(layout) = kernel.layout_of(result).cloned() else { return };
        if kernel.layout_of(source) == Some(&layout) {
            kernel.replace_uses(result, source);
            kernel.erase(op);
            return;
        }
        let choices = if RematPlan::work(kernel, source, &layout).is_some() {
            Choices::new()
        } else {
            let infos = self.infos.get_or_insert_with(|| axis_info(kernel));
            let Some(choices) = Search::new(kernel, infos, &mut self.costs, op).cheaper() else { return };
            choices
        };
        let (made, here) = (&mut self.made, Remade::new());
        let mut remake = Remake { kernel, made, choices: &choices, root: op, late: false, here };
        if let Some(new) = remake.value(source, &layout) {
            kernel.replace_uses(result, new);
            kernel.erase(op);
        }
    }

    /// Makes a store take its tile as it is before a conversion.
    fn store(&mut self, kernel: &mut Kernel, op: Op) {
        let value = view::Store::at(kernel, op).value();
        let Some(conversion) = view::ConvertLayout::defining(kernel, value) else { return };
        let (source, conversion) = (conversion.source(), conversion.op());
        let (Some(from), Some(to)) = (kernel.layout_of(source).cloned(), kernel.layout_of(value).cloned()) else {
            return;
        };
        if kernel.users(value).len() > 1 {
            return;
        }
        let others: Vec<usize> = (0..kernel.op(op).operands.len()).filter(|index| *index != 1).collect();
        let mut work = 0;
        for index in &others {
            let Some(more) = RematPlan::work(kernel, kernel.operand(op, *index), &from) else { return };
            work += more;
        }
        let infos = self.infos.get_or_insert_with(|| axis_info(kernel));
        if cost::loses_wide_stores(kernel, infos, op, &to, &from) {
            return;
        }
        let often = weight(kernel, op);
        let moved = self.costs.conversion_of(kernel, source, &to) * weight(kernel, conversion);
        let direct = (cost::extra_cost(kernel, infos, op, &to, &from) + work) * often;
        if direct >= moved && !is_second_version(kernel, op, source) {
            return;
        }
        let late = from.registers() > FEW_REGISTERS;
        let (made, here, choices) = (&mut self.made, Remade::new(), Choices::new());
        let mut remake = Remake { kernel, made, choices: &choices, root: op, late, here };
        let mut new = Vec::new();
        for index in others {
            let operand = remake.kernel.operand(op, index);
            let Some(value) = remake.value(operand, &from) else { return };
            new.push((index, value));
        }
        for (index, value) in new {
            kernel.set_operand(op, index, value);
        }
        kernel.set_operand(op, 1, source);
        kernel.erase(conversion);
    }
}

/// Whether a store is that of `tile` for addresses that are no multiples of 16 bytes (`store_versioning`). It is seldom executed,
/// and the shared memory that it took would lack where operands of dots are copied ahead of time.
fn is_second_version(kernel: &Kernel, store: Op, tile: Value) -> bool {
    let Some(block) = kernel.op(store).parent else { return false };
    let Some(branch) = kernel.block(block).parent else { return false };
    let (OpKind::IfElse {}, [first, second]) = (kernel.kind(branch), &kernel.op(branch).blocks[..]) else {
        return false;
    };
    let stores_it = |op: Op| {
        let Some(stored) = view::Store::of(kernel, op).map(|store| store.value()) else { return false };
        let converted = view::ConvertLayout::defining(kernel, stored);
        stored == tile || converted.is_some_and(|conversion| conversion.source() == tile)
    };
    *second == block && kernel.ops(*first).any(stores_it)
}

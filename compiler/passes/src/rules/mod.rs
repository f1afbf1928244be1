//! The rewrite rules, in the lists in which passes apply them. One file is one rule.

mod add_constants;
mod dot_accumulator;
mod fold_constants;
mod full_mask;
mod invariant_iter_args;
mod known_branch;
mod raise_remainder;
mod reduce_to_dot;
mod repeated_operand;
mod single_iteration;
mod softmax_rescale;
mod zero_remainder;

use rtc_ir::Kernel;

use crate::PassError;
use crate::rewrite::{self, Rule};

/// The rules of the pass `simplify`: the result has fewer operations, or simpler ones.
pub(crate) const SIMPLIFY: &[Rule] = &[
    fold_constants::RULE,
    add_constants::RULE,
    repeated_operand::RULE,
    full_mask::RULE,
    raise_remainder::RULE,
    zero_remainder::RULE,
    known_branch::RULE,
    single_iteration::RULE,
    invariant_iter_args::RULE,
];

/// The rules of the pass `combine`: several operations become one that the target executes faster.
pub(crate) const COMBINE: &[Rule] = &[reduce_to_dot::RULE, softmax_rescale::RULE, dot_accumulator::RULE];

/// All rules, by the name of the pass that applies them.
pub const RULES: &[(&str, &[Rule])] = &[("simplify", SIMPLIFY), ("combine", COMBINE)];

/// Applies one rule alone until it no longer matches; gives how often it applied, or `None` if no rule has the name.
pub fn apply_rule(kernel: &mut Kernel, name: &str) -> Option<Result<usize, PassError>> {
    let rule = RULES.iter().flat_map(|(_, rules)| *rules).find(|rule| rule.name == name)?;
    Some(rewrite::apply(kernel, std::slice::from_ref(rule)).map(|applied| applied.iter().sum()))
}

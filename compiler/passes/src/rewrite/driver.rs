//! Applies rules to a kernel until none applies.

use rtc_ir::{Kernel, Op};

use super::{Rewriter, Rule, dead};
use crate::PassError;

/// How often each operation of a kernel may be looked at, on average. Rules that undo each other would go on forever.
const VISITS_PER_OP: usize = 64;

/// Applies rules until none applies, and removes dead operations on the way; gives for each rule how often it applied.
pub(crate) fn apply(kernel: &mut Kernel, rules: &[Rule]) -> Result<Vec<usize>, PassError> {
    let ops = rtc_ir::walk(kernel);
    let mut budget = VISITS_PER_OP * ops.len();
    let mut applied = vec![0; rules.len()];
    let mut rewriter = Rewriter::new(kernel);
    ops.into_iter().for_each(|op| rewriter.push(op));
    loop {
        let mut changed = false;
        while let Some(op) = rewriter.pop() {
            budget = budget.checked_sub(1).ok_or_else(|| endless(rules, &applied))?;
            if let Some(index) = visit(&mut rewriter, rules, op)? {
                applied[index] += 1;
                changed = true;
            }
        }
        if !changed {
            return Ok(applied);
        }
        rtc_ir::walk(&rewriter).into_iter().for_each(|op| rewriter.push(op));
    }
}

/// The error of rules that do not come to an end.
fn endless(rules: &[Rule], applied: &[usize]) -> PassError {
    let most = (0..rules.len()).max_by_key(|index| applied[*index]).map_or("", |index| rules[index].name);
    PassError::Internal(format!("rewrite rules do not come to an end; most often `{most}` was applied"))
}

/// Removes a dead operation, or applies the first rule that matches; gives its number.
fn visit(rewriter: &mut Rewriter<'_>, rules: &[Rule], op: Op) -> Result<Option<usize>, PassError> {
    if rewriter.op(op).parent.is_none() {
        return Ok(None);
    }
    if dead::is_dead(rewriter, op) {
        rewriter.erase(op);
        return Ok(None);
    }
    for (index, rule) in rules.iter().enumerate() {
        if (rule.starts_from)(rewriter.kind(op)) && (rule.rewrite)(rewriter, op)? {
            rewriter.push_changed(op);
            return Ok(Some(index));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use rtc_ir::{OpKind, text, view};

    use super::*;

    const SUM: &str = "kernel @k(%p: ptr<i32>, %x: i32, %y: i32) warps 1 phase tile {
  %a = addi %x, %y : i32
  %b = muli %a, %a : i32
  %c = addi %b, %y : i32
  %unused = addi %c, %c : i32
  store %p, %c
  ret
}
";

    fn swap(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
        let Some([lhs, rhs]) = rewriter.sides(op) else { return Ok(false) };
        rewriter.set_operand(op, 0, rhs);
        rewriter.set_operand(op, 1, lhs);
        Ok(true)
    }

    /// Replaces a product by its left side.
    fn take_side(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
        let side = view::MulI::at(rewriter, op).lhs();
        rewriter.replace_op(op, side);
        Ok(true)
    }

    #[test]
    fn rules_that_undo_each_other_are_an_error() {
        let mut kernel = text::parse(SUM).expect("the form is right");
        let is_sum = |kind: &OpKind| matches!(kind, OpKind::AddI {});
        let rules = [Rule { name: "swap", starts_from: is_sum, rewrite: swap }];
        let error = apply(&mut kernel, &rules).expect_err("the operands are swapped for ever");
        assert!(error.to_string().contains("most often `swap` was applied"), "{error}");
    }

    #[test]
    fn dead_operations_go_and_users_are_looked_at_again() {
        let mut kernel = text::parse(SUM).expect("the form is right");
        let is_product = |kind: &OpKind| matches!(kind, OpKind::MulI {});
        let rules = [Rule { name: "take-side", starts_from: is_product, rewrite: take_side }];
        assert_eq!(apply(&mut kernel, &rules).expect("it ends"), [1]);
        rtc_ir::verify(&kernel).expect("in order");
        let left: Vec<&str> = rtc_ir::walk(&kernel).iter().map(|op| kernel.kind(*op).spec().mnemonic).collect();
        assert_eq!(left, ["addi", "addi", "store", "ret"]);
    }
}

//! An operation that only repeats one of its operands is replaced by it. One row, one law.
//!
//! ```text
//! %d = muli %x, %one : i32       →   uses of %d become %x
//! ```

use rtc_ir::{Elem, Kernel, Op, OpKind, Value, constant_bits, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "repeated-operand", starts_from: |_| true, rewrite };

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some(same) = repeated(rewriter, op) else { return Ok(false) };
    rewriter.replace_uses(rewriter.result(op, 0), same);
    Ok(true)
}

/// A law: what it states, and what the result is where it holds.
struct Law {
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests name the law that fails"))]
    law: &'static str,
    apply: fn(&Sides<'_>) -> Option<Value>,
}

/// An operation whose operands a law looks at.
struct Sides<'k> {
    kernel: &'k Kernel,
    op: Op,
    kind: &'k OpKind,
}

const LAWS: &[Law] = &[
    Law { law: "x + 0 = x", apply: |s| s.either(matches!(s.kind, OpKind::AddI {}), 0) },
    Law { law: "x | 0 = x", apply: |s| s.either(matches!(s.kind, OpKind::OrI {}), 0) },
    Law { law: "x ^ 0 = x", apply: |s| s.either(matches!(s.kind, OpKind::XorI {}), 0) },
    Law { law: "x - 0 = x", apply: |s| s.right(matches!(s.kind, OpKind::SubI {}), 0) },
    Law { law: "x << 0 = x", apply: |s| s.right(matches!(s.kind, OpKind::ShlI {}), 0) },
    Law { law: "x >> 0 = x", apply: |s| s.right(matches!(s.kind, OpKind::ShrSI {} | OpKind::ShrUI {}), 0) },
    Law { law: "pointer + 0 = pointer", apply: |s| s.right(matches!(s.kind, OpKind::AddPtr {}), 0) },
    Law { law: "x * 1 = x", apply: |s| s.either(matches!(s.kind, OpKind::MulI {}) && s.bits() > 1, 1) },
    Law { law: "x / 1 = x, signed", apply: |s| s.right(matches!(s.kind, OpKind::DivSI {}) && s.bits() > 1, 1) },
    Law { law: "x / 1 = x, unsigned", apply: |s| s.right(matches!(s.kind, OpKind::DivUI {}) && s.bits() > 1, 1) },
    Law { law: "x & all ones = x", apply: |s| s.either(matches!(s.kind, OpKind::AndI {}), s.all_ones()) },
    Law { law: "select(false, x, y) = y", apply: |s| s.chosen(|c| c == Some(0), 2) },
    Law { law: "select(true, x, y) = x", apply: |s| s.chosen(|c| c.is_some_and(|c| c != 0), 1) },
    Law { law: "select(c, x, x) = x", apply: |s| s.chosen(|_| s.operand(1) == s.operand(2), 1) },
    Law { law: "broadcast to the same shape = x", apply: |s| s.same(matches!(s.kind, OpKind::Broadcast {})) },
    Law { law: "reshape to the same shape = x", apply: |s| s.same(matches!(s.kind, OpKind::Reshape { .. })) },
    Law { law: "reshape and back = x", apply: |s| s.back() },
    Law { law: "unsplat(splat x) = x", apply: |s| s.unsplat() },
    Law { law: "trans in the same order = x", apply: |s| s.same_order() },
];

/// The operand that the operation repeats by the first law that holds.
fn repeated(kernel: &Kernel, op: Op) -> Option<Value> {
    let kind = kernel.kind(op);
    if kernel.op(op).operands.is_empty() || kernel.op(op).results.is_empty() {
        return None;
    }
    let sides = Sides { kernel, op, kind };
    LAWS.iter().find_map(|law| (law.apply)(&sides))
}

impl Sides<'_> {
    /// The source of an earlier reshape, if the result has its shape again.
    fn back(&self) -> Option<Value> {
        let keeps = |kind: &OpKind| matches!(kind, OpKind::Reshape { reorder: false });
        let before = view::Reshape::defining(self.kernel, self.operand(0))?;
        let (source, result) = (before.source(), self.kernel.result(self.op, 0));
        if !keeps(self.kind) || !keeps(self.kernel.kind(before.op())) {
            return None;
        }
        (self.kernel.value_type(source) == self.kernel.value_type(result)).then_some(source)
    }

    fn operand(&self, index: usize) -> Value {
        self.kernel.operand(self.op, index)
    }

    fn constant(&self, index: usize) -> Option<u64> {
        constant_bits(self.kernel, self.operand(index))
    }

    /// The left operand, if the right one is the constant.
    fn right(&self, is_it: bool, neutral: u64) -> Option<Value> {
        (is_it && self.constant(1) == Some(neutral)).then(|| self.operand(0))
    }

    /// The other operand, if one is that constant.
    fn either(&self, is_it: bool, neutral: u64) -> Option<Value> {
        let left = || (is_it && self.constant(0) == Some(neutral)).then(|| self.operand(1));
        self.right(is_it, neutral).or_else(left)
    }

    fn chosen(&self, holds: impl Fn(Option<u64>) -> bool, index: usize) -> Option<Value> {
        (matches!(self.kind, OpKind::Select {}) && holds(self.constant(0))).then(|| self.operand(index))
    }

    fn same(&self, is_it: bool) -> Option<Value> {
        let types = [self.operand(0), self.kernel.result(self.op, 0)].map(|value| self.kernel.value_type(value));
        (is_it && types[0] == types[1]).then(|| self.operand(0))
    }

    fn unsplat(&self) -> Option<Value> {
        let OpKind::Unsplat {} = self.kind else { return None };
        Some(view::Splat::defining(self.kernel, self.operand(0))?.scalar())
    }

    fn same_order(&self) -> Option<Value> {
        let OpKind::Trans { order } = self.kind else { return None };
        order.iter().enumerate().all(|(i, o)| i == *o as usize).then(|| self.operand(0))
    }

    fn bits(&self) -> u32 {
        self.kernel.value_type(self.operand(0)).elem().map_or(0, Elem::bits)
    }

    fn all_ones(&self) -> u64 {
        match self.bits() {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_ir::text::parse;

    /// Per law an operation that it applies to, and the operand that must come out.
    const CASES: &[(&str, &str, &str)] = &[
        ("x + 0 = x", "addi %zero, %x : i32", "x"),
        ("x | 0 = x", "ori %x, %zero : i32", "x"),
        ("x ^ 0 = x", "xori %zero, %x : i32", "x"),
        ("x - 0 = x", "subi %x, %zero : i32", "x"),
        ("x << 0 = x", "shli %x, %zero : i32", "x"),
        ("x >> 0 = x", "shrsi %x, %zero : i32", "x"),
        ("pointer + 0 = pointer", "addptr %p, %zero : ptr<f32>", "p"),
        ("x * 1 = x", "muli %one, %x : i32", "x"),
        ("x / 1 = x, signed", "divsi %x, %one : i32", "x"),
        ("x / 1 = x, unsigned", "divui %x, %one : i32", "x"),
        ("x & all ones = x", "andi %x, %ones : i32", "x"),
        ("select(false, x, y) = y", "select %false, %x, %y : i32", "y"),
        ("select(true, x, y) = x", "select %true, %x, %y : i32", "x"),
        ("select(c, x, x) = x", "select %c, %y, %y : i32", "y"),
        ("broadcast to the same shape = x", "broadcast %t : tile<2x4xi32>", "t"),
        ("reshape to the same shape = x", "reshape %t {reorder = false} : tile<2x4xi32>", "t"),
        ("reshape and back = x", "reshape %u {reorder = false} : tile<2x4xi32>", "t"),
        ("unsplat(splat x) = x", "unsplat %s : i32", "x"),
        ("trans in the same order = x", "trans %t {order = [0, 1]} : tile<2x4xi32>", "t"),
    ];

    /// Operations that look alike and must stay.
    const OTHERS: &[&str] = &[
        "subi %zero, %x : i32",
        "shli %zero, %x : i32",
        "divsi %one, %x : i32",
        "muli %x, %zero : i32",
        "andi %x, %one : i32",
        "select %c, %x, %y : i32",
        "trans %t {order = [1, 0]} : tile<4x2xi32>",
        "reshape %t {reorder = false} : tile<8xi32>",
        "reshape %u {reorder = false} : tile<4x2xi32>",
    ];

    fn outcome(text: &str) -> Option<String> {
        let kernel = parse(&format!(
            "kernel @k(%x: i32, %y: i32, %c: i1, %p: ptr<f32>) warps 1 phase tile {{
  %zero = constant {{value = 0}} : i32
  %one = constant {{value = 1}} : i32
  %ones = constant {{value = -1}} : i32
  %false = constant {{value = 0}} : i1
  %true = constant {{value = 1}} : i1
  %s = splat %x : tile<1xi32>
  %t = splat %x : tile<2x4xi32>
  %u = reshape %t {{reorder = false}} : tile<8xi32>
  %r = {text}
  ret
}}"
        ))
        .unwrap_or_else(|error| panic!("{text}: {error}"));
        let end = kernel.terminator(kernel.body()).expect("it has one");
        let op = kernel.previous_op(end).expect("the operation");
        repeated(&kernel, op).and_then(|value| kernel.value(value).name.clone())
    }

    #[test]
    fn each_law_holds_where_it_should() {
        let laws: Vec<&str> = LAWS.iter().map(|law| law.law).collect();
        assert_eq!(laws, CASES.iter().map(|case| case.0).collect::<Vec<_>>(), "one case for each law");
        for (law, text, wanted) in CASES {
            assert_eq!(outcome(text).as_deref(), Some(*wanted), "{law}");
        }
        for text in OTHERS {
            assert_eq!(outcome(text), None, "{text}");
        }
    }
}

//! Branches: static ones pick their side, dynamic ones merge what both sides assign.
//!
//! Every assignment has a version, so the changes of a branch are found by comparing scopes, whatever the syntax was.

use rtc_ir::{Block, OpKind, Type, Value};
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Expr, Stmt, Symbol};

use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::expr::Condition;
use crate::frames::{Gone, Scope};
use crate::stmt::{Flow, Return, Todo};
use crate::types::ElemTy;
use crate::values::{Tensor, Val};

/// One side of a dynamic branch after it was run.
struct BranchSide<'a> {
    block: Block,
    scope: Scope<'a>,
    flow: Flow<'a>,
    yields: Vec<Value>,
}

impl<'a> Evaluator<'a> {
    /// Runs an `if`. The flag of the result says that the statements after it were run as well.
    pub(crate) fn exec_if(
        &mut self,
        test: &'a Expr,
        body: &'a [Stmt],
        orelse: &'a [Stmt],
        todo: &mut Todo<'a>,
        tail: bool,
        span: Span,
    ) -> R<(Flow<'a>, bool)> {
        let arg = self.eval_arg(test)?;
        let condition = match self.condition(&arg, "`if`")? {
            Condition::Static(true) => {
                todo.push(body);
                return Ok((Flow::Next, false));
            }
            Condition::Static(false) => {
                todo.push(orelse);
                return Ok((Flow::Next, false));
            }
            Condition::Dynamic(t) => t,
        };
        self.deeper(span, |cx| cx.dynamic_if(condition, body, orelse, todo, tail, span))
    }

    fn dynamic_if(
        &mut self,
        condition: Tensor,
        body: &'a [Stmt],
        orelse: &'a [Stmt],
        todo: &mut Todo<'a>,
        tail: bool,
        span: Span,
    ) -> R<(Flow<'a>, bool)> {
        let outer_scope = self.frame().scope.clone();
        let outer_block = self.block;
        let mut consumed = false;

        let mut a = self.run_side(Todo::new(body), false);
        self.frame_mut().scope = outer_scope.clone();
        let b = if matches!(a.flow, Flow::Returned(_)) && !todo.is_empty() {
            // The code after the `if` can only be reached through the other side: it goes there.
            consumed = true;
            let mut rest = std::mem::take(todo);
            rest.push(orelse);
            self.run_side(rest, tail)
        } else {
            self.run_side(Todo::new(orelse), false)
        };
        if !consumed && matches!(b.flow, Flow::Returned(_)) && !todo.is_empty() {
            consumed = true;
            let rest = std::mem::take(todo);
            self.frame_mut().scope = a.scope;
            self.block = a.block;
            self.frame_mut().branches += 1;
            a.flow = match a.flow {
                Flow::Next => self.exec(rest, tail),
                Flow::Maybe(flag, ret) => self.exec_unless(flag, ret, rest, tail, span),
                other => other,
            };
            self.frame_mut().branches -= 1;
            a.scope = std::mem::take(&mut self.frame_mut().scope);
        }
        self.block = outer_block;
        let ends = tail && (consumed || todo.is_empty());
        let flow = self.merge(condition, a, b, outer_scope, ends, span)?;
        Ok((flow, consumed))
    }

    /// Runs the rest of the statements unless the function has returned already.
    pub(crate) fn exec_unless(
        &mut self,
        flag: Tensor,
        ret: Return<'a>,
        rest: Todo<'a>,
        tail: bool,
        span: Span,
    ) -> Flow<'a> {
        let outer_scope = self.frame().scope.clone();
        let outer_block = self.block;
        let returned = self.kernel.new_block();
        let a =
            BranchSide { block: returned, scope: outer_scope.clone(), flow: Flow::Returned(ret), yields: Vec::new() };
        let b = match self.deeper(span, |cx| Ok(cx.run_side(rest, tail))) {
            Ok(side) => side,
            Err(_) => return Flow::Next,
        };
        self.block = outer_block;
        self.span = span;
        self.merge(flag, a, b, outer_scope, tail, span).unwrap_or(Flow::Next)
    }

    /// Runs statements in a new block; the scope of the function is the side's until it is put back.
    fn run_side(&mut self, todo: Todo<'a>, tail: bool) -> BranchSide<'a> {
        let block = self.kernel.new_block();
        let outer = std::mem::replace(&mut self.block, block);
        self.frame_mut().branches += 1;
        let flow = self.exec(todo, tail);
        self.frame_mut().branches -= 1;
        self.block = outer;
        let scope = std::mem::take(&mut self.frame_mut().scope);
        BranchSide { block, scope, flow, yields: Vec::new() }
    }

    /// Builds the `if_else` of two sides that were run, and gives the names that they changed one value.
    fn merge(
        &mut self,
        condition: Tensor,
        mut a: BranchSide<'a>,
        mut b: BranchSide<'a>,
        outer: Scope<'a>,
        ends: bool,
        span: Span,
    ) -> R<Flow<'a>> {
        self.span = span;
        let mut types: Vec<Type> = Vec::new();
        // Skeletons to rebuild from the results, in order.
        let mut merged: Vec<(Symbol, Val<'a>, Span)> = Vec::new();
        let mut gone: Vec<(Symbol, Span)> = Vec::new();
        let returned = [matches!(a.flow, Flow::Returned(_)), matches!(b.flow, Flow::Returned(_))];

        let ret = self.merge_returns(&mut a, &mut b, ends, &mut types);
        let needs_names = !ends && returned != [true, true];
        if needs_names {
            for name in changed_names(&outer, &a.scope, &b.scope) {
                let (x, y) = (live(&a.scope, &name), live(&b.scope, &name));
                let place = [&a.scope, &b.scope]
                    .iter()
                    .filter_map(|s| s.get(&name))
                    .find(|binding| outer.get(&name).is_none_or(|o| o.version != binding.version))
                    .map_or(span, |binding| binding.span);
                match (returned, x, y) {
                    // The side that returned does not count.
                    ([true, false], _, Some(val)) | ([false, true], Some(val), _) => {
                        let (side, other) = if returned[0] { (&mut b, &mut a) } else { (&mut a, &mut b) };
                        self.yield_one_side(&val, side, other, &mut types);
                        merged.push((name, val, place));
                    }
                    (_, Some(x), Some(y)) => {
                        let before = live(&outer, &name);
                        let val = self.merge_name(&name, before, x, y, &mut a, &mut b, &mut types, place);
                        merged.push((name, val, place));
                    }
                    _ => gone.push((name, place)),
                }
            }
        }

        self.frame_mut().scope = outer;
        let results = self.finish_if(condition, &a, &b, &types)?;
        let mut results = results.into_iter();
        let flow = match ret {
            Merged::None => Flow::Next,
            Merged::Always(ret) => {
                let val = ret.val.rebuild(&mut results);
                Flow::Returned(Return { val, ..ret })
            }
            Merged::Sometimes(ret) => {
                let flag = results.next().map(|value| Tensor { value, ..condition });
                let val = ret.val.rebuild(&mut results);
                match flag {
                    Some(flag) => Flow::Maybe(Tensor { elem: ElemTy::I1, ..flag }, Return { val, ..ret }),
                    None => Flow::Next,
                }
            }
        };
        for (name, val, place) in merged {
            let val = val.rebuild(&mut results);
            self.bind(&name, val, place);
        }
        for (name, place) in gone {
            self.bind_gone(&name, place, Gone::OneBranch);
        }
        Ok(flow)
    }

    fn finish_if(
        &mut self,
        condition: Tensor,
        a: &BranchSide<'a>,
        b: &BranchSide<'a>,
        types: &[Type],
    ) -> R<Vec<Value>> {
        let outer = self.block;
        for side in [a, b] {
            self.block = side.block;
            let built = self.build(OpKind::Yields {}, &[], &[], &side.yields, &[], &[]);
            self.block = outer;
            built?;
        }
        let op = self.build(OpKind::IfElse {}, &[condition.value], &[], &[], &[a.block, b.block], types)?;
        Ok(self.kernel.op(op).results.to_vec())
    }

    /// Makes both sides yield whether they returned, and the returned value.
    fn merge_returns(
        &mut self,
        a: &mut BranchSide<'a>,
        b: &mut BranchSide<'a>,
        ends: bool,
        types: &mut Vec<Type>,
    ) -> Merged<'a> {
        let ret_of = |flow: &Flow<'a>| match flow {
            Flow::Returned(r) | Flow::Maybe(_, r) => Some(r.clone()),
            _ => None,
        };
        let (x, y) = (ret_of(&a.flow), ret_of(&b.flow));
        let model = match (&x, &y) {
            (None, None) => return Merged::None,
            (Some(r), None) | (None, Some(r)) => r.clone(),
            (Some(r), Some(s)) => {
                if !r.val.same_type(&s.val) {
                    let d = Diagnostic::error(
                        Code::RETURN_MISMATCH,
                        s.span,
                        "the returns of a function under run-time conditions must have one type",
                    )
                    .primary(format!("returns {}", s.val.describe()))
                    .label(r.span, format!("returns {}", r.val.describe()))
                    .help("cast the results to one type, and give every branch a `return`");
                    self.report(d);
                }
                r.clone()
            }
        };
        let always = ends || (matches!(a.flow, Flow::Returned(_)) && matches!(b.flow, Flow::Returned(_)));
        let outer = self.block;
        for side in [&mut *a, &mut *b] {
            self.block = side.block;
            if !always {
                let flag = match &side.flow {
                    Flow::Returned(_) => self.bool_literal(true),
                    Flow::Maybe(flag, _) => Ok(*flag),
                    _ => self.bool_literal(false),
                };
                if let Ok(flag) = flag {
                    side.yields.push(flag.value);
                }
            }
            match ret_of(&side.flow) {
                Some(r) => r.val.flatten(&mut side.yields),
                None => self.placeholders(&model.val, &mut side.yields),
            }
        }
        self.block = outer;
        types.extend(a.yields.iter().map(|v| self.kernel.value_type(*v)));
        if always { Merged::Always(model) } else { Merged::Sometimes(model) }
    }

    /// Zeros for what one side does not give.
    fn placeholders(&mut self, val: &Val<'a>, out: &mut Vec<Value>) {
        let mut values = Vec::new();
        val.flatten(&mut values);
        for value in values {
            let ty = self.kernel.value_type(value);
            if let Ok(zero) = self.zero_of(ty) {
                out.push(zero);
            }
        }
    }

    fn yield_one_side(
        &mut self,
        val: &Val<'a>,
        side: &mut BranchSide<'a>,
        other: &mut BranchSide<'a>,
        types: &mut Vec<Type>,
    ) {
        let from = side.yields.len();
        val.flatten(&mut side.yields);
        types.extend(side.yields[from..].iter().map(|v| self.kernel.value_type(*v)));
        let outer = std::mem::replace(&mut self.block, other.block);
        self.placeholders(val, &mut other.yields);
        self.block = outer;
    }

    /// One value out of the two that a name has after the sides; it is a skeleton for the results.
    #[allow(clippy::too_many_arguments)]
    fn merge_name(
        &mut self,
        name: &Symbol,
        before: Option<Val<'a>>,
        x: Val<'a>,
        y: Val<'a>,
        a: &mut BranchSide<'a>,
        b: &mut BranchSide<'a>,
        types: &mut Vec<Type>,
        place: Span,
    ) -> Val<'a> {
        if matches!(x, Val::Error) || matches!(y, Val::Error) {
            return Val::Error;
        }
        let decayed = |cx: &mut Evaluator<'a>, val: &Val<'a>, block: Block| {
            let outer = std::mem::replace(&mut cx.block, block);
            let result = cx.decay(val.clone(), place);
            cx.block = outer;
            result.unwrap_or(Val::Error)
        };
        let (mut x, mut y) = (x, y);
        if !x.same_type(&y) {
            // A constant that one side replaced by a run-time value becomes one, too.
            x = decayed(self, &x, a.block);
            y = decayed(self, &y, b.block);
        }
        if x.same_type(&y) {
            let mut pair = (Vec::new(), Vec::new());
            x.flatten(&mut pair.0);
            y.flatten(&mut pair.1);
            types.extend(pair.0.iter().map(|v| self.kernel.value_type(*v)));
            a.yields.extend(pair.0);
            b.yields.extend(pair.1);
            return x;
        }
        let (a_span, b_span) = (bound_at(&a.scope, name), bound_at(&b.scope, name));
        if let Some(kept @ (Val::Const(_) | Val::Type(_))) = before {
            // Triton keeps the old value silently; this deserves a warning.
            let d = Diagnostic::warning(
                Code::LOST_ASSIGNMENT,
                place,
                format!("`{name}` keeps its value from before the `if`: it was {}", kept.describe()),
            )
            .help(format!("assign `{name}` in both branches, or give it a run-time value before the `if`"));
            self.report(d);
            return kept;
        }
        let mut d = Diagnostic::error(
            Code::CHANGED_TYPE,
            place,
            format!("`{name}` has different types after the two branches of an `if`"),
        );
        for (at, val, which) in [(a_span, &x, "first"), (b_span, &y, "second")] {
            let at = at.unwrap_or(place);
            if at == place && d.labels[0].text.is_empty() {
                d = d.primary(format!("{} in the {which} branch", val.describe()));
            } else {
                d = d.label(at, format!("{} in the {which} branch", val.describe()));
            }
        }
        self.report(d.help("cast one of them, so that both branches give the same type and shape"));
        Val::Error
    }
}

/// The return value of the function after a branch.
enum Merged<'a> {
    None,
    Always(Return<'a>),
    Sometimes(Return<'a>),
}

fn live<'a>(scope: &Scope<'a>, name: &Symbol) -> Option<Val<'a>> {
    scope.get(name).filter(|b| b.gone.is_none()).map(|b| b.val.clone())
}

fn bound_at(scope: &Scope<'_>, name: &Symbol) -> Option<Span> {
    scope.get(name).map(|b| b.span)
}

/// Names that at least one side assigned, in a fixed order.
fn changed_names(outer: &Scope<'_>, a: &Scope<'_>, b: &Scope<'_>) -> Vec<Symbol> {
    let mut names: Vec<Symbol> = Vec::new();
    for scope in [a, b] {
        for (name, binding) in scope {
            let changed = outer.get(name).is_none_or(|o| o.version != binding.version);
            if changed && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}
